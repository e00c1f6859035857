"""Times of the desk's questions to makers, and the length of its waits: on a clock of the test's own."""

from collections.abc import Mapping
from types import SimpleNamespace

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from cambist.config.errors import NoRoute
from cambist.config.timeouts import FIRM_BEAT_S
from cambist.engine.trade.routing.firm.firm_parts import PATIENCES
from cambist.feeds.books.pair_index import BookKey, LiveBook
from cambist.feeds.firm.firm_check import FirmFault
from support.makers.firm_books import USDC, WETH, a_live_book
from support.makers.timed_makers import HANGING, SETTINGS, Maker, Timed, makers_of

SOFT_S, HARD_S, PATIENCE_S = SETTINGS.soft_s, SETTINGS.hard_s, SETTINGS.soft_s / PATIENCES


async def test_a_prompt_maker_is_asked_alone(autojump_clock: MockClock) -> None:
    stage = Timed(alpha=Maker(0.1), beta=Maker(0.0))
    assert makers_of(await stage.sell()) == ["alpha"]
    assert trio.current_time() == pytest.approx(0.1)
    assert stage.asked() == {"alpha": [0.0]}


async def test_a_slow_maker_has_another_asked_beside_it(autojump_clock: MockClock) -> None:
    stage = Timed(alpha=Maker(5.0), beta=Maker(0.1))
    assert makers_of(await stage.sell()) == ["beta"]
    assert trio.current_time() == pytest.approx(PATIENCE_S + 0.1)
    assert stage.asked() == {"alpha": [0.0], "beta": [pytest.approx(PATIENCE_S)]}
    assert stage.reasons() == {"alpha": {"late": 1}}
    assert stage.reasons() == {"alpha": {"late": 1}}


async def test_a_slow_makers_own_quote_is_taken_if_it_comes_first(autojump_clock: MockClock) -> None:
    stage = Timed(alpha=Maker(PATIENCE_S + 0.05), beta=Maker(0.2))
    assert makers_of(await stage.sell()) == ["alpha"]
    assert trio.current_time() == pytest.approx(PATIENCE_S + 0.05)
    assert stage.reasons() == {}, "beta was asked, and its time was not up"


async def test_where_there_is_nobody_else_a_slow_maker_is_waited_for_to_the_end(
    autojump_clock: MockClock,
) -> None:
    stage = Timed(alpha=Maker(HARD_S - 0.01))
    assert makers_of(await stage.sell()) == ["alpha"]
    assert trio.current_time() == pytest.approx(HARD_S - 0.01)
    assert stage.reasons() == {}


async def test_nothing_is_waited_for_after_the_hard_bound(autojump_clock: MockClock) -> None:
    stage = Timed(alpha=HANGING, beta=HANGING)
    with pytest.raises(NoRoute, match="time is up; alpha: late; beta: late"):
        await stage.sell()
    assert trio.current_time() == pytest.approx(HARD_S)
    assert stage.reasons() == {"alpha": {"late": 1}, "beta": {"late": 1}}


async def test_nobody_is_asked_after_the_soft_bound(autojump_clock: MockClock) -> None:
    """All three of those that are asked refuse too late for the fourth."""
    late = Maker(SOFT_S + 0.01, FirmFault.REFUSED)
    stage = Timed(alpha=late, beta=late, gamma=late, delta=late)
    stage.index.drop("delta", WETH, USDC)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(show_again, stage, SOFT_S)
        nursery.start_soon(refused, stage)
    assert list(stage.asked()) == ["alpha", "beta", "gamma"]


async def test_failures_are_followed_up_as_long_as_there_is_time(autojump_clock: MockClock) -> None:
    stage = Timed(
        alpha=Maker(0.05, FirmFault.REFUSED),
        beta=Maker(0.05, FirmFault.INVALID),
        gamma=Maker(0.05, FirmFault.UNFUNDED),
        delta=Maker(0.0),
        epsilon=Maker(0.0),
    )
    assert makers_of(await stage.sell()) == ["delta"]
    assert trio.current_time() == pytest.approx(0.15)
    assert "epsilon" not in stage.asked()
    assert stage.reasons() == {"alpha": {"refused": 1}, "beta": {"invalid": 1}, "gamma": {"unfunded": 1}}


async def test_slow_refusals_do_not_use_up_the_time(autojump_clock: MockClock) -> None:
    slow = Maker(PATIENCE_S - 0.01, FirmFault.REFUSED)
    stage = Timed(alpha=slow, beta=slow, gamma=slow, delta=slow, epsilon=slow, zeta=Maker(0.1))
    assert makers_of(await stage.sell()) == ["zeta"]
    assert trio.current_time() <= 2 * PATIENCE_S + 0.1 + 1e-6


async def test_one_who_fails_beside_a_slow_maker_is_followed_up_at_once(autojump_clock: MockClock) -> None:
    refusing = Maker(0.05, FirmFault.REFUSED)
    stage = Timed(alpha=HANGING, beta=refusing, gamma=HANGING, delta=Maker(0.05), epsilon=Maker(0.0))
    assert makers_of(await stage.sell()) == ["delta"]
    assert trio.current_time() == pytest.approx(PATIENCE_S + 0.05 + 0.05)
    assert "epsilon" not in stage.asked()


async def test_one_that_was_given_too_little_time_is_not_late(autojump_clock: MockClock) -> None:
    refusing = Maker(0.05, FirmFault.REFUSED)
    stage = Timed(alpha=HANGING, beta=refusing, gamma=HANGING, delta=Maker(0.05))
    assert makers_of(await stage.sell()) == ["delta"]
    assert stage.reasons() == {"alpha": {"late": 1}, "beta": {"refused": 1}}


@pytest.mark.parametrize("stall_at_s", [0.0, 0.1])
async def test_a_stall_of_our_own_is_no_makers_fault(mock_clock: MockClock, stall_at_s: float) -> None:
    """The loop stands still for 300 ms; the rest of the time would not make anybody late."""
    stage = Timed(alpha=HANGING, beta=HANGING, gamma=Maker(0.0))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stage.sell)
        await pass_time(mock_clock, stall_at_s)
        await pass_time(mock_clock, 0.3, steps=1)
        nursery.cancel_scope.cancel()
    assert stage.desk.statistics().filled == 1
    assert stage.reasons() == {}


async def test_who_hangs_through_a_stall_is_late_all_the_same(mock_clock: MockClock) -> None:
    stage = Timed(alpha=HANGING)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(refused, stage)
        await pass_time(mock_clock, 0.1)
        await pass_time(mock_clock, 0.3, steps=1)
        await pass_time(mock_clock, HARD_S)
        nursery.cancel_scope.cancel()
    assert stage.reasons() == {"alpha": {"late": 1}}


async def test_a_stall_before_a_request_excuses_nobody(mock_clock: MockClock) -> None:
    """The second maker is asked right after the stall."""
    stage = Timed(alpha=HANGING, beta=HANGING)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(refused, stage)
        await pass_time(mock_clock, 0.1)
        await pass_time(mock_clock, 0.3, steps=1)
        await pass_time(mock_clock, HARD_S)
        nursery.cancel_scope.cancel()
    assert stage.asked() == {"alpha": [0.0], "beta": [pytest.approx(0.4)]}
    assert stage.reasons() == {"alpha": {"late": 1}, "beta": {"late": 1}}


async def test_who_could_not_be_heard_until_time_was_up_is_not_late(mock_clock: MockClock) -> None:
    """The loop stalls soon after the question, until nothing is waited for any more."""
    stage = Timed(alpha=HANGING, beta=HANGING)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(refused, stage)
        await pass_time(mock_clock, 0.1)
        await pass_time(mock_clock, HARD_S, steps=1)
        nursery.cancel_scope.cancel()
    assert stage.reasons() == {}


async def test_wake_ups_that_are_a_little_late_save_nobody(mock_clock: MockClock) -> None:
    stage = Timed(alpha=HANGING, beta=Maker(0.001))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stage.sell)
        await pass_time(mock_clock, 0.4, steps=23)
        nursery.cancel_scope.cancel()
    assert stage.reasons() == {"alpha": {"late": 1}}


async def test_who_hangs_is_late_however_long_the_question_takes_to_make(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first look at the books takes 20 ms, which no maker's due is shorter by."""
    stage = Timed(alpha=HANGING, beta=Maker(0.001))
    looks = iter((0.02,))
    between = stage.index.between

    def slow(one: bytes, other: bytes) -> Mapping[BookKey, LiveBook]:
        autojump_clock.jump(next(looks, 0.0))
        return between(one, other)

    monkeypatch.setattr(stage.desk, "index", SimpleNamespace(between=slow))
    assert makers_of(await stage.sell()) == ["beta"]
    assert stage.reasons() == {"alpha": {"late": 1}}


async def pass_time(clock: MockClock, seconds: float, steps: int = 100) -> None:
    """In so many jumps, each as long as a stall of the loop is if there is one; all do what they can."""
    for _ in range(steps):
        await trio.testing.wait_all_tasks_blocked()
        clock.jump(seconds / steps)
    await trio.testing.wait_all_tasks_blocked()


async def refused(stage: Timed) -> None:
    with pytest.raises(NoRoute, match="time is up"):
        await stage.sell()


async def show_again(stage: Timed, at_s: float) -> None:
    await trio.sleep_until(at_s)
    stage.index.put(a_live_book("delta"))


@pytest.mark.parametrize("at_s", [0.1, PATIENCE_S + 0.1])
async def test_a_swap_that_is_cancelled_scores_only_what_failed(
    autojump_clock: MockClock, at_s: float
) -> None:
    stage = Timed(alpha=Maker(0.05, FirmFault.REFUSED), beta=HANGING, gamma=HANGING)
    with trio.move_on_after(at_s):
        await stage.sell()
    assert trio.current_time() == pytest.approx(at_s)
    assert stage.reasons() == {"alpha": {"refused": 1}}
    assert stage.desk.statistics().under_way == 0


async def test_a_blacklisted_user_and_a_full_pool_are_nobodys_fault(autojump_clock: MockClock) -> None:
    stage = Timed(
        alpha=Maker(0.0, FirmFault.BLACKLISTED), beta=Maker(0.0, FirmFault.OUT_OF_TIME), gamma=Maker(0.0)
    )
    assert makers_of(await stage.sell()) == ["gamma"]
    assert stage.reasons() == {}
    assert stage.rests == []


async def test_a_wake_up_that_is_late_by_a_beat_to_the_tick_is_no_stall(mock_clock: MockClock) -> None:
    stage = Timed(alpha=HANGING, beta=Maker(0.001))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stage.sell)
        await pass_time(mock_clock, 2 * FIRM_BEAT_S, steps=1)
        await pass_time(mock_clock, 0.4, steps=400)
        nursery.cancel_scope.cancel()
    assert stage.reasons() == {"alpha": {"late": 1}}
