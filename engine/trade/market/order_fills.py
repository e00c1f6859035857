"""Computes how the RFQ contract will fill signed orders, from their open parts and makers' funds. Pure.

    order_calls        build the chain reads for some orders, all at one block
    open_orders        answers -> Looked: fillable orders, refusals of the others, makers' funds
    as_signed          orders -> Looked, without a read of the chain
    filled             Looked -> amounts in and out, with the orders tried in the RFQ contract's order

    sale        each order takes the amount left, at most takerTokenFillAmount and the order's open part, and
                gives floor(takerFill * makerAmount / takerAmount)
    purchase    each order gives the amount still missing, at most its open part and
                floor(takerTokenFillAmount * makerAmount / takerAmount), and takes
                ceil(makerFill * takerAmount / makerAmount)

An order that would fail is skipped, as in the contract, and later orders replace it; together the orders
must fill the whole amount, or the request is refused.

Guarantees: the amounts of `filled` equal, to the unit, those of a fill at the block of the reads.

Source: contracts/Rfq.sol, tryBatchFillOrderTakerAmount and tryBatchFillOrderMakerAmount;
    contracts/lib/Permits.sol; interop.md 1.
Choice: A filled, cancelled or expired order is left out if the others suffice. A signature that is not the
    maker's refuses the whole request if nothing of its order was filled; for later fills the contract checks
    no signature.
Choice: An order whose maker lacks funds now is tried on the chain nonetheless.
Choice: A maker's permit is passed on where it grants more than the present allowance.
Choice: A swap of signed orders without a deadline expires with the first of its orders. If no order expires,
    the swap does not expire.
Choice: With `ignoreChecks` all orders count as open and funded without a question to the chain.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from ....codecs.contracts.calldata import OrderInfo, allowance, balance_of, remaining
from ....codecs.contracts.router_calldata import Hop
from ....codecs.messages.vocabulary import Side
from ....codecs.rounding import mul_div_down
from ....config.errors import (
    InsufficientAllowance,
    InsufficientBalance,
    InvalidInput,
    InvalidSignature,
    OrderClosed,
    OrderExpired,
    RequestError,
    ServiceUnavailable,
)
from ....config.limits import UINT256_MAX, VENUE_SIGNATURE_GAS_MAX, VENUE_SWAP_ORDERS_MAX
from ....crypto.addresses import to_checksum
from ....crypto.eip1271 import is_magic_answer, is_valid_signature_calldata
from ...chain.port import EthCall
from ..routing.firm.legs import Exchanged, bought_of, sold_to
from ..served.token_permits import PERMIT_TRIALS, granted, permit_calls
from .signed_orders import OrderSwap, SignedOrder
from .ticket import Basis

AnswerKey = tuple[str, bytes]
"""Key of the answer to a chain read: (name of the read, hash of the order or address of the maker)."""
FillAnswers = Mapping[AnswerKey, bytes | Exception]

_NEVER_SEEN, _CLOSED = 0, 1
_WORD_BYTES = 32
_BOUNDLESS = UINT256_MAX * VENUE_SWAP_ORDERS_MAX


class FillRefusal(Struct, frozen=True):
    """Reason why a signed order is not filled: class of the error for the client, and a detail text."""

    kind: type[RequestError]
    text: str


class FillableOrder(Struct, frozen=True):
    """A signed order that is not yet filled completely.

    Attributes:
        maker_left: unfilled part, raw units of the maker's asset.
        permitted: allowance that the maker's permit grants, raw units; None if the swap does not use the
            permit.
    """

    signed: SignedOrder
    maker_left: int
    permitted: int | None = None

    @property
    def taker_left(self) -> int:
        """Unfilled part in raw units of the taker's asset, as the RFQ contract computes it."""
        order = self.signed.order
        if self.maker_left == order.maker_amount:
            return order.taker_amount
        return mul_div_down(self.maker_left, order.taker_amount, order.maker_amount)

    @property
    def info(self) -> OrderInfo:
        """The order, with signature and permit, as the RFQ contract's `OrderInfo` struct."""
        signed = self.signed
        permit = b"" if self.permitted is None else signed.permit
        return OrderInfo(signed.order, signed.signature.kept, signed.taker_most, permit_maker_asset=permit)

    def fill(self, side: Side, left: int) -> Exchanged:
        """Compute the amounts by which a swap fills the order; zeros if the fill would fail.

        Args:
            side: SELL if the swap's source amount is fixed, BUY if its destination amount is.
            left: raw units of the fixed amount that earlier orders of the swap do not fill.
        """
        order, most = self.signed.order, self.signed.taker_most
        if side is Side.SELL:
            return sold_to(order, min(most, left, self.taker_left))
        part = mul_div_down(most, order.maker_amount, order.taker_amount)
        return bought_of(order, min(part, left, self.maker_left))


class FillFunds(Struct, frozen=True):
    """A maker's balance of the maker asset, and the RFQ contract's allowance for this asset; raw units."""

    balance: int
    allowance: int


class Looked(Struct, frozen=True):
    """State of a swap's signed orders on the chain.

    Attributes:
        orders: orders with an unfilled part, in the sequence in which the RFQ contract tries them.
        faults: reasons why the swap's other orders cannot be filled.
        funds: maker -> balance and allowance.
    """

    orders: tuple[FillableOrder, ...]
    faults: tuple[FillRefusal, ...]
    funds: Mapping[bytes, FillFunds]


class Filled(Struct, frozen=True):
    """Computed fill of a swap by its signed orders.

    Attributes:
        basis: amounts and fee of the swap.
        hop: the orders as the Router's `Hop` struct.
        expiry_s: earliest expiry of the orders, Unix seconds; 2^256 - 1 if no order expires.
    """

    basis: Basis
    hop: Hop
    expiry_s: int


def order_calls(rfq: bytes, orders: Sequence[SignedOrder]) -> dict[AnswerKey, EthCall]:
    """Build the contract calls that read the state of signed orders on the chain.

    The calls read unfilled parts, makers' balances and allowances, makers' permits, and the validity of
    signatures by contracts.
    """
    calls: dict[AnswerKey, EthCall] = {}
    for signed in orders:
        order, digest32 = signed.order, signed.digest32
        calls["remaining", digest32] = EthCall(rfq, remaining(order.maker, digest32))
        calls["balance", order.maker] = EthCall(order.maker_asset, balance_of(order.maker))
        calls["allowance", order.maker] = EthCall(order.maker_asset, allowance(order.maker, rfq))
        if not signed.signature.is_by_key:
            data = is_valid_signature_calldata(digest32, signed.signature.kept)
            calls["signature", digest32] = EthCall(order.maker, data, rfq, gas_max=VENUE_SIGNATURE_GAS_MAX)
        if signed.permit:
            tried = permit_calls(signed.permit, order.maker_asset, rfq)
            calls |= {(name, digest32): call for name, call in tried.items()}
    return calls


def open_orders(orders: Sequence[SignedOrder], answers: FillAnswers, now_s: int) -> Looked:
    """Divide signed orders into fillable and refused ones, according to the chain's answers.

    Args:
        answers: answers to `order_calls`, at the block whose timestamp is `now_s`.

    Raises:
        InvalidSignature: an order that was never filled has a signature that is not by the order's maker.
        ServiceUnavailable: a contract does not answer.
    """
    found: list[FillableOrder] = []
    faults: list[FillRefusal] = []
    for signed in orders:
        order = signed.order
        kept = _number(answers, "remaining", signed.digest32)
        if kept == _NEVER_SEEN:
            _check_signature(signed, answers)
        if kept == _CLOSED:
            faults.append(FillRefusal(OrderClosed, f"{signed.field} is filled or cancelled"))
        elif order.expiry and order.expiry < now_s:  # valid in the second of its expiry, as in the contract
            text = f"{signed.field}.expiry: expected 0, or {now_s} at least, got {order.expiry}"
            faults.append(FillRefusal(OrderExpired, text))
        else:
            maker_left = order.maker_amount if kept == _NEVER_SEEN else kept - 1
            found.append(FillableOrder(signed, maker_left, _permitted(signed, answers)))
    makers = {fillable.signed.order.maker for fillable in found}
    funds = {
        maker: FillFunds(_number(answers, "balance", maker), _number(answers, "allowance", maker))
        for maker in makers
    }
    return Looked(tuple(found), tuple(faults), funds)


def as_signed(orders: Sequence[SignedOrder]) -> Looked:
    """Take all orders as unfilled and their makers' funds as unlimited, without a read of the chain."""
    found = [
        FillableOrder(signed, signed.order.maker_amount, _BOUNDLESS if signed.permit else None)
        for signed in orders
    ]
    funds = dict.fromkeys((signed.order.maker for signed in orders), FillFunds(_BOUNDLESS, _BOUNDLESS))
    return Looked(tuple(found), (), funds)


def filled(swap: OrderSwap, looked: Looked) -> Filled:
    """Compute a swap's fill by its signed orders, tried one after another as the RFQ contract does.

    Raises:
        RequestError: the fillable orders together are too small. The error is that of the first refused
            order, or InvalidInput if no order was refused.
    """
    left, taken, given = swap.amount, 0, 0
    there, unfilled = dict(looked.funds), list(looked.faults)
    shown: set[bytes] = set()  # makers whose permit is used; their other permits have the same nonce
    for fillable in looked.orders:
        done = fillable.fill(swap.side, left)
        if not done.dest:  # the contract refuses such a fill, or needs no further order
            continue
        maker = fillable.signed.order.maker
        funds, permitted = there[maker], None if maker in shown else fillable.permitted
        if permitted is not None:
            funds = FillFunds(funds.balance, permitted)
        if done.dest > min(funds.balance, funds.allowance):
            unfilled.append(_unfunded(fillable, done.dest, funds))
            continue
        there[maker] = FillFunds(funds.balance - done.dest, funds.allowance - done.dest)
        if permitted is not None:
            shown.add(maker)
        taken, given = taken + done.src, given + done.dest
        left -= done.src if swap.side is Side.SELL else done.dest
    if left:
        raise _too_little(swap, swap.amount - left, unfilled)
    basis = Basis(
        side=swap.side,
        src=swap.src,
        dest=swap.dest,
        src_amount=taken,
        dest_amount=given,
        brought=given,
        fee=swap.fee,
    )
    hop = Hop(
        maker_amount=0 if swap.side is Side.SELL else swap.amount,
        # All of them, also those without funds now: the contract tries each, and funds may be there by then.
        orders=tuple(fillable.info for fillable in looked.orders),
    )
    expiries = [fillable.signed.order.expiry for fillable in looked.orders if fillable.signed.order.expiry]
    return Filled(basis, hop, min(expiries, default=UINT256_MAX))


def _too_little(swap: OrderSwap, done: int, unfilled: Sequence[FillRefusal]) -> RequestError:
    verb, fixed = ("take", "srcAmount") if swap.side is Side.SELL else ("give", "destAmount")
    if not unfilled:
        expected = f"orders that {verb} {fixed}, {swap.amount}, together"
        return InvalidInput(field="orders", expected=expected, got=done)
    reasons = "; ".join(fault.text for fault in unfilled)
    return unfilled[0].kind(f"{reasons}; what is left of all {verb}s {done} of {fixed}, {swap.amount}")


def _unfunded(fillable: FillableOrder, needed: int, funds: FillFunds) -> FillRefusal:
    field, maker = fillable.signed.field, to_checksum(fillable.signed.order.maker)
    if funds.balance < needed:
        text = f"{field}: its maker {maker} has {funds.balance} of makerAsset, {needed} would be needed"
        return FillRefusal(InsufficientBalance, text)
    text = (
        f"{field}: its maker {maker} lets the RFQ contract take {funds.allowance}, {needed} would be needed"
    )
    return FillRefusal(InsufficientAllowance, text)


def _check_signature(signed: SignedOrder, answers: FillAnswers) -> None:
    if signed.signature.is_by_key:
        return
    answer = answers["signature", signed.digest32]
    if isinstance(answer, Exception) or not is_magic_answer(answer):
        raise InvalidSignature(
            f"{signed.signature.fault}, and no contract at the address accepts it",
            field=f"{signed.field}.signature",
        )


def _permitted(signed: SignedOrder, answers: FillAnswers) -> int | None:
    if not signed.permit:
        return None
    amount = granted(signed.permit, {name: answers[name, signed.digest32] for name in PERMIT_TRIALS}).amount
    allowed = _number(answers, "allowance", signed.order.maker)
    return amount if amount is not None and amount > allowed else None


def _number(answers: FillAnswers, name: str, whose: bytes) -> int:
    answer = answers[name, whose]
    if isinstance(answer, Exception) or len(answer) < _WORD_BYTES:
        raise ServiceUnavailable(f"the chain does not tell the {name} of an order or its maker")
    return int.from_bytes(answer[:_WORD_BYTES], "big")
