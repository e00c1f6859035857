"""Live books of makers, for what asks them for firm quotes."""

from collections.abc import Sequence
from decimal import Decimal

from cambist.codecs.messages.maker_messages import PriceGrid
from cambist.feeds.books.book import build_book
from cambist.feeds.books.pair_index import LiveBook

WETH, USDC, DAI = b"\xc0" * 20, b"\xa0" * 20, b"\x6b" * 20
DECIMALS = {WETH: 18, USDC: 6, DAI: 18}
Levels = Sequence[tuple[str, str]]
BIDS: Levels = (("2500", "1"), ("2499.5", "2"), ("2490", "10"))
ASKS: Levels = (("2501", "1"), ("2502", "2"), ("2510", "10"))


def a_live_book(
    maker: str = "alpha",
    base: bytes = WETH,
    quote: bytes = USDC,
    bids: Levels = BIDS,
    asks: Levels = ASKS,
    *,
    decimals: tuple[int, int] | None = None,
) -> LiveBook:
    """A maker's book; `decimals` of base and quote are needed for tokens without an entry in DECIMALS."""
    of_base, of_quote = decimals or (DECIMALS[base], DECIMALS[quote])
    book = build_book(PriceGrid(bids=tuple(bids), asks=tuple(asks)), of_base, of_quote)
    return LiveBook(maker, base, quote, book, Decimal(1_000_000))
