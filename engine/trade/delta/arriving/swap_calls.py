"""Encodes calls of the Arrivals contract that fill a swap from makers' signed quotes. Pure.

Hops that give the wanted token deliver to Arrivals. All other hops deliver to the executor, from which the
next hop sells.

Anybody can send units of the bridge's token to the account of an arrival until the call is mined. The call
therefore says how much each hop sells of this token, and the rest goes to the beneficiary: "all there is"
would be more than makers have signed for, and the call would fail.

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
    source = served.tokens.by_address[terms.token].routed
    fills = [
        _fill(hop, dest, served, route.src_amount if hop.src_token == source else 0) for hop in route.hops
    ]
    between = [token for hop in route.hops for token in (hop.src_token, hop.dest_token) if token != dest]
    return swap_arrival(terms, fills, tuple(dict.fromkeys(between)))


def _fill(hop: FilledHop, dest: bytes, served: ServedChain, whole: int) -> bytes:
    """Encode a fill of the executor.

    Args:
        whole: raw units that the hop sells if `hop` names no amount; 0 leaves the amount to the contract.
    """
    infos = [OrderInfo(fill.order, fill.signature, fill.order.taker_amount) for fill in hop.fills]
    receiver = served.arrivals if hop.dest_token == dest else served.executor
    return rfq_step(served.rfq, infos, hop.taker_amount or whole, hop.maker_amount, receiver).data
