"""Reads the trades of a chain's blocks from the store, a page at a time.

    fills of both kinds, highest blocks first -> the blocks that a page has whole
        -> Delta: orders, documents, settlements, transactions -> trades

A page whose rows end within a block leaves that block to the next page. A block with more rows than a page is
read in full, up to TAPE_BLOCK_ROWS_MAX rows of each kind; the rest of its rows counts for no trade.

A fill of an order that the store lacks is no trade: other venues may settle at the same contract.

Source: ARCHITECTURE.md, "Trades".
"""

from collections.abc import Callable, Sequence

from msgspec import Struct

from ....config.limits import TAPE_BLOCK_ROWS_MAX, TAPE_PAGE_ROWS
from ...store.queries import among, within
from ...store.rows import ChainTx, DeltaFill, DeltaOrderRow, OrderDocument, OtcFill
from ...store.store import Store
from ...store.tables import CHAIN_TX, DELTA_DOCUMENT, DELTA_FILL, DELTA_ORDER, EFFECT, OTC_FILL
from ...store.units import row_of
from ..delta.orders.document import decode_document, order_of
from ..delta.orders.life import SETTLE
from ..delta.settlement.settling import Settlement, settlement_in
from .trades import (
    LogId,
    TapeTrade,
    TradeAccounts,
    TradedOrder,
    delta_trade,
    id_of,
    maker_parts,
    market_trades,
)

_SLICE = 64
"""Number of orders per read of the store; other tasks run between two reads."""


class TapePage(Struct, frozen=True):
    """Trades of a page of blocks.

    Attributes:
        trades: all trades of the blocks above `above_height`, up to the highest wanted block.
        above_height: height up to which nothing was read.
        rows: number of rows read.
        since_ms: time of the oldest row of the page, Unix milliseconds; None without rows.
    """

    trades: tuple[TapeTrade, ...]
    above_height: int
    rows: int
    since_ms: int | None


async def read_page(
    store: Store,
    chain_id: int,
    accounts: TradeAccounts,
    above_height: int,
    height_max: int,
    known: Callable[[LogId], TapeTrade | None],
    *,
    rows_max: int = TAPE_PAGE_ROWS,
    block_rows_max: int = TAPE_BLOCK_ROWS_MAX,
) -> TapePage:
    """Read the trades of a chain's highest blocks above a height: as many blocks as fit into a page.

    Args:
        height_max: height of the highest block.
        known: returns the trade of a log that is read already, so that its order is not read again.
        rows_max: most rows of each kind in the page.
        block_rows_max: most rows of each kind of one block.

    Raises:
        StoreUnavailable: the store cannot be read now.
    """
    limit = rows_max
    while True:
        found = await store.read(
            within(DELTA_FILL, chain_id, above_height, height_max, limit),
            within(OTC_FILL, chain_id, above_height, height_max, limit),
        )
        settled: list[DeltaFill] = [row_of(DELTA_FILL, values) for values in found[0]]
        filled: list[OtcFill] = [row_of(OTC_FILL, values) for values in found[1]]
        # Rows beyond the limit may belong to the lowest block read, which is whole only without any.
        cut = [some[-1].block_number for some in (settled, filled) if len(some) == limit]
        read_above = max(cut, default=above_height)
        if read_above < height_max:
            break
        if limit >= block_rows_max:
            read_above = height_max - 1
            break
        limit = min(limit * 4, block_rows_max)
    settled = [fill for fill in settled if fill.block_number > read_above]
    filled = [fill for fill in filled if fill.block_number > read_above]
    trades = [
        *market_trades(filled, {fill.tx_hash for fill in settled}, accounts),
        *await _delta_trades(store, settled, filled, accounts, known),
    ]
    return TapePage(
        trades=tuple(trades),
        above_height=read_above,
        rows=len(settled) + len(filled),
        since_ms=min([fill.at_ms for fill in settled] + [fill.at_ms for fill in filled], default=None),
    )


async def _delta_trades(
    store: Store,
    settled: Sequence[DeltaFill],
    filled: Sequence[OtcFill],
    accounts: TradeAccounts,
    known: Callable[[LogId], TapeTrade | None],
) -> list[TapeTrade]:
    trades: list[TapeTrade] = []
    unread: list[DeltaFill] = []
    for fill in settled:
        trade = known(id_of(fill))
        if trade is None:
            unread.append(fill)
        else:
            trades.append(trade)
    parts = maker_parts(filled, accounts) if unread else {}
    for at in range(0, len(unread), _SLICE):
        fills = unread[at : at + _SLICE]
        traded = await _orders(store, fills)
        trades += [
            delta_trade(fill, traded[id_of(fill)], parts.get(fill.tx_hash, ()))
            for fill in fills
            if id_of(fill) in traded
        ]
    return trades


async def _orders(store: Store, fills: Sequence[DeltaFill]) -> dict[LogId, TradedOrder]:
    """Read the orders of settlements with the settlements that the relayer sent: id of a fill -> order."""
    hashes = sorted({fill.order_hash for fill in fills})
    order_rows, document_rows, effect_rows, tx_rows = await store.read(
        among(DELTA_ORDER, "order_hash", hashes),
        among(DELTA_DOCUMENT, "order_hash", hashes),
        among(EFFECT, "order_hash", hashes),
        among(CHAIN_TX, "tx_hash", sorted({fill.tx_hash for fill in fills})),
    )
    rows: dict[bytes, DeltaOrderRow] = {}
    for values in order_rows:
        row: DeltaOrderRow = row_of(DELTA_ORDER, values)
        rows[row.order_hash] = row
    bodies: dict[bytes, bytes] = {}
    for values in document_rows:
        document: OrderDocument = row_of(DELTA_DOCUMENT, values)
        bodies[document.order_hash] = document.body
    # A transaction is stored before it is broadcast, so that a fill never comes before its key. Crossed
    # orders share a key, and each has its own settlement under it.
    keys: dict[bytes, str] = {}
    for values in tx_rows:
        transaction: ChainTx = row_of(CHAIN_TX, values)
        keys[transaction.tx_hash] = transaction.effect_key
    sent: dict[tuple[bytes, str], Settlement] = {}
    for values in effect_rows:
        effect = row_of(EFFECT, values)
        if effect.kind == SETTLE:
            settlement = settlement_in(effect)
            sent[effect.order_hash, settlement.key] = settlement
    return {
        id_of(fill): TradedOrder(
            rows[fill.order_hash],
            order_of(decode_document(bodies[fill.order_hash])),
            sent.get((fill.order_hash, keys.get(fill.tx_hash, ""))),
        )
        for fill in fills
        if fill.order_hash in rows and fill.order_hash in bodies
    }
