"""Adapts the number of orders that an agent is asked about at a time to its speed. Pure.

    in time, with as many open orders as the limit allows
        within half of the round          --> the limit grows by the number of orders in the question
        later                             --> by an eighth of it
    in time, some orders not reached      --> the limit falls in the proportion of the orders reached
    late                                  --> the limit falls to a half
    no answer, for any reason             --> one order at a time until the next answer, with pauses that
                                              double, up to AGENT_PROBE_S

A question asked before the limit was lowered does not lower it again, since the question's size followed the
former limit.

An agent may use the whole round: only late or unfinished answers reduce the number of orders that it is asked
about.

Source: ARCHITECTURE.md, "Auction".
"""

from math import inf

from msgspec import Struct

from ....config.limits import AGENT_ORDERS_AT_FIRST, AGENT_ORDERS_MAX
from ....config.timeouts import AGENT_PROBE_S, AGENT_PROBE_S_FIRST

_DOUBLINGS_MAX = 16


class AgentQuestion(Struct, frozen=True):
    """A request for bids that is reserved for or sent to an agent.

    Attributes:
        orders: number of orders in the request.
        asked_at: time of the request, seconds on the clock of `AgentPace`.
        is_full: with this request the orders in the agent's open requests reached its limit.
    """

    orders: int
    asked_at: float
    is_full: bool


class AgentPace:
    """Limit of the orders that one agent on one chain is asked about at a time. Times are seconds of a clock
    that never goes back.

    Args:
        round_s: length of a round, seconds.

    Attributes:
        orders_max: the limit as long as the agent answers; after a failure the agent is asked about one
            order.
        asks_again_at: earliest time of the next question after a failure.
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
        """Whether the agent's last question ended without an answer."""
        return self._failures > 0

    def room(self, now: float) -> int:
        """Return the number of further orders that the agent may be asked about now."""
        if not self._failures:
            return max(0, self.orders_max - self._open)
        return 1 if not self._open and now >= self.asks_again_at else 0

    def asked(self, orders: int, now: float) -> AgentQuestion:
        """Record a question about a number of orders."""
        self._open += orders
        return AgentQuestion(orders, now, self._open >= self.orders_max)

    def answered(self, question: AgentQuestion, now: float, not_reached: int = 0) -> None:
        """Record an answer in time, and raise or lower the limit.

        Args:
            not_reached: orders of the question for which the agent reports that it had no time.
        """
        self._open -= question.orders
        self._failures = 0
        if not_reached:
            self._cut(question, now, max(0, question.orders - not_reached))
        elif question.is_full:
            more = question.orders if now - question.asked_at <= self._quick_s else question.orders // 8
            self.orders_max = min(self.orders_max + max(1, more), AGENT_ORDERS_MAX)

    def failed(self, question: AgentQuestion, now: float, *, is_late: bool) -> None:
        """Record a question without a readable answer in time: pause, and lower the limit if it was late."""
        self._open -= question.orders
        if is_late and not self._failures:
            self._cut(question, now, question.orders // 2)
        self._failures += 1
        pause_s = AGENT_PROBE_S_FIRST * 2 ** min(self._failures - 1, _DOUBLINGS_MAX)
        self.asks_again_at = max(now, question.asked_at + min(pause_s, AGENT_PROBE_S))

    def dropped(self, question: AgentQuestion) -> None:
        """Cancel a recorded question that was not sent."""
        self._open -= question.orders

    def _cut(self, question: AgentQuestion, now: float, managed: int) -> None:
        """Reduce the limit in the proportion of a question's orders that the agent managed."""
        if question.asked_at >= self._cut_at:
            self.orders_max = max(1, self.orders_max * managed // question.orders)
            self._cut_at = now
