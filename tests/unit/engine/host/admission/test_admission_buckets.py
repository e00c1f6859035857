"""Token buckets: tokens of a caller over time, and buckets that are forgotten."""

import pytest

from cambist.config.sections.venue import RateTier
from cambist.engine.host.admission.buckets import Buckets, TokensTaken

NOW_MS = 1_700_000_000_000


def taken(found: TokensTaken) -> tuple[int, int, int]:
    return found.left, found.full_s, found.wait_s


def test_a_bucket_gives_its_burst_and_then_what_flows_in() -> None:
    buckets = Buckets(RateTier(per_s=2, burst=3))
    assert [taken(buckets.take("a", 1, NOW_MS)) for _ in range(4)] == [
        (2, 1, 0),
        (1, 1, 0),
        (0, 2, 0),
        (0, 2, 1),
    ]
    assert taken(buckets.take("a", 1, NOW_MS + 499)) == (0, 2, 1)
    assert taken(buckets.take("a", 1, NOW_MS + 500)) == (0, 2, 0)
    assert taken(buckets.take("a", 1, NOW_MS + 501)) == (0, 2, 1)


def test_callers_have_buckets_of_their_own() -> None:
    buckets = Buckets(RateTier(per_s=1, burst=1))
    assert buckets.take("a", 1, NOW_MS).wait_s == 0
    assert buckets.take("a", 1, NOW_MS).wait_s == 1
    assert buckets.take("b", 1, NOW_MS).wait_s == 0


@pytest.mark.parametrize(("per_s", "burst"), [(0.1, 1.0), (1 / 3, 2.5), (1e-5, 1.5), (7.7, 9.9)])
def test_fractions_are_exact(per_s: float, burst: float) -> None:
    """Emptied again and again over a million milliseconds, a bucket gives neither a token more nor less."""
    buckets = Buckets(RateTier(per_s=per_s, burst=burst))
    got = 0
    for now_ms in range(NOW_MS, NOW_MS + 1_000_001, 10):
        while not buckets.take("a", 1, now_ms).wait_s:
            got += 1
    assert got == int(burst + per_s * 1_000)


def test_what_is_refused_takes_nothing() -> None:
    buckets = Buckets(RateTier(per_s=1, burst=10))
    assert buckets.take("a", 7, NOW_MS).left == 3
    refused = buckets.take("a", 5, NOW_MS)
    assert taken(refused) == (3, 7, 2)
    assert taken(buckets.take("a", 3, NOW_MS)) == (0, 10, 0)


def test_what_costs_more_than_a_bucket_holds_takes_all_of_it() -> None:
    buckets = Buckets(RateTier(per_s=1, burst=2))
    assert taken(buckets.take("a", 50, NOW_MS)) == (0, 2, 0)
    assert taken(buckets.take("a", 50, NOW_MS)) == (0, 2, 2)
    assert taken(buckets.take("a", 50, NOW_MS + 2_000)) == (0, 2, 0)


def test_a_clock_that_goes_back_gives_nothing_away() -> None:
    buckets = Buckets(RateTier(per_s=1, burst=1))
    assert buckets.take("a", 1, NOW_MS).wait_s == 0
    assert buckets.take("a", 1, NOW_MS - 60_000).wait_s > 0
    assert buckets.take("a", 1, NOW_MS + 1_000).wait_s == 0


def test_full_buckets_are_forgotten_as_new_callers_come() -> None:
    buckets = Buckets(RateTier(per_s=1, burst=1), callers_max=1_000)
    for number in range(10_000):
        assert buckets.take(f"caller {number}", 1, NOW_MS + 10 * number).wait_s == 0
    assert len(buckets) <= 200, "a hundred come in a second"


def test_a_bucket_that_is_not_full_is_kept_whoever_comes() -> None:
    buckets = Buckets(RateTier(per_s=1, burst=100), callers_max=50)
    buckets.take("heavy", 100, NOW_MS)
    for number in range(500):
        buckets.take(f"light {number}", 1, NOW_MS + 20 * number)
    assert buckets.take("heavy", 100, NOW_MS + 10_000).wait_s == 90


def test_a_table_without_room_refuses_newcomers_alone_and_recovers() -> None:
    buckets = Buckets(RateTier(per_s=1, burst=2), callers_max=3)
    for caller in "abc":
        assert buckets.take(caller, 1, NOW_MS).wait_s == 0
    assert taken(buckets.take("d", 1, NOW_MS)) == (0, 1, 1)
    assert buckets.take("a", 1, NOW_MS).wait_s == 0
    assert len(buckets) == 3
    assert buckets.take("d", 1, NOW_MS + 1_000).wait_s == 0
    assert len(buckets) <= 3
