"""Work of a WebSocket client with each message: only count it, or decode it and build the book."""

from msgspec import UNSET

from cambist.codecs.messages.maker_messages import decode_stream_message
from cambist.feeds.books.book import Book, build_book

_MASK = (1 << 61) - 1


class Work:
    """Handler of a WebSocket client's messages: counts them, or builds books from them.

    Attributes:
        taken: number of messages.
        digest: digest of all books so far, or total length of the messages, to compare two clients.
    """

    def __init__(self, kind: str) -> None:
        self.take = {"receive": self._count, "book": self._apply}[kind]
        self.taken = 0
        self.digest = 0
        self.books: dict[str, Book] = {}

    def _count(self, message: str) -> None:
        self.taken += 1
        self.digest += len(message)

    def _apply(self, message: str) -> None:
        prices = decode_stream_message(message.encode()).body.prices
        assert prices is not UNSET
        for pair, grid in prices.items():
            book = build_book(grid, 18, 6, field=pair)
            self.books[pair] = book
            best = book.bids.prices[0] * 31 + book.asks.prices[-1]
            self.digest = (self.digest * 1_000_003 + best + book.bids.base_before[-1]) & _MASK
        self.taken += 1
