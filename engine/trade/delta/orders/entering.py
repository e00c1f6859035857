"""Amounts that have to enter a bridge for the amounts that an owner signed, in units of the origin. Pure.

The destination amounts of an order across chains are raw units of `outputToken`. A settlement works in raw
units of `destToken`, the bridge's token on the origin, and so do prices, auctions and bids: each amount is
turned into the least that has to enter the bridge. The contract does the same, after its pro rata division.

    least output of a part of a sale (pro rata, rounded up), or amount that a part of a purchase buys
        -> `entering` -> least amount that has to enter the bridge: `dest_amount` of the part (`DeltaPart`)

Source: contracts/Bridges.sol, `inputsOf`; codecs.bridges.bridge_terms.
"""

from functools import lru_cache

from .....codecs.bridges.bridge_terms import BridgeFee, input_of, parse_terms
from .....codecs.eip712_orders.delta import AnyDeltaOrder, DeltaBridge
from .transfers import bridge_of

_BRIDGES_KEPT = 4_096


def is_crosschain(order: AnyDeltaOrder) -> bool:
    """Whether a bridge carries the tokens that an order buys to another chain."""
    return bridge_of(order).destination_chain_id != 0


def entering(order: AnyDeltaOrder, output: int) -> int:
    """Compute the least amount that a settlement has to pay out for `output` to reach the beneficiary.

    Args:
        output: raw units of the token that the beneficiary gets.

    Returns:
        Raw units of `destToken`; `output` itself for an order on one chain.

    Raises:
        InvalidInput: the terms of the bridge are malformed; never for an accepted order.
    """
    bridge = bridge_of(order)
    if not bridge.destination_chain_id:
        return output
    return input_of(_fee_of(bridge), bridge.scaling_factor, output)


@lru_cache(maxsize=_BRIDGES_KEPT)
def _fee_of(bridge: DeltaBridge) -> BridgeFee:
    return parse_terms(bridge).fee
