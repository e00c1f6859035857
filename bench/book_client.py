"""Process that builds cambist's order books for `bench.load_book`.

The process reads a line `kind first count`: the kind of the price grids, the number of the first grid, the
number of grids. The answer is a line `cpu digest`: the CPU seconds, and a digest of all books.
"""

import gc
import sys
import time
from itertools import pairwise

from bench.book_corpus import Applied, digest_after, grids
from cambist.codecs.messages.maker_messages import PriceGrid
from cambist.feeds.books.book import Book, Ladder, build_book

SCALE = 16  # of the levels that are compared
BASE_DECIMALS, QUOTE_DECIMALS = 18, 6


def measure(kind: str, first: int, count: int) -> str:
    """Build `count` books, each from its pair's previous book; return the CPU seconds and a digest as text.

    Only the building counts as CPU seconds; the digest covers all books.

    Args:
        kind: kind of the price grids, one of `bench.book_corpus`.
        first: number of the first grid.
    """
    cpu, digest = 0.0, 0
    books: dict[str, tuple[PriceGrid, Book]] = {}
    for applied in grids(kind, first, count):
        grid, previous = _grid(applied), books.get(applied.pair)
        began = time.thread_time()
        book = build_book(grid, BASE_DECIMALS, QUOTE_DECIMALS, field=applied.pair, previous=previous)
        books[applied.pair] = grid, book
        if applied.is_measured:
            cpu += time.thread_time() - began
        digest = digest_after(digest, [_levels(book.bids), _levels(book.asks)])
    return f"{cpu} {digest}"


def _grid(applied: Applied) -> PriceGrid:
    return PriceGrid(applied.grid.bids, applied.grid.asks)


def _levels(ladder: Ladder) -> list[tuple[int, int]]:
    """Return (price, amount) of each level of a side of a book, in units of 10^-SCALE."""
    price_scale = ladder.quote_scale + QUOTE_DECIMALS - BASE_DECIMALS
    bases = [after - before for before, after in pairwise(ladder.base_before)]
    return [
        (price * 10 ** (SCALE - price_scale), base // 10 ** (BASE_DECIMALS - SCALE))
        for price, base in zip(ladder.prices, bases, strict=True)
    ]


if __name__ == "__main__":
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        kind, first, count = line.split()
        sys.stdout.write(measure(kind, int(first), int(count)) + "\n")
        sys.stdout.flush()
