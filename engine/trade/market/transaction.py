"""Builds the Router's transaction from an opened route or from signed orders, with checks on the chain.

    a route         ticket -> the user's funds -> the user's consent, if it is sent
                    -> a place among the unfilled swaps -> firm quotes
    signed orders   their unfilled parts -> ticket -> the user's funds
    then for both   calldata -> simulation -> envelope

Source: spec 1.14, 1.9; ARCHITECTURE.md, "Pure core, thin drivers"; choices.md#market-swaps,
    choices.md#chain-and-contracts, choices.md#signatures-and-permits.
Choice: The user's funds are checked before makers sign, since a quote reserves a maker's stock. With
    `ignoreChecks`, and of GET /swap, a caller without an API key whose user lacks the funds or the approval
    may reserve what a caller may who has shown nothing.
Choice: Unless `ignoreGasEstimate` is set, the estimate of gas is also the simulation; the answered limit is a
    fifth above the estimate.
Choice: A permit counts as far as the token, or Permit2, accepts it from the Router.
Choice: gasPrice with eip1559=true is maxFeePerGas.
Choice: A maker that has blacklisted userAddress or txOrigin is not asked: the others fill its part within the
    user's bound.
"""

from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, TypeVar

import msgspec
import trio
from msgspec import Struct

from ....codecs.amounts import parse_positive_amount
from ....codecs.contracts.calldata import remaining
from ....codecs.contracts.router_calldata import RouterSwap, swap_exact_in, swap_exact_out
from ....codecs.messages.market_messages import (
    ContractParams,
    TransactionBody,
    TransactionEnvelope,
    TransactionQuery,
)
from ....codecs.messages.vocabulary import Side
from ....codecs.rounding import mul_div_up
from ....config.errors import (
    ChainError,
    InsufficientAllowance,
    InsufficientBalance,
    NoRoute,
    RateLimited,
    Reverted,
    ServiceUnavailable,
    SimulationFailed,
)
from ....config.limits import BPS_ONE
from ....config.timeouts import SIMULATION_S
from ....crypto.addresses import to_checksum
from ....crypto.hexadecimal import to_hex
from ...chain.port import Chain, EthCall
from ...host.admission.budgets import Stake
from ...host.admission.signatures import SignatureBudget
from ..quote.ask import FeeRules
from ..quote.price_route import OpenedRoute
from ..routing.firm.firm_parts import HeldQuote
from ..routing.firm.firm_route import FirmRoute
from ..routing.firm.stock import Claimant
from ..routing.search.plan import RoutePlan, SwapRequest
from ..served.asking import latest_block
from .consent import check_consent
from .funds import ShownFunds, SwapFunds
from .order_fills import Looked, as_signed, filled, open_orders, order_calls
from .signed_orders import SignedOrder, read_order_swap
from .ticket import SwapTicket, hops_of, params_of, read_ticket, swap_of, ticket_of
from .unfilled import Asker, ShownUser, UnfilledSwap, UnfilledSwaps

if TYPE_CHECKING:
    from ..served.served_chain import ServedChain

T = TypeVar("T")

_LEFT_PART = 10  # a quote counts as filled once at most its amount divided by this is left
_GAS_MARGIN_BPS = 2_000  # added to an estimate: state moves between the estimate and the block
_CALLDATA = {Side.SELL: swap_exact_in, Side.BUY: swap_exact_out}


class Leave(Struct, frozen=True):
    """Data for the checks that a swap must pass before makers are asked to sign quotes for the swap.

    Attributes:
        asker: caller of the request.
        unfilled: counter of the chain's unfilled swaps, with limits for callers and users.
        funds: check that users have the balance and allowance for their swaps.
        signatures: number of wrong signatures that the caller may still send.
    """

    asker: Asker
    unfilled: UnfilledSwaps
    funds: SwapFunds
    signatures: SignatureBudget


class _Shown(Struct, frozen=True):
    """Stakes that a caller without an API key has shown for its swap's user, the strongest first."""

    stakes: tuple[Stake, ...]
    funds: ShownFunds


_NOTHING_SHOWN = _Shown((Stake.NOTHING,), ShownFunds(Stake.NOTHING, 0))
"""For a caller whose user has too little, or has not approved: of the swap it has shown nothing at all."""


async def transaction(
    served: "ServedChain",
    opened: OpenedRoute,
    body: TransactionBody,
    query: TransactionQuery,
    fees: FeeRules,
    now_ms: int,
    leave: Leave,
) -> TransactionEnvelope | ContractParams:
    """Build the Router's transaction for a verified route, with firm quotes of the makers.

    Args:
        opened: the verified route.
        leave: the caller, and the checks to pass before makers are asked to sign.

    Raises:
        InvalidInput, InvalidToken, TokenNotSupported, OrderExpired, MissingSlippage, PartnerNotAllowed,
            NoRoute: see `read_ticket`.
        InsufficientBalance, InsufficientAllowance, SimulationFailed: a check fails and is not ignored.
        RateLimited: too many signed swaps of the caller, or the user, are unfilled, or they reserve the
            caller's whole share of the makers' stock; or too many signatures of the caller were wrong.
        InvalidSignature: the user has not signed the consent.
        NoRoute: the makers sign no quotes within the swap's bounds; see `FirmDesk.fill`.
        ServiceUnavailable: the chain does not answer, or the price of gas is unknown.
    """
    ticket = read_ticket(served, opened, body, fees, now_ms)
    # Before makers sign: a request that is refused afterwards would hold back their stock for nothing.
    gas_price = _gas_price(served, query)
    plan, wanted = _plan_of(served, opened, ticket, now_ms)
    shown = None
    if not (query.ignore_checks and leave.asker.has_key):
        try:
            funds = await _answered(leave.funds.check(ticket))
        except (InsufficientBalance, InsufficientAllowance):
            if not query.ignore_checks:
                raise
            shown = _NOTHING_SHOWN
        else:
            if not leave.asker.has_key:
                shown = _Shown(await _shown_stakes(served, leave, ticket, body, funds, now_ms), funds)
    look = _FilledLook(served, leave, ticket.user, now_ms // 1_000)
    try:
        firm = await _signed(served, leave, ticket, plan, wanted, shown, now_ms, look)
    except (RateLimited, InsufficientBalance):
        if not await look.found():
            raise
        # All is judged anew: other swaps may have begun or ended during the read, and a filled swap shows its
        # user's consent.
        firm = await _signed(served, leave, ticket, plan, wanted, shown, now_ms, look)
    return await _built(served, ticket, swap_of(ticket, hops_of(firm), firm.expiry_s), query, gas_price)


async def order_transaction(
    served: "ServedChain",
    body: TransactionBody,
    query: TransactionQuery,
    fees: FeeRules,
    now_ms: int,
    funds: SwapFunds,
    signatures: SignatureBudget,
) -> TransactionEnvelope | ContractParams:
    """Build the Router's transaction that fills the signed orders of a request.

    Args:
        funds: check that users can pay for their swaps.
        signatures: number of wrong signatures that the caller may still send.

    Raises:
        RateLimited: too many signatures of the caller were wrong.
        UnsupportedChain, InvalidInput, InvalidSignature, InvalidToken, TokenNotSupported, OrderExpired,
            PartnerNotAllowed, NoRoute: the request is invalid; see `read_order_swap`.
        OrderClosed, OrderExpired, InsufficientBalance, InsufficientAllowance: the fillable orders do not
            suffice; the error is that of the first refused order.
        InsufficientBalance, InsufficientAllowance, SimulationFailed: a check fails and is not ignored.
        ServiceUnavailable: the chain does not answer, or the price of gas is unknown.
    """
    # Takes units for all orders before the first signature is checked.
    signatures.begin(len(body.orders or ()))
    swap = read_order_swap(served, body, fees, now_ms)
    gas_price = _gas_price(served, query)
    if query.ignore_checks:
        looked = as_signed(swap.orders)
    else:
        # After this call each error of the client costs the units of the signatures that contracts confirm.
        signatures.proven(sum(signed.signature.is_by_key for signed in swap.orders))
        looked = await _answered(_looked_at(served.chain, served.rfq, swap.orders))
    fills = filled(swap, looked)
    ticket = ticket_of(body, swap.parties, fills.basis)
    if not query.ignore_checks:
        await _answered(funds.check(ticket))
    return await _built(served, ticket, swap_of(ticket, (fills.hop,), fills.expiry_s), query, gas_price)


async def _built(
    served: "ServedChain",
    ticket: SwapTicket,
    swap: RouterSwap,
    query: TransactionQuery,
    gas_price: dict[str, str],
) -> TransactionEnvelope | ContractParams:
    """Make the response: a swap's transaction, or the parameters of the Router's call (`onlyParams`).

    Unless the request sets `ignoreChecks`, a simulation of the transaction must succeed first.
    """
    data = _CALLDATA[ticket.side](swap)
    gas = None
    if not query.ignore_checks:
        call = EthCall(served.router, data, ticket.user, ticket.value_wei)
        gas = await _answered(_tried(served, call, wants_gas=not query.ignore_gas_estimate))
    if query.only_params:
        return params_of(ticket.side, swap, served.router)
    return TransactionEnvelope(
        from_address=to_checksum(ticket.user),
        to=to_checksum(served.router),
        value=str(ticket.value_wei),
        data=to_hex(data),
        chain_id=served.chain_id,
        **gas_price,
        **({} if gas is None else {"gas": str(gas)}),
    )


def _plan_of(
    served: "ServedChain", opened: OpenedRoute, ticket: SwapTicket, now_ms: int
) -> tuple[RoutePlan, SwapRequest]:
    """Return the quoted plan, or a new plan if a maker of the quoted plan does not serve this user."""
    barred = served.barred(ticket.user, ticket.tx_origin, now_ms=now_ms)
    if not barred:
        return opened.plan, opened.wanted
    wanted = msgspec.structs.replace(opened.wanted, without=opened.wanted.without | barred)
    if not barred & opened.plan.makers():
        return opened.plan, wanted
    plan = served.pathfinder.find(wanted)
    if plan is None:
        raise NoRoute("the makers of the route are left out, or do not serve this user")
    return plan, wanted


async def _looked_at(chain: Chain, rfq: bytes, orders: Sequence[SignedOrder]) -> Looked:
    """Read unfilled parts, signatures and makers' funds of signed orders at the latest block."""
    header = await latest_block(chain)
    calls = order_calls(rfq, orders)
    answers = await chain.call_many([*calls.values()], header.hash)
    return open_orders(orders, dict(zip(calls, answers, strict=True)), header.time_s)


def _gas_price(served: "ServedChain", query: TransactionQuery) -> dict[str, str]:
    """Make the gas price members of the transaction envelope, in wei."""
    given = None if query.gas_price is None else parse_positive_amount(query.gas_price, "gasPrice")
    if not query.eip1559:
        return {"gas_price": str(served.gas.gas_price_wei if given is None else given)}
    fees = served.gas.fees
    most = 2 * fees.base_fee_wei + fees.tip_wei if given is None else given
    return {"max_fee_per_gas": str(most), "max_priority_fee_per_gas": str(min(fees.tip_wei, most))}


async def _shown_stakes(
    served: "ServedChain",
    leave: Leave,
    ticket: SwapTicket,
    body: TransactionBody,
    funds: ShownFunds,
    now_ms: int,
) -> tuple[Stake, ...]:
    """Find what a caller without an API key has shown for its swap's user, the strongest first.

    Raises:
        InvalidInput, InvalidSignature, RateLimited: the request's consent is wrong; see `check_consent`.
        ServiceUnavailable: the chain does not answer.
    """
    stakes = {Stake.NOTHING, funds.stake}
    if body.consent is not None:
        with leave.signatures:
            await _answered(check_consent(served, body.consent, ticket, leave.signatures, now_ms // 1_000))
        stakes.add(Stake.CONSENT)
    return tuple(stake for stake in reversed(Stake) if stake in stakes)


async def _signed(
    served: "ServedChain",
    leave: Leave,
    ticket: SwapTicket,
    plan: RoutePlan,
    wanted: SwapRequest,
    shown: _Shown | None,
    now_ms: int,
    look: "_FilledLook",
) -> FirmRoute:
    """Have makers sign a plan of a swap, within the places and the shares of its caller and user.

    Args:
        shown: what a caller without an API key has shown; None for a caller with a key.
        look: gives back the shares of filled swaps before a maker is left out for want of one.
    """
    unfilled, user, now_s = leave.unfilled, ticket.user, now_ms // 1_000
    # No await between `_begun` and `try`: a swap that has begun and is never ended keeps its places for good.
    swap, claimant = _begun(leave, ticket, shown, now_s)
    try:
        return await served.desk.fill(
            plan,
            wanted,
            user=user,
            limit=ticket.limit,
            held=swap.quotes,
            claimant=claimant,
            freed=look.found,
            account=leave.asker.name if leave.asker.has_key else "",
        )
    finally:
        unfilled.end(swap)


def _begun(
    leave: Leave, ticket: SwapTicket, shown: _Shown | None, now_s: int
) -> tuple[UnfilledSwap, Claimant | None]:
    """Take the places of a new swap, and say whose share of makers' stock its quotes take.

    Args:
        shown: what a caller without an API key has shown; None for a caller with a key.

    Raises:
        RateLimited, InsufficientBalance: a place is missing; see `UnfilledSwaps.begin`.
    """
    asker, user, tokens = leave.asker, ticket.user, (ticket.src_token, ticket.dest_token)
    if shown is None:
        return leave.unfilled.begin(asker, user, tokens, None, now_s), None
    stakes = shown.stakes
    can_pay = shown.funds.balance >= ticket.src_amount
    if can_pay and Stake.CONSENT not in stakes and leave.unfilled.has_settled(asker, user, now_s):
        stakes = (Stake.CONSENT, *stakes)
    user_shown = None
    if Stake.CONSENT in stakes:
        user_shown = ShownUser(user, ticket.src_token, ticket.src_amount, shown.funds.balance)
    return leave.unfilled.begin(asker, user, tokens, user_shown, now_s), Claimant(asker.name, user, stakes)


class _FilledLook:
    """Look at the unfilled swaps of a request's caller and user: which of them the chain has filled.

    These give back their places, their funds and their shares of makers' stock. A request reads the chain
    once, whatever it lacks: a caller that is refused costs the node no second read.
    """

    def __init__(self, served: "ServedChain", leave: Leave, user: bytes, now_s: int) -> None:
        self._served, self._leave, self._user, self._now_s = served, leave, user, now_s
        self._lock = trio.Lock()  # parts of a swap lack their shares at once
        self._found: bool | None = None

    async def found(self) -> bool:
        """Whether a swap is filled. Raises ServiceUnavailable if the chain does not answer."""
        async with self._lock:
            if self._found is None:
                read = _free_filled(self._served, self._leave, self._user, self._now_s)
                self._found = await _answered(read)
        return self._found


async def _free_filled(served: "ServedChain", leave: Leave, user: bytes, now_s: int) -> bool:
    """Read from the chain which unfilled swaps of a caller and a user are filled, and give back their shares.

    Returns:
        Whether one is filled.

    Raises:
        ChainError: no node answers.
    """
    unfilled = leave.unfilled
    others = (*unfilled.of(leave.asker, user, now_s), *unfilled.past(leave.asker, now_s))
    quotes = [quote for swap in others for quote in swap.quotes if quote.digest32]
    if quotes:
        calls = [EthCall(served.rfq, remaining(quote.maker, quote.digest32)) for quote in quotes]
        answers = await served.chain.call_many(calls)
        filled = {
            quote.digest32 for quote, word in zip(quotes, answers, strict=True) if _is_filled(quote, word)
        }
        return unfilled.free_filled(others, filled, now_s)
    return False


def _is_filled(quote: HeldQuote, answer: bytes | Exception) -> bool:
    """Whether a quote counts as filled, because at most a tenth of its amount is still unfilled.

    A quote can be larger than the swap needs, so that a filled swap may leave such a rest.

    Args:
        answer: result of the RFQ contract's `remaining` for the quote, 32 bytes, or the error of that call.
            The result is 0 for an order that the contract has never seen, 1 for a closed order, else the
            unfilled amount plus 1.
    """
    left = 0 if isinstance(answer, Exception) else int.from_bytes(answer, "big")
    return 0 < left <= quote.amount // _LEFT_PART + 1


async def _tried(served: "ServedChain", call: EthCall, *, wants_gas: bool) -> int | None:
    """Simulate a swap's transaction at the latest block, or estimate its gas.

    Returns:
        The gas limit, a fifth above the estimate; None if `wants_gas` is False.

    Raises:
        SimulationFailed: the transaction would revert now.
    """
    try:
        if wants_gas:
            return mul_div_up(await served.chain.estimate_gas(call), BPS_ONE + _GAS_MARGIN_BPS, BPS_ONE)
        await served.chain.call(call)
    except Reverted as error:
        raise SimulationFailed(error.reason or "it reverts without a reason") from None
    return None


async def _answered(read: Awaitable[T]) -> T:
    """Await a read of the chain. Raises ServiceUnavailable on failure or after SIMULATION_S seconds."""
    try:
        with trio.fail_after(SIMULATION_S):
            return await read
    except trio.TooSlowError:
        raise ServiceUnavailable(f"the chain does not answer within {SIMULATION_S:g} s") from None
    except ChainError as error:
        raise ServiceUnavailable(f"the chain does not answer: {error}") from error
