"""`cambist otc post`: signs and posts an order for a counterparty, or for anyone."""

import os
import time
from functools import partial
from pathlib import Path

import click
from msgspec import Struct

from ....codecs.amounts import parse_decimal
from ....codecs.messages.vocabulary import Side
from ....codecs.messages.wire import encode
from ....config.errors import ChainError, ConfigError, InvalidInput, VenueError
from ....config.sections.nodes import NodeSettings
from ....config.timeouts import TRADER_LIMIT_ORDER_S
from ....crypto.addresses import ZERO_ADDRESS, to_checksum
from ....crypto.hexadecimal import to_hex
from ....crypto.secp256k1 import SigningKey
from ...chain.artifacts import known_errors
from ...chain.nodes.rpc import RpcChain
from ...client.allowing import Allowing
from ...client.limit_price import LimitPrice
from ...client.otc.otc_following import OtcFollower, disproof
from ...client.otc.otc_posting import OtcOffer, OtcPoster
from ...client.otc.otc_terms import OTC_TERMINAL, OtcWish, SignedOtc, hand_over_of
from ...client.otc.otc_view import OtcOutcome, followed, otc_json, otc_lines, post_table
from ...client.outcome import TradeVerdict, failed_verdict
from ...client.schedule import duration_text
from ...client.sending import StepFailedError
from ...client.terms import TradedToken, amount_text
from ...client.trusted_contract import SigningContract
from ..parameters import AddressParam, Expires, checked_node, raw_units
from ..sources import agree, read_key
from ..trading import (
    EXIT,
    HELP,
    UnderWay,
    VenueOptions,
    allowing_options,
    find_pair,
    new_console,
    new_trader,
    run,
    timed,
    timeout,
    venue_options,
)
from .otc_options import rfq_options, write_order

_PRICE, _RECEIVE = "--price", "--receive"


class _PostOptions(Struct, frozen=True, kw_only=True):
    """The parsed command line. Exactly one of `price` and `receive` is given."""

    sell: str
    buy: str
    amount: str
    price: LimitPrice | None
    receive: str
    taker: bytes
    life_s: int
    venue: VenueOptions
    chain_id: int
    node: NodeSettings
    key: SigningKey
    rfq: bytes | None
    allowing: Allowing
    out: Path | None
    is_sure: bool
    is_rehearsal: bool
    even_if_short: bool
    follows: bool

    def wish(self, src: TradedToken, dest: TradedToken) -> OtcWish:
        """Build the wish for an order of these tokens.

        Raises:
            ConfigError: the tokens or the amounts make no order.
        """
        for token, field in ((src, "SELL_TOKEN"), (dest, "BUY_TOKEN")):
            if token.is_native:
                raise ConfigError(field, "is the native token: OTC orders are of ERC-20 tokens, so wrap it")
        if src.address == dest.address:
            raise ConfigError("BUY_TOKEN", "equals SELL_TOKEN")
        if self.taker == self.key.address:
            raise ConfigError("--taker", "is the account of the key itself")
        amount = raw_units(self.amount, src, "AMOUNT")
        if self.price is not None:
            dest_amount = self.price.limit_amount(Side.SELL, amount, src, dest, _PRICE)
        else:
            dest_amount = raw_units(self.receive, dest, _RECEIVE)
        return OtcWish(
            chain_id=self.chain_id,
            src=src,
            dest=dest,
            src_amount=amount,
            dest_amount=dest_amount,
            maker=self.key.address,
            taker=self.taker,
            life_s=self.life_s,
        )


@click.command("post", context_settings=HELP)
@click.argument("sell", metavar="SELL_TOKEN")
@click.argument("buy", metavar="BUY_TOKEN")
@click.argument("amount")
@click.option(_PRICE, "price_text", metavar="PRICE", help="BUY_TOKEN for one SELL_TOKEN, such as 2600.5.")
@click.option(_RECEIVE, metavar="AMOUNT", help="In place of --price: amount to receive for the whole order.")
@click.option("--taker", type=AddressParam(), help="Account that may fill the order; anyone if absent.")
@click.option(
    "--expires",
    "life_s",
    type=Expires(),
    default=str(TRADER_LIMIT_ORDER_S),
    help=f"Life of the order: 90, 30m, 12h, 7d, never.  [default: {duration_text(TRADER_LIMIT_ORDER_S)}]",
)
@rfq_options
@allowing_options
@click.option("--even-if-short", is_flag=True, help="Post the order although the balance does not cover it.")
@click.option("--out", type=click.Path(path_type=Path), help="A new file for the signed order.")
@click.option("--follow", "follows", is_flag=True, help="Follow the order until it has ended.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Show the terms and stop.")
@timeout
@venue_options
def post(
    venue: VenueOptions,
    sell: str,
    buy: str,
    amount: str,
    price_text: str | None,
    receive: str | None,
    taker: bytes | None,
    life_s: int,
    chain_id: int,
    rpc: str,
    key: str,
    password: str | None,
    rfq: bytes | None,
    allowing: Allowing,
    out: Path | None,
    timeout_s: float,
    *,
    even_if_short: bool,
    follows: bool,
    yes: bool,
    dry_run: bool,
) -> None:
    """Offer AMOUNT of SELL_TOKEN for BUY_TOKEN to a counterparty, or to anyone.

    You sign the order at no gas and the venue stores it; a taker fills it on chain, whole or in parts. The
    command checks balance and allowance, shows the terms and asks. --out FILE or --json gives the signed
    order, which the taker can fill without the venue.
    """
    if (price_text is None) == (receive is None):
        raise click.UsageError(f"one of {_PRICE} and {_RECEIVE} is needed")
    if taker == ZERO_ADDRESS:
        raise click.UsageError("--taker: the zero address is no account; leave --taker out for anyone")
    if out is not None and os.path.lexists(out):
        raise click.UsageError(f"--out: {out} exists; it is not overwritten")
    if out is not None and not (out.parent.is_dir() and os.access(out.parent, os.W_OK)):
        raise click.UsageError(f"--out: no file can be made in {out.parent}")
    try:
        price = None if price_text is None else LimitPrice.parse(price_text, _PRICE)
        if receive is not None:
            parse_decimal(receive, _RECEIVE)
    except (ConfigError, InvalidInput) as error:
        raise click.UsageError(error.detail) from None
    asked = _PostOptions(
        sell=sell,
        buy=buy,
        amount=amount,
        price=price,
        receive=receive or "",
        taker=taker or ZERO_ADDRESS,
        life_s=life_s,
        venue=timed(venue, timeout_s),
        chain_id=chain_id,
        node=checked_node(rpc, AMOUNT=amount),
        key=read_key(key, password),
        rfq=rfq,
        allowing=allowing,
        out=out,
        is_sure=yes,
        is_rehearsal=dry_run,
        even_if_short=even_if_short,
        follows=follows,
    )
    run(_post, asked)


def report(place: VenueOptions, outcome: OtcOutcome, chain_id: int | None = None) -> int:
    """Print the result on standard output; return the exit status."""
    if place.is_json:
        click.echo(encode(otc_json(outcome, chain_id)).decode())
    else:
        for line in otc_lines(outcome):
            click.echo(line)
    stored = outcome.stored
    is_over = stored is not None and stored.state in OTC_TERMINAL
    if outcome.order_hash and (not is_over or outcome.verdict is TradeVerdict.UNKNOWN):
        order_hash = to_hex(outcome.order_hash)
        may_be = "the order may be live" if stored is None or is_over else "the order goes on"
        click.echo(f"{may_be}: {place.hint(order_hash, 'otc')}", err=True)
    return EXIT[outcome.verdict]


# --- Its work -----------------------------------------------------------------------------------------


async def _post(under_way: UnderWay, asked: _PostOptions) -> int:
    console = new_console()
    tell = partial(console.print, style="dim")
    async with (
        RpcChain.open(asked.chain_id, asked.node, known_errors()) as chain,
        asked.venue.open() as venue,
    ):
        _, src, dest = await find_pair(chain, venue, asked.sell, asked.buy, tell)
        poster = OtcPoster(new_trader(chain, asked.key, tell, asked.allowing), venue)
        offer = await poster.offer(asked.wish(src, dest), asked.rfq)
        console.print(post_table(offer, asked.allowing))
        if asked.is_rehearsal:
            return report(asked.venue, OtcOutcome(verdict=TradeVerdict.REHEARSED))
        _agreed(asked, offer)
        outcome = await _posted(under_way, asked, poster, offer)
        if outcome.stored is not None and (asked.follows or outcome.stored.state in OTC_TERMINAL):
            follower = OtcFollower(venue, to_hex(outcome.order_hash), tell)
            outcome = await _followed(outcome, asked, follower, chain, offer.contract)
    return report(asked.venue, outcome, asked.chain_id)


def _agreed(asked: _PostOptions, offer: OtcOffer) -> None:
    """Ask for consent, unless an option has given it.

    Raises:
        ChainError: the balance does not cover the order, and --yes forbids the question.
    """
    is_short = offer.is_short and not asked.even_if_short
    if asked.is_sure and is_short:
        wish = offer.wish
        raise ChainError(
            f"you have {amount_text(offer.balance, wish.src)}, and "
            f"{amount_text(wish.src_amount, wish.src)} is offered: "
            "the venue would suspend the order; --even-if-short posts it"
        )
    if not asked.is_sure:
        question = "Post it, although you do not have that much?" if is_short else "Post it?"
        agree(question)


async def _posted(under_way: UnderWay, asked: _PostOptions, poster: OtcPoster, offer: OtcOffer) -> OtcOutcome:
    """Post the order; `under_way` keeps the hint for an interrupt up to date."""

    name = ""

    def about_to(signed: SignedOtc) -> None:
        nonlocal name
        if asked.out is not None:
            write_order(asked.out, hand_over_of(signed, asked.chain_id))
        name = to_hex(signed.order_hash)
        under_way.hint = f"the order {name} may be live: {asked.venue.hint(name, 'otc')}"

    if asked.allowing.approves(offer.missing):
        under_way.hint = "no order was posted; an approval that was sent may be mined all the same"
    try:
        posted = await poster.post(offer, about_to)
    except StepFailedError as failed:
        return OtcOutcome(
            verdict=failed_verdict(failed), step=failed.step, tx_hash=failed.tx_hash, reason=failed.reason
        )
    except VenueError as refusal:
        if not name:
            raise
        raise VenueError(
            f"{refusal.detail}. The venue has seen the signed order {name}: `cambist otc cancel {name} "
            f"--rfq {to_checksum(offer.contract.address)} ...` closes it for good"
        ) from None
    signed, stored = posted.signed, posted.stored
    if stored is not None:
        under_way.hint = f"the order goes on: {asked.venue.hint(name, 'otc')}"
    verdict = TradeVerdict.UNKNOWN if stored is None else TradeVerdict.POSTED
    return OtcOutcome(
        verdict=verdict, order_hash=signed.order_hash, signed=signed, stored=stored, reason=posted.fault
    )


async def _followed(
    posted: OtcOutcome, asked: _PostOptions, follower: OtcFollower, chain: RpcChain, contract: SigningContract
) -> OtcOutcome:
    """Follow an order that the venue has accepted; return its outcome, verified on the chain."""
    if posted.stored is None or posted.signed is None:
        return posted
    fault = ""
    try:
        follower.see(posted.stored)
        if not follower.has_ended:
            await follower.follow(asked.venue.timeout_s)
        stored = follower.stored or posted.stored
        if follower.has_ended:
            fault = await disproof(chain, contract, posted.signed, stored, int(time.time()))
    except (ChainError, VenueError) as error:
        fault = error.detail
    stored = follower.stored or posted.stored
    is_proven = follower.has_ended and not fault
    return followed(stored, posted.order_hash, signed=posted.signed, fault=fault, is_proven=is_proven)
