"""The index of resting orders against a plain list of them: the orders to check, and their sequence."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from msgspec import Struct
from msgspec.structs import replace

from cambist.engine.trade.delta.resting.resting import Resting, RestingOrders, State, rate_number
from support.delta.limit_orders import a_limit_order
from support.examples import examples
from support.makers.live_books import USDC, WETH

SHARDS = 4
ENDS, BACK = (WETH, USDC), (USDC, WETH)
RATES = st.tuples(st.integers(1, 12), st.integers(1, 12))


class Plain(Struct):
    """The list's entry of an order."""

    order: Resting
    rate: tuple[int, int]
    state: str
    until_ms: int = 0
    best: int = 0


class Index(RuleBasedStateMachine):
    """Orders come, are looked at, put back and forgotten, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.orders = RestingOrders()
        self.plain: list[Plain] = []
        self.now_ms = self.count = 0

    @rule(rate=RATES, size=st.sampled_from([1, 5, 100]), is_other=st.booleans(), is_back=st.booleans())
    def comes(self, rate: tuple[int, int], size: int, is_other: bool, is_back: bool) -> None:
        ends = BACK if is_back else ENDS
        live = a_limit_order(*ends, rate[1] * size, rate[0] * size, is_market=is_other)
        live.row = replace(live.row, shard=self.count % SHARDS)
        self.count += 1
        known = [one for one in self.plain if one.order.state is not State.GONE]
        order = self.orders.add(live, ends, rate, is_other=is_other)
        met = self.orders.met.keys()
        assert order.live is live
        faced = [one for one in known if one.order.ends != ends and _meet(one, order)]
        if not is_other:
            assert (live.order_hash in met) == bool(faced)
        self.plain.append(Plain(order, rate, "other" if is_other else "waiting"))
        self.orders.met.clear()

    @rule(data=st.data())
    @precondition(lambda self: self.plain)
    def is_forgotten(self, data: Any) -> None:
        one = data.draw(st.sampled_from(self.plain))
        self.plain.remove(one)
        self.orders.forget(one.order.live.order_hash)
        assert one.order.state is State.GONE

    @rule(
        held=st.sets(st.integers(0, SHARDS - 1), min_size=1),
        pieces=st.integers(0, 9),
        is_other=st.booleans(),
        is_back=st.booleans(),
    )
    def are_left(self, held: set[int], pieces: int, is_other: bool, is_back: bool) -> None:
        """Some shards go; another order comes meanwhile, and is not touched."""
        before = list(self.plain)
        for at, _ in enumerate(self.orders.leave(held)):
            if at == pieces:
                self.comes((1, 1), 1, is_other=is_other, is_back=is_back)
        for one in before:
            is_held = one.order.live.row.shard in held
            assert (one.order.state is not State.GONE) == is_held
            if not is_held:
                self.plain.remove(one)

    @rule(data=st.data(), rate=RATES)
    @precondition(lambda self: self.plain)
    def is_revalued(self, data: Any, rate: tuple[int, int]) -> None:
        one = data.draw(st.sampled_from(self.plain))
        one.rate = rate
        self.orders.revalued(one.order, rate)
        assert one.order.rate == rate

    @rule(ms=st.integers(1, 500))
    def time_passes(self, ms: int) -> None:
        self.now_ms += ms

    @rule(best=st.sampled_from([(1, 2), (1, 1), (2, 1), (4, 1)]), count=st.integers(1, 4), data=st.data())
    def is_looked_at(self, best: tuple[int, int], count: int, data: Any) -> None:
        number = rate_number(best)
        here = [one for one in self.plain if one.order.ends == ENDS]
        waiting = [one for one in here if one.state == "waiting" and _reaches(best, one.rate)]
        waiting.sort(key=lambda one: (one.order.need, one.order.number))
        tried = [one for one in here if one.state == "tried"]
        timed = [one for one in tried if one.until_ms <= self.now_ms]
        timed.sort(key=lambda one: (one.until_ms, one.order.number))
        better = [one for one in tried if one.best < number and one not in timed[: count - len(waiting)]]
        better.sort(key=lambda one: (one.best, one.order.number))
        expected = waiting[:count]
        expected += timed[: count - len(expected)]
        expected += [one for one in better if one not in expected][: count - len(expected)]
        found, _ = self.orders.due(ENDS, number, self.now_ms, count)
        assert [id(order) for order in found] == [id(one.order) for one in expected]
        for one in expected:
            match data.draw(st.sampled_from(["tried", "away", "waiting"])):
                case "tried":
                    one.state, one.until_ms = "tried", self.now_ms + data.draw(st.integers(1, 400))
                    one.best = max(number, one.order.need - 1)
                    self.orders.tried(one.order, number, one.until_ms)
                case "away":
                    one.state = "away"
                    self.orders.offered(one.order)
                case _:
                    one.state = "waiting"
                    self.orders.waits(one.order)

    @rule(data=st.data())
    @precondition(lambda self: any(one.state == "away" for one in self.plain))
    def comes_back(self, data: Any) -> None:
        one = data.draw(st.sampled_from([one for one in self.plain if one.state == "away"]))
        one.state, one.until_ms = "tried", self.now_ms + 100
        one.best = one.order.need - 1
        self.orders.tried(one.order, -1, one.until_ms)

    @invariant()
    def agrees(self) -> None:
        assert len(self.orders) == sum(one.state != "other" for one in self.plain)
        assert {order.number for order in self.orders.all()} == {one.order.number for one in self.plain}
        assert set(self.orders.pairs()) == {one.order.ends for one in self.plain if one.state != "other"}
        due = [one.until_ms for one in self.plain if one.state == "tried" and one.order.ends == ENDS]
        assert self.orders.next_due_ms(ENDS) == min(due, default=None)


def _reaches(best: tuple[int, int], rate: tuple[int, int]) -> bool:
    return best[0] * rate[1] >= rate[0] * best[1]


def _meet(one: Plain, other: Resting) -> bool:
    """Limits that meet, and sizes within ten times of each other; few enough orders for all to be seen."""
    rate = other.rate
    if one.rate[0] * rate[0] > one.rate[1] * rate[1]:
        return False
    gives, takes = other.live.terms.src_total, one.order.live.terms.dest_total
    return max(gives, takes) <= 10 * min(gives, takes)


TestIndex = Index.TestCase
TestIndex.settings = settings(max_examples=examples(50), stateful_step_count=15, deadline=None)
