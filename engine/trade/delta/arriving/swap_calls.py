"""Encodes calls of the Arrivals contract that fill a swap from makers' signed quotes. Pure.

Hops that give the wanted token deliver to Arrivals. All other hops deliver to the executor, from which the
next hop sells.

Source: contracts/Arrivals.sol; contracts/RfqExecutor.sol.
"""

from .....codecs.bridges.arrivals import ArrivalTerms, swap_arrival
from .....codecs.contracts.calldata import OrderInfo
from .....codecs.contracts.delta_calldata import rfq_step
from ...routing.firm.firm_route import FilledHop, FirmRoute
from ...served.served_chain import ServedChain


def swap_call(terms: ArrivalTerms, route: FirmRoute, served: ServedChain) -> bytes:
    """Encode the call of the Arrivals contract that fills a swap by a signed route.

    Unspent units of the source token and of intermediate tokens go to the beneficiary.
    """
    dest = served.tokens.by_address[terms.dest_token].routed
    fills = [_fill(hop, dest, served) for hop in route.hops]
    between = [token for hop in route.hops for token in (hop.src_token, hop.dest_token) if token != dest]
    return swap_arrival(terms, fills, tuple(dict.fromkeys(between)))


def _fill(hop: FilledHop, dest: bytes, served: ServedChain) -> bytes:
    infos = [OrderInfo(fill.order, fill.signature, fill.order.taker_amount) for fill in hop.fills]
    receiver = served.arrivals if hop.dest_token == dest else served.executor
    return rfq_step(served.rfq, infos, hop.taker_amount, hop.maker_amount, receiver).data
