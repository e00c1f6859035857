"""Reads Delta orders from the store by hash, id and filter, and makes their public records.

A record shows a single committed state: an order's row, document, fills and transfers are read together.

Source: spec 1.19 to 1.21; interop.md 3.
Choice: A malformed id in the path or in `ids` is an unknown one; ids are read in upper and lower case.
Choice: A listing is newest first, and `ids` combine with the other filters. Pages are of the current state,
    so that new orders move later pages on.
"""

from collections.abc import Collection, Sequence
from uuid import UUID

from msgspec import Struct

from .....codecs.messages.delta_messages import OrderRecord
from .....codecs.messages.vocabulary import OrderStatus, OrderType
from ....store.queries import IDS_MAX, DeltaFilter, among, between, by, delta_page
from ....store.rows import BridgeTransfer, DeltaFill, DeltaOrderRow, OrderDocument, amount_of
from ....store.store import Store
from ....store.tables import (
    BRIDGE_END,
    BRIDGE_TRANSFER,
    DELTA_DOCUMENT,
    DELTA_FILL,
    DELTA_ORDER,
    DELTA_REFUND,
)
from ....store.units import row_of
from ...orders.order_units import DELTA, hashes_of_id, order_id
from ..orders.document import decode_document, order_of
from ..orders.record import order_record
from ..orders.terms import SettledOrder
from ..orders.transfers import followed
from .cancellation import parse_order_id


class Page(Struct, frozen=True):
    """A page of a listing of orders; `total` is the number of orders on all pages."""

    records: tuple[OrderRecord, ...]
    total: int


class StoredOrders:
    """Reader of the Delta orders in the store: their rows, public records and listings."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def record(self, order_hash: bytes) -> OrderRecord | None:
        """Read the public record of the order with this hash; None if the store has no such order.

        Raises:
            StoreUnavailable: the store does not answer.
        """
        found = await self.records([order_hash])
        return found[0] if found else None

    async def is_kept(self, order_hash: bytes) -> bool:
        """Whether the store has an order with this hash.

        Raises:
            StoreUnavailable: the store does not answer.
        """
        (rows,) = await self._store.read(by(DELTA_ORDER, order_hash))
        return bool(rows)

    async def records(self, hashes: Sequence[bytes]) -> tuple[OrderRecord, ...]:
        """Read the public records of the orders with these hashes, at most IDS_MAX; skip unknown hashes.

        The records are in the sequence of the hashes.
        """
        if not hashes:
            return ()
        # One read of all tables: two reads could show a status beside fills of another time.
        tables = (DELTA_ORDER, DELTA_DOCUMENT, DELTA_FILL, BRIDGE_TRANSFER, BRIDGE_END, DELTA_REFUND)
        rows, documents, fills, sent, ends, refunds = await self._store.read(
            *(among(table, "order_hash", hashes) for table in tables)
        )
        found = {row.order_hash: row for row in map(DELTA.found, rows)}
        kept: list[OrderDocument] = [row_of(DELTA_DOCUMENT, values) for values in documents]
        bodies = {document.order_hash: decode_document(document.body) for document in kept}
        settled = _fills_by_hash([row_of(DELTA_FILL, values) for values in fills])
        by_order: dict[bytes, list[BridgeTransfer]] = {}
        for transfer in [row_of(BRIDGE_TRANSFER, values) for values in sent]:
            by_order.setdefault(transfer.order_hash, []).append(transfer)
        ended = [row_of(BRIDGE_END, values) for values in ends]
        paid_back = [row_of(DELTA_REFUND, values) for values in refunds]
        return tuple(
            order_record(
                found[key],
                bodies[key],
                settled.get(key, []),
                followed(by_order.get(key, ()), ended, paid_back),
            )
            for key in hashes
            if key in found
        )

    async def rows_of_ids(self, texts: Sequence[str]) -> list[DeltaOrderRow | None]:
        """Read the stored order row for each of the ids `texts`; None for an unknown or malformed id."""
        ids = [parse_order_id(text) for text in texts]
        known: dict[UUID, DeltaOrderRow] = {}
        wanted = [uuid for uuid in dict.fromkeys(ids) if uuid is not None]
        if wanted:
            answers = await self._store.read(*(between(DELTA_ORDER, *hashes_of_id(uuid)) for uuid in wanted))
            for rows in answers:
                known |= {order_id(row.order_hash): row for row in map(DELTA.found, rows)}
        return [None if uuid is None else known.get(uuid) for uuid in ids]

    async def page(self, wanted: DeltaFilter, page: int, limit: int) -> Page:
        """Read a page of the orders that pass a filter, newest first.

        Args:
            page: page number, from 1.
            limit: most orders on the page.
        """
        rows, total = await self._store.read(*delta_page(wanted, limit, (page - 1) * limit))
        hashes = [row.order_hash for row in map(DELTA.found, rows)]
        return Page(await self.records(hashes), int(total[0][0]))

    async def page_of_ids(self, texts: Sequence[str], wanted: DeltaFilter, page: int, limit: int) -> Page:
        """Read a page of the orders that have one of the ids `texts` and pass a filter, newest first."""
        rows = {row.order_hash: row for row in await self.rows_of_ids(texts) if row is not None}
        passing = [row for row in rows.values() if _passes(row, wanted)]
        passing.sort(key=lambda row: (row.created_ms, row.order_hash), reverse=True)
        start = (page - 1) * limit
        hashes = [row.order_hash for row in passing[start : start + limit]]
        return Page(await self.records(hashes), len(passing))

    async def settled_of(
        self, owner: bytes, chain_id: int, statuses: Collection[OrderStatus], kind: OrderType | None = None
    ) -> list[tuple[SettledOrder, int]]:
        """Read an owner's orders on a chain, each with its settled amount.

        Args:
            statuses: states of the orders to read.
            kind: type of the orders to read; None for all types.

        Returns:
            Pairs of (order, settled amount): raw units of the source token for a sale, of the destination
            token for a purchase; the number of slices for a TWAP.
        """
        wanted = DeltaFilter(owner=owner, chain_ids=(chain_id,), type=kind, statuses=tuple(sorted(statuses)))
        hashes: dict[bytes, None] = {}
        while True:
            rows, _ = await self._store.read(*delta_page(wanted, IDS_MAX, len(hashes)))
            fresh = [row.order_hash for row in map(DELTA.found, rows)]
            # New orders shift the pages, so that a page may repeat hashes: a page without a new hash ends the
            # reads, else the same page would be read for ever.
            before = len(hashes)
            hashes |= dict.fromkeys(fresh)
            if len(fresh) < IDS_MAX or len(hashes) == before:
                break
        live: list[tuple[SettledOrder, int]] = []
        keys = list(hashes)
        for start in range(0, len(keys), IDS_MAX):
            live += await self._settled(keys[start : start + IDS_MAX])
        return live

    async def _settled(self, hashes: Sequence[bytes]) -> list[tuple[SettledOrder, int]]:
        documents, fills = await self._store.read(
            among(DELTA_DOCUMENT, "order_hash", hashes), among(DELTA_FILL, "order_hash", hashes)
        )
        settled = _fills_by_hash([row_of(DELTA_FILL, values) for values in fills])
        live: list[tuple[SettledOrder, int]] = []
        for values in documents:
            document: OrderDocument = row_of(DELTA_DOCUMENT, values)
            last = settled.get(document.order_hash, [])[-1:]
            filled = amount_of(last[0].filled) if last else 0
            live.append((order_of(decode_document(document.body)), filled))
        return live


def _fills_by_hash(fills: Sequence[DeltaFill]) -> dict[bytes, list[DeltaFill]]:
    """Group fills by order hash, each group sorted by block and log index, the oldest fill first."""
    by_hash: dict[bytes, list[DeltaFill]] = {}
    for fill in sorted(fills, key=lambda fill: (fill.block_number, fill.log_index)):
        by_hash.setdefault(fill.order_hash, []).append(fill)
    return by_hash


def _passes(row: DeltaOrderRow, wanted: DeltaFilter) -> bool:
    return (
        wanted.owner in (None, row.owner)
        and (not wanted.chain_ids or row.chain_id in wanted.chain_ids)
        and wanted.type in (None, row.type)
        and wanted.kind in (None, row.kind)
        and (not wanted.statuses or row.status in wanted.statuses)
    )
