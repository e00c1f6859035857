"""`cambist swap`: makes a Market swap, from the quote to the receipt.

Exit status: 0 swapped (or rehearsed), 1 refused or failed before the swap was sent, 2 wrong usage, 3 a
transaction was mined and reverted, 4 a transaction was sent, or may have been sent before an interrupt, and
its end is not known.
"""

import os
from decimal import Decimal
from functools import partial

import click
from msgspec import Struct

from ...codecs.messages.vocabulary import Side
from ...codecs.messages.wire import encode
from ...config import limits
from ...config.errors import ConfigError, VenueError
from ...config.secret import Secret, read_secret
from ...config.sections.nodes import NodeSettings
from ...crypto.secp256k1 import SigningKey
from ..chain.artifacts import known_errors
from ..chain.nodes.rpc import RpcChain
from ..client.allowing import Allowing
from ..client.client import VenueClient
from ..client.outcome import SentOutcome, TradeVerdict
from ..client.swap.swap_view import offer_table, outcome_json, outcome_lines
from ..client.swap.swapping import Offer, Swapper
from ..client.terms import TradedToken, Wish
from .order.order_options import EXIT, UnderWay, allowing_of, find_pair, new_console, new_trader, run
from .parameters import (
    API_KEY_HELP,
    RPC_HELP,
    VENUE_HELP,
    AddressParam,
    Percent,
    check_partner,
    check_venue,
    checked_node,
    raw_units,
)
from .sources import KEY_HELP, PASSWORD_HELP, agree, read_key


class _SwapOptions(Struct, frozen=True, kw_only=True):
    """The parsed command line."""

    sell: str
    buy: str
    amount: str
    side: Side
    venue: str
    chain_id: int
    node: NodeSettings
    key: SigningKey
    api_key: Secret | None
    slippage_bps: int
    receiver: bytes | None
    partner: str
    max_impact: Decimal | None
    router: bytes | None
    allowing: Allowing
    is_sure: bool
    is_json: bool
    is_rehearsal: bool


@click.command("swap", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("sell", metavar="SELL_TOKEN")
@click.argument("buy", metavar="BUY_TOKEN")
@click.argument("amount")
@click.option("--venue", required=True, help=VENUE_HELP)
@click.option("--chain", "chain_id", type=click.IntRange(1), required=True, help="The chain id.")
@click.option("--rpc", required=True, help=RPC_HELP)
@click.option("--key", required=True, help=KEY_HELP)
@click.option("--password", help=PASSWORD_HELP)
@click.option("--api-key", help=API_KEY_HELP)
@click.option("--buy", "is_purchase", is_flag=True, help="AMOUNT is what is bought, not what is sold.")
@click.option(
    "--slippage",
    "slippage_bps",
    metavar="BPS",
    type=click.IntRange(limits.SLIPPAGE_BPS_MIN, limits.SLIPPAGE_BPS_MAX),
    default=50,
    show_default=True,
    help="How much worse than quoted it may become, in basis points.",
)
@click.option("--receiver", type=AddressParam(), help="Who gets what is bought; the key's account if absent.")
@click.option("--partner", default="", help="The partner's key.")
@click.option("--max-impact", type=Percent(), help="Price impact that is taken, in percent.")
@click.option(
    "--router", type=AddressParam(), help="The one router to use, whatever its code; else this release's."
)
@click.option("--permit", is_flag=True, help="Sign an EIP-2612 permit in place of an approval.")
@click.option("--approve-max", is_flag=True, help="Approve any amount, not just this one.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "is_json", is_flag=True, help="One line of JSON on standard output.")
@click.option("--dry-run", is_flag=True, help="Show the price, simulate if allowed already, and stop.")
def swap(
    sell: str,
    buy: str,
    amount: str,
    venue: str,
    chain_id: int,
    rpc: str,
    key: str,
    password: str | None,
    api_key: str | None,
    slippage_bps: int,
    receiver: bytes | None,
    partner: str,
    max_impact: Decimal | None,
    router: bytes | None,
    *,
    is_purchase: bool,
    permit: bool,
    approve_max: bool,
    yes: bool,
    is_json: bool,
    dry_run: bool,
) -> None:
    """Swap AMOUNT of SELL_TOKEN for BUY_TOKEN on the Market route.

    Tokens are addresses, or symbols of the venue's list; AMOUNT is in whole tokens, such as 1.5. Shows the
    price and asks. The venue's answer is checked against that before a signature. Exit status: 0
    swapped, 1 refused or failed before it was sent, 2 wrong usage, 3 mined and reverted, 4 sent and not
    known.
    """
    allowing = allowing_of(permit=permit, approve_max=approve_max)
    check_partner(partner)
    check_venue(venue)
    node = checked_node(rpc, AMOUNT=amount)
    asked = _SwapOptions(
        sell=sell,
        buy=buy,
        amount=amount,
        side=Side.BUY if is_purchase else Side.SELL,
        venue=venue,
        chain_id=chain_id,
        node=node,
        key=read_key(key, password),
        api_key=read_secret(api_key, os.environ, "--api-key") if api_key else None,
        slippage_bps=slippage_bps,
        receiver=receiver,
        partner=partner,
        max_impact=max_impact,
        router=router,
        allowing=allowing,
        is_sure=yes,
        is_json=is_json,
        is_rehearsal=dry_run,
    )
    run(_swap, asked)


async def _swap(under_way: UnderWay, asked: _SwapOptions) -> int:
    console = new_console()
    async with (
        RpcChain.open(asked.chain_id, asked.node, known_errors()) as chain,
        VenueClient.open(asked.venue, asked.api_key) as venue,
    ):
        tell = partial(console.print, style="dim")
        listed, src, dest = await find_pair(chain, venue, asked.sell, asked.buy, tell)
        swapper = Swapper(new_trader(chain, asked.key, tell, asked.allowing), venue)
        offer = await swapper.offer(_wish(asked, src, dest), asked.router)
        symbols = {token.address.lower(): token.symbol for token in listed.tokens}
        console.print(offer_table(offer, symbols, asked.allowing))
        if asked.is_rehearsal:
            outcome = await swapper.rehearse(offer)
        else:
            if not asked.is_sure:
                agree("Swap?")
            elif offer.route.max_impact_reached:
                raise VenueError(
                    "the price impact is above the venue's ceiling, or not known: say what you take by "
                    "--max-impact, or leave out --yes"
                )
            under_way.hint = (
                "a transaction that was sent may be mined all the same: look at it before you swap again"
            )
            outcome = await swapper.perform(offer)
    _report(asked, offer, outcome)
    return 0 if outcome is None else EXIT[outcome.verdict]


def _wish(asked: _SwapOptions, src: TradedToken, dest: TradedToken) -> Wish:
    if src.address == dest.address:
        raise ConfigError("BUY_TOKEN", "is the token that is sold")
    token = src if asked.side is Side.SELL else dest
    amount = raw_units(asked.amount, token, "AMOUNT")
    return Wish(
        chain_id=asked.chain_id,
        src=src,
        dest=dest,
        side=asked.side,
        amount=amount,
        slippage_bps=asked.slippage_bps,
        user=asked.key.address,
        receiver=asked.receiver or asked.key.address,
        partner=asked.partner,
        max_impact=asked.max_impact,
    )


def _report(asked: _SwapOptions, offer: Offer, outcome: SentOutcome | None) -> None:
    """Print the result on standard output."""
    if outcome is None:
        outcome = SentOutcome(verdict=TradeVerdict.REHEARSED, step="price")
    if asked.is_json:
        click.echo(encode(outcome_json(outcome, offer)).decode())
        return
    for line in outcome_lines(outcome, offer):
        click.echo(line)
