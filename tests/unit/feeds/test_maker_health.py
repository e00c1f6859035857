"""The score of a maker, its rests, and events that never count."""

from itertools import count

import pytest

from cambist.config import limits
from cambist.feeds.firm.firm_check import AGAINST_MAKER, FirmFault
from cambist.feeds.firm.maker_health import (
    FAULTY,
    NO_RESTS,
    UNSERVING,
    FaultTold,
    MakerHealth,
    PairHealth,
    QuoteHealth,
    Rests,
)
from cambist.feeds.firm.size_bounds import SizeBound

WETH, USDC, DAI, WBTC = b"\xc0" * 20, b"\xa0" * 20, b"\x6b" * 20, b"\x22" * 20
NOW_MS = 1_795_000_000_000
REST_MS, REST_MS_MAX = 5_000, 900_000

CALLERS = count()
"""Callers, each another."""


def a_health() -> MakerHealth:
    return MakerHealth(REST_MS, REST_MS_MAX)


def faults(health: MakerHealth, number: int, now_ms: int = NOW_MS, other: bytes = USDC) -> list[Rests]:
    return [health.record(WETH, other, FirmFault.LATE, now_ms, next(CALLERS)) for _ in range(number)]


def test_a_maker_of_whom_nothing_is_known_is_whole() -> None:
    assert a_health().report(NOW_MS).maker == QuoteHealth(0, 100, {}, 0)
    assert a_health().report(NOW_MS).pairs == ()


@pytest.mark.parametrize("fault", sorted(AGAINST_MAKER))
def test_the_third_fault_of_a_pair_rests_it_and_no_single_one_does(fault: FirmFault) -> None:
    health = a_health()
    rests = [health.record(WETH, USDC, fault, NOW_MS, next(CALLERS)) for _ in range(3)]
    assert rests == [NO_RESTS, NO_RESTS, Rests(NOW_MS + REST_MS, 0)]
    told = health.report(NOW_MS)
    assert told.pairs == (
        PairHealth(USDC, WETH, QuoteHealth(3, 0, {fault.value: 3}, NOW_MS + REST_MS, FAULTY)),
    )
    assert told.maker == QuoteHealth(3, 0, {fault.value: 3}, 0)


@pytest.mark.parametrize("fault", sorted(set(FirmFault) - AGAINST_MAKER - {FirmFault.REFUSED}))
def test_what_lies_with_the_user_never_counts(fault: FirmFault) -> None:
    health = a_health()
    for at in range(200):
        assert health.record(WETH, USDC, fault, NOW_MS + at, next(CALLERS)) == NO_RESTS
    assert health.report(NOW_MS + 200).maker == QuoteHealth(0, 100, {}, 0)


def test_refusals_are_told_and_rest_nothing() -> None:
    health = a_health()
    for at in range(200):
        assert health.record(WETH, USDC, FirmFault.REFUSED, NOW_MS + at, next(CALLERS)) == NO_RESTS
    told = health.report(NOW_MS + 200)
    assert told.maker == told.pairs[0].health == QuoteHealth(0, 100, {"refused": 100}, 0)


def test_refusals_do_not_wash_faults_away() -> None:
    health = a_health()
    faults(health, 2)
    for _ in range(200):
        health.record(WETH, USDC, FirmFault.REFUSED, NOW_MS, next(CALLERS))
    assert faults(health, 1) == [Rests(NOW_MS + REST_MS, 0)]


def test_rests_double_up_to_the_longest() -> None:
    health, now_ms, rests = a_health(), NOW_MS, []
    faults(health, 2)
    for _ in range(10):
        until_ms = health.record(USDC, WETH, FirmFault.LATE, now_ms, next(CALLERS)).pair_until_ms
        rests.append(until_ms - now_ms)
        now_ms = until_ms
    assert rests == [5_000 * 2**times for times in range(8)] + [REST_MS_MAX] * 2


def test_a_pair_is_the_same_in_either_order_and_no_other_pair() -> None:
    health = a_health()
    faults(health, 3)
    later_ms = NOW_MS + REST_MS
    assert (
        health.record(USDC, WETH, FirmFault.LATE, later_ms, next(CALLERS)).pair_until_ms
        == later_ms + 2 * REST_MS
    )
    assert health.record(DAI, WETH, FirmFault.LATE, later_ms, next(CALLERS)) == NO_RESTS


def test_a_fault_during_a_rest_is_counted_and_does_not_lengthen_it() -> None:
    health = a_health()
    until_ms = faults(health, 3)[-1].pair_until_ms
    assert health.record(WETH, USDC, FirmFault.LATE, NOW_MS + 1, next(CALLERS)) == NO_RESTS
    assert health.report(NOW_MS + 1).pairs[0].health == QuoteHealth(4, 0, {"late": 4}, until_ms, FAULTY)


def test_some_faults_among_many_clean_quotes_have_no_consequence() -> None:
    health = a_health()
    for at in range(90):
        assert health.record(WETH, USDC, None, NOW_MS + at, next(CALLERS)) == NO_RESTS
    for at in range(90, 100):
        assert health.record(WETH, USDC, FirmFault.INVALID, NOW_MS + at, next(CALLERS)) == NO_RESTS
    assert health.report(NOW_MS + 100).maker == QuoteHealth(100, 90, {"invalid": 10}, 0)
    assert health.record(WETH, USDC, FirmFault.INVALID, NOW_MS + 100, next(CALLERS)) == Rests(
        NOW_MS + 100 + REST_MS, 0
    )


@pytest.mark.parametrize("callers", [1, 3, 1_000])
def test_few_faults_among_many_quotes_rest_no_maker_however_few_callers_ask(callers: int) -> None:
    """An integrator's network asks for a thousand quotes in an hour, and each hundredth is late."""
    health = a_health()
    for number in range(1_000):
        fault = FirmFault.LATE if number % 100 == 0 else None
        assert health.record(WETH, USDC, fault, NOW_MS + 3_600 * number, number % callers) == NO_RESTS
    assert health.report(NOW_MS + 3_600_000).maker.score >= 90


def test_a_maker_that_fails_one_caller_rests_although_that_caller_counts_little() -> None:
    health = a_health()
    for number in range(100):
        health.record(WETH, USDC, None, NOW_MS, number)
    rests = [health.record(WETH, USDC, FirmFault.LATE, NOW_MS, 100) for _ in range(20)]
    assert rests == [NO_RESTS] * 20, "a tenth of the quotes may go wrong, and one caller has no more"
    assert health.record(WETH, USDC, FirmFault.LATE, NOW_MS, 101) == Rests(NOW_MS + REST_MS, 0)
    lone = a_health()
    for number in range(10):
        lone.record(WETH, USDC, None, NOW_MS + number, 0)
    assert [lone.record(WETH, USDC, FirmFault.LATE, NOW_MS, 0) for _ in range(3)][-1].pair_until_ms


def test_a_friend_that_asks_for_much_weighs_like_one_caller() -> None:
    """A thousand clean quotes of one caller lie between the faults of three others."""
    health = a_health()
    rests = []
    for caller in range(1, 4):
        for _ in range(1_000):
            health.record(WETH, USDC, None, NOW_MS, 0)
        rests.append(health.record(WETH, USDC, FirmFault.LATE, NOW_MS, caller))
    assert rests == [NO_RESTS, NO_RESTS, Rests(NOW_MS + REST_MS, 0)]
    assert health.report(NOW_MS).maker.quotes == limits.MAKER_QUOTES_A_CALLER + 3


def test_clean_quotes_take_the_doubling_back() -> None:
    health, now_ms = a_health(), NOW_MS
    faults(health, 2)
    for _ in range(4):
        now_ms = health.record(WETH, USDC, FirmFault.LATE, now_ms, next(CALLERS)).pair_until_ms
    for _ in range(94):
        health.record(WETH, USDC, None, now_ms, next(CALLERS))
    assert health.record(WETH, USDC, FirmFault.LATE, now_ms, next(CALLERS)) == NO_RESTS
    assert health.report(now_ms).maker == QuoteHealth(100, 94, {"late": 6}, 0)  # the first fault is forgotten


def test_time_takes_it_back_too() -> None:
    health, now_ms = a_health(), NOW_MS
    for _ in range(4):
        now_ms = faults(health, 3, now_ms)[-1].pair_until_ms or now_ms
    much_later_ms = now_ms + limits.MAKER_HEALTH_MEMORY_S * 1_000
    assert health.report(much_later_ms).maker == QuoteHealth(0, 100, {}, 0)
    assert faults(health, 3, much_later_ms)[-1].pair_until_ms == much_later_ms + REST_MS


def test_faults_of_long_ago_rest_nothing() -> None:
    health = a_health()
    faults(health, 2)
    assert faults(health, 1, NOW_MS + limits.MAKER_HEALTH_MEMORY_S * 1_000) == [NO_RESTS]


def test_however_many_faults_of_one_pair_rest_no_other() -> None:
    health, now_ms = a_health(), NOW_MS
    for _ in range(50):
        assert all(not rests.maker_until_ms for rests in faults(health, 3, now_ms))
        now_ms += 1_000


def test_faults_all_over_the_maker_rest_all_of_it() -> None:
    health = a_health()
    rests = [rest.maker_until_ms for other in (USDC, DAI, WBTC) for rest in faults(health, 3, other=other)]
    assert rests == [0] * 7 + [NOW_MS + REST_MS, 0]
    later_ms = NOW_MS + REST_MS
    (further,) = faults(health, 1, later_ms, bytes(20))
    assert further == Rests(0, later_ms + 2 * REST_MS)
    told = health.report(later_ms)
    assert told.maker == QuoteHealth(10, 0, {"late": 10}, later_ms + 2 * REST_MS, FAULTY)
    assert len(told.pairs) == 4


def serve(health: MakerHealth, users: range, *, is_served: bool) -> list[int]:
    return [health.served(user.to_bytes(20, "big"), NOW_MS, is_served=is_served) for user in users]


def test_a_maker_that_blacklists_most_of_its_askers_rests_and_it_is_said_why() -> None:
    health = a_health()
    until_ms = NOW_MS + limits.MAKER_UNSERVING_S * 1_000
    assert serve(health, range(4), is_served=True) == [0] * 4
    assert serve(health, range(4, 9), is_served=False) == [0] * 5
    assert serve(health, range(9, 10), is_served=False) == [until_ms]
    assert health.report(NOW_MS).maker == QuoteHealth(0, 100, {}, until_ms, UNSERVING)
    assert serve(health, range(10, 19), is_served=False) == [0] * 9


def test_one_user_however_often_it_asks_is_one_asker() -> None:
    health = a_health()
    serve(health, range(3), is_served=True)
    for _ in range(50):
        assert serve(health, range(3, 4), is_served=False) == [0]
    assert serve(health, range(4, 10), is_served=True) == [0] * 6


def test_of_too_many_askers_the_one_that_asked_longest_ago_is_forgotten() -> None:
    """The first user asks again: the next one takes the place of a user that was served."""
    health = a_health()
    serve(health, range(1), is_served=False)
    serve(health, range(10, 20), is_served=True)
    assert serve(health, range(1, 10), is_served=False) == [0] * 9
    assert serve(health, range(1), is_served=False) == [0]
    assert serve(health, range(20, 21), is_served=False) == [NOW_MS + limits.MAKER_UNSERVING_S * 1_000]


def test_an_asker_that_is_forgotten_does_not_count_any_more() -> None:
    """The one of longest ago was not served, and half of all twenty were not."""
    health = a_health()
    outcomes = [False, True, True, *[False, True] * 8, False]
    assert len(outcomes) == limits.MAKER_ASKERS_MAX
    for user, is_served in enumerate(outcomes):
        assert serve(health, range(user, user + 1), is_served=is_served) == [0]
    assert serve(health, range(20, 21), is_served=False) == [0]
    assert serve(health, range(21, 22), is_served=False) == [NOW_MS + limits.MAKER_UNSERVING_S * 1_000]


def test_a_maker_of_whom_only_good_is_known_has_the_full_score() -> None:
    health = a_health()
    for number in range(1, 4):
        health.record(WETH, USDC, None, NOW_MS, next(CALLERS))
        assert health.report(NOW_MS).maker == QuoteHealth(number, 100, {}, 0)


def test_a_probe_ends_a_rest_and_the_next_one_is_longer_all_the_same() -> None:
    health = a_health()
    faults(health, 3)
    later_ms = NOW_MS + REST_MS // 4
    health.end_rest(USDC, WETH, later_ms)
    assert health.report(later_ms).pairs[0].health.block_until_ms == 0
    assert faults(health, 1, later_ms) == [Rests(later_ms + 2 * REST_MS, 0)]


def test_what_is_released_is_forgotten() -> None:
    health = a_health()
    faults(health, 3)
    health.bounds.refused(WETH, USDC, 10, NOW_MS)
    serve(health, range(9), is_served=False)
    health.release()
    told = health.report(NOW_MS)
    assert (told.maker, told.pairs, told.bounds) == (QuoteHealth(0, 100, {}, 0), (), {})
    assert serve(health, range(9, 10), is_served=False) == [0]
    assert faults(health, 2) == [NO_RESTS] * 2


def test_the_last_faults_and_the_bounds_are_told() -> None:
    health = a_health()
    told = [FaultTold(NOW_MS + at, FirmFault.LATE, WETH, USDC, f"{at}") for at in range(20)]
    for one in told:
        health.remember(one)
    health.bounds.refused(WETH, USDC, 10, NOW_MS)
    report = health.report(NOW_MS)
    assert report.last_faults == tuple(told[: -1 - limits.MAKER_LAST_FAULTS_MAX : -1])
    assert report.bounds == {(WETH, USDC): SizeBound(5, NOW_MS + REST_MS, 1)}


def test_the_worst_pairs_are_told_first_and_clean_ones_not_at_all() -> None:
    health = a_health()
    health.record(WETH, USDC, FirmFault.LATE, NOW_MS, next(CALLERS))
    health.record(WETH, USDC, None, NOW_MS, next(CALLERS))
    health.record(WETH, DAI, FirmFault.LATE, NOW_MS, next(CALLERS))
    health.record(USDC, DAI, None, NOW_MS, next(CALLERS))
    told = health.report(NOW_MS)
    assert [(pair.one, pair.other, pair.health.score) for pair in told.pairs] == [
        (DAI, WETH, 0),
        (USDC, WETH, 50),
    ]


def test_pairs_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAKER_ENTRIES_MAX", 3)
    health = a_health()
    for number in (0, 1, 2, 3, 2, 4, 5):
        health.record(bytes([number]) * 20, WETH, FirmFault.LATE, NOW_MS, next(CALLERS))
    assert {pair.one for pair in health.report(NOW_MS).pairs} == {
        bytes([number]) * 20 for number in (2, 4, 5)
    }


def test_a_tenth_of_ninety_nine_quotes_is_nine_faults() -> None:
    health = a_health()
    for _ in range(89):
        health.record(WETH, USDC, None, NOW_MS, next(CALLERS))
    assert faults(health, 10) == [NO_RESTS] * 9 + [Rests(NOW_MS + REST_MS, 0)]


def test_a_rest_is_over_at_its_very_end() -> None:
    health = a_health()
    faults(health, 3)
    told = [health.report(NOW_MS + REST_MS - before_ms).pairs[0].health for before_ms in (1, 0)]
    assert [(health.block_until_ms, health.block_reason) for health in told] == [
        (NOW_MS + REST_MS, FAULTY),
        (0, ""),
    ]


def test_the_oldest_of_a_callers_quotes_makes_room_for_its_next() -> None:
    health = a_health()
    outcomes = [FirmFault.LATE, FirmFault.INVALID] + [None] * (limits.MAKER_QUOTES_A_CALLER - 2)
    for fault in outcomes:
        health.record(WETH, USDC, fault, NOW_MS, "of much")
    reasons = []
    for _ in range(3):
        reasons.append(health.report(NOW_MS).maker.reasons)
        health.record(WETH, USDC, None, NOW_MS, "of much")
    assert reasons == [{"late": 1, "invalid": 1}, {"invalid": 1}, {}]
    assert health.report(NOW_MS).maker.quotes == limits.MAKER_QUOTES_A_CALLER


def test_quotes_and_refusals_are_forgotten_after_the_same_time_one_by_one() -> None:
    health = a_health()
    for at in range(2):
        for fault in (FirmFault.LATE, FirmFault.REFUSED):
            health.record(WETH, USDC, fault, NOW_MS + at, next(CALLERS))
    ends_ms = NOW_MS + limits.MAKER_HEALTH_MEMORY_S * 1_000
    for after_ms, number in ((-1, 2), (0, 1)):
        told = QuoteHealth(number, 0, {"late": number, "refused": number}, 0)
        report = health.report(ends_ms + after_ms)
        assert (report.maker, report.pairs) == (told, (PairHealth(USDC, WETH, told),))
    assert health.report(ends_ms + 1).maker == QuoteHealth(0, 100, {}, 0)


def test_all_outcomes_are_counted_by_their_kind() -> None:
    health = a_health()
    for fault in (None, FirmFault.LATE, None, FirmFault.REFUSED, FirmFault.BLACKLISTED):
        health.record(WETH, USDC, fault, NOW_MS, next(CALLERS))
    assert health.outcomes == {"clean": 2, "late": 1, "refused": 1, "blacklisted": 1}


def test_a_probe_of_one_pair_ends_the_makers_rest_and_no_other_pairs() -> None:
    health = a_health()
    for other in (USDC, DAI, WBTC):
        faults(health, 3, other=other)
    health.end_rest(bytes(20), WETH, NOW_MS)
    told = health.report(NOW_MS)
    assert told.maker.block_until_ms == 0
    assert [pair.health.block_until_ms for pair in told.pairs] == [NOW_MS + REST_MS] * 3
    health.end_rest(USDC, WETH, NOW_MS + 2 * REST_MS)
    assert health.report(NOW_MS).maker.block_until_ms == 0
