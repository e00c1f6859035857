"""Several processes that divide funds never promise more than the account holds."""

from hypothesis import given
from hypothesis import strategies as st

from cambist.engine.roles.maker.quoting.ledger import Share

LIFETIME_S = 165


def test_one_process_has_everything() -> None:
    share = Share(1, LIFETIME_S)
    assert [share.of(funds, 0) for funds in (100, 40, 70)] == [100, 40, 70]


def test_a_fill_of_one_is_no_room_for_another_until_promises_have_expired() -> None:
    share = Share(2, LIFETIME_S)
    assert share.of(10_000, 0) == 5_000
    assert share.of(5_002, 10) == 2  # the other may still have promised 5,000
    assert share.of(5_002, 0 + LIFETIME_S) == 2
    assert share.of(5_002, 1 + LIFETIME_S) == 2_501


@given(
    count=st.integers(2, 4),
    steps=st.lists(
        st.tuples(
            st.integers(0, 3), st.sampled_from(["sign", "fill", "deposit", "wait"]), st.integers(1, 4_000)
        ),
        max_size=60,
    ),
)
def test_promises_of_all_stay_within_the_funds(count: int, steps: list[tuple[int, str, int]]) -> None:
    funds, now_s = 10_000, 0
    shares = [Share(count, LIFETIME_S) for _ in range(count)]
    promises: list[list[list[int]]] = [[] for _ in range(count)]  # per process: [amount, expires]
    for process, what, amount in steps:
        mine = promises[process % count]
        allowed = [share.of(funds, now_s) for share in shares]  # all read the chain
        if what == "sign" and sum(row[0] for row in mine) + amount <= allowed[process % count]:
            mine.append([amount, now_s + LIFETIME_S])
        elif what == "fill" and mine:
            filled = mine.pop(0)
            funds -= filled[0]
        elif what == "deposit":
            funds += amount
        elif what == "wait":
            now_s += amount % 200
            for rows in promises:
                rows[:] = [row for row in rows if row[1] >= now_s]
        assert sum(row[0] for rows in promises for row in rows) <= funds
