"""Holds TWAP slices until they are due by the chain's clock, the time of its next block.

    a slice waits -> the chain's time is read: at once, when the first slice should be due, when a block
                     reaches that time, and every SLICE_LOOK_S -> due -> released

A chain's clock may be ahead of the venue's or behind it; the latest block of a chain that mines on demand is
as old as its last transaction. No agent is asked about a slice that the contract would refuse as too early.

A slice is due by the next block's time if the node reports it, else by the latest block's; its bids are
simulated at that time. A chain is read at most once in SLICE_LOOK_S_MIN, for any number of waiting slices and
new blocks. A clock advanced without a block is noticed within SLICE_LOOK_S.

Source: contracts/TwapSettler.sol, `nextSlice`; choices.md#delta-orders.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from heapq import heappop, heappush

import trio

from .....config.errors import ChainError
from .....config.timeouts import SLICE_LOOK_S, SLICE_LOOK_S_MIN
from ....chain.port import Chain, Upcoming


class WaitingSlices:
    """TWAP slices sorted by the time from which they are due, Unix seconds of the chain's clock."""

    def __init__(self) -> None:
        self._due: dict[bytes, int] = {}
        self._heap: list[tuple[int, bytes]] = []  # waiting slices, and some that were removed

    def __len__(self) -> int:
        return len(self._due)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._due)

    def add(self, order_hash: bytes, due_s: int) -> None:
        """Set the time from which an order's TWAP slice is due, Unix seconds; replaces a time set before."""
        if self._due.get(order_hash) != due_s:
            self._due[order_hash] = due_s
            heappush(self._heap, (due_s, order_hash))

    def remove(self, order_hash: bytes) -> None:
        """Remove the TWAP slice of an order, if it has one."""
        self._due.pop(order_hash, None)

    def first_s(self) -> int | None:
        """Return the earliest time at which a slice is due, Unix seconds; None without a slice."""
        heap = self._heap
        while heap and self._due.get(heap[0][1]) != heap[0][0]:
            heappop(heap)
        return heap[0][0] if heap else None

    def take(self, now_s: int) -> bytes | None:
        """Remove the slice that is due first and return its order's hash; None if no slice is due.

        Args:
            now_s: time of the chain's clock, Unix seconds.
        """
        first_s = self.first_s()
        if first_s is None or first_s > now_s:
            return None
        _, order_hash = heappop(self._heap)
        del self._due[order_hash]
        return order_hash


class SliceWatch:
    """Keeps TWAP slices until they are due by the chain's clock; then reports their orders. `run` is a task.

    Args:
        head_time_s: returns the time of the latest block that this process has seen, Unix seconds.
        released: called with the hash of an order whose slice is due.

    Attributes:
        time_s: the chain's time as last read: the next block's if the node reports it, else the latest
            block's; Unix seconds; 0 before the first answer.
    """

    def __init__(
        self, chain: Chain, head_time_s: Callable[[], int], released: Callable[[bytes], None]
    ) -> None:
        self._chain = chain
        self._head_time_s = head_time_s
        self._released = released
        self._waiting = WaitingSlices()
        self._looked_at = -math.inf
        self._added = trio.Event()
        self.time_s = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._waiting)

    def wait(self, order_hash: bytes, due_s: int) -> None:
        """Call `released` with an order's hash once its TWAP slice is due, unless `forget` is called before.

        Args:
            due_s: time from which the slice is due, Unix seconds of the chain's clock.
        """
        self._waiting.add(order_hash, due_s)
        self._added.set()

    def forget(self, order_hash: bytes) -> None:
        """Stop waiting for an order's TWAP slice, so that `released` is not called for it."""
        self._waiting.remove(order_hash)

    async def look(self) -> Upcoming:
        """Read the chain's latest block and the next block's time, and keep the time in `time_s`.

        Raises:
            ChainError: no node answers.
        """
        upcoming = await self._chain.upcoming()
        self.time_s = upcoming.time_s
        return upcoming

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Read the chain's clock at intervals and call `released` for due slices, until cancelled."""
        task_status.started()
        while True:
            first_s = self._waiting.first_s()
            if first_s is None:
                self._added = trio.Event()
                await self._added.wait()
            elif trio.current_time() < self._looks_at(first_s):
                await trio.sleep(SLICE_LOOK_S_MIN)
            else:
                await self._release()

    def _looks_at(self, first_s: int) -> float:
        """Return the time at which to read the chain's clock next, seconds of trio's clock.

        Args:
            first_s: earliest time at which a slice is due, Unix seconds of the chain's clock.
        """
        likely_s = 0 if self._head_time_s() >= first_s else first_s - self.time_s
        return self._looked_at + min(max(likely_s, SLICE_LOOK_S_MIN), SLICE_LOOK_S)

    async def _release(self) -> None:
        self._looked_at = trio.current_time()
        with suppress(ChainError):
            await self.look()
        while (order_hash := self._waiting.take(self.time_s)) is not None:
            self._released(order_hash)
            await trio.lowlevel.checkpoint()
