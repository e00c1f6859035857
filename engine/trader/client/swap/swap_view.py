"""Texts about a Market swap for the trader: the offer before it is signed, and the outcome. Pure.

Texts from the venue are printed as one printable line, since control characters could overwrite the shown
offer.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from .....codecs.amounts import format_units
from .....codecs.messages.market_messages import PriceRoute, Swap
from .....config.error_text import one_line
from .....crypto.addresses import to_checksum
from .....crypto.hexadecimal import to_hex
from ..allowing import Allowing
from ..outcome import SentOutcome, gas_lines, new_table, sent_line
from ..terms import amount_text, impact_percent, price_text, quoted_of
from .swapping import Offer

if TYPE_CHECKING:
    from rich.table import Table


def offer_table(offer: Offer, symbols: Mapping[str, str], allowing: Allowing) -> "Table":
    """Build a table of a Market swap's terms, to which the trader agrees before signing.

    Args:
        symbols: lower-case address -> symbol, for the tokens of the route.
    """
    wish, route = offer.wish, offer.route
    table = new_table()
    table.add_row("sell", f"{amount_text(int(route.src_amount), wish.src)}  {wish.src.text}")
    table.add_row("buy", f"{amount_text(int(route.dest_amount), wish.dest)}  {wish.dest.text}")
    table.add_row("price", price_text(wish.src, wish.dest, int(route.src_amount), int(route.dest_amount)))
    for name, line in _route_lines(route, symbols):
        table.add_row(name, line)
    impact = impact_percent(route.src_usd, route.dest_usd)
    reached = ", more than the venue's ceiling" if route.max_impact_reached else ""
    table.add_row("impact", "not known" + reached if impact is None else f"{impact} %{reached}")
    table.add_row("partner fee", f"{route.partner_fee} % ({one_line(route.partner)})")
    table.add_row("gas", f"about {one_line(route.gas_cost)} units, {one_line(route.gas_cost_usd)} USD")
    table.add_row(*offer.row(f"  ({wish.slippage_bps} bps)"))
    if wish.receiver != wish.user:
        table.add_row("receiver", to_checksum(wish.receiver))
    table.add_row("router", to_checksum(offer.router))
    if offer.missing:
        table.add_row("first", f"{allowing.value} of {wish.src.symbol} to the router")
    return table


def outcome_lines(outcome: SentOutcome, offer: Offer) -> Iterator[str]:
    """Lines of text for people about the outcome of a Market swap."""
    wish = offer.wish
    yield sent_line(outcome)
    if outcome.reason:
        yield f"reason       {outcome.reason}"
    if outcome.spent or outcome.received:
        yield f"spent        {amount_text(outcome.spent, wish.src)}"
        yield f"received     {amount_text(outcome.received, wish.dest)}"
        yield f"against      {_against(outcome, offer)}"
    yield from gas_lines(outcome)


def outcome_json(outcome: SentOutcome, offer: Offer) -> dict[str, Any]:
    """The outcome of a Market swap as the JSON object that `--json` prints; amounts are raw units."""
    wish = offer.wish
    return {
        "status": outcome.verdict.value,
        "step": outcome.step,
        "txHash": to_hex(outcome.tx_hash) if outcome.tx_hash else None,
        "blockNumber": outcome.block_number or None,
        "chainId": wish.chain_id,
        "side": wish.side.value,
        "srcToken": wish.src.text,
        "destToken": wish.dest.text,
        "spent": str(outcome.spent),
        "received": str(outcome.received),
        "quotedSrc": offer.route.src_amount,
        "quotedDest": offer.route.dest_amount,
        "limit": str(offer.limit),
        "router": to_checksum(offer.router),
        "gas": outcome.gas,
        "gasPriceWei": str(outcome.gas_price_wei),
        "reason": outcome.reason or None,
    }


def _against(outcome: SentOutcome, offer: Offer) -> str:
    """Text that compares a swap's result with the quote, in tokens and basis points."""
    wish = offer.wish
    quoted = quoted_of(offer.route, wish.side)
    gained = outcome.received - quoted if wish.is_sale else quoted - outcome.spent
    sign = "-" if gained < 0 else "+"
    bps = abs(gained) * 10_000 // quoted
    change = f"{sign}{format_units(abs(gained), wish.bounded.decimals)}"
    return f"{amount_text(quoted, wish.bounded)} quoted: {change} ({sign}{bps} bps)"


def _route_lines(route: PriceRoute, symbols: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for at, part in enumerate(route.best_route):
        hops = "; ".join(_hop(swap, symbols) for swap in part.swaps)
        yield ("" if at else "route"), one_line(f"{part.percent} %: {hops}")


def _hop(swap: Swap, symbols: Mapping[str, str]) -> str:
    makers = ", ".join(f"{each.exchange} {each.percent} %" for each in swap.swap_exchanges)
    return f"{_named(swap.src_token, symbols)} -> {_named(swap.dest_token, symbols)} by {makers}"


def _named(address: str, symbols: Mapping[str, str]) -> str:
    return symbols.get(address.lower(), address)
