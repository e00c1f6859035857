"""Encoded answers that callers with equal requests share, so that many who ask cost as much as one.

    fresh answer --> it                 another call makes it --> its answer, once it is made
    none --> made, kept until its time or `clear`

A call that waits in vain, since the other has failed or was cancelled, makes the answer itself: a fault of
one caller's request fails no other's, and no call waits twice.
"""

from collections.abc import Awaitable, Callable, Hashable

import trio
from msgspec import Struct

from ....config.limits import SHARED_ANSWERS_MAX


class _Kept(Struct, frozen=True):
    """An answer's body, and the time until which it is fresh, Unix milliseconds."""

    body: bytes
    until_ms: int


class SharedAnswers:
    """Answers of one endpoint by request; at most SHARED_ANSWERS_MAX, of which the oldest goes first.

    Args:
        wall_ms: returns the time, Unix milliseconds.
    """

    def __init__(self, wall_ms: Callable[[], int]) -> None:
        self._wall_ms = wall_ms
        self._kept: dict[Hashable, _Kept] = {}
        self._making: dict[Hashable, trio.Event] = {}
        self._cleared = 0

    def clear(self) -> None:
        """Forget all answers, and those that calls are making now: these go to their own callers alone."""
        self._kept.clear()
        self._cleared += 1

    async def body(self, key: Hashable, life_ms: int, make: Callable[[], Awaitable[bytes]]) -> bytes:
        """Return the kept answer to a request, or make it.

        Args:
            key: equal for requests that get the same answer.
            life_ms: time for which a made answer is kept, milliseconds.
            make: makes the answer's body; its errors are this call's.
        """
        if (found := self._fresh(key)) is not None:
            return found
        making = self._making.get(key)
        if making is not None:
            await making.wait()
            if (found := self._fresh(key)) is not None:
                return found
        cleared, done = self._cleared, trio.Event()
        # Calls that come meanwhile wait for the first maker alone; a second makes its own answer beside it.
        is_first = self._making.setdefault(key, done) is done
        try:
            body = await make()
            if cleared == self._cleared:  # else the answer is that of a time before `clear`
                self._keep(key, _Kept(body, self._wall_ms() + life_ms))
        finally:
            # After `_keep`, without an await in between: the calls that wait find the answer.
            if is_first:
                del self._making[key]
                done.set()
        return body

    def _fresh(self, key: Hashable) -> bytes | None:
        kept = self._kept.get(key)
        return kept.body if kept is not None and self._wall_ms() < kept.until_ms else None

    def _keep(self, key: Hashable, kept: _Kept) -> None:
        self._kept.pop(key, None)
        if len(self._kept) >= SHARED_ANSWERS_MAX:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = kept
