"""Shared code of the commands that place an order: their options, and the steps from price to settlement.

    options -> Placing --a wish, once the tokens are known--> offer, shown -> confirmed -> placed -> followed

Each command adds its own options and turns them into a wish: the order that the user wants.
"""

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import click
from msgspec import Struct

from ....codecs.messages.vocabulary import OrderType, Side
from ....config.errors import ChainError, ConfigError, VenueError
from ....config.sections.nodes import NodeSettings
from ....crypto.hexadecimal import to_hex
from ....crypto.secp256k1 import SigningKey
from ...chain.artifacts import known_errors
from ...chain.nodes.rpc import RpcChain
from ...client.allowing import Allowing
from ...client.client import VenueClient
from ...client.order.order_following import OrderFollower, Subject
from ...client.order.order_placing import OrderOffer, OrderPlacer
from ...client.order.order_safety import signed_order
from ...client.order.order_terms import OrderWish
from ...client.order.order_view import DeltaOutcome, OfferTokens, order_table
from ...client.outcome import TradeVerdict, failed_verdict
from ...client.schedule import Schedule
from ...client.sending import StepFailedError
from ...client.terms import TradedToken
from ..parameters import AddressParam, check_partner, checked_node, raw_units
from ..sources import agree, read_key
from ..trading import (
    SLIPPAGE_BPS,
    UnderWay,
    VenueOptions,
    allowing_of,
    approve_max_option,
    find_pair,
    new_console,
    new_trader,
    timed,
    timeout,
    venue_options,
)
from .order_options import ended, report, signing_options, tell_why

follow = click.option("--follow", "follows", is_flag=True, help="Follow the order until it has ended.")


class Placing(Struct, frozen=True, kw_only=True):
    """Options of all commands that place an order.

    Attributes:
        amount: whole tokens as typed: of the sold token, or with BUY of the bought token.
    """

    sell: str
    buy: str
    amount: str
    side: Side
    venue: VenueOptions
    chain_id: int
    node: NodeSettings
    key: SigningKey
    receiver: bytes | None
    partner: str
    delta: bytes | None
    allowing: Allowing
    is_sure: bool
    is_rehearsal: bool

    def wish(
        self,
        src: TradedToken,
        dest: TradedToken,
        *,
        type: OrderType,  # noqa: A002  the order's member
        life_s: int,
        slippage_bps: int = SLIPPAGE_BPS,
        limit_amount: int | None = None,
        schedule: Schedule | None = None,
        is_partial: bool = False,
    ) -> OrderWish:
        """Build the wish for an order of these tokens."""
        return OrderWish(
            chain_id=self.chain_id,
            src=src,
            dest=dest,
            side=self.side,
            amount=self.raw_amount(src, dest),
            slippage_bps=slippage_bps,
            limit_amount=limit_amount,
            type=type,
            owner=self.key.address,
            beneficiary=self.receiver or self.key.address,
            partner=self.partner,
            life_s=life_s,
            schedule=schedule,
            is_partial=is_partial,
        )

    def raw_amount(self, src: TradedToken, dest: TradedToken) -> int:
        """Convert AMOUNT to raw units.

        Raises:
            ConfigError: the tokens are the same, or the text is no amount of the token.
        """
        if src.address == dest.address:
            raise ConfigError("BUY_TOKEN", "equals SELL_TOKEN")
        return raw_units(self.amount, src if self.side is Side.SELL else dest, "AMOUNT")

    def raw_limit(self, text: str, src: TradedToken, dest: TradedToken, field: str) -> int:
        """Convert an amount of the token whose amount is not fixed to raw units."""
        return raw_units(text, dest if self.side is Side.SELL else src, field)


def placing_options(command: Callable[..., None]) -> Callable[..., None]:
    """Decorator that adds the options of all commands that place an order, received as `placing`."""

    @wraps(command)
    def with_placing(
        *,
        venue: VenueOptions,
        side: str,
        rpc: str,
        key: str,
        password: str | None,
        permit: bool = False,
        approve_max: bool,
        yes: bool,
        dry_run: bool,
        timeout_s: float,
        sell: str,
        buy: str,
        amount: str,
        chain_id: int,
        receiver: bytes | None,
        partner: str,
        delta: bytes | None,
        **rest: Any,
    ) -> None:
        allowing = allowing_of(permit=permit, approve_max=approve_max)
        check_partner(partner)
        placing = Placing(
            sell=sell,
            buy=buy,
            amount=amount,
            side=Side(side.upper()),
            venue=timed(venue, timeout_s),
            chain_id=chain_id,
            node=checked_node(rpc, AMOUNT=amount),
            key=read_key(key, password),
            receiver=receiver,
            partner=partner,
            delta=delta,
            allowing=allowing,
            is_sure=yes,
            is_rehearsal=dry_run,
        )
        command(placing=placing, **rest)

    decorated: Callable[..., None] = with_placing
    for option in (
        venue_options,
        timeout,
        click.option("--dry-run", is_flag=True, help="Show the price, build and check the order, and stop."),
        click.option("--yes", is_flag=True, help="Do not ask."),
        approve_max_option,
        click.option("--partner", default="", help="The partner's key."),
        click.option(
            "--receiver",
            type=AddressParam(),
            help="Receiver of the bought tokens; the key's account if absent.",
        ),
        click.option(
            "--side",
            type=click.Choice([side.value for side in Side], case_sensitive=False),
            default=Side.SELL.value,
            show_default=True,
            help="Meaning of AMOUNT: the sold or the bought amount.",
        ),
        signing_options,
        click.argument("amount"),
        click.argument("buy", metavar="BUY_TOKEN"),
        click.argument("sell", metavar="SELL_TOKEN"),
    ):
        decorated = option(decorated)
    return decorated


async def place_order(
    under_way: UnderWay,
    placing: Placing,
    wish_of: Callable[[TradedToken, TradedToken], OrderWish],
    follows: bool,  # noqa: FBT001  handed through `run`
) -> int:
    """Show the offer, ask for consent, place the order, and follow it if `follows`; return the exit status.

    Args:
        wish_of: builds the wish from the sold and the bought token.
    """
    console = new_console()
    tell = partial(console.print, style="dim")
    async with (
        RpcChain.open(placing.chain_id, placing.node, known_errors()) as chain,
        placing.venue.open() as venue,
    ):
        _, src, dest = await find_pair(chain, venue, placing.sell, placing.buy, tell)
        placer = OrderPlacer(new_trader(chain, placing.key, tell, placing.allowing), venue)
        offer = await placer.offer(wish_of(src, dest), placing.delta)
        console.print(order_table(offer, placing.allowing))
        if placing.is_rehearsal:
            checked = await placer.rehearse(offer)
            outcome = DeltaOutcome(verdict=TradeVerdict.REHEARSED, order_hash=checked.order_hash)
        else:
            if not placing.is_sure:
                agree("Place it?")
            outcome = await _placed(under_way, placing, placer, offer)
            if follows and outcome.verdict is TradeVerdict.PLACED:
                outcome = await _followed(outcome, placing, offer, chain, venue, tell)
    return report(placing.venue, outcome, OfferTokens(src, dest), offer)


async def _placed(
    under_way: UnderWay, placing: Placing, placer: OrderPlacer, offer: OrderOffer
) -> DeltaOutcome:
    """Place the order; `under_way` keeps the hint for an interrupt up to date."""
    known_hash = b""

    def about_to(order_hash: bytes) -> None:
        nonlocal known_hash
        known_hash, name = order_hash, to_hex(order_hash)
        under_way.hint = f"the order {name} may be live: {placing.venue.hint(name)}"
        if offer.must_deposit:
            under_way.hint += f", {placing.venue.withdrawal()}"

    if placing.allowing.approves(offer.missing):
        under_way.hint = "no order was placed; an approval that was sent may be mined all the same"
    try:
        placed = await placer.place(offer, about_to)
    except StepFailedError as failed:
        return DeltaOutcome(
            verdict=failed_verdict(failed),
            order_hash=known_hash,
            step=failed.step,
            tx_hash=failed.tx_hash,
            reason=failed.reason,
        )
    order_hash, record = placed.order_hash, placed.record
    if record is None:
        return DeltaOutcome(verdict=TradeVerdict.UNKNOWN, order_hash=order_hash, reason=placed.fault)
    under_way.hint = f"the order goes on: {placing.venue.hint(record.id)}"
    return DeltaOutcome(verdict=TradeVerdict.PLACED, order_hash=order_hash, record=record)


async def _followed(
    placed: DeltaOutcome,
    placing: Placing,
    offer: OrderOffer,
    chain: RpcChain,
    venue: VenueClient,
    tell: Callable[[str], None],
) -> DeltaOutcome:
    """Follow an order that the venue has accepted; return its outcome."""
    record = placed.record
    if record is None:
        return placed
    follower = OrderFollower(venue, record.id, tell)
    try:
        subject = Subject(offer.contract.address, signed_order(record, offer.contract))
        follower.see(record)
        await follower.follow(placing.venue.timeout_s)
        record = follower.record or record
        await tell_why(venue, record, tell)
        return await ended(record, chain, subject)
    except (VenueError, ChainError) as fault:
        return DeltaOutcome(
            verdict=TradeVerdict.UNKNOWN,
            order_hash=placed.order_hash,
            record=follower.record,
            reason=fault.detail,
        )
