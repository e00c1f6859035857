"""The orders of one kind that may still change, in memory as in the store, and the way to change them.

    step        one order, by a function of its row that says the next one; asked again when another was first
    step_all    several, in one unit: all or none

Nothing is changed but by a compare-and-set in the store; what is kept here follows what was written: by this
process at once, by others (and by what the chain's logs changed) through the log of events (`hear`). Only
orders of shards that this engine holds are in memory: the others' are run elsewhere.

A kind fills in what belongs to a row beside it, and how an order is made of both (`_read_parts`, `_made`);
and if it needs that, what a step means beyond the row (`_stepped`), and how else it finds orders (`_added`,
`_dropped`).

Source: ARCHITECTURE.md, "Orders", "Transitions".
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

import structlog
import trio
from msgspec import Struct

from ...codecs.messages.vocabulary import OrderStatus, OtcState
from ...config.errors import OrderNotFound, StoreUnavailable
from ...config.limits import VENUE_LOAD_ORDERS, VENUE_STEP_TRIES_MAX
from ...config.timeouts import SETTLING_PAUSE_S
from ...crypto.hexadecimal import to_hex
from ..store.leases import Leases
from ..store.queries import among
from ..store.rows import Effect, EffectState, OrderEvent
from ..store.store import Store
from ..store.tables import EFFECT
from ..store.units import Change, Conflict, Done, Fence, Unit, row_of
from .order_units import OrderKind, OrderRow
from .step import OrderStep

_log = structlog.get_logger("cambist.venue")
_YIELD_ORDERS = 16  # are taken in before other tasks have their turn

Decide = Callable[[OrderRow], OrderStep[OrderRow] | None]
"""The next step of a row; None where there is none to take."""

Effects = Mapping[bytes, Sequence[Effect]]
"""Order hash -> its effects that have not ended."""


class LiveRow(Protocol):
    """One order that may still change.

    Attributes:
        row: as it was last seen in the store.
        ended_at: height at which its end is known to the chain, or that the chain was read to when it was
            first seen to have ended otherwise; None while it has not.
    """

    row: Any
    ended_at: int | None

    @property
    def order_hash(self) -> bytes:
        """What it is known by."""
        ...


Live = TypeVar("Live", bound=LiveRow)


class LiveRowsStatistics(Struct, frozen=True):
    """How many orders are in memory, by status."""

    orders: Mapping[OrderStatus | OtcState, int]
    steps: int
    conflicts: int


class LiveRows(ABC, Generic[OrderRow, Live]):
    """See the module.

    Args:
        surface: the kind of orders.
        leases: who runs which orders; what is written by `step` is fenced with them.

    Attributes:
        changed: told after an order was taken in or has changed.
    """

    def __init__(self, surface: OrderKind[OrderRow], store: Store, leases: Leases) -> None:
        self._surface: OrderKind[OrderRow] = surface
        self._store = store
        self._leases = leases
        self.changed: Callable[[Live], None] = _nobody
        self._orders: dict[bytes, Live] = {}
        self._ended: dict[bytes, Live] = {}
        self._ends = surface.lifecycle.terminal()
        self._by_owner: Counter[bytes] = Counter()
        self._by_status: Counter[OrderStatus | OtcState] = Counter()
        self._steps = self._conflicts = 0

    def __len__(self) -> int:
        """How many."""
        return len(self._orders)

    def __iter__(self) -> Iterator[Live]:
        """All of them, as they are now."""
        return iter(tuple(self._orders.values()))

    def get(self, order_hash: bytes) -> Live | None:
        """The order, if it may still change."""
        return self._orders.get(order_hash)

    def count_of(self, owner: bytes) -> int:
        """How many orders an account has in memory, those whose end may still be undone among them."""
        return self._by_owner[owner]

    def count_in(self, *statuses: OrderStatus | OtcState) -> int:
        """How many are in one of some statuses."""
        return sum(self._by_status[status] for status in statuses)

    def ended(self, chain_id: int) -> list[Live]:
        """Those whose end may still be undone."""
        return [live for live in self._ended.values() if live.row.chain_id == chain_id]

    def statistics(self) -> LiveRowsStatistics:
        """Counters and present sizes."""
        return LiveRowsStatistics(dict(+self._by_status), self._steps, self._conflicts)

    # --- What a kind fills in ---------------------------------------------------------------------------

    @abstractmethod
    async def _read_parts(self, rows: Sequence[OrderRow], effects: Effects) -> Mapping[bytes, Any]:
        """What belongs to rows beside them, by order hash.

        Raises:
            StoreUnavailable: the store is away.
        """

    @abstractmethod
    def _made(self, row: OrderRow, parts: Any, known: Live | None) -> Live | None:
        """The order of a row and its parts; None where it cannot be made.

        Args:
            known: it as it is in memory, whose own row is older: what is beside the row is changed in place.
        """

    def _stepped(self, live: Live, found: OrderStep[OrderRow]) -> None:
        """A step of this process is durable: what it means beyond the row, which is still the one before."""

    def _added(self, live: Live) -> None:
        """An order came into memory."""

    def _dropped(self, live: Live) -> None:
        """An order is not in memory any more."""

    # --- Writing ----------------------------------------------------------------------------------------

    async def step(self, order_hash: bytes, decide: Decide[OrderRow]) -> OrderRow:
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
        self, hashes: Sequence[bytes], decide: Decide[OrderRow], *, is_fenced: bool = True
    ) -> tuple[OrderRow, ...]:
        """As `step`, for several: all steps in one unit. `decide` may raise: then nothing is written.

        Of orders of several shards the unit has one's fence; that nobody else runs the others by then is what
        this process knows, and their versions decide.

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
                    self._apply_step(found)
                return tuple(row if found is None else found.after for row, found in steps)
            if not isinstance(outcome, Conflict):
                raise StoreUnavailable(f"an order was not changed: {outcome}")
            self._conflicts += 1
            rows, is_anew = await self._rows(hashes, anew=True), True
        raise StoreUnavailable(f"an order was changed by others {VENUE_STEP_TRIES_MAX} times meanwhile")

    def _changes(
        self, taken: Sequence[tuple[OrderRow, OrderStep[OrderRow]]], *, is_fenced: bool
    ) -> tuple[tuple[Change, ...], Fence | None]:
        changes: list[Change] = []
        fence = None
        for row, found in taken:
            if is_fenced:
                fence = self._leases.fence(row.shard)
                if fence is None:
                    raise StoreUnavailable("another engine runs this order")
            unit = self._surface.advanced(row, found.after, effects=found.effects, more=found.more)
            changes += unit.changes
        return tuple(changes), fence

    async def _rows(self, hashes: Sequence[bytes], *, anew: bool = False) -> list[OrderRow]:
        """The rows of some orders, in their order."""
        if anew and (known := [key for key in hashes if key in self._orders]):
            await self._read(known)
        found: dict[bytes, OrderRow] = {key: self._orders[key].row for key in hashes if key in self._orders}
        lacking = [key for key in hashes if key not in found]
        if lacking:
            (rows,) = await self._store.read(among(self._surface.orders, "order_hash", lacking))
            found |= {row.order_hash: row for row in map(self._surface.found, rows)}
        missing = [key for key in hashes if key not in found]
        if missing:
            raise OrderNotFound(got=f"0x{missing[0].hex()}")
        return [found[key] for key in hashes]

    # --- What is in memory ------------------------------------------------------------------------------

    def _apply_step(self, found: OrderStep[OrderRow]) -> None:
        """A step of this process is durable. Where it is not the next after what is known, it is followed."""
        after = found.after
        live = self._orders.get(after.order_hash)
        if live is None or live.row.version + 1 != after.version:
            return
        self._stepped(live, found)
        self._refresh(after)

    def _refresh(self, row: OrderRow) -> None:
        live = self._orders.get(row.order_hash)
        if live is None or live.row.version >= row.version:
            return
        self._by_status[live.row.status] -= 1
        self._by_status[row.status] += 1
        live.row = row
        self._sort(live)
        self.changed(live)

    def _put(self, live: Live) -> None:
        row: OrderRow = live.row
        if row.order_hash in self._orders or self._leases.fence(row.shard) is None:
            return
        self._orders[row.order_hash] = live
        self._by_status[row.status] += 1
        self._by_owner[self._surface.owner(row)] += 1
        self._added(live)
        self._sort(live)
        self.changed(live)

    def _sort(self, live: Live) -> None:
        """Note whether an order has ended; forget it once that is final."""
        if live.row.is_final:
            self._drop(live)
        elif live.row.status in self._ends:
            self._ended[live.order_hash] = live
        else:
            live.ended_at = None
            self._ended.pop(live.order_hash, None)

    def _drop(self, live: Live) -> None:
        row: OrderRow = live.row
        if self._orders.pop(row.order_hash, None) is None:
            return
        owner = self._surface.owner(row)
        self._by_status[row.status] -= 1
        self._by_owner[owner] -= 1
        if not self._by_owner[owner]:
            del self._by_owner[owner]
        self._ended.pop(row.order_hash, None)
        self._dropped(live)

    # --- Following --------------------------------------------------------------------------------------

    async def load(self, rows: Sequence[OrderRow], effects: Iterable[Effect]) -> None:
        """Take in what was not finished when this engine got its shards.

        Args:
            effects: that have not ended, of whatever orders.

        Raises:
            StoreUnavailable: the store is away; to be asked again.
        """
        of_order: dict[bytes, list[Effect]] = {}
        for effect in effects:
            of_order.setdefault(effect.order_hash, []).append(effect)
        for at in range(0, len(rows), VENUE_LOAD_ORDERS):
            await self._load(rows[at : at + VENUE_LOAD_ORDERS], of_order)

    def leave(self, held: Container[int]) -> None:
        """Forget the orders of shards that this engine does not hold any more."""
        for live in self:
            if live.row.shard not in held:
                self._drop(live)

    async def hear(self, events: Sequence[OrderEvent]) -> None:
        """Take in what events of orders of this kind say, whoever wrote them. Returns once that is done."""
        if all(map(self._is_known, events)):
            return
        await trio.lowlevel.checkpoint()  # whoever wrote them here may be about to take them in
        behind = list(dict.fromkeys(event.order_hash for event in events if not self._is_known(event)))
        for at in range(0, len(behind), VENUE_LOAD_ORDERS):
            await self._reload(behind[at : at + VENUE_LOAD_ORDERS])

    async def notice(self, rows: Sequence[OrderRow]) -> None:
        """Take in the orders that are run here and of which these rows, as the store has them, are newer.

        Raises:
            StoreUnavailable: the store is away.
        """
        behind = [
            row.order_hash
            for row in rows
            if (live := self._orders.get(row.order_hash)) is not None and live.row.version < row.version
        ]
        for at in range(0, len(behind), VENUE_LOAD_ORDERS):
            await self._read(behind[at : at + VENUE_LOAD_ORDERS])

    def _is_known(self, event: OrderEvent) -> bool:
        """Whether an event says nothing new, or is of an order that is run elsewhere."""
        live = self._orders.get(event.order_hash)
        if live is None:
            return self._leases.fence(event.shard) is None
        version: int = live.row.version
        return version >= event.version

    async def _reload(self, hashes: Sequence[bytes]) -> None:
        """Read orders anew; wait where the store is away. Where one is a bug, its next event reads it."""
        while True:
            try:
                await self._read(hashes)
            except StoreUnavailable:
                await trio.sleep(SETTLING_PAUSE_S)
            except Exception as error:  # noqa: BLE001  one order's bug is not the others' end
                if len(hashes) > 1:
                    for order_hash in hashes:
                        await self._reload([order_hash])
                    return
                _log.error(
                    "an order is not followed", order=to_hex(hashes[0]), detail=repr(error), exc_info=True
                )
                return
            else:
                return

    async def _read(self, hashes: Sequence[bytes]) -> None:
        """Read orders anew, with what follows from them; they are taken in in this order."""
        rows, effects = await self._store.read(
            among(self._surface.orders, "order_hash", hashes), among(EFFECT, "order_hash", hashes)
        )
        intended: dict[bytes, list[Effect]] = {}
        for values in effects:
            effect: Effect = row_of(EFFECT, values)
            if effect.state is EffectState.INTENDED:
                intended.setdefault(effect.order_hash, []).append(effect)
        found = {row.order_hash: row for row in map(self._surface.found, rows)}
        await self._load([found[key] for key in hashes if key in found], intended)

    async def _load(self, rows: Sequence[OrderRow], effects: Effects) -> None:
        """Take in rows, and what else of these orders is not in memory or has changed."""
        parts = await self._read_parts(rows, effects)
        for count, row in enumerate(rows, start=1):
            self._take_in(row, parts[row.order_hash])
            if count % _YIELD_ORDERS == 0:
                await trio.lowlevel.checkpoint()

    def _take_in(self, row: OrderRow, parts: Any) -> None:
        """Take in one; not where a step was taken meanwhile: what was read is of before it."""
        known = self._orders.get(row.order_hash)
        if row.is_final if known is None else known.row.version >= row.version:
            return
        live = self._made(row, parts, known)
        if live is None:
            return
        if known is None:
            self._put(live)
        else:
            self._refresh(row)


def _nobody(_: object) -> None:
    """Who is told of changes at first."""
