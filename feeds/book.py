"""Both sides of a market maker's price grid, as exact integers ready to be walked.

A level is (price, amount): the price of one base token in quote tokens, and a base quantity, both decimal
strings. A `Ladder` holds a side scaled to integers:

    price    in units of 10^-price_scale
    base     raw units of the base token; amounts finer than the token's decimals floor the level
    quote    price x base, in units of 10^-quote_scale raw units of the quote token

with prefix sums of base and of quote before each level, so that a fill is a bisect and one division. The
price scale is the largest of the side's, or larger where the quote token is finer than the base token, so
that every quantity is an integer.

A `Book` is two ladders that do not cross. It is built aside and never changed: whoever holds one swaps it for
the next in one assignment, and a side that did not change is taken over. `build_book` of one pair is the unit
of work between two checkpoints of a driver that applies a large snapshot.

The columns of a side, its prices and its amounts, are read one by one, and the last ones seen are remembered:
where prices move and sizes stay, or a fill changes sizes under the same prices, half of a side is a lookup.

Source: document 3, Price grid and "GET /prices semantics"; design, "Book".
Choice: an amount of zero is taken, written so or floored to it: the level is there for nobody to fill. It
    still counts as its side's best price, so a book that crosses by it is refused.
Choice: equal prices may follow one another in a side; only a better price after a worse one is refused.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from operator import mul

from msgspec import UNSET, Struct, UnsetType

from ..codecs.amounts import POWERS_OF_TEN, parse_decimals
from ..codecs.maker_messages import Level, PriceGrid
from ..config.errors import InvalidInput

COLUMNS_REMEMBERED = 2_048  # of prices, and as many of amounts: 12 MB at 20 levels
COLUMN_REMEMBERED_MAX = 64  # levels; longer columns are not remembered


class Ladder(Struct, frozen=True):
    """One side, best level first.

    Attributes:
        prices: per level.
        base_before, quote_before: sums of base and quote over the levels before each one; one entry more
            than `prices`, the last being the whole depth.
        quote_scale: quote quantities are in 10^-quote_scale raw units.
    """

    prices: tuple[int, ...]
    base_before: tuple[int, ...]
    quote_before: tuple[int, ...]
    quote_scale: int


class Book(Struct, frozen=True):
    """Both sides of a pair. A side that is cleared is a ladder without levels."""

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
    """Scale a grid. A side that is UNSET is cleared.

    Args:
        base_decimals, quote_decimals: of the two tokens, 0 to 36.
        field: names the pair in errors, e.g. `prices.WETH/USDC`.
        previous: the grid before and its book, of the same decimals: a side equal to that grid's is taken
            over, not built again.

    Raises:
        InvalidInput: names the side and level. A string is no decimal, a price is zero, a level is better
            than the one before, or the highest bid is not below the lowest ask (compared exactly).
    """
    same_bids = same_asks = None
    if previous is not None:
        before, book = previous
        same_bids = book.bids if grid.bids == before.bids else None
        same_asks = book.asks if grid.asks == before.asks else None
    bids = same_bids or _build_side(
        grid.bids, base_decimals, quote_decimals, rising=False, field=f"{field}.bids"
    )
    asks = same_asks or _build_side(
        grid.asks, base_decimals, quote_decimals, rising=True, field=f"{field}.asks"
    )
    _refuse_crossed(grid, bids, asks, field)
    return Book(bids, asks)


def build_ladder(
    levels: Sequence[Level],
    base_decimals: int,
    quote_decimals: int,
    *,
    rising: bool,
    field: str = "levels",
) -> Ladder:
    """Scale one side.

    Args:
        levels: (price, amount) decimal strings, best first.
        base_decimals, quote_decimals: of the two tokens, 0 to 36.
        rising: True for asks, whose prices worsen upwards; False for bids.
        field: named in errors, e.g. `prices.WETH/USDC.bids`.

    Raises:
        InvalidInput: a string is no decimal, a price is zero, or a level is better than the one before.
    """
    price_scale_min = max(quote_decimals - base_decimals, 0)
    if not levels:
        return Ladder((), (0,), (0,), price_scale_min + base_decimals - quote_decimals)
    price_texts, amount_texts = zip(*levels, strict=True)
    try:
        if len(levels) <= COLUMN_REMEMBERED_MAX:
            prices, price_scale = _remembered_prices(price_texts, price_scale_min, rising)
            bases, base_before = _remembered_amounts(amount_texts, base_decimals)
        else:
            prices, price_scale = _read_prices(price_texts, price_scale_min, rising)
            bases, base_before = _read_amounts(amount_texts, base_decimals)
    except InvalidInput as fault:
        raise InvalidInput(field=f"{field}{fault.field}", expected=fault.expected, got=fault.got) from None
    quote_before = tuple(accumulate(map(mul, prices, bases), initial=0))
    return Ladder(prices, base_before, quote_before, price_scale + base_decimals - quote_decimals)


def _build_side(
    levels: Sequence[Level] | UnsetType,
    base_decimals: int,
    quote_decimals: int,
    *,
    rising: bool,
    field: str,
) -> Ladder:
    present: Sequence[Level] = () if levels is UNSET else levels
    return build_ladder(present, base_decimals, quote_decimals, rising=rising, field=field)


def _read_prices(texts: tuple[str, ...], scale_min: int, rising: bool) -> tuple[tuple[int, ...], int]:  # noqa: FBT001
    """(prices, their scale), in order and above zero. An InvalidInput names `[level][0]`."""
    read, scale = parse_decimals(texts, "[{}][0]".format)
    if not all(read):
        at = read.index(0)
        raise InvalidInput(field=f"[{at}][0]", expected="a price above zero", got=texts[at])
    if read != sorted(read, reverse=not rising):
        better = ((then < first) if rising else (then > first) for first, then in pairwise(read))
        at = [*better].index(True) + 1
        raise InvalidInput(field=f"[{at}][0]", expected="best price first", got=texts[at])
    if scale < scale_min:
        factor = POWERS_OF_TEN[scale_min - scale]
        return tuple([price * factor for price in read]), scale_min
    return tuple(read), scale


def _read_amounts(texts: tuple[str, ...], decimals: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(raw units per level, their prefix sums). An InvalidInput names `[level][1]`."""
    read, scale = parse_decimals(texts, "[{}][1]".format)
    if scale <= decimals:
        factor = POWERS_OF_TEN[decimals - scale]
        bases = tuple([amount * factor for amount in read])
    else:
        divisor = POWERS_OF_TEN[scale - decimals]
        bases = tuple([amount // divisor for amount in read])
    return bases, tuple(accumulate(bases, initial=0))


_remembered_prices = lru_cache(COLUMNS_REMEMBERED)(_read_prices)
_remembered_amounts = lru_cache(COLUMNS_REMEMBERED)(_read_amounts)


def _refuse_crossed(grid: PriceGrid, bids: Ladder, asks: Ladder, field: str) -> None:
    """Refuse a best ask that is not above the best bid. Scales differ by side, quote scales by as much."""
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
