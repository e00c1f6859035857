"""Holds shards: claims them, renews the lease every third of its life, and gives them up in time.

    claimed --renewed every life/3--> held --renewals fail for a whole life--> given up
       \\--- another claims what is overdue: its epoch is higher, what is written with this one is fenced

The life is counted on the trio clock, from before the request was sent, so that a fence is gone here before
another can have the shard. Where this process stood still, or clocks differ, the epoch decides, in the
transaction.

Source: storage.md, "Several machines".
"""

from collections.abc import Callable, Mapping
from math import inf

import trio
from msgspec import Struct

from ...config.errors import StoreUnavailable
from ...config.timeouts import STORE_READ_S
from ..telemetry.structured import structlog
from .store import Store
from .units import Fence

SHARDS = 256
"""One for each first byte of an order hash."""

_log = structlog.get_logger("cambist.store")


class LeasesStatistics(Struct, frozen=True):
    """What one holder has and has done.

    Attributes:
        held: shards now.
        renewed, failed: requests that the store answered, and that it did not.
        given_up: how often everything held was given up because the lease ran out.
    """

    held: int
    renewed: int
    failed: int
    given_up: int


class Leases:
    """The shards of one engine. `run` is its task.

    Args:
        holder: a name that no other engine has, and no earlier run of this one.
        life_s: how long a shard stays ours without being renewed (`[store] lease_s`).
        now_ms: wall clock, Unix milliseconds.
        count: shards that are wanted.
    """

    def __init__(
        self, store: Store, holder: str, *, life_s: float, now_ms: Callable[[], int], count: int = SHARDS
    ) -> None:
        self._store = store
        self._holder = holder
        self._life_s = life_s
        self._now_ms = now_ms
        self._count = count
        self._fences: dict[int, Fence] = {}
        self._ends_at = self._again_at = -inf
        self._changed = trio.Event()
        self._renewed = self._failed = self._given_up = 0

    def fence(self, shard: int) -> Fence | None:
        """What a write for a shard is fenced with; None while it is not ours."""
        return self._fences.get(shard) if trio.current_time() < self._ends_at else None

    def held(self) -> Mapping[int, Fence]:
        """shard -> fence, of all that is ours now. It does not change; what changes is made anew."""
        return self._fences if trio.current_time() < self._ends_at else {}

    def changed(self) -> trio.Event:
        """Set when a shard or an epoch comes or goes next. Take it before looking at what is held."""
        return self._changed

    def statistics(self) -> LeasesStatistics:
        """Counters and present sizes."""
        return LeasesStatistics(len(self.held()), self._renewed, self._failed, self._given_up)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Claim and renew until cancelled; then everything is given back. Started once the store answered.

        Whoever runs the shards' orders has to end before this is cancelled.
        """
        try:
            started = False
            while True:
                if await self._renew() and not started:
                    started = True
                    task_status.started()
                await self._wait()
        finally:
            self._hold({})
            with trio.move_on_after(STORE_READ_S, shield=True):
                try:
                    await self._store.release(self._holder)
                except StoreUnavailable as error:
                    _log.warning("shards were not released", detail=error.detail)

    async def _renew(self) -> bool:
        """Ask once, and not for longer than what is held can wait. Returns whether the store answered."""
        asked_at = trio.current_time()
        self._again_at = asked_at + self._life_s / 3
        life_ms = round(self._life_s * 1_000)
        with trio.move_on_at(min(self._again_at, self._ends_at) if self._fences else self._again_at):
            try:
                leases = await self._store.lease(self._holder, self._count, self._now_ms(), life_ms)
            except StoreUnavailable as error:
                _log.warning("shards were not renewed", detail=error.detail)
            else:
                self._renewed += 1
                self._ends_at = asked_at + self._life_s
                self._hold({lease.shard: Fence(lease.shard, lease.epoch) for lease in leases})
                return True
        self._failed += 1
        return False

    async def _wait(self) -> None:
        """Until it is time to renew; what runs out meanwhile is given up."""
        if self._fences and self._ends_at <= self._again_at:
            await trio.sleep_until(self._ends_at)
            self._given_up += 1
            self._hold({})
        await trio.sleep_until(self._again_at)

    def _hold(self, fences: dict[int, Fence]) -> None:
        if fences != self._fences:
            self._fences = fences
            changed, self._changed = self._changed, trio.Event()
            changed.set()
