"""`cambist swap`: makes a Market swap, from the quote to the receipt.

Exit status: 0 swapped (or rehearsed), 1 refused or failed before the swap was sent, 2 wrong usage, 3 a
transaction was mined and reverted, 4 a transaction was sent, or may have been sent before an interrupt, and
its end is not known.
"""

from decimal import Decimal

import click

from ...codecs.messages.vocabulary import Side
from ...config.errors import TradeFailed, VenueError
from ..trader.client.public.offers import OfferedTrade
from ..trader.client.swap.swap_view import offer_table, outcome_json, outcome_lines
from ..trader.client.swap.swapping import Offer
from ..trader.client.trusted_contract import ROUTER
from .parameters import PERCENT
from .trading import (
    EXIT,
    TradeOptions,
    TradeSession,
    approve_max_option,
    consent_list,
    gathered,
    pair_arguments,
    permit_option,
    receiver_options,
    signing_list,
    slippage,
    venue_list,
)


class _SwapOptions(TradeOptions, frozen=True, kw_only=True):
    """Options of `cambist swap`."""

    slippage_bps: int
    max_impact: Decimal | None


@click.command("swap")
@gathered(
    _SwapOptions,
    "options",
    *pair_arguments,
    *signing_list(ROUTER),
    click.option(
        "--buy",
        "side",
        is_flag=True,
        callback=lambda _, __, is_purchase: Side.BUY if is_purchase else Side.SELL,
        help="AMOUNT is the bought amount, not the sold amount.",
    ),
    slippage,
    *receiver_options,
    click.option("--max-impact", type=PERCENT, help="Largest accepted price impact, in percent."),
    permit_option,
    approve_max_option,
    *consent_list("Show the price, simulate if allowed already, and stop."),
    *venue_list(),
)
def swap(options: _SwapOptions) -> None:
    """Swap AMOUNT of SELL_TOKEN for BUY_TOKEN on the Market route.

    Tokens are addresses, or symbols of the venue's list; AMOUNT is in whole tokens, such as 1.5. Shows the
    price and asks. The command compares the venue's answer with that price before it signs. Exit status:
    0 swapped, 1 refused or failed before the transaction was sent, 2 wrong usage, 3 mined and reverted, 4
    sent, outcome unknown.
    """
    options.run(_swap, options)


async def _swap(session: TradeSession, options: _SwapOptions) -> int:
    listed = await session.program.tokens()
    symbols = {token.address.lower(): token.symbol for token in listed.tokens}

    def agree(offered: OfferedTrade[Offer]) -> bool:
        offer = offered.detail
        session.console.print(offer_table(offer, symbols, options.allowing))
        if options.is_rehearsal:
            return True
        options.agree("Swap?")
        # With --yes nobody has seen the warning in the table.
        if options.is_sure and offer.route.max_impact_reached:
            raise VenueError(
                "the price impact is above the venue's ceiling, or unknown: set --max-impact, "
                "or leave out --yes"
            )
        # Only now: until the consent nothing is sent, and an interrupt has nothing to explain.
        session.under_way.hint = (
            "a transaction that was sent may be mined all the same: look at it before you swap again"
        )
        return True

    try:
        done = await session.program.swap(
            options.sell,
            options.buy,
            options.amount,
            key=session.trader.key,
            side=options.side,
            slippage_bps=options.slippage_bps,
            max_impact=options.max_impact,
            receiver=options.receiver,
            partner=options.partner,
            allowing=options.allowing,
            agree=agree,
            rehearse=options.is_rehearsal,
            pinned=options.pinned,
        )
        outcome, offer = done.outcome, done.offer
    except TradeFailed as failed:
        outcome, offer = failed.outcome, failed.offer
    options.show(outcome_json(outcome, offer), outcome_lines(outcome, offer))
    return EXIT[outcome.verdict]
