"""Listings that commands print page by page, as a table of aligned lines or with --json as lines of JSON."""

from collections.abc import Iterable, Sequence

import click
from msgspec import Struct

from ...codecs.messages.resource_messages import TokenEntry
from ...codecs.messages.wire import encode
from ...config.errors import VenueError
from ..trader.client.client import VenueClient


class Listing:
    """Prints the entries of a listing as they arrive, and their number on standard error.

    Args:
        headers: names of the table's columns.
        is_json: whether each entry is printed as a line of JSON, in place of the table and the number.
    """

    def __init__(self, headers: tuple[str, ...], *, is_json: bool) -> None:
        self._headers = headers
        self._is_json = is_json
        self._widths = [len(header) for header in headers]
        self._count = 0

    def show(self, page: Sequence[Struct], rows: Iterable[tuple[str, ...]]) -> None:
        """Print the entries of a page; `rows` are their table cells, one for each header."""
        if self._is_json:
            for entry in page:
                click.echo(encode(entry))
            return
        shown = list(rows)
        self._widths = [
            max([width, *(len(row[at]) for row in shown)]) for at, width in enumerate(self._widths)
        ]
        for row in shown if self._count else [self._headers, *shown]:
            cells = (cell.ljust(width) for cell, width in zip(row, self._widths, strict=True))
            click.echo("  ".join(cells).rstrip())
        self._count += len(shown)

    def end(self, singular: str, plural: str) -> int:
        """Print the number of entries on standard error, unless the output is JSON; return the exit status.

        Args:
            singular, plural: the two forms of the noun for the entries.
        """
        if not self._is_json:
            click.echo(f"{self._count} {singular if self._count == 1 else plural}", err=True)
        return 0


class ListedTokens:
    """Cache of the tokens that a venue lists, by chain, for the symbols and decimals in tables."""

    def __init__(self, venue: VenueClient) -> None:
        self._venue = venue
        self._learnt: set[int] = set()
        self._entries: dict[tuple[int, str], TokenEntry] = {}

    async def learn(self, chain_ids: set[int]) -> None:
        """Fetch the token lists of chains not fetched yet; if the venue has no list of a chain, amounts there
        are shown in raw units."""
        for chain_id in chain_ids - self._learnt:
            self._learnt.add(chain_id)
            try:
                listed = await self._venue.tokens(chain_id)
            except VenueError as fault:
                click.echo(f"raw units on chain {chain_id}: {fault.detail}", err=True)
            else:
                self._entries |= {(entry.network, entry.address.lower()): entry for entry in listed.tokens}

    def find(self, chain_id: int, address: str) -> TokenEntry | None:
        """The venue's entry of the token with this address; None if the venue does not list the token."""
        return self._entries.get((chain_id, address.lower()))
