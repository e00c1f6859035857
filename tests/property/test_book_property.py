"""Books against rational arithmetic: a walk level by level over fractions, which shares no code with ours."""

from collections.abc import Callable
from fractions import Fraction
from math import ceil, floor

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from cambist.codecs.amounts import parse_decimals, parse_printed
from cambist.codecs.messages.maker_messages import Level, PriceGrid
from cambist.config.errors import InvalidInput
from cambist.feeds.books.book import Book, build_book, cut_ladder
from cambist.feeds.books.fill import base_paid, base_received, quote_paid, quote_received

Levels = tuple[Level, ...]

loose = st.from_regex(r"[0-9]{1,8}(\.[0-9]{1,14})?", fullmatch=True)
ticked = st.integers(1, 10**9).map(lambda ticks: f"{ticks // 10_000}.{ticks % 10_000:04}")
extreme = st.from_regex(r"[0-9]{1,36}(\.[0-9]{1,36})?", fullmatch=True)
token_decimals = st.sampled_from([0, 2, 6, 8, 18, 36])


def columns(texts: st.SearchStrategy[str]) -> st.SearchStrategy[list[str]]:
    return st.lists(texts, max_size=12)


@st.composite
def sides(draw: st.DrawFn) -> Levels:
    texts = draw(columns(loose) | columns(ticked) | columns(extreme))
    prices = [price for price in texts if Fraction(price)]
    return tuple((price, draw(loose | ticked | extreme)) for price in prices)


@st.composite
def grids(draw: st.DrawFn) -> PriceGrid:
    """Sorted grids; crossed ones too."""
    bids = sorted(draw(sides()), key=lambda level: Fraction(level[0]), reverse=True)
    asks = sorted(draw(sides()), key=lambda level: Fraction(level[0]))
    return PriceGrid(tuple(bids), tuple(asks))


@st.composite
def books(draw: st.DrawFn) -> tuple[PriceGrid, Book, int, int]:
    """Uncrossed grids: crossing asks, or at most one whole side, are cut off."""
    grid, base_decimals, quote_decimals = draw(grids()), draw(token_decimals), draw(token_decimals)
    bids, asks = levels_of(grid)
    if bids and asks:
        kept = tuple(level for level in asks if Fraction(level[0]) > Fraction(bids[0][0]))
        grid = PriceGrid(bids, kept)
    return grid, build_book(grid, base_decimals, quote_decimals), base_decimals, quote_decimals


def levels_of(grid: PriceGrid) -> tuple[Levels, Levels]:
    assert isinstance(grid.bids, tuple)
    assert isinstance(grid.asks, tuple)
    return grid.bids, grid.asks


def exact(levels: Levels, base_decimals: int) -> list[tuple[Fraction, Fraction]]:
    """(price, base tokens) with base floored to the token's units."""
    unit = 10**base_decimals
    return [(Fraction(price), Fraction(floor(Fraction(size) * unit), unit)) for price, size in levels]


def walk(levels: list[tuple[Fraction, Fraction]], wanted: Fraction) -> Fraction | None:
    """Cost of `wanted` from the levels, each at its price, best first."""
    total = Fraction(0)
    for price, held in levels:
        taken = min(wanted, held)
        total += taken * price
        wanted -= taken
    return None if wanted else total


def inverted(levels: list[tuple[Fraction, Fraction]]) -> list[tuple[Fraction, Fraction]]:
    """Inverted book for amounts in the quote token (spec 3.8.11 to 3.8.13): price 1 / p, amount p x a."""
    return [(1 / price, price * amount) for price, amount in levels]


def amounts_around(levels: list[tuple[Fraction, Fraction]], decimals: int) -> st.SearchStrategy[int]:
    """Raw amounts within the depth, at its level boundaries, and a little beyond."""
    sums, total = [0], Fraction(0)
    for _, amount in levels:
        total += amount
        sums += [floor(total * 10**decimals), ceil(total * 10**decimals)]
    return st.sampled_from(sums) | st.integers(0, sums[-1] + 2)


@given(books(), st.data())
def test_base_amounts_are_exact_and_rounded_for_the_maker(
    case: tuple[PriceGrid, Book, int, int], data: st.DataObject
) -> None:
    grid, book, base_decimals, quote_decimals = case
    for levels, ladder in zip(levels_of(grid), (book.bids, book.asks), strict=True):
        fractions = exact(levels, base_decimals)
        amount = data.draw(amounts_around(fractions, base_decimals))
        value = walk(fractions, Fraction(amount, 10**base_decimals))
        if value is None:
            assert quote_received(ladder, amount) is quote_paid(ladder, amount) is None
        else:
            assert quote_received(ladder, amount) == floor(value * 10**quote_decimals)
            assert quote_paid(ladder, amount) == ceil(value * 10**quote_decimals)


@given(books(), st.data())
def test_quote_amounts_are_the_inverted_book(
    case: tuple[PriceGrid, Book, int, int], data: st.DataObject
) -> None:
    grid, book, base_decimals, quote_decimals = case
    for levels, ladder in zip(levels_of(grid), (book.bids, book.asks), strict=True):
        fractions = inverted(exact(levels, base_decimals))
        amount = data.draw(amounts_around(fractions, quote_decimals))
        value = walk(fractions, Fraction(amount, 10**quote_decimals))
        if value is None:
            assert base_received(ladder, amount) is base_paid(ladder, amount) is None
        else:
            assert base_received(ladder, amount) == floor(value * 10**base_decimals)
            assert base_paid(ladder, amount) == ceil(value * 10**base_decimals)


@given(books(), st.data())
def test_a_side_that_is_cut_is_the_same_up_to_there_and_has_nothing_beyond(
    case: tuple[PriceGrid, Book, int, int], data: st.DataObject
) -> None:
    grid, book, base_decimals, quote_decimals = case
    for levels, ladder in zip(levels_of(grid), (book.bids, book.asks), strict=True):
        fractions = exact(levels, base_decimals)
        most = data.draw(amounts_around(fractions, base_decimals) | st.just(-1))
        cut = cut_ladder(ladder, most)
        amount = data.draw(amounts_around(fractions, base_decimals))
        for of_base in (quote_received, quote_paid):
            assert of_base(cut, amount) == (of_base(ladder, amount) if amount <= max(most, 0) else None)
        quote = data.draw(amounts_around(inverted(fractions), quote_decimals))
        is_within = quote * 10**cut.quote_scale <= cut.quote_before[-1]
        for of_quote in (base_received, base_paid):
            assert of_quote(cut, quote) == (of_quote(ladder, quote) if is_within else None)


@given(books(), st.data())
def test_more_never_costs_less_and_nothing_goes_beyond_the_depth(
    case: tuple[PriceGrid, Book, int, int], data: st.DataObject
) -> None:
    _, book, _, _ = case
    for ladder in (book.bids, book.asks):
        base_depth = ladder.base_before[-1]
        quote_depth = ladder.quote_before[-1] // 10**ladder.quote_scale
        for fill, depth in (
            (quote_received, base_depth),
            (quote_paid, base_depth),
            (base_received, quote_depth),
            (base_paid, quote_depth),
        ):
            less = data.draw(st.integers(0, depth))
            more = data.draw(st.integers(less, depth))
            cost_of_less, cost_of_more = fill(ladder, less), fill(ladder, more)
            assert cost_of_less is not None
            assert cost_of_more is not None
            assert cost_of_less <= cost_of_more
            assert fill(ladder, depth + 1) is None
        all_quote, all_base = quote_received(ladder, base_depth), base_received(ladder, quote_depth)
        assert all_quote == quote_depth
        assert all_base is not None
        assert all_base <= base_depth


@given(books(), st.data())
def test_a_round_trip_never_pays_the_user(
    case: tuple[PriceGrid, Book, int, int], data: st.DataObject
) -> None:
    _, book, _, _ = case
    amount = data.draw(st.integers(0, book.bids.base_before[-1]))
    brought = quote_received(book.bids, amount)
    assert brought is not None
    needed = base_paid(book.bids, brought)
    assert needed is not None
    assert needed <= amount
    bought = base_received(book.asks, brought)
    assert bought is None or bought <= amount


@given(grids(), token_decimals, token_decimals)
def test_a_book_is_refused_if_and_only_if_it_crosses(
    grid: PriceGrid, base_decimals: int, quote_decimals: int
) -> None:
    bids, asks = levels_of(grid)
    crossed = bool(bids and asks) and Fraction(bids[0][0]) >= Fraction(asks[0][0])
    if crossed:
        with pytest.raises(
            InvalidInput, match=r"prices\.A/B\.asks\[0\]\[0\]: expected a price above the best bid"
        ):
            build_book(grid, base_decimals, quote_decimals, field="prices.A/B")
    else:
        build_book(grid, base_decimals, quote_decimals)


@given(sides(), st.booleans())
def test_a_side_is_refused_if_and_only_if_it_is_unsorted(levels: Levels, rising: bool) -> None:
    prices = [Fraction(price) for price, _ in levels]
    grid = PriceGrid(asks=levels) if rising else PriceGrid(levels)
    if prices == sorted(prices, reverse=not rising):
        build_book(grid, 18, 6)
    else:
        with pytest.raises(InvalidInput, match=r"\[\d+\]\[0\]: expected best price first"):
            build_book(grid, 18, 6)


@given(books(), grids(), st.booleans(), st.booleans())
def test_taking_sides_over_gives_the_same_book_as_a_fresh_build(
    case: tuple[PriceGrid, Book, int, int], other: PriceGrid, keep_bids: bool, keep_asks: bool
) -> None:
    before, book, base_decimals, quote_decimals = case
    grid = PriceGrid(before.bids if keep_bids else other.bids, before.asks if keep_asks else other.asks)
    bids, asks = levels_of(grid)
    assume(not (bids and asks) or Fraction(bids[0][0]) < Fraction(asks[0][0]))
    copied = PriceGrid(*(tuple((f"{price}", f"{size}") for price, size in side) for side in (bids, asks)))
    reused = build_book(copied, base_decimals, quote_decimals, previous=(before, book))
    assert reused == build_book(copied, base_decimals, quote_decimals)
    if keep_bids and keep_asks:
        assert reused.bids is book.bids
        assert reused.asks is book.asks


almost_decimals = loose | ticked | extreme | st.text("0123456789.,-+_ e\n\u0665", max_size=6)


@example([""])
@example(["1e-7", "0.10"])
@example(["1", ""])
@example(["1,2"])
@example(["1,2", ""])
@example([".5", "5."])
@example(["1.2.3", "5"])
@example(["1.2.3", "5."])
@example(["0" * 37])
@example(["-1", "2"])
@example(["0.1", "1.1"])
@given(st.lists(almost_decimals, min_size=1, max_size=8) | st.lists(ticked, min_size=1, max_size=30))
def test_a_column_is_read_as_its_texts_one_by_one(texts: list[str]) -> None:
    def outcome(read: Callable[[], object]) -> object:
        try:
            return read()
        except InvalidInput as refusal:
            return refusal.detail

    def one_by_one() -> object:
        parsed = [parse_printed(text, f"x[{at}]") for at, text in enumerate(texts)]
        finest = max(scale for _, scale in parsed)
        return [Fraction(mantissa, 10**scale) for mantissa, scale in parsed], finest

    def as_column() -> object:
        mantissas, scale = parse_decimals(texts, "x[{}]".format)
        return [Fraction(mantissa, 10**scale) for mantissa in mantissas], scale

    assert outcome(as_column) == outcome(one_by_one)
