"""Reads OTC orders from the store: an order by its hash, the listings, and an account's live orders.

    page    reads the total and the page's hashes as of one moment, then the present order of each hash

Source: spec 2.7, 2.8 and 2.9; interop.md 1.
Choice: A listing's `asOf`, sent back with `offset`, continues the same listing; without `asOf`, newer orders
    shift the pages. Orders show their current state, so that an order sorted by `updatedAt` or hidden as
    small may move, and a deleted order is missing.
Choice: Listings are latest first with ties broken by hash. `hideSmallBalances` leaves out orders with less
    than `otc_small_usd` to fill. A taker's listing matches `taker` or `takerFromMeta`.
"""

from collections.abc import Sequence

from msgspec import Struct

from ....codecs.messages.otc_messages import StoredOrder
from ....config.errors import InvalidInput
from ...store.queries import OtcFilter, among, as_of_now, by, live_otc, of_order, otc_page
from ...store.rows import ChainCursor, OrderDocument, OtcFill, OtcOrderRow
from ...store.store import Store
from ...store.tables import CHAIN_CURSOR, OTC_DOCUMENT, OTC_FILL, OTC_ORDER
from ...store.units import row_of
from ..orders.order_units import OTC
from .document import decode_document, stored_order

_FAR = 1_000  # offset from which counting first is faster
_COUNTS_MAX = 1_000  # listings whose counts are remembered for their far pages


class StoredOtcPage(Struct, frozen=True):
    """A page of a listing of OTC orders.

    Attributes:
        orders: orders of the page.
        total: number of orders in the whole listing at the time that `as_of` names.
        as_of: paging token, which names the time of the listing; requests for later pages send it back, so
            that orders stored since do not shift the pages.
    """

    orders: tuple[StoredOrder, ...]
    total: int
    as_of: str


class _Places(Struct, frozen=True):
    """Order hashes of one page of a listing, in the page's sequence.

    Attributes:
        total: number of orders in the whole listing.
        as_of: paging token, which names the time of the listing.
    """

    hashes: list[bytes]
    total: int
    as_of: str


class StoredOtcOrders:
    """Reads OTC orders from the store: single orders, listings, and a maker's open orders."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._counts: dict[tuple[OtcFilter, str], tuple[int, ...]] = {}

    async def order(self, order_hash: bytes) -> StoredOrder | None:
        """Read an OTC order by its hash; None if the store has no such order.

        Raises:
            StoreUnavailable: the store does not answer.
        """
        found = await self._orders([order_hash])
        return found[0] if found else None

    async def page(self, wanted: OtcFilter, limit: int, offset: int, as_of: str | None) -> StoredOtcPage:
        """Read a page of a listing of OTC orders.

        Args:
            wanted: filter and sort key of the listing.
            limit: greatest number of orders in the page.
            offset: number of the listing's orders before the page.
            as_of: paging token of an earlier page, to continue its listing; None for the present state.

        Raises:
            InvalidInput: this store has not issued `as_of`.
            StoreUnavailable: the store does not answer.
        """
        try:
            found = await self._places(wanted, limit, offset, as_of)
        except ValueError:
            if as_of is None:
                raise
            raise InvalidInput(field="asOf", expected="that of an earlier page", got=as_of) from None
        return StoredOtcPage(await self._orders(found.hashes), found.total, found.as_of)

    async def _places(self, wanted: OtcFilter, limit: int, offset: int, as_of: str | None) -> _Places:
        """Read the order hashes of a listing's page; see `page`.

        Raises:
            ValueError: this store has not issued `as_of`.
        """
        if offset >= _FAR:
            return await self._far_places(wanted, limit, offset, as_of or await self._now())
        queries = otc_page(wanted, limit, offset, as_of or "")
        ((now,),), places, (counts,) = await self._store.read(as_of_now(OTC_ORDER), *queries)
        then = as_of or now
        self._remember(wanted, then, counts)
        return _Places([place[0] for place in places], sum(counts), then)

    async def _far_places(self, wanted: OtcFilter, limit: int, offset: int, as_of: str) -> _Places:
        """Read the order hashes of a page with a large offset; see `page`.

        To skip fewer rows, the query counts from the listing's end if the page is nearer to the end.
        """
        counts = self._counts.get((wanted, as_of))
        if counts is None:
            ((counts,),) = await self._store.read(otc_page(wanted, limit, offset, as_of)[1])
            self._remember(wanted, as_of, counts)
        total = sum(counts)
        count = min(limit, total - offset)
        if count <= 0:
            return _Places([], total, as_of)
        behind = total - offset - count
        is_backwards = behind < offset
        start = behind if is_backwards else offset
        page, _ = otc_page(wanted, count, start, as_of, is_backwards=is_backwards, counts=counts)
        (places,) = await self._store.read(page)
        hashes = [place[0] for place in places]
        return _Places(hashes[::-1] if is_backwards else hashes, total, as_of)

    async def _now(self) -> str:
        """Read the paging token that names the present state of the store."""
        (((then,),),) = await self._store.read(as_of_now(OTC_ORDER))
        return str(then)

    def _remember(self, wanted: OtcFilter, as_of: str, counts: tuple[int, ...]) -> None:
        """Cache the numbers of orders in a long listing, so that later pages need not count them again.

        A listing by swappable amount is not cached, since its numbers change even for a fixed `as_of`.

        Args:
            as_of: paging token, which names the time of the listing.
            counts: number of orders in each of the queries that make up the listing.
        """
        if sum(counts) >= _FAR and wanted.swappable_min is None:
            self._counts.pop((wanted, as_of), None)
            self._counts[wanted, as_of] = counts
            if len(self._counts) > _COUNTS_MAX:
                del self._counts[next(iter(self._counts))]

    async def live_of(
        self, chain_id: int, maker: bytes, maker_asset: bytes | None = None
    ) -> list[OtcOrderRow]:
        """Read a maker's DRAFT, PENDING and SUSPENDED orders that sell `maker_asset` (None: any token)."""
        (rows,) = await self._store.read(live_otc(chain_id, maker, maker_asset))
        return [OTC.found(row) for row in rows]

    async def fills(self, chain_id: int, order_hash: bytes) -> tuple[ChainCursor | None, list[OtcFill]]:
        """Read the stored fills of an order, and the block up to which the chain is indexed.

        Returns:
            (last indexed block of the chain, None if the chain is not indexed yet; fills of the order up to
                this block, oldest first).
        """
        cursors, fills = await self._store.read(by(CHAIN_CURSOR, chain_id), of_order(OTC_FILL, order_hash))
        cursor: ChainCursor | None = row_of(CHAIN_CURSOR, cursors[0]) if cursors else None
        return cursor, [row_of(OTC_FILL, fill) for fill in fills]

    async def _orders(self, hashes: Sequence[bytes]) -> tuple[StoredOrder, ...]:
        """Read the orders that still exist, in the sequence of `hashes`, all from one state of the store."""
        if not hashes:
            return ()
        rows, documents = await self._store.read(
            among(OTC_ORDER, "order_hash", hashes), among(OTC_DOCUMENT, "order_hash", hashes)
        )
        found = {row.order_hash: row for row in map(OTC.found, rows)}
        kept: list[OrderDocument] = [row_of(OTC_DOCUMENT, values) for values in documents]
        bodies = {document.order_hash: decode_document(document.body) for document in kept}
        return tuple(stored_order(found[key], bodies[key]) for key in hashes if key in found)
