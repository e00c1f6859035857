"""`cambist otc post`: signs and posts an order for a counterparty, or for anyone."""

import os
from pathlib import Path

import click

from ....codecs.messages.wire import encode
from ....config.errors import ChainError, TradeFailed, VenueError
from ....config.timeouts import TRADER_LIMIT_ORDER_S
from ....crypto.addresses import ZERO_ADDRESS, to_checksum
from ....crypto.hexadecimal import to_hex
from ...trader.client.otc.otc_posting import OtcOffer
from ...trader.client.otc.otc_terms import OTC_TERMINAL, SignedOtc, hand_over_of
from ...trader.client.otc.otc_view import OtcOutcome, otc_json, otc_lines, post_table
from ...trader.client.outcome import TradeVerdict
from ...trader.client.public.offers import OfferedTrade
from ...trader.client.schedule import duration_text
from ...trader.client.terms import amount_text
from ...trader.client.trusted_contract import RFQ
from ..parameters import ADDRESS, Expires, amount_option, life_option, price_option
from ..sources import write_new
from ..trading import (
    EXIT,
    TradeOptions,
    TradeSession,
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

    price: str | None
    receive: str | None
    taker: bytes | None
    life_s: int
    out: Path | None
    even_if_short: bool
    follows: bool

    def names(self) -> dict[str, str]:
        """Map parameter names of `cambist.client` to the options and arguments of the command, for errors."""
        return super().names() | {"price": _PRICE, "receive": _RECEIVE, "taker": "--taker"}


@click.command("post")
@gathered(
    _PostOptions,
    "options",
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
def post(options: _PostOptions) -> None:
    """Offer AMOUNT of SELL_TOKEN for BUY_TOKEN to a counterparty, or to anyone.

    You sign the order at no gas and the venue stores it; a taker fills it on chain, whole or in parts. The
    command checks balance and allowance, shows the terms and asks. --out FILE or --json gives the signed
    order, which the taker can fill without the venue.
    """
    out = options.out
    if (options.price is None) == (options.receive is None):
        raise click.UsageError(f"one of {_PRICE} and {_RECEIVE} is needed")
    if options.taker == ZERO_ADDRESS:
        raise click.UsageError("--taker: the zero address is no account; leave --taker out for anyone")
    if out is not None and os.path.lexists(out):
        raise click.UsageError(f"--out: {out} exists; it is not overwritten")
    if out is not None and not (out.parent.is_dir() and os.access(out.parent, os.W_OK)):
        raise click.UsageError(f"--out: no file can be made in {out.parent}")
    options.run(_post, options)


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


async def _post(session: TradeSession, options: _PostOptions) -> int:
    under_way, name = session.under_way, ""

    def agree(offered: OfferedTrade[OtcOffer]) -> bool:
        offer = offered.detail
        session.console.print(post_table(offer, options.allowing))
        if not options.is_rehearsal:
            _agreed(options, offer)
            if options.allowing.approves(offer.missing):
                under_way.hint = "no order was posted; an approval that was sent may be mined all the same"
        return True

    def about_to(signed: SignedOtc) -> None:
        nonlocal name
        # The file comes before the post: if it cannot be written, the venue never sees the order.
        if options.out is not None:
            handed = encode(hand_over_of(signed, options.chain_id))
            write_new(options.out, handed + b"\n", "--out", str(options.out))
        name = to_hex(signed.order_hash)
        under_way.hint = f"the order {name} may be live: {options.hint(name, 'otc')}"

    try:
        state = await session.program.otc(
            options.sell,
            options.buy,
            options.amount,
            key=session.trader.key,
            price=options.price,
            receive=options.receive,
            taker=options.taker,
            life_s=options.life_s,
            allowing=options.allowing,
            agree=agree,
            about_to=about_to,
            rehearse=options.is_rehearsal,
            pinned=options.pinned,
        )
    except TradeFailed as failed:
        return report(options, failed.outcome, options.chain_id)
    except VenueError as refusal:
        if not name:  # refused before the order was signed: there is nothing to cancel
            raise
        contract = await session.contract(RFQ)
        raise VenueError(
            f"{refusal.detail}. The venue has seen the signed order {name}: `cambist otc cancel {name} "
            f"--rfq {to_checksum(contract.address)} ...` closes it for good"
        ) from None
    if options.is_rehearsal:
        return report(options, state.outcome)
    under_way.hint = f"the order goes on: {options.hint(name, 'otc')}"
    # An order that has ended already is followed too: its end is then compared with the chain.
    if options.follows or state.has_ended:
        state = await session.program.follow_otc(state, timeout_s=options.timeout_s, pinned=options.pinned)
    return report(options, state.outcome, options.chain_id)


def _agreed(options: _PostOptions, offer: OtcOffer) -> None:
    """Ask for consent to post the order, unless --yes has given it.

    Raises:
        ChainError: the balance does not cover the order, and with --yes the command cannot ask whether to
            post all the same.
    """
    is_short = offer.is_short and not options.even_if_short
    if options.is_sure and is_short:
        wish = offer.wish
        raise ChainError(
            f"you have {amount_text(offer.held.balance, wish.src)}, and "
            f"{amount_text(wish.src_amount, wish.src)} is offered: "
            "the venue would suspend the order; --even-if-short posts it"
        )
    options.agree("Post it, although you do not have that much?" if is_short else "Post it?")
