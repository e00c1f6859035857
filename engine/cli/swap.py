"""`cambist swap`: makes a Market swap, from the quote to the receipt.

Exit status: 0 swapped (or rehearsed), 1 refused or failed before the swap was sent, 2 wrong usage, 3 a
transaction was mined and reverted, 4 a transaction was sent, or may have been sent before an interrupt, and
its end is not known.
"""

from decimal import Decimal

import click

from ...codecs.messages.vocabulary import Side
from ...config.errors import VenueError
from ..client.outcome import SentOutcome, TradeVerdict
from ..client.swap.swap_view import offer_table, outcome_json, outcome_lines
from ..client.swap.swapping import Swapper
from ..client.terms import TradedToken, Wish
from ..client.trusted_contract import ROUTER
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

    def wish(self, user: bytes, src: TradedToken, dest: TradedToken) -> Wish:
        """Build the user's wish for a Market swap of these tokens.

        Args:
            user: account that signs and pays, 20 bytes.
        """
        return Wish(
            chain_id=self.chain_id,
            src=src,
            dest=dest,
            side=self.side,
            amount=self.raw_amount(src, dest),
            slippage_bps=self.slippage_bps,
            user=user,
            receiver=self.receiver or user,
            partner=self.partner,
            max_impact=self.max_impact,
        )


@click.command("swap")
@gathered(
    _SwapOptions,
    "asked",
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
def swap(asked: _SwapOptions) -> None:
    """Swap AMOUNT of SELL_TOKEN for BUY_TOKEN on the Market route.

    Tokens are addresses, or symbols of the venue's list; AMOUNT is in whole tokens, such as 1.5. Shows the
    price and asks. The command compares the venue's answer with that price before it signs. Exit status:
    0 swapped, 1 refused or failed before the transaction was sent, 2 wrong usage, 3 mined and reverted, 4
    sent, outcome unknown.
    """
    asked.run(_swap, asked)


async def _swap(session: TradeSession, asked: _SwapOptions) -> int:
    listed, src, dest = await asked.find_pair(session)
    swapper = Swapper(session.trader, session.venue)
    offer = await swapper.offer(asked.wish(session.trader.key.address, src, dest), asked.pinned)
    symbols = {token.address.lower(): token.symbol for token in listed.tokens}
    session.console.print(offer_table(offer, symbols, asked.allowing))
    if asked.is_rehearsal:
        outcome = await swapper.rehearse(offer) or SentOutcome(verdict=TradeVerdict.REHEARSED, step="price")
    else:
        asked.agree("Swap?")
        if asked.is_sure and offer.route.max_impact_reached:
            raise VenueError(
                "the price impact is above the venue's ceiling, or unknown: set --max-impact, "
                "or leave out --yes"
            )
        session.under_way.hint = (
            "a transaction that was sent may be mined all the same: look at it before you swap again"
        )
        outcome = await swapper.perform(offer)
    asked.show(outcome_json(outcome, offer), outcome_lines(outcome, offer))
    return EXIT[outcome.verdict]
