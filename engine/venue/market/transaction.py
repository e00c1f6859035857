"""From an opened route, or from signed orders, to a transaction: checks on the chain, the envelope.

    route   ticket -> funds of the user -> firm quotes -.
    orders  what is left of them -> ticket -> funds ----'-> calldata -> simulation, with its gas -> envelope

Source: document 1, POST /transactions/{chainId} and Transaction envelope; design, "How data travels" 3;
    choices.md 12, 14 and 31.
Choice: the user's funds are looked at before any maker is asked to sign.
Choice: an estimate of gas is a simulation too: where one is asked for, no other is made. The limit that is
    answered is a fifth more.
Choice: an allowance is not asked for where a permit comes along; the simulation shows what that is worth.
Choice: with gasPrice and eip1559=true the price given is maxFeePerGas.
Choice: a maker that has blacklisted the user or txOrigin is asked for nothing: its part is found again among
    the others, within the user's bound.
"""

from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, TypeVar

import msgspec
import trio

from ....codecs.amounts import parse_positive_amount
from ....codecs.market_messages import (
    ContractParams,
    TransactionBody,
    TransactionEnvelope,
    TransactionQuery,
)
from ....codecs.permit import PermitForm, permit_form
from ....codecs.rounding import mul_div_up
from ....codecs.router_calldata import Swap, swap_exact_in, swap_exact_out
from ....codecs.trading_token import NATIVE_TOKEN
from ....codecs.vocabulary import Side
from ....config.errors import (
    ChainError,
    InsufficientAllowance,
    InsufficientBalance,
    NoRoute,
    Reverted,
    ServiceUnavailable,
    SimulationFailed,
)
from ....config.limits import BPS_ONE
from ....config.timeouts import SIMULATION_S
from ....crypto.addresses import to_checksum
from ....crypto.hexadecimal import to_hex
from ...chain.holdings import Question, holdings
from ...chain.port import Call, Chain
from ...routing.plan import RoutePlan, Wanted
from ..asking import latest_block
from .order_fills import Looked, as_signed, filled, open_orders, order_calls
from .price_route import Opened
from .prices import Fees
from .signed_orders import SignedOrder, read_order_swap
from .ticket import Ticket, hops_of, params_of, read_ticket, swap_of, ticket_of

if TYPE_CHECKING:
    from ..place import Place

T = TypeVar("T")

_GAS_MARGIN_BPS = 2_000  # of an estimate: state moves between it and the block
_CALLDATA = {Side.SELL: swap_exact_in, Side.BUY: swap_exact_out}


async def transaction(
    place: "Place",
    opened: Opened,
    body: TransactionBody,
    query: TransactionQuery,
    fees: Fees,
    now_ms: int,
) -> TransactionEnvelope | ContractParams:
    """Build the transaction of a route.

    Raises:
        InvalidInput, MissingSlippage, PartnerNotAllowed, NoRoute: the request; see `read_ticket`.
        InsufficientBalance, InsufficientAllowance, SimulationFailed: the checks, unless they are ignored.
        ServiceUnavailable: the chain, or the price of gas, cannot be had.
        and what the desk raises where makers do not sign.
    """
    ticket = read_ticket(place, opened, body, fees, now_ms)
    gas_price = _gas_price(place, query)
    plan, wanted = _plan_of(place, opened, ticket, now_ms)
    if not query.ignore_checks:
        await _answered(_check_funds(place, ticket))
    firm = await place.desk.fill(plan, wanted, user=ticket.user, limit=ticket.limit)
    return await _built(place, ticket, swap_of(ticket, hops_of(firm), firm.expiry_s), query, gas_price)


async def order_transaction(
    place: "Place", body: TransactionBody, query: TransactionQuery, fees: Fees, now_ms: int
) -> TransactionEnvelope | ContractParams:
    """Build the transaction that fills the orders of a request.

    Raises:
        UnsupportedChain, InvalidInput, InvalidSignature, MissingSlippage, PartnerNotAllowed, NoRoute: the
            request; see `read_order_swap`.
        OrderClosed, OrderExpired, InsufficientBalance, InsufficientAllowance: the orders, where those
            that are left do not suffice.
        InsufficientBalance, InsufficientAllowance, SimulationFailed: the checks, unless they are ignored.
        ServiceUnavailable: the chain, or the price of gas, cannot be had.
    """
    asked = read_order_swap(place, body, fees, now_ms)
    gas_price = _gas_price(place, query)
    if query.ignore_checks:
        looked = as_signed(asked.orders)
    else:
        looked = await _answered(_looked_at(place.chain, place.rfq, asked.orders))
    fills = filled(asked, looked)
    ticket = ticket_of(body, asked.parties, fills.basis)
    if not query.ignore_checks:
        await _answered(_check_funds(place, ticket))
    return await _built(place, ticket, swap_of(ticket, (fills.hop,), fills.expiry_s), query, gas_price)


async def _built(
    place: "Place", ticket: Ticket, swap: Swap, query: TransactionQuery, gas_price: dict[str, str]
) -> TransactionEnvelope | ContractParams:
    """A swap as it is answered, tried before unless that is ignored."""
    data = _CALLDATA[ticket.side](swap)
    gas = None
    if not query.ignore_checks:
        call = Call(place.router, data, ticket.user, ticket.value_wei)
        gas = await _answered(_tried(place, call, wants_gas=not query.ignore_gas_estimate))
    if query.only_params:
        return params_of(ticket.side, swap, place.router)
    return TransactionEnvelope(
        from_address=to_checksum(ticket.user),
        to=to_checksum(place.router),
        value=str(ticket.value_wei),
        data=to_hex(data),
        chain_id=place.chain_id,
        **gas_price,
        **({} if gas is None else {"gas": str(gas)}),
    )


def _plan_of(place: "Place", opened: Opened, ticket: Ticket, now_ms: int) -> tuple[RoutePlan, Wanted]:
    """The quoted plan, or another where one of its makers does not serve this user."""
    barred = place.barred(ticket.user, ticket.tx_origin, now_ms=now_ms)
    if not barred:
        return opened.plan, opened.wanted
    wanted = msgspec.structs.replace(opened.wanted, without=opened.wanted.without | barred)
    if not barred & opened.plan.makers():
        return opened.plan, wanted
    plan = place.pathfinder.find(wanted)
    if plan is None:
        raise NoRoute("the makers of the route do not serve this user")
    return plan, wanted


async def _looked_at(chain: Chain, rfq: bytes, orders: Sequence[SignedOrder]) -> Looked:
    """Orders at the latest block."""
    header = await latest_block(chain)
    calls = order_calls(rfq, orders)
    answers = await chain.call_many([*calls.values()], header.hash)
    return open_orders(orders, dict(zip(calls, answers, strict=True)), header.time_s)


def _gas_price(place: "Place", query: TransactionQuery) -> dict[str, str]:
    """The members of the envelope that say what a unit of gas costs."""
    given = None if query.gas_price is None else parse_positive_amount(query.gas_price, "gasPrice")
    if not query.eip1559:
        return {"gas_price": str(place.gas.gas_price_wei if given is None else given)}
    fees = place.gas.fees
    most = 2 * fees.base_fee_wei + fees.tip_wei if given is None else given
    return {"max_fee_per_gas": str(most), "max_priority_fee_per_gas": str(min(fees.tip_wei, most))}


async def _check_funds(place: "Place", ticket: Ticket) -> None:
    needed = ticket.src_amount
    if ticket.src_token == NATIVE_TOKEN:
        has = await place.chain.balance(ticket.user)
        allows = needed
    else:
        asked = Question(ticket.src_token, ticket.user, place.router)
        (found,) = (await holdings(place.chain, [asked])).found
        if found is None:
            raise ServiceUnavailable("the source token does not say what the user has")
        has, allows = found.balance, found.allowance
    if has < needed:
        raise InsufficientBalance(field="userAddress", expected=f"at least {needed} of srcToken", got=has)
    if permit_form(ticket.permit) is PermitForm.NONE and allows < needed:
        raise InsufficientAllowance(
            field="userAddress",
            expected=f"at least {needed} of srcToken for the Market router {to_checksum(place.router)}",
            got=allows,
        )


async def _tried(place: "Place", call: Call, *, wants_gas: bool) -> int | None:
    """Pass where the transaction would go through now. Returns the limit of gas, if it is wanted."""
    try:
        if wants_gas:
            return mul_div_up(await place.chain.estimate_gas(call), BPS_ONE + _GAS_MARGIN_BPS, BPS_ONE)
        await place.chain.call(call)
    except Reverted as error:
        raise SimulationFailed(error.reason or "it reverts without a reason") from None
    return None


async def _answered(asked: Awaitable[T]) -> T:
    """What a chain says in time."""
    try:
        with trio.fail_after(SIMULATION_S):
            return await asked
    except trio.TooSlowError:
        raise ServiceUnavailable(f"the chain does not answer within {SIMULATION_S:g} s") from None
    except ChainError as error:
        raise ServiceUnavailable(f"the chain does not answer: {error}") from error
