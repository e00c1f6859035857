"""Both sides of a market maker's price grid, converted to exact integers. Pure.

A level is (price, amount): the price of one base token in quote tokens, and a base quantity, both decimal
strings. A `Ladder` holds a side scaled to integers:

    price    in units of 10^-price_scale
    base     raw units of the base token; amounts finer than the token's decimals floor the level
    quote    price x base, in units of 10^-quote_scale raw units of the quote token

with prefix sums of base and of quote before each level, so that a fill is a bisect and one division. The
price scale is the largest number of decimals in the side's prices, or larger where the quote token is finer
than the base token, so that every quantity is an integer.

A `Book` is two ladders that do not cross. A book is immutable: its owner replaces it by the next book in one
assignment, and an unchanged side is reused. `build_book` of one pair is the unit of work between two
checkpoints of a driver that applies a large snapshot.

The columns of a side, its prices and its amounts, are read separately, and a column equal to the previous one
is reused too: if prices move under the same sizes, or a fill changes sizes under the same prices, half of the
side is not read again. No other values are cached: a look-up of a new column costs as much as reading it.

Source: spec 3.4, 3.8; ARCHITECTURE.md, "Book".
Choice: A book level of zero, as written or floored, is accepted and never filled; as its side's best price it
    still counts when crossed books are refused.
Choice: Equal prices may follow one another in a book side; a better price after a worse one is refused.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from operator import mul, sub

from msgspec import UNSET, Struct, UnsetType

from ...codecs.amounts import POWERS_OF_TEN, parse_decimals
from ...codecs.messages.maker_messages import Level, PriceGrid
from ...config.errors import InvalidInput


class Ladder(Struct, frozen=True, gc=False):
    """A side of a book (bids or asks) as exact integers: price levels, best first, with prefix sums.

    Attributes:
        prices: price of each level, in 10^-quote_scale raw quote units per raw base unit.
        base_before, quote_before: sums of the base and quote amounts over all levels before each level; one
            entry more than `prices`, the last being the sum over all levels. Base amounts are in raw units,
            quote amounts in 10^-quote_scale raw units.
        quote_scale: decimal digits of `prices` and `quote_before` beyond whole raw quote units.
    """

    prices: tuple[int, ...]
    base_before: tuple[int, ...]
    quote_before: tuple[int, ...]
    quote_scale: int


class Book(Struct, frozen=True, gc=False):
    """Bids and asks of a pair. A side without orders is a ladder without levels."""

    bids: Ladder
    asks: Ladder


def build_book(
    grid: PriceGrid,
    base_decimals: int,
    quote_decimals: int,
    *,
    field: str = "prices",
    previous: tuple[PriceGrid, Book] | None = None,
) -> Book:
    """Build the book of a pair from its price grid. A side absent from the grid (UNSET) gets no levels.

    Args:
        base_decimals, quote_decimals: decimals of the two tokens, 0 to 36.
        field: name of the pair in errors, e.g. `prices.WETH/USDC`.
        previous: the previous grid and the book built from it with the same decimals; parsed prices and
            amounts are reused where the two grids agree.

    Raises:
        InvalidInput: a string is no decimal, a price is zero, a level is better than the level before, or the
            highest bid is not below the lowest ask (compared exactly). The error names the side and the
            level.
    """
    before_bids = before_asks = None
    if previous is not None:
        before, book = previous
        before_bids, before_asks = (_present(before.bids), book.bids), (_present(before.asks), book.asks)
    bids = build_ladder(
        _present(grid.bids), base_decimals, quote_decimals,
        rising=False, field=f"{field}.bids", previous=before_bids,
    )  # fmt: skip
    asks = build_ladder(
        _present(grid.asks), base_decimals, quote_decimals,
        rising=True, field=f"{field}.asks", previous=before_asks,
    )  # fmt: skip
    _refuse_crossed(grid, bids, asks, field)
    return Book(bids, asks)


def build_ladder(
    levels: Sequence[Level],
    base_decimals: int,
    quote_decimals: int,
    *,
    rising: bool,
    field: str = "levels",
    previous: tuple[Sequence[Level], Ladder] | None = None,
) -> Ladder:
    """Build one side of a book from its price levels.

    Args:
        levels: (price, amount) decimal strings, best first.
        base_decimals, quote_decimals: decimals of the two tokens, 0 to 36.
        rising: True for asks, whose best price is the lowest; False for bids.
        field: name of the side in errors, e.g. `prices.WETH/USDC.bids`.
        previous: the previous levels of this side and the ladder built from them with the same decimals;
            equal prices or amounts are reused, not parsed again.

    Raises:
        InvalidInput: a string is no decimal, a price is zero, or a level is better than the level before.
    """
    before, ladder = previous or ((), None)
    if ladder is not None and levels == before:
        return ladder
    finer = quote_decimals - base_decimals  # price scale minus quote scale
    price_scale_min = max(finer, 0)
    if not levels:
        return Ladder((), (0,), (0,), price_scale_min - finer)
    price_texts, amount_texts = zip(*levels, strict=True)
    prices_before, amounts_before = zip(*before, strict=True) if before else ((), ())
    try:
        if ladder is not None and price_texts == prices_before:
            prices, price_scale = ladder.prices, ladder.quote_scale + finer
        else:
            prices, price_scale = _read_prices(price_texts, price_scale_min, rising=rising)
        if ladder is not None and amount_texts == amounts_before:
            base_before = ladder.base_before
            # The amounts again, from their prefix sums: an iterator, for the one use below.
            bases: Iterable[int] = map(sub, base_before[1:], base_before)
        else:
            bases = _read_amounts(amount_texts, base_decimals)
            base_before = tuple(accumulate(bases, initial=0))
    except InvalidInput as fault:
        raise InvalidInput(field=f"{field}{fault.field}", expected=fault.expected, got=fault.got) from None
    quote_before = tuple(accumulate(map(mul, prices, bases), initial=0))
    return Ladder(prices, base_before, quote_before, price_scale - finer)


def cut_ladder(ladder: Ladder, base_most: int) -> Ladder:
    """Cut a book side to `base_most` raw base units: drop the worst levels and shorten the last one kept."""
    sums, quotes = ladder.base_before, ladder.quote_before
    if base_most >= sums[-1]:
        return ladder
    if base_most <= 0:
        return Ladder((), (0,), (0,), ladder.quote_scale)
    level = bisect_left(sums, base_most) - 1
    last = quotes[level] + (base_most - sums[level]) * ladder.prices[level]
    return Ladder(
        ladder.prices[: level + 1],
        (*sums[: level + 1], base_most),
        (*quotes[: level + 1], last),
        ladder.quote_scale,
    )


def _present(levels: Sequence[Level] | UnsetType) -> Sequence[Level]:
    return () if levels is UNSET else levels


def _read_prices(texts: tuple[str, ...], scale_min: int, *, rising: bool) -> tuple[tuple[int, ...], int]:
    """Parse a side's prices to (integers in units of 10^-scale, scale), with a scale of at least `scale_min`.

    InvalidInput names the level, `[level][0]`, whose price is no decimal, is zero, or is better than the
    price of the level before.
    """
    # Towards the maker's gain: a seller's price up, a buyer's price down.
    read, scale = parse_decimals(texts, "[{}][0]".format, scale_min, up=rising)
    if not all(read):
        at = read.index(0)
        raise InvalidInput(field=f"[{at}][0]", expected="a price above zero", got=texts[at])
    if read != sorted(read, reverse=not rising):
        better = ((then < first) if rising else (then > first) for first, then in pairwise(read))
        at = [*better].index(True) + 1
        raise InvalidInput(field=f"[{at}][0]", expected="best price first", got=texts[at])
    return tuple(read), scale


def _read_amounts(texts: tuple[str, ...], decimals: int) -> list[int]:
    """Parse a side's amounts to raw base units per level; InvalidInput names the bad level, `[level][1]`."""
    read, scale = parse_decimals(texts, "[{}][1]".format, decimals)
    if scale == decimals:
        return read
    divisor = POWERS_OF_TEN[scale - decimals]
    return [amount // divisor for amount in read]


def _refuse_crossed(grid: PriceGrid, bids: Ladder, asks: Ladder, field: str) -> None:
    """Refuse a book whose best ask is not above its best bid; the sides may differ in `quote_scale`."""
    if not grid.bids or not grid.asks:
        return
    finer = asks.quote_scale - bids.quote_scale
    bid = bids.prices[0] * POWERS_OF_TEN[max(finer, 0)]
    ask = asks.prices[0] * POWERS_OF_TEN[max(-finer, 0)]
    if bid >= ask:
        raise InvalidInput(
            field=f"{field}.asks[0][0]",
            expected=f"a price above the best bid, {grid.bids[0][0]}",
            got=grid.asks[0][0],
        )
