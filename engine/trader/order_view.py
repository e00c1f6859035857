"""What a trader is shown of an order: the offer before the question, and what became of it. Pure."""

from collections.abc import Iterator
from decimal import Decimal
from enum import Enum
from typing import Any

from msgspec import Struct
from rich.table import Table

from ...codecs.delta_messages import OrderRecord
from ...codecs.vocabulary import OrderStatus, OrderType, Side
from ...crypto.addresses import to_checksum
from ...crypto.hexadecimal import to_hex
from .allowing import Allowing
from .order_following import TERMINAL, Settled, executed_of
from .order_placing import OrderOffer
from .terms import TradedToken, impact_percent
from .view import amount_text, price_text


class Verdict(Enum):
    """How it ended."""

    SETTLED = "settled"
    PLACED = "placed"
    REHEARSED = "rehearsed"
    ENDED = "ended"
    REVERTED = "reverted"
    UNKNOWN = "unknown"


class OrderOutcome(Struct, frozen=True, kw_only=True):
    """What became of an order.

    Attributes:
        order_hash: 32 bytes; empty where none was built.
        record: as the venue told it last.
        settled: as the chain tells; None where it was not asked.
        step: `order`, or the transaction before it that came to nothing: `approval`, `deposit`.
        tx_hash: of that one.
    """

    verdict: Verdict
    order_hash: bytes = b""
    record: OrderRecord | None = None
    settled: Settled | None = None
    step: str = "order"
    tx_hash: bytes = b""
    reason: str = ""


class Tokens(Struct, frozen=True):
    """Source and destination, where they are known."""

    src: TradedToken | None = None
    dest: TradedToken | None = None


def outcome_of(record: OrderRecord, order_hash: bytes, settled: Settled | None) -> OrderOutcome:
    """What a record comes to.

    Args:
        settled: of the chain; None where it was not asked.
    """
    reason = ""
    if settled is not None and settled.fault:
        verdict, reason = Verdict.UNKNOWN, settled.fault
    elif record.status is OrderStatus.COMPLETED:
        verdict = Verdict.SETTLED
    elif record.status in TERMINAL:
        verdict = Verdict.ENDED
    else:
        verdict, reason = Verdict.UNKNOWN, "time is up, and it has not ended"
    return OrderOutcome(verdict=verdict, order_hash=order_hash, record=record, settled=settled, reason=reason)


def order_table(offer: OrderOffer, allowing: Allowing) -> Table:
    """What is agreed to."""
    terms = offer.terms
    wish, src, dest = terms.wish, terms.wish.src, terms.wish.dest
    is_sale, is_limit = wish.side is Side.SELL, wish.type is OrderType.LIMIT
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("sell", f"{amount_text(terms.src_quoted, src)}  {src.text}")
    table.add_row("buy", f"{amount_text(terms.dest_quoted, dest)}  {dest.text}")
    table.add_row("price now", price_text(src, dest, terms.src_quoted, terms.dest_quoted))
    if is_limit:
        table.add_row("limit price", price_text(src, dest, terms.src_amount_max, terms.dest_amount_min))
    route = offer.quoted.block.route
    impact = impact_percent(route.origin.input.amount_usd, route.destination.output.amount_usd)
    table.add_row("impact", "not known" if impact is None else f"{impact} %")
    table.add_row("partner fee", f"{Decimal(terms.fee_bps) / 100} % ({terms.partner}), included")
    gas = route.fees.gas
    table.add_row("gas", f"none of yours; {gas.amount_usd} USD of the price")
    bound = amount_text(terms.limit, dest if is_sale else src)
    basis = "the limit" if is_limit else f"{wish.slippage_bps} bps"
    table.add_row("at least received" if is_sale else "at most spent", f"{bound}  ({basis})")
    if wish.beneficiary != wish.owner:
        table.add_row("receiver", to_checksum(wish.beneficiary))
    table.add_row("valid for", f"{wish.life_s} s")
    table.add_row("spender", f"{to_checksum(terms.delta)} (Delta)")
    if offer.must_allow:
        table.add_row("first", f"{allowing.value} of {src.symbol} to the spender")
    if offer.must_deposit:
        deposited = amount_text(terms.src_amount_max, src)
        table.add_row("first", f"deposit {deposited} for this order, at your gas")
    return table


def order_lines(outcome: OrderOutcome, tokens: Tokens) -> Iterator[str]:
    """What became of it, for people."""
    record, settled = outcome.record, outcome.settled
    if record is not None:
        yield f"order {outcome.verdict.value}: {record.id} {record.status.value}"
    elif outcome.tx_hash:
        yield f"{outcome.step} {outcome.verdict.value}: {to_hex(outcome.tx_hash)}"
    else:
        yield f"order {outcome.verdict.value}{_unsent(outcome)}"
    if outcome.order_hash:
        yield f"hash         {to_hex(outcome.order_hash)}"
    if outcome.reason:
        yield f"reason       {outcome.reason}"
    if settled is not None and (settled.spent or settled.received):
        yield f"spent        {_amount(settled.spent, tokens.src)}"
        yield f"received     {_amount(settled.received, tokens.dest)}"
    elif settled is None and record is not None and executed_of(record):
        token = tokens.dest if record.side is Side.SELL else tokens.src
        yield f"executed     {_amount(executed_of(record), token)}, as the venue says"
    if record is not None:
        for transaction in record.transactions:
            yield f"transaction  {transaction.origin_tx}"
    for remark in settled.remarks if settled is not None else ():
        yield f"note         {remark}"


def order_json(outcome: OrderOutcome, offer: OrderOffer | None = None) -> dict[str, Any]:
    """What became of it, for programs; amounts are raw units."""
    record, settled = outcome.record, outcome.settled
    told: dict[str, Any] = {
        "outcome": outcome.verdict.value,
        "status": record.status.value if record else None,
        "id": record.id if record else None,
        "orderHash": to_hex(outcome.order_hash) if outcome.order_hash else None,
        "executed": str(executed_of(record)) if record else None,
        "isProven": settled is not None and not settled.fault,
        "spent": str(settled.spent) if settled else None,
        "received": str(settled.received) if settled else None,
        "transactions": [each.origin_tx for each in record.transactions] if record else [],
        "step": outcome.step,
        "txHash": to_hex(outcome.tx_hash) if outcome.tx_hash else None,
        "reason": outcome.reason or None,
    }
    if offer is not None:
        terms = offer.terms
        told |= {
            "chainId": terms.wish.chain_id,
            "side": terms.wish.side.value,
            "type": terms.wish.type.value,
            "srcToken": terms.wish.src.text,
            "destToken": terms.wish.dest.text,
            "quotedSrc": str(terms.src_quoted),
            "quotedDest": str(terms.dest_quoted),
            "limit": str(terms.limit),
            "spender": to_checksum(terms.delta),
        }
    elif record is not None:
        told |= {
            "chainId": record.input.chain_id,
            "side": record.side.value,
            "type": record.type.value,
            "srcToken": record.input.token,
            "destToken": record.output.token,
        }
    return told


def _unsent(outcome: OrderOutcome) -> str:
    return ", nothing was signed" if outcome.verdict is Verdict.REHEARSED else ""


def _amount(amount: int, token: TradedToken | None) -> str:
    return f"{amount} raw units" if token is None else amount_text(amount, token)
