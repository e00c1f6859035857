"""Holds a chain's limit orders back until live books can fill them, then passes them to the auctioneer.

    a book changes -> its edge is noted -> at most every RESTING_LOOK_S a look: the end pairs whose paths use
        the edge, each with its present best rate -> the orders worth pricing (`resting`)
        -> priced at their size, net of gas and fee (`resting_price`)
             books fill the order      to the auctioneer
             an opposite order fits    both orders to the auctioneer; a look later if one of the two is paused
             books give less           priced again after a pause that doubles, or at a better best rate
             out of reach              waits
    a round without a settlement -> checked anew after the auctioneer's pause, or at a much better best rate

An edge is a pair of neighbouring tokens on a path; an end pair is the source and the destination of orders.
An opposite order is an order of the reverse end pair whose limit lets the two orders trade.

A look is a check of the orders of some end pairs. Every RESTING_SWEEP_S the watch queues all end pairs for a
look even without a change of books (a sweep): new routes appear, and gas falls. A look is done in short
steps, with a bounded number of pairs and of orders for each pair; some of the pairs always come from the
sweep. Orders beyond the bound wait for a later look. The watch checks no order while the price of gas is
unknown.

An order whose rounds found no settlement is auctioned before its pause ends only at a rate RESTING_BETTER_BPS
above its best auctioned rate. After RESTING_AWAY_S without a fillable rate the watch forgets that rate, and
the order's pauses start anew.

Source: ARCHITECTURE.md, "Resting orders"; docs/explanation/performance.md, "Whole swaps".
Choice: Orders that may trade with each other are auctioned together, and each waits for the other's pause. An
    order not auctioned yet delays no other unless a settlement of it failed.
"""

from collections import deque
from collections.abc import Callable, Container, Generator, Iterator
from heapq import heappop, heappush
from itertools import pairwise

import structlog
import trio
from msgspec import Struct

from .....codecs.eip712_orders.delta import DeltaOrder, ProductiveOrder
from .....config.errors import ServiceUnavailable
from .....config.limits import VENUE_RESTING_PAIRS_MAX, VENUE_RESTING_PRICED_MAX, VENUE_RESTING_SWEPT_MAX
from .....config.timeouts import (
    RESTING_AWAY_S,
    RESTING_LOOK_S,
    RESTING_RETRY_S,
    RESTING_RETRY_S_MAX,
    RESTING_SWEEP_S,
)
from .....crypto.hexadecimal import to_hex
from .....feeds.books.pair_index import PairIndex
from .....feeds.slices import Slices
from ....chain.proceeds import BPS
from ..auction.auction_queue import AuctionQueue
from ..orders.live_orders import LiveOrder
from .resting import AT_REST, NEVER, Resting, RestingOrders, State, rate_number
from .resting_price import Ends, RestingFacts, RestingPrices, rate_of, rests

RESTING_BETTER_BPS = 10  # improvement of a best rate that ends an order's pause after a failed round
_RETRY_MS, _RETRY_MS_MAX = round(RESTING_RETRY_S * 1_000), round(RESTING_RETRY_S_MAX * 1_000)
_AWAY_MS = round(RESTING_AWAY_S * 1_000)
_TAKEN_AT_ONCE = 16  # orders taken from a token pair's lists between two yields

_log = structlog.get_logger("cambist.venue")


class RestingStatistics(Struct, frozen=True):
    """Counters of a chain's resting orders: limit orders that wait until books can fill them.

    Attributes:
        orders: resting orders, including those that are auctioned now.
        pairs: (source, destination) token pairs of resting orders.
        edges: pairs of tokens whose order books are watched, as the two tokens are neighbours on a route of
            one of the `pairs`.
        looks: calls of `PriceWatch.look` so far; a call checks up to VENUE_RESTING_PAIRS_MAX token pairs.
        touched: number of times that an order was selected for pricing.
        priced: number of times that an amount of an order was priced.
        offered: number of times that an order was passed to the auctioneer.
        exhausted: number of times that a token pair had too many orders for one call of `look`, which left
            some to the next call.
    """

    orders: int
    pairs: int
    edges: int
    looks: int
    touched: int
    priced: int
    offered: int
    exhausted: int


class PriceWatch:
    """Watches a chain's books, and queues each limit order for auction once books can fill it.

    `run` is the task that checks the orders.

    Args:
        queue: the chain's orders that wait for an auction round.
        gas_price_wei: returns the price of a unit of gas, wei; raises ServiceUnavailable if unknown.
        wall_ms: returns the time, Unix milliseconds.
    """

    def __init__(
        self,
        index: PairIndex,
        prices: RestingPrices,
        queue: AuctionQueue,
        *,
        gas_price_wei: Callable[[], int],
        wall_ms: Callable[[], int],
    ) -> None:
        self._index = index
        self._prices = prices
        self._queue = queue
        self._gas_price_wei = gas_price_wei
        self._wall_ms = wall_ms
        self._orders = RestingOrders()
        self._edges: dict[Ends, tuple[int, frozenset[Ends]]] = {}  # end pair -> topology, edges
        self._watched: dict[Ends, set[Ends]] = {}  # edge -> end pairs
        self._changed_edges: set[Ends] = set()
        self._dirty: dict[Ends, None] = {}
        self._sweep: deque[Ends] = deque()
        self._due: list[tuple[int, Ends]] = []
        self._due_of: dict[Ends, int] = {}
        self._woken = trio.Event()
        self._slices = Slices()
        self._looks = self._touched = self._offered = self._exhausted = 0

    def statistics(self) -> RestingStatistics:
        """Return the counters of resting orders, and their present number."""
        return RestingStatistics(
            orders=len(self._orders),
            pairs=len(self._orders.pairs()),
            edges=len(self._watched),
            looks=self._looks,
            touched=self._touched,
            priced=self._prices.priced,
            offered=self._offered,
            exhausted=self._exhausted,
        )

    # --- Coming and going -------------------------------------------------------------------------------

    def rest_or_queue(self, live: LiveOrder) -> None:
        """Hold an open limit order back until books can fill it; queue any other open order for auction.

        An order from a vault is passed on once its vault has stated the order's worth (`revalued`).
        """
        if isinstance(live.order, ProductiveOrder) and live.worth is None:
            return  # until its vault is read
        known = self._orders.get(live.order_hash)
        if known is not None and known.live is not live:  # dropped from memory, and loaded again since
            self.forget(live.order_hash)
            known = None
        ends = self._prices.ends(live)
        if ends[0] == ends[1]:  # a bridge-only order: no book gives its price
            self._queue.offer(live)
            return
        if rests(live):
            if known is None:
                self._rest(live)
            return
        if known is None and isinstance(live.order, DeltaOrder):
            other = self._orders.add(live, ends, rate_of(live), is_other=True)
            due_ms = self._queue.due_ms(live)
            if due_ms > self._wall_ms():  # a settlement of it has failed
                other.until_ms, other.best = due_ms, NEVER
            if self._orders.met:
                self._woken.set()
        self._queue.offer(live)

    def revalued(self, live: LiveOrder) -> None:
        """Handle a vault's first or changed statement of the worth of an order that sells from it."""
        known = self._orders.get(live.order_hash)
        if known is not None:
            self._orders.revalued(known, rate_of(live))
            self._dirty[known.ends] = None
            self._woken.set()
        elif live.awaits_bids:
            self.rest_or_queue(live)

    def forget(self, order_hash: bytes) -> None:
        """Stop watching an order that is no longer open."""
        order = self._orders.get(order_hash)
        if order is not None:
            self._orders.forget(order_hash)
            if order.ends not in self._orders:
                self._unwatch(order.ends)

    async def leave(self, held: Container[int]) -> None:
        """Forget the orders of shards that this engine no longer holds, in short steps.

        Args:
            held: shards that this engine still holds.
        """
        await self._slices.work(self._leaving(held))

    def _leaving(self, held: Container[int]) -> Generator[None, None, None]:
        for ends in self._orders.leave(held):
            if ends is not None:
                self._unwatch(ends)
            yield

    def again(self, live: LiveOrder) -> None:
        """Handle a round that did not settle an order: pause a limit order, offer a market order again."""
        order = self._orders.get(live.order_hash)
        if order is None or order.state is State.OTHER:
            self.rest_or_queue(live)
            return
        if order.state is State.TRIED:  # the order was added anew meanwhile, with its own time
            return
        best = order.offered_at
        if best >= order.need:
            best += best * RESTING_BETTER_BPS // BPS
        self._orders.tried(order, best, self._queue.due_ms(live))
        self._schedule(order.ends)

    def facts(self, order_hash: bytes) -> RestingFacts | None:
        """Return limit and present price of a limit order that waits for its price; None for any other order.

        The result is None, too, while the order is checked or auctioned, or the price of gas is unknown.
        """
        order = self._orders.get(order_hash)
        if order is None or order.state not in AT_REST:
            return None
        try:
            return self._prices.facts(order.live, self._gas_price_wei())
        except ServiceUnavailable:
            return None

    def _rest(self, live: LiveOrder) -> None:
        order = self._orders.add(live, self._prices.ends(live), rate_of(live))
        due_ms = self._queue.due_ms(live)
        if due_ms > self._wall_ms():  # a settlement of it has failed
            self._orders.met.pop(live.order_hash, None)
            self._orders.tried(order, NEVER, due_ms)
            self._schedule(order.ends)
        self._dirty[order.ends] = None
        self._woken.set()

    # --- Looks ------------------------------------------------------------------------------------------

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Check resting orders after book changes and pauses, and all at intervals, until cancelled."""
        stop = self._index.watch(self.book_changed)
        try:
            sweep_at = trio.current_time()
            task_status.started()
            while True:
                await self._wait(sweep_at)
                if trio.current_time() >= sweep_at:
                    sweep_at = trio.current_time() + RESTING_SWEEP_S
                    self.sweep()
                try:
                    await self._slices.work(self.look())
                except Exception as error:  # noqa: BLE001  a bug in one look ends no other
                    _log.error("a look at resting orders failed", detail=repr(error), exc_info=True)
                await trio.sleep(RESTING_LOOK_S)
        finally:
            stop()

    async def _wait(self, sweep_at: float) -> None:
        """Wait until a token pair or an order has to be checked, or the next sweep of all pairs is due."""
        # The event is replaced before the check for waiting work, so that work which arrives after the check
        # sets the new event.
        self._woken = trio.Event()
        if self._dirty or self._changed_edges or self._sweep or self._orders.met:
            return
        seconds = sweep_at - trio.current_time()
        if self._due:
            seconds = min(seconds, (self._due[0][0] - self._wall_ms()) / 1_000)
        with trio.move_on_after(max(seconds, 0)):
            await self._woken.wait()

    def book_changed(self, base: bytes, quote: bytes) -> None:
        """Record a change of the order book of two tokens; `run` then checks the orders that use the book."""
        edge = (base, quote) if base < quote else (quote, base)
        if edge in self._watched:
            self._changed_edges.add(edge)
            self._woken.set()

    def sweep(self) -> None:
        """Queue all token pairs of resting orders for a check, unless the last sweep has not ended."""
        if not self._sweep:
            self._sweep.extend(self._orders.pairs())

    def look(self) -> Generator[None, None, None]:
        """Check the resting orders that books or opposite orders may fill now; a generator of short steps."""
        try:
            gas_price_wei = self._gas_price_wei()
        except ServiceUnavailable:
            return
        self._looks += 1
        while self._orders.met:
            _, order = self._orders.met.popitem()
            self._meet(order)
            yield
        for ends in self._pairs_of_look():
            yield from self._look_at(ends, gas_price_wei)

    def _pairs_of_look(self) -> list[Ends]:
        """Select the token pairs to check now, at most VENUE_RESTING_PAIRS_MAX.

        The first are up to VENUE_RESTING_SWEPT_MAX pairs of the sweep (the check of all pairs in turn); pairs
        whose books changed or whose orders are due follow, then further pairs of the sweep.
        """
        # Cleared before the looks, which yield: a change from now on is noted for the next look.
        for edge in self._changed_edges:
            self._dirty.update(dict.fromkeys(self._watched.get(edge, ())))
        self._changed_edges.clear()
        now_ms = self._wall_ms()
        while self._due and self._due[0][0] <= now_ms:
            at_ms, ends = heappop(self._due)
            if self._due_of.get(ends) == at_ms:
                del self._due_of[ends]
                self._dirty[ends] = None
        pairs: list[Ends] = []
        while self._sweep and len(pairs) < VENUE_RESTING_SWEPT_MAX:
            ends = self._sweep.popleft()
            self._dirty.pop(ends, None)  # else the next loop takes the pair once more
            pairs.append(ends)
        while self._dirty and len(pairs) < VENUE_RESTING_PAIRS_MAX:
            ends = next(iter(self._dirty))
            del self._dirty[ends]
            pairs.append(ends)
        while self._sweep and len(pairs) < VENUE_RESTING_PAIRS_MAX:
            pairs.append(self._sweep.popleft())
        return pairs

    def _look_at(self, ends: Ends, gas_price_wei: int) -> Iterator[None]:
        if ends not in self._orders:
            return
        self._refresh(ends)  # before the rate is read: only changes of watched edges are noted
        # Books may change at each `yield`: the rate is then old, but the change has put the pair into
        # `_changed_edges`, and the next look judges its orders once more.
        best = rate_number(self._prices.pathfinder.best_rate(*ends))
        yield
        found: list[Resting] = []
        while (room := VENUE_RESTING_PRICED_MAX - len(found)) > 0:
            some, has_more = self._orders.due(ends, best, self._wall_ms(), min(_TAKEN_AT_ONCE, room))
            found += some
            if not has_more:
                break
            yield
        self._touched += len(found)
        # The bound has ended the loop: more orders may be due, and the next look takes them.
        if len(found) == VENUE_RESTING_PRICED_MAX:
            self._exhausted += 1
            self._dirty[ends] = None
        found.sort(key=_need)
        for order in found:
            if order.state is State.AWAY:  # not forgotten meanwhile
                try:
                    yield from self._judge(order, best, gas_price_wei)
                except Exception as error:  # noqa: BLE001  a bug in one order stops no other
                    order_hash = to_hex(order.live.order_hash)
                    _log.error(
                        "a resting order is stuck", order=order_hash, detail=repr(error), exc_info=True
                    )
                    self._orders.tried(order, NEVER, self._wall_ms() + _RETRY_MS_MAX)
            yield
        self._schedule(ends)

    def _judge(self, order: Resting, best: int, gas_price_wei: int) -> Generator[None, None, None]:
        """Pass an order to the auctioneer if books or an opposite order can fill it; else leave it resting.

        Args:
            best: best rate of the order's token pair by the books, as an integer (`rate_number`).
        """
        is_reached = order.need <= best
        if is_reached:
            is_fillable = yield from self._prices.is_fillable(order.live, gas_price_wei)
            if order.state is not State.AWAY:  # forgotten meanwhile
                return
            if is_fillable:
                self._offer(order)
                return
        now_ms = self._wall_ms()
        other, at_ms = self._partner(order, now_ms)
        if other is not None:
            self._offer_both(order, other)
            return
        order.unfilled_ms = order.unfilled_ms or now_ms  # the first such check counts
        if is_reached:
            order.pause_ms = min(max(2 * order.pause_ms, _RETRY_MS), _RETRY_MS_MAX)
            self._orders.tried(order, best, now_ms + order.pause_ms)
        elif at_ms:
            self._orders.tried(order, best, at_ms)  # until an opposite order is free, or the books reach it
        else:
            self._orders.waits(order)

    def _meet(self, order: Resting) -> None:
        """Pass an order and an opposite order to the auctioneer if their limits let the two trade."""
        if order.state not in AT_REST:
            return
        now_ms = self._wall_ms()
        is_paused = order.state is State.TRIED and order.until_ms > now_ms
        if is_paused and order.best >= NEVER:
            return
        other, at_ms = self._partner(order, now_ms, is_paused=is_paused and not order.is_new)
        if other is not None:
            self._offer_both(order, other)
        elif at_ms and not is_paused:
            self._orders.tried(order, -1, at_ms)
            self._schedule(order.ends)

    def _partner(self, order: Resting, now_ms: int, *, is_paused: bool = False) -> tuple[Resting | None, int]:
        """Find an opposite order that can be auctioned together with this order now.

        An opposite order sells the token that this order buys, and buys the token that this order sells.

        Args:
            is_paused: whether `order` is still paused after an earlier auction; if so, the result is an
                opposite order that was never auctioned.

        Returns:
            (opposite order, 0); or (None, time at which an opposite order may be auctioned, Unix
            milliseconds); or (None, 0) without an opposite order.
        """
        at_ms = 0
        for other in self._orders.faced(order):
            free_ms = self._free_ms(order, other, now_ms)
            if free_ms > now_ms:
                at_ms = min(at_ms or free_ms, free_ms)
            elif other.is_new or not is_paused:
                return other, 0
        return None, at_ms

    def _free_ms(self, order: Resting, other: Resting, now_ms: int) -> int:
        """Return the time from which two opposite orders may be auctioned together, Unix milliseconds."""
        is_joinable = self._queue.is_joinable
        if not (is_joinable(order.live.order_hash) and is_joinable(other.live.order_hash)):
            return now_ms + _RETRY_MS
        if other.state in (State.WAITING, State.AWAY):
            return now_ms
        is_first = (order.is_new or other.is_new) and other.best < NEVER
        return now_ms if is_first else other.until_ms

    def _offer_both(self, order: Resting, other: Resting) -> None:
        self._offer(order)
        if other.state is not State.AWAY:
            self._offer(other)

    def _offer(self, order: Resting) -> None:
        """Pass an order to the auctioneer as due now; a market order is in the auctioneer's queue already."""
        self._offered += 1
        order.is_new = False
        if order.state is not State.OTHER:
            now_ms = self._wall_ms()
            if order.unfilled_ms and now_ms - order.unfilled_ms >= _AWAY_MS:
                order.offered_at = -1
                self._queue.begin_anew(order.live.order_hash)
            self._orders.offered(order)
            best = rate_number(self._prices.pathfinder.best_rate(*order.ends))
            order.offered_at = max(order.offered_at, best)
            order.pause_ms = order.unfilled_ms = 0
        self._queue.offer(order.live, is_due=True)

    def _schedule(self, ends: Ends) -> None:
        """Schedule the next check of a token pair for the earliest end of a pause of the pair's orders."""
        at_ms = self._orders.next_due_ms(ends)
        if at_ms is None:
            return
        known = self._due_of.get(ends)
        if known is None or at_ms < known:
            self._due_of[ends] = at_ms  # a later time of the pair stays in the heap, and is passed over
            heappush(self._due, (at_ms, ends))
            if self._due[0][1] == ends:
                self._woken.set()

    # --- Edges ------------------------------------------------------------------------------------------

    def _refresh(self, ends: Ends) -> None:
        """Watch the books between neighbouring tokens on all present routes of the token pair `ends`."""
        topology = self._index.topology
        known = self._edges.get(ends)
        if known is not None and known[0] == topology:
            return
        edges = frozenset(
            (one, other) if one < other else (other, one)
            for path in self._prices.pathfinder.paths(*ends)
            for one, other in pairwise(path)
        )
        before = frozenset() if known is None else known[1]
        for edge in before - edges:
            self._drop(edge, ends)
        for edge in edges - before:
            self._watched.setdefault(edge, set()).add(ends)
        self._edges[ends] = topology, edges

    def _unwatch(self, ends: Ends) -> None:
        for edge in self._edges.pop(ends, (0, frozenset[Ends]()))[1]:
            self._drop(edge, ends)

    def _drop(self, edge: Ends, ends: Ends) -> None:
        pairs = self._watched[edge]
        pairs.discard(ends)
        if not pairs:
            del self._watched[edge]


def _need(order: Resting) -> int:
    return order.need
