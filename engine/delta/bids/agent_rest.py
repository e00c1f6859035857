"""Which agents rest: those that win and do not deliver, that lie, and that answer nonsense or nothing. Pure.

    wins, and the settlement fails, or brings less than it did in the simulation         --> a strike
    a promise that the simulation belies                                                 --> a strike
    settlements fail that ran code of owners', of soft_faults_max orders without a delivery --> a strike
    malformed or refused answers, soft_faults_max without a good one                     --> a strike
    of the last AGENT_REVERTS_JUDGED bids over AGENT_REVERTS_MAX, on orders of several
    owners, failed in the simulation where another agent's did not, and none was settled --> a strike
    a strike     rests for rest_ms * 2^(strikes - 1), at most rest_ms_max
    a delivery   takes a strike back, and so does rest_ms_max without one

An agent that is late, or cannot be reached, rests as well, because others' orders wait for it, but is not
struck: at most slow_ms_max, until its next good answer. It is asked meanwhile where nobody else can be.

A fault while it rests already, of what was asked for before, is counted and lengthens nothing.

Source: ARCHITECTURE.md, "Auction"; choices.md.
Choice: Every strike weighs the same whoever caused the failed settlement: the first rest is short, and the
    next delivery offsets it.
Choice: An owner's contract can pass a simulation and fail the mined settlement unseen: an agent that never
    delivers rests nonetheless, an agent that delivers does not.
Choice: A settlement that brings over AGENT_DRIFT_BPS less than its simulation a moment before is a strike
    even if it keeps its promise: a contract that detects simulations is not trusted.
"""

from collections import Counter, deque
from enum import StrEnum

from msgspec import Struct

from ....config import limits, timeouts


class AgentFault(StrEnum):
    """What an agent did wrong."""

    REVERTED = "reverted"
    IN_DOUBT = "inDoubt"
    SETTLED_BELOW = "settledBelow"
    SIMULATION_MISMATCH = "simulationMismatch"
    MALFORMED = "malformed"
    LATE = "late"
    REFUSED = "refused"
    UNAVAILABLE = "unavailable"
    WASTE = "waste"


STRIKES = frozenset(
    {AgentFault.REVERTED, AgentFault.SETTLED_BELOW, AgentFault.SIMULATION_MISMATCH, AgentFault.WASTE}
)
"""Faults that are a strike at once."""

SLOW = frozenset({AgentFault.LATE, AgentFault.UNAVAILABLE})
"""Faults that are no strike, however many there are."""

_DOUBLINGS_MAX = 16


class AgentReport(Struct, frozen=True):
    """How an agent does on one chain.

    Attributes:
        answers: that were good.
        delivered: settlements of its bids that went through.
        faults: kind -> how many, since the start.
        strikes: that its next rest is reckoned from.
        rests_until_ms: Unix milliseconds; 0 where it does not rest.
        orders_max: that it is asked about at a time.
        is_slow: it rests for lateness: it is asked where nobody else can be.
    """

    answers: int
    delivered: int
    faults: dict[str, int]
    strikes: int
    rests_until_ms: int
    orders_max: int = limits.AGENT_ORDERS_AT_FIRST
    is_slow: bool = False


class AgentRest:
    """One agent on one chain.

    Args:
        rest_ms: of a first strike; rest_ms_max: the longest; slow_ms_max: for lateness.
        soft_faults_max: of answers, in a row, that are a strike, or for which it rests.
    """

    def __init__(
        self,
        rest_ms: int,
        rest_ms_max: int,
        soft_faults_max: int = limits.AGENT_SOFT_FAULTS_MAX,
        slow_ms_max: int = round(timeouts.AGENT_SLOW_REST_S * 1_000),
    ) -> None:
        self._rest_ms = rest_ms
        self._rest_ms_max = rest_ms_max
        self._soft_faults_max = soft_faults_max
        self._faults: Counter[str] = Counter()
        self._answers = self._delivered = 0
        self._soft_in_row = self._strikes = 0
        self._doubted: set[str] = set()
        self._judged: deque[tuple[bytes, bool]] = deque(maxlen=limits.AGENT_REVERTS_JUDGED)
        self._decays_at_ms = 0
        self._until_ms = 0
        self._slow_ms_max = min(slow_ms_max, rest_ms_max)
        self._slow_rests = 0
        self._is_slow = False

    def answered(self) -> None:
        """It answered in time and in order, with bids or with none."""
        self._answers += 1
        self._soft_in_row = self._slow_rests = 0
        if self._is_slow:
            self._is_slow = False
            self._until_ms = 0

    def delivered(self, now_ms: int) -> None:
        """The settlement of a bid of its went through."""
        self._decay(now_ms)
        self._delivered += 1
        self._doubted.clear()
        self._judged.clear()
        self._strikes = max(0, self._strikes - 1)

    def simulated(self, owner: bytes, *, is_good: bool) -> bool:
        """A bid was simulated on whose order another agent's bid would be settled.

        Args:
            owner: of the order.
            is_good: this one would be settled too.

        Returns:
            Whether this is one failure too many: the fault is WASTE then.
        """
        self._judged.append((owner, is_good))
        bad = [of for of, was_good in self._judged if not was_good]
        if len(bad) <= limits.AGENT_REVERTS_MAX or len(set(bad)) < limits.AGENT_REVERTS_OWNERS:
            return False
        self._judged.clear()
        return True

    def failed(self, fault: AgentFault, now_ms: int, order_hash: str = "") -> int:
        """It did wrong.

        Args:
            order_hash: of the order, where the fault is IN_DOUBT.

        Returns:
            Until when it rests because of this, Unix milliseconds; 0 for not at all.
        """
        self._decay(now_ms)
        self._faults[fault.value] += 1
        if self.is_resting(now_ms) and (fault in SLOW or not self._is_slow):
            return 0
        if fault is AgentFault.IN_DOUBT:
            self._doubted.add(order_hash)
            if len(self._doubted) < self._soft_faults_max:
                return 0
        elif fault not in STRIKES:
            self._soft_in_row += 1
            if self._soft_in_row < self._soft_faults_max:
                return 0
        self._soft_in_row = 0
        self._doubted.clear()
        if fault in SLOW:
            self._is_slow = True
            self._soft_in_row = self._soft_faults_max - 1  # the first that is late again
            rest_ms = min(self._rest_ms << min(self._slow_rests, _DOUBLINGS_MAX), self._slow_ms_max)
            self._slow_rests += 1
            self._until_ms = now_ms + rest_ms
            return self._until_ms
        self._is_slow = False
        self._strikes = min(self._strikes + 1, limits.AGENT_STRIKES_MAX)
        self._until_ms = now_ms + min(self._rest_ms << (self._strikes - 1), self._rest_ms_max)
        self._decays_at_ms = self._until_ms + self._rest_ms_max
        return self._until_ms

    def is_resting(self, now_ms: int) -> bool:
        """Whether it is not asked now."""
        return now_ms < self._until_ms

    def rests_until_ms(self, now_ms: int) -> int:
        """Unix milliseconds; 0 where it does not rest."""
        return self._until_ms if self.is_resting(now_ms) else 0

    def is_slow(self, now_ms: int) -> bool:
        """Whether it rests for lateness alone."""
        return self._is_slow and self.is_resting(now_ms)

    def report(self, now_ms: int) -> AgentReport:
        """How it does."""
        self._decay(now_ms)
        return AgentReport(
            self._answers,
            self._delivered,
            dict(self._faults),
            self._strikes,
            self.rests_until_ms(now_ms),
            is_slow=self.is_slow(now_ms),
        )

    def _decay(self, now_ms: int) -> None:
        """Take back what has been long ago."""
        while self._strikes and now_ms >= self._decays_at_ms:
            self._strikes -= 1
            self._decays_at_ms += self._rest_ms_max
