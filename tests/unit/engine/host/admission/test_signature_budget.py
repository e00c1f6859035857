"""Units that a request with signatures takes from its caller, and units that it gives back."""

import pytest
import trio

from cambist.config.errors import (
    InsufficientBalance,
    InvalidCancelSignature,
    InvalidInput,
    InvalidSignature,
    RateLimited,
    ServiceUnavailable,
    StoreUnavailable,
)
from cambist.config.sections.venue import Rate, RateTier
from cambist.engine.host.admission.buckets import Buckets
from cambist.engine.host.admission.signatures import SignatureBudget, SignatureUnits
from support.venue.admitting import NOW_MS

BURST = 16


def units() -> SignatureUnits:
    return SignatureUnits(Buckets(Rate(per_s=0.1, burst=BURST)))


def left(of: SignatureUnits, now_ms: int = NOW_MS) -> int:
    taken = of.buckets.take("a", 1, now_ms)
    if taken.wait_s:
        return 0
    of.buckets.give_back("a", 1)
    return taken.left + 1


@pytest.mark.parametrize(
    ("by_key", "error", "spent"),
    [
        (None, None, 0),
        (None, InvalidInput("no order"), 0),
        (None, InvalidSignature("no digits"), 1),
        (1, None, 0),
        (1, InsufficientBalance("poor"), 0),
        (0, None, 0),
        (0, InvalidSignature("the contract says no"), 1),
        (0, InvalidCancelSignature("the contract says no"), 1),
        (0, InsufficientBalance("the contract says yes"), 1),
        (0, ServiceUnavailable("the chain is away"), 0),
        (0, StoreUnavailable("the store is away"), 0),
        (0, trio.Cancelled._create(), 0),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else str(value),
)
def test_what_a_request_spends(by_key: int | None, error: BaseException | None, spent: int) -> None:
    of = units()

    def request() -> None:
        with SignatureBudget(of, "a", NOW_MS) as budget:
            assert left(of) == BURST - 1, "taken before anything is looked at"
            if by_key is not None:
                budget.proven(by_key)
                assert left(of) == BURST - 1 + by_key, "back at once"
            if error is not None:
                raise error

    if error is None:
        request()
    else:
        with pytest.raises(type(error)):
            request()
    assert left(of) == BURST - spent
    assert of.spent == spent


def test_without_a_unit_nothing_is_looked_at() -> None:
    of = units()
    for _ in range(BURST):
        with pytest.raises(InvalidSignature), SignatureBudget(of, "a", NOW_MS):
            raise InvalidSignature
    with pytest.raises(RateLimited) as refused, SignatureBudget(of, "a", NOW_MS):
        pytest.fail("it was let in")
    assert refused.value.retry_after_s == 10
    assert refused.value.is_over_rate, "its connection pauses"
    with SignatureBudget(of, "b", NOW_MS), SignatureBudget(of, "a", NOW_MS + 10_000):
        pass
    assert (of.spent, of.refused) == (BURST, 1)


def test_many_signatures_take_a_unit_each_and_those_of_keys_come_back() -> None:
    of = units()
    with SignatureBudget(of, "a", NOW_MS) as budget:
        budget.begin(10)
        assert left(of) == BURST - 10
        budget.proven(7)
        assert left(of) == BURST - 3
        with pytest.raises(RateLimited), SignatureBudget(of, "a", NOW_MS) as other:
            other.begin(BURST)
        assert left(of) == BURST - 3, "what is not let in takes nothing"
    assert left(of) == BURST


def test_what_is_refused_and_answered_all_the_same_is_spent() -> None:
    of = units()
    with SignatureBudget(of, "a", NOW_MS) as budget:
        budget.refused(InvalidSignature())
        budget.begin(1)
        budget.wrong()
    assert left(of) == BURST - 2


def test_units_follow_the_tier_unless_it_says_otherwise() -> None:
    def rate(tier: RateTier) -> tuple[float, float]:
        return tier.signature_rate.per_s, tier.signature_rate.burst

    assert rate(RateTier(per_s=20, burst=100)) == (0.2, 20)
    assert rate(RateTier(per_s=200, burst=1_000)) == (2, 200)
    assert rate(RateTier(per_s=1, burst=2)) == (0.01, BURST)
    said = Rate(per_s=1, burst=50)
    assert RateTier(per_s=1, burst=2, wrong_signatures=said).signature_rate == said
    with pytest.raises(ValueError, match=r"wrong_signatures.burst is at least 16"):
        RateTier(per_s=1, burst=2, wrong_signatures=Rate(per_s=1, burst=15))


def test_a_bucket_that_filled_meanwhile_takes_nothing_back() -> None:
    of = units()
    with SignatureBudget(of, "a", NOW_MS) as budget:
        assert left(of, NOW_MS + 60_000) == BURST
        budget.proven(1)
    assert left(of, NOW_MS + 60_000) == BURST
