"""The limit orders of one chain that wait for their price, and which of them are worth a look now. Pure.

Orders lie by their end pair, source to destination, native tokens as the wrapped one, and in it by the rate
that they need: destination for source, their own fee included, the easiest first.

    waiting    no look since the books came within its rate
    tried      they gave too little at its size, or no round found a settlement: it is left alone until a
               time, or until the best rate of its pair is better than it was then
    away       looked at now, or with the auctioneer
    other      a market order that is auctioned: nothing rests, it is only somebody to trade with

`due` takes out of a pair who is worth a look at its best rate: nobody whose rate is above it, and at most so
many; who is left comes first the next time. Whoever looks says what came of it: `tried`, `offered`, `waits`.

Guarantees: an order is added, taken and put back in O(log n), but for the moving of a list's memory. What is
    compared is rounded in the order's favour: nobody is passed over whom a rate reaches. `leave` works off
    a bounded number of orders with each piece, and whoever it has reached is not here any more.
Not guaranteed: `due` may name somebody whose rate is above the best one by less than 2^-256 of a unit.

Source: ARCHITECTURE.md, "Resting orders"; docs/performance.md, "Whole swaps".
Choice: Two resting orders with opposite tokens, limits that meet and a smaller one of at least a tenth of the
    larger are liquidity to each other: both are auctioned whatever the books say. The RESTING_FACED_MAX
    easiest opposite orders are considered.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Container, Iterator
from enum import Enum, auto
from typing import TYPE_CHECKING

from msgspec import Struct

from ...routing.search.ladders import LadderRate
from .resting_price import Ends, left_of

if TYPE_CHECKING:
    from ..orders.live_orders import LiveOrder

RATE_BITS = 256  # of what rates compare by
RESTING_FACED_MAX = 16  # of an opposite end pair, that an order may trade with
SIZE_PARTS_MAX = 10  # of two that trade with each other the smaller is at least such a part
NEVER = 1 << (4 * RATE_BITS)
"""A rate that nothing reaches."""
_LEFT_AT_ONCE = 256  # orders, or rows of a list, that `leave` works off in a piece


class State(Enum):
    """See the module."""

    WAITING = auto()
    TRIED = auto()
    AWAY = auto()
    OTHER = auto()
    GONE = auto()


class Resting(Struct, eq=False, gc=False):
    """One order.

    Attributes:
        ends: its end pair.
        rate: destination for source, that it needs; need: the same as one number, rounded down.
        number: counts them as they come: of equal rates the first comes first.
        until_ms: where it was tried, when it is due again. Of another the same, once a settlement failed.
        best: as one number, the best rate of its pair above which it is due before that.
        pause_ms: the last pause.
        offered_at: the best of the best rates at which it was auctioned; -1 of none.
        is_new: it was never auctioned since it came.
        unfilled_ms: since when no look found it fillable; 0 where none was taken since its last round.
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
    """The orders of one end pair, in the orders in which they are looked for."""

    __slots__ = ("by_best", "by_time", "ends", "facing", "waiting")

    def __init__(self, ends: Ends) -> None:
        self.ends = ends
        self.facing: list[_Row] = []  # all of them, by what they need
        self.waiting: list[_Row] = []  # by what they need
        self.by_time: list[_Row] = []  # that were tried, by when they are due
        self.by_best: list[_Row] = []  # that were tried, by the best rate then


class RestingOrders:
    """See the module. Times are Unix milliseconds.

    Attributes:
        met: orders that have found somebody to trade with, and are not looked at yet.
    """

    def __init__(self) -> None:
        self._pairs: dict[Ends, _RestingPair] = {}
        self._orders: dict[bytes, Resting] = {}
        self._resting: dict[Ends, int] = {}  # how many of an end pair rest, where any do
        self._numbers = self._others = 0
        self.met: dict[bytes, Resting] = {}

    def __len__(self) -> int:
        """How many rest, those that are looked at or auctioned now among them."""
        return len(self._orders) - self._others

    def __contains__(self, ends: object) -> bool:
        """Whether anything rests at an end pair."""
        return ends in self._resting

    def pairs(self) -> Collection[Ends]:
        """End pairs at which something rests: not those of market orders alone."""
        return self._resting.keys()

    def all(self) -> Collection[Resting]:
        """All orders that are here."""
        return self._orders.values()

    def get(self, order_hash: bytes) -> Resting | None:
        """An order that is here."""
        return self._orders.get(order_hash)

    # --- Coming and going -------------------------------------------------------------------------------

    def add(self, live: "LiveOrder", ends: Ends, rate: LadderRate, *, is_other: bool = False) -> Resting:
        """Take in an order that is not here.

        Args:
            rate: that it needs; a source of nothing is never reached.
            is_other: a market order that is auctioned.
        """
        self._numbers += 1
        need = (rate[0] << RATE_BITS) // rate[1] if rate[1] else NEVER
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
        other = next(self.faced(order), None)
        if other is not None:
            self._meet(order)
            self._meet(other)
        return order

    def forget(self, order_hash: bytes) -> None:
        """An order rests no more; nothing happens where it is not here."""
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
        """Forget the orders of all shards but these, piece by piece: whoever else goes or comes meanwhile.

        Yields:
            None; an end pair at which nothing rests any more.
        """
        pairs: dict[int, _RestingPair] = {}
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
            if not pair.facing and self._pairs.get(pair.ends) is pair:
                del self._pairs[pair.ends]

    def _is_gone(self, order: Resting) -> None:
        """It is not here any more; what lists have of it is passed over."""
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

    def tried(self, order: Resting, best: int, until_ms: int) -> None:
        """Leave an order alone until a time, or until the best rate of its pair is above `best`."""
        if order.state is State.GONE:
            return
        self._take_out(order)
        order.state, order.until_ms = State.TRIED, until_ms
        order.best = max(best, order.need - 1)
        pair = self._pairs[order.ends]
        insort(pair.by_time, (until_ms, order.number, order))
        insort(pair.by_best, (order.best, order.number, order))

    def offered(self, order: Resting) -> None:
        """The auctioneer has an order; `tried` says that it has not any more."""
        if order.state is not State.GONE:
            self._take_out(order)
            order.state = State.AWAY

    def waits(self, order: Resting) -> None:
        """Nothing reaches an order's rate any more."""
        if order.state is not State.GONE:
            self._take_out(order)
            order.state, order.pause_ms = State.WAITING, 0
            insort(self._pairs[order.ends].waiting, (order.need, order.number, order))

    # --- Who is worth a look ----------------------------------------------------------------------------

    def due(self, ends: Ends, best: int, now_ms: int, count_max: int) -> list[Resting]:
        """Take out who is worth a look: those that were not looked at first, then those whose time has come,
        then those for whom the best rate has become better. All of them are away.

        Args:
            best: of the pair, see `rate_number`.
            count_max: how many at most.

        Returns:
            In that order.
        """
        pair = self._pairs.get(ends)
        if pair is None:
            return []
        found = _cut(pair.waiting, best, count_max)
        timed = _cut(pair.by_time, now_ms, count_max - len(found))
        for order in timed:
            _remove(pair.by_best, order.best, order)
        better = _cut(pair.by_best, best - 1, count_max - len(found) - len(timed))
        for order in better:
            _remove(pair.by_time, order.until_ms, order)
        found = [order for order in (*found, *timed, *better) if order.state is not State.GONE]
        for order in found:
            order.state = State.AWAY
        return found

    def next_due_ms(self, ends: Ends) -> int | None:
        """When the time of the first order of a pair comes that was tried; None of none."""
        pair = self._pairs.get(ends)
        return pair.by_time[0][0] if pair is not None and pair.by_time else None

    def faced(self, order: Resting) -> Iterator[Resting]:
        """Who would trade with an order: those of the other end pair of a size with it, the easiest first."""
        opposite = self._pairs.get((order.ends[1], order.ends[0]))
        if opposite is None or not order.rate[1]:
            return
        gives, _ = left_of(order.live)
        for _, _, other in opposite.facing[:RESTING_FACED_MAX]:
            if other.rate[0] * order.rate[0] > other.rate[1] * order.rate[1]:
                return
            _, takes = left_of(other.live)
            is_of_size = max(gives, takes) <= SIZE_PARTS_MAX * min(gives, takes)
            if is_of_size and other.state is not State.GONE:
                yield other

    def _meet(self, order: Resting) -> None:
        if order.state in (State.WAITING, State.TRIED):
            self.met[order.live.order_hash] = order

    def _take_out(self, order: Resting) -> None:
        """Out of the lists of those that are to be looked at."""
        pair = self._pairs[order.ends]
        if order.state is State.WAITING:
            _remove(pair.waiting, order.need, order)
        elif order.state is State.TRIED:
            _remove(pair.by_time, order.until_ms, order)
            _remove(pair.by_best, order.best, order)
        if order.state is not State.OTHER:
            order.state = State.AWAY


def rate_number(rate: LadderRate | None) -> int:
    """A best rate as one number, rounded up; -1 of none, which reaches nobody."""
    return -1 if rate is None else -((-rate[0] << RATE_BITS) // rate[1])


def _up_to(rows: list[_Row], last: int) -> int:
    """How many rows are not beyond `last`."""
    return bisect_right(rows, last, key=_first)


def _first(row: _Row) -> int:
    return row[0]


def _cut(rows: list[_Row], last: int, count_max: int) -> list[Resting]:
    """Take the first rows out that are not beyond `last`."""
    count = min(_up_to(rows, last), count_max)
    cut = [order for _, _, order in rows[:count]]
    del rows[:count]
    return cut


def _swept(rows: list[_Row]) -> Iterator[None]:
    """Take out who is gone, piece by piece; between two of them others may come and go."""
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
