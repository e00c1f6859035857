"""Number of orders in a request to an agent."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.config.limits import AGENT_ORDERS_AT_FIRST, AGENT_ORDERS_MAX
from cambist.config.timeouts import AGENT_PROBE_S
from cambist.engine.trade.delta.bids.agent_pace import AgentPace

ROUND_S = 1.0
QUICK_S, SLOW_S = 0.4, 0.9


def answers(
    pace: AgentPace, at: float, took_s: float, orders: int | None = None, not_reached: int = 0
) -> None:
    """Ask the agent about `orders` orders, by default as many as it has room for, and note its answer."""
    question = pace.asked(pace.room(at) if orders is None else orders, at)
    pace.answered(question, at + took_s, not_reached)


def is_late(pace: AgentPace, at: float) -> None:
    question = pace.asked(pace.room(at), at)
    pace.failed(question, at + ROUND_S, is_late=True)


def test_who_answers_quickly_is_asked_about_twice_as_many_each_time() -> None:
    pace, sizes = AgentPace(ROUND_S), []
    for at in range(5):
        sizes.append(pace.room(at))
        answers(pace, at, QUICK_S)
    assert (
        sizes
        == [32, 64, 128, 256, 256]
        == [min(AGENT_ORDERS_AT_FIRST << n, AGENT_ORDERS_MAX) for n in range(5)]
    )


def test_who_uses_the_round_is_asked_about_a_few_more() -> None:
    pace = AgentPace(ROUND_S)
    answers(pace, 0, SLOW_S)
    assert pace.room(1) == 36


def test_who_was_not_asked_about_all_it_may_be_is_asked_about_no_more() -> None:
    pace = AgentPace(ROUND_S)
    answers(pace, 0, QUICK_S, orders=5)
    assert pace.room(1) == AGENT_ORDERS_AT_FIRST


def test_open_questions_take_room() -> None:
    pace = AgentPace(ROUND_S)
    one, other = pace.asked(20, 0), pace.asked(10, 0)
    assert pace.room(0) == 2
    pace.answered(one, 0.1)
    assert pace.room(0.1) == 22
    pace.dropped(other)
    assert pace.room(0.1) == 32


def test_who_is_late_is_asked_about_half_of_it_once_it_answers() -> None:
    pace = AgentPace(ROUND_S)
    is_late(pace, 0)
    assert pace.room(1) == 1
    answers(pace, 1, QUICK_S)
    assert pace.room(1.4) == 16


def test_an_agent_that_stood_still_has_its_room_back_with_its_first_answer() -> None:
    """The room returns for any number of open questions and of probes without success."""
    pace = AgentPace(ROUND_S)
    questions = [pace.asked(8, at / 10) for at in range(4)]
    for question in questions:
        pace.failed(question, question.asked_at + ROUND_S, is_late=True)
    now = 1.3
    for _ in range(20):
        now = max(now, pace.asks_again_at)
        assert pace.room(now) == 1
        probe = pace.asked(1, now)
        assert pace.room(now) == 0
        now += ROUND_S
        pace.failed(probe, now, is_late=True)
    assert pace.room(max(now, pace.asks_again_at)) == 1
    answers(pace, now, QUICK_S, orders=1)
    assert pace.room(now) == 16


def test_who_cannot_be_reached_is_tried_with_pauses_that_double_up_to_a_second() -> None:
    pace, now, pauses = AgentPace(ROUND_S), 0.0, []
    for _ in range(6):
        pace.failed(pace.asked(pace.room(now), now), now, is_late=False)
        assert pace.room(now) == 0
        pauses.append(pace.asks_again_at - now)
        now = pace.asks_again_at
    assert pauses == [0.125, 0.25, 0.5, 1.0, 1.0, 1.0]
    assert max(pauses) == AGENT_PROBE_S
    answers(pace, now, QUICK_S)
    assert pace.room(now) == AGENT_ORDERS_AT_FIRST


@pytest.mark.parametrize(("not_reached", "room"), [(8, 24), (31, 1), (32, 1)])
def test_who_did_not_reach_some_is_asked_about_as_many_as_it_reached(not_reached: int, room: int) -> None:
    pace = AgentPace(ROUND_S)
    answers(pace, 0, SLOW_S, not_reached=not_reached)
    assert pace.room(1) == room


@given(
    st.lists(
        st.tuples(st.sampled_from(["answers", "late", "away", "partial", "dropped"]), st.floats(0, 2)),
        max_size=60,
    )
)
def test_there_is_always_a_way_back(steps: list[tuple[str, float]]) -> None:
    pace, now = AgentPace(ROUND_S), 0.0
    for what, wait_s in steps:
        now = max(now + wait_s, pace.asks_again_at)
        room = pace.room(now)
        assert 1 <= room <= pace.orders_max <= AGENT_ORDERS_MAX
        question = pace.asked(room, now)
        now += ROUND_S
        match what:
            case "answers":
                pace.answered(question, now)
            case "partial":
                pace.answered(question, now, room // 2)
            case "dropped":
                pace.dropped(question)
            case _:
                pace.failed(question, now, is_late=what == "late")
    for _ in range(20):
        now = max(now, pace.asks_again_at)
        answers(pace, now, QUICK_S)
        now += ROUND_S
    assert pace.room(now) == AGENT_ORDERS_MAX
