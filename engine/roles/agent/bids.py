"""Builds auction bids from makers' signed quotes: steps of the executor, and the promised amount. Pure.

The steps follow the route hop by hop; the last hop of a path sends its proceeds directly to the Delta
contract. A hop may sell the executor's whole balance of a token, earlier leftovers included. A bid therefore
lists the source token and the tokens between hops as leftovers: the contract sweeps the executor's balances
of these tokens to the order's owner before and after the steps.

Source: contracts/Delta.sol, `Execution`; contracts/RfqExecutor.sol, `fill`.
Choice: An agent's margin worsens only the promise: the user keeps what the trade brings beyond the promise.
"""

from msgspec import Struct

from ....codecs.contracts.calldata import OrderInfo
from ....codecs.contracts.delta_calldata import DELTA, rfq_step
from ....codecs.messages.agent_messages import BidPart, BidStep, SolverBid
from ....codecs.messages.vocabulary import OnChainOrderType, Side
from ....crypto.addresses import to_checksum
from ....crypto.hexadecimal import to_hex
from ...trade.routing.firm.firm_route import FilledHop, FirmRoute
from .orders import OpenOrder


class Filling(Struct, frozen=True):
    """Addresses of the contracts that fill firm quotes: the RFQ contract and the executor, 20 bytes each."""

    rfq: bytes
    executor: bytes


def bid_of_route(order: OpenOrder, route: FirmRoute, at: Filling, margin_bps: int) -> SolverBid | None:
    """Build a bid that fills an order by makers' signed quotes; None if the trade breaks the order's limit.

    Args:
        order: the order, or the part of it to fill.
        route: quotes that makers signed for the order's owner.
        at: addresses of the contracts that the bid calls.
        margin_bps: the agent's margin, basis points: reduces the promised proceeds of a sale, raises the
            promised cost of a purchase.
    """
    promised = order.promised(route.src_amount, route.dest_amount, margin_bps)
    if promised is None:
        return None
    part = BidPart(
        order.order_hash,
        str(promised),
        tuple([_step(order, hop, at, _rest(order, route, hop)) for hop in route.hops]),
        given=str(route.src_amount) if order.side is Side.BUY else "0",
        leftovers=_texts((order.src_token, *_between(order, route))),
        amount=str(order.fixed_amount) if order.part_min else "",
    )
    return SolverBid((part,))


def crossed_part(order: OpenOrder, paid: int, at: Filling, rest: FirmRoute | None = None) -> BidPart | None:
    """Build a sale's part of a bid that settles the sale with an opposite sale.

    The result is None if the proceeds, less fees, are below the minimum that the sale's owner signed.

    Args:
        order: the sale.
        paid: raw units of the destination token that the sale gets from the opposite sale and from makers,
            before fees.
        at: addresses of the contracts that the bid calls.
        rest: signed route by which makers buy the source tokens that the opposite sale does not take; None
            if makers buy nothing.
    """
    # Without a margin: the contract pays exactly `paid`, so that the promise cannot be missed.
    promised = order.promised(order.src_amount, paid, 0)
    if promised is None:
        return None
    if rest is None:
        return BidPart(order.order_hash, str(promised), paid=str(paid))
    # A hop without a fixed amount sells what this sale trades, not the executor's whole balance: the steps of
    # all orders of the crossing use the same executor.
    steps = [
        _step(order, hop, at, rest.src_amount if hop.src_token == order.src_token else 0) for hop in rest.hops
    ]
    return BidPart(
        order.order_hash,
        str(promised),
        tuple(steps),
        paid=str(paid),
        leftovers=_texts((order.src_token, *_between(order, rest))),
        traded=str(rest.src_amount),
    )


def _step(order: OpenOrder, hop: FilledHop, at: Filling, all_there_is: int = 0) -> BidStep:
    """Convert a hop of a signed route to a step, i.e. a contract call of the executor.

    Args:
        order: the order that the route fills.
        at: addresses of the RFQ contract, which is called, and of the executor.
        all_there_is: raw units of the source token that a hop without a fixed amount sells; 0 for the
            executor's whole balance.
    """
    infos = [OrderInfo(fill.order, fill.signature, fill.order.taker_amount) for fill in hop.fills]
    taker_amount = hop.taker_amount
    if not taker_amount and not hop.maker_amount:
        taker_amount = all_there_is
    receiver = DELTA if hop.dest_token == order.dest_token else at.executor
    step = rfq_step(at.rfq, infos, taker_amount, hop.maker_amount, receiver)
    return BidStep(to_hex(step.target), to_hex(step.data), step.gas)


def _rest(order: OpenOrder, route: FirmRoute, hop: FilledHop) -> int:
    """Return the raw units that a hop without a fixed amount sells; 0 for the executor's whole balance.

    A vault may give more tokens than the agent asks for, and the makers' quotes do not take the surplus: a
    hop that sells the executor's whole balance would fail. The hop therefore sells a fixed amount, and the
    surplus goes to the owner as a leftover.
    """
    is_of_vault = order.order_type is OnChainOrderType.PRODUCTIVE_ORDER
    if not is_of_vault or hop.src_token != order.src_token:
        return 0
    fixed = sum(other.taker_amount for other in route.hops if other.src_token == order.src_token)
    return route.src_amount - fixed


def _between(order: OpenOrder, route: FirmRoute) -> tuple[bytes, ...]:
    """List the intermediate tokens of a route, without the order's source and destination, each once."""
    ends = (order.src_token, order.dest_token)
    tokens = [token for hop in route.hops for token in (hop.src_token, hop.dest_token)]
    return tuple(dict.fromkeys(token for token in tokens if token not in ends))


def _texts(tokens: tuple[bytes, ...]) -> tuple[str, ...]:
    return tuple([to_checksum(token) for token in tokens])
