"""Cool-downs (rests) of agents that fail to settle won bids, break promises or do not answer. Pure.

    a settlement fails, or brings less than its simulation                               --> a strike
    a simulation breaks the bid's promise                                                --> a strike
    settlements of soft_faults_max orders fail, perhaps through an owner or a bridge, and
    another agent then settles for the same owners, without a delivery in between        --> a strike
    soft_faults_max faulty answers in a row, the last one malformed or refused           --> a strike
    over AGENT_REVERTS_MAX of the last AGENT_REVERTS_JUDGED bids, on orders of several
    owners, fail in a simulation that another agent's bid passes, without a delivery     --> a strike
    a strike     a cool-down of rest_ms * 2^(strikes - 1), at most rest_ms_max
    a delivery   takes a strike back, as does a time of rest_ms_max without a strike

A delivery is a settlement of the agent's bid that succeeds. An agent that is late, or cannot be reached, has
a cool-down without a strike, because orders wait for it: until its next readable answer, at most slow_ms_max.
In this time it is asked only about orders for which no other agent can be asked.

A fault during a cool-down, from an earlier question, is counted and does not lengthen the cool-down; in a
cool-down for lateness this holds for lateness alone.

Source: ARCHITECTURE.md, "Auction"; choices.md.
Choice: Every strike weighs the same whoever caused the failed settlement: the first rest is short, and the
    next delivery offsets it.
Choice: An owner's contract can pass a simulation and fail the mined settlement unseen: that counts against
    the agent only once another agent has settled for that owner, once for each owner, and never rests the
    last agent that does not rest.
Choice: A settlement that brings over AGENT_DRIFT_BPS less than its simulation a moment before is a strike
    even if it keeps its promise: a contract that detects simulations is not trusted.
"""

from collections import Counter, deque
from enum import StrEnum

from msgspec import Struct

from .....config import limits, timeouts


class AgentFault(StrEnum):
    """Kind of an agent's fault, for which the agent may get a strike or a cool-down.

    IN_DOUBT is a failed settlement that an owner might have caused, had another agent not settled for this
    owner since; WASTE is too many bids that fail in
    simulations.
    """

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
"""Faults of an agent that count as a strike, and so start a cool-down, at the first occurrence."""

SLOW = frozenset({AgentFault.LATE, AgentFault.UNAVAILABLE})
"""Faults of lateness, which cause a cool-down of the agent but never a strike.

A strike lengthens later cool-downs.
"""

_DOUBLINGS_MAX = 16


class AgentReport(Struct, frozen=True):
    """Report of an agent's conduct on one chain: its answers, settlements, faults and cool-down.

    Attributes:
        answers: readable answers in time, with or without bids.
        delivered: settlements of its bids that succeeded.
        faults: number of faults by kind, since the start of the process.
        strikes: strikes that count now; each doubles the length of the next cool-down.
        rests_until_ms: end of the cool-down, Unix milliseconds; 0 outside a cool-down.
        orders_max: most orders that the agent is asked about at a time.
        is_slow: whether the cool-down is for lateness: the agent is asked only about orders for which no
            other agent can be asked.
    """

    answers: int
    delivered: int
    faults: dict[str, int]
    strikes: int
    rests_until_ms: int
    orders_max: int = limits.AGENT_ORDERS_AT_FIRST
    is_slow: bool = False


class AgentRest:
    """Faults, strikes and cool-downs (rests) of one agent on one chain.

    A strike, recorded for a serious fault or for several minor faults, starts a cool-down, whose length
    doubles with each strike that still counts.

    Args:
        rest_ms: length of the cool-down after a first strike, milliseconds.
        rest_ms_max: longest cool-down, milliseconds.
        slow_ms_max: longest cool-down for lateness, milliseconds.
        soft_faults_max: number of faulty answers in a row, or of orders with the fault IN_DOUBT, that cause a
            strike; if the last faulty answer was late or missing, a cool-down for lateness instead.
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
        """Record the agent's readable answer in time, with or without bids; end a cool-down for lateness."""
        self._answers += 1
        self._soft_in_row = self._slow_rests = 0
        if self._is_slow:
            self._is_slow = False
            self._until_ms = 0

    def delivered(self, now_ms: int) -> None:
        """Record that a settlement of the agent's bid succeeded, and remove one strike."""
        self._decay(now_ms)
        self._delivered += 1
        self._doubted.clear()
        self._judged.clear()
        self._strikes = max(0, self._strikes - 1)

    def simulated(self, owner: bytes, *, is_good: bool) -> bool:
        """Record whether the agent's bid on an order passed the simulation.

        Call this only if some agent's bid on the order passed, so that the order cannot cause a failure.

        Args:
            owner: owner of the order, 20 bytes.
            is_good: whether this agent's bid passed.

        Returns:
            Whether the agent's failures among its last bids, on orders of several owners, now exceed the
            limit: the caller then records the fault WASTE.
        """
        self._judged.append((owner, is_good))
        bad = [of for of, was_good in self._judged if not was_good]
        if len(bad) <= limits.AGENT_REVERTS_MAX or len(set(bad)) < limits.AGENT_REVERTS_OWNERS:
            return False
        self._judged.clear()
        return True

    def failed(self, fault: AgentFault, now_ms: int, order_hash: str = "", *, may_rest: bool = True) -> int:
        """Record a fault of the agent, and start a cool-down if the fault requires one.

        Args:
            order_hash: hash of the order, as text, if the fault is IN_DOUBT (the failed settlement may be an
                owner's fault).
            may_rest: whether the fault may cause a cool-down; if not, it is only counted.

        Returns:
            End of the cool-down that this fault causes, Unix milliseconds; 0 if it causes none.
        """
        self._decay(now_ms)  # an expired strike does not lengthen the next cool-down
        self._faults[fault.value] += 1
        # A fault during a cool-down comes from an earlier question, and does not lengthen the cool-down. Any
        # other fault than lateness may still turn a cool-down for lateness into a cool-down for a strike.
        if self.is_resting(now_ms) and (fault in SLOW or not self._is_slow):
            return 0
        if not may_rest:
            return 0
        if fault is AgentFault.IN_DOUBT:
            self._doubted.add(order_hash)
            if len(self._doubted) < self._soft_faults_max:
                return 0
        elif fault not in STRIKES:
            self._soft_in_row += 1
            if self._soft_in_row < self._soft_faults_max:
                return 0
        # The cool-down pays for the faults that led to it: later faults are counted from nothing.
        self._soft_in_row = 0
        self._doubted.clear()
        if fault in SLOW:
            self._is_slow = True
            self._soft_in_row = self._soft_faults_max - 1  # the next late answer starts a cool-down at once
            rest_ms = min(self._rest_ms << min(self._slow_rests, _DOUBLINGS_MAX), self._slow_ms_max)
            self._slow_rests += 1
            self._until_ms = now_ms + rest_ms
            return self._until_ms
        self._is_slow = False
        self._strikes = min(self._strikes + 1, limits.AGENT_STRIKES_MAX)
        self._until_ms = now_ms + min(self._rest_ms << (self._strikes - 1), self._rest_ms_max)
        # A strike expires only after the cool-down: an agent that is not asked cannot prove itself.
        self._decays_at_ms = self._until_ms + self._rest_ms_max
        return self._until_ms

    def is_resting(self, now_ms: int) -> bool:
        """Whether the agent is in a cool-down at `now_ms`, Unix milliseconds."""
        return now_ms < self._until_ms

    def rests_until_ms(self, now_ms: int) -> int:
        """Return the end of the agent's cool-down, Unix milliseconds; 0 if the agent is in no cool-down."""
        return self._until_ms if self.is_resting(now_ms) else 0

    def is_slow(self, now_ms: int) -> bool:
        """Whether the agent is in a cool-down for lateness, and not for a strike."""
        return self._is_slow and self.is_resting(now_ms)

    def report(self, now_ms: int) -> AgentReport:
        """Return a report of the agent's answers, settlements, faults and cool-down so far."""
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
        """Remove the strikes that have expired: one per `rest_ms_max` since the last cool-down's end."""
        while self._strikes and now_ms >= self._decays_at_ms:
            self._strikes -= 1
            self._decays_at_ms += self._rest_ms_max
