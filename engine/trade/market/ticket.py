"""Checks a swap request against its route and converts it into the Router's call. Pure.

    read_parties   body -> Parties: user, receiver, permit, deadline
    read_ticket    body and opened route -> SwapTicket: terms, bounds, fee
    ticket_of      body, parties and basis -> SwapTicket, for a route or signed orders (`signed_orders`)
    swap_of        ticket and hops of signed fills -> the Router's Swap
    params_of      the Router's Swap -> values for a contract library

The fee differs from the quoted fee if the request names another partner or fee; the expected amount is then
computed again from the plan.

Source: spec 1.14, 1.27; interop.md 2 (slippage, permits); choices.md#market-swaps,
    choices.md#fees-and-partners, choices.md#signatures-and-permits.
Choice: The fee is the quoted one unless the request names another partner or a partnerFeeBps.
Choice: `side` is optional; one that differs from the route's is refused.
Choice: With both takeSurplus and isSurplusToUser the user keeps the surplus.
Choice: A request may bound the amount that is not fixed (`destAmount` of a sale, `srcAmount` of a purchase).
    The bound must not be better for the user than expected, as nobody could meet it, and replaces `slippage`.
    The fixed amount is the route's.
Choice: A zero receiver counts as absent; a contract of the venue or a token is refused, as it would keep the
    tokens.
Choice: A swap without a deadline expires with the first of its firm quotes. A swap with a Permit2 transfer
    needs a deadline, since the signature of the transfer covers the deadline.
Choice: A token's own permit names the user as owner and the Router as spender; the native token takes no
    permit.
Choice: `onlyParams` answers `{method, params, contract}`.
"""

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from ....codecs.amounts import parse_amount, parse_positive_amount
from ....codecs.contracts.calldata import OrderInfo
from ....codecs.contracts.permit import RFQ_FORMS, PermitForm, parse_permit, permit_form
from ....codecs.contracts.router_calldata import PAYS_DIRECTLY, Hop, RouterSwap
from ....codecs.eip712_orders.partner_and_fee import PartnerAndFee, pack_partner_and_fee
from ....codecs.iso_time import check_unix_seconds
from ....codecs.messages.market_messages import ContractParams, TransactionBody
from ....codecs.messages.vocabulary import Side
from ....codecs.rounding import mul_div_down, mul_div_up
from ....codecs.trading_token import NATIVE_TOKEN, check_account
from ....config.errors import InvalidInput, MissingSlippage, NoRoute, OrderExpired
from ....config.limits import ANON_FEE_BPS, BPS_ONE, PARTNER_FEE_BPS_MAX, UINT256_MAX
from ....config.sections.partners import RegisteredPartner, ResolvedFee, registered_partner, resolve_fee
from ....crypto.addresses import ADDRESS_BYTES, ZERO_ADDRESS, parse_address, to_checksum
from ....crypto.hexadecimal import to_hex
from ...chain.proceeds import least_before_fee, most_before_fee
from ..quote.ask import FeeRules
from ..quote.price_route import METHODS, OpenedRoute, after_fee
from ..routing.firm.firm_route import FirmRoute
from ..routing.search.plan import Taxes
from ..routing.tokens import ListedToken
from ..served.token_permits import check_named

if TYPE_CHECKING:
    from ..served.served_chain import ServedChain

_FEE_DIGITS_MAX = 3
_FIXED = {Side.SELL: "srcAmount", Side.BUY: "destAmount"}
_OTHER = {Side.SELL: "destAmount", Side.BUY: "srcAmount"}


class Parties(Struct, frozen=True, kw_only=True):
    """User, receiver, permit and deadline of a swap.

    Attributes:
        user: account that gives the source token, 20 bytes.
        tx_origin: account that sends the transaction, 20 bytes.
        receiver: 20 bytes; the zero address if the user is the receiver.
        permit: the user's permit, which lets the Router take the source token; empty without a permit.
        deadline: Unix seconds; 0 if the request has none. Without a deadline, the swap expires at the
            earliest expiry of its makers' orders.
    """

    user: bytes
    tx_origin: bytes
    receiver: bytes
    permit: bytes
    deadline: int


class Basis(Struct, frozen=True, kw_only=True):
    """Amounts and fee of a swap, from a quoted route or from signed orders.

    Attributes:
        src_amount, dest_amount: raw units that the user gives and gets before the partner's fee.
        brought: raw units of the destination token that all makers together give, before that token's taxes.
        taxes: fees that the two tokens withhold from transfers.
        fee: rate and recipient of the partner's fee.
    """

    side: Side
    src: ListedToken
    dest: ListedToken
    src_amount: int
    dest_amount: int
    brought: int
    taxes: Taxes = Taxes()
    fee: ResolvedFee


class SwapTicket(Parties, frozen=True, kw_only=True):
    """A checked swap request with its bounds, before makers sign.

    Attributes:
        src_token, dest_token: 20 bytes; the placeholder address for the native token.
        src_amount: amount sold, or the most to spend on a purchase.
        dest_amount: the least to receive from a sale, or the amount bought.
        expected: expected amount of the token that `side` does not fix, with the partner's fee: source tokens
            that a purchase costs, or destination tokens that the Router sends to a sale's receiver (before a
            fee that the token withholds from this transfer).
        limit: for a sale, the least destination tokens that the makers' signed quotes must give together, so
            that `dest_amount` is left after the partner's fee and the token's fees on transfers; for a
            purchase, the most source tokens that the quotes may take together, so that `src_amount` covers
            these fees too.
        partner_and_fee: the Router's `partnerAndFee` word: recipient and rate of the fee, and flags.
    """

    side: Side
    src_token: bytes
    dest_token: bytes
    src_amount: int
    dest_amount: int
    expected: int
    limit: int
    partner_and_fee: int

    @property
    def value_wei(self) -> int:
        """Native coin that the transaction sends, wei; 0 if the source is an ERC-20 token."""
        return self.src_amount if self.src_token == NATIVE_TOKEN else 0


def read_ticket(
    served: "ServedChain", opened: OpenedRoute, body: TransactionBody, fees: FeeRules, now_ms: int
) -> SwapTicket:
    """Check a request for a route's transaction and compute the bounds on the swap's amounts.

    Raises:
        InvalidInput: a field contradicts the route; the error names the field.
        OrderExpired: the request's deadline has passed.
        InvalidToken, TokenNotSupported, NoRoute: a token, or its decimals, are wrong.
        MissingSlippage: the request has neither `slippage` nor a bound on the amount that the side leaves
            open (SELL: `destAmount`, BUY: `srcAmount`).
        PartnerNotAllowed: the partner's tier forbids the fee or the surplus flags.
    """
    route, plan = opened.route, opened.plan
    if body.side is not None and body.side is not plan.side:
        raise InvalidInput(field="side", expected=f"the route's, {plan.side.value}", got=body.side.value)
    src = served.tokens.find(body.src_token, "srcToken", body.src_decimals)
    dest = served.tokens.find(body.dest_token, "destToken", body.dest_decimals)
    for field, token, text in (("srcToken", src, route.src_token), ("destToken", dest, route.dest_token)):
        if token.text != text:  # not by `routed`: native and wrapped token make different transactions
            raise InvalidInput(field=field, expected=f"the route's, {text}", got=token.text)
    parties = read_parties(served, body, src, now_ms)
    fee = fee_of(opened, body, fees)
    amount = fixed_amount(body, plan.side)
    quoted = plan.src_amount if plan.side is Side.SELL else plan.dest_amount
    if amount != quoted:
        raise InvalidInput(field=_FIXED[plan.side], expected=f"the route's, {quoted}", got=str(amount))
    _check_bound(body, plan.side)
    basis = Basis(
        side=plan.side,
        src=src,
        dest=dest,
        src_amount=plan.src_amount,
        dest_amount=plan.dest_amount,
        brought=sum(path.dest_amount for path in plan.paths),
        taxes=opened.wanted.taxes,
        fee=fee,
    )
    return ticket_of(body, parties, basis)


def read_parties(served: "ServedChain", body: TransactionBody, src: ListedToken, now_ms: int) -> Parties:
    """Parse user, receiver, permit and deadline of a request for a swap's transaction.

    Raises:
        InvalidInput: a field is invalid; the error names the field.
        OrderExpired: the deadline has passed.
    """
    user = parse_address(body.user_address, "userAddress")
    check_account(user, "userAddress")
    return Parties(
        user=user,
        tx_origin=user if body.tx_origin is None else parse_address(body.tx_origin, "txOrigin"),
        receiver=_receiver(served, body.receiver),
        permit=_permit(served, body, user, is_native=src.address == NATIVE_TOKEN),
        deadline=_deadline(body.deadline, now_ms),
    )


def ticket_of(body: TransactionBody, parties: Parties, basis: Basis) -> SwapTicket:
    """Combine a request's parties with a swap's amounts and fee, and compute the bounds on the amounts.

    Raises:
        InvalidInput: the request demands more than the expected output of a sale, or allows less than the
            expected cost of a purchase.
        NoRoute: the swap costs more than uint256 holds.
    """
    fee_bps, taxes = basis.fee.fee_bps, basis.taxes
    # `limit` is the user's bound in the makers' amounts, rounded for the user: quotes within `limit` keep the
    # bound on the chain, too.
    quoted_src, quoted_dest = after_fee(basis.side, basis.src_amount, basis.dest_amount, fee_bps)
    if basis.side is Side.SELL:
        src_amount, dest_amount = basis.src_amount, _least(body, quoted_dest)
        limit = _before_sale_taxes(least_before_fee(dest_amount, fee_bps), taxes)
        expected = _expected_of_sale(basis)
    else:
        src_amount, dest_amount = _most(body, quoted_src), basis.dest_amount
        limit = _after_purchase_taxes(most_before_fee(src_amount, fee_bps), taxes)
        expected = quoted_src
    return SwapTicket(
        **msgspec.structs.asdict(parties),
        side=basis.side,
        src_token=basis.src.address,
        dest_token=basis.dest.address,
        src_amount=src_amount,
        dest_amount=dest_amount,
        expected=expected,
        limit=limit,
        partner_and_fee=partner_and_fee(basis.fee, body),
    )


def hops_of(firm: FirmRoute) -> tuple[Hop, ...]:
    """Convert a route's signed firm quotes into the Router's `Hop` structs."""
    return tuple(
        Hop(
            taker_amount=hop.taker_amount,
            maker_amount=hop.maker_amount,
            orders=tuple(
                OrderInfo(fill.order, fill.signature, fill.order.taker_amount) for fill in hop.fills
            ),
        )
        for hop in firm.hops
    )


def swap_of(ticket: SwapTicket, hops: tuple[Hop, ...], expiry_s: int) -> RouterSwap:
    """Make the Router's `Swap` struct from a checked swap request and its hops.

    Args:
        expiry_s: Unix seconds; deadline of the swap if the ticket has none.
    """
    return RouterSwap(
        src_token=ticket.src_token,
        dest_token=ticket.dest_token,
        src_amount=ticket.src_amount,
        dest_amount=ticket.dest_amount,
        expected_amount=ticket.expected,
        receiver=ticket.receiver,
        deadline=ticket.deadline or expiry_s,
        partner_and_fee=ticket.partner_and_fee,
        permit=ticket.permit,
        hops=hops,
    )


def params_of(side: Side, swap: RouterSwap, router: bytes) -> ContractParams:
    """Encode the Router's call as `{method, params, contract}` for a contract library.

    Structs become arrays and numbers become strings (choices.md#market-swaps).
    """
    return ContractParams(METHODS[side], (_value(swap),), to_checksum(router))


# --- Fees ---------------------------------------------------------------------------------------------


def fee_of(opened: OpenedRoute, body: TransactionBody, fees: FeeRules) -> ResolvedFee:
    """Resolve the partner fee of a swap by a quoted route.

    The quoted fee applies, unless the transaction request names another partner or another `partnerFeeBps`.
    """
    name = opened.route.partner if body.partner is None else body.partner
    registered = registered_partner(name, fees.partners)
    quoted: int | None = None
    if registered is registered_partner(opened.route.partner, fees.partners):
        quoted = _requested(opened.fee_bps, registered)
    return fee_asked(name, body, fees, quoted)


def fee_asked(
    name: str | None, body: TransactionBody, fees: FeeRules, quoted_bps: int | None = None
) -> ResolvedFee:
    """Resolve a swap's partner into the rate and recipient of its fee.

    Args:
        name: the partner's name; None for the partner `anon`.
        quoted_bps: fee in basis points that applies if the request has no `partnerFeeBps`.

    Raises:
        InvalidInput: `partnerFeeBps` or `partnerAddress` is invalid.
        PartnerNotAllowed: the partner's tier forbids the fee or the surplus flags.
    """
    requested = quoted_bps if body.partner_fee_bps is None else _fee_bps(body.partner_fee_bps)
    return resolve_fee(
        name,
        requested,
        fees.partners,
        fees.tiers,
        partner_address=_address_of(body),
        takes_surplus=_takes_surplus(body),
        caps_surplus=body.is_cap_surplus,
    )


def partner_and_fee(fee: ResolvedFee, body: TransactionBody) -> int:
    """Pack the fee's recipient and rate, and flags of the request, into the Router's `partnerAndFee` word.

    The flags concern the surplus and a direct transfer of the fee.
    """
    packed = pack_partner_and_fee(
        PartnerAndFee(
            partner=parse_address(fee.address, "partnerAddress") if fee.address else ZERO_ADDRESS,
            fee_bps=fee.fee_bps,
            partner_takes_surplus=_takes_surplus(body),
            cap_surplus=body.is_cap_surplus,
        )
    )
    return packed | (PAYS_DIRECTLY if body.is_direct_fee_transfer else 0)


def _address_of(body: TransactionBody) -> str:
    """Return the body's `partnerAddress`, checksummed; empty if absent or zero."""
    if body.partner_address is None:
        return ""
    address = parse_address(body.partner_address, "partnerAddress")
    return "" if address == ZERO_ADDRESS else to_checksum(address)


def _requested(quoted_bps: int, registered: RegisteredPartner | None) -> int | None:
    """Recover the `partnerFeeBps` of a quote's request from the quoted fee, basis points.

    Returns:
        The quoted fee less a registered partner's own fee, or the whole quoted fee without a registered
        partner. None if the whole quoted fee is the standard fee of a request that names no fee.
    """
    if registered is not None:
        return max(quoted_bps - registered.fee_bps, 0)
    return None if quoted_bps == ANON_FEE_BPS else quoted_bps


def _fee_bps(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _FEE_DIGITS_MAX):
        raise InvalidInput(
            field="partnerFeeBps", expected=f"a string of digits, 0 to {PARTNER_FEE_BPS_MAX}", got=text
        )
    return int(text)


def _takes_surplus(body: TransactionBody) -> bool:
    return body.take_surplus and not body.is_surplus_to_user


# --- Amounts ------------------------------------------------------------------------------------------


def fixed_amount(body: TransactionBody, side: Side) -> int:
    """Return the swap's fixed amount: `srcAmount` of a sale, `destAmount` of a purchase.

    Raises:
        InvalidInput: the amount is missing or invalid.
    """
    field = _FIXED[side]
    text = body.src_amount if side is Side.SELL else body.dest_amount
    if text is None:
        raise InvalidInput("missing", field=field)
    return parse_positive_amount(text, field)


def _check_bound(body: TransactionBody, side: Side) -> None:
    """Refuse a request for a route's transaction that does not bound the amount that `side` does not fix.

    A sale needs a least output and a purchase a highest cost. Swaps of signed orders need no such bound.

    Raises:
        MissingSlippage: the request has neither `slippage` nor that amount.
    """
    other = body.dest_amount if side is Side.SELL else body.src_amount
    if other is None and body.slippage is None:
        raise MissingSlippage(field="slippage", expected=f"basis points, or {_OTHER[side]}")


def _least(body: TransactionBody, quoted: int) -> int:
    """Return the least output of a sale: `destAmount` of the request, or the quoted output less slippage."""
    if body.dest_amount is None:
        return mul_div_down(quoted, BPS_ONE - (body.slippage or 0), BPS_ONE)
    least = parse_amount(body.dest_amount, "destAmount")
    if least > quoted:
        raise InvalidInput(field="destAmount", expected=f"at most the proceeds, {quoted}", got=least)
    return least


def _most(body: TransactionBody, quoted: int) -> int:
    """Return the highest cost of a purchase: `srcAmount` of the request, or the quoted cost plus slippage."""
    if quoted > UINT256_MAX:
        raise NoRoute("with this fee the cost is above 2^256 - 1")
    if body.src_amount is None:
        return min(mul_div_down(quoted, BPS_ONE + (body.slippage or 0), BPS_ONE), UINT256_MAX)
    most = parse_amount(body.src_amount, "srcAmount")
    if most < quoted:
        raise InvalidInput(field="srcAmount", expected=f"at least the cost, {quoted}", got=most)
    return most


def _before_sale_taxes(amount: int, taxes: Taxes) -> int:
    """Compute how much the makers of a sale must give, so that `amount` is left after transfer fees.

    The destination token withholds these fees (`taxes`). The result, in raw units, is rounded up.
    """
    for bps in (taxes.dest, taxes.dest_dex):
        amount = mul_div_up(amount, BPS_ONE, BPS_ONE - bps)
    return amount


def _expected_of_sale(basis: Basis) -> int:
    """Compute the amount that the Router sends to a sale's receiver if each maker's order fills as quoted.

    The partner's fee is deducted.
    """
    arrives = mul_div_down(basis.brought, BPS_ONE - basis.taxes.dest_dex, BPS_ONE)
    return arrives - mul_div_down(arrives, basis.fee.fee_bps, BPS_ONE)


def _after_purchase_taxes(amount: int, taxes: Taxes) -> int:
    """Compute the part of a purchase's cost that reaches the makers after transfer fees.

    The source token withholds these fees (`taxes`). The result is rounded down.

    Args:
        amount: the cost, raw units of the source token.
    """
    for bps in (taxes.src, taxes.src_dex):
        amount = mul_div_down(amount, BPS_ONE - bps, BPS_ONE)
    return amount


# --- The rest -----------------------------------------------------------------------------------------


def _receiver(served: "ServedChain", text: str | None) -> bytes:
    receiver = ZERO_ADDRESS if text is None else parse_address(text, "receiver")
    ours = (
        served.router,
        served.executor,
        served.rfq,
        served.delta,
        served.fee_vault,
        served.tokens.wrapped_native,
    )
    if receiver != ZERO_ADDRESS and (receiver in ours or receiver in served.tokens.by_address):
        raise InvalidInput(
            field="receiver", expected="an account, not a token or a contract of the venue", got=text
        )
    return receiver


def _permit(served: "ServedChain", body: TransactionBody, user: bytes, *, is_native: bool) -> bytes:
    raw = b"" if body.permit is None else parse_permit(body.permit)
    if not raw:
        return raw
    if is_native:
        raise InvalidInput(field="permit", expected="none with the native token", got=body.permit)
    form = permit_form(raw)
    if form in RFQ_FORMS:
        check_named(raw, user, served.router, "owner", "permit")
    if form is PermitForm.PERMIT2_TRANSFER and body.deadline is None:
        raise InvalidInput("a Permit2 transfer is signed with its deadline", field="deadline")
    return raw


def _deadline(deadline: int | None, now_ms: int) -> int:
    if deadline is None:
        return 0
    check_unix_seconds("deadline", deadline)
    if deadline * 1_000 <= now_ms:
        raise OrderExpired(field="deadline", expected=f"a time after {now_ms // 1_000}", got=deadline)
    return deadline


def _value(value: Any) -> Any:
    """Convert an argument of a contract call to JSON.

    Structs become arrays, and numbers become strings of digits. A value of 20 bytes becomes a checksummed
    address, any other bytes become hexadecimal text.
    """
    if isinstance(value, Struct):
        return [_value(member) for member in msgspec.structs.astuple(value)]
    if isinstance(value, tuple):
        return [_value(member) for member in value]
    if isinstance(value, bytes):
        return to_checksum(value) if len(value) == ADDRESS_BYTES else to_hex(value)
    return str(value)
