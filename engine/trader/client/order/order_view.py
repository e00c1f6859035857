"""Texts about a Delta order for the trader: the offer before it is signed, and the outcome. Pure."""

from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec

from .....codecs.bridges.bridge_terms import AcrossTerms, CctpTerms
from .....codecs.messages.delta_messages import OrderRecord
from .....codecs.messages.vocabulary import OrderStatus, OrderType, Side
from .....config.error_text import one_line
from .....config.errors import VenueError
from .....crypto.addresses import to_checksum
from .....crypto.hexadecimal import parse_hex, to_hex
from ..allowing import Allowing
from ..limit_price import percent_away
from ..order_terms import SignableTerms
from ..outcome import OrderOutcome, TradeVerdict, followed_verdict, new_table, order_lines_of
from ..schedule import duration_text
from ..terms import TradedToken, amount_text, impact_percent, price_text
from .bridge_safety import public_contract
from .order_following import (
    TERMINAL,
    OfferTokens,
    SettledOnChain,
    deliveries,
    executed_of,
    is_crosschain,
    told_amount,
)
from .order_placing import OrderOffer

if TYPE_CHECKING:
    from rich.table import Table


class DeltaOutcome(OrderOutcome, frozen=True, kw_only=True):
    """The outcome of a Delta order that a command placed or followed.

    Attributes:
        record: the venue's latest record.
        settled: the on-chain result; None if the chain was not asked.
    """

    record: OrderRecord | None = None
    settled: SettledOnChain | None = None


def outcome_of(record: OrderRecord, settled: SettledOnChain | None) -> DeltaOutcome:
    """The outcome of an order, by the venue's record and the chain.

    Args:
        settled: the on-chain result; None if the chain was not asked.
    """
    end = None
    if record.status in TERMINAL:
        end = TradeVerdict.SETTLED if record.status is OrderStatus.COMPLETED else TradeVerdict.ENDED
    order_hash = parse_hex(record.order_hash, "orderHash")
    verdict, reason = followed_verdict("" if settled is None else settled.fault, end)
    return DeltaOutcome(verdict=verdict, order_hash=order_hash, record=record, settled=settled, reason=reason)


def order_table(offer: OrderOffer, allowing: Allowing) -> "Table":
    """Build a table of a Delta order's terms, to which the trader agrees before signing."""
    terms = offer.terms
    wish, src = terms.wish, terms.wish.src
    table = new_table()
    for name, line in _price_rows(terms):
        table.add_row(name, line)
    route = offer.quoted.block.route
    impact = impact_percent(route.origin.input.amount_usd, route.destination.output.amount_usd)
    table.add_row("impact", "not known" if impact is None else f"{impact} %")
    for name, line in (*_vault_rows(terms), *_bridge_rows(terms)):
        table.add_row(name, line)
    table.add_row("partner fee", f"{Decimal(terms.fee_bps) / 100} % ({one_line(terms.partner)}), included")
    gas = route.fees.gas
    table.add_row("gas", f"none of yours; {one_line(gas.amount_usd)} USD of the price")
    basis = f"{wish.slippage_bps} bps" if wish.limit_amount is None else "the limit"
    table.add_row(*terms.row(f"{'' if wish.schedule is None else ' in all'}  ({basis})"))
    if wish.is_partial:
        table.add_row("parts", "it may be settled in parts, none at a worse price")
    if wish.beneficiary != wish.owner:
        table.add_row("receiver", to_checksum(wish.beneficiary))
    table.add_row("valid for", duration_text(wish.life_s))
    table.add_row("spender", f"{to_checksum(terms.delta)} (Delta)")
    if offer.missing:
        table.add_row("first", f"{allowing.value} of {terms.held_token.symbol} to the spender")
    if wish.vault is None and offer.held.balance < terms.src_amount_max:
        has = amount_text(offer.held.balance, src)
        table.add_row("note", f"you have {has}: a slice that is not there when it is due suspends the order")
    if offer.must_deposit:
        deposited = amount_text(terms.src_amount_max, src)
        table.add_row("first", f"deposit {deposited} for this order, at your gas")
    return table


def _price_rows(terms: SignableTerms) -> Iterator[tuple[str, str]]:
    """Yield the rows, as (name, text), that show an order's amounts, schedule and prices."""
    wish, src, dest = terms.wish, terms.wish.src, terms.wish.dest
    fixed = wish.fixed
    schedule = wish.schedule
    if schedule is not None:
        total, last = wish.amount, schedule.last_of(wish.amount)
        verb = "sell in all" if fixed is src else "buy in all"
        yield verb, f"{amount_text(total, fixed)}  {fixed.text}"
        remainder = "" if last == wish.priced_amount else f", the last {amount_text(last, fixed)}"
        yield "slices", f"{schedule.slices} of {amount_text(wish.priced_amount, fixed)}{remainder}"
        yield (
            "schedule",
            (
                f"one every {duration_text(schedule.interval_s)}: the first at once, "
                f"the last in {duration_text(schedule.span_s)} at the earliest"
            ),
        )
    now = "" if schedule is None else ", a slice now"
    yield f"sell{now}", f"{amount_text(terms.src_quoted, src)}  {src.text}"
    yield f"buy{now}", f"{amount_text(terms.dest_quoted, dest)}  {dest.text}"
    yield "price now", price_text(src, dest, terms.src_quoted, terms.dest_quoted)
    if wish.type is OrderType.LIMIT or schedule is not None:
        ends = terms.src_amount_max, terms.dest_amount_min
        away = percent_away(terms.src_quoted, terms.dest_quoted, *ends)
        name = "limit price" if schedule is None else "worst price"
        yield name, f"{price_text(src, dest, *ends)}  ({away:+} % from now)"


def _vault_rows(terms: SignableTerms) -> Iterator[tuple[str, str]]:
    """Yield the rows, as (name, text), about the vault from which an order sells."""
    vault = terms.wish.vault
    if vault is None:
        return
    yield "from", f"{amount_text(terms.shares, vault)} of the vault {vault.symbol}  {vault.text}"
    yield "at most", f"{amount_text(terms.shares_max, vault)}, sold for all that they are worth by then"


def _bridge_rows(terms: SignableTerms) -> Iterator[tuple[str, str]]:
    """Yield the rows, as (name, text), about the bridge of an order across chains."""
    bridge, bridging = terms.bridge, terms.wish.bridging
    if bridge is None or bridging is None:
        return
    usual = duration_text(-(-bridge.estimated_ms // 1_000))
    domain = f", CCTP domain {bridge.terms.domain}" if isinstance(bridge.terms, CctpTerms) else ""
    yield "bridge", f"{one_line(bridge.name)} to chain {bridging.chain_id}{domain}, about {usual}"
    yield "by contract", to_checksum(bridge.contract)
    if not public_contract(terms.wish.chain_id, bridge.terms):
        yield "note", "that contract has no public address here: check it"
    yield "bridge fee", f"{amount_text(bridge.fee, bridge.token)}, included"
    yield "bridged", f"{bridge.token.symbol}  {bridge.token.text}"
    if bridging.via is None:
        yield "note", "the venue chose the bridged token: --via binds it"
    if isinstance(bridge.terms, AcrossTerms):
        within = duration_text(bridge.terms.fill_within_s)
        yield "if it fails", f"you get the bridged {bridge.token.symbol} back: no fill within {within}"
    if not bridging.is_read:
        dest = terms.wish.dest
        yield "unproven", f"that {dest.symbol} has {dest.decimals} decimals: --to-rpc reads its contract"


def order_lines(outcome: DeltaOutcome, tokens: OfferTokens) -> Iterator[str]:
    """Lines of text for people about the outcome of a Delta order."""
    record, settled = outcome.record, outcome.settled
    known = f"{record.id} {record.status.value}" if record else ""
    yield from order_lines_of(outcome, known, has_ended=record is not None and record.status in TERMINAL)
    if settled is not None and (settled.spent or settled.received):
        yield f"spent        {_amount(settled.spent, tokens.src)}"
        yield from _bridge_lines(settled, tokens)
        if settled.received or not settled.bridged:
            yield f"received     {_amount(settled.received, tokens.dest)}"
    elif settled is None and record is not None and (executed := _executed(record)):
        token = tokens.dest if record.side is Side.SELL else tokens.src
        yield f"executed     {_amount(executed, token)}, as the venue says"
    if record is not None:
        for transaction in record.transactions:
            yield f"transaction  {transaction.origin_tx}"
        if is_crosschain(record):
            for text, _ in deliveries(record):
                yield f"delivery     {text} on chain {record.output.chain_id}"
        for refund in record.refunds:
            said = "" if settled is not None and settled.refunded else ", as the venue says"
            returned = told_amount(refund.amount, tokens.bridged)
            yield f"refund       {refund.tx} on chain {refund.chain_id}: {returned}{said}"
    for remark in settled.remarks if settled is not None else ():
        yield f"note         {remark}"


def _bridge_lines(settled: SettledOnChain, tokens: OfferTokens) -> Iterator[str]:
    """Lines of text about the transfers of an order across chains."""
    if settled.bridged:
        yield f"bridged      {_amount(settled.bridged, tokens.bridged)}"
    if settled.unproven:
        yield f"arrived      {_amount(settled.unproven, tokens.dest)}, as the venue says: --to-rpc proves it"
    if settled.refunded:
        yield f"refunded     {_amount(settled.refunded, tokens.bridged)}"


def order_json(outcome: DeltaOutcome, offer: OrderOffer | None = None) -> dict[str, Any]:
    """The outcome of a Delta order as the JSON object that `--json` prints; amounts are raw units."""
    record, settled = outcome.record, outcome.settled
    executed = None if record is None else _executed(record)
    fields: dict[str, Any] = {
        "outcome": outcome.verdict.value,
        "status": record.status.value if record else None,
        "id": record.id if record else None,
        "orderHash": to_hex(outcome.order_hash) if outcome.order_hash else None,
        "executed": None if executed is None else str(executed),
        "isProven": settled is not None and not settled.fault and not settled.unproven,
        "spent": str(settled.spent) if settled else None,
        "received": str(settled.received) if settled else None,
        "transactions": [each.origin_tx for each in record.transactions] if record else [],
        "step": outcome.step,
        "txHash": to_hex(outcome.tx_hash) if outcome.tx_hash else None,
        "reason": outcome.reason or None,
    }
    if offer is not None:
        terms = offer.terms
        fields |= {
            "chainId": terms.wish.chain_id,
            "side": terms.wish.side.value,
            "type": terms.wish.type.value,
            "srcToken": terms.wish.src.text,
            "destChainId": terms.wish.dest_chain_id,
            "destToken": terms.wish.dest.text,
            "quotedSrc": str(terms.src_quoted),
            "quotedDest": str(terms.dest_quoted),
            "limit": str(terms.limit),
            "spender": to_checksum(terms.delta),
            "isPartial": terms.wish.is_partial,
        }
        if terms.bridge is not None:
            fields |= {
                "bridge": terms.bridge.name,
                "bridgeToken": terms.bridge.token.text,
                "bridgeFee": str(terms.bridge.fee),
            }
        if terms.wish.schedule is not None:
            fields |= {
                "slices": terms.wish.schedule.slices,
                "intervalS": terms.wish.schedule.interval_s,
                "sliceLimit": str(terms.slice_limit),
            }
    elif record is not None:
        fields |= {
            "chainId": record.input.chain_id,
            "side": record.side.value,
            "type": record.type.value,
            "srcToken": record.input.token,
            "destChainId": record.output.chain_id,
            "destToken": record.output.token,
        }
    if record is not None and is_crosschain(record):
        fields |= {
            "bridged": str(settled.bridged) if settled else None,
            "refunded": str(settled.refunded) if settled else None,
            "deliveries": [text for text, _ in deliveries(record)],
            "refunds": [msgspec.to_builtins(refund) for refund in record.refunds],
        }
    return fields


def _executed(record: OrderRecord) -> int | None:
    """Raw units that an order received (SELL) or spent (BUY), according to the venue's record.

    None if the record's amount is invalid.
    """
    try:
        return executed_of(record)
    except VenueError:
        return None


def _amount(amount: int, token: TradedToken | None) -> str:
    return f"{amount} raw units" if token is None else amount_text(amount, token)
