"""Index of the books of one chain that may be routed, by pair and by token. Pure.

The index holds a book exactly while it may be used: the maker's cache adds a newly confirmed book, and
removes it when it is stale, disabled, cooling down or gone. Readers see whole books only, and may cache
derived values for as long as the version of the pair stays the same.

Source: ARCHITECTURE.md, "Feeds".
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal

from msgspec import Struct

from .book import Book


class LiveBook(Struct, frozen=True, gc=False):
    """A maker's book of one pair, which routes may use now.

    Attributes:
        maker: name of the maker.
        base, quote: addresses of the two tokens, 20 bytes each.
        liquidity_usd: the maker's own estimate of the pair's liquidity, US dollars; it serves to rank books
            and tokens, and is part of no price.
    """

    maker: str
    base: bytes
    quote: bytes
    book: Book
    liquidity_usd: Decimal


BookKey = tuple[str, bytes]  # maker, base

_CHANGES_KEPT = 16  # of each pair


class PairIndex:
    """Index of one chain's live books, those that routes may use now, by their two tokens in either order.

    Attributes:
        version: rises with every change of any book.
        topology: rises when a book comes or goes, or its liquidity changes, but not with prices.
    """

    def __init__(self) -> None:
        self._between: dict[tuple[bytes, bytes], dict[BookKey, LiveBook]] = {}
        self._neighbours: dict[bytes, dict[bytes, Decimal]] = {}
        self._versions: dict[tuple[bytes, bytes], int] = {}
        self._changes: dict[tuple[bytes, bytes], deque[tuple[int, BookKey]]] = {}  # version, book; the latest
        self._watchers: set[Callable[[bytes, bytes], None]] = set()
        self.version = 0
        self.topology = 0

    def put(self, live: LiveBook) -> None:
        """Add a book, in place of the same maker's book of the same base and quote."""
        books = self._between.setdefault(ends_of(live.base, live.quote), {})
        key = live.maker, live.base
        before = books.get(key)
        if before == live:
            return
        books[key] = live
        if before is None or before.liquidity_usd != live.liquidity_usd:
            self._weigh(live.base, live.quote, books)
        self._touch(live.base, live.quote, live.maker)

    def drop(self, maker: str, base: bytes, quote: bytes) -> None:
        """Remove a book; no error if the index does not hold it."""
        books = self._between.get(ends_of(base, quote))
        if books is None or books.pop((maker, base), None) is None:
            return
        self._weigh(base, quote, books)
        self._touch(base, quote, maker)

    def between(self, one: bytes, other: bytes) -> Mapping[BookKey, LiveBook]:
        """Live books between two tokens, whichever is the base, by (maker, base token)."""
        return self._between.get(ends_of(one, other), {})

    def pair_version(self, one: bytes, other: bytes) -> int:
        """Version of the books between two tokens; rises with every change of one of them."""
        return self._versions.get(ends_of(one, other), 0)

    def changed_since(self, one: bytes, other: bytes, version: int) -> set[BookKey] | None:
        """Keys in `between` of the books that changed, came or went after a version of the pair.

        The result is None if more have changed than the index remembers.
        """
        changes = self._changes.get(ends_of(one, other))
        if changes is None:
            return set()
        if len(changes) == _CHANGES_KEPT and changes[0][0] > version:
            return None
        return {key for at, key in changes if at > version}

    def neighbours(self, token: bytes) -> Mapping[bytes, Decimal]:
        """Map each token that has live books against `token` to these books' total liquidity, US dollars."""
        return self._neighbours.get(token, {})

    def books(self) -> Iterator[LiveBook]:
        """Every book in the index."""
        for books in self._between.values():
            yield from books.values()

    def watch(self, changed: Callable[[bytes, bytes], None]) -> Callable[[], None]:
        """Call `changed(base, quote)` whenever a book changes, until the returned function is called.

        `changed` must return quickly.
        """
        self._watchers.add(changed)
        return lambda: self._watchers.discard(changed)

    def _weigh(self, base: bytes, quote: bytes, books: Mapping[BookKey, LiveBook]) -> None:
        self.topology += 1
        for here, there in ((base, quote), (quote, base)):
            around = self._neighbours.setdefault(here, {})
            if books:
                around[there] = sum((live.liquidity_usd for live in books.values()), Decimal())
            else:
                around.pop(there, None)

    def _touch(self, base: bytes, quote: bytes, maker: str) -> None:
        ends = ends_of(base, quote)
        self.version += 1
        self._versions[ends] = self.version
        changes = self._changes.get(ends)
        if changes is None:
            changes = self._changes[ends] = deque(maxlen=_CHANGES_KEPT)
        changes.append((self.version, (maker, base)))
        for changed in tuple(self._watchers):
            changed(base, quote)


def ends_of(one: bytes, other: bytes) -> tuple[bytes, bytes]:
    """Return the two tokens of a pair in the order in which the index holds them, the lower address first."""
    return (one, other) if one < other else (other, one)
