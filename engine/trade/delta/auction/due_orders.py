"""Queues of orders due for an auction round, and their assignment to rounds by agents' capacity. Pure.

    an order enters a round  if all of its agents that are awake and answering have capacity
    after patience_s         if any of its agents that are awake has capacity: a slow agent delays no order
    if none is awake         with its agents that are in a cool-down for lateness alone, in a separate round

An agent is awake if it is not in a cool-down.

New orders and orders of earlier rounds take turns, so that neither kind waits for all of the other.

Source: ARCHITECTURE.md, "Auction".
"""

from collections.abc import Iterator, Mapping
from math import inf

from msgspec import Struct

from .....config.limits import AGENT_ORDERS_MAX

AgentNames = tuple[str, ...]
"""Names of the agents that may bid for an order, or that an auction round asks about it."""

Assignment = dict[bytes, AgentNames]
"""Orders of an auction round: the names of the agents to ask about each, by order hash."""


class AgentRoom(Struct):
    """Capacity of an agent that may be asked for bids now.

    Attributes:
        room: number of further orders that the agent may be asked about now.
        is_slow: whether the agent is in a cool-down for lateness, and so is asked only about orders for which
            no other agent can be asked.
        is_failing: whether the agent's last request failed, so that orders do not wait for its capacity.
    """

    room: int
    is_slow: bool = False
    is_failing: bool = False


class _AgentQueue:
    """Queue of the due orders that the same agents may bid for.

    Attributes:
        by_turn: two queues, new orders at index 0 and orders of earlier rounds at index 1; each maps order
            hash to the time since which the order is due, seconds.
        turn: index in `by_turn` of the queue whose first order is taken next.
    """

    def __init__(self, agents: AgentNames) -> None:
        self.agents = agents
        self.by_turn: list[dict[bytes, float]] = [{}, {}]  # new orders; orders of earlier rounds
        self.turn = 0

    def __len__(self) -> int:
        return sum(map(len, self.by_turn))

    def heads(self) -> list[tuple[int, bytes, float]]:
        """Return the first order of each non-empty queue in `by_turn`, that of the queue `turn` first.

        Returns:
            (index in `by_turn`, order hash, time since which the order is due) of each order.
        """
        return [
            (kind, *next(iter(self.by_turn[kind].items())))
            for kind in (self.turn, 1 - self.turn)
            if self.by_turn[kind]
        ]


class DueOrders:
    """Orders that are due for an auction round, in one queue for each set of agents that may bid.

    Times are seconds of a clock that never goes back.

    Args:
        patience_s: longest time that an order waits until all of its agents have capacity, seconds; after
            that, any agent with capacity suffices.
    """

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._lines: dict[AgentNames, _AgentQueue] = {}
        self._line_of: dict[bytes, _AgentQueue] = {}

    def __len__(self) -> int:
        return len(self._line_of)

    def __contains__(self, order_hash: bytes) -> bool:
        return order_hash in self._line_of

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._line_of)

    def add(self, order_hash: bytes, agents: AgentNames, now: float, *, is_new: bool) -> None:
        """Queue an order that is due from now on; an order that is queued already keeps its place.

        Args:
            agents: names of the agents that may bid for the order.
            now: present time, seconds.
            is_new: whether the order joins the new orders, or else the orders of earlier rounds.
        """
        if order_hash in self._line_of:
            return
        line = self._lines.get(agents)
        if line is None:
            line = self._lines[agents] = _AgentQueue(agents)
        line.by_turn[not is_new][order_hash] = now
        self._line_of[order_hash] = line

    def remove(self, order_hash: bytes) -> bool:
        """Remove an order from its queue; return whether it was queued."""
        line = self._line_of.pop(order_hash, None)
        if line is None:
            return False
        for orders in line.by_turn:
            orders.pop(order_hash, None)
        if not len(line):
            del self._lines[line.agents]
        return True

    def rounds(self, standing: Mapping[str, AgentRoom], now: float, orders_max: int) -> list[Assignment]:
        """Remove the orders for which agents have capacity, and assign them to auction rounds.

        Args:
            standing: capacities of the agents that may be asked, by name; reduced in place.
            now: present time, seconds.
            orders_max: limit of orders in all rounds together.

        Returns:
            At most two rounds: one with the agents that are awake, one with the agents in a cool-down for
            lateness. An agent is awake if it is not in a cool-down.
        """
        awake = {name for name, room in standing.items() if not room.is_slow}
        # A copy: `_next` deletes a queue from `_lines` when it takes the queue's last order.
        assignments: dict[bool, Assignment] = {False: {}, True: {}}
        lines = list(self._lines.values())
        left = min(orders_max, AGENT_ORDERS_MAX)
        while lines and left > 0:
            able: list[_AgentQueue] = []
            # One order of each queue in turn, so that queues with an agent in common share its capacity. A
            # queue without an order to take now has none later in this call either: capacities only fall.
            for line in lines:
                is_slow = awake.isdisjoint(line.agents)
                names = [name for name in line.agents if name in (standing if is_slow else awake)]
                taken = self._next(line, names, standing, now)
                if taken is None:
                    continue
                assignments[is_slow] |= taken
                able.append(line)
                left -= 1
                if left <= 0:
                    break
            lines = [line for line in able if len(line)]
        return [assignment for assignment in assignments.values() if assignment]

    def next_at(self, standing: Mapping[str, AgentRoom], now: float) -> float:
        """Return the earliest time at which an order will have waited `patience_s`, seconds of the clock.

        From that time, one agent with capacity suffices for the order. The result considers the first orders
        of the queues for which some agent has capacity now; inf without such an order.
        """
        return min(
            (
                since + self._patience_s
                for line in self._lines.values()
                if any(standing[name].room > 0 for name in line.agents if name in standing)
                for _, _, since in line.heads()
                if since + self._patience_s > now
            ),
            default=inf,
        )

    def _next(
        self, line: _AgentQueue, names: list[str], standing: Mapping[str, AgentRoom], now: float
    ) -> Assignment | None:
        """Remove a queue's next order and assign its agents with capacity; None if its orders have to wait.

        Args:
            names: agents of the queue that may be asked.
            standing: capacities of agents, by name; reduced in place.
            now: present time, seconds.
        """
        with_room = tuple([name for name in names if standing[name].room > 0])
        if not with_room:
            return None
        has_all = all(name in with_room or standing[name].is_failing for name in names)
        for kind, order_hash, since in line.heads():
            if has_all or now - since >= self._patience_s:
                self.remove(order_hash)
                line.turn = 1 - kind
                for name in with_room:
                    standing[name].room -= 1
                return {order_hash: with_room}
        return None
