"""Waits for a transaction that a test sent by itself."""

import trio

from cambist.config.errors import ChainError
from cambist.config.timeouts import TRANSACTION_LOOK_S, TRANSACTION_S
from cambist.engine.chain.port import Chain, Receipt


async def mined(chain: Chain, tx_hash: bytes) -> Receipt:
    """Wait for a sent transaction and return its receipt.

    Raises:
        ChainError: the transaction was not mined in TRANSACTION_S.
    """
    known: bytes | None = None  # a head seen before the receipt was asked for
    with trio.move_on_after(TRANSACTION_S):
        while (receipt := await chain.receipt(tx_hash)) is None:
            if known is not None:
                with trio.move_on_after(TRANSACTION_LOOK_S):
                    await chain.wait_head(known)
            head = await chain.block()
            known = head.hash if head else b""
        return receipt
    raise ChainError(f"0x{tx_hash.hex()} was not mined in {TRANSACTION_S:.0f} s; it may still be")
