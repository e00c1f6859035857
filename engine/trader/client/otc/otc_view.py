"""Texts about an OTC order for its maker or taker: the terms before the signature, and the outcome. Pure."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from .....codecs.messages.otc_messages import StoredOrder
from .....codecs.messages.resource_messages import TokenList
from .....codecs.messages.vocabulary import OtcState
from .....config.error_text import one_line
from .....crypto.addresses import ZERO_ADDRESS, to_checksum
from .....crypto.hexadecimal import to_hex
from ..allowing import Allowing
from ..outcome import (
    OrderOutcome,
    SentOutcome,
    TradeVerdict,
    followed_verdict,
    gas_lines,
    new_table,
    order_lines_of,
    sent_line,
)
from ..schedule import duration_text
from ..terms import TradedToken, amount_text, price_text
from .otc_filling import FillOffer
from .otc_listing import taker_text, time_text
from .otc_posting import OtcOffer
from .otc_terms import OTC_TERMINAL, SignedOtc, hand_over_of, party

if TYPE_CHECKING:
    from rich.table import Table


class OtcOutcome(OrderOutcome, frozen=True, kw_only=True):
    """The outcome of an OTC order that a command posted or followed.

    Attributes:
        signed: the posted order; None for an order that is only followed.
        stored: the venue's latest record.
        is_proven: whether the chain was asked, and confirms the venue's state.
    """

    signed: SignedOtc | None = None
    stored: StoredOrder | None = None
    is_proven: bool = False


def followed(
    stored: StoredOrder, order_hash: bytes, fault: str | None, signed: SignedOtc | None = None
) -> OtcOutcome:
    """The outcome of an OTC order that was followed, by the venue's record and the chain.

    Args:
        fault: text about how the chain contradicts the venue's record; empty if it does not, None if the
            chain was not asked.
        signed: the posted order; None if not known.
    """
    end = None
    if stored.state in OTC_TERMINAL:
        end = TradeVerdict.FULFILLED if stored.state is OtcState.FULFILLED else TradeVerdict.ENDED
    verdict, reason = followed_verdict(fault or "", end)
    return OtcOutcome(
        verdict=verdict,
        order_hash=order_hash,
        signed=signed,
        stored=stored,
        reason=reason,
        is_proven=fault == "",
    )


def post_table(offer: OtcOffer, allowing: Allowing) -> "Table":
    """Build a table of an OTC order's terms, to which the maker agrees before signing."""
    wish, src, dest = offer.wish, offer.wish.src, offer.wish.dest
    table = new_table()
    table.add_row("sell", f"{amount_text(wish.src_amount, src)}  {src.text}")
    table.add_row("for", f"{amount_text(wish.dest_amount, dest)}  {dest.text}")
    table.add_row("price", _price_text(src, dest, wish.src_amount, wish.dest_amount))
    is_open = wish.taker == ZERO_ADDRESS
    table.add_row("taker", "anyone: whoever comes first" if is_open else to_checksum(wish.taker))
    table.add_row("parts", "it may be filled in parts, none at a worse price")
    table.add_row("valid for", duration_text(wish.life_s) if wish.life_s else "ever, until it is cancelled")
    table.add_row("gas", "none of yours, but for an approval or a cancellation")
    table.add_row("spender", f"{to_checksum(offer.contract.address)} (RFQ)")
    table.add_row("you have", amount_text(offer.held.balance, src))
    if offer.missing:
        table.add_row("first", f"{allowing.value} of {src.symbol} to the spender")
        if allowing is not Allowing.MOST and offer.fillable < min(offer.held.balance, offer.held.allowance):
            table.add_row(
                "note", "older orders of yours share that, and come first; --approve-max allows more"
            )
    elif offer.fillable < wish.src_amount and not offer.is_short:
        left = amount_text(offer.fillable, src)
        more = "; --approve-max lets the spender take more" if offer.is_held_back else ""
        table.add_row("note", f"older orders of yours come first: they leave {left}, as the venue says{more}")
    if offer.is_short:
        short = amount_text(wish.src_amount - offer.held.balance, src)
        table.add_row("note", f"you lack {short}: the venue suspends the order until you have it")
    return table


def fill_table(offer: FillOffer, allowing: Allowing, listed: TokenList) -> "Table":
    """Build a table of the terms of filling an OTC order, to which the taker agrees before signing.

    Args:
        listed: the venue's tokens; the table warns of a token that is not listed, as any contract can claim
            any symbol.
    """
    order, part = offer.order, offer.part
    table = new_table()
    table.add_row("give", f"{amount_text(part.taker_amount, offer.gives)}  {offer.gives.text}")
    table.add_row("receive", f"{amount_text(part.maker_amount, offer.gets)}  {offer.gets.text}")
    table.add_row("price", _price_text(offer.gives, offer.gets, part.taker_amount, part.maker_amount))
    table.add_row("maker", to_checksum(order.maker))
    table.add_row("taker", taker_text(order.taker))
    whole = "all of it" if part.maker_amount == order.maker_amount else _shares(offer)
    table.add_row("of the order", whole)
    table.add_row("expires", time_text(order.expiry) + " UTC" if order.expiry else "never")
    table.add_row("spender", f"{to_checksum(offer.contract.address)} (RFQ)")
    if offer.missing:
        table.add_row("first", f"{allowing.value} of {offer.gives.symbol} to the spender")
    if offer.shows_permit:
        table.add_row("permit", "the maker's goes with it, in place of an approval")
    known = {party(token.address) for token in listed.tokens}
    for token in (offer.gives, offer.gets):
        if token.address not in known:
            table.add_row(
                "note", f"{token.symbol} is what {token.text} calls itself: do you know that address?"
            )
    return table


def otc_lines(outcome: OtcOutcome) -> Iterator[str]:
    """Lines of text for people about the outcome of an OTC order."""
    stored = outcome.stored
    known = stored.state.value if stored else ""
    yield from order_lines_of(outcome, known, has_ended=stored is not None and stored.state in OTC_TERMINAL)
    if stored is not None and stored.transaction_hash:
        yield f"transaction  {one_line(stored.transaction_hash)}"


def otc_json(outcome: OtcOutcome, chain_id: int | None = None) -> dict[str, Any]:
    """The outcome of an OTC order as the JSON object that `--json` prints; amounts are raw units.
    `signedOrder` is the order that the maker can hand to a taker."""
    stored, signed = outcome.stored, outcome.signed
    handed = None if signed is None or chain_id is None else hand_over_of(signed, chain_id)
    return {
        "outcome": outcome.verdict.value,
        "orderHash": to_hex(outcome.order_hash) if outcome.order_hash else None,
        "state": stored.state.value if stored else None,
        "isProven": outcome.is_proven,
        "step": outcome.step,
        "txHash": to_hex(outcome.tx_hash) if outcome.tx_hash else None,
        "reason": outcome.reason or None,
        "order": msgspec.to_builtins(stored) if stored else None,
        "signedOrder": msgspec.to_builtins(handed) if handed else None,
    }


def fill_lines(outcome: SentOutcome, offer: FillOffer) -> Iterator[str]:
    """Lines of text for people about the outcome of filling an OTC order."""
    yield sent_line(outcome)
    yield f"order        {to_hex(offer.signed.order_hash)}"
    if outcome.reason:
        yield f"reason       {one_line(outcome.reason)}"
    if outcome.received:
        yield f"given        {amount_text(outcome.spent, offer.gives)}"
        yield f"received     {amount_text(outcome.received, offer.gets)}"
    yield from gas_lines(outcome)
    for remark in outcome.remarks:
        yield f"note         {remark}"


def fill_json(outcome: SentOutcome, offer: FillOffer) -> dict[str, Any]:
    """The outcome of filling an OTC order as the JSON object that `--json` prints; amounts are raw units."""
    order = offer.order
    return {
        "outcome": outcome.verdict.value,
        "orderHash": to_hex(offer.signed.order_hash),
        "step": outcome.step,
        "txHash": to_hex(outcome.tx_hash) if outcome.tx_hash else None,
        "blockNumber": outcome.block_number or None,
        "chainId": offer.contract.chain_id,
        "maker": to_checksum(order.maker),
        "makerAsset": to_checksum(order.maker_asset),
        "takerAsset": to_checksum(order.taker_asset),
        "given": str(outcome.spent),
        "received": str(outcome.received),
        "leftBefore": str(offer.left),
        "rfq": to_checksum(offer.contract.address),
        "gas": outcome.gas,
        "gasPriceWei": str(outcome.gas_price_wei),
        "reason": outcome.reason or None,
        "remarks": list(outcome.remarks),
    }


def _price_text(src: TradedToken, dest: TradedToken, src_amount: int, dest_amount: int) -> str:
    """Text of an order's price in both directions, by which the reader notices swapped tokens.

    Args:
        src_amount, dest_amount: raw units.
    """
    there = price_text(src, dest, src_amount, dest_amount)
    return f"{there}, {price_text(dest, src, dest_amount, src_amount)}"


def _shares(offer: FillOffer) -> str:
    taken, left = amount_text(offer.part.maker_amount, offer.gets), amount_text(offer.left, offer.gets)
    return f"{taken} of {left} that are left; {amount_text(offer.order.maker_amount, offer.gets)} in all"
