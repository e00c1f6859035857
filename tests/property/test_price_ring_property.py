"""Rings of prices and the points of a pair against the same recomputed from a plain list of samples."""

from decimal import Decimal
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from cambist.feeds.books.price_ring import PairPrices, PriceRing, pair_prices, price_points

SIZE = 8
near_prices = st.fractions(min_value=1, max_value=100, max_denominator=10**6)
wild_prices = st.builds(
    lambda price, exponent: price * Fraction(10) ** exponent, near_prices, st.integers(-60, 60)
)


def samples(prices: st.SearchStrategy[Fraction]) -> st.SearchStrategy[list[tuple[int, Fraction | None]]]:
    """Slots passed since the sample before, and the price or None."""
    return st.lists(st.tuples(st.integers(0, 2 * SIZE), st.none() | prices), min_size=1, max_size=40)


def filled(
    taken: list[tuple[int, Fraction | None]], start: int
) -> tuple[PriceRing, dict[int, Fraction], int]:
    """A ring with samples; the same as a dict without unknown prices; and the last slot."""
    ring, known, slot = PriceRing(SIZE), dict[int, Fraction](), start
    for passed, price in taken:
        slot += passed
        ring.put(slot, price)
        known.pop(slot, None)
        if price is not None:
            known[slot] = price
    return ring, {at: price for at, price in known.items() if slot - SIZE < at}, slot


@given(samples(near_prices), st.integers(0, 10**8), st.integers(0, 3 * SIZE), st.integers(0, SIZE))
def test_a_ring_has_the_last_samples_within_nine_digits(
    taken: list[tuple[int, Fraction | None]], start: int, back: int, count: int
) -> None:
    ring, known, last = filled(taken, start)
    first = last - back + SIZE
    values = ring.values(first, count)
    assert len(values) == count
    for at, value in enumerate(values, start=first):
        assert (value > 0) is (at in known)
        if value:
            exact = known[at] * Fraction(10) ** ring.exponent
            assert 0 <= exact - value < exact / 10**9


@given(samples(wild_prices), st.integers(0, 10**8))
def test_prices_of_any_size_are_kept_and_the_largest_ones_within_nine_digits(
    taken: list[tuple[int, Fraction | None]], start: int
) -> None:
    ring, known, last = filled(taken, start)
    values = dict(enumerate(ring.values(last - SIZE + 1, SIZE), start=last - SIZE + 1))
    assert {at for at, value in values.items() if value} == set(known)
    if (price := known.get(last)) is not None and price == max(known.values()):
        exact = price * Fraction(10) ** ring.exponent
        assert 0 <= exact - values[last] < exact / 10**8


@given(
    st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1)), max_size=40),
    st.integers(-12, 12),
    st.integers(1, 7),
    st.integers(0, 10**6),
)
def test_points_are_the_ends_and_bounds_of_the_ratios(
    pairs: list[tuple[int, int]], exponent: int, slots: int, first: int
) -> None:
    bases, quotes = [base for base, _ in pairs], [quote for _, quote in pairs]
    found = list(price_points(PairPrices(first, bases, quotes, exponent), slots, 15))
    assert len(found) == -(-len(pairs) // slots)
    ratios = [
        Fraction(base, quote) * Fraction(10) ** exponent if base and quote else None for base, quote in pairs
    ]
    known = [ratio for ratio in ratios if ratio is not None]
    texts = [text for point in found if point for text in point[1:]]
    digits = max((len(text.partition(".")[2]) for text in texts), default=0)
    assert digits <= 36
    for number, point in enumerate(found):
        of_point = [ratio for ratio in ratios[number * slots : (number + 1) * slots] if ratio is not None]
        assert (point is None) is (not of_point)
        if point is None:
            continue
        assert point[0] == (first + number * slots) * 15
        exact = of_point[0], max(of_point), min(of_point), of_point[-1]
        for text, ratio in zip(point[1:], exact, strict=True):
            assert "e" not in text.lower()
            shown = Fraction(Decimal(text))
            # Rounded down, by less than a unit of the ninth digit of the last price, or of the 36th decimal.
            assert 0 <= ratio - shown < max(known[-1] / 10**8, Fraction(1, 10**36))


@given(samples(near_prices), samples(near_prices), st.integers(0, 10**8))
def test_a_pair_is_the_ratio_of_its_tokens(
    ones: list[tuple[int, Fraction | None]], others: list[tuple[int, Fraction | None]], start: int
) -> None:
    one, known, last = filled(ones, start)
    other, known_other, last_other = filled(others, start)
    first = max(last, last_other) - SIZE + 1
    points = list(price_points(pair_prices(one, other, first, SIZE), 1, 15))
    for slot, point in enumerate(points, start=first):
        both = slot in known and slot in known_other
        assert (point is not None) is both
        if point is not None:
            exact = known[slot] / known_other[slot]
            assert abs(Fraction(Decimal(point[4])) - exact) < exact / 10**4


def test_a_price_that_has_outgrown_its_scale_leaves_the_others_their_places() -> None:
    ring = PriceRing(4)
    for slot, price in enumerate((Fraction(1), Fraction(10**9), Fraction(1, 10**9))):
        ring.put(slot, price)
    values = ring.values(0, 3)
    assert list(values) == [10 ** (ring.exponent), 10 ** (9 + ring.exponent), 1]
    assert 10**13 <= values[1] < 10**15


def test_a_price_that_does_not_fit_64_bits_any_more_has_a_new_scale() -> None:
    ring = PriceRing(4)
    ring.put(0, Fraction(1))
    ring.put(1, Fraction(190_000))  # 1.9e19 by the scale of the first, a little above 2^64
    small, large = ring.values(0, 2)
    assert large == 190_000 * small


def test_a_price_that_is_nothing_beside_another_one_is_still_a_price() -> None:
    ring = PriceRing(4)
    for slot, price in enumerate((Fraction(1), Fraction(10**30))):
        ring.put(slot, price)
    assert ring.values(0, 2)[0] == 1


def test_a_slot_before_the_latest_one_changes_nothing() -> None:
    ring = PriceRing(4)
    ring.put(9, Fraction(5))
    before = ring.values(6, 4)
    ring.put(8, Fraction(7))
    assert ring.values(6, 4) == before
