"""`cambist swap`: makes a Market swap, from the quote to the receipt.

Exit status: 0 swapped (or rehearsed), 1 refused or failed before the swap was sent, 2 wrong usage, 3 a
transaction was mined and reverted, 4 a transaction was sent, or may have been sent before an interrupt, and
its end is not known.
"""

from decimal import Decimal
from functools import partial

import click
from msgspec import Struct

from ...codecs.messages.vocabulary import Side
from ...codecs.messages.wire import encode
from ...config.errors import ConfigError, VenueError
from ...config.sections.nodes import NodeSettings
from ...crypto.secp256k1 import SigningKey
from ..chain.artifacts import known_errors
from ..chain.nodes.rpc import RpcChain
from ..client.allowing import Allowing
from ..client.outcome import SentOutcome, TradeVerdict
from ..client.swap.swap_view import offer_table, outcome_json, outcome_lines
from ..client.swap.swapping import Offer, Swapper
from ..client.terms import TradedToken, Wish
from .parameters import (
    AddressParam,
    Percent,
    check_partner,
    checked_node,
    raw_units,
)
from .sources import agree, read_key
from .trading import (
    EXIT,
    HELP,
    UnderWay,
    VenueOptions,
    allowing_options,
    chain_options,
    find_pair,
    new_console,
    new_trader,
    run,
    slippage,
    venue_options,
)


class _SwapOptions(Struct, frozen=True, kw_only=True):
    """The parsed command line."""

    sell: str
    buy: str
    amount: str
    side: Side
    venue: VenueOptions
    chain_id: int
    node: NodeSettings
    key: SigningKey
    slippage_bps: int
    receiver: bytes | None
    partner: str
    max_impact: Decimal | None
    router: bytes | None
    allowing: Allowing
    is_sure: bool
    is_rehearsal: bool


@click.command("swap", context_settings=HELP)
@click.argument("sell", metavar="SELL_TOKEN")
@click.argument("buy", metavar="BUY_TOKEN")
@click.argument("amount")
@chain_options
@click.option("--buy", "is_purchase", is_flag=True, help="AMOUNT is the bought amount, not the sold amount.")
@slippage
@click.option(
    "--receiver", type=AddressParam(), help="Receiver of the bought tokens; the key's account if absent."
)
@click.option("--partner", default="", help="The partner's key.")
@click.option("--max-impact", type=Percent(), help="Largest accepted price impact, in percent.")
@click.option(
    "--router", type=AddressParam(), help="Router to use, whatever its code; this release's if absent."
)
@allowing_options
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Show the price, simulate if allowed already, and stop.")
@venue_options
def swap(
    venue: VenueOptions,
    sell: str,
    buy: str,
    amount: str,
    chain_id: int,
    rpc: str,
    key: str,
    password: str | None,
    slippage_bps: int,
    receiver: bytes | None,
    partner: str,
    max_impact: Decimal | None,
    router: bytes | None,
    allowing: Allowing,
    *,
    is_purchase: bool,
    yes: bool,
    dry_run: bool,
) -> None:
    """Swap AMOUNT of SELL_TOKEN for BUY_TOKEN on the Market route.

    Tokens are addresses, or symbols of the venue's list; AMOUNT is in whole tokens, such as 1.5. Shows the
    price and asks. The command compares the venue's answer with that price before it signs. Exit status:
    0 swapped, 1 refused or failed before the transaction was sent, 2 wrong usage, 3 mined and reverted, 4
    sent, outcome unknown.
    """
    check_partner(partner)
    asked = _SwapOptions(
        sell=sell,
        buy=buy,
        amount=amount,
        side=Side.BUY if is_purchase else Side.SELL,
        venue=venue,
        chain_id=chain_id,
        node=checked_node(rpc, AMOUNT=amount),
        key=read_key(key, password),
        slippage_bps=slippage_bps,
        receiver=receiver,
        partner=partner,
        max_impact=max_impact,
        router=router,
        allowing=allowing,
        is_sure=yes,
        is_rehearsal=dry_run,
    )
    run(_swap, asked)


async def _swap(under_way: UnderWay, asked: _SwapOptions) -> int:
    console = new_console()
    async with (
        RpcChain.open(asked.chain_id, asked.node, known_errors()) as chain,
        asked.venue.open() as venue,
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
                    "the price impact is above the venue's ceiling, or unknown: set --max-impact, "
                    "or leave out --yes"
                )
            under_way.hint = (
                "a transaction that was sent may be mined all the same: look at it before you swap again"
            )
            outcome = await swapper.perform(offer)
    _report(asked, offer, outcome)
    return 0 if outcome is None else EXIT[outcome.verdict]


def _wish(asked: _SwapOptions, src: TradedToken, dest: TradedToken) -> Wish:
    if src.address == dest.address:
        raise ConfigError("BUY_TOKEN", "equals SELL_TOKEN")
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
    if asked.venue.is_json:
        click.echo(encode(outcome_json(outcome, offer)).decode())
        return
    for line in outcome_lines(outcome, offer):
        click.echo(line)
