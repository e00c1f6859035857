"""Process that builds order books by NautilusTrader, for lines as `bench.book_client` reads and writes.

    book     `nautilus_trader.model.book.OrderBook`, the documented book: cleared, then filled level by level,
             which is faster than deltas
    pyo3     the Rust book below it without its Python types, as NautilusTrader's own core holds it

Runs in .venv-nautilus, which has no package of cambist. The texts of a level become prices and sizes of
NautilusTrader's types, as any user of its books has to convert them.
"""

# pyright: reportMissingImports=false
import gc
import sys
import time
from typing import Any

from nautilus_trader.core import nautilus_pyo3
from nautilus_trader.model import book as model_book
from nautilus_trader.model import data, enums, identifiers, objects

from bench.book_corpus import digest_after, grids

SCALE = 16  # of its raw prices and sizes
INSTRUMENT = "WETHUSDC.SIM"


class DocumentedBook:
    """NautilusTrader's documented order book, `nautilus_trader.model.book.OrderBook`."""

    def __init__(self) -> None:
        instrument = identifiers.InstrumentId.from_str(INSTRUMENT)
        self._book = model_book.OrderBook(instrument, enums.BookType.L2_MBP)

    def apply(self, grid: Any) -> None:
        """Replace all levels of the book by those of a price grid."""
        book, order = self._book, data.BookOrder
        price_of, size_of = objects.Price.from_str, objects.Quantity.from_str
        book.clear(0, 0)
        for side, levels in ((enums.OrderSide.BUY, grid.bids), (enums.OrderSide.SELL, grid.asks)):
            for price, size in levels:
                book.add(order(side, price_of(price), size_of(size), 0), 0)

    def levels(self) -> list[list[tuple[int, int]]]:
        """Return the (price, amount) levels of both sides, best first, in units of 10^-SCALE."""
        return [
            [(level.price.raw, sum(order.size.raw for order in level.orders())) for level in side]
            for side in (self._book.bids(), self._book.asks())
        ]


class RustBook:
    """NautilusTrader's order book in Rust, without the Python types around it."""

    def __init__(self) -> None:
        instrument = nautilus_pyo3.InstrumentId.from_str(INSTRUMENT)
        self._book = nautilus_pyo3.OrderBook(instrument, nautilus_pyo3.BookType.L2_MBP)

    def apply(self, grid: Any) -> None:
        """Replace all levels of the book by those of a price grid."""
        book, order, sides = self._book, nautilus_pyo3.BookOrder, nautilus_pyo3.OrderSide
        price_of, size_of = nautilus_pyo3.Price.from_str, nautilus_pyo3.Quantity.from_str
        book.clear(0, 0)
        for side, levels in ((sides.BUY, grid.bids), (sides.SELL, grid.asks)):
            for price, size in levels:
                book.add(order(side, price_of(price), size_of(size), 0), 0, 0, 0)

    def levels(self) -> list[list[tuple[int, int]]]:
        """Return the (price, amount) levels of both sides, best first, in units of 10^-SCALE."""
        return [
            [(level.price.raw, sum(order.size.raw for order in level.get_orders())) for level in side]
            for side in (self._book.bids(), self._book.asks())
        ]


BOOKS: dict[str, type[DocumentedBook | RustBook]] = {"book": DocumentedBook, "pyo3": RustBook}


def measure(book: DocumentedBook | RustBook, kind: str, first: int, count: int) -> str:
    """Apply `count` price grids to a book; return CPU seconds and digest of all books as text.

    Args:
        kind: kind of the grids; see `bench.book_corpus`.
        first: number of the first grid.
    """
    cpu, digest = 0.0, 0
    for applied in grids(kind, first, count):
        began = time.thread_time()
        book.apply(applied.grid)
        if applied.is_measured:
            cpu += time.thread_time() - began
        digest = digest_after(digest, book.levels())
    return f"{cpu} {digest}"


if __name__ == "__main__":
    if nautilus_pyo3.FIXED_PRECISION != SCALE:
        raise SystemExit(f"raw values are of {nautilus_pyo3.FIXED_PRECISION} decimals, expected {SCALE}")
    book = BOOKS[sys.argv[1]]()
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        kind, first, count = line.split()
        sys.stdout.write(measure(book, kind, int(first), int(count)) + "\n")
        sys.stdout.flush()
