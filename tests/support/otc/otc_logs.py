"""Fills and cancellations of OTC orders, as the indexer stores them."""

from cambist.engine.store.rows import OtcCancel, OtcFill, OtcOrderRow, amount32
from support.store.stores import BOB, NOW_MS, ONE, USDC, WETH, hash_of


def a_fill(row: OtcOrderRow, amount: int = ONE, *, block: int = 10, log: int = 0) -> OtcFill:
    """A fill of an order by Bob, whose place in the chain follows from the block and the log."""
    place = row.chain_id, hash_of(block), hash_of(1_000 + block), log, block
    amounts = amount32(amount), amount32(2_000 * amount // 10**12)
    return OtcFill(*place, row.order_hash, row.maker, BOB, WETH, USDC, *amounts, NOW_MS + block)


def a_cancel(
    row: OtcOrderRow, *, block: int = 20, sender: bytes | None = None, at_ms: int = NOW_MS
) -> OtcCancel:
    """A cancellation of an order, by default by its maker."""
    place = row.chain_id, hash_of(block), hash_of(1_000 + block), 0, block
    return OtcCancel(*place, row.order_hash, row.maker if sender is None else sender, at_ms)
