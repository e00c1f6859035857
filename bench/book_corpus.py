"""Price grids that two implementations of order books apply, and the digest that compares their books.

    even      as many decimals in each string; half of the levels changed since the pair's grid before
    trimmed   the same without trailing zeros, as JavaScript prints it
    again     the pair's current grid again, in new strings

A grid is decoded just before it is applied, so that none of its strings was seen or hashed. The module
imports no package of cambist: NautilusTrader's environment has only its own.
"""

import re
import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from bench.websocket_corpus import message

EVEN, TRIMMED, AGAIN = "even", "trimmed", "again"

Level = tuple[str, str]


class Grid(msgspec.Struct):
    """Price levels of both sides of a book as (price, amount) texts, best first."""

    bids: tuple[Level, ...]
    asks: tuple[Level, ...]


class _Message(msgspec.Struct):
    prices: dict[str, Grid]


_decode = msgspec.json.Decoder(_Message).decode


class Applied(NamedTuple):
    """A pair's price grid to apply to its book, and whether its application is measured."""

    pair: str
    grid: Grid
    is_measured: bool


def grids(kind: str, first: int, count: int) -> Iterator[Applied]:
    """Yield price grids of a kind for `count` messages, the first of which is number `first`.

    Each grid says whether its application is measured.
    """
    for number in range(first, first + count):
        raw = message(number)
        if kind == TRIMMED:
            raw = _trimmed(raw)
        elif kind == AGAIN:
            yield _applied(raw, is_measured=False)
        yield _applied(raw, is_measured=True)


def _applied(raw: bytes, *, is_measured: bool) -> Applied:
    ((pair, grid),) = _decode(raw).prices.items()
    return Applied(pair, grid, is_measured)


def _trimmed(raw: bytes) -> bytes:
    return re.sub(rb'\.?0+"', b'"', raw)


def digest_after(digest: int, sides: Sequence[Sequence[tuple[int, int]]]) -> int:
    """Extend the digest of all books so far by this book's (price, amount) levels."""
    return zlib.crc32(repr(sides).encode(), digest)
