"""Sign a single transaction, send it, and wait for its receipt until a time limit.

Deployments, operators, traders and tests use this module; a venue's service sends by the relayer. If a node
does not answer, the same signed bytes are sent again, which is harmless, and the receipt is requested until
time is up. Without a receipt, the raised error reports the transaction's end as unknown, with the node's last
refusal of the transaction, if any.

    transact   for deployments, operators and tests: raises if the transaction was not mined or failed
    send_step  for traders: raises StepFailedError, which names the step

Source: EIP-1559 (fee rules).
"""

import math
from collections.abc import Callable

import trio

from ...codecs.transactions import SignedTransaction, Transaction, sign_transaction
from ...config.errors import ChainError, NotMined, Reverted, TransactionRefused
from ...config.timeouts import TRANSACTION_AGAIN_S, TRANSACTION_FOLLOW_S, TRANSACTION_LOOK_S, TRANSACTION_S
from ...crypto.custody.transaction_policy import PolicedRelayKey
from ...crypto.secp256k1 import SigningKey
from .port import Chain, EthCall, Receipt
from .together import both

GAS_MARGIN = 5
"""Divisor: gas limits are an estimate plus one part in GAS_MARGIN, as state may change before mining."""
DEV_GAS = 8_000_000
"""Gas limit of a set-up transaction on a development chain, in units.

A fixed limit saves the estimate, which would execute the transaction several times more.
"""


class StepFailedError(Exception):
    """A transaction of a trade reverted, or was not mined in time.

    Attributes:
        step: the transaction's name, such as `approval`, `deposit` or `swap`.
        tx_hash: hash of the transaction, 32 bytes.
        receipt: receipt of the reverted transaction; None if the transaction was not mined in time.
        reason: reason of the revert; without a receipt, the node's last refusal of the transaction; may be
            empty.
    """

    def __init__(self, step: str, tx_hash: bytes, receipt: Receipt | None = None, reason: str = "") -> None:
        ended = "reverted" if receipt else "was not mined in time, and may still be"
        super().__init__(f"the {step} 0x{tx_hash.hex()} {ended}{f': {reason}' if reason else ''}")
        self.step = step
        self.tx_hash = tx_hash
        self.receipt = receipt
        self.reason = reason


async def gas_needed(chain: Chain, call: EthCall) -> int:
    """Compute the gas limit of a transaction, in units: the node's estimate and a margin.

    Raises:
        Reverted: the call reverts.
    """
    estimate = await chain.estimate_gas(call)
    return estimate + estimate // GAS_MARGIN


async def signed(
    chain: Chain, key: SigningKey | PolicedRelayKey, call: EthCall, gas: int
) -> SignedTransaction:
    """Sign a call as a transaction with the account's next nonce, at the current price of gas.

    Args:
        gas: gas limit, in units; 0 for `gas_needed`.

    Raises:
        Reverted: the estimate of gas shows that the call would fail.
        PolicyError: the key's policy forbids the transaction; nothing was signed.
    """
    limit, (fees, nonce) = await both(
        lambda: _limit(chain, call, gas), lambda: both(chain.fees, lambda: chain.nonce(key.address))
    )
    transaction = Transaction(
        chain_id=chain.chain_id,
        nonce=nonce,
        tip_wei=fees.tip_wei,
        fee_max_wei=2 * fees.base_fee_wei + fees.tip_wei,
        gas=limit,
        to=call.to,
        value_wei=call.value_wei,
        data=call.data,
    )
    return sign_transaction(transaction, key)


async def _limit(chain: Chain, call: EthCall, gas: int) -> int:
    return gas or await gas_needed(chain, call)


async def send_and_follow(chain: Chain, transaction: SignedTransaction, within_s: float) -> Receipt:
    """Send a transaction and wait for its receipt, which may report a revert.

    Raises:
        TransactionRefused: the node refused the first attempt, so that the transaction was not sent.
        NotMined: the transaction was not mined in `within_s` seconds; it may still be mined later.
    """
    attempts, again_at, said, top = 0, -math.inf, "", -1
    with trio.move_on_after(within_s):
        while True:
            head = b""
            try:
                if trio.current_time() >= again_at:
                    attempts, again_at = attempts + 1, trio.current_time() + TRANSACTION_AGAIN_S
                    said = await _fault_of_sending(chain, transaction, is_first=attempts == 1)
                header, receipt = await both(chain.block, lambda: chain.receipt(transaction.tx_hash))
                if receipt is not None:
                    return receipt
                if header is not None:
                    head = header.hash
                    # The receipt may have been read before this block, which may have the transaction: it is
                    # read again before a wait for the next block. Once for each height: nodes behind one
                    # address may show two heads in turn.
                    if header.number > top:
                        top = header.number
                        continue
            except TransactionRefused:
                raise
            except ChainError:
                # The node may have the transaction: wait, and ask again. The wait for a head below may end at
                # once without a head to compare with.
                await trio.sleep(TRANSACTION_LOOK_S)
            with trio.move_on_after(TRANSACTION_LOOK_S):
                await chain.wait_head(head)
    raise NotMined(transaction.tx_hash, within_s, said)


async def _fault_of_sending(chain: Chain, transaction: SignedTransaction, *, is_first: bool) -> str:
    """Send a transaction; return the node's reason not to accept the transaction, or an empty text.

    Args:
        is_first: whether no earlier attempt may have left the transaction with a node.

    Raises:
        TransactionRefused: the node refused the first attempt.
    """
    try:
        await chain.send_raw(transaction.raw)
    except ChainError as fault:
        if is_first and isinstance(fault, TransactionRefused):
            raise
        return fault.detail
    return ""


async def transact(
    chain: Chain,
    key: SigningKey | PolicedRelayKey,
    to: bytes,
    data: bytes,
    *,
    value_wei: int = 0,
    gas: int = 0,
) -> Receipt:
    """Send a call from the key's account as a transaction, and wait until it is mined.

    Args:
        to: address of the contract, 20 bytes; empty creates a contract.
        gas: gas limit, in units; 0 for an estimate, which reports a failing call before it is sent.

    Raises:
        Reverted: the call would fail, or the transaction was mined and failed.
        TransactionRefused: the chain did not accept the transaction.
        NotMined: the transaction was not mined in TRANSACTION_S; it may still be mined later.
    """
    call = EthCall(to, data, key.address, value_wei)
    transaction = await signed(chain, key, call, gas)
    receipt = await send_and_follow(chain, transaction, TRANSACTION_S)
    if not receipt.succeeded:
        await chain.call(
            call, receipt.block_number - 1
        )  # raises with the reason, if the call fails on the state before its block too
        raise Reverted("the transaction failed when mined; its call on the block before succeeds")
    return receipt


async def send_step(
    chain: Chain,
    key: PolicedRelayKey,
    step: str,
    call: EthCall,
    tell: Callable[[str], None],
    *,
    gas: int = 0,
) -> Receipt:
    """Sign and send a transaction of a trade, and wait until it is mined.

    Args:
        step: name of the transaction, such as `approval`, for texts and errors.
        tell: called before the transaction is sent, with a line of text that has the name and the hash.
        gas: gas limit in units; 0 estimates it.

    Raises:
        StepFailedError: the transaction reverted, or was not mined in time.
        Reverted: the estimate of gas shows that the call would fail; nothing was sent.
        TransactionRefused: the node refused the transaction at the first attempt.
    """
    transaction = await signed(chain, key, call, gas)
    # Before the send: an interrupted trader can look the transaction up by this hash.
    tell(f"sending the {step} 0x{transaction.tx_hash.hex()}")
    try:
        receipt = await send_and_follow(chain, transaction, TRANSACTION_FOLLOW_S)
    except NotMined as unmined:
        raise StepFailedError(step, transaction.tx_hash, reason=unmined.said) from None
    if not receipt.succeeded:
        reason = await why_reverted(chain, call, receipt)
        raise StepFailedError(step, transaction.tx_hash, receipt, reason)
    return receipt


async def why_reverted(chain: Chain, call: EthCall, receipt: Receipt) -> str:
    """Find the reason of a revert as text, by a call on the state before the receipt's block."""
    try:
        await chain.call(call, receipt.block_number - 1)
    except Reverted as error:
        return error.reason or "without a reason"
    except ChainError:
        pass
    return "the state before its block does not tell why"
