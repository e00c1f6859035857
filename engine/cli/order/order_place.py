"""Shared code of the commands that place an order: their options, and the steps from price to settlement.

    PlacingOptions --`place`, by cambist.client--> offer, shown -> confirmed -> placed -> followed

Each command has a struct with its own options, whose `place` places the order.
"""

from collections.abc import Awaitable, Callable
from typing import NoReturn, TypedDict

import click

from ....codecs.messages.vocabulary import Side
from ....config.errors import TradeFailed
from ....crypto.hexadecimal import to_hex
from ....crypto.secp256k1 import SigningKey
from ...trader.client.allowing import Allowing
from ...trader.client.order.order_following import OfferTokens
from ...trader.client.order.order_placing import OrderOffer
from ...trader.client.order.order_view import order_table
from ...trader.client.public.market_trading import SLIPPAGE_BPS
from ...trader.client.public.offers import OfferedTrade
from ...trader.client.public.results import DeltaOrderState
from ...trader.client.public.session import ToChain
from ...trader.client.public.venue import Venue
from ...trader.client.trusted_contract import DELTA
from ..sources import Decorator
from ..trading import (
    TradeSession,
    approve_max_option,
    consent_list,
    gathered,
    pair_arguments,
    receiver_options,
    signing_list,
    venue_list,
)
from .order_bridging import BridgingOptions, bridging_options
from .order_options import report


class PlacingOptions(BridgingOptions, frozen=True, kw_only=True):
    """Options of all commands that place a Delta order: swap, limit and twap.

    Attributes:
        life_s: seconds from the build of the order to its deadline.
        slippage_bps: tolerated loss against the quote, basis points; None for the default.
        follows: whether the command follows the order after its submission.
        strategy: vault from whose shares the order sells, as typed; None to sell the tokens themselves.
    """

    life_s: int = 0
    slippage_bps: int | None = None
    follows: bool
    strategy: str | None = None

    def run(self, do: Callable[..., Awaitable[int]], *what: object) -> NoReturn:
        """Check the options, and run the command's work as `SigningOptions.run` does."""
        if self.strategy is not None and (self.to_chain is not None or self.side is not Side.SELL):
            raise click.UsageError("--strategy: only for a sale on one chain")
        super().run(do, *what)

    def names(self) -> dict[str, str]:
        """Map parameter names of `cambist.client` to the options and arguments of the command, for errors."""
        return super().names() | {"vault": "--strategy"}

    async def place(self, program: Venue, placing: "PlacingArguments") -> DeltaOrderState:
        """Place an order at the quoted price less slippage; subclasses place limit orders and TWAPs.

        Args:
            placing: arguments that `Venue.order` and `Venue.twap` share.
        """
        return await program.order(
            self.sell,
            self.buy,
            self.amount,
            slippage_bps=SLIPPAGE_BPS if self.slippage_bps is None else self.slippage_bps,
            life_s=self.life_s,
            vault=self.strategy,
            **placing,
        )


class PlacingArguments(TypedDict):
    """Arguments that `Venue.order` and `Venue.twap` share."""

    key: SigningKey
    side: Side
    to: ToChain | None
    receiver: bytes | None
    partner: str
    allowing: Allowing
    agree: Callable[[OfferedTrade[OrderOffer]], bool]
    about_to: Callable[[bytes], None]
    rehearse: bool
    pinned: bytes | None


strategy_option = click.option(
    "--strategy",
    metavar="VAULT",
    help="Sell shares of this vault (ERC-4626) of SELL_TOKEN, as many as give AMOUNT now.",
)


def placing_options(struct: type[PlacingOptions], *own: Decorator) -> Decorator:
    """Decorator that adds options to a command that places an order; the command receives them as `placing`.

    Args:
        struct: struct that receives the options of `PlacingOptions` and the command's own options.
        own: the command's own click options.
    """
    return gathered(
        struct,
        "placing",
        *own,
        *pair_arguments,
        *signing_list(DELTA),
        click.option(
            "--side",
            type=click.Choice(Side, case_sensitive=False),
            default=Side.SELL,
            show_default=True,
            help="Meaning of AMOUNT: the sold or the bought amount.",
        ),
        *receiver_options,
        *bridging_options,
        approve_max_option,
        *consent_list("Show the price, build and check the order, and stop."),
        *venue_list(follows=True),
    )


async def place_order(session: TradeSession, placing: PlacingOptions) -> int:
    """Show the order's terms, ask for consent and place the order; return the exit status.

    If `placing.follows` is set, the command follows the order until it has ended. With --dry-run, nothing is
    signed. The hint for an interrupt names the commands that follow or cancel the order, or take back its
    deposit.
    """
    under_way, shown = session.under_way, list[OrderOffer]()

    def agree(offered: OfferedTrade[OrderOffer]) -> bool:
        offer = offered.detail
        shown.append(offer)
        session.console.print(order_table(offer, placing.allowing))
        if not placing.is_rehearsal:
            placing.agree("Place it?")
            # After the consent, and before the approval is sent: from here on an interrupt leaves it behind.
            if placing.allowing.approves(offer.missing):
                under_way.hint = "no order was placed; an approval that was sent may be mined all the same"
        return True

    def about_to(order_hash: bytes) -> None:
        # Called before the submission: the venue may have the order even if its answer never arrives.
        name = to_hex(order_hash)
        under_way.hint = f"the order {name} may be live: {placing.hint(name)}"
        if shown[-1].must_deposit:
            under_way.hint += f", {placing.withdrawal()}"

    arguments = PlacingArguments(
        key=session.trader.key,
        side=placing.side,
        to=placing.to,
        receiver=placing.receiver,
        partner=placing.partner,
        allowing=placing.allowing,
        agree=agree,
        about_to=about_to,
        rehearse=placing.is_rehearsal,
        pinned=placing.pinned,
    )
    try:
        state = await placing.place(session.program, arguments)
    except TradeFailed as failed:
        return report(placing, failed.outcome, OfferTokens(), failed.offer)
    if not placing.is_rehearsal:
        under_way.hint = f"the order goes on: {placing.hint(state.id)}"
        if placing.follows:
            state = await session.program.follow(state, timeout_s=placing.timeout_s, pinned=placing.pinned)
    return report(placing, state.outcome, state.tokens, state.offer)
