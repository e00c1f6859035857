"""Orders of each round, and the agents that are asked about them."""

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from cambist.engine.trade.delta.auction.due_orders import AgentRoom, DueOrders

PATIENCE_S = 1.0
ANN, BOTH = ("ann",), ("ann", "bob")


def a_hash(number: int) -> bytes:
    return number.to_bytes(32, "big")


def due(
    count: int, agents: tuple[str, ...] = ANN, *, start: int = 0, now: float = 0, is_new: bool = True
) -> DueOrders:
    return more(DueOrders(PATIENCE_S), count, agents, start=start, now=now, is_new=is_new)


def more(
    orders: DueOrders,
    count: int,
    agents: tuple[str, ...] = ANN,
    *,
    start: int,
    now: float = 0,
    is_new: bool = True,
) -> DueOrders:
    for number in range(start, start + count):
        orders.add(a_hash(number), agents, now, is_new=is_new)
    return orders


def rooms(**of: int) -> dict[str, AgentRoom]:
    return {name: AgentRoom(room) for name, room in of.items()}


def taken(
    orders: DueOrders, standing: dict[str, AgentRoom], now: float = 0, most: int = 256
) -> list[dict[int, str]]:
    """Rounds: number of each order -> its agents, joined."""
    return [
        {int.from_bytes(key, "big"): " ".join(agents) for key, agents in one.items()}
        for one in orders.rounds(standing, now, most)
    ]


def test_a_round_has_as_many_orders_as_their_agent_has_room_for() -> None:
    orders = due(5)
    assert taken(orders, rooms(ann=3)) == [{0: "ann", 1: "ann", 2: "ann"}]
    assert len(orders) == 2
    assert taken(orders, rooms(ann=0)) == []
    assert taken(orders, rooms(ann=9), most=1) == [{3: "ann"}]


def test_an_order_waits_for_room_at_all_of_its_agents_but_not_for_ever() -> None:
    orders = due(2, BOTH)
    assert taken(orders, rooms(ann=9, bob=0), now=0.5) == []
    assert orders.next_at(rooms(ann=9, bob=0), 0.5) == PATIENCE_S
    assert taken(orders, rooms(ann=9, bob=1), now=0.5) == [{0: "ann bob"}]
    assert taken(orders, rooms(ann=9, bob=0), now=PATIENCE_S) == [{1: "ann"}]


def test_nobody_waits_for_an_agent_that_does_not_answer() -> None:
    orders = due(3, BOTH)
    standing = {"ann": AgentRoom(2), "bob": AgentRoom(1, is_failing=True)}
    assert taken(orders, standing) == [{0: "ann bob", 1: "ann"}]
    assert taken(orders, {"ann": AgentRoom(0), "bob": AgentRoom(1, is_failing=True)}) == []


def test_a_slow_agent_is_asked_where_nobody_else_can_be_and_in_a_round_of_its_own() -> None:
    orders = due(2, BOTH)
    more(orders, 1, ("bob",), start=7)
    standing = {"ann": AgentRoom(9), "bob": AgentRoom(1, is_slow=True)}
    assert taken(orders, standing) == [{0: "ann", 1: "ann"}, {7: "bob"}]


def test_nobody_is_asked_for_an_order_whose_agents_all_rest_or_that_admits_none() -> None:
    orders = due(1)
    more(orders, 1, (), start=1)
    assert taken(orders, rooms(bob=9)) == []
    assert orders.next_at(rooms(bob=9), 0) == inf
    assert len(orders) == 2


def test_new_orders_and_those_asked_for_before_go_in_turn() -> None:
    orders = due(1_000, is_new=False)
    more(orders, 2, start=1_000)
    assert taken(orders, rooms(ann=5)) == [dict.fromkeys((1_000, 0, 1_001, 1, 2), "ann")]


def test_orders_of_other_agents_are_not_behind_those_that_wait() -> None:
    orders = due(1_000, ("bob",))
    more(orders, 1, start=1_000)
    assert taken(orders, rooms(ann=9)) == [{1_000: "ann"}]


def test_an_order_that_is_removed_is_asked_for_no_more() -> None:
    orders = due(2)
    assert (orders.remove(a_hash(0)), orders.remove(a_hash(0)), a_hash(0) in orders) == (True, False, False)
    orders.add(a_hash(1), BOTH, 5, is_new=False)  # it is due already
    assert taken(orders, rooms(ann=9)) == [{1: "ann"}]
    assert (len(orders), list(orders)) == (0, [])


@given(
    st.lists(
        st.tuples(st.sampled_from([ANN, ("bob",), BOTH, ("eve",)]), st.booleans(), st.integers(0, 2)),
        max_size=40,
    ),
    st.dictionaries(st.sampled_from(["ann", "bob"]), st.tuples(st.integers(0, 9), st.booleans())),
    st.integers(0, 40),
)
def test_rooms_are_kept_and_nothing_that_could_be_asked_for_is_left(
    orders: list[tuple[tuple[str, ...], bool, int]], agents: dict[str, tuple[int, bool]], most: int
) -> None:
    line = DueOrders(PATIENCE_S)
    for number, (names, is_new, since) in enumerate(orders):
        line.add(a_hash(number), names, float(since), is_new=is_new)
    standing = {name: AgentRoom(room, is_slow) for name, (room, is_slow) in agents.items()}
    rounds = line.rounds(standing, 9.0, most)
    asked = [(key, names) for one in rounds for key, names in one.items()]
    assert len(asked) + len(line) == len(orders)
    assert len(asked) <= most
    for name, (room, _) in agents.items():
        assert sum(name in names for _, names in asked) == room - standing[name].room <= room
    if len(asked) < most:
        for key in line:
            names = orders[int.from_bytes(key, "big")][0]
            awake = [one for one in names if one in agents and not agents[one][1]]
            able = awake or [one for one in names if one in agents]
            assert all(standing[one].room == 0 for one in able)
