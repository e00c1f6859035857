"""Orders whose bridge delivers to an Arrival, an account whose tokens are swapped for the output. Pure.

    beneficiary   the Arrival's address at the destination's Arrivals contract
    metadata      the terms of the swap, from which that address follows

Source: contracts/Arrivals.sol; codecs.bridges.arrivals.
"""

from functools import cache

from .....codecs.bridges.arrivals import ArrivalTerms, arrival_address, parse_arrival
from .....codecs.eip712_orders.delta import AnyDeltaOrder, DeltaOrder
from .....config.errors import InvalidInput
from ....chain.artifacts import artifact
from .transfers import bridge_of


@cache
def arrival_code() -> bytes:
    """Return the creation code of the Arrival contract."""
    return artifact("Arrival").init_code()


def arrival_of(order: AnyDeltaOrder, arrivals: bytes) -> ArrivalTerms | None:
    """Read the terms of an order's swap on its destination; None for an order without such a swap.

    Args:
        arrivals: the destination's Arrivals contract, 20 bytes; empty without one.
    """
    if not arrivals or not isinstance(order, DeltaOrder) or not bridge_of(order).destination_chain_id:
        return None
    try:
        terms = parse_arrival(order.metadata)
    except InvalidInput:
        return None
    is_its = order.beneficiary == arrival_address(arrivals, terms, arrival_code())
    return terms if is_its and terms.token == bridge_of(order).output_token else None
