"""Hold a fair share of the shards: claim shards, renew their leases, and give them up in time.

    claimed --renewed every STORE_LEASE_EVERY_S--> held --renewals fail for a whole life--> given up
       \\                                            \\--another holder joins--> shards beyond share released
        \\--another holder claims an expired lease: the epoch rises, writes with the old epoch are refused

All live holders share the shards evenly. A holder that has less than its share claims every
STORE_LEASE_SOON_S, so that a released shard soon has a holder again.

A lease's life is counted on the trio clock, from before the request was sent, so that this holder drops the
fence before another holder can claim the shard. If this process stood still, or clocks differ, the store
still refuses a late write: the write's transaction compares the fence's epoch with the shard's.

Source: ARCHITECTURE.md, "Several engines".
"""

from collections.abc import Callable, Mapping, Sequence
from math import inf

import structlog
import trio
from msgspec import Struct

from ...config.errors import StoreUnavailable
from ...config.timeouts import STORE_LEASE_EVERY_S, STORE_LEASE_SOON_S, STORE_READ_S
from .store import Store
from .units import Fence

SHARDS = 256
"""Number of shards into which orders are divided: one for each first byte of an order hash."""

_log = structlog.get_logger("cambist.store")


class LeasesStatistics(Struct, frozen=True):
    """Counters of an engine's shard leases.

    Attributes:
        held: shards held at this moment.
        renewed, failed: number of attempts to renew the leases that succeeded, and that failed.
        given_up: number of times that this engine stopped using all of its shards, as the leases ran out.
        given_back: number of shards beyond the fair share that this engine released for other engines.
        holders: count of live engines that share the shards.
    """

    held: int
    renewed: int
    failed: int
    given_up: int
    given_back: int
    holders: int


def fair_share(holders: Sequence[str], name: str) -> int:
    """Compute how many shards the engine `name` gets when all live engines share them evenly. Pure.

    Args:
        holders: sorted names of all live engines, including `name`. If the shards cannot be divided evenly,
            the first engines of the list get one shard more than the others.
    """
    least, more = divmod(SHARDS, len(holders))
    return least + (holders.index(name) < more)


class FencedOff(Exception):
    """Raised when another engine has claimed a shard: this engine must stop work on the shard's orders.

    The module that raises the exception also catches it.
    """


class Leases:
    """The shards of orders that one engine holds by lease. `run` claims shards and renews their leases.

    Args:
        holder: name of this engine's run, which no other engine and no earlier run has.
        life_s: seconds that a lease lasts without renewal (`[store] lease_s`).
        now_ms: wall clock, Unix milliseconds.
        count: most shards to hold.
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
        self._renewed = self._failed = self._given_up = self._given_back = 0
        self._holders = 0

    def fence(self, shard: int) -> Fence | None:
        """Return the fence to attach to a write to a shard; None while this engine does not hold the shard.

        The store refuses a write with a fence if another engine has claimed the shard since.
        """
        return self._fences.get(shard) if trio.current_time() < self._ends_at else None

    def held(self) -> Mapping[int, Fence]:
        """Return a mapping of each shard that this engine holds to the fence for writes to the shard.

        The mapping never changes; when the held shards change, `held` returns a new mapping.
        """
        return self._fences if trio.current_time() < self._ends_at else {}

    def changed(self) -> trio.Event:
        """Return the trio event that is set at the next change of the held shards.

        `OrderEngines._follow_shards` waits for the event. A caller that gets the event before calling `held`
        misses no change.
        """
        return self._changed

    def statistics(self) -> LeasesStatistics:
        """Return the counters of lease renewals, and the present numbers of held shards and live engines."""
        return LeasesStatistics(
            len(self.held()), self._renewed, self._failed, self._given_up, self._given_back, self._holders
        )

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Claim shards and renew their leases until cancelled, then release all shards.

        `task_status.started` is called after the first successful claim. A write that is still under way at
        the cancellation does no harm: the store refuses its fence once another engine has claimed the shard.
        """
        try:
            started = False
            while True:
                if await self._renew() and not started:
                    started = True
                    task_status.started()
                await self._wait()
        finally:
            # The fences go first: once the store has released the shards, another engine may claim them.
            self._hold({})
            with trio.move_on_after(STORE_READ_S, shield=True):
                try:
                    await self._store.release(self._holder)
                except StoreUnavailable as error:
                    _log.warning("shards were not released", detail=error.detail)

    async def _renew(self) -> bool:
        """Ask the store once to renew the shard leases; the time limit is a third of a lease's life, or less
        if a lease ends sooner.

        Returns:
            Whether the store answered.
        """
        asked_at = trio.current_time()
        patience_at = asked_at + self._life_s / 3
        self._again_at = min(asked_at + STORE_LEASE_EVERY_S, patience_at)
        with trio.move_on_at(min(patience_at, self._ends_at) if self._fences else patience_at):
            try:
                await self._lease(asked_at)
            except StoreUnavailable as error:
                _log.warning("shards were not renewed", detail=error.detail)
            else:
                self._renewed += 1
                return True
        self._failed += 1
        return False

    async def _lease(self, asked_at: float) -> None:
        """Renew the leases of held shards, claim free shards up to this engine's fair share, and release
        shards beyond it.

        Raises:
            StoreUnavailable: the database cannot be used now.
        """
        life_ms = round(self._life_s * 1_000)
        holders = await self._store.attend(self._holder, self._now_ms(), life_ms)
        share = min(self._count, fair_share(holders, self._holder))
        leases = await self._store.lease(self._holder, share, self._now_ms(), life_ms)
        self._holders = len(holders)
        # The end is set before the fences: no new lease is ever shown with the end of the earlier leases.
        self._ends_at = asked_at + self._life_s
        self._hold({lease.shard: Fence(lease.shard, lease.epoch) for lease in leases[:share]})
        # These shards have no fence here any more: no write of this engine meets a write of the next holder.
        beyond = [lease.shard for lease in leases[share:]]
        if beyond:
            await self._store.release(self._holder, beyond)
            self._given_back += len(beyond)
        if len(leases) < share:
            self._again_at = min(self._again_at, asked_at + STORE_LEASE_SOON_S)

    async def _wait(self) -> None:
        """Wait until it is time to renew the leases; if the leases run out earlier, give up all shards."""
        if self._fences and self._ends_at <= self._again_at:
            await trio.sleep_until(self._ends_at)
            self._given_up += 1
            self._hold({})
        await trio.sleep_until(self._again_at)

    def _hold(self, fences: dict[int, Fence]) -> None:
        if fences != self._fences:
            self._fences = fences
            # The new event stands before the old one is set: a woken task that asks for the next change at
            # once waits for the next, and not for this one again.
            changed, self._changed = self._changed, trio.Event()
            changed.set()
