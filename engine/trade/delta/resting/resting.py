"""Holds a chain's limit orders that wait for their price, and selects those worth pricing. Pure.

Orders are grouped by their end pair, source to destination, with native tokens as the wrapped token, and
sorted by the rate that they need: destination for source, their own fee included, the lowest rate first.

    waiting    the books did not reach the order's rate at the last check, or there was no check yet
    tried      the books gave too little at the order's size, or no round found a settlement: the order pauses
               until a time, or until its pair's best rate exceeds the rate of the try
    away       being checked now, or with the auctioneer
    other      a market order that is auctioned: it does not rest, but resting orders may trade with it

`due` takes from a pair a bounded number of orders that are worth pricing at the pair's best rate: waiting
orders that need at most this rate, and tried orders whose pause is over. Orders beyond the bound stay for the
next call. The caller reports the outcome of each check by `tried`, `offered` or `waits`.

Guarantees: an order is added, taken and put back in O(log n), apart from moving a list's memory. Rates are
    rounded in the order's favour: no order within reach of a rate is passed over. `leave` forgets a bounded
    number of orders in each step; `get` does not find a forgotten order any more.
Not guaranteed: `due` may return a waiting order whose rate exceeds the best rate by less than 2^-256 of a
    unit.

Source: ARCHITECTURE.md, "Resting orders"; docs/explanation/performance.md, "Whole swaps".
Choice: Two orders of opposite tokens, at least one of them resting, whose limits meet are liquidity to each
    other if the smaller is at least a tenth of the larger: both are auctioned whatever the books say. The
    RESTING_FACED_MAX easiest opposite orders count.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Container, Iterator
from enum import Enum, auto
from typing import TYPE_CHECKING

from msgspec import Struct

from .....codecs.eip712_orders.delta import DeltaOrder
from ...routing.search.ladders import LadderRate
from .resting_price import Ends, left_of

if TYPE_CHECKING:
    from ..orders.live_orders import LiveOrder

RATE_BITS = 256  # fractional bits of a rate as a number
RESTING_FACED_MAX = 16  # orders of the opposite end pair that an order may trade with
SIZE_PARTS_MAX = 10  # of two orders that trade, the larger is at most this many times the smaller
NEVER = 1 << (4 * RATE_BITS)
"""Rate above every rate that books can give, as an integer: no rate makes the order due."""
_LEFT_AT_ONCE = 256  # orders, or rows of a list, that `leave` handles in one step


class State(Enum):
    """State of a limit order, or of a market order that a limit order may trade with.

    Attributes:
        WAITING: no books offer the rate that the limit order needs.
        TRIED: the last check or auction found no settlement: the limit order pauses.
        AWAY: the limit order is being checked or auctioned.
        OTHER: the order is a market order.
        GONE: the order was removed.
    """

    WAITING = auto()
    TRIED = auto()
    AWAY = auto()
    OTHER = auto()
    GONE = auto()


AT_REST = frozenset({State.WAITING, State.TRIED})
"""States of limit orders that neither a check nor the auctioneer has at the moment."""


class Resting(Struct, eq=False, gc=False):
    """A limit order that waits for its price, or a market order that a limit order may trade with.

    Attributes:
        ends: (source, destination) tokens of the order.
        rate: rate that the order needs, destination for source, as a fraction.
        need: `rate` as an integer, scaled as by `rate_number` but rounded down.
        number: sequence number of arrival, which sorts orders of equal rates.
        until_ms: end of the pause of a TRIED order, or of a market order whose settlement failed, Unix
            milliseconds.
        best: threshold, as an integer rate: a TRIED order's pause ends before `until_ms` if the best rate of
            the books for its token pair exceeds `best`.
        pause_ms: length of the last pause, milliseconds.
        offered_at: highest rate, as an integer, that the books had for the token pair when the order was
            auctioned; -1 if never.
        is_new: whether the order has not been auctioned since its arrival.
        unfilled_ms: Unix milliseconds; time since which every check found that the books do not fill the
            order; 0 without a check since the order's last round.
    """

    live: "LiveOrder"
    ends: Ends
    rate: LadderRate
    need: int
    number: int
    state: State
    until_ms: int = 0
    best: int = 0
    pause_ms: int = 0
    offered_at: int = -1
    is_new: bool = True
    unfilled_ms: int = 0


_Row = tuple[int, int, Resting]


class _RestingPair:
    """The orders of `RestingOrders` that have the same source and destination tokens, in sorted lists."""

    __slots__ = ("by_best", "by_time", "ends", "facing", "waiting")

    def __init__(self, ends: Ends) -> None:
        self.ends = ends
        self.facing: list[_Row] = []  # all orders, by `need`
        self.waiting: list[_Row] = []  # waiting orders, by `need`
        self.by_time: list[_Row] = []  # tried orders, by `until_ms`
        self.by_best: list[_Row] = []  # tried orders, by `best`


class RestingOrders:
    """The limit orders of a chain that wait for their price. Times are Unix milliseconds.

    Attributes:
        met: orders to check because a new opposite order, which they may trade with, was added.
    """

    def __init__(self) -> None:
        self._pairs: dict[Ends, _RestingPair] = {}
        self._orders: dict[bytes, Resting] = {}
        self._resting: dict[Ends, int] = {}  # end pair -> number of its resting orders, above 0
        self._numbers = self._others = 0
        self.met: dict[bytes, Resting] = {}

    def __len__(self) -> int:
        """Number of resting limit orders, including those that are being checked or auctioned now."""
        return len(self._orders) - self._others

    def __contains__(self, ends: object) -> bool:
        """Whether a limit order with the (source, destination) tokens `ends` waits for its price."""
        return ends in self._resting

    def pairs(self) -> Collection[Ends]:
        """Return the (source, destination) token pairs of limit orders that wait for their price."""
        return self._resting.keys()

    def all(self) -> Collection[Resting]:
        """Return all resting limit orders, and the market orders that they may trade with."""
        return self._orders.values()

    def get(self, order_hash: bytes) -> Resting | None:
        """Return the entry of the order with this hash; None if the order is unknown."""
        return self._orders.get(order_hash)

    # --- Coming and going -------------------------------------------------------------------------------

    def add(self, live: "LiveOrder", ends: Ends, rate: LadderRate, *, is_other: bool = False) -> Resting:
        """Add an order that is not in the collection yet, and return its entry.

        Args:
            ends: (source, destination) tokens of the order.
            rate: rate that the order needs; the books never reach a rate whose source amount is 0.
            is_other: whether the order is a market order, which is auctioned and does not rest.
        """
        self._numbers += 1
        need = _need(rate)
        state = State.OTHER if is_other else State.WAITING
        pair = self._pairs.get(ends)
        if pair is None:
            pair = self._pairs[ends] = _RestingPair(ends)
        order = Resting(live, pair.ends, rate, need, self._numbers, state)
        self._orders[live.order_hash] = order
        row = (need, order.number, order)
        insort(pair.facing, row)
        if is_other:
            self._others += 1
        else:
            self._resting[pair.ends] = self._resting.get(pair.ends, 0) + 1
            insort(pair.waiting, row)
        # The check of a resting `order` looks at all its opposite orders (`PriceWatch._partner`). A market
        # order is not checked itself: all orders that rest opposite to it are, since some may be paused. The
        # easiest comes last, as `PriceWatch.look` takes the last first.
        faced = list(self.faced(order))
        if faced:
            self._meet(order)
        for other in reversed(faced if is_other else faced[:1]):
            self._meet(other)
        return order

    def forget(self, order_hash: bytes) -> None:
        """Remove the order with this hash from the resting orders; no effect if the order is unknown."""
        order = self._orders.get(order_hash)
        if order is None:
            return
        self._take_out(order)
        pair = self._pairs[order.ends]
        _remove(pair.facing, order.need, order)
        if not pair.facing:
            del self._pairs[order.ends]
        self._is_gone(order)

    def leave(self, held: Container[int]) -> Iterator[Ends | None]:
        """Forget, in short steps, the orders of shards that this engine does not hold.

        Orders may be added and forgotten between the steps.

        Args:
            held: shards that this engine holds.

        Yields:
            None after a step, and each (source, destination) token pair at which no order rests any more.
        """
        pairs: dict[int, _RestingPair] = {}  # by identity: another pair may replace one meanwhile
        # All orders are marked first, so that no search finds a forgotten order; then their rows are swept.
        for at, order in enumerate(tuple(self._orders.values())):
            if at % _LEFT_AT_ONCE == 0:
                yield None
            if order.state is State.GONE or order.live.row.shard in held:
                continue
            pair = self._pairs[order.ends]
            pairs[id(pair)] = pair
            self._is_gone(order)
            if order.ends not in self._resting:
                yield order.ends
        for pair in pairs.values():
            for rows in (pair.waiting, pair.by_time, pair.by_best, pair.facing):
                yield from _swept(rows)
            # Between the steps, `forget` may have deleted this pair, and `add` made another of its tokens.
            if not pair.facing and self._pairs.get(pair.ends) is pair:
                del self._pairs[pair.ends]

    def _is_gone(self, order: Resting) -> None:
        """Mark an order as gone and remove it from the index by hash.

        The sorted lists of its token pair may keep the order's row; searches skip rows of gone orders.
        """
        order_hash, ends = order.live.order_hash, order.ends
        del self._orders[order_hash]
        self.met.pop(order_hash, None)
        if order.state is State.OTHER:
            self._others -= 1
        elif self._resting[ends] == 1:
            del self._resting[ends]
        else:
            self._resting[ends] -= 1
        order.state = State.GONE

    def revalued(self, order: Resting, rate: LadderRate) -> None:
        """Change the rate that an order needs, since the worth of its source has moved."""
        if order.state is State.GONE:
            return
        pair = self._pairs[order.ends]
        is_waiting = order.state is State.WAITING
        for rows in (pair.facing, pair.waiting) if is_waiting else (pair.facing,):
            _remove(rows, order.need, order)
        order.rate, order.need = rate, _need(rate)
        for rows in (pair.facing, pair.waiting) if is_waiting else (pair.facing,):
            insort(rows, (order.need, order.number, order))

    def tried(self, order: Resting, best: int, until_ms: int) -> None:
        """Pause an order until `until_ms`, or until its token pair's best rate exceeds `best`, if earlier."""
        if order.state is State.GONE:
            return
        self._take_out(order)
        order.state, order.until_ms = State.TRIED, until_ms
        order.best = max(best, order.need - 1)
        pair = self._pairs[order.ends]
        insort(pair.by_time, (until_ms, order.number, order))
        insort(pair.by_best, (order.best, order.number, order))

    def offered(self, order: Resting) -> None:
        """Mark an order as passed to the auctioneer; call `tried` if its round finds no settlement."""
        if order.state is not State.GONE:
            self._take_out(order)
            order.state = State.AWAY

    def waits(self, order: Resting) -> None:
        """Mark an order as waiting: its token pair's best rate is below the rate that the order needs."""
        if order.state is not State.GONE:
            self._take_out(order)
            order.state, order.pause_ms = State.WAITING, 0
            insort(self._pairs[order.ends].waiting, (order.need, order.number, order))

    # --- Orders worth a look ----------------------------------------------------------------------------

    def due(self, ends: Ends, best: int, now_ms: int, count_max: int) -> tuple[list[Resting], bool]:
        """Take the orders of a token pair that books may fill now, and mark the orders as being checked.

        Args:
            best: best rate of the pair, see `rate_number`.
            now_ms: present time, Unix milliseconds.
            count_max: most orders to take.

        Returns:
            Waiting orders that need at most the rate `best`, then TRIED orders whose pause is over, then
            TRIED orders whose pause ends early because `best` exceeds the rate that they await; and whether
            more may be due.
        """
        pair = self._pairs.get(ends)
        if pair is None:
            return [], False
        # A tried order has a row in two lists. When one row is cut, the other goes at once: else the next
        # `_cut`, or a later call, would take the order again.
        found = _cut(pair.waiting, best, count_max)
        timed = _cut(pair.by_time, now_ms, count_max - len(found))
        for order in timed:
            _remove(pair.by_best, order.best, order)
        better = _cut(pair.by_best, best - 1, count_max - len(found) - len(timed))
        for order in better:
            _remove(pair.by_time, order.until_ms, order)
        cut = (*found, *timed, *better)
        found = [order for order in cut if order.state is not State.GONE]
        for order in found:
            order.state = State.AWAY
        # Judged by the rows, not by the orders: live orders may stand behind rows that `leave` has not swept.
        return found, len(cut) == count_max

    def next_due_ms(self, ends: Ends) -> int | None:
        """Return when the first pause of a token pair's orders ends, Unix ms; None without a pause."""
        pair = self._pairs.get(ends)
        return pair.by_time[0][0] if pair is not None and pair.by_time else None

    def faced(self, order: Resting) -> Iterator[Resting]:
        """Yield the opposite orders of similar size whose limits let them trade with an order.

        An opposite order has the same two tokens with source and destination swapped. Orders from a vault are
        left out, since the contract crosses none. The opposite order that needs the lowest rate comes first.
        """
        opposite = self._pairs.get((order.ends[1], order.ends[0]))
        if opposite is None or not order.rate[1] or not isinstance(order.live.order, DeltaOrder):
            return
        gives, _ = left_of(order.live)
        for _, _, other in opposite.facing[:RESTING_FACED_MAX]:
            if other.rate[0] * order.rate[0] > other.rate[1] * order.rate[1]:
                return
            _, takes = left_of(other.live)
            is_of_size = max(gives, takes) <= SIZE_PARTS_MAX * min(gives, takes)
            if is_of_size and isinstance(other.live.order, DeltaOrder) and other.state is not State.GONE:
                yield other

    def _meet(self, order: Resting) -> None:
        if order.state in AT_REST:
            self.met[order.live.order_hash] = order

    def _take_out(self, order: Resting) -> None:
        """Remove an order from its token pair's lists of waiting and tried orders; mark it as away."""
        pair = self._pairs[order.ends]
        if order.state is State.WAITING:
            _remove(pair.waiting, order.need, order)
        elif order.state is State.TRIED:
            _remove(pair.by_time, order.until_ms, order)
            _remove(pair.by_best, order.best, order)
        if order.state is not State.OTHER:
            order.state = State.AWAY


def _need(rate: LadderRate) -> int:
    return (rate[0] << RATE_BITS) // rate[1] if rate[1] else NEVER


def rate_number(rate: LadderRate | None) -> int:
    """Scale a rate (destination per source) by 2^RATE_BITS, rounded up, to compare it with `Resting.need`.

    A missing rate (None) becomes -1, which is below every need.
    """
    return -1 if rate is None else -((-rate[0] << RATE_BITS) // rate[1])


def _up_to(rows: list[_Row], last: int) -> int:
    """Count the rows of a sorted list whose key is at most `last`."""
    return bisect_right(rows, last, key=_first)


def _first(row: _Row) -> int:
    return row[0]


def _cut(rows: list[_Row], last: int, count_max: int) -> list[Resting]:
    """Remove and return the orders of the first rows with keys up to `last`, at most `count_max` orders."""
    count = min(_up_to(rows, last), count_max)
    cut = [order for _, _, order in rows[:count]]
    del rows[:count]
    return cut


def _swept(rows: list[_Row]) -> Iterator[None]:
    """Remove the rows of forgotten orders from a list in short steps; the list may change in between."""
    after = (-NEVER, 0)
    while (at := bisect_right(rows, after, key=_place)) < len(rows):
        some = rows[at : at + _LEFT_AT_ONCE]
        rows[at : at + _LEFT_AT_ONCE] = [row for row in some if row[2].state is not State.GONE]
        after = _place(some[-1])
        yield


def _place(row: _Row) -> tuple[int, int]:
    return row[0], row[1]


def _remove(rows: list[_Row], key: int, order: Resting) -> None:
    at = bisect_left(rows, (key, order.number))
    if at < len(rows) and rows[at][2] is order:
        del rows[at]
