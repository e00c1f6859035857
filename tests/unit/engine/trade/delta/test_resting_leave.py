"""Orders of shards that are gone are gone at once, although lists are cleared of them piece by piece."""

from msgspec.structs import replace

from cambist.engine.trade.delta.orders.live_orders import LiveOrder
from cambist.engine.trade.delta.resting.resting import RestingOrders, State
from cambist.engine.trade.delta.resting.resting_price import rate_of
from support.delta.limit_orders import a_limit_order
from support.makers.live_books import ONE, USDC, WETH

USD = ONE[USDC]
ENDS, BACK = (WETH, USDC), (USDC, WETH)
BEST = 10**100
COUNT = 600


def of_shard(shard: int, live: LiveOrder) -> LiveOrder:
    live.row = replace(live.row, shard=shard)
    return live


def test_between_two_pieces_nobody_sees_who_is_gone() -> None:
    orders = RestingOrders()
    left = [of_shard(at % 2, a_limit_order(*ENDS, ONE[WETH], 2_500 * USD)) for at in range(COUNT)]
    for live in left:
        orders.add(live, ENDS, rate_of(live))
    for at, order in enumerate(tuple(orders.all())):
        if at % 4 >= 2:
            orders.tried(order, -1, at)
    counter = orders.add(of_shard(1, a_limit_order(*BACK, 2_500 * USD, ONE[WETH])), BACK, (1, 2_500))
    pieces = 0
    for _ in orders.leave({1}):
        pieces += 1
        is_begun = len(orders.all()) == COUNT // 2 + 1
        if is_begun:
            assert all(other.live.row.shard == 1 for other in orders.faced(counter))
    assert pieces > 6
    assert len(orders) == COUNT // 2 + 1
    assert [order.live for order in orders.due(ENDS, BEST, COUNT, COUNT)[0]] == [*left[1::4], *left[3::4]]


def test_who_is_gone_is_not_taken_up() -> None:
    orders = RestingOrders()
    for at in range(COUNT):
        live = of_shard(at % 2, a_limit_order(*ENDS, ONE[WETH], 2_500 * USD))
        order = orders.add(live, ENDS, rate_of(live))
        if at % 4 >= 2:
            orders.tried(order, -1, at)
    leaving = orders.leave({1})
    while any(order.live.row.shard == 0 for order in orders.all()):
        next(leaving)
    found, _ = orders.due(ENDS, BEST, COUNT, COUNT)
    assert {order.live.row.shard for order in found} == {1}
    for order in found:
        assert order.state is State.AWAY
        orders.tried(order, -1, COUNT)
    for _ in leaving:
        pass
    assert {order.number for order in orders.due(ENDS, BEST, COUNT, COUNT)[0]} == {
        order.number for order in found
    }


def test_live_orders_behind_those_that_are_gone_are_taken_up_too() -> None:
    orders = RestingOrders()
    for at in range(COUNT):
        live = of_shard(int(at >= 16), a_limit_order(*ENDS, ONE[WETH], 2_500 * USD))
        orders.add(live, ENDS, rate_of(live))
    leaving = orders.leave({1})
    while any(order.live.row.shard == 0 for order in orders.all()):
        next(leaving)
    assert orders.due(ENDS, BEST, COUNT, 16) == ([], True)
    found, has_more = orders.due(ENDS, BEST, COUNT, COUNT)
    assert len(found) == COUNT - 16
    assert not has_more
