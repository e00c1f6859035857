"""Places of orders like their definition, told of every order anew."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from cambist.engine.trade.orders.places import OrderStake, Places

STAKES, CAUSERS = st.sampled_from(OrderStake), st.sampled_from("abc")
ORDERS = st.integers(0, 9).map(lambda number: bytes([number]))
PUTS = st.tuples(st.just("put"), ORDERS, STAKES, CAUSERS)
DROPS = st.tuples(st.just("drop"), ORDERS)


def expected(
    orders: dict[bytes, tuple[OrderStake, str]], stake: OrderStake, causer: str, least: OrderStake
) -> set[bytes]:
    """Orders of which one gives way: each causer with the most has one, its oldest."""
    lower = [held for held, _ in orders.values() if least <= held < stake]
    rank = min(lower, default=stake)
    counts = Counter(of for held, of in orders.values() if held == rank)
    most = max(counts.values(), default=0)
    if not most or (rank == stake and (rank is OrderStake.BACKED or most <= counts[causer] + 1)):
        return set()
    found = set()
    for of in [of for of, count in counts.items() if count == most]:
        found.add(next(key for key, place in orders.items() if place == (rank, of)))
    return found


@given(st.lists(PUTS | DROPS, max_size=40), STAKES, CAUSERS, STAKES)
def test_who_gives_way(
    acts: list[tuple[str, bytes] | tuple[str, bytes, OrderStake, str]],
    stake: OrderStake,
    causer: str,
    least: OrderStake,
) -> None:
    places, orders = Places(), dict[bytes, tuple[OrderStake, str]]()
    for act in acts:
        if len(act) == 4:
            _, key, *_ = act
            place = act[2], act[3]
            places.put(key, *place)
            if orders.get(key) != place:
                orders.pop(key, None)
                orders[key] = place
        else:
            places.drop(act[1])
            orders.pop(act[1], None)
    for held in OrderStake:
        assert places.count(held) == sum(of == held for of, _ in orders.values())
    gives = places.giving_way(stake, causer, least)
    allowed = expected(orders, stake, causer, least)
    assert gives in allowed if allowed else gives is None


@given(st.lists(CAUSERS, min_size=1, max_size=60))
def test_places_that_are_all_taken_are_shared_equally(causers: list[str]) -> None:
    """A causer with fewer orders than another loses none to it, however often the other asks."""
    places, of = Places(), dict[bytes, str]()
    for number, causer in enumerate(causers):
        if len(of) == 6:
            key = places.giving_way(OrderStake.UNBACKED, causer)
            if key is None:
                continue
            places.drop(key)
            del of[key]
        order = number.to_bytes(2, "big")
        places.put(order, OrderStake.UNBACKED, causer)
        of[order] = causer
    counts = Counter(of.values())
    asked = Counter(causers)
    fair = 6 // len(asked)
    assert all(counts[causer] >= min(fair, asked[causer]) for causer in asked)
