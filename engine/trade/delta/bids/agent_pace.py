"""Adapts the number of orders for which an agent is asked to bid at a time to the agent's speed. Pure.

The limit is the most orders in the agent's open questions, i.e. requests for bids. An answer changes it:

    in time, with as many open orders as the limit allows
        within half of the round          --> the limit grows by the number of orders in the question
        later                             --> the limit grows by an eighth of this number
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

from .....config.limits import AGENT_ORDERS_AT_FIRST, AGENT_ORDERS_MAX
from .....config.timeouts import AGENT_PROBE_S, AGENT_PROBE_S_FIRST

_DOUBLINGS_MAX = 16


class AgentQuestion(Struct, frozen=True):
    """A request for bids that was sent to an agent, or is about to be sent.

    Attributes:
        orders: number of orders in the request.
        asked_at: time of the request, seconds on the clock of `AgentPace`.
        is_full: whether, with this request, the orders in all open requests to the agent reached the limit
            `orders_max` of `AgentPace`.
    """

    orders: int
    asked_at: float
    is_full: bool


class AgentPace:
    """Limit of the number of orders that one agent on one chain is asked about at a time.

    Times are seconds of a clock that never goes back.

    Args:
        round_s: length of a round, seconds.

    Attributes:
        orders_max: limit of the number of orders in all open requests together. The limit is suspended when a
            request gets no readable answer in time: the agent is then asked about one order at a time until
            the next answer.
        asks_again_at: earliest time of the first request after a request without a readable answer in time.
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
        """Whether the agent gave no readable answer in time to the request that ended last."""
        return self._failures > 0

    def room(self, now: float) -> int:
        """Return the number of further orders about which the agent may be asked at the time `now`."""
        if not self._failures:
            return max(0, self.orders_max - self._open)
        return 1 if not self._open and now >= self.asks_again_at else 0

    def asked(self, orders: int, now: float) -> AgentQuestion:
        """Record a request for bids as open.

        Args:
            orders: number of orders in the request.
            now: time of the request, seconds of the clock.
        """
        self._open += orders
        return AgentQuestion(orders, now, self._open >= self.orders_max)

    def answered(self, question: AgentQuestion, now: float, not_reached: int = 0) -> None:
        """Record an answer in time; raise or lower the number of orders that the agent is asked about.

        Args:
            not_reached: number of the request's orders for which the agent reports that it had no time.
        """
        self._open -= question.orders
        self._failures = 0
        if not_reached:
            self._cut(question, now, max(0, question.orders - not_reached))
        elif question.is_full:
            more = question.orders if now - question.asked_at <= self._quick_s else question.orders // 8
            self.orders_max = min(self.orders_max + max(1, more), AGENT_ORDERS_MAX)

    def failed(self, question: AgentQuestion, now: float, *, is_late: bool) -> None:
        """Record that a request for bids got no readable answer in time, and pause the requests.

        If this answer was late and the answer before was in time, `orders_max` falls to about half.
        """
        self._open -= question.orders
        if is_late and not self._failures:
            self._cut(question, now, question.orders // 2)
        self._failures += 1
        pause_s = AGENT_PROBE_S_FIRST * 2 ** min(self._failures - 1, _DOUBLINGS_MAX)
        self.asks_again_at = max(now, question.asked_at + min(pause_s, AGENT_PROBE_S))

    def dropped(self, question: AgentQuestion) -> None:
        """Undo the record of a request for bids that was not sent after all."""
        self._open -= question.orders

    def _cut(self, question: AgentQuestion, now: float, managed: int) -> None:
        """Reduce `orders_max` to the fraction of a request's orders for which the agent had time.

        A request sent before the last reduction changes nothing.

        Args:
            managed: number of the request's orders for which the agent had time; half of them if the answer
                was late.
        """
        if question.asked_at >= self._cut_at:
            self.orders_max = max(1, self.orders_max * managed // question.orders)
            self._cut_at = now
