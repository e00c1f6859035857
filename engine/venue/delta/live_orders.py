"""The Delta orders that may still change, in memory as they are in the store, and the way to change them.

    submit      a new order               durable when it returns
    step        one order, by a function of its row that says the next one; asked again when another was first
    step_all    several, in one unit: all or none

Nothing is changed but by a compare-and-set in the store; what is kept here follows what was written: by this
process at once, by others (and by what the chain's logs changed) through the log of events (`follow`). Only
orders of shards that this engine holds are in memory: the others' are run elsewhere.

Source: design, "Orders"; storage.md, "Transactions".
"""

from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Any

import structlog
import trio
from msgspec import Struct

from ....codecs.vocabulary import OrderStatus
from ....config.errors import NonceUsed, OrderNotFound, StoreError, StoreUnavailable
from ....config.limits import VENUE_LOAD_ORDERS, VENUE_STEP_TRIES_MAX
from ....config.timeouts import SETTLING_PAUSE_S
from ....crypto.hexadecimal import to_hex
from ...events.follower import Follower
from ...store.boot import TakenUp
from ...store.leases import Leases
from ...store.orders import DELTA, effect_key
from ...store.queries import among, by
from ...store.rows import DeltaFill, DeltaOrder, Document, Effect, OrderEvent, amount_of
from ...store.store import Store
from ...store.tables import DELTA_DOCUMENT, DELTA_FILL, DELTA_ORDER, EFFECT
from ...store.units import Change, Conflict, Done, Duplicate, Fence, Unit, row_of
from .document import DeltaDocument, decode_document, encode_document, order_of, without_struct
from .funds import Lack
from .life import ENDED, SETTLE, Step
from .terms import OrderTerms, SettledOrder, terms_of

Decide = Callable[[DeltaOrder], Step | None]
"""The next step of a row; None where there is none to take."""

_log = structlog.get_logger("cambist.venue")
_YIELD_ORDERS = 16  # are taken in before other tasks have their turn


class LiveOrder(Struct, eq=False):
    """One order that may still change.

    Attributes:
        row: as it was last seen in the store.
        order, terms: what was signed, and what that means.
        document: what came with it (`without_struct`).
        filled: of the fixed side, or slices: what is settled.
        last_fill_s: when the last part was settled, Unix seconds; 0 before.
        settling: key of the effect whose settlement has not ended for good.
        ended_at: height of the settlement that closed it, or that the chain was read to when it was first
            seen to have ended otherwise.
        lacks: of its owner's funds, what was not there when they were read last.
        in_vain: settlements since its last part that came to nothing, for whatever reason: its next round
            waits the longer for them.
    """

    row: DeltaOrder
    order: SettledOrder
    document: DeltaDocument
    terms: OrderTerms
    filled: int = 0
    last_fill_s: int = 0
    settling: str | None = None
    ended_at: int | None = None
    lacks: tuple[Lack, ...] = ()
    in_vain: int = 0

    @property
    def order_hash(self) -> bytes:
        """What it is known by."""
        return self.row.order_hash


class LiveOrdersStatistics(Struct, frozen=True):
    """How many orders are in memory, by status."""

    orders: Mapping[OrderStatus, int]
    steps: int
    conflicts: int


class LiveOrders:
    """See the module.

    Args:
        leases: who runs which orders; what is written by `step` is fenced with them.

    Attributes:
        changed: told after an order was taken in or has changed.
    """

    def __init__(self, store: Store, leases: Leases) -> None:
        self._store = store
        self._leases = leases
        self.changed: Callable[[LiveOrder], None] = _nobody
        self._orders: dict[bytes, LiveOrder] = {}
        self._of_nonce: dict[tuple[int, bytes, bytes], tuple[bytes, ...]] = {}
        self._ended: dict[bytes, LiveOrder] = {}
        self._by_owner: Counter[bytes] = Counter()
        self._by_status: Counter[OrderStatus] = Counter()
        self._steps = self._conflicts = 0

    def __len__(self) -> int:
        """How many."""
        return len(self._orders)

    def __iter__(self) -> Iterator[LiveOrder]:
        """All of them, as they are now."""
        return iter(tuple(self._orders.values()))

    def get(self, order_hash: bytes) -> LiveOrder | None:
        """The order, if it may still change."""
        return self._orders.get(order_hash)

    def of_nonce(self, chain_id: int, owner: bytes, nonce32: bytes) -> frozenset[bytes]:
        """Hashes of the live orders that have an owner's nonce."""
        return frozenset(self._of_nonce.get((chain_id, owner, nonce32), ()))

    def count_of(self, owner: bytes) -> int:
        """How many orders an account has in memory, those whose end may still be undone among them."""
        return self._by_owner[owner]

    def ended(self, chain_id: int) -> list[LiveOrder]:
        """Those whose end may still be undone."""
        return [live for live in self._ended.values() if live.row.chain_id == chain_id]

    def statistics(self) -> LiveOrdersStatistics:
        """Counters and present sizes."""
        return LiveOrdersStatistics(dict(+self._by_status), self._steps, self._conflicts)

    # --- Writing ----------------------------------------------------------------------------------------

    async def submit(
        self, row: DeltaOrder, document: DeltaDocument, order: SettledOrder, terms: OrderTerms
    ) -> DeltaOrder:
        """Keep a new order; the same one again is answered with what is kept (idempotent by hash).

        Returns:
            `row` itself where the order is new, else the row that is there.

        Raises:
            NonceUsed: another order that lives or was filled has its nonce.
            StoreUnavailable: nothing was kept, or nobody can say: submitting again is safe.
        """
        outcome = await self._store.write(DELTA.submitted(row, encode_document(document)))
        match outcome:
            case Done():
                self._put(LiveOrder(row, order, without_struct(document), terms))
                return row
            case Duplicate(unique=0):
                return DELTA.found(outcome.row)
            case Duplicate():
                raise NonceUsed(field="order.nonce", expected="a nonce of no live or filled order")
            case _:
                raise StoreError(f"an order was not kept: {outcome}")

    async def step(self, order_hash: bytes, decide: Decide) -> DeltaOrder:
        """Take the step that `decide` says, or none.

        Returns:
            The row as it is then.

        Raises:
            OrderNotFound: there is no such order.
            StoreUnavailable: nothing was written, or nobody can say; also where the shard is another's.
        """
        (row,) = await self.step_all((order_hash,), decide)
        return row

    async def step_all(
        self, hashes: Sequence[bytes], decide: Decide, *, is_fenced: bool = True
    ) -> tuple[DeltaOrder, ...]:
        """As `step`, for several: all steps in one unit. `decide` may raise: then nothing is written.

        Args:
            is_fenced: whoever runs the orders; a caller's request may be taken by any process. It is told
                that nothing is to be done only after a look at the rows as the store has them.
        """
        rows = await self._rows(hashes)
        is_anew = False
        for _ in range(VENUE_STEP_TRIES_MAX):
            steps = [(row, decide(row)) for row in rows]
            taken = [(row, found) for row, found in steps if found is not None]
            if not taken and (is_fenced or is_anew):
                return tuple(rows)
            if not taken:
                rows, is_anew = await self._rows(hashes, anew=True), True
                continue
            changes, fence = self._changes(taken, is_fenced=is_fenced)
            outcome = await self._store.write(Unit(changes, fence))
            if isinstance(outcome, Done):
                self._steps += len(taken)
                for _, found in taken:
                    self._take(found)
                return tuple(row if found is None else found.after for row, found in steps)
            if not isinstance(outcome, Conflict):
                raise StoreUnavailable(f"an order was not changed: {outcome}")
            self._conflicts += 1
            rows, is_anew = await self._rows(hashes, anew=True), True
        raise StoreUnavailable(f"an order was changed by others {VENUE_STEP_TRIES_MAX} times meanwhile")

    def _changes(
        self, taken: Sequence[tuple[DeltaOrder, Step]], *, is_fenced: bool
    ) -> tuple[tuple[Change, ...], Fence | None]:
        changes: list[Change] = []
        fence = None
        for row, found in taken:
            if is_fenced:
                fence = self._leases.fence(row.shard)
                if fence is None:
                    raise StoreUnavailable("another engine runs this order")
            unit = DELTA.advanced(row, found.after, effects=found.effects, more=found.more)
            changes += unit.changes
        return tuple(changes), fence

    async def _rows(self, hashes: Sequence[bytes], *, anew: bool = False) -> list[DeltaOrder]:
        """The rows of some orders, in their order."""
        if anew:
            for key in hashes:
                if key in self._orders:
                    await self._read(key)
        found = {key: self._orders[key].row for key in hashes if key in self._orders}
        lacking = [key for key in hashes if key not in found]
        if lacking:
            (rows,) = await self._store.read(among(DELTA_ORDER, "order_hash", lacking))
            found |= {row.order_hash: row for row in map(DELTA.found, rows)}
        missing = [key for key in hashes if key not in found]
        if missing:
            raise OrderNotFound(got=f"0x{missing[0].hex()}")
        return [found[key] for key in hashes]

    # --- What is in memory ------------------------------------------------------------------------------

    def _take(self, found: Step) -> None:
        """A step of this process is durable. Where it is not the next after what is known, it is followed."""
        after = found.after
        live = self._orders.get(after.order_hash)
        if live is None or live.row.version + 1 != after.version:
            return
        if any(intent.kind == SETTLE for intent in found.effects):
            live.settling = effect_key(after.order_hash, after.version, SETTLE)
        elif any(_ends(change, live.settling) for change in found.more):
            live.settling = None
        self._refresh(after)

    def _refresh(self, row: DeltaOrder) -> None:
        live = self._orders.get(row.order_hash)
        if live is None or live.row.version >= row.version:
            return
        self._by_status[live.row.status] -= 1
        self._by_status[row.status] += 1
        live.row = row
        self._sort(live)
        self.changed(live)

    def _put(self, live: LiveOrder) -> None:
        row = live.row
        if row.order_hash in self._orders or self._leases.fence(row.shard) is None:
            return
        self._orders[row.order_hash] = live
        self._by_status[row.status] += 1
        self._by_owner[row.owner] += 1
        key = (row.chain_id, row.owner, row.nonce)
        self._of_nonce[key] = (*self._of_nonce.get(key, ()), row.order_hash)
        self._sort(live)
        self.changed(live)

    def _sort(self, live: LiveOrder) -> None:
        """Note whether an order has ended; forget it once that is final."""
        if live.row.is_final:
            self._drop(live)
        elif live.row.status in ENDED:
            self._ended[live.order_hash] = live
        else:
            live.ended_at = None
            self._ended.pop(live.order_hash, None)

    def _drop(self, live: LiveOrder) -> None:
        row = live.row
        if self._orders.pop(row.order_hash, None) is None:
            return
        self._by_status[row.status] -= 1
        self._by_owner[row.owner] -= 1
        if not self._by_owner[row.owner]:
            del self._by_owner[row.owner]
        self._ended.pop(row.order_hash, None)
        key = (row.chain_id, row.owner, row.nonce)
        others = tuple(other for other in self._of_nonce.pop(key, ()) if other != row.order_hash)
        if others:
            self._of_nonce[key] = others

    # --- Following --------------------------------------------------------------------------------------

    async def load(self, taken_up: TakenUp) -> None:
        """Take in what was not finished when this engine got its shards."""
        settling = {effect.order_hash: effect for effect in taken_up.effects if effect.kind == SETTLE}
        for at in range(0, len(taken_up.delta), VENUE_LOAD_ORDERS):
            await self._load(taken_up.delta[at : at + VENUE_LOAD_ORDERS], settling)

    def leave(self, held: Container[int]) -> None:
        """Forget the orders of shards that this engine does not hold any more."""
        for live in self:
            if live.row.shard not in held:
                self._drop(live)

    async def follow(self, after: str) -> None:
        """Take in what others have written after a place in the log of events, until cancelled."""
        async for _, event in Follower(self._store, after):
            if event.surface != DELTA.name or self._is_known(event):
                continue
            await trio.lowlevel.checkpoint()  # whoever wrote it here may be about to take it in
            if not self._is_known(event):
                await self._reload(event.order_hash)

    def _is_known(self, event: OrderEvent) -> bool:
        """Whether an event says nothing new, or is of an order that is run elsewhere."""
        live = self._orders.get(event.order_hash)
        return self._leases.fence(event.shard) is None if live is None else live.row.version >= event.version

    async def _reload(self, order_hash: bytes) -> None:
        """Read an order anew; wait where the store is away. Where that is a bug, its next event reads it."""
        while True:
            try:
                await self._read(order_hash)
            except StoreUnavailable:
                await trio.sleep(SETTLING_PAUSE_S)
            except Exception as error:  # noqa: BLE001  one order's bug is not the others' end
                _log.error(
                    "an order is not followed", order=to_hex(order_hash), detail=repr(error), exc_info=True
                )
                return
            else:
                return

    async def _read(self, order_hash: bytes) -> None:
        """Read an order anew, with what follows from it."""
        (rows, effects) = await self._store.read(
            by(DELTA_ORDER, order_hash), among(EFFECT, "order_hash", [order_hash])
        )
        if not rows:
            return
        row = DELTA.found(rows[0])
        intended = [effect for values in effects if (effect := row_of(EFFECT, values)).state == "INTENDED"]
        settling = next((effect for effect in intended if effect.kind == SETTLE), None)
        await self._load([row], {} if settling is None else {order_hash: settling})

    async def _load(self, rows: Sequence[DeltaOrder], settling: Mapping[bytes, Effect]) -> None:
        """Take in rows, and what else of these orders is not in memory or has changed.

        Args:
            settling: order hash -> the settlement of it that has not ended.
        """
        hashes = [row.order_hash for row in rows]
        documents, fills = await self._store.read(
            among(DELTA_DOCUMENT, "order_hash", hashes), among(DELTA_FILL, "order_hash", hashes)
        )
        bodies = {kept.order_hash: kept for values in documents if (kept := row_of(DELTA_DOCUMENT, values))}
        of_order: dict[bytes, list[DeltaFill]] = {}
        for values in fills:
            fill: DeltaFill = row_of(DELTA_FILL, values)
            of_order.setdefault(fill.order_hash, []).append(fill)
        for count, row in enumerate(rows, start=1):
            key = row.order_hash
            self._take_in(row, settling.get(key), bodies.get(key), of_order.get(key, []))
            if count % _YIELD_ORDERS == 0:
                await trio.lowlevel.checkpoint()

    def _take_in(
        self, row: DeltaOrder, settling: Effect | None, kept: Document | None, fills: Sequence[DeltaFill]
    ) -> None:
        """Take in one; not where a step was taken meanwhile: what was read is of before it."""
        last = max(fills, key=lambda fill: amount_of(fill.filled), default=None)
        live = self._orders.get(row.order_hash)
        if live is not None and live.row.version >= row.version:
            return
        if live is None:
            if row.is_final or kept is None:
                return
            document = decode_document(kept.body)
            order: Any = order_of(document)
            live = LiveOrder(row, order, without_struct(document), terms_of(order), in_vain=row.failures)
        live.filled = 0 if last is None else amount_of(last.filled)
        live.last_fill_s = 0 if last is None else last.at_ms // 1_000
        live.settling = None if settling is None else settling.key
        if last is not None and last.is_closed:
            live.ended_at = last.block_number
        if row.order_hash in self._orders:
            self._refresh(row)
        else:
            self._put(live)


def _nobody(_: LiveOrder) -> None:
    """Who is told of changes at first."""


def _ends(change: Change, key: str | None) -> bool:
    """Whether a change ends the effect of this key."""
    return getattr(change, "table", "") == EFFECT.name and getattr(change, "key", ()) == (key,)
