"""The open orders of one chain that wait for a round, and the pauses between the rounds of each.

    an order is offered -> due at once, or after a pause that doubles with each round without a winner
    a slice of a TWAP   -> first waits until it is due by its chain's clock (`slice_watch`), then as any order
    a due order         -> enters a round once its agents have capacity (`due_orders`) -> leaves the round

An order waits here or is in one round, never both. The price watch and the Delta engine offer and withdraw
orders; the auctioneer takes due orders for its rounds. The lengths of pauses vary with the order hash, so
that orders that fail together return at different times.

Source: ARCHITECTURE.md, "Auction".
"""

from collections.abc import Callable, Container, Iterable, Iterator
from math import inf

import trio
from msgspec import Struct

from ....config.limits import AGENT_ORDERS_MAX
from ....config.sections.venue import DeltaSettings
from ...chain.port import Chain
from ...orders.scheduler import Scheduler
from ..bids.bids import RoundOrder, asked_of
from ..orders.live_orders import LiveOrder, LiveOrders
from ..orders.terms import slice_due
from .agents import Agents, AuctioneerWakeup
from .due_orders import AgentRoom, Assignment, DueOrders
from .slice_watch import SliceWatch


class DueRound(Struct, frozen=True):
    """Orders taken for one round.

    Attributes:
        orders: the orders that still await bids, by order hash.
        agents: agents to ask about each order, by order hash.
    """

    orders: dict[bytes, RoundOrder]
    agents: Assignment


class AuctionQueue:
    """Waiting and due orders of one chain.

    Args:
        agents: agents of the chain, which decide how many orders share a round.
        wakeup: set when an order is due.
        scheduler: the engine's scheduler of timers.
        head_time_s: returns the time of the latest block that this process has seen, Unix seconds.
        settings: pauses and time limits.
        wall_ms: returns the time, Unix milliseconds.

    Attributes:
        slices: TWAP slices that are not due yet, and the chain's clock; the auctioneer runs its task.
    """

    def __init__(
        self,
        chain: Chain,
        agents: Agents,
        wakeup: AuctioneerWakeup,
        orders: LiveOrders,
        scheduler: Scheduler,
        *,
        head_time_s: Callable[[], int],
        settings: DeltaSettings,
        wall_ms: Callable[[], int],
    ) -> None:
        self._agents = agents
        self._wakeup = wakeup
        self._orders = orders
        self._scheduler = scheduler
        self._settings = settings
        self._wall_ms = wall_ms
        self._tries: dict[bytes, int] = {}  # order hash -> rounds without a settlement
        self._waiting: dict[bytes, int] = {}  # order hash -> time of its last fill, Unix seconds
        self._ready = DueOrders(settings.round_s)
        self._in_round: set[bytes] = set()
        self.slices = SliceWatch(chain, head_time_s, self._slice_due)

    def __iter__(self) -> Iterator[bytes]:
        """Iterate over the hashes of all orders that the queue knows, except orders in their first round."""
        return iter({*self._tries, *self._waiting, *self.slices, *self._ready})

    @property
    def waiting(self) -> int:
        """Number of orders that are not due yet, including slices that wait for the chain's clock."""
        return len(self._waiting) + len(self.slices)

    @property
    def due(self) -> int:
        """Number of due orders."""
        return len(self._ready)

    # --- Offers -----------------------------------------------------------------------------------------

    def offer(self, live: LiveOrder, *, is_due: bool = False) -> None:
        """Queue an order for a round once it is due; no effect if the order is queued or in a round already.

        Args:
            is_due: the order is due now, regardless of `due_ms`.
        """
        order_hash = live.order_hash
        if order_hash in self._ready or order_hash in self._in_round:
            return
        if order_hash in self._waiting:
            if not is_due and self._waiting[order_hash] == live.last_fill_s:
                return
            del self._waiting[order_hash]
            self._scheduler.cancel(_timer(order_hash))
        due_s = slice_due(live.order, live.last_fill_s)
        if due_s > self.slices.time_s:
            self.slices.wait(order_hash, due_s)
            return
        self.slices.forget(order_hash)
        at_ms = self.due_ms(live)
        if is_due or at_ms <= self._wall_ms():
            self._make_ready(order_hash)
            return
        self._waiting[order_hash] = live.last_fill_s
        self._scheduler.at(at_ms, _timer(order_hash), lambda: self._make_ready(order_hash))

    def due_ms(self, live: LiveOrder) -> int:
        """Return the earliest opening of an order's next round, Unix milliseconds: now, or after a pause that
        grows with unsuccessful rounds.
        """
        tries = self._tries.get(live.order_hash, 0) + live.in_vain
        again_s = min(self._settings.again_s * 2.0 ** min(tries - 1, 30), self._settings.again_s_max)
        spread = 1 - live.order_hash[tries % len(live.order_hash)] / 1_024  # three quarters at least
        return self._wall_ms() + (round(again_s * spread * 1_000) if tries else 0)

    def is_joinable(self, order_hash: bytes) -> bool:
        """Whether an order that is offered now can be in the same next round as this order."""
        is_full = len(self._ready) >= self._agents.orders_max()
        return order_hash not in self._in_round and not (order_hash in self._ready and is_full)

    def begin_anew(self, order_hash: bytes) -> None:
        """Reset the pause between an order's rounds to its first length, since its market has moved away
        meanwhile."""
        self._tries.pop(order_hash, None)

    def withdraw(self, order_hash: bytes) -> None:
        """Remove an order. A round in progress goes on without the order."""
        self._tries.pop(order_hash, None)
        self._ready.remove(order_hash)
        self.slices.forget(order_hash)
        if self._waiting.pop(order_hash, None) is not None:
            self._scheduler.cancel(_timer(order_hash))

    def leave(self, held: Container[int]) -> None:
        """Forget the orders of shards that this engine no longer holds."""
        for order_hash in self:
            if order_hash[0] not in held:
                self.withdraw(order_hash)

    # --- Rounds -----------------------------------------------------------------------------------------

    def take(self, standing: dict[str, AgentRoom], now: float) -> list[DueRound]:
        """Take the due orders that still await bids and whose agents have capacity, grouped into rounds.

        Args:
            standing: capacities of the agents that may be asked, by name; changed in place.
            now: in trio's time.
        """
        room = AGENT_ORDERS_MAX - len(self._in_round)
        rounds = [
            DueRound(self._still_open(assignment), assignment)
            for assignment in self._ready.rounds(standing, now, room)
        ]
        for one in rounds:
            self._in_round |= one.orders.keys()
        return [one for one in rounds if one.orders]

    def next_at(self, standing: dict[str, AgentRoom], now: float) -> float:
        """Return the time at which more due orders may be taken without another event, in trio's time; inf
        without a due order.
        """
        if not len(self._ready):
            return inf
        return min(self._ready.next_at(standing, now), self._agents.wakes_at(now))

    def settled(self, order_hashes: Iterable[bytes]) -> None:
        """Remove orders from their round, which has found settlements for them."""
        self._in_round.difference_update(order_hashes)

    def unsettled(self, order_hash: bytes) -> LiveOrder | None:
        """Remove an order from a round that has found no settlement for it.

        Returns:
            The order if it still awaits bids, whose next round the caller decides; else None.
        """
        self._in_round.discard(order_hash)
        live = self._orders.get(order_hash)
        return live if live is not None and live.awaits_bids else None

    def count_round(self, order_hash: bytes) -> None:
        """Count a round without a settlement against an order, which lengthens its pause."""
        self._tries[order_hash] = self._tries.get(order_hash, 0) + 1

    def put_back(self, order_hash: bytes) -> None:
        """Make an order due again at once, behind new orders: its round does not count."""
        self._make_ready(order_hash, is_new=False)

    def _still_open(self, order_hashes: Iterable[bytes]) -> dict[bytes, RoundOrder]:
        """Return the orders that still await bids, as a round's orders, by order hash."""
        asked: dict[bytes, RoundOrder] = {}
        for order_hash in order_hashes:
            live = self._orders.get(order_hash)
            found = asked_of(live) if live is not None and live.awaits_bids else None
            if found is not None:
                asked[order_hash] = found
        return asked

    def _slice_due(self, order_hash: bytes) -> None:
        live = self._orders.get(order_hash)
        if live is not None:
            self.offer(live)

    def _make_ready(self, order_hash: bytes, *, is_new: bool | None = None) -> None:
        self._waiting.pop(order_hash, None)
        live = self._orders.get(order_hash)
        if live is None:
            return
        is_new = order_hash not in self._tries if is_new is None else is_new
        agents = self._agents.admitted(live.document)
        self._ready.add(order_hash, agents, trio.current_time(), is_new=is_new)
        self._wakeup.wake()


def _timer(order_hash: bytes) -> tuple[str, bytes]:
    return "auction", order_hash
