"""Send one transaction and wait for it: for commands, deployments and tests. A service has the relayer.

Source: EIP-1559 (fee rules).
"""

import trio

from ...codecs.transactions import Transaction, sign_transaction
from ...config.errors import ChainError, Reverted
from ...config.timeouts import HEAD_POLL_S, TRANSACTION_S
from ...crypto.custody.transaction_policy import PolicedRelayKey
from ...crypto.secp256k1 import SigningKey
from .port import Chain, EthCall, Receipt

GAS_MARGIN = 5
"""Divisor: an estimate grows by one part in GAS_MARGIN, as state may change until the transaction is mined.
"""
DEV_GAS = 8_000_000
"""Gas limit for a set-up step on a development chain: an estimate would execute the step several times more.
"""


async def transact(
    chain: Chain,
    key: SigningKey | PolicedRelayKey,
    to: bytes,
    data: bytes,
    *,
    value_wei: int = 0,
    gas: int = 0,
) -> Receipt:
    """Send a call from the key's account, and wait until it is mined.

    Args:
        to: 20 bytes; empty creates a contract.
        gas: gas limit, in units; 0 for an estimate, which reports a failing call before it is sent.

    Raises:
        Reverted: the call would fail, or the transaction was mined and failed.
        TransactionRefused: the chain did not take the transaction.
        ChainError: the transaction was not mined in TRANSACTION_S; it may still be.
    """
    call = EthCall(to, data, key.address, value_wei)
    if not gas:
        estimate = await chain.estimate_gas(call)
        gas = estimate + estimate // GAS_MARGIN
    fees = await chain.fees()
    transaction = Transaction(
        chain_id=chain.chain_id,
        nonce=await chain.nonce(key.address),
        tip_wei=fees.tip_wei,
        fee_max_wei=2 * fees.base_fee_wei + fees.tip_wei,
        gas=gas,
        to=to,
        value_wei=value_wei,
        data=data,
    )
    receipt = await mined(chain, await chain.send_raw(sign_transaction(transaction, key).raw))
    if not receipt.succeeded:
        await chain.call(
            call, receipt.block_number - 1
        )  # raises with the reason, if the call fails on the state before its block too
        raise Reverted("the transaction failed when mined; its call on the block before succeeds")
    return receipt


async def mined(chain: Chain, tx_hash: bytes) -> Receipt:
    """Wait for a sent transaction and return its receipt.

    Raises:
        ChainError: the transaction was not mined in TRANSACTION_S.
    """
    known: bytes | None = None  # a head seen before the receipt was asked for
    with trio.move_on_after(TRANSACTION_S):
        while (receipt := await chain.receipt(tx_hash)) is None:
            if known is not None:
                with trio.move_on_after(HEAD_POLL_S):
                    await chain.wait_head(known)
            head = await chain.block()
            known = head.hash if head else b""
        return receipt
    raise ChainError(f"0x{tx_hash.hex()} was not mined in {TRANSACTION_S:.0f} s; it may still be")
