"""`cambist otc post`: signs and posts an order for a counterparty, or for anyone."""

import os
import time
from pathlib import Path

import click

from ....codecs.messages.otc_messages import StoredOrder
from ....codecs.messages.vocabulary import Side
from ....codecs.messages.wire import encode
from ....config.errors import ChainError, ConfigError, VenueError
from ....config.timeouts import TRADER_LIMIT_ORDER_S
from ....crypto.addresses import ZERO_ADDRESS, to_checksum
from ....crypto.hexadecimal import to_hex
from ...chain.transact import StepFailedError
from ...client.limit_price import LimitPrice
from ...client.otc.otc_following import OtcFollower, disproof
from ...client.otc.otc_posting import OtcOffer, OtcPoster
from ...client.otc.otc_terms import OTC_TERMINAL, OtcWish, SignedOtc, hand_over_of
from ...client.otc.otc_view import OtcOutcome, followed, otc_json, otc_lines, post_table
from ...client.outcome import TradeVerdict
from ...client.schedule import duration_text
from ...client.terms import TradedToken, amount_text
from ...client.trusted_contract import RFQ, SigningContract
from ..parameters import ADDRESS, Expires, amount_option, life_option, price_option, raw_units
from ..sources import write_new
from ..trading import (
    EXIT,
    TradeOptions,
    TradeSession,
    UnderWay,
    VenueOptions,
    approve_max_option,
    consent_list,
    follow,
    gathered,
    pair_arguments,
    permit_option,
    signing_list,
    venue_list,
)

_PRICE, _RECEIVE = "--price", "--receive"


class _PostOptions(TradeOptions, frozen=True, kw_only=True):
    """Options of `cambist otc post`. Exactly one of `price` and `receive` is set.

    Attributes:
        taker: account that may fill the order, 20 bytes; None for anyone.
    """

    price: LimitPrice | None
    receive: str | None
    taker: bytes | None
    life_s: int
    out: Path | None
    even_if_short: bool
    follows: bool

    def wish(self, maker: bytes, src: TradedToken, dest: TradedToken) -> OtcWish:
        """Build the user's wish for an OTC order of these tokens.

        Args:
            maker: account that signs and sells, 20 bytes.

        Raises:
            ConfigError: the tokens or the amounts make no order.
        """
        for token, field in ((src, "SELL_TOKEN"), (dest, "BUY_TOKEN")):
            if token.is_native:
                raise ConfigError(field, "is the native token: OTC orders are of ERC-20 tokens, so wrap it")
        amount = self.raw_amount(src, dest)
        if self.taker == maker:
            raise ConfigError("--taker", "is the account of the key itself")
        if self.price is not None:
            dest_amount = self.price.limit_amount(Side.SELL, amount, src, dest, _PRICE)
        else:
            dest_amount = raw_units(self.receive or "", dest, _RECEIVE)
        return OtcWish(
            chain_id=self.chain_id,
            src=src,
            dest=dest,
            src_amount=amount,
            dest_amount=dest_amount,
            maker=maker,
            taker=self.taker or ZERO_ADDRESS,
            life_s=self.life_s,
        )


@click.command("post")
@gathered(
    _PostOptions,
    "asked",
    *pair_arguments,
    price_option(_PRICE),
    amount_option(_RECEIVE, "receive", "In place of --price: amount to receive for the whole order."),
    click.option("--taker", type=ADDRESS, help="Account that may fill the order; anyone if absent."),
    life_option(
        "--expires",
        Expires(),
        TRADER_LIMIT_ORDER_S,
        f"Life of the order: 90, 30m, 12h, 7d, never.  [default: {duration_text(TRADER_LIMIT_ORDER_S)}]",
    ),
    *signing_list(RFQ),
    permit_option,
    approve_max_option,
    click.option(
        "--even-if-short", is_flag=True, help="Post the order although the balance does not cover it."
    ),
    click.option("--out", type=click.Path(path_type=Path), help="A new file for the signed order."),
    follow,
    *consent_list("Show the terms and stop."),
    *venue_list(follows=True),
)
def post(asked: _PostOptions) -> None:
    """Offer AMOUNT of SELL_TOKEN for BUY_TOKEN to a counterparty, or to anyone.

    You sign the order at no gas and the venue stores it; a taker fills it on chain, whole or in parts. The
    command checks balance and allowance, shows the terms and asks. --out FILE or --json gives the signed
    order, which the taker can fill without the venue.
    """
    out = asked.out
    if (asked.price is None) == (asked.receive is None):
        raise click.UsageError(f"one of {_PRICE} and {_RECEIVE} is needed")
    if asked.taker == ZERO_ADDRESS:
        raise click.UsageError("--taker: the zero address is no account; leave --taker out for anyone")
    if out is not None and os.path.lexists(out):
        raise click.UsageError(f"--out: {out} exists; it is not overwritten")
    if out is not None and not (out.parent.is_dir() and os.access(out.parent, os.W_OK)):
        raise click.UsageError(f"--out: no file can be made in {out.parent}")
    asked.run(_post, asked)


def report(place: VenueOptions, outcome: OtcOutcome, chain_id: int | None = None) -> int:
    """Print an OTC order's outcome on standard output; return the exit status.

    Standard error shows a hint at the command to run next, if the order may still be live.
    """
    place.show(otc_json(outcome, chain_id), otc_lines(outcome))
    stored = outcome.stored
    is_over = stored is not None and stored.state in OTC_TERMINAL
    if outcome.order_hash and (not is_over or outcome.verdict is TradeVerdict.UNKNOWN):
        order_hash = to_hex(outcome.order_hash)
        may_be = "the order may be live" if stored is None or is_over else "the order goes on"
        click.echo(f"{may_be}: {place.hint(order_hash, 'otc')}", err=True)
    return EXIT[outcome.verdict]


# --- Its work -----------------------------------------------------------------------------------------


async def _post(session: TradeSession, asked: _PostOptions) -> int:
    _, src, dest = await asked.find_pair(session)
    poster = OtcPoster(session.trader, session.venue)
    offer = await poster.offer(asked.wish(session.trader.key.address, src, dest), asked.pinned)
    session.console.print(post_table(offer, asked.allowing))
    if asked.is_rehearsal:
        return report(asked, OtcOutcome(verdict=TradeVerdict.REHEARSED))
    _agreed(asked, offer)
    outcome = await _posted(session.under_way, asked, poster, offer)
    signed, stored = outcome.signed, outcome.stored
    if signed and stored and (asked.follows or stored.state in OTC_TERMINAL):
        outcome = await _followed(session, asked, offer.contract, signed, stored)
    return report(asked, outcome, asked.chain_id)


def _agreed(asked: _PostOptions, offer: OtcOffer) -> None:
    """Ask for consent to post the order, unless --yes has given it.

    Raises:
        ChainError: the balance does not cover the order, and with --yes the command cannot ask whether to
            post all the same.
    """
    is_short = offer.is_short and not asked.even_if_short
    if asked.is_sure and is_short:
        wish = offer.wish
        raise ChainError(
            f"you have {amount_text(offer.held.balance, wish.src)}, and "
            f"{amount_text(wish.src_amount, wish.src)} is offered: "
            "the venue would suspend the order; --even-if-short posts it"
        )
    asked.agree("Post it, although you do not have that much?" if is_short else "Post it?")


async def _posted(under_way: UnderWay, asked: _PostOptions, poster: OtcPoster, offer: OtcOffer) -> OtcOutcome:
    """Post the OTC order, and keep the hint for an interrupt up to date.

    The hint names the commands that follow or cancel the order.
    """

    name = ""

    def about_to(signed: SignedOtc) -> None:
        nonlocal name
        if asked.out is not None:
            handed = encode(hand_over_of(signed, asked.chain_id))
            write_new(asked.out, handed + b"\n", "--out", str(asked.out))
        name = to_hex(signed.order_hash)
        under_way.hint = f"the order {name} may be live: {asked.hint(name, 'otc')}"

    if asked.allowing.approves(offer.missing):
        under_way.hint = "no order was posted; an approval that was sent may be mined all the same"
    try:
        signed, placed = await poster.post(offer, about_to)
    except StepFailedError as failed:
        return OtcOutcome.failed(failed)
    except VenueError as refusal:
        if not name:
            raise
        raise VenueError(
            f"{refusal.detail}. The venue has seen the signed order {name}: `cambist otc cancel {name} "
            f"--rfq {to_checksum(offer.contract.address)} ...` closes it for good"
        ) from None
    stored = placed.record
    if stored is not None:
        under_way.hint = f"the order goes on: {asked.hint(name, 'otc')}"
    verdict = TradeVerdict.UNKNOWN if stored is None else TradeVerdict.POSTED
    return OtcOutcome(
        verdict=verdict, order_hash=signed.order_hash, signed=signed, stored=stored, reason=placed.fault
    )


async def _followed(
    session: TradeSession,
    asked: _PostOptions,
    contract: SigningContract,
    signed: SignedOtc,
    stored: StoredOrder,
) -> OtcOutcome:
    """Follow an OTC order that the venue has accepted; return its outcome, verified on the chain."""
    follower = OtcFollower(session.venue, to_hex(signed.order_hash), session.trader.tell)
    fault: str | None = None
    try:
        follower.see(stored)
        await follower.follow(asked.timeout_s)
        stored = follower.record or stored
        if follower.has_ended:
            fault = await disproof(session.trader.chain, contract, signed, stored, int(time.time()))
    except (ChainError, VenueError) as error:
        fault = error.detail
    return followed(follower.record or stored, signed.order_hash, fault, signed)
