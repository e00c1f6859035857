"""Orders that are due, and the rounds that they go into, as their agents have room for them. Pure.

    an order has room        at all of its agents that are awake and answer
    after patience_s         at one of them: who is slow is asked for less, and holds nobody up
    all that are awake rest  at those that rest for lateness alone, in rounds of their own

New orders and those that were asked for before go in turn, so that neither is behind all of the other.

Source: ARCHITECTURE.md, "Auction".
"""

from collections.abc import Iterator, Mapping
from math import inf

from msgspec import Struct

from ....config.limits import AGENT_ORDERS_MAX

AgentNames = tuple[str, ...]
"""Of agents: those that may bid for an order, or are asked for it."""

Assignment = dict[bytes, AgentNames]
"""A round: order hash -> who is asked for it."""


class AgentRoom(Struct):
    """An agent that may be asked now, or as soon as there is room.

    Attributes:
        room: orders that it may be asked about now.
        is_slow: it rests for lateness: it is asked only where nobody else can be.
        is_failing: it did not answer lately: nobody waits for room at it.
    """

    room: int
    is_slow: bool = False
    is_failing: bool = False


class _AgentQueue:
    """Due orders of the same agents: order hash -> since when, seconds."""

    def __init__(self, agents: AgentNames) -> None:
        self.agents = agents
        self.by_turn: list[dict[bytes, float]] = [{}, {}]  # new ones; those asked for before
        self.turn = 0

    def __len__(self) -> int:
        return sum(map(len, self.by_turn))

    def heads(self) -> list[tuple[int, bytes, float]]:
        """The first order of each kind, the one whose turn it is first."""
        return [
            (kind, *next(iter(self.by_turn[kind].items())))
            for kind in (self.turn, 1 - self.turn)
            if self.by_turn[kind]
        ]


class DueOrders:
    """See the module. Times are seconds of a clock that never goes back.

    Args:
        patience_s: an order waits so long for room at all of its agents.
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
        """An order is due; one that is already keeps its place."""
        if order_hash in self._line_of:
            return
        line = self._lines.get(agents)
        if line is None:
            line = self._lines[agents] = _AgentQueue(agents)
        line.by_turn[not is_new][order_hash] = now
        self._line_of[order_hash] = line

    def remove(self, order_hash: bytes) -> bool:
        """An order is not due any more; whether it was."""
        line = self._line_of.pop(order_hash, None)
        if line is None:
            return False
        for orders in line.by_turn:
            orders.pop(order_hash, None)
        if not len(line):
            del self._lines[line.agents]
        return True

    def rounds(self, standing: Mapping[str, AgentRoom], now: float, orders_max: int) -> list[Assignment]:
        """Take what there is room for; the rooms shrink by it.

        Args:
            standing: of the agents that may be asked, by name.
            orders_max: of all rounds together.

        Returns:
            At most two rounds: of agents that are awake, and of slow ones.
        """
        awake = {name for name, one in standing.items() if not one.is_slow}
        asked: dict[bool, Assignment] = {False: {}, True: {}}
        lines = list(self._lines.values())
        left = min(orders_max, AGENT_ORDERS_MAX)
        while lines and left > 0:
            able: list[_AgentQueue] = []
            for line in lines:
                is_slow = awake.isdisjoint(line.agents)
                names = [name for name in line.agents if name in (standing if is_slow else awake)]
                taken = self._next(line, names, standing, now)
                if taken is None:
                    continue
                asked[is_slow] |= taken
                able.append(line)
                left -= 1
                if left <= 0:
                    break
            lines = [line for line in able if len(line)]
        return [one for one in asked.values() if one]

    def next_at(self, standing: Mapping[str, AgentRoom], now: float) -> float:
        """When an order has waited long enough for those that have no room; inf where none waits for that."""
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
        """Take the next order of a line that there is room for."""
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
