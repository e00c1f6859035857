"""One transaction, sent and waited for: what commands, deployments and tests do. A service has the relayer.

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
"""One part in so many is added to an estimate: state may change until it is mined."""
DEV_GAS = 8_000_000
"""Units for any set-up of a chain of ours: an estimate would execute each step several times more."""


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
        gas: units that it may use; 0 estimates them, which says beforehand what would fail.

    Raises:
        Reverted: it would fail, or it was mined and failed.
        TransactionRefused: the chain did not take it.
        ChainError: it was not mined in TRANSACTION_S; it may still be.
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
        )  # says why, unless the state before its block does not
        raise Reverted("it was mined and failed; the call on the block before it does not")
    return receipt


async def mined(chain: Chain, tx_hash: bytes) -> Receipt:
    """The receipt of a transaction that was sent.

    Raises:
        ChainError: it was not mined in TRANSACTION_S.
    """
    known: bytes | None = None  # a head that was there before the receipt was asked for
    with trio.move_on_after(TRANSACTION_S):
        while (receipt := await chain.receipt(tx_hash)) is None:
            if known is not None:
                with trio.move_on_after(HEAD_POLL_S):
                    await chain.wait_head(known)
            head = await chain.block()
            known = head.hash if head else b""
        return receipt
    raise ChainError(f"0x{tx_hash.hex()} was not mined in {TRANSACTION_S:.0f} s; it may still be")
