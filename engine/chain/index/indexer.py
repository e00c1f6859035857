"""Follow one chain: store the contracts' logs as rows, and delete rows that a re-organisation undoes.

    step:  cursor -> last common block -> forward to the head
                  -> one atomic write: deletions, rows, projections, cursor

The cursor is the last block read, with a ring of blocks before it. A new head only wakes the indexer; without
a new head the next step begins after INDEX_LOOK_S. Blocks deeper than the ring are history: their logs are
read in ranges, several at once. Later blocks are read block by block, logs by the block's hash. The number of
blocks read at once shrinks after a failure or a refusal, and grows after a success. Each step reads the
cursor anew and moves it by compare-and-set: of two indexers of a chain, only the first to write a step moves
the cursor. The late indexer goes on from the new cursor, and of the skipped blocks reads only whose funds
moved.

A failed step (the node lags, contradicts itself or does not answer; the store cannot be reached) is tried
again. The failed step has written nothing, or, if the store was lost during the write, perhaps everything. A
chain that shares no block of the ring was re-organised deeper than the ring: its indexer halts until the node
shows one of the ring's blocks again, or `rescan` names a height from which to read anew.

After a re-organisation every followed account is reported as changed, since the lost blocks' movements are
not kept; likewise when another indexer is further ahead than one step reads.

Source: ARCHITECTURE.md, "Indexer", "Transitions".
"""

from collections import Counter
from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial
from typing import Protocol

import structlog
import trio
from msgspec import Struct

from ....config.errors import (
    BlockGone,
    ChainError,
    LogsRefused,
    NodeContradiction,
    NodeFault,
    NodeUnavailable,
    StoreError,
    StoreUnavailable,
)
from ....config.limits import (
    INDEX_RANGE_BLOCKS_MAX,
    INDEX_RANGES_MAX,
    INDEX_RING_BLOCKS,
    INDEX_STEP_BLOCKS_MAX,
    INDEX_STEP_ROWS_MAX,
    INDEX_TRIES_MAX,
)
from ....config.timeouts import INDEX_LOOK_S, INDEX_PAUSE_S, INDEX_STEP_S
from ...store.queries import above, by
from ...store.rows import ChainCursor
from ...store.store import Store
from ...store.tables import CHAIN_CURSOR, CHAIN_LOGS
from ...store.units import Change, Conflict, Done, Duplicate, Unit, cas, drop, new, put, row_of
from ..port import Chain, Header
from ..together import both
from .applied import IndexedContracts, KeptRow, LoggedEvent, read_events, rows_of
from .reading import Reading, header_at, mark_at, read_blocks, read_ranges, read_touched
from .ring import NOTHING_READ, UNKNOWN, Mark, Ring, decode_ring, encode_ring, last_common
from .watch import Watch, WatchedAccount

_log = structlog.get_logger("cambist.chain")


class Advance(Struct, frozen=True):
    """Result of one indexer step, from which a `Projection` derives further rows.

    Attributes:
        top: height and hash of the last block read, this step included.
        undone: rows of blocks that a re-organisation removed.
        events: events of the blocks that the step read, in order.
        rows: the rows stored for these events.
    """

    chain_id: int
    top: Mark
    undone: tuple[KeptRow, ...]
    events: tuple[LoggedEvent, ...]
    rows: tuple[KeptRow, ...]


class Projection(Protocol):
    """Interface: derives further rows, such as order states, which the indexer writes with a step's rows.

    A venue's indexer has a `FollowedChain`, which asks the projection of each kind of orders.
    """

    async def changes(self, advance: Advance) -> Sequence[Change]:
        """Return further changes of rows to write atomically with the rows of an indexer step.

        If another writer changed one of these rows meanwhile, the indexer calls this method again for the
        same step. Each call reads the store, which does not hold the step's rows yet.
        """
        ...


class IndexerState(Enum):
    """States of an indexer.

    CATCHING_UP: the indexer reads old blocks, in ranges. FOLLOWING: the indexer reads recent blocks. FAILING:
    the last step failed, and is tried again. HALTED: a re-organisation is deeper than the blocks whose hashes
    are stored.
    """

    STARTING = "starting"
    CATCHING_UP = "catching up"
    FOLLOWING = "following"
    FAILING = "failing"
    HALTED = "halted"


class IndexerStatistics(Struct, frozen=True):
    """State and counters of an indexer at one moment.

    Attributes:
        state: state of the indexer; reason: why it fails or is halted, else empty.
        block_number, block_hash: the last block read.
        head_number: height of the node's latest block, as last read; -1 before the first read.
        steps, blocks, rows: numbers of steps, blocks and rows written.
        reorganisations, undone_rows, deepest: number of re-organisations, number of rows deleted for them,
            and the most blocks undone in one step.
        lost: number of steps that another indexer of the chain wrote first.
        conflicts: number of repeated writes of a step, because another writer had changed one of its rows.
        refused: number of log queries whose range of blocks was too wide, for the node or for one step.
        range_blocks: number of blocks in the range of the next log query.
        faults: kind -> number of failed steps; the kinds are those of NodeFault, and `unavailable`, `block
            gone`, `slow`, `store`, `error`.
    """

    state: IndexerState
    reason: str
    block_number: int
    block_hash: bytes
    head_number: int
    steps: int
    blocks: int
    rows: int
    reorganisations: int
    undone_rows: int
    deepest: int
    lost: int
    conflicts: int
    refused: int
    range_blocks: int
    faults: dict[str, int]


class Indexer:
    """Follows one chain and stores the logs of its contracts as rows. `run` is its task.

    Args:
        watch: pairs (token, owner) whose balances and allowances the venue follows.
        begun: set once the store has a cursor of the chain, after which no block is left out.
        touched: called after a step is durable, with the chain id and the followed (token, owner) whose
            balances or allowances may have changed; the set may contain unchanged pairs.
        logged: called after this or another indexer of the chain has stored or deleted rows of logs, with the
            height above which these rows are. Another indexer's step is reported even if its blocks have no
            rows.
        now_ms: wall clock, Unix milliseconds.
        first_block: height of the first block to read, such as that of the contracts' deployment, if the
            store has no cursor (record of the blocks read) of the chain; None: start after the latest block.
        confirmations: blocks after which no re-organisation is expected.
        projection: derives further rows, written with each step; None for none.
    """

    def __init__(
        self,
        chain: Chain,
        store: Store,
        contracts: IndexedContracts,
        watch: Watch,
        *,
        begun: trio.Event,
        touched: Callable[[int, frozenset[WatchedAccount]], None],
        logged: Callable[[int], None],
        now_ms: Callable[[], int],
        first_block: int | None = None,
        confirmations: int = 0,
        projection: Projection | None = None,
    ) -> None:
        self._chain = chain
        self._store = store
        self._contracts = contracts
        self._wanted = contracts.filter()
        self._watch = watch
        self._begun = begun
        self._touched = touched
        self._logged = logged
        self._now_ms = now_ms
        self._first_block = first_block
        self._depth = max(INDEX_RING_BLOCKS, confirmations)
        self._projection = projection
        self._span = INDEX_RANGE_BLOCKS_MAX  # blocks of the next range
        self._ranges = INDEX_RANGES_MAX  # that are read at once
        self._count_max = INDEX_STEP_BLOCKS_MAX  # blocks that are read one by one in the next step
        self._version = 0  # of the cursor, as this indexer wrote it last
        self._top = Mark(NOTHING_READ, b"")
        self._noted = self._top  # the watch knows whose funds moved up to here
        self._lost: tuple[Mark, ...] = ()  # blocks of the last step, if another indexer wrote it
        self._head: Header | None = None
        self._state = IndexerState.STARTING
        self._reason = ""
        self._counts: Counter[str] = Counter()
        self._faults: Counter[str] = Counter()
        self._deepest = 0

    def statistics(self) -> IndexerStatistics:
        """Return the indexer's counters and its present state."""
        count = self._counts
        return IndexerStatistics(
            state=self._state,
            reason=self._reason,
            block_number=self._top.number,
            block_hash=self._top.hash,
            head_number=self._head.number if self._head else NOTHING_READ,
            steps=count["steps"],
            blocks=count["blocks"],
            rows=count["rows"],
            reorganisations=count["reorganisations"],
            undone_rows=count["undone_rows"],
            deepest=self._deepest,
            lost=count["lost"],
            conflicts=count["conflicts"],
            refused=count["refused"],
            range_blocks=self._span,
            faults=dict(self._faults),
        )

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Store the events of new blocks as rows, step by step, until cancelled; retry a failed step."""
        task_status.started()
        while True:
            try:
                with trio.fail_after(INDEX_STEP_S):
                    goes_on = await self.step()
            except trio.TooSlowError:
                # The time limit may cancel a write, whose outcome is then unknown. The next step reads the
                # cursor anew: a newer version shows a write that this indexer has not noted, and `_passed`
                # finds the accounts whose funds its blocks may have moved.
                self._fail("slow", f"a step took more than {INDEX_STEP_S:g} s")
                self._read_less()
            except (ChainError, StoreUnavailable) as error:
                self._fail(_kind(error), error.detail)
            else:
                if not goes_on:
                    await self._wait()
                continue
            await trio.sleep(INDEX_PAUSE_S)

    async def step(self) -> bool:
        """Follow the chain by one step: delete rows of blocks that left the chain, store rows of new blocks.

        Returns:
            Whether the next step may have work now, without a new head.

        Raises:
            ChainError, StoreUnavailable: nothing was written; only if the store became unavailable during the
                write, the whole step may have been written.
        """
        cursor = await self._cursor()
        if cursor is not None:
            self._begun.set()
        # Before the head is read: a pair followed later could be reported at a block older than its `follow`.
        self._watch.begin_step()
        if cursor is None:
            self._head = head = await self._latest()
            return await self._begin(head)
        ring = decode_ring(cursor.ring)
        self._top = ring.top
        has_top = False
        if self._state is IndexerState.CATCHING_UP:
            # Both at once: the last block read is not the head, so that its presence is asked for anyway.
            head, has_top = await both(self._latest, partial(self._shows, ring.top))
        else:
            head = await self._latest()
        self._head = head
        # A head below the last block read is for `_last_common`: the node lags, or has other blocks.
        is_common = has_top and head.number >= ring.top.number
        common = ring.top if is_common else await self._last_common(ring, head)
        if common is None:
            self._halt(ring)
            return False
        if cursor.version != self._version:
            self._watch.refresh(await self._passed(ring, common))
            self._logged(self._unseen_above(ring))
            # Noted after the answer: if `_passed` fails, the next step asks for the same blocks again.
            self._version, self._noted, self._lost = cursor.version, ring.top, ()
        target, undone = await self._undone(ring, common)
        reading = Reading()
        is_history = head.number - self._depth > common.number
        # Nothing is read while `target` is above the last common block: rows of lost blocks remain.
        if target == common and head.number > common.number:
            reading = await self._read(common, head)
        if (reading.marks or target != ring.top) and not await self._write(
            cursor, ring, target, undone, reading
        ):
            return True
        self._go(IndexerState.CATCHING_UP if is_history else IndexerState.FOLLOWING)
        if is_history:
            # Ranges do not tell whose funds moved: all accounts stay marked, and are reported once the recent
            # blocks are read, not at each step.
            self._watch.refresh()
        else:
            self._report_touched()
        return target != common or self._top.number < head.number

    # --- One step -------------------------------------------------------------------------------------

    async def _cursor(self) -> ChainCursor | None:
        """Read the stored cursor, i.e. the record of the last blocks read; None before the first step."""
        (rows,) = await self._store.read(by(CHAIN_CURSOR, self._chain.chain_id))
        cursor: ChainCursor | None = row_of(CHAIN_CURSOR, rows[0]) if rows else None
        return cursor

    async def _passed(self, ring: Ring, common: Mark) -> frozenset[WatchedAccount] | None:
        """Find the followed accounts whose funds may have moved in blocks that another indexer read.

        Args:
            ring: last blocks that this or another indexer of the chain has read, from the stored cursor.
            common: highest block of `ring` that the node's chain has.

        Returns:
            The accounts as (token, owner); None if the funds of any followed account may have moved.

        Raises:
            NodeUnavailable: no node answers; try again.
        """
        passed = ring.since(self._noted)
        if passed is None or common != ring.top or len(passed) > self._count_max:
            return None
        try:
            return await read_touched(
                self._chain, self._watch, [mark for mark in passed if mark not in self._lost]
            )
        except NodeUnavailable:
            raise
        except ChainError:
            return None

    def _unseen_above(self, ring: Ring) -> int:
        """Return the height above which another indexer of the chain may have added or deleted rows.

        Args:
            ring: last blocks that this or another indexer has read, from the stored cursor.
        """
        if self._noted in ring.marks:
            return self._noted.number
        # Another indexer undid the block that this one noted last, or read so far that the ring lacks it. At
        # the first step nothing is noted: listeners have read the whole store themselves when they began.
        lowest = ring.marks[0].number
        return min(self._noted.number, lowest) if self._version else lowest

    async def _latest(self) -> Header:
        head = await self._chain.block()
        if head is None:
            raise NodeContradiction(NodeFault.NO_BLOCK, "the node has no latest block")
        return head

    async def _begin(self, head: Header) -> bool:
        mark = (
            Mark(head.number, head.hash)
            if self._first_block is None
            else await mark_at(self._chain, self._first_block - 1)
        )
        row = cursor_row(self._chain.chain_id, 1, Ring((mark,)), self._now_ms())
        outcome = await self._store.write(Unit((new(CHAIN_CURSOR, row),)))
        if not isinstance(outcome, Done | Duplicate):
            raise StoreError(f"the cursor was not written: {outcome}")
        return True

    async def _last_common(self, ring: Ring, head: Header) -> Mark | None:
        """Find the highest block of `ring` (the last blocks read) that the node's chain has; None for none.

        Raises:
            NodeContradiction: the node lags: its latest block is below the last block of `ring`, without a
                sign of a re-organisation.
        """
        if ring.top == Mark(head.number, head.hash) or (
            ring.top.number + 1 == head.number and ring.top.hash == head.parent_hash
        ):
            return ring.top
        marks = [mark for mark in ring.marks if mark.number <= head.number]
        search = last_common(marks)
        try:
            candidate = next(search)
            while True:
                candidate = search.send(await self._has(candidate))
        except StopIteration as found:
            common: Mark | None = found.value
        # The node ends below the last block read, and has every mark up to its end: it lags. A mark that it
        # lacks shows a re-organisation. A placeholder on top, as `rescan` leaves it, shows nothing.
        is_known = ring.top.hash != UNKNOWN or ring.top.number == NOTHING_READ
        if is_known and marks[-1:] != [ring.top] and (not marks or common == marks[-1]):
            raise NodeContradiction(
                NodeFault.LAGGING,
                f"the node is at block {head.number}, {ring.top.number - head.number} behind the last read",
            )
        return common

    async def _has(self, mark: Mark) -> bool:
        return mark.number == NOTHING_READ or (await header_at(self._chain, mark.number)).hash == mark.hash

    async def _shows(self, mark: Mark) -> bool:
        """Whether the node shows the block now; False proves nothing, since its head is not known yet."""
        header = await self._chain.block(mark.number) if mark.number != NOTHING_READ else None
        return header is not None and header.hash == mark.hash

    async def _undone(self, ring: Ring, common: Mark) -> tuple[Mark, list[KeptRow]]:
        """Return (block to go back to, stored rows of higher blocks) after a re-organisation.

        The block to go back to is `common`, the highest block of `ring` that the node's chain has. If the
        rows above `common` are too many for one step, the block is a higher one; later steps undo the rest.
        """
        if common == ring.top:
            return common, []
        rows, floor = await self._rows_above(common.number, ring.top.number - 1)
        target = common if floor == common.number else Mark(floor, UNKNOWN)
        return target, [(table, row) for table, row in rows if row.block_number > floor]

    async def _rows_above(self, number: int, floor_max: int) -> tuple[list[KeptRow], int]:
        """Return (rows, floor): stored rows, among them all rows of blocks above height `floor`.

        `floor` is `number`, or a greater height if more than INDEX_STEP_ROWS_MAX rows are above `number`. The
        method doubles this limit until `floor` is at most `floor_max`, so that a single block with more rows
        than the limit can be undone too.
        """
        chain_id, count = self._chain.chain_id, INDEX_STEP_ROWS_MAX
        while True:
            read = await self._store.read(
                *(above(table, chain_id, number, count + 1) for table in CHAIN_LOGS)
            )
            rows = [
                (table, row_of(table, row))
                for table, some in zip(CHAIN_LOGS, read, strict=True)
                for row in some
            ]
            if len(rows) <= count:
                return rows, number
            rows.sort(key=lambda kept: kept[1].block_number, reverse=True)
            if rows[count][1].block_number <= floor_max:
                return rows, rows[count][1].block_number
            count *= 2

    async def _read(self, after: Mark, head: Header) -> Reading:
        """Read the blocks that follow `after`: old blocks by one request for a range, recent ones one by one.

        A failure halves the number of blocks that the next read requests.
        """
        history = head.number - self._depth
        try:
            if after.number < history:
                return await self._read_history(after, history)
            return await self._read_on(after, head)
        except ChainError:
            self._read_less()
            raise

    def _read_less(self) -> None:
        self._span, self._count_max = (self._span + 1) // 2, (self._count_max + 1) // 2
        self._ranges = (self._ranges + 1) // 2

    async def _read_history(self, after: Mark, history: int) -> Reading:
        while True:
            width = min(self._span, history - after.number)
            ends = range(after.number, history, width)[: self._ranges]
            spans = [(end + 1, min(end + width, history)) for end in ends]
            try:
                reading = await read_ranges(self._chain, self._wanted, after, spans)
            except LogsRefused:
                self._counts["refused"] += 1
                if width == 1:
                    raise
                self._span = width // 2
                continue
            # Ranges beyond what a step may write are read in vain: these tell how many fit.
            fit = len(reading.marks) * INDEX_STEP_ROWS_MAX // max(1, len(reading.logs))
            self._ranges = max(1, min(INDEX_RANGES_MAX, self._ranges + 1, fit))
            if width == self._span:  # a shorter range does not prove the whole span
                self._span = min(INDEX_RANGE_BLOCKS_MAX, self._span + self._span // 8 + 1)
            return reading

    async def _read_on(self, after: Mark, head: Header) -> Reading:
        while True:
            count = min(self._count_max, head.number - after.number)
            last = after.number + count
            reading = await read_blocks(self._chain, self._wanted, self._watch, after, last, head)
            if len(reading.logs) <= INDEX_STEP_ROWS_MAX or count == 1:
                self._count_max = min(INDEX_STEP_BLOCKS_MAX, 2 * self._count_max)
                return reading
            self._count_max = (count + 1) // 2

    # --- Writing a step -------------------------------------------------------------------------------

    async def _write(
        self, cursor: ChainCursor, ring: Ring, target: Mark, undone: list[KeptRow], reading: Reading
    ) -> bool:
        """Write a step atomically; False, with nothing written, if another indexer wrote a step first.

        Args:
            cursor, ring: the stored cursor that the step replaces, and its decoded ring of blocks.
            target: block to go back to.
            undone: stored rows of blocks above `target`, to be deleted.
            reading: blocks and logs that follow `target`; empty if further rows must be undone first.
        """
        found = read_events(self._contracts, reading.logs)
        rows = rows_of(self._chain.chain_id, found, reading.times)
        after = ring.cut(target).pushed(reading.marks, self._depth)
        row = cursor_row(cursor.chain_id, cursor.version, after, self._now_ms())
        step = Advance(cursor.chain_id, after.top, tuple(undone), tuple(found), tuple(rows))
        own: tuple[Change, ...] = (
            cas(CHAIN_CURSOR, row),
            *(drop(table, kept) for table, kept in undone),
            *(put(table, kept) for table, kept in rows),
        )
        for _ in range(INDEX_TRIES_MAX):
            # Asked anew at each try: the projections read order rows, which a conflicting writer has changed.
            more = await self._projection.changes(step) if self._projection else ()
            outcome = await self._store.write(Unit((*own, *more)))
            match outcome:
                case Done():
                    self._written(ring, step, target, reading)
                    return True
                case Conflict(table=CHAIN_CURSOR.name):
                    # The cursor is the unit's first change, and nothing of the unit is written: the indexer
                    # that moved the cursor has stored the rows of these blocks, or of other blocks.
                    # The accounts of this reading are marked now, and `_passed` skips its blocks.
                    self._counts["lost"] += 1
                    self._watch.refresh(reading.touched)
                    self._lost = reading.marks
                    return False
                case Conflict() | Duplicate():
                    self._counts["conflicts"] += 1
                case _:
                    raise StoreError(f"a step of the indexer was not written: {outcome}")
        raise StoreUnavailable(f"other writers changed the rows of this step {INDEX_TRIES_MAX} times")

    def _written(self, before: Ring, step: Advance, target: Mark, reading: Reading) -> None:
        """Count a stored step, and mark the accounts whose funds its new or undone blocks may have moved."""
        self._version += 1
        self._top = self._noted = step.top
        self._counts["steps"] += 1
        self._counts["blocks"] += step.top.number - target.number
        self._counts["rows"] += len(step.rows)
        self._watch.refresh(reading.touched)
        if step.rows or step.undone:
            self._logged(target.number)
        gone = before.top.number - target.number
        if gone:
            self._counts["reorganisations"] += 1
            self._counts["undone_rows"] += len(step.undone)
            self._deepest = max(self._deepest, gone)
            self._watch.refresh()  # the undone blocks moved funds too
            _log.info(
                "a re-organisation undid blocks", chain_id=step.chain_id, blocks=gone, rows=len(step.undone)
            )

    def _report_touched(self) -> None:
        pairs = self._watch.fresh()
        if pairs:
            self._touched(self._chain.chain_id, pairs)

    # --- State and waiting ----------------------------------------------------------------------------

    def _go(self, state: IndexerState) -> None:
        if self._reason:
            _log.info("the indexer goes on", chain_id=self._chain.chain_id, block=self._top.number)
        self._state, self._reason = state, ""

    def _fail(self, kind: str, detail: str) -> None:
        self._faults[kind] += 1
        if self._state is not IndexerState.FAILING:
            _log.warning("the indexer is held up", chain_id=self._chain.chain_id, detail=detail)
        self._state, self._reason = IndexerState.FAILING, detail

    def _halt(self, ring: Ring) -> None:
        lowest = ring.marks[0].number
        if self._state is not IndexerState.HALTED:
            self._state = IndexerState.HALTED
            self._reason = (
                f"the node shows none of the blocks {lowest} to {ring.top.number} that were read: the chain "
                f"was re-organised deeper than that, or it is another; read anew from below {lowest}"
            )
            _log.error("the indexer is halted", chain_id=self._chain.chain_id, reason=self._reason)

    async def _wait(self) -> None:
        """Wait for a new head, at most INDEX_LOOK_S seconds."""
        with trio.move_on_after(INDEX_LOOK_S):
            try:
                await self._chain.wait_head(self._head.hash if self._head else b"")
            except ChainError:
                await trio.sleep_forever()


def cursor_row(chain_id: int, version: int, ring: Ring, now_ms: int) -> ChainCursor:
    """Build the stored row of a chain's cursor: the last block read, and the ring of blocks before it."""
    return ChainCursor(chain_id, version, ring.top.number, ring.top.hash, encode_ring(ring), now_ms)


async def rescan(chain: Chain, store: Store, first_block: int, now_ms: int) -> None:
    """Reset a chain's cursor so that its indexer reads the blocks from `first_block` on anew.

    The indexer may run meanwhile, and deletes the rows from `first_block` on, step by step. A re-organisation
    that halts the indexer (see `IndexerState`) needs this call, with a block below the re-organisation.

    Raises:
        ValueError: the chain was not read up to the block before `first_block`.
        ChainError, StoreUnavailable: nothing was changed; try again.
    """
    (rows,) = await store.read(by(CHAIN_CURSOR, chain.chain_id))
    cursor: ChainCursor | None = row_of(CHAIN_CURSOR, rows[0]) if rows else None
    read = cursor.block_number if cursor else NOTHING_READ
    if cursor is None or not 0 <= first_block <= read + 1:
        raise ValueError(f"chain {chain.chain_id} was read up to block {read}, not up to {first_block - 1}")
    mark = await mark_at(chain, first_block - 1)
    ring = Ring((mark, Mark(read, UNKNOWN)) if mark.number < read else (mark,))
    row = cursor_row(cursor.chain_id, cursor.version, ring, now_ms)
    outcome = await store.write(Unit((cas(CHAIN_CURSOR, row),)))
    if not isinstance(outcome, Done):
        raise StoreUnavailable(f"another reader moved the chain's cursor: {outcome}")


def _kind(error: ChainError | StoreUnavailable) -> str:
    """Return the name under which the statistics count a step that failed with this error."""
    match error:
        case NodeContradiction():
            return error.fault.value
        case NodeUnavailable():
            return "unavailable"
        case BlockGone():
            return "block gone"
        case StoreUnavailable():
            return "store"
        case _:
            return "error"
