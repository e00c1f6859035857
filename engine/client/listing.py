"""Listings of any kind of order: page by page, each order once, as a table of aligned lines."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from ...codecs.messages.resource_messages import TokenEntry
from ...config.limits import UINT256_MAX

Listed = TypeVar("Listed")

TokenOf = Callable[[int, str], TokenEntry | None]
"""Function of (chain id, token address) that returns the venue's entry of the token; None if the venue does
not list it."""


async def pages_once(
    ask: Callable[[int], Awaitable[tuple[Sequence[Listed], bool]]],
    name_of: Callable[[Listed], str],
    count_max: int = UINT256_MAX,
) -> AsyncIterator[list[Listed]]:
    """Yield the orders of a venue's listing, page by page, each order once.

    Args:
        ask: asks for the next page, given the number of orders that are still wanted; returns its orders, and
            whether the venue has more.
        name_of: returns an order's id or hash, by which a repeated order is noticed.
        count_max: maximum number of orders.
    """
    seen: set[str] = set()
    left, has_more = count_max, True
    while has_more and left > 0:
        found, has_more = await ask(left)
        fresh = [each for each in found if name_of(each) not in seen][:left]
        seen.update(map(name_of, fresh))
        left -= len(fresh)
        yield fresh
        has_more = has_more and bool(fresh)  # a page without new orders would repeat for ever


def tokens_by_place(entries: Iterable[TokenEntry]) -> Mapping[tuple[int, str], TokenEntry]:
    """Map (chain id, lower-case token address) to the venue's entry of the token."""
    return {(entry.network, entry.address.lower()): entry for entry in entries}


def aligned(rows: Sequence[tuple[str, ...]], widths: Sequence[int]) -> Iterator[str]:
    """Lines of text for the rows of a table, with the cells aligned in columns of the given widths."""
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def widths_of(rows: Sequence[tuple[str, ...]], before: Sequence[int]) -> list[int]:
    """Widths of a table's columns that fit the rows, and are at least those of the rows before."""
    return [max(width, *(len(row[at]) for row in rows)) for at, width in enumerate(before)]
