"""Live books in a sentence: tokens with few decimals, levels as (price, amount), anything else by default.

index = an_index(a_book("alpha", WETH, USDC, bids="2500 10 | 2499 5", asks="2501 8"))
"""

from collections.abc import Mapping
from decimal import Decimal

from cambist.codecs.messages.maker_messages import Level, PriceGrid
from cambist.feeds.books.book import build_book
from cambist.feeds.books.pair_index import LiveBook, PairIndex

WETH, USDC, DAI, WBTC, ODD = (bytes([number]) * 20 for number in range(1, 6))
DECIMALS: Mapping[bytes, int] = {WETH: 18, USDC: 6, DAI: 18, WBTC: 8, ODD: 0}
ONE = {token: 10**decimals for token, decimals in DECIMALS.items()}


def a_book(
    maker: str,
    base: bytes,
    quote: bytes,
    *,
    bids: str = "",
    asks: str = "",
    liquidity: int = 1_000_000,
    decimals: Mapping[bytes, int] = DECIMALS,
) -> LiveBook:
    """A maker's book of a pair, best level first."""
    grid = PriceGrid(levels(bids), levels(asks))
    book = build_book(grid, decimals[base], decimals[quote])
    return LiveBook(maker, base, quote, book, Decimal(liquidity))


def an_index(*books: LiveBook) -> PairIndex:
    """With these books."""
    index = PairIndex()
    for live in books:
        index.put(live)
    return index


def levels(text: str) -> tuple[Level, ...]:
    """`price amount | price amount`."""
    rows = (row.split() for row in text.split("|") if row.strip())
    return tuple((price, amount) for price, amount in rows)
