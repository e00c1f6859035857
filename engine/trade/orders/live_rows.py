"""Delta or OTC orders in memory that may still change, with the methods that change them in the store.

    step        change one order by a function from its row to the next row; repeated after a conflict
    step_all    change several orders in one unit: all or none
    make_room   end the order that gives way to a new one, where all places are taken

Every change is a compare-and-set on the row's version in the store. Memory is updated after the write: at
once for writes of this process, through the log of events (`hear`) for writes of other processes and of the
indexer. Memory holds only orders of shards that this process has leased; other processes hold the others.

A subclass reads an order's data beside its row (`_read_parts`), builds the order (`_made`), names the stake
of one that may give way (`_stake`) and ends it (`_gives_way`); optionally it applies a step's effects beyond
the row (`_stepped`) and keeps indexes of its own (`_added`, `_dropped`).

Choice: An order that gives way to another is EXPIRED, and final at once.

Source: ARCHITECTURE.md, "Orders", "Transitions".
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

import structlog
import trio
from msgspec import Struct

from ....codecs.messages.vocabulary import OrderStatus, OtcState
from ....config.errors import OrderNotFound, StoreUnavailable
from ....config.limits import VENUE_LOAD_ORDERS, VENUE_STEP_TRIES_MAX
from ....config.timeouts import SETTLING_PAUSE_S
from ....crypto.hexadecimal import to_hex
from ...store.leases import Leases
from ...store.queries import among
from ...store.rows import Effect, EffectState, OrderEvent
from ...store.store import Store
from ...store.tables import EFFECT
from ...store.units import Change, Conflict, Done, Fence, Unit, row_of
from .order_units import OrderKind, OrderRow
from .places import OrderStake, Places
from .step import OrderStep

_log = structlog.get_logger("cambist.venue")
_YIELD_ORDERS = 16  # orders that are taken in before other tasks have their turn

Decide = Callable[[OrderRow], OrderStep[OrderRow] | None]
"""Function that returns the next step of an order (`OrderStep`) for its present row; None for no step."""

Effects = Mapping[bytes, Sequence[Effect]]
"""Order hash -> stored side effects of the order that are not yet executed."""


class LiveRow(Protocol):
    """An order in memory that may still change.

    Attributes:
        row: the order's row as last read from, or written to, the store.
        ended_at: block height of the log that ended the order. For an end without a log (such as expiry), the
            last indexed height when the end was first noticed; None until then, and for an open order.
        causer: network or key that submitted the order to this process; empty for an order that another
            process, or an earlier run, took in.
    """

    row: Any
    ended_at: int | None
    causer: str

    @property
    def order_hash(self) -> bytes:
        """Hash of the order, 32 bytes."""
        ...


Live = TypeVar("Live", bound=LiveRow)


class LiveRowsStatistics(Struct, frozen=True):
    """Counters of the orders in memory.

    Attributes:
        orders: number of orders in memory, by status.
        steps: changes of orders written to the store so far.
        conflicts: writes so far that failed because another writer had changed the order first.
        gave_way: orders so far that gave their places to others.
        accepted: orders so far that callers of this process submitted and the store took.
        fills: changes so far of orders in memory by fills that the chain's logs showed; a fill that a
            re-organisation moved counts again.
    """

    orders: Mapping[OrderStatus | OtcState, int]
    steps: int
    conflicts: int
    gave_way: int
    accepted: int
    fills: int


class LiveRows(ABC, Generic[OrderRow, Live]):
    """Orders of one kind in memory, kept equal to their rows in the store.

    Args:
        kind: the kind, Delta or OTC, with its tables and its life cycle.
        leases: leases of this process's shards; `step` refuses a write once the shard's lease is lost.

    Attributes:
        places: places of the orders that may give way to others.
    """

    def __init__(self, kind: OrderKind[OrderRow], store: Store, leases: Leases) -> None:
        self._kind: OrderKind[OrderRow] = kind
        self._store = store
        self._leases = leases
        self._watchers: list[Callable[[Live], None]] = []
        self._orders: dict[bytes, Live] = {}
        self._ended: dict[bytes, Live] = {}
        self._ends = kind.lifecycle.terminal()
        # By status, then by owner: a key of both would be an object for the garbage collector to walk.
        self._by_owner: dict[OrderStatus | OtcState, Counter[bytes]] = {
            status: Counter() for status in kind.lifecycle.states()
        }
        self._by_status: Counter[OrderStatus | OtcState] = Counter()
        self._steps = self._conflicts = self._gave_way = self._accepted = self._fills = 0
        self.places = Places()

    def __len__(self) -> int:
        """Number of orders in memory."""
        return len(self._orders)

    def __iter__(self) -> Iterator[Live]:
        """Iterate over the orders that are in memory at the time of the call."""
        return iter(tuple(self._orders.values()))

    def get(self, order_hash: bytes) -> Live | None:
        """Return the order with this hash; None if the order is not in memory."""
        return self._orders.get(order_hash)

    def count_of(self, owner: bytes, *statuses: OrderStatus | OtcState) -> int:
        """Count an owner's orders in memory whose status is one of these; without a status, all of them.

        Ended orders that a re-organisation may reopen are in memory, too.
        """
        return sum(self._by_owner[status][owner] for status in statuses or self._by_owner)

    def count_in(self, *statuses: OrderStatus | OtcState) -> int:
        """Count the orders in memory whose status is one of these."""
        return sum(self._by_status[status] for status in statuses)

    def settled(self, chain_id: int, height: int, final_height: int) -> list[bytes]:
        """List the hashes of a chain's ended orders whose ends no re-organisation can undo any more.

        A call returns at most VENUE_LOAD_ORDERS hashes and moves these orders behind the others, so that the
        next call returns other orders first. Otherwise orders that stay in memory, because their ends have to
        become final on another chain as well, could fill every call.

        Args:
            height: last indexed block; becomes `ended_at` of each order that ended without a log (such as by
                expiry) and has no `ended_at` yet.
            final_height: height up to which blocks are final.
        """
        found: list[bytes] = []
        for live in self._ended.values():
            if live.row.chain_id != chain_id:
                continue
            if live.ended_at is None:
                live.ended_at = height
            if live.ended_at <= final_height and len(found) < VENUE_LOAD_ORDERS:
                found.append(live.order_hash)
        for key in found:
            self._ended[key] = self._ended.pop(key)
        return found

    def statistics(self) -> LiveRowsStatistics:
        """Return the numbers of orders in memory by status, and the counts of orders, changes and fills."""
        return LiveRowsStatistics(
            orders=dict(+self._by_status),
            steps=self._steps,
            conflicts=self._conflicts,
            gave_way=self._gave_way,
            accepted=self._accepted,
            fills=self._fills,
        )

    def watch(self, watcher: Callable[[Live], None]) -> None:
        """Register a function to be called with each order that is added to memory or changes from now on."""
        self._watchers.append(watcher)

    # --- Hooks of a kind of orders ----------------------------------------------------------------------

    @abstractmethod
    async def _read_parts(self, rows: Sequence[OrderRow], effects: Effects) -> Mapping[bytes, Any]:
        """Read from the store the data of orders that their rows lack, such as documents, by order hash.

        Args:
            effects: side effects of the orders that are not yet executed, by order hash.

        Raises:
            StoreUnavailable: the store does not answer.
        """

    @abstractmethod
    def _made(self, row: OrderRow, parts: Any, known: Live | None) -> Live | None:
        """Build an order in memory from its row and further data; None if the data does not suffice.

        Args:
            parts: data of the order from `_read_parts`.
            known: the order in memory if memory already has an older row of the order. The method then
                updates this object, except for the row, and returns it.
        """

    def _stepped(self, live: Live, found: OrderStep[OrderRow]) -> None:
        """Update the data of an order in memory, other than its row, after a step of the order was stored.

        Args:
            live: the order; `live.row` is still the row before the step.
            found: the stored step.
        """

    @abstractmethod
    def _stake(self, live: Live) -> OrderStake | None:
        """Stake behind an order in memory; None for one that gives way to no other."""

    @abstractmethod
    def _gives_way(self, row: OrderRow, now_ms: int) -> OrderStep[OrderRow] | None:
        """Step to EXPIRED, at once final, of an order that gives way to another; None in other states."""

    def _added(self, live: Live) -> None:
        """Add an order to the indexes of a subclass, after the order was put into memory."""

    def _dropped(self, live: Live) -> None:
        """Remove an order from the indexes of a subclass, after the order was dropped from memory."""

    # --- Writing ----------------------------------------------------------------------------------------

    async def step(self, order_hash: bytes, decide: Decide[OrderRow]) -> OrderRow:
        """Change an order's row to the next row that `decide` returns, and write the change to the store.

        Args:
            decide: returns the order's next row and effects for its present row; None for no change. A write
                conflict causes another call, with the newer row.

        Returns:
            The row after the change; the present row if `decide` returns None.

        Raises:
            OrderNotFound: the store has no such order.
            StoreUnavailable: the write failed or its outcome is unknown; or another process holds the shard.
        """
        (row,) = await self.step_all((order_hash,), decide)
        return row

    async def step_all(
        self, hashes: Sequence[bytes], decide: Decide[OrderRow], *, is_fenced: bool = True
    ) -> tuple[OrderRow, ...]:
        """Change several orders in one unit, all or none; see `step`.

        No order is changed if `decide` raises an error for one of them. If the orders are of several shards,
        the store checks this process's lease of only one shard; before the write, the method checks all
        leases in memory, and the store checks the version of each order.

        Args:
            is_fenced: True in the process that runs the orders: the store refuses the write if this process
                has lost the lease. False for a client's request, which any process may handle without a
                lease. If `decide` then returns no change for rows from memory, which may be old, the method
                calls `decide` once more with rows just read from the store.
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
            # Rows may change between `decide` and this write, by the indexer or another process: the unit
            # names the versions that `decide` saw, the store refuses it, and `decide` sees the new rows.
            outcome = await self._store.write(Unit(changes, fence))
            if isinstance(outcome, Done):
                # `hear` gives this task its turn before it takes an event of the unit for another writer's.
                self._steps += len(taken)
                for _, found in taken:
                    self._apply_step(found)
                return tuple(row if found is None else found.after for row, found in steps)
            if not isinstance(outcome, Conflict):
                raise StoreUnavailable(f"an order was not changed: {outcome}")
            self._conflicts += 1
            rows, is_anew = await self._rows(hashes, anew=True), True
        raise StoreUnavailable(f"an order was changed by others {VENUE_STEP_TRIES_MAX} times meanwhile")

    async def make_room(
        self, stake: OrderStake, causer: str, now_ms: int, least: OrderStake = OrderStake.UNLISTED
    ) -> bool:
        """End the order in memory that gives way to a new one (`Places`); False if none does.

        Args:
            stake: stake behind the new order.
            causer: network or key that submits the new order.
            least: least stake of an order that may give way.

        Raises:
            StoreUnavailable: the write failed or its outcome is unknown; or another process holds the shard.
        """
        order_hash = self.places.giving_way(stake, causer, least)
        if order_hash is None:
            return False
        # Its place goes before the write: of two new orders that come at once, each ends another order.
        self.places.drop(order_hash)
        try:
            await self.step(order_hash, lambda row: self._gives_way(row, max(now_ms, row.updated_ms)))
        finally:
            live = self._orders.get(order_hash)
            if live is None:
                self._gave_way += 1
            else:  # the write failed, or the order has changed meanwhile
                self._place(live)
        return True

    def runs(self, shard: int) -> bool:
        """Whether this process runs the orders of a shard, so that a new one takes a place here."""
        return self._leases.fence(shard) is not None

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
            unit = self._kind.advanced(row, found.after, effects=found.effects, more=found.more)
            changes += unit.changes
        return tuple(changes), fence

    async def _rows(self, hashes: Sequence[bytes], *, anew: bool = False) -> list[OrderRow]:
        """Return the rows of orders in the sequence of their hashes, from memory or else from the store.

        Args:
            anew: whether orders in memory are first read again from the store.

        Raises:
            OrderNotFound: the store has no order with one of the hashes.
        """
        if anew and (known := [key for key in hashes if key in self._orders]):
            await self._read(known)
        found: dict[bytes, OrderRow] = {key: self._orders[key].row for key in hashes if key in self._orders}
        lacking = [key for key in hashes if key not in found]
        if lacking:
            (rows,) = await self._store.read(among(self._kind.orders, "order_hash", lacking))
            found |= {row.order_hash: row for row in map(self._kind.found, rows)}
        missing = [key for key in hashes if key not in found]
        if missing:
            raise OrderNotFound(got=f"0x{missing[0].hex()}")
        return [found[key] for key in hashes]

    # --- Memory -----------------------------------------------------------------------------------------

    def _apply_step(self, found: OrderStep[OrderRow]) -> None:
        """Apply a stored step to the order in memory, if that order's row is exactly one version older.

        For any other version, `hear` reads the order from the store.
        """
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
        self._count(live.row, -1)
        self._count(row, 1)
        self._fills += self._kind.is_fill(live.row, row)
        live.row = row
        self._sort(live)
        self._tell(live)

    def _put(self, live: Live) -> None:
        row: OrderRow = live.row
        # Known since: a reader and the writer of a new order may both bring it. The shard may have gone while
        # the order was written or read; its next holder reads the order from the store.
        if row.order_hash in self._orders or self._leases.fence(row.shard) is None:
            return
        self._orders[row.order_hash] = live
        self._count(row, 1)
        self._added(live)
        self._sort(live)
        self._tell(live)

    def _tell(self, live: Live) -> None:
        for watcher in self._watchers:
            watcher(live)

    def _sort(self, live: Live) -> None:
        """Note whether a changed order has ended or is open again; drop an order whose end is final."""
        self._place(live)
        if live.row.is_final:
            self._drop(live)
        elif live.row.status in self._ends:
            self._ended[live.order_hash] = live
        else:
            live.ended_at = None
            self._ended.pop(live.order_hash, None)

    def _place(self, live: Live) -> None:
        """Note the place of an order that may give way, by its present stake."""
        stake = self._stake(live)
        if stake is None:
            self.places.drop(live.order_hash)
        else:
            self.places.put(live.order_hash, stake, live.causer)

    def _drop(self, live: Live) -> None:
        row: OrderRow = live.row
        self.places.drop(row.order_hash)
        if self._orders.pop(row.order_hash, None) is None:
            return
        self._count(row, -1)
        self._ended.pop(row.order_hash, None)
        self._dropped(live)

    def _count(self, row: OrderRow, change: int) -> None:
        """Adjust the counts of orders in memory, by status and by status and owner.

        Args:
            row: an order's row, from whose status and owner the counts follow.
            change: 1 if the row comes into memory, -1 if it leaves, e.g. because a newer row replaces it.
        """
        owner, of_status = self._kind.owner(row), self._by_owner[row.status]
        self._by_status[row.status] += change
        of_status[owner] += change
        if not of_status[owner]:
            del of_status[owner]

    # --- Following --------------------------------------------------------------------------------------

    async def load(self, rows: Sequence[OrderRow], effects: Iterable[Effect]) -> None:
        """Add to memory the unfinished orders of shards that this process has just leased.

        Args:
            rows: rows of the orders.
            effects: side effects that are not yet executed; effects of orders outside `rows` are ignored.

        Raises:
            StoreUnavailable: the store does not answer; call again.
        """
        of_order: dict[bytes, list[Effect]] = {}
        for effect in effects:
            of_order.setdefault(effect.order_hash, []).append(effect)
        for at in range(0, len(rows), VENUE_LOAD_ORDERS):
            await self._load(rows[at : at + VENUE_LOAD_ORDERS], of_order)

    def leave(self, held: Container[int]) -> None:
        """Drop from memory the orders of shards that this process does not hold any more.

        Args:
            held: numbers of the shards that the process still holds.
        """
        for live in self:
            if live.row.shard not in held:
                self._drop(live)

    async def hear(self, events: Sequence[OrderEvent]) -> None:
        """Read the orders that events name from the store, if memory lacks them or has older versions.

        Orders of other processes' shards are skipped. Before any read, the method waits until the batch of
        writes under way is answered: the tasks that wrote these orders then put the new rows into memory
        themselves. The method returns once memory is as new as the events, and retries its reads while the
        store does not answer.
        """
        if all(map(self._is_known, events)):
            return
        await trio.lowlevel.checkpoint()  # tasks of this process whose writes were just answered run first
        if not all(map(self._is_known, events)):
            await self._store.answered()  # the log shows a batch before its writers have their answer
        behind = list(dict.fromkeys(event.order_hash for event in events if not self._is_known(event)))
        for at in range(0, len(behind), VENUE_LOAD_ORDERS):
            await self._reload(behind[at : at + VENUE_LOAD_ORDERS])

    async def notice(self, rows: Sequence[OrderRow]) -> None:
        """Read again from the store the orders in memory that are older than these rows.

        Raises:
            StoreUnavailable: the store does not answer.
        """
        behind = [
            row.order_hash
            for row in rows
            if (live := self._orders.get(row.order_hash)) is not None and live.row.version < row.version
        ]
        for at in range(0, len(behind), VENUE_LOAD_ORDERS):
            await self._read(behind[at : at + VENUE_LOAD_ORDERS])

    def _is_known(self, event: OrderEvent) -> bool:
        """Whether the order in memory is as new as an event, or another process holds the order's shard."""
        live = self._orders.get(event.order_hash)
        if live is None:
            return self._leases.fence(event.shard) is None
        version: int = live.row.version
        return version >= event.version

    async def _reload(self, hashes: Sequence[bytes]) -> None:
        """Read orders again from the store, and retry while the store does not answer.

        An order whose read raises an unexpected error is skipped until its next event.
        """
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
        """Read orders, and their side effects that are not yet executed, from the store into memory."""
        rows, effects = await self._store.read(
            among(self._kind.orders, "order_hash", hashes), among(EFFECT, "order_hash", hashes)
        )
        intended: dict[bytes, list[Effect]] = {}
        for values in effects:
            effect: Effect = row_of(EFFECT, values)
            if effect.state is EffectState.INTENDED:
                intended.setdefault(effect.order_hash, []).append(effect)
        found = {row.order_hash: row for row in map(self._kind.found, rows)}
        await self._load([found[key] for key in hashes if key in found], intended)

    async def _load(self, rows: Sequence[OrderRow], effects: Effects) -> None:
        """Read the data that orders' rows lack (`_read_parts`), and put the orders into memory."""
        parts = await self._read_parts(rows, effects)
        for count, row in enumerate(rows, start=1):
            self._take_in(row, parts[row.order_hash])
            if count % _YIELD_ORDERS == 0:
                await trio.lowlevel.checkpoint()

    def _take_in(self, row: OrderRow, parts: Any) -> None:
        """Put an order into memory or update it there, unless memory has this version or a later one.

        An order whose end is final is not added.
        """
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
