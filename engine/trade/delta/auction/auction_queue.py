"""Queue of one chain's open Delta orders that wait for an auction round, with pauses between their rounds.

    an order is offered -> due at once, or after a pause that doubles with each round without a winner
    a slice of a TWAP   -> first waits until it is due by its chain's clock (`slice_watch`), then as any order
    a due order         -> enters a round once its agents have capacity (`due_orders`) -> leaves the round
    a due order that no agent trades -> enters a round of its own kind, once the one before has ended
    an order across chains -> waits while its bridge asks a higher fee than the owner signed
    an order whose owner rests after failed settlements -> waits for the end of the rest

An order waits here or is in one round, never both. The price watch and the Delta engine offer and withdraw
orders; the auctioneer takes due orders for its rounds. The lengths of pauses vary with the order hash, so
that orders that fail together return at different times.

Source: ARCHITECTURE.md, "Auction".
"""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from math import inf

import trio
from msgspec import Struct

from .....config.limits import AGENT_ORDERS_MAX, OWN_ROUND_ORDERS_MAX
from .....config.sections.venue import DeltaSettings
from ....chain.port import Chain
from ...orders.scheduler import Scheduler
from ..bids.bids import RoundOrder, asked_of
from ..orders.live_orders import LiveOrder, LiveOrders
from ..orders.terms import slice_due
from .agents import Agents, AuctioneerWakeup
from .due_orders import AgentRoom, Assignment, DueOrders
from .own_bids import OwnBids
from .slice_watch import SliceWatch


class DueRound(Struct, frozen=True):
    """Orders of an auction round about to open, and the agents to ask about each order.

    Attributes:
        orders: orders that are open and have no settlement under way, by order hash.
        agents: names of the agents to ask about each order, by order hash; may also have orders that are no
            longer open, which `orders` does not have.
    """

    orders: dict[bytes, RoundOrder]
    agents: Assignment


class AuctionQueue:
    """Queue of one chain's orders for auction rounds: due orders, and orders that wait until they are due.

    Args:
        agents: agents of the chain, which decide how many orders share a round.
        own_bids: says which orders no agent trades; an order waits until the rest of its trader ends.
        wakeup: event that the queue sets when an order is due.
        scheduler: the engine's scheduler of timers.
        head_time_s: returns the time of the latest block that this process has seen, Unix seconds.
        is_carried: returns whether an order's bridge carries the order at the fee that its owner signed.
        owner_rests_until_ms: returns the end of an owner's rest after failed settlements, Unix milliseconds.
        settings: pauses and time limits.
        wall_ms: returns the time, Unix milliseconds.

    Attributes:
        owner_rests_until_ms: see above.
        slices: watch of the TWAP slices that are not due yet; the auctioneer runs the task of the watch.
    """

    def __init__(
        self,
        chain: Chain,
        agents: Agents,
        own_bids: OwnBids,
        wakeup: AuctioneerWakeup,
        orders: LiveOrders,
        scheduler: Scheduler,
        *,
        head_time_s: Callable[[], int],
        is_carried: Callable[[LiveOrder], bool],
        owner_rests_until_ms: Callable[[bytes], int],
        settings: DeltaSettings,
        wall_ms: Callable[[], int],
    ) -> None:
        self._agents = agents
        self._own_bids = own_bids
        self._wakeup = wakeup
        self._orders = orders
        self._scheduler = scheduler
        self.is_carried = is_carried
        self.owner_rests_until_ms = owner_rests_until_ms
        self._settings = settings
        self._wall_ms = wall_ms
        self._tries: dict[bytes, int] = {}  # order hash -> rounds without a settlement
        self._waiting: dict[bytes, int] = {}  # order hash -> time of its last fill, Unix seconds
        self._ready = DueOrders(settings.round_s)
        self._own: dict[bytes, None] = {}  # due orders without agents, in the order of their coming
        self._own_last: frozenset[bytes] = frozenset()  # orders of the last round without agents
        self._in_round: set[bytes] = set()
        self.slices = SliceWatch(chain, head_time_s, self._slice_due)

    def __iter__(self) -> Iterator[bytes]:
        """Iterate over the hashes of orders that wait, are due, or had a round without a settlement."""
        return iter({*self._tries, *self._waiting, *self.slices, *self._ready, *self._own})

    @property
    def waiting(self) -> int:
        """Number of orders that are not due for a round yet, including TWAP slices before their time."""
        return len(self._waiting) + len(self.slices)

    @property
    def due(self) -> int:
        """Number of orders that are due for an auction round but are not in a round yet."""
        return len(self._ready) + len(self._own)

    # --- Offers -----------------------------------------------------------------------------------------

    def offer(self, live: LiveOrder, *, is_due: bool = False) -> None:
        """Queue an order for an auction round: due at once, after a pause, or when its TWAP slice is due.

        The call has no effect if the order is due or in a round already.

        Args:
            is_due: whether to skip the order's pause; a TWAP slice still waits for its time on chain.
        """
        order_hash = live.order_hash
        if order_hash in self._ready or order_hash in self._own or order_hash in self._in_round:
            return
        if order_hash in self._waiting:
            # `tend` offers an order at each of its changes: of these, only a fill begins the pause anew.
            if not is_due and self._waiting[order_hash] == live.last_fill_s:
                return
            # Without the cancellation the old timer would end the new wait, e.g. for a slice, too early.
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
        """Return the earliest time at which an order's next round may open, Unix milliseconds.

        The time is now for an order without an unsuccessful round or settlement; else the end of a pause,
        which doubles with each unsuccessful round or settlement, up to a maximum. An order
        that no agent trades waits for the end of its trader's rest, too, and every order for the end of its
        owner's.
        """
        tries = self._tries.get(live.order_hash, 0) + live.in_vain
        again_s = min(self._settings.again_s * 2.0 ** min(tries - 1, 30), self._settings.again_s_max)
        spread = 1 - live.order_hash[tries % len(live.order_hash)] / 1_024  # above 0.75, at most 1
        now_ms = self._wall_ms()
        due_ms = now_ms + (round(again_s * spread * 1_000) if tries else 0)
        due_ms = max(due_ms, self._own_bids.rests_until_ms(live.order))
        return max(due_ms, self.owner_rests_until_ms(live.terms.owner))

    def is_joinable(self, order_hash: bytes) -> bool:
        """Whether another order that becomes due now can still enter the same auction round as this order.

        False if this order is in a round, or if this order is due and the due orders already fill a round.
        """
        is_full = len(self._ready) >= self._agents.orders_max()
        return order_hash not in self._in_round and not (order_hash in self._ready and is_full)

    def begin_anew(self, order_hash: bytes) -> None:
        """Forget an order's rounds without a settlement, so that its pauses start again from the shortest.

        The price watch calls this after live books could not fill the order for some time.
        """
        self._tries.pop(order_hash, None)

    def withdraw(self, order_hash: bytes) -> None:
        """Remove an order from the queue; an auction round in progress with the order goes on."""
        self._tries.pop(order_hash, None)
        self._ready.remove(order_hash)
        self._own.pop(order_hash, None)
        self.slices.forget(order_hash)
        if self._waiting.pop(order_hash, None) is not None:
            self._scheduler.cancel(_timer(order_hash))

    def leave(self, held: Container[int]) -> None:
        """Remove the orders of shards that this engine no longer holds.

        Args:
            held: shards that the engine holds; an order's shard is the first byte of its hash.
        """
        for order_hash in self:
            if order_hash[0] not in held:
                self.withdraw(order_hash)

    # --- Rounds -----------------------------------------------------------------------------------------

    def take(self, standing: dict[str, AgentRoom], now: float) -> list[DueRound]:
        """Remove the due orders for which agents have capacity, and group them into new auction rounds.

        Due orders on which the venue bids itself form a round without agents. The next such round opens once
        all orders have left the round before. Orders that are not open, or have a settlement under way, are
        removed without a round.

        Args:
            standing: capacities of the agents that may be asked, by name; changed in place.
            now: time on trio's clock, seconds.
        """
        room = AGENT_ORDERS_MAX - len(self._in_round)
        rounds = [
            DueRound(self._still_open(assignment), assignment)
            for assignment in (*self._ready.rounds(standing, now, room), self._take_own())
        ]
        for due in rounds:
            self._in_round |= due.orders.keys()
        return [due for due in rounds if due.orders]

    def _take_own(self) -> Assignment:
        """Remove the next due orders without agents, unless a round of such orders is open."""
        taken: Assignment = {}
        while self._may_open_own() and len(taken) < OWN_ROUND_ORDERS_MAX:
            order_hash = next(iter(self._own))
            del self._own[order_hash]
            taken[order_hash] = ()
        self._own_last = frozenset(taken) or self._own_last
        return taken

    def _may_open_own(self) -> bool:
        return bool(self._own) and self._in_round.isdisjoint(self._own_last)

    def next_at(self, standing: dict[str, AgentRoom], now: float) -> float:
        """Return when `take` may next find orders if nothing else happens, seconds of trio's clock.

        The result is inf if no order is due, or if a due order can enter a round only after another event.

        Args:
            standing: capacities of the agents that may be asked, by name.
            now: time on trio's clock, seconds.
        """
        if self._may_open_own():
            return now
        if not len(self._ready):
            return inf
        return min(self._ready.next_at(standing, now), self._agents.wakes_at(now))

    def settled(self, order_hashes: Sequence[bytes]) -> list[LiveOrder]:
        """Record that these orders have left their auction round, which has stored a settlement for each.

        Returns:
            The open orders whose settlement had ended before this call; the caller queues them again.
        """
        self._in_round.difference_update(order_hashes)
        found = map(self._orders.get, order_hashes)
        return [live for live in found if live is not None and live.awaits_bids]

    def unsettled(self, order_hash: bytes) -> LiveOrder | None:
        """Record that an order has left its auction round, which found no settlement for it.

        Returns:
            The order, for the caller to queue again, if it is open and has no settlement under way; else
            None.
        """
        self._in_round.discard(order_hash)
        live = self._orders.get(order_hash)
        return live if live is not None and live.awaits_bids else None

    def count_round(self, order_hash: bytes) -> None:
        """Count an auction round that found no settlement for an order; the order's next pause is longer."""
        self._tries[order_hash] = self._tries.get(order_hash, 0) + 1

    def put_back(self, order_hash: bytes) -> None:
        """Make an order due again at once, without a pause, since its last auction round does not count.

        A round counts if an agent has considered the order and no error has ended the round. The order joins
        the queue of orders that had a round before. New orders have a separate queue, and rounds take orders
        from both queues alternately.
        """
        self._make_ready(order_hash, is_new=False)

    def _still_open(self, order_hashes: Iterable[bytes]) -> dict[bytes, RoundOrder]:
        """Return the orders that can be auctioned now, by order hash.

        These orders are open, have no settlement under way, and have an unfilled amount.
        """
        orders: dict[bytes, RoundOrder] = {}
        for order_hash in order_hashes:
            live = self._orders.get(order_hash)
            found = asked_of(live) if live is not None and live.awaits_bids else None
            if found is not None:
                orders[order_hash] = found
        return orders

    def _slice_due(self, order_hash: bytes) -> None:
        live = self._orders.get(order_hash)
        if live is not None:
            self.offer(live)

    def _make_ready(self, order_hash: bytes, *, is_new: bool | None = None) -> None:
        self._waiting.pop(order_hash, None)
        live = self._orders.get(order_hash)
        if live is None:
            return
        now_ms = self._wall_ms()
        at_ms = self.owner_rests_until_ms(live.terms.owner)
        if not self.is_carried(live):
            at_ms = max(at_ms, now_ms + round(self._settings.again_s_max * 1_000))
        if at_ms > now_ms:
            self._waiting[order_hash] = live.last_fill_s
            self._scheduler.at(at_ms, _timer(order_hash), lambda: self._make_ready(order_hash))
            return
        if self._own_bids.trader_of(live.order) is not None:
            self._own[order_hash] = None
            self._wakeup.wake()
            return
        is_new = order_hash not in self._tries if is_new is None else is_new
        agents = self._agents.admitted(live.document)
        self._ready.add(order_hash, agents, trio.current_time(), is_new=is_new)
        self._wakeup.wake()


def _timer(order_hash: bytes) -> tuple[str, bytes]:
    return "auction", order_hash
