"""Bounds on the open streams of one kind (order events, quotes), by caller and in total. Pure.

Choice: A caller has at most 32 streams of each kind (429 beyond); the settings bound the venue's streams
    (503).
"""

from ....config.errors import RateLimited, ServiceUnavailable
from .budgets import STREAMS, STREAMS_OF_CALLER
from .ledger import Charge, Hold, Ledger


class OpenStreams:
    """Counter of the open streams of one kind (order events, quotes), with a bound per caller and in total.

    Args:
        what: name of this kind of streams in error messages, e.g. `quote streams`.
        streams_max: greatest number of open streams, of all callers together.
        ledger: ledger in which open streams count.

    Attributes:
        opened, refused: number of streams opened, and refused because of the bounds.
    """

    def __init__(self, what: str, streams_max: int, ledger: Ledger) -> None:
        self.opened = self.refused = 0
        self._what = what
        self._streams_max = streams_max
        self._ledger = ledger

    def __len__(self) -> int:
        """Number of open streams of all callers."""
        return self._ledger.held(STREAMS, self._what)

    def check(self, caller: str) -> None:
        """Check that the caller may open another stream; the stream itself is not counted yet.

        Raises:
            RateLimited: the caller already has as many open streams as one caller may have.
            ServiceUnavailable: all callers together already have `streams_max` open streams.
        """
        self.leave(self.enter(caller))

    def enter(self, caller: str) -> Hold:
        """Count a stream that a caller has opened, until `leave` ends the returned hold.

        Raises:
            RateLimited, ServiceUnavailable: see `check`.
        """
        hold = self._ledger.take(
            (
                Charge(STREAMS_OF_CALLER, (self._what, caller)),
                Charge(STREAMS, self._what, most=self._streams_max),
            ),
            now_ms=0,  # streams are held, and nothing of them fades
        )
        if isinstance(hold, Hold):
            return hold
        self.refused += 1
        if hold.charge.budget is STREAMS_OF_CALLER:
            raise RateLimited(f"at most {hold.charge.bound} {self._what} of one caller")
        raise ServiceUnavailable(f"too many {self._what}")

    def leave(self, hold: Hold) -> None:
        """Count a stream no more that has ended."""
        self._ledger.free(hold)
