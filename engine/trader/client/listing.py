"""Listings and changes of any kind of order: pages with each order once, amounts and events as text."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from msgspec import UNSET

from ....codecs.amounts import format_units, parse_amount
from ....codecs.messages.auction_messages import ExplainedReason
from ....codecs.messages.event_messages import OrderEventMessage
from ....codecs.messages.resource_messages import TokenEntry
from ....config.error_text import one_line
from ....config.errors import InvalidInput
from ....config.limits import UINT256_MAX

Listed = TypeVar("Listed")

TokenOf = Callable[[int, str], TokenEntry | None]
"""Function of (chain id, token address) that returns the venue's entry of the token; None if the venue does
not list it."""


async def pages_once(
    ask: Callable[[int], Awaitable[tuple[Sequence[Listed], bool]]],
    name_of: Callable[[Listed], str],
    count_max: int = UINT256_MAX,
) -> AsyncIterator[list[Listed]]:
    """Yield the orders of a venue's listing, page by page, each order once.

    Args:
        ask: asks for the next page, given the number of orders that are still wanted; returns its orders, and
            whether the venue has more.
        name_of: returns an order's id or hash, by which a repeated order is noticed.
        count_max: maximum number of orders.
    """
    seen: set[str] = set()
    left, has_more = count_max, True
    while has_more and left > 0:
        found, has_more = await ask(left)
        fresh = [each for each in found if name_of(each) not in seen][:left]
        seen.update(map(name_of, fresh))
        left -= len(fresh)
        if fresh:
            yield fresh
        has_more = has_more and bool(fresh)  # a page without new orders would repeat for ever


def listed_amount(text: str, token: TokenEntry | None, address: str = "") -> str:
    """Text of an amount in whole tokens, by the decimals that the venue lists; in raw units if the venue does
    not list the token.

    Args:
        address: the token's address; empty to leave it out.
    """
    of = f" of {address}" if address else ""
    try:
        raw = parse_amount(text)
    except InvalidInput:
        return one_line(f"{text}{of}")
    if token is None:
        return one_line(f"{raw} units{of}")
    return one_line(f"{format_units(raw, token.decimals)} {token.symbol}")


def reason_text(reason: ExplainedReason, chain_id: int, tokens: Mapping[tuple[int, str], TokenEntry]) -> str:
    """A reason why an order is not filled as a line of text, with amounts in whole tokens.

    Args:
        chain_id: the order's chain.
        tokens: (chain id, lower-case address) -> the venue's entry of the token; the amount of a token
            without an entry stays in raw units.
    """
    text, done = reason.text, 0
    for entry in () if reason.amounts is UNSET else reason.amounts:
        where = chain_id if entry.chain_id is UNSET else entry.chain_id
        token = tokens.get((where, entry.token.lower()))
        found = re.compile(rf"(?<!\d){re.escape(entry.amount)}(?!\d)").search(text, done)
        if token is not None and found is not None:
            shown = listed_amount(entry.amount, token)
            text = text[: found.start()] + shown + text[found.end() :]
            done = found.start() + len(shown)
    return one_line(f"{reason.code}: {text}")


def event_line(means: Mapping[str, str], message: OrderEventMessage) -> str:
    """A pushed change of an order as a line of text: time, order, new status.

    For an OTC order the line also shows the unfilled amount.

    Args:
        means: status -> its meaning.
    """
    name = message.order_hash if message.id is UNSET else message.id
    meaning = f": {means[message.status]}" if message.status in means else ""
    left = "" if message.fillable_balance is UNSET else f", {message.fillable_balance} raw units left"
    by = "" if message.transaction_hash is UNSET else f", {message.transaction_hash}"
    return one_line(f"{message.at}  order {name} is {message.status}{meaning}{left}{by}")
