"""Checks the swap on the destination that follows the bridge of a submitted order. Pure.

Source: contracts/Arrivals.sol; choices.md#quotes-and-routes.
Choice: An order whose beneficiary is the account of the terms in its `metadata` has a swap on its
    destination, of listed tokens, which may be made until a day after the deadline at most; or a wrap of the
    native tokens that the bridge pays.
"""

from .....codecs.bridges.arrivals import ArrivalTerms
from .....codecs.messages.vocabulary import Side
from .....codecs.trading_token import check_account
from .....config import limits
from .....config.errors import InvalidInput
from .....crypto.addresses import to_checksum
from ...served.bridge_lanes import BridgeLanes
from ...served.served_chain import ServedChain
from ..orders.arriving import arrival_of
from ..orders.terms import SettledOrder, side_of
from ..orders.transfers import bridge_of


def swap_after(order: SettledOrder, lanes: BridgeLanes) -> bytes:
    """Return the contract that swaps or wraps what an order's bridge delivers; empty if nothing follows.

    Raises:
        InvalidInput: the order with a swap is a purchase, the destination does not list both tokens of the
            swap, a wrap is not needed or would have to wait, the beneficiary is no account, or the swap's
            time ends before the order's deadline or over ARRIVAL_UNTIL_MAX_S seconds after it.
    """
    there = lanes.swaps_at(bridge_of(order).destination_chain_id)
    terms = None if there is None else arrival_of(order, there.arrivals)
    if there is None or terms is None:
        return b""
    if terms.is_wrap:
        _check_wrap(terms, there, is_unwrapped=lanes.unwraps(bridge_of(order)))
        return there.arrivals
    tokens = there.tokens.by_address
    token, dest = tokens.get(terms.token), tokens.get(terms.dest_token)
    if token is None or dest is None or token.routed == dest.routed:
        raise InvalidInput(
            field="order.metadata",
            expected=f"a swap between two tokens of GET /tokens on chain {there.chain_id}",
            got=to_checksum(terms.token if token is None else terms.dest_token),
        )
    latest = order.deadline + limits.ARRIVAL_UNTIL_MAX_S
    if not order.deadline <= terms.until <= latest:
        raise InvalidInput(
            field="order.metadata", expected=f"a swap until {order.deadline} to {latest}", got=terms.until
        )
    check_account(terms.beneficiary, "order.metadata")
    if side_of(order) is not Side.SELL:
        raise InvalidInput(field="order.kind", expected="0 (SELL) with a swap after the bridge", got=1)
    return there.arrivals


def _check_wrap(terms: ArrivalTerms, there: ServedChain, *, is_unwrapped: bool) -> None:
    """Refuse a wrap of what arrives as it is wanted anyway, and one that would have to wait."""
    if not is_unwrapped:
        raise InvalidInput(
            field="order.metadata",
            expected=f"another token than the bridge delivers on chain {there.chain_id}",
            got=to_checksum(terms.dest_token),
        )
    if terms.until:
        raise InvalidInput(field="order.metadata", expected="a wrap at once, until 0", got=terms.until)
    check_account(terms.beneficiary, "order.metadata")
