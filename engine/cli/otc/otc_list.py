"""`cambist otc list`: lists the OTC orders of an account, as their maker or as their taker."""

import click
from msgspec.structs import replace

from ....codecs.messages.vocabulary import OtcOrderBy, OtcType
from ....config.limits import UINT256_MAX
from ...trader.client.otc.otc_listing import OTC_HEADERS, OtcWanted, otc_pages, otc_row
from ..listings import ListedTokens, Listing
from ..parameters import ADDRESS
from ..sources import KEY_HELP, PASSWORD_HELP, read_key
from ..trading import UnderWay, VenueOptions, gathered, run, venue_options


@click.command("list")
@click.option(
    "--account", type=ADDRESS, callback=lambda _, __, account: account or b"", help="Account of the orders."
)
@click.option("--key", help=f"In place of --account: your own key. {KEY_HELP}")
@click.option("--password", help=PASSWORD_HELP)
@click.option(
    "--as",
    "role",
    type=click.Choice(["maker", "taker"]),
    default="maker",
    show_default=True,
    help="Role of the account in the orders.",
)
@click.option("--chain", "chain_id", type=click.IntRange(1), required=True, help="The chain id.")
@click.option(
    "--type",
    type=click.Choice(OtcType, case_sensitive=False),
    help="P2P names its taker, LIMIT is open to anyone.",
)
@click.option(
    "--limit",
    "count_max",
    type=click.IntRange(1),
    default=UINT256_MAX,
    help="Largest number of orders; all if absent.",
)
@click.option(
    "--offset", type=click.IntRange(0), default=0, show_default=True, help="Number of orders to skip."
)
@click.option(
    "--order-by",
    type=click.Choice([order.value for order in OtcOrderBy]),
    callback=lambda _, __, order: OtcOrderBy(order),
    default=OtcOrderBy.CREATED_AT.value,
    show_default=True,
    help="Sort key; the latest comes first.",
)
@click.option(
    "--hide-small", "hides_small", is_flag=True, help="Leave out orders with little or no fillable amount."
)
@gathered(OtcWanted, "wanted")
@venue_options
def list_otc(venue: VenueOptions, wanted: OtcWanted, key: str | None, password: str | None) -> None:
    """List all OTC orders of an account at a venue.

    The output is a table, or with --json an order per line. Symbols, decimals, states and balances are the
    venue's.
    """
    if (wanted.account == b"") == (key is None):
        raise click.UsageError("one of --account and --key is needed")
    account = wanted.account or read_key(key or "", password).address
    run(_list, venue, replace(wanted, account=account))


async def _list(under_way: UnderWay, place: VenueOptions, wanted: OtcWanted) -> int:
    under_way.hint = "there are more orders"
    listing = Listing(OTC_HEADERS, is_json=place.is_json)
    async with place.open() as venue:
        tokens = ListedTokens(venue)
        async for page in otc_pages(venue, wanted):
            if not place.is_json:
                await tokens.learn({wanted.chain_id})
            listing.show(page, (otc_row(each, tokens.find) for each in page))
    return listing.end("order", "orders")
