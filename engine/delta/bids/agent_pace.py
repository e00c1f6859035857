"""How many orders an agent is asked about at a time, so that it answers in time. Pure.

    in time, where it was asked about as many as it may be
        after half of the round at most   --> as many more
        later                             --> an eighth more
    in time, some orders not reached      --> as many as it reached
    late                                  --> half as many
    no answer, for whatever reason        --> one order at a time until there is one, with pauses that double,
                                              up to AGENT_PROBE_S

What was asked before a cut does not cut again: all of it was of the size that was too large.

An agent may use the whole round: late answers, or unfinished ones, reduce its next orders.

Source: ARCHITECTURE.md, "Auction".
"""

from math import inf

from msgspec import Struct

from ....config.limits import AGENT_ORDERS_AT_FIRST, AGENT_ORDERS_MAX
from ....config.timeouts import AGENT_PROBE_S, AGENT_PROBE_S_FIRST

_DOUBLINGS_MAX = 16


class AgentQuestion(Struct, frozen=True):
    """What an agent is asked.

    Attributes:
        orders: how many.
        asked_at: seconds, on the clock of `AgentPace`.
        is_full: it was about as many orders then as it may be.
    """

    orders: int
    asked_at: float
    is_full: bool


class AgentPace:
    """One agent on one chain. Times are seconds of a clock that never goes back.

    Args:
        round_s: of a round.

    Attributes:
        orders_max: that it is asked about at a time, as long as it answers.
        asks_again_at: after a failure it is asked nothing before.
    """

    def __init__(self, round_s: float) -> None:
        self._quick_s = round_s / 2
        self.orders_max = AGENT_ORDERS_AT_FIRST
        self.asks_again_at = -inf
        self._open = 0
        self._failures = 0
        self._cut_at = -inf

    @property
    def is_failing(self) -> bool:
        """Whether its last question has no answer."""
        return self._failures > 0

    def room(self, now: float) -> int:
        """Orders that it may be asked about now, beside those that it is asked about."""
        if not self._failures:
            return max(0, self.orders_max - self._open)
        return 1 if not self._open and now >= self.asks_again_at else 0

    def asked(self, orders: int, now: float) -> AgentQuestion:
        """It is asked about so many orders."""
        self._open += orders
        return AgentQuestion(orders, now, self._open >= self.orders_max)

    def answered(self, question: AgentQuestion, now: float, not_reached: int = 0) -> None:
        """It answered in time.

        Args:
            not_reached: orders of the question for which it says that it had no time.
        """
        self._open -= question.orders
        self._failures = 0
        if not_reached:
            self._cut(question, now, max(0, question.orders - not_reached))
        elif question.is_full:
            more = question.orders if now - question.asked_at <= self._quick_s else question.orders // 8
            self.orders_max = min(self.orders_max + max(1, more), AGENT_ORDERS_MAX)

    def failed(self, question: AgentQuestion, now: float, *, is_late: bool) -> None:
        """It gave no answer that can be read, or none in time."""
        self._open -= question.orders
        if is_late and not self._failures:
            self._cut(question, now, question.orders // 2)
        self._failures += 1
        pause_s = AGENT_PROBE_S_FIRST * 2 ** min(self._failures - 1, _DOUBLINGS_MAX)
        self.asks_again_at = max(now, question.asked_at + min(pause_s, AGENT_PROBE_S))

    def dropped(self, question: AgentQuestion) -> None:
        """It was not asked in the end."""
        self._open -= question.orders

    def _cut(self, question: AgentQuestion, now: float, managed: int) -> None:
        """Fewer orders, in the share of a question that was managed."""
        if question.asked_at >= self._cut_at:
            self.orders_max = max(1, self.orders_max * managed // question.orders)
            self._cut_at = now
