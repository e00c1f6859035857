"""Token buckets against a model in fractions, and the promise that they make."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from cambist.config.sections.venue import RateTier
from cambist.engine.host.admission.buckets import Buckets

tiers = st.builds(
    lambda per_s, burst: RateTier(per_s=per_s / 100, burst=burst / 10),
    st.integers(1, 5_000),
    st.integers(10, 300),
)
requests = st.lists(
    st.tuples(st.integers(0, 3_000), st.sampled_from("abcdefgh"), st.integers(1, 8)), min_size=1, max_size=80
)


class Model:
    """A bucket as one would write it down: a level that rises and falls."""

    def __init__(self, tier: RateTier) -> None:
        self.per_ms = Fraction(str(tier.per_s)) / 1_000
        self.burst = Fraction(str(tier.burst))
        self.levels: dict[str, tuple[Fraction, int]] = {}

    def level(self, caller: str, now_ms: int) -> Fraction:
        level, at_ms = self.levels.get(caller, (self.burst, now_ms))
        return min(self.burst, level + (now_ms - at_ms) * self.per_ms)

    def take(self, caller: str, cost: int, now_ms: int) -> bool:
        level = self.level(caller, now_ms)
        enough = level >= min(Fraction(cost), self.burst)
        if enough:
            level -= min(Fraction(cost), self.burst)
        self.levels[caller] = level, now_ms
        return enough


@given(tiers, requests)
def test_buckets_are_the_model(tier: RateTier, asked: list[tuple[int, str, int]]) -> None:
    buckets, model, now_ms = Buckets(tier, callers_max=8), Model(tier), 0
    for pause_ms, caller, cost in asked:
        now_ms += pause_ms
        found = buckets.take(caller, cost, now_ms)
        assert (found.wait_s == 0) == model.take(caller, cost, now_ms)
        level = model.level(caller, now_ms)
        assert found.left == int(level)
        assert found.full_s == -((level - model.burst) / model.per_ms // 1_000)
        if found.wait_s:
            missing = min(Fraction(cost), model.burst) - level
            assert found.wait_s == -(-missing / model.per_ms // 1_000)
        assert len(buckets) <= 8


@given(tiers, requests, st.integers(1, 4))
def test_nobody_gets_more_than_burst_and_rate_whoever_is_forgotten(
    tier: RateTier, asked: list[tuple[int, str, int]], callers_max: int
) -> None:
    buckets, now_ms = Buckets(tier, callers_max=callers_max), 0
    given_to: dict[str, list[tuple[int, Fraction]]] = {}
    burst, per_ms = Fraction(str(tier.burst)), Fraction(str(tier.per_s)) / 1_000
    for pause_ms, caller, cost in asked:
        now_ms += pause_ms
        if not buckets.take(caller, cost, now_ms).wait_s:
            given_to.setdefault(caller, []).append((now_ms, min(Fraction(cost), burst)))
        assert len(buckets) <= callers_max
    for taken in given_to.values():
        for first, (start_ms, _) in enumerate(taken):
            for last in range(first, len(taken)):
                got = sum(cost for _, cost in taken[first : last + 1])
                assert got <= burst + (taken[last][0] - start_ms) * per_ms
