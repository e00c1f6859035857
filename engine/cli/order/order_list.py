"""`cambist order list`: lists the orders that a venue has, newest first."""

import click

from ....codecs.messages.vocabulary import OrderStatus
from ...trader.client.order.order_listing import HEADERS, OrdersWanted, order_row, pages
from ..listings import ListedTokens, Listing
from ..parameters import ADDRESS, address_text, once
from ..trading import UnderWay, VenueOptions, gathered, run, venue_options


@click.command("list")
@click.option(
    "--owner",
    type=ADDRESS,
    callback=address_text,
    help="Owner of the orders; all owners if absent, which takes an operator's --api-key.",
)
@click.option(
    "--chain",
    "chain_ids",
    callback=once,
    type=click.IntRange(1),
    multiple=True,
    help="A chain id; repeatable.",
)
@click.option(
    "--status",
    "statuses",
    metavar="STATUS",
    type=click.Choice(OrderStatus, case_sensitive=False),
    callback=once,
    multiple=True,
    help="Orders of this status, such as active or completed; repeatable.",
)
@gathered(OrdersWanted, "wanted")
@venue_options
def list_orders(venue: VenueOptions, wanted: OrdersWanted) -> None:
    """List all Delta orders of a venue that the filters select.

    The output is a table, or with --json a record per line. Symbols and decimals of the table are the
    venue's.
    """
    run(_list, venue, wanted)


async def _list(under_way: UnderWay, place: VenueOptions, wanted: OrdersWanted) -> int:
    under_way.hint = "there are more orders"
    listing = Listing(HEADERS, is_json=place.is_json)
    async with place.open() as venue:
        tokens = ListedTokens(venue)
        async for page in pages(venue, wanted):
            if not place.is_json:
                await tokens.learn({end.chain_id for each in page for end in (each.input, each.output)})
            listing.show(page, (order_row(each, tokens.find) for each in page))
    return listing.end("order", "orders")
