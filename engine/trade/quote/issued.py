"""Keeps digests of issued Delta routes, so that a build accepts no other route.

    quote -> add -> memory (at once) and a queue -> `run` writes it in batches -> the shared store
    build -> first_issued -> memory, then the store, which holds the routes of other processes
    `run_sweeps` -> expired routes of all processes leave the store

The digest is SHA-256 of the quoted side and the route's canonical bytes: a client may return the route with
its keys in another order, but with the same types and digits. The digest has the side, since the route does
not name it and the side decides which amount is fixed.

The life of a route begins at the end of the minute in which it was issued, so that a repeated route is
written at most once a minute and known for ten to eleven minutes. On a store that processes can share, a
build of an unknown route looks again for ISSUED_ROUTES_SHOWN_S: a proxy may pass the build to another process
than the quote's, before the quote's process has written the route. The build does so even if this process
knows of no other, since it would learn of a new process only a second late. If the store is away or slow
until the queue is full, the oldest queued routes are never written: only this process knows them.

Source: choices.md#delta-orders.
Choice: Delta routes carry no seal: memory and the shared store keep a digest of each for `route_life_s` (10
    minutes).
"""

import hashlib
from collections import deque
from collections.abc import Callable, Sequence

import structlog
import trio
from msgspec import Struct

from ....codecs.messages.vocabulary import Side
from ....config import limits
from ....config.errors import StoreError, StoreUnavailable
from ....config.timeouts import (
    ISSUED_ROUTES_EVERY_S,
    ISSUED_ROUTES_PAUSE_S,
    ISSUED_ROUTES_SHOWN_S,
    ISSUED_ROUTES_SWEEP_EVERY_S,
)
from ...store.queries import by, expired_routes
from ...store.rows import IssuedRoute
from ...store.store import Store
from ...store.tables import ISSUED_ROUTE
from ...store.units import Change, Done, Unit, drop, new, put, row_of

_MINUTE_MS = 60_000
_SWEPT = 4  # expired digests to forget for each added digest

_log = structlog.get_logger("cambist.venue")


class IssuedStatistics(Struct, frozen=True):
    """Counts of digests of issued Delta routes.

    Attributes:
        kept: digests in memory.
        waiting: digests that wait to be written to the store.
        written: digests written to the store so far.
        left_out: digests that were never written, as the queue of waiting digests was full.
        swept: expired digests removed from the store so far.
    """

    kept: int
    waiting: int
    written: int
    left_out: int
    swept: int


def quoted_as(side: Side, canonical: bytes) -> bytes:
    """Join a route's quoted side and canonical JSON into the bytes whose digest identifies the route."""
    return side.value.encode() + canonical


class IssuedRoutes:
    """Digests of the Delta routes that quotes have issued, in memory and in the shared store.

    Args:
        store: shared with the other processes.
        life_s: least time for which a request to build an order may carry an issued route, seconds.
        kept_max: most digests in memory; the oldest are dropped first.
    """

    def __init__(self, store: Store, life_s: float, *, kept_max: int = limits.VENUE_ISSUED_MAX) -> None:
        self._store = store
        self._life_ms = round(life_s * 1_000)
        self._kept_max = kept_max
        self._kept: dict[bytes, int] = {}  # digest -> expiry in ms, by rising expiry
        self._waiting: deque[tuple[IssuedRoute, bool]] = deque()  # with whether the digest was kept before
        self._work = trio.Event()
        self._written = 0
        self._left_out = 0
        self._swept = 0

    def add(self, quoted: bytes, chain_id: int, now_ms: int) -> None:
        """Keep the digest of a Delta route that is issued now: in memory at once, and soon in the store.

        The call never waits.

        Args:
            quoted: the route's side and canonical JSON, joined by `quoted_as`.
            now_ms: the time, Unix milliseconds.
        """
        digest = hashlib.sha256(quoted).digest()
        expires_ms = (now_ms // _MINUTE_MS + 1) * _MINUTE_MS + self._life_ms
        kept = self._kept
        if kept.get(digest) == expires_ms:
            return
        is_again = kept.pop(digest, None) is not None
        kept[digest] = expires_ms
        self._forget(now_ms)
        if len(self._waiting) >= limits.VENUE_ISSUED_WAITING_MAX:
            self._waiting.popleft()
            self._left_out += 1
        self._waiting.append((IssuedRoute(digest, chain_id, expires_ms), is_again))
        self._work.set()

    async def is_issued(self, quoted: bytes, now_ms: int) -> bool:
        """Whether this process or another on the same store has issued a Delta route that has not expired.

        Args:
            quoted: the route's side and canonical JSON, joined by `quoted_as`.
            now_ms: the time, Unix milliseconds.

        Raises:
            StoreUnavailable: this process does not know the route, and the store does not answer.
        """
        return await self._look([hashlib.sha256(quoted).digest()], now_ms) is not None

    async def first_issued(self, quoted: Sequence[bytes], now_ms: int) -> int | None:
        """Return the index of the first route that is issued and not expired (`is_issued`); None without one.

        On a store that processes can share, the method looks again until ISSUED_ROUTES_SHOWN_S are over. The
        pauses double, so that a request with invented routes causes at most five reads.

        Args:
            quoted: the side and the canonical JSON of each route, joined by `quoted_as`.

        Raises:
            StoreUnavailable: this process does not know the routes, and the store does not answer.
        """
        digests = [hashlib.sha256(each).digest() for each in quoted]
        left_s = ISSUED_ROUTES_SHOWN_S if self._store.is_shareable else 0.0
        pause_s = ISSUED_ROUTES_EVERY_S
        while (found := await self._look(digests, now_ms)) is None and left_s > 0:
            await trio.sleep(min(pause_s, left_s))
            left_s -= pause_s
            pause_s *= 2
        return found

    async def _look(self, digests: Sequence[bytes], now_ms: int) -> int | None:
        """Return the index of the first digest of an issued route, in memory or else in the store."""
        for at, digest in enumerate(digests):
            if self._kept.get(digest, 0) > now_ms:
                return at
        found = await self._store.read(*[by(ISSUED_ROUTE, digest) for digest in digests])
        for at, rows in enumerate(found):
            if any(row_of(ISSUED_ROUTE, row).expires_ms > now_ms for row in rows):
                return at
        return None

    async def run(self) -> None:
        """Write the digests of issued routes to the store in batches, until cancelled."""
        while True:
            await self._work.wait()
            await trio.sleep(ISSUED_ROUTES_EVERY_S)
            try:
                await self.flush()
            except StoreUnavailable as error:
                _log.warning("issued routes wait for the store", reason=error.detail)
                await trio.sleep(ISSUED_ROUTES_PAUSE_S)

    async def run_sweeps(self, now_ms: Callable[[], int]) -> None:
        """Remove the digests of expired routes from the store at intervals, until cancelled.

        Args:
            now_ms: returns the time, Unix milliseconds.
        """
        while True:
            await trio.sleep(ISSUED_ROUTES_SWEEP_EVERY_S)
            found = limits.VENUE_ISSUED_BATCH_MAX
            try:
                while found == limits.VENUE_ISSUED_BATCH_MAX:
                    found = await self.sweep(now_ms())
                    await trio.sleep(ISSUED_ROUTES_EVERY_S)
            except StoreUnavailable as error:
                _log.warning("expired routes wait for the store", reason=error.detail)

    async def sweep(self, now_ms: int) -> int:
        """Remove from the store a batch of digests of routes that expired over a minute ago.

        Returns:
            The number of expired rows found, including routes that were issued again since.

        Raises:
            StoreUnavailable: the store does not answer.
        """
        query = expired_routes(now_ms - _MINUTE_MS, limits.VENUE_ISSUED_BATCH_MAX)
        (rows,) = await self._store.read(query)
        found = [row_of(ISSUED_ROUTE, row) for row in rows]
        expired = [row for row in found if self._kept.get(row.digest, 0) <= now_ms]  # not issued again
        if expired:
            await self._write([drop(ISSUED_ROUTE, row) for row in expired])
            self._swept += len(expired)
        return len(found)

    async def flush(self) -> None:
        """Write to the store all digests of issued routes that wait in memory.

        Raises:
            StoreUnavailable: the store does not answer; unwritten digests keep waiting.
        """
        while self._waiting:
            count = min(len(self._waiting), limits.VENUE_ISSUED_BATCH_MAX)
            batch = [self._waiting.popleft() for _ in range(count)]
            newest = {row.digest: (row, is_again) for row, is_again in batch}
            try:
                await self._write_routes([*newest.values()])
            except BaseException:
                self._waiting.extendleft(reversed(batch))
                raise
            self._written += len(newest)
        # Nothing is awaited since the queue was found empty: a later `add` sets the new event.
        self._work = trio.Event()

    def statistics(self) -> IssuedStatistics:
        """Return the counts of digests in memory, waiting, written, never written and removed."""
        return IssuedStatistics(
            len(self._kept), len(self._waiting), self._written, self._left_out, self._swept
        )

    async def _write_routes(self, rows: Sequence[tuple[IssuedRoute, bool]]) -> None:
        """Write rows of issued routes to the store, in place of stored rows of the same digests.

        Args:
            rows: pairs of (row, whether this process has kept the row's digest before). If the second value
                is False for all rows, a plain insert of all rows is tried, which fails if another process has
                issued one of the routes. Otherwise, or after a failed insert, the stored rows of these
                digests are replaced.
        """
        is_new = all(not is_again for _, is_again in rows)
        if is_new:
            outcome = await self._store.write(Unit(tuple([new(ISSUED_ROUTE, row) for row, _ in rows])))
            if isinstance(outcome, Done):
                return
        await self._write(
            [change for row, _ in rows for change in (drop(ISSUED_ROUTE, row), put(ISSUED_ROUTE, row))]
        )

    async def _write(self, changes: Sequence[Change]) -> None:
        outcome = await self._store.write(Unit(tuple(changes)))
        if not isinstance(outcome, Done):
            raise StoreError(f"issued routes were not written: {outcome}")

    def _forget(self, now_ms: int) -> None:
        kept = self._kept
        for _ in range(_SWEPT):
            oldest = next(iter(kept))
            if kept[oldest] > now_ms and len(kept) <= self._kept_max:
                return
            del kept[oldest]
