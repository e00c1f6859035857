"""OTC orders in memory that may still change, with their documents (signature, permit).

    add         store a new order                         durable when it returns
    sign        replace the signature of a DRAFT          by a signature that the maker's contract accepts
    catch_up    bring an order to the state of its logs   row and logs are read as one state of the store

Beside its row an order has its document. Whenever an order is read, its logs are read too: if its row does
not reflect some of them, the order `is_behind`. This happens if the indexer reads a fill or a cancellation
after the order was checked and before it was stored: the indexer's step finds no order to change. A new order
is therefore behind until its logs are read.

Source: ARCHITECTURE.md, "Orders", "Transitions"; choices.md#otc-orders.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ....codecs.messages.vocabulary import OtcState
from ....config.errors import OrderNotFound, StoreError, StoreUnavailable
from ....config.limits import OTC_LIVE_UNLISTED_EXPIRY_S, VENUE_STEP_TRIES_MAX
from ...store.leases import Leases
from ...store.queries import Query, among, by
from ...store.rows import NEVER_S, OrderDocument, OtcCancel, OtcCancelUntil, OtcFill, OtcOrderRow
from ...store.store import Store
from ...store.tables import OTC_CANCEL, OTC_CANCEL_UNTIL, OTC_DOCUMENT, OTC_FILL, OTC_ORDER
from ...store.units import Conflict, Done, Duplicate, Put, Unit, drop, put, row_of
from ..orders.live_rows import Decide, Effects, LiveRows
from ..orders.order_units import OTC
from ..orders.places import OrderStake, unbacked
from ..orders.step import OrderStep
from .document import OtcDocument, decode_document, encode_document, facts_of
from .life import LIVE, gave_way, step_from_logs


class LiveOtc(Struct, eq=False, gc=False):
    """An OTC order in memory that may still change.

    Attributes:
        row: the order's row as last read from, or written to, the store.
        document: signature, permit and other stored members of the posted order.
        ended_at: block height of the log that ended the order. For an end without a log (by expiry), the last
            indexed height when the end was first noticed; None until then, and for an open order.
        is_behind: whether the row did not reflect some of the order's logs when both were read, or the logs
            of a new order are not read yet.
        causer: see `LiveRow`.
    """

    row: OtcOrderRow
    document: OtcDocument
    ended_at: int | None = None
    is_behind: bool = False
    causer: str = ""

    @property
    def order_hash(self) -> bytes:
        """Hash of the order, 32 bytes."""
        return self.row.order_hash


def is_endless(row: OtcOrderRow) -> bool:
    """Whether an order expires later than OTC_LIVE_UNLISTED_EXPIRY_S after it was posted, or never."""
    return row.expires_s > row.created_ms // 1_000 + OTC_LIVE_UNLISTED_EXPIRY_S


class OtcLogs(Struct):
    """Fills and cancellations of one OTC order that the chain has logged."""

    fills: list[OtcFill]
    cancels: list[OtcCancel]


class _OtcParts(Struct, frozen=True):
    """Data of an OTC order that the store has beside its row: the document and the logs."""

    document: OrderDocument | None
    logs: OtcLogs


class OtcOrders(LiveRows[OtcOrderRow, LiveOtc]):
    """OTC orders in memory, with the methods that write new orders, signatures and the effects of logs.

    Args:
        leases: leases of this process's shards; a write is refused once the lease of its shard is lost.
        is_listed: returns whether the operator has listed a token of a chain.
        is_small: returns whether an order sells next to nothing, so that its funds are no stake.
    """

    def __init__(
        self,
        store: Store,
        leases: Leases,
        is_listed: Callable[[int, bytes], bool] = lambda *_: True,
        is_small: Callable[[OtcOrderRow], bool] = lambda _: False,
    ) -> None:
        super().__init__(OTC, store, leases)
        self._is_listed, self._is_small = is_listed, is_small
        self._unlisted: dict[bytes, set[bytes]] = {}  # maker -> hashes of its orders with an unlisted token
        self._endless: set[bytes] = set()  # hashes of those that expire late or never

    def is_unlisted(self, row: OtcOrderRow) -> bool:
        """Whether an order names a token that the operator has not listed."""
        return not all(self._is_listed(row.chain_id, token) for token in (row.maker_asset, row.taker_asset))

    def unlisted(self, maker: bytes) -> int:
        """Number of a maker's orders in memory with a token that the operator has not listed."""
        return len(self._unlisted.get(maker, ()))

    @property
    def endless(self) -> int:
        """Number of all makers' orders with such a token that expire late or never (`is_endless`)."""
        return len(self._endless)

    def stake_of(self, row: OtcOrderRow, causer: str) -> OrderStake | None:
        """Stake behind an order of a causer; None for one that has ended."""
        if row.status not in LIVE:
            return None
        if self.is_unlisted(row):
            return OrderStake.UNLISTED
        is_backed = row.status is OtcState.PENDING and not self._is_small(row)
        return OrderStake.BACKED if is_backed else unbacked(causer)

    def _stake(self, live: LiveOtc) -> OrderStake | None:
        return self.stake_of(live.row, live.causer)

    def _gives_way(self, row: OtcOrderRow, now_ms: int) -> OrderStep[OtcOrderRow] | None:
        return gave_way(row, now_ms)

    def _added(self, live: LiveOtc) -> None:
        if self.is_unlisted(live.row):
            self._unlisted.setdefault(live.row.maker, set()).add(live.order_hash)
            if is_endless(live.row):
                self._endless.add(live.order_hash)

    def _dropped(self, live: LiveOtc) -> None:
        of_maker = self._unlisted.get(live.row.maker, set())
        if live.order_hash in of_maker:
            of_maker.remove(live.order_hash)
            self._endless.discard(live.order_hash)
            if not of_maker:
                del self._unlisted[live.row.maker]

    async def add(self, row: OtcOrderRow, document: OtcDocument, causer: str = "") -> OtcOrderRow:
        """Store a new order; repeated calls for the same order hash store it once.

        The new order enters memory only if this engine holds its shard; the watchers (`OtcEngine.tend`) are
        then called. Another engine learns of the order by the log (`hear`).

        Args:
            causer: network or key that posted the order.

        Returns:
            `row` itself if the order is new, else the stored row.

        Raises:
            StoreUnavailable: the write failed or its outcome is unknown: submitting again is safe.
        """
        outcome = await self._store.write(OTC.submitted(row, encode_document(document)))
        match outcome:
            case Done():
                self._accepted += 1
                # Behind until `catch_up` has read the logs: the indexer may have read a fill or a
                # cancellation after the order was checked. A step of the indexer after this write finds the
                # order itself.
                self._put(LiveOtc(row, document, is_behind=True, causer=causer))
                return row
            case Duplicate():
                return OTC.found(outcome.row)
            case _:
                raise StoreError(f"an order was not kept: {outcome}")

    async def sign(
        self, order_hash: bytes, signature: bytes, permit: bytes | None, decide: Decide[OtcOrderRow]
    ) -> None:
        """Replace the signature of a DRAFT order by one that the maker's contract accepts.

        Any process may do this, without a lease of the order's shard.

        Args:
            permit: permit of the new post; None or empty keeps the stored permit.
            decide: returns the order's step; None if the order is no DRAFT any more.

        Raises:
            OrderNotFound: the store has no such order.
            StoreUnavailable: the write failed or its outcome is unknown.
        """
        (found,) = await self._store.read(by(OTC_DOCUMENT, order_hash))
        if not found:
            raise OrderNotFound(got=f"0x{order_hash.hex()}")
        kept: OrderDocument = row_of(OTC_DOCUMENT, found[0])
        before = decode_document(kept.body)
        after = replace(before, signature=signature, permit=permit or before.permit)
        # All tries of the step share this read: a document changes only in a unit that also ends DRAFT, and
        # `decide` returns None for the row of that unit.
        more = drop(OTC_DOCUMENT, kept), put(OTC_DOCUMENT, OrderDocument(order_hash, encode_document(after)))

        def with_document(row: OtcOrderRow) -> OrderStep[OtcOrderRow] | None:
            step = decide(row)
            return None if step is None else replace(step, more=more)

        await self.step_all((order_hash,), with_document, is_fenced=False)

    async def catch_up(
        self, order_hash: bytes, now_ms: int, is_short: Callable[[OtcOrderRow], bool]
    ) -> OtcOrderRow | None:
        """Bring an order's row to the state that the order's stored fills and cancellations imply.

        Args:
            is_short: returns whether the maker's last known funds do not cover an order.

        Returns:
            The row after the step; None if this process does not run the order.

        Raises:
            OrderNotFound: the store has no such order.
            StoreUnavailable: the write failed or its outcome is unknown; or another process holds the shard.
        """
        for _ in range(VENUE_STEP_TRIES_MAX):
            live = self.get(order_hash)
            if live is None:
                return None
            rows, *some = await self._store.read(
                by(OTC_ORDER, order_hash), *log_queries([order_hash], {live.row.maker})
            )
            if not rows:
                raise OrderNotFound(got=f"0x{order_hash.hex()}")
            row = OTC.found(rows[0])
            logs = logs_of([row], some).get(order_hash, OtcLogs([], []))
            facts = facts_of(row, live.document, logs.fills, logs.cancels, is_short=is_short(row))
            found = step_from_logs(row, facts, now_ms)
            if found is None:  # row and logs are of one read, so that the row lacks none of these logs
                live.is_behind = False
                return row
            fence = self._leases.fence(row.shard)
            if fence is None:
                raise StoreUnavailable("another engine runs this order")
            # The unit names the version of the row that was read with the logs: if the indexer or another
            # writer has changed the row since, the store refuses the unit, and the loop reads both anew.
            outcome = await self._store.write(Unit(OTC.advanced(row, found.after).changes, fence))
            if isinstance(outcome, Done):
                self._steps += 1
                live.is_behind = False
                self._apply_step(found)
                return found.after
            if not isinstance(outcome, Conflict):
                raise StoreUnavailable(f"an order was not changed: {outcome}")
            self._conflicts += 1
        raise StoreUnavailable(f"an order was changed by others {VENUE_STEP_TRIES_MAX} times meanwhile")

    # --- Hooks of `LiveRows` ----------------------------------------------------------------------------

    async def _read_parts(self, rows: Sequence[OtcOrderRow], effects: Effects) -> Mapping[bytes, _OtcParts]:  # noqa: ARG002
        hashes = [row.order_hash for row in rows]
        documents, *some = await self._store.read(
            among(OTC_DOCUMENT, "order_hash", hashes),
            *log_queries(hashes, {row.maker for row in rows}),
        )
        bodies = {kept.order_hash: kept for values in documents if (kept := row_of(OTC_DOCUMENT, values))}
        of_order = logs_of(rows, some)
        return {key: _OtcParts(bodies.get(key), of_order.get(key) or OtcLogs([], [])) for key in hashes}

    def _made(self, row: OtcOrderRow, parts: _OtcParts, known: LiveOtc | None) -> LiveOtc | None:
        live = known
        if parts.document is not None:
            document = decode_document(parts.document.body)
            live = live or LiveOtc(row, document)
            live.document = document  # another one where a DRAFT was signed; see `sign`
        if live is None:
            return None
        facts = facts_of(row, live.document, parts.logs.fills, parts.logs.cancels)
        live.is_behind = step_from_logs(row, facts, row.updated_ms) is not None
        if row.status in _BY_CHAIN:
            heights = [fill.block_number for fill in facts.fills]
            heights += [cancel.block_number for cancel in facts.cancels]
            live.ended_at = max(heights, default=None)
        return live

    def _stepped(self, live: LiveOtc, found: OrderStep[OtcOrderRow]) -> None:
        for change in found.more:
            if isinstance(change, Put) and change.table == OTC_DOCUMENT.name:
                live.document = decode_document(change.row.body)


_BY_CHAIN = frozenset({OtcState.FULFILLED, OtcState.CANCELLED})


def log_queries(hashes: Sequence[bytes], makers: Collection[bytes]) -> tuple[Query, ...]:
    """Build the queries for orders' fills and cancellations, and for their makers' bulk cancellations.

    A bulk cancellation cancels all of a maker's orders that expire at or before a given time.
    """
    by_hash = (among(table, "order_hash", hashes) for table in (OTC_FILL, OTC_CANCEL))
    return (*by_hash, among(OTC_CANCEL_UNTIL, "maker", sorted(makers)))


def logs_of(rows: Iterable[OtcOrderRow], read: Sequence[Sequence[Sequence[object]]]) -> dict[bytes, OtcLogs]:
    """Group the results of `log_queries` into the fills and cancellations of each order, by order hash.

    A maker's bulk cancellation becomes a cancellation of each order of `rows` that the bulk cancellation
    covers, i.e. that expires at or before its time.
    """
    fills, cancels, untils = read
    found: dict[bytes, OtcLogs] = {}
    for values in untils:
        until: OtcCancelUntil = row_of(OTC_CANCEL_UNTIL, values)
        for row in rows:
            if (implied := cancel_by(until, row)) is not None:
                found.setdefault(row.order_hash, OtcLogs([], [])).cancels.append(implied)
    for values in fills:
        fill: OtcFill = row_of(OTC_FILL, values)
        found.setdefault(fill.order_hash, OtcLogs([], [])).fills.append(fill)
    for values in cancels:
        cancel: OtcCancel = row_of(OTC_CANCEL, values)
        found.setdefault(cancel.order_hash, OtcLogs([], [])).cancels.append(cancel)
    return found


def cancel_by(until: OtcCancelUntil, row: OtcOrderRow) -> OtcCancel | None:
    """Derive an order's cancellation from its maker's bulk cancellation; None if the order is not covered.

    Args:
        until: bulk cancellation: all of a maker's orders that expire at or before a given time.
    """
    if (until.chain_id, until.maker) != (row.chain_id, row.maker):
        return None
    if until.until_s < row.expires_s != NEVER_S:
        return None
    place = until.chain_id, until.block_hash, until.tx_hash, until.log_index, until.block_number
    return OtcCancel(*place, row.order_hash, until.maker, until.at_ms)
