"""`cambist otc list`: lists the OTC orders of an account, as their maker or as their taker."""

import click

from ....codecs.messages.vocabulary import OtcOrderBy, OtcType
from ....config.limits import UINT256_MAX
from ...client.otc.otc_listing import OTC_HEADERS, OtcWanted, otc_pages, otc_row
from ..listings import ListedTokens, Listing
from ..parameters import ADDRESS
from ..sources import KEY_HELP, PASSWORD_HELP, read_key
from ..trading import UnderWay, VenueOptions, run, venue_options


@click.command("list")
@click.option("--account", type=ADDRESS, help="Account of the orders.")
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
    "kind",
    type=click.Choice([kind.value for kind in OtcType], case_sensitive=False),
    help="P2P names its taker, LIMIT is open to anyone.",
)
@click.option("--limit", "count_max", type=click.IntRange(1), help="Largest number of orders; all if absent.")
@click.option(
    "--offset", type=click.IntRange(0), default=0, show_default=True, help="Number of orders to skip."
)
@click.option(
    "--order-by",
    type=click.Choice([order.value for order in OtcOrderBy]),
    default=OtcOrderBy.CREATED_AT.value,
    show_default=True,
    help="Sort key; the latest comes first.",
)
@click.option(
    "--hide-small", "hides_small", is_flag=True, help="Leave out orders with little or no fillable amount."
)
@venue_options
def list_otc(
    venue: VenueOptions,
    account: bytes | None,
    key: str | None,
    password: str | None,
    role: str,
    chain_id: int,
    kind: str | None,
    count_max: int | None,
    offset: int,
    order_by: str,
    *,
    hides_small: bool,
) -> None:
    """List all OTC orders of an account at a venue.

    The output is a table, or with --json an order per line. Symbols, decimals, states and balances are the
    venue's.
    """
    if (account is None) == (key is None):
        raise click.UsageError("one of --account and --key is needed")
    wanted = OtcWanted(
        chain_id=chain_id,
        role=role,
        account=account or read_key(key or "", password).address,
        type=None if kind is None else OtcType(kind.upper()),
        order_by=OtcOrderBy(order_by),
        hides_small=hides_small,
        count_max=count_max or UINT256_MAX,
        offset=offset,
    )
    run(_list, venue, wanted)


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
