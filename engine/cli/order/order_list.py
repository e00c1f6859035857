"""`cambist order list`: the orders that a venue has, newest first."""

import click

from ....codecs.messages.resource_messages import TokenEntry
from ....codecs.messages.vocabulary import OrderStatus
from ....codecs.messages.wire import encode
from ....config.errors import VenueError
from ....crypto.addresses import to_checksum
from ...client.client import VenueClient
from ...client.order.order_listing import (
    HEADERS,
    OrdersWanted,
    aligned,
    order_row,
    pages,
    tokens_by_place,
    widths_of,
)
from ..parameters import AddressParam
from .order_options import HELP, UnderWay, VenueOptions, run, venue_options


@click.command("list", context_settings=HELP)
@click.option(
    "--owner",
    type=AddressParam(),
    help="Whose orders; if absent everybody's, which takes an operator's --api-key.",
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
    """List Delta orders, page after page until there are no more.

    A table, or with --json one record a line. Symbols and decimals in the table are the venue's word.
    """
    wanted = OrdersWanted(
        owner="" if owner is None else to_checksum(owner),
        chain_ids=tuple(dict.fromkeys(chain_ids)),
        statuses=tuple(dict.fromkeys(OrderStatus(status) for status in statuses)),
    )
    run(_list, venue, wanted)


async def _list(under_way: UnderWay, place: VenueOptions, wanted: OrdersWanted) -> int:
    under_way.hint = "there are more orders"
    async with place.open() as venue:
        if place.is_json:
            async for records in pages(venue, wanted):
                for record in records:
                    click.echo(encode(record))
            return 0
        tokens = ListedTokens(venue)
        widths, count = [len(header) for header in HEADERS], 0
        async for records in pages(venue, wanted):
            if not records:
                continue
            await tokens.learn({end.chain_id for record in records for end in (record.input, record.output)})
            rows = [order_row(record, tokens.find) for record in records]
            widths = widths_of(rows, widths)
            shown = rows if count else [HEADERS, *rows]
            for line in aligned(shown, widths):
                click.echo(line)
            count += len(rows)
    click.echo(f"{count} order{'' if count == 1 else 's'}", err=True)
    return 0


class ListedTokens:
    """What a venue lists, by chain."""

    def __init__(self, venue: VenueClient) -> None:
        self._venue = venue
        self._learnt: set[int] = set()
        self._entries: dict[tuple[int, str], TokenEntry] = {}

    async def learn(self, chain_ids: set[int]) -> None:
        """Ask for the lists of chains that are new; a chain that has none is shown in raw units."""
        for chain_id in chain_ids - self._learnt:
            self._learnt.add(chain_id)
            try:
                listed = await self._venue.tokens(chain_id)
            except VenueError as fault:
                click.echo(f"raw units on chain {chain_id}: {fault.detail}", err=True)
            else:
                self._entries |= tokens_by_place(listed.tokens)

    def find(self, chain_id: int, address: str) -> TokenEntry | None:
        """See `order_listing.TokenOf`."""
        return self._entries.get((chain_id, address.lower()))
