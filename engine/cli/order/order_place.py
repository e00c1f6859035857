"""Shared code of the commands that place an order: their options, and the steps from price to settlement.

    PlacingOptions --a wish, once the tokens are known--> offer, shown -> confirmed -> placed -> followed

Each command has a struct with its own options, whose `wish` is the order that the user wants.
"""

from collections.abc import Awaitable, Callable
from typing import NoReturn

import click
from msgspec.structs import replace

from ....codecs.messages.delta_messages import OrderRecord
from ....codecs.messages.resource_messages import TokenList
from ....codecs.messages.vocabulary import OrderType, Side
from ....config.errors import ChainError, VenueError
from ....crypto.hexadecimal import to_hex
from ...chain.port import Chain
from ...chain.transact import StepFailedError
from ...client.order.order_following import OfferTokens, OrderFollower, Subject
from ...client.order.order_placing import OrderOffer, OrderPlacer
from ...client.order.order_safety import signed_order
from ...client.order.order_terms import OrderWish
from ...client.order.order_view import DeltaOutcome, order_table
from ...client.outcome import TradeVerdict
from ...client.terms import TradedToken
from ...client.tokens import find_token
from ...client.trusted_contract import DELTA
from ..sources import Decorator
from ..trading import (
    SLIPPAGE_BPS,
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
from .order_options import ended, not_known, report, tell_why


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

    async def find_vault(self, session: TradeSession) -> TradedToken | None:
        """Find the vault that --strategy names; None without the option.

        Raises:
            ConfigError: the text is not the address of a token.
        """
        if self.strategy is None:
            return None
        return await find_token(session.trader.chain, TokenList(()), self.strategy, "--strategy")

    def wish(self, owner: bytes, src: TradedToken, dest: TradedToken) -> OrderWish:
        """Build the user's wish for a Delta order of these tokens, at the market's price.

        Args:
            owner: account that signs and sells, 20 bytes.
        """
        return OrderWish(
            chain_id=self.chain_id,
            src=src,
            dest=dest,
            side=self.side,
            amount=self.raw_amount(src, dest),
            slippage_bps=SLIPPAGE_BPS if self.slippage_bps is None else self.slippage_bps,
            limit_amount=None,
            type=OrderType.MARKET,
            owner=owner,
            beneficiary=self.receiver or owner,
            partner=self.partner,
            life_s=self.life_s,
        )


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
    signed.
    """
    async with placing.destination() as there:
        src, dest, bridging = await placing.find_ends(session, there)
        placer = OrderPlacer(session.trader, session.venue)
        vault = await placing.find_vault(session)
        wish = placing.wish(session.trader.key.address, src, dest)
        wish = replace(wish, bridging=bridging, vault=vault)
        offer = await placer.offer(wish, placing.pinned)
        session.console.print(order_table(offer, placing.allowing))
        if placing.is_rehearsal:
            checked = await placer.rehearse(offer)
            outcome = DeltaOutcome(verdict=TradeVerdict.REHEARSED, order_hash=checked.order_hash)
        else:
            placing.agree("Place it?")
            outcome = await _placed(session, placing, placer, offer)
            if placing.follows and outcome.record is not None:
                outcome = await _followed(session, placing, offer, outcome.record, there)
    return report(placing, outcome, _tokens(offer), offer)


async def _placed(
    session: TradeSession, placing: PlacingOptions, placer: OrderPlacer, offer: OrderOffer
) -> DeltaOutcome:
    """Place the order, and keep the hint for an interrupt up to date.

    The hint names the commands that follow or cancel the order, or take back its deposit.
    """
    under_way, known_hash = session.under_way, b""

    def about_to(order_hash: bytes) -> None:
        nonlocal known_hash
        known_hash, name = order_hash, to_hex(order_hash)
        under_way.hint = f"the order {name} may be live: {placing.hint(name)}"
        if offer.must_deposit:
            under_way.hint += f", {placing.withdrawal()}"

    if placing.allowing.approves(offer.missing):
        under_way.hint = "no order was placed; an approval that was sent may be mined all the same"
    try:
        placed = await placer.place(offer, about_to)
    except StepFailedError as failed:
        return DeltaOutcome.failed(failed, known_hash)
    order_hash, record = placed.order_hash, placed.record
    if record is not None:
        under_way.hint = f"the order goes on: {placing.hint(record.id)}"
    verdict = TradeVerdict.UNKNOWN if record is None else TradeVerdict.PLACED
    return DeltaOutcome(verdict=verdict, order_hash=order_hash, record=record, reason=placed.fault)


def _tokens(offer: OrderOffer) -> OfferTokens:
    terms = offer.terms
    return OfferTokens(terms.wish.src, terms.wish.dest, None if terms.bridge is None else terms.bridge.token)


async def _followed(
    session: TradeSession,
    placing: PlacingOptions,
    offer: OrderOffer,
    record: OrderRecord,
    there: Chain | None,
) -> DeltaOutcome:
    """Follow an order that the venue has accepted, verify its end on chain, and return its outcome.

    Args:
        there: the destination chain of an order across chains; None without a node of that chain.
    """
    venue, tell = session.venue, session.trader.tell
    follower = OrderFollower(venue, record.id, tell, _tokens(offer))
    try:
        subject = Subject(offer.contract.address, signed_order(record, offer.contract), there)
        follower.see(record)
        await follower.follow(placing.timeout_s)
        record = follower.record or record
        await tell_why(venue, record, tell)
        return await ended(record, session.trader.chain, subject)
    except (VenueError, ChainError) as fault:
        return not_known(record.order_hash, follower.record, fault)
