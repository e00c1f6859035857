"""NautilusTrader's order book as a process: reads "kind first count", answers "cpu digest".

    book     `nautilus_trader.model.book.OrderBook`, the one it documents: clear, then a level at a time,
             which is quicker than to make deltas of them
    pyo3     the Rust book below it without its Python types, as its own core holds it

Runs in .venv-nautilus, which has none of our packages. A level's strings become the price and the size of
its types, as whoever feeds it has to do.
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
    """The order book of its model."""

    def __init__(self) -> None:
        instrument = identifiers.InstrumentId.from_str(INSTRUMENT)
        self._book = model_book.OrderBook(instrument, enums.BookType.L2_MBP)

    def apply(self, grid: Any) -> None:
        """Replace all levels."""
        book, order = self._book, data.BookOrder
        price_of, size_of = objects.Price.from_str, objects.Quantity.from_str
        book.clear(0, 0)
        for side, levels in ((enums.OrderSide.BUY, grid.bids), (enums.OrderSide.SELL, grid.asks)):
            for price, size in levels:
                book.add(order(side, price_of(price), size_of(size), 0), 0)

    def levels(self) -> list[list[tuple[int, int]]]:
        """Of both sides, best first, in units of 10^-SCALE."""
        return [
            [(level.price.raw, sum(order.size.raw for order in level.orders())) for level in side]
            for side in (self._book.bids(), self._book.asks())
        ]


class RustBook:
    """The book of its Rust core."""

    def __init__(self) -> None:
        instrument = nautilus_pyo3.InstrumentId.from_str(INSTRUMENT)
        self._book = nautilus_pyo3.OrderBook(instrument, nautilus_pyo3.BookType.L2_MBP)

    def apply(self, grid: Any) -> None:
        """Replace all levels."""
        book, order, sides = self._book, nautilus_pyo3.BookOrder, nautilus_pyo3.OrderSide
        price_of, size_of = nautilus_pyo3.Price.from_str, nautilus_pyo3.Quantity.from_str
        book.clear(0, 0)
        for side, levels in ((sides.BUY, grid.bids), (sides.SELL, grid.asks)):
            for price, size in levels:
                book.add(order(side, price_of(price), size_of(size), 0), 0, 0, 0)

    def levels(self) -> list[list[tuple[int, int]]]:
        """Of both sides, best first, in units of 10^-SCALE."""
        return [
            [(level.price.raw, sum(order.size.raw for order in level.get_orders())) for level in side]
            for side in (self._book.bids(), self._book.asks())
        ]


BOOKS: dict[str, type[DocumentedBook | RustBook]] = {"book": DocumentedBook, "pyo3": RustBook}


def measure(book: DocumentedBook | RustBook, kind: str, first: int, count: int) -> str:
    """Apply `count` grids; the CPU of that alone counts."""
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
