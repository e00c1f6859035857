"""`cambist order list`: lists the orders that a venue has, newest first."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import TypeVar

import click

from ....codecs.messages.delta_messages import OrderRecord
from ....codecs.messages.resource_messages import TokenEntry
from ....codecs.messages.vocabulary import OrderStatus
from ....codecs.messages.wire import encode
from ....config.errors import VenueError
from ....crypto.addresses import to_checksum
from ...client.client import VenueClient
from ...client.listing import TokenOf, aligned, tokens_by_place, widths_of
from ...client.order.order_listing import HEADERS, OrdersWanted, order_row, pages
from ..parameters import ADDRESS
from ..trading import UnderWay, VenueOptions, run, venue_options

T = TypeVar("T")


@click.command("list")
@click.option(
    "--owner",
    type=ADDRESS,
    help="Owner of the orders; all owners if absent, which takes an operator's --api-key.",
)
@click.option("--chain", "chain_ids", type=click.IntRange(1), multiple=True, help="A chain id; repeatable.")
@click.option(
    "--status",
    "statuses",
    type=click.Choice([status.value for status in OrderStatus], case_sensitive=False),
    multiple=True,
    help="Orders of this status; repeatable.",
)
@venue_options
def list_orders(
    venue: VenueOptions, owner: bytes | None, chain_ids: tuple[int, ...], statuses: tuple[str, ...]
) -> None:
    """List all Delta orders of a venue that the filters select.

    The output is a table, or with --json a record per line. Symbols and decimals of the table are the
    venue's.
    """
    wanted = OrdersWanted(
        owner="" if owner is None else to_checksum(owner),
        chain_ids=tuple(dict.fromkeys(chain_ids)),
        statuses=tuple(dict.fromkeys(OrderStatus(status) for status in statuses)),
    )
    run(_list, venue, wanted)


async def _list(under_way: UnderWay, place: VenueOptions, wanted: OrdersWanted) -> int:
    def chains_of(records: Sequence[OrderRecord]) -> set[int]:
        return {end.chain_id for record in records for end in (record.input, record.output)}

    return await show_pages(
        under_way, place, lambda venue: pages(venue, wanted), HEADERS, order_row, chains_of
    )


async def show_pages(
    under_way: UnderWay,
    place: VenueOptions,
    pages_of: Callable[[VenueClient], AsyncIterator[list[T]]],
    headers: tuple[str, ...],
    row_of: Callable[[T, TokenOf], tuple[str, ...]],
    chains_of: Callable[[Sequence[T]], set[int]],
) -> int:
    """Print all pages of a listing, as a table or with --json an order per line; return the exit status.

    Args:
        row_of: returns an order's table cells, one for each column of `headers`.
        chains_of: returns the ids of a page's chains, whose tokens are looked up at the venue.
    """
    under_way.hint = "there are more orders"
    count, widths = 0, [len(header) for header in headers]
    async with place.open() as venue:
        tokens = ListedTokens(venue)
        async for page in pages_of(venue):
            if place.is_json:
                for each in page:
                    click.echo(encode(each))
                continue
            if not page:
                continue
            await tokens.learn(chains_of(page))
            rows = [row_of(each, tokens.find) for each in page]
            widths = widths_of(rows, widths)
            for line in aligned(rows if count else [headers, *rows], widths):
                click.echo(line)
            count += len(rows)
    if not place.is_json:
        click.echo(f"{count} order{'' if count == 1 else 's'}", err=True)
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
                self._entries |= tokens_by_place(listed.tokens)

    def find(self, chain_id: int, address: str) -> TokenEntry | None:
        """The venue's entry of the token with this address; None if the venue does not list the token."""
        return self._entries.get((chain_id, address.lower()))
