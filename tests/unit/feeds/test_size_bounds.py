"""Bounds on a maker's size after a refusal, and their release."""

import pytest

from cambist.config import limits
from cambist.feeds.firm.size_bounds import SizeBound, SizeBounds

WETH, USDC = b"\xc0" * 20, b"\xa0" * 20
NOW_MS = 1_795_000_000_000
REST_MS, REST_MS_MAX = 5_000, 900_000


def some_bounds() -> SizeBounds:
    return SizeBounds(REST_MS, REST_MS_MAX)


def test_a_refusal_halves_what_is_asked_for_in_its_direction_alone() -> None:
    bounds = some_bounds()
    bound = bounds.refused(WETH, USDC, 1_000, NOW_MS)
    assert bound == SizeBound(500, NOW_MS + REST_MS, 1)
    assert bounds.told(NOW_MS) == {(WETH, USDC): bound}
    assert bounds.told(NOW_MS + REST_MS) == {}


def test_further_refusals_halve_it_again_for_twice_as_long() -> None:
    bounds = some_bounds()
    told = [bounds.refused(WETH, USDC, amount, NOW_MS) for amount in (1_000, 400, 2_000, 100)]
    assert [bound.amount for bound in told] == [500, 200, 100, 50]
    assert [bound.until_ms - NOW_MS for bound in told] == [5_000, 10_000, 20_000, 40_000]


def test_no_bound_lasts_longer_than_the_longest() -> None:
    bounds = some_bounds()
    told = [bounds.refused(WETH, USDC, 2**100, NOW_MS) for _ in range(100)]
    assert told[-1] == SizeBound(1, NOW_MS + REST_MS_MAX, limits.MAKER_REFUSALS_MAX)


def test_what_is_signed_near_the_bound_widens_it() -> None:
    bounds = some_bounds()
    bounds.refused(WETH, USDC, 1_000, NOW_MS)
    assert bounds.signed(WETH, USDC, 249, NOW_MS) is None
    assert bounds.signed(USDC, WETH, 500, NOW_MS) is None
    assert bounds.signed(WETH, USDC, 250, NOW_MS) == SizeBound(1_000, NOW_MS + REST_MS, 0)
    assert bounds.signed(WETH, USDC, 900, NOW_MS + REST_MS) is None


@pytest.mark.parametrize(
    ("after_ms", "refusals"), [(REST_MS, 2), (REST_MS + REST_MS_MAX - 1, 2), (REST_MS + REST_MS_MAX, 1)]
)
def test_a_refusal_counts_on_after_its_bound(after_ms: int, refusals: int) -> None:
    bounds = some_bounds()
    bounds.refused(WETH, USDC, 1_000, NOW_MS)
    later_ms = NOW_MS + after_ms
    bound = bounds.refused(WETH, USDC, 4_000, later_ms)
    assert bound == SizeBound(2_000, later_ms + REST_MS * 2 ** (refusals - 1), refusals)


def test_bounds_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAKER_ENTRIES_MAX", 3)
    bounds = some_bounds()
    for number in range(5):
        bounds.refused(bytes([number]) * 20, WETH, 10, NOW_MS)
    assert [src[0] for src, _ in bounds.told(NOW_MS)] == [2, 3, 4]


@pytest.mark.parametrize(
    ("ends_in_ms", "lasts_ms"),
    [(-1, 0), (0, 0), (1, 1), (REST_MS - 1, REST_MS - 1), (REST_MS, REST_MS), (REST_MS + 1, REST_MS)],
)
def test_a_bound_that_our_callers_may_have_caused_ends_with_their_quotes_and_is_not_counted(
    ends_in_ms: int, lasts_ms: int
) -> None:
    bounds = some_bounds()
    bound = bounds.refused(WETH, USDC, 1_000, NOW_MS, NOW_MS + ends_in_ms)
    assert bound == SizeBound(500, NOW_MS + lasts_ms, 0)
    later_ms = NOW_MS + REST_MS
    assert bounds.refused(WETH, USDC, 1_000, later_ms) == SizeBound(500, later_ms + REST_MS, 1)
    bound = bounds.refused(WETH, USDC, 400, later_ms, later_ms + REST_MS_MAX)
    assert bound == SizeBound(200, later_ms + 2 * REST_MS, 1)


def test_each_signature_near_the_bound_doubles_it_and_forgets_one_refusal() -> None:
    bounds = some_bounds()
    for amount in (1_000, 500, 250):
        until_ms = bounds.refused(WETH, USDC, amount, NOW_MS).until_ms
    widened = [bounds.signed(WETH, USDC, 10_000, NOW_MS) for _ in range(4)]
    assert widened == [
        SizeBound(amount, until_ms, refusals)
        for amount, refusals in ((250, 2), (500, 1), (1_000, 0), (2_000, 0))
    ]
    assert bounds.told(until_ms - 1) == {(WETH, USDC): widened[-1]}
    assert bounds.told(until_ms) == {}
