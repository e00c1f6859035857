"""Gas that the venue's relayer pays on the destination of an order across chains. Pure.

    Across               the bridge's relayer pays for its fill                   0
    CCTP                 the venue hands in the attested message                  BRIDGE_RECEIVE_GAS_USED
    a swap follows       the venue swaps what arrives, or has it paid out         ARRIVAL_SWAP_GAS_USED
    a wrap follows       the venue has what arrives wrapped and paid out          ARRIVAL_WRAP_GAS_USED

Source: docs/explanation/security.md, "Costs and stakes".
Choice: The gas of handing in a message counts as gas of the order, at the destination's present price: a
    quote takes it off, and a bid has to cover it.
Choice: Gas without a price at the moment counts as none.
"""

from ....codecs.bridges.arrivals import ArrivalTerms
from ....codecs.bridges.bridge_terms import BridgeKind
from ....config.errors import ServiceUnavailable
from ....config.limits import ARRIVAL_SWAP_GAS_USED, ARRIVAL_WRAP_GAS_USED, BRIDGE_RECEIVE_GAS_USED
from .served_chain import ServedChain

_NATIVE_WEI = 10**18


def gas_after(arrival: ArrivalTerms | None) -> int:
    """Return the units of gas that the venue uses on the destination after a bridge has delivered there.

    Args:
        arrival: the order's terms for what arrives; None if the bridge pays the beneficiary itself.
    """
    if arrival is None:
        return 0
    return ARRIVAL_WRAP_GAS_USED if arrival.is_wrap else ARRIVAL_SWAP_GAS_USED


def delivery_wei(kind: BridgeKind, origin: ServedChain, there: ServedChain, after: int = 0) -> int:
    """Convert the gas of an order's delivery to an equal worth in the origin's native token, wei.

    Args:
        kind: protocol of the order's bridge.
        there: the destination.
        after: units of gas that the venue uses there once the bridge has delivered (`gas_after`).
    """
    units = BRIDGE_RECEIVE_GAS_USED if kind is BridgeKind.CCTP else 0
    units += after
    if not units:
        return 0
    try:
        wei = units * there.gas.gas_price_wei
    except ServiceUnavailable:
        return 0
    cost_usd = there.usd.value(there.tokens.wrapped_native, wei)
    native_usd = origin.usd.value(origin.tokens.wrapped_native, _NATIVE_WEI)
    return 0 if cost_usd is None or not native_usd else int(cost_usd / native_usd * _NATIVE_WEI)
