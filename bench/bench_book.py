"""Benchmarks of order books: build them from price grids and price amounts, beside equal work in Decimal.

Every grid is decoded from its JSON for its round alone, so that no string was seen or hashed before. The
Decimal builder does the same as cambist's builder: refuses the same grids, floors amounts to units, keeps
prefix sums. Its pricing does not use the sums but walks level by level, as such code usually does.
"""

import random
from collections.abc import Callable
from decimal import ROUND_FLOOR, Context, Decimal, localcontext
from functools import cache
from typing import Any

import msgspec

from bench.conftest import LAPS
from bench.fixtures import next_of
from cambist.codecs.messages.maker_messages import Level, PriceGrid
from cambist.feeds.books.book import Book, Ladder, build_book
from cambist.feeds.books.fill import quote_received

BASE_DECIMALS, QUOTE_DECIMALS = 18, 6
ROUNDS = 6_000 // LAPS
EXACT = Context(prec=120)
UNIT = Decimal(10) ** -BASE_DECIMALS
CORPUS = 2_048  # grids

DecimalSide = tuple[list[Decimal], list[Decimal], list[Decimal]]


def side(numbers: random.Random, ticks: int, levels: int, *, rising: bool) -> list[Level]:
    """Make random levels of a side of a book: prices with four decimals and amounts with six, as texts."""
    made = []
    for _ in range(levels):
        ticks += numbers.randint(1, 60) if rising else -numbers.randint(1, 60)
        amount = numbers.randint(1, 99_999_999)
        made.append((f"{ticks // 10_000}.{ticks % 10_000:04}", f"{amount // 10**6}.{amount % 10**6:06}"))
    return made


def grid_json(seed: int, levels: int = 20) -> bytes:
    numbers = random.Random(seed)
    mid = numbers.randint(15_000_000, 35_000_000)
    bids, asks = (side(numbers, mid, levels, rising=rising) for rising in (False, True))
    return msgspec.json.encode({"bids": bids, "asks": asks})


decode_grid = msgspec.json.Decoder(PriceGrid).decode
GRIDS = [grid_json(seed) for seed in range(CORPUS)]


def apply(grid: PriceGrid, previous: tuple[PriceGrid, Book] | None = None) -> Book:
    return build_book(grid, BASE_DECIMALS, QUOTE_DECIMALS, field="prices.WETH/USDC", previous=previous)


def decimal_side(levels: Any, *, rising: bool) -> DecimalSide:
    prices: list[Decimal] = []
    bases, quotes = [Decimal(0)], [Decimal(0)]
    for price_text, amount_text in levels:
        price, amount = Decimal(price_text), Decimal(amount_text)
        if not price.is_finite() or price <= 0 or not amount.is_finite() or amount < 0:
            raise ValueError(price_text, amount_text)
        if prices and (price < prices[-1] if rising else price > prices[-1]):
            raise ValueError("best price first")
        amount = amount.quantize(UNIT, ROUND_FLOOR)
        prices.append(price)
        bases.append(bases[-1] + amount)
        quotes.append(quotes[-1] + price * amount)
    return prices, bases, quotes


def apply_decimal(grid: PriceGrid) -> tuple[DecimalSide, DecimalSide]:
    bids, asks = decimal_side(grid.bids, rising=False), decimal_side(grid.asks, rising=True)
    if bids[0] and asks[0] and bids[0][0] >= asks[0][0]:
        raise ValueError("crossed")
    return bids, asks


def walk_decimal(levels: list[tuple[Decimal, Decimal]], amount: Decimal) -> Decimal | None:
    total = Decimal(0)
    for price, held in levels:
        taken = min(amount, held)
        total += taken * price
        amount -= taken
        if not amount:
            return total
    return None


def assert_equal_work(raw: bytes) -> None:
    """Check that the integer builder and the Decimal builder make the same book of a price grid.

    Args:
        raw: the grid as JSON.
    """
    grid = decode_grid(raw)
    with localcontext(EXACT):
        for ladder, (prices, bases, quotes) in zip(_ladders(apply(grid)), apply_decimal(grid), strict=True):
            price_scale = ladder.quote_scale + QUOTE_DECIMALS - BASE_DECIMALS
            assert [Decimal(price).scaleb(-price_scale) for price in ladder.prices] == prices
            assert [Decimal(base).scaleb(-BASE_DECIMALS) for base in ladder.base_before] == bases
            scale = ladder.quote_scale + QUOTE_DECIMALS
            assert [Decimal(quote).scaleb(-scale) for quote in ladder.quote_before] == quotes


def _ladders(book: Book) -> tuple[Ladder, Ladder]:
    return book.bids, book.asks


def each_decoded(corpus: list[bytes]) -> Callable[[], tuple[tuple[PriceGrid], dict[str, Any]]]:
    following = next_of(corpus)
    return lambda: ((decode_grid(following()),), {})


def bench_apply_fresh(benchmark: Any) -> None:
    assert_equal_work(GRIDS[0])
    benchmark.pedantic(apply, setup=each_decoded(GRIDS), rounds=ROUNDS, warmup_rounds=100)


def bench_apply_fresh_decimal(benchmark: Any) -> None:
    with localcontext(EXACT):
        benchmark.pedantic(apply_decimal, setup=each_decoded(GRIDS), rounds=ROUNDS, warmup_rounds=100)


def bench_apply_half_the_levels_changed(benchmark: Any) -> None:
    """Measure the update of a book in which every second level of both sides gets a new price and amount."""
    _apply_changes(benchmark, prices=True, amounts=True)


def bench_apply_half_the_prices_changed(benchmark: Any) -> None:
    """Measure the update of a book in which every second level gets a new price; amounts stay the same."""
    _apply_changes(benchmark, prices=True, amounts=False)


def bench_apply_half_the_amounts_changed(benchmark: Any) -> None:
    """Measure the update of a book in which every second level gets a new amount; prices stay the same."""
    _apply_changes(benchmark, prices=False, amounts=True)


def _apply_changes(benchmark: Any, *, prices: bool, amounts: bool) -> None:
    numbers = random.Random(0)
    grid = decode_grid(GRIDS[0])
    state: list[tuple[PriceGrid, Book]] = [(grid, apply(grid))]

    def following() -> tuple[tuple[PriceGrid, tuple[PriceGrid, Book]], dict[str, Any]]:
        sides = msgspec.json.decode(GRIDS[0])
        for name, levels in sides.items():
            best, step = int(levels[0][0].replace(".", "")), 100 if name == "asks" else -100
            for at, level in enumerate(levels):
                changes = at % 2 == 0
                if amounts and changes:
                    level[1] = f"{numbers.randint(0, 99)}.{numbers.randint(0, 999_999):06}"
                if prices:  # by less than a step, so levels stay in order
                    ticks = best + step * (at + 1) + numbers.randint(0, 99) * changes
                    level[0] = f"{ticks // 10_000}.{ticks % 10_000:04}"
        return (decode_grid(msgspec.json.encode(sides)), state[0]), {}

    def apply_next(grid: PriceGrid, previous: tuple[PriceGrid, Book]) -> None:
        state[0] = grid, apply(grid, previous)

    benchmark.pedantic(apply_next, setup=following, rounds=ROUNDS, warmup_rounds=100)


def bench_apply_unchanged(benchmark: Any) -> None:
    grid = decode_grid(GRIDS[0])
    previous = grid, apply(grid)
    benchmark.pedantic(
        apply,
        setup=lambda: ((decode_grid(GRIDS[0]), previous), {}),
        rounds=ROUNDS,
        warmup_rounds=100,
    )


def amounts(book: Book) -> list[int]:
    """Return base amounts, in raw units, that are spread over the whole depth of the book."""
    numbers = random.Random(1)
    depth = book.bids.base_before[-1]
    return [numbers.randint(1, depth) for _ in range(10_000)]


@cache
def priced(levels: int) -> tuple[Book, list[tuple[Decimal, Decimal]], list[int]]:
    """Return a book, its bids as Decimals, and amounts that both forms of the book price alike."""
    raw = grid_json(1, levels)
    book, decimal_levels = apply(decode_grid(raw)), levels_decimal(raw)
    sold = amounts(book)
    with localcontext(EXACT):
        for amount in sold[:1_000]:
            walked = walk_decimal(decimal_levels, Decimal(amount).scaleb(-BASE_DECIMALS))
            assert walked is not None
            units = walked.scaleb(QUOTE_DECIMALS).to_integral_value(ROUND_FLOOR)
            assert quote_received(book.bids, amount) == int(units)
    return book, decimal_levels, sold


def price_with_ours(benchmark: Any, levels: int) -> None:
    book, _, sold = priced(levels)
    bids, following = book.bids, next_of(sold)
    assert benchmark(lambda: quote_received(bids, following()))


def price_with_decimals(benchmark: Any, levels: int) -> None:
    _, decimal_levels, sold = priced(levels)
    following = next_of(sold)

    def quote() -> int:
        walked = walk_decimal(decimal_levels, Decimal(following()).scaleb(-BASE_DECIMALS))
        assert walked is not None
        return int(walked.scaleb(QUOTE_DECIMALS).to_integral_value(ROUND_FLOOR))

    with localcontext(EXACT):
        assert benchmark(quote)


def levels_decimal(raw: bytes) -> list[tuple[Decimal, Decimal]]:
    return [(Decimal(price), Decimal(amount)) for price, amount in msgspec.json.decode(raw)["bids"]]


def bench_quote_20_levels(benchmark: Any) -> None:
    price_with_ours(benchmark, 20)


def bench_quote_20_levels_decimal(benchmark: Any) -> None:
    price_with_decimals(benchmark, 20)


def bench_quote_100_levels(benchmark: Any) -> None:
    price_with_ours(benchmark, 100)


def bench_quote_100_levels_decimal(benchmark: Any) -> None:
    price_with_decimals(benchmark, 100)
