"""Bounds on the open streams of one kind (order events, quotes), by caller, network and in total. Pure.

A reader that does nothing costs its owner nothing. The more streams a network has, the sooner it gets no
more: a network may have as many as are still free. K networks that take all they can leave one part of K + 1
free, and a caller from elsewhere finds as many there. An eighth of the streams is for API keys alone.

Choice: A caller has at most 32 streams of each kind, and a network without an API key as many as are free
    (429 beyond); the settings bound the venue's streams (503).
"""

from ....config.errors import RateLimited, ServiceUnavailable
from .budgets import STREAMS, STREAMS_OF_CALLER, STREAMS_OF_NETWORK
from .ledger import Causer, Charge, Hold, Ledger

_FOR_KEYS = 8
"""One of so many streams is for callers with an API key."""


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

    def check(self, causer: Causer) -> None:
        """Check that the caller may open another stream; the stream itself is not counted yet.

        Raises:
            RateLimited: the caller, or its network, already has as many open streams as it may have.
            ServiceUnavailable: all callers together already have as many open streams as there may be.
        """
        self.leave(self.enter(causer))

    def enter(self, causer: Causer) -> Hold:
        """Count a stream that a caller has opened, until `leave` ends the returned hold.

        Raises:
            RateLimited, ServiceUnavailable: see `check`.
        """
        most = self._streams_max
        charges = [Charge(STREAMS_OF_CALLER, (self._what, causer.account))]
        if causer.network:
            most -= most // _FOR_KEYS
            free = max(most - len(self), 1)  # at least 1: beyond `most`, the charge below is refused
            charges.append(Charge(STREAMS_OF_NETWORK, (self._what, causer.network), most=free))
        charges.append(Charge(STREAMS, self._what, most=most))
        hold = self._ledger.take(charges, now_ms=0)  # streams are held, and nothing of them fades
        if isinstance(hold, Hold):
            return hold
        self.refused += 1
        if hold.charge.budget is STREAMS_OF_CALLER:
            raise RateLimited(f"at most {hold.charge.bound} {self._what} of one caller")
        if hold.charge.budget is STREAMS_OF_NETWORK and len(self) < most:
            raise RateLimited(f"no more {self._what} of one network, of all that are left")
        raise ServiceUnavailable(f"too many {self._what}")

    def leave(self, hold: Hold) -> None:
        """Count a stream no more that has ended."""
        self._ledger.free(hold)
