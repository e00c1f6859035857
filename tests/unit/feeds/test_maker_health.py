"""The score of a maker, its rests, and what never counts."""

import pytest

from cambist.config import limits
from cambist.feeds.firm_check import AGAINST_MAKER, FirmFault
from cambist.feeds.maker_health import NO_RESTS, Health, MakerHealth, PairHealth, Rests

WETH, USDC, DAI = b"\xc0" * 20, b"\xa0" * 20, b"\x6b" * 20
NOW_MS = 1_795_000_000_000
REST_MS, REST_MS_MAX = 5_000, 900_000


def a_health() -> MakerHealth:
    return MakerHealth(REST_MS, REST_MS_MAX)


def test_a_maker_of_whom_nothing_is_known_is_whole() -> None:
    assert a_health().report(NOW_MS).maker == Health(0, 100, {}, 0)
    assert a_health().report(NOW_MS).pairs == ()


@pytest.mark.parametrize("fault", sorted(AGAINST_MAKER))
def test_each_fault_of_the_makers_rests_the_pair_and_is_told(fault: FirmFault) -> None:
    health = a_health()
    assert health.record(WETH, USDC, fault, NOW_MS) == Rests(NOW_MS + REST_MS, 0)
    told = health.report(NOW_MS)
    assert told.pairs == (PairHealth(USDC, WETH, Health(1, 0, {fault.value: 1}, NOW_MS + REST_MS)),)
    assert told.maker == Health(1, 0, {fault.value: 1}, 0)


@pytest.mark.parametrize("fault", sorted(set(FirmFault) - AGAINST_MAKER))
def test_what_lies_with_the_user_never_counts(fault: FirmFault) -> None:
    health = a_health()
    for at in range(200):
        assert health.record(WETH, USDC, fault, NOW_MS + at) == NO_RESTS
    assert health.report(NOW_MS + 200).maker == Health(0, 100, {}, 0)


def test_rests_double_up_to_the_longest() -> None:
    health, now_ms, rests = a_health(), NOW_MS, []
    for _ in range(10):
        until_ms = health.record(USDC, WETH, FirmFault.LATE, now_ms).pair_until_ms
        rests.append(until_ms - now_ms)
        now_ms = until_ms
    assert rests == [5_000 * 2**times for times in range(8)] + [REST_MS_MAX] * 2


def test_a_pair_is_the_same_in_either_order_and_no_other_pair() -> None:
    health = a_health()
    health.record(WETH, USDC, FirmFault.LATE, NOW_MS)
    later_ms = NOW_MS + REST_MS
    assert health.record(USDC, WETH, FirmFault.LATE, later_ms).pair_until_ms == later_ms + 2 * REST_MS
    assert health.record(DAI, WETH, FirmFault.LATE, later_ms).pair_until_ms == later_ms + REST_MS


def test_a_fault_during_a_rest_is_counted_and_does_not_lengthen_it() -> None:
    health = a_health()
    first = health.record(WETH, USDC, FirmFault.REFUSED, NOW_MS)
    assert health.record(WETH, USDC, FirmFault.REFUSED, NOW_MS + 1) == NO_RESTS
    pair = health.report(NOW_MS + 1).pairs[0].health
    assert pair == Health(2, 0, {"refused": 2}, first.pair_until_ms)


def test_one_fault_among_many_clean_quotes_has_no_consequence() -> None:
    health = a_health()
    for at in range(95):
        assert health.record(WETH, USDC, None, NOW_MS + at) == NO_RESTS
    for at in range(95, 100):
        assert health.record(WETH, USDC, FirmFault.INVALID, NOW_MS + at) == NO_RESTS
    assert health.report(NOW_MS + 100).maker == Health(100, 95, {"invalid": 5}, 0)
    assert health.record(WETH, USDC, FirmFault.INVALID, NOW_MS + 100) == Rests(NOW_MS + 100 + REST_MS, 0)


def test_clean_quotes_take_the_doubling_back() -> None:
    health, now_ms = a_health(), NOW_MS
    for _ in range(4):
        now_ms = health.record(WETH, USDC, FirmFault.LATE, now_ms).pair_until_ms
    for _ in range(96):
        health.record(WETH, USDC, None, now_ms)
    assert health.record(WETH, USDC, FirmFault.LATE, now_ms) == NO_RESTS
    assert health.report(now_ms).maker == Health(100, 96, {"late": 4}, 0)  # the first fault is forgotten


def test_time_takes_it_back_too() -> None:
    health, now_ms = a_health(), NOW_MS
    for _ in range(4):
        now_ms = health.record(WETH, USDC, FirmFault.LATE, now_ms).pair_until_ms
    much_later_ms = now_ms + limits.MAKER_HEALTH_MEMORY_S * 1_000
    assert health.report(much_later_ms).maker == Health(0, 100, {}, 0)
    assert health.record(WETH, USDC, FirmFault.LATE, much_later_ms).pair_until_ms == much_later_ms + REST_MS


def test_faults_all_over_the_maker_rest_all_of_it() -> None:
    health, rests = a_health(), []
    for number in range(7):
        token = bytes([number]) * 20
        rests.append(health.record(token, WETH, FirmFault.UNAVAILABLE, NOW_MS).maker_until_ms)
    assert rests == [0] * 5 + [NOW_MS + REST_MS, 0]
    later_ms = NOW_MS + REST_MS
    assert health.record(DAI, WETH, FirmFault.LATE, later_ms).maker_until_ms == later_ms + 4 * REST_MS
    told = health.report(later_ms)
    assert told.maker == Health(8, 0, {"unavailable": 7, "late": 1}, later_ms + 4 * REST_MS)
    assert len(told.pairs) == 8


def test_the_worst_pairs_are_told_first_and_clean_ones_not_at_all() -> None:
    health = a_health()
    health.record(WETH, USDC, FirmFault.LATE, NOW_MS)
    health.record(WETH, USDC, None, NOW_MS)
    health.record(WETH, DAI, FirmFault.LATE, NOW_MS)
    health.record(USDC, DAI, None, NOW_MS)
    told = health.report(NOW_MS)
    assert [(pair.one, pair.other, pair.health.score) for pair in told.pairs] == [
        (DAI, WETH, 0),
        (USDC, WETH, 50),
    ]


def test_pairs_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAKER_ENTRIES_MAX", 3)
    health = a_health()
    for number in range(5):
        health.record(bytes([number]) * 20, WETH, FirmFault.LATE, NOW_MS)
    assert {pair.one for pair in health.report(NOW_MS).pairs} == {
        bytes([number]) * 20 for number in (2, 3, 4)
    }
