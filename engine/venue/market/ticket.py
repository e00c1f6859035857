"""A swap that somebody wants built: what was sent, held against the route, as what the Router is told. Pure.

    read_ticket    body and opened route -> Ticket: terms, bounds, fee
    swap_of        ticket and signed fills -> the Router's Swap
    params_of      the same as values for a contract library

The fee may differ from the quoted one where the request names another partner or fee; what is expected is
reckoned again from the plan then.

Source: document 1, POST /transactions/{chainId} and Limits; interop.md 2 (slippage, permits); choices.md 12,
    13 and 31.
Choice: the fee is the quoted one unless the request names another partner or a partnerFeeBps.
Choice: with both takeSurplus and isSurplusToUser the user keeps it.
Choice: the amount that is not fixed must not be better for the user than what is expected: nobody could
    meet it.
Choice: a zero receiver counts as absent; one that is a contract of the venue or a token is refused, since it
    would keep the tokens.
Choice: without a deadline the swap ends with the first of its firm quotes; a Permit2 transfer signs its
    deadline, so there it is required.
Choice: a token's own permit must name the user as its owner and the Router as its spender; with the native
    token no permit is taken.
"""

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from ....codecs.amounts import parse_amount, parse_positive_amount
from ....codecs.calldata import OrderInfo
from ....codecs.eip712_orders.partner_and_fee import PartnerAndFee, pack_partner_and_fee
from ....codecs.market_messages import ContractParams, TransactionBody
from ....codecs.permit import PermitForm, parse_permit, permit_form, permit_spender
from ....codecs.rounding import mul_div_down, mul_div_up
from ....codecs.router_calldata import PAYS_DIRECTLY, Hop, Swap
from ....codecs.trading_token import NATIVE_TOKEN
from ....codecs.vocabulary import Side
from ....config.errors import InvalidInput, MissingSlippage, NoRoute
from ....config.limits import ANON_FEE_BPS, BPS_ONE, PARTNER_FEE_BPS_MAX, UINT256_MAX
from ....config.partners import ANON, Partner, ResolvedFee, resolve_fee
from ....crypto.addresses import ADDRESS_BYTES, ZERO_ADDRESS, parse_address, to_checksum
from ....crypto.hexadecimal import to_hex
from ...chain.proceeds import least_before_fee, most_before_fee
from ...routing.firm_route import FirmRoute
from ...routing.plan import Taxes
from .price_route import METHODS, Opened, after_fee
from .prices import Fees

if TYPE_CHECKING:
    from ..place import Place

_WORD_BYTES = 32
_FEE_DIGITS_MAX = 3


class Ticket(Struct, frozen=True):
    """A swap to be built.

    Attributes:
        src_token, dest_token: 20 bytes; the placeholder's for the native token.
        src_amount: what is sold, or the most that is spent.
        dest_amount: the least that is received, or what is bought.
        expected: of the side that is not fixed, after fees, as the Router counts it: of a sale before the
            destination token's own tax, which is withheld when the Router sends.
        limit: of that side, what the signed fills must keep to: before the fee and the tokens' taxes.
        receiver: zero for the user.
        deadline: Unix seconds; 0 for that of the fills.
    """

    side: Side
    src_token: bytes
    dest_token: bytes
    user: bytes
    tx_origin: bytes
    receiver: bytes
    src_amount: int
    dest_amount: int
    expected: int
    limit: int
    partner_and_fee: int
    permit: bytes
    deadline: int

    @property
    def value_wei(self) -> int:
        """Native tokens that come with the transaction."""
        return self.src_amount if self.src_token == NATIVE_TOKEN else 0


def read_ticket(place: "Place", opened: Opened, body: TransactionBody, fees: Fees, now_ms: int) -> Ticket:
    """Hold a request against its route.

    Raises:
        InvalidInput: names the field that does not fit.
        InvalidToken, TokenNotSupported, NoRoute: a token, or its decimals.
        MissingSlippage: neither a slippage nor the amount that is not fixed.
        PartnerNotAllowed: its tier forbids the fee or the surplus flags.
    """
    route, plan = opened.route, opened.plan
    src = place.tokens.find(body.src_token, "srcToken", body.src_decimals)
    dest = place.tokens.find(body.dest_token, "destToken", body.dest_decimals)
    for field, token, text in (("srcToken", src, route.src_token), ("destToken", dest, route.dest_token)):
        if token.text != text:
            raise InvalidInput(field=field, expected=f"the route's, {text}", got=token.text)
    user = parse_address(body.user_address, "userAddress")
    if user == ZERO_ADDRESS:
        raise InvalidInput(field="userAddress", expected="an account", got=body.user_address)
    fee = fee_of(opened, body, fees)
    quoted_src, quoted_dest = after_fee(plan, fee.fee_bps)
    if plan.side is Side.SELL:
        src_amount = _fixed(body.src_amount, plan.src_amount, "srcAmount")
        dest_amount = _least(body, quoted_dest)
        limit = _before_sale_taxes(least_before_fee(dest_amount, fee.fee_bps), opened.wanted.taxes)
        expected = _expected_of_sale(opened, fee.fee_bps)
    else:
        dest_amount = _fixed(body.dest_amount, plan.dest_amount, "destAmount")
        src_amount = _most(body, quoted_src)
        limit = _after_purchase_taxes(most_before_fee(src_amount, fee.fee_bps), opened.wanted.taxes)
        expected = quoted_src
    return Ticket(
        side=plan.side,
        src_token=src.address,
        dest_token=dest.address,
        user=user,
        tx_origin=user if body.tx_origin is None else parse_address(body.tx_origin, "txOrigin"),
        receiver=_receiver(place, body.receiver),
        src_amount=src_amount,
        dest_amount=dest_amount,
        expected=expected,
        limit=limit,
        partner_and_fee=partner_and_fee(fee, body),
        permit=_permit(place, body, user, is_native=src.address == NATIVE_TOKEN),
        deadline=_deadline(body.deadline, now_ms),
    )


def swap_of(ticket: Ticket, firm: FirmRoute) -> Swap:
    """What the Router is told."""
    return Swap(
        src_token=ticket.src_token,
        dest_token=ticket.dest_token,
        src_amount=ticket.src_amount,
        dest_amount=ticket.dest_amount,
        expected_amount=ticket.expected,
        receiver=ticket.receiver,
        deadline=ticket.deadline or firm.expiry_s,
        partner_and_fee=ticket.partner_and_fee,
        permit=ticket.permit,
        hops=tuple(
            Hop(
                taker_amount=hop.taker_amount,
                maker_amount=hop.maker_amount,
                orders=tuple(
                    OrderInfo(fill.order, fill.signature, fill.order.taker_amount) for fill in hop.fills
                ),
            )
            for hop in firm.hops
        ),
    )


def params_of(side: Side, swap: Swap, router: bytes) -> ContractParams:
    """The call as a contract library takes it: structs as arrays, numbers as strings (choices.md 12)."""
    return ContractParams(METHODS[side], (_value(swap),), to_checksum(router))


# --- Fees ---------------------------------------------------------------------------------------------


def fee_of(opened: Opened, body: TransactionBody, fees: Fees) -> ResolvedFee:
    """What the swap pays, and to whom."""
    name = opened.route.partner if body.partner is None else body.partner
    registered = fees.partners.get(name)
    requested: int | None = None
    if body.partner_fee_bps is not None:
        requested = _fee_bps(body.partner_fee_bps)
    elif name == opened.route.partner or (registered is None and opened.route.partner == ANON):
        requested = _requested(opened.fee_bps, registered)
    if body.partner_address is not None:
        parse_address(body.partner_address, "partnerAddress")
    return resolve_fee(
        name,
        requested,
        fees.partners,
        fees.tiers,
        partner_address=body.partner_address or "",
        takes_surplus=_takes_surplus(body),
        caps_surplus=body.is_cap_surplus,
    )


def partner_and_fee(fee: ResolvedFee, body: TransactionBody) -> int:
    """Fee, recipient and surplus flags as the Router takes them."""
    packed = pack_partner_and_fee(
        PartnerAndFee(
            partner=parse_address(fee.address, "partnerAddress") if fee.address else ZERO_ADDRESS,
            fee_bps=fee.fee_bps,
            partner_takes_surplus=_takes_surplus(body),
            cap_surplus=body.is_cap_surplus,
        )
    )
    return packed | (PAYS_DIRECTLY if body.is_direct_fee_transfer else 0)


def _requested(quoted_bps: int, registered: Partner | None) -> int | None:
    """The `partnerFeeBps` that the quote was asked with."""
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


def _fixed(text: str | None, amount: int, field: str) -> int:
    if text is None:
        raise InvalidInput("missing", field=field)
    if parse_positive_amount(text, field) != amount:
        raise InvalidInput(field=field, expected=f"the route's, {amount}", got=text)
    return amount


def _least(body: TransactionBody, quoted: int) -> int:
    """What a sale must bring: the amount that was sent, else the slippage of what was quoted."""
    if body.dest_amount is not None:
        least = parse_amount(body.dest_amount, "destAmount")
        if least > quoted:
            raise InvalidInput(
                field="destAmount", expected=f"at most what the route brings, {quoted}", got=least
            )
        return least
    if body.slippage is None:
        raise MissingSlippage(field="slippage", expected="basis points, or destAmount")
    return mul_div_down(quoted, BPS_ONE - body.slippage, BPS_ONE)


def _most(body: TransactionBody, quoted: int) -> int:
    """What a purchase may cost."""
    if quoted > UINT256_MAX:
        raise NoRoute("with this fee it costs more than there can be")
    if body.src_amount is not None:
        most = parse_amount(body.src_amount, "srcAmount")
        if most < quoted:
            raise InvalidInput(
                field="srcAmount", expected=f"at least what the route costs, {quoted}", got=most
            )
        return most
    if body.slippage is None:
        raise MissingSlippage(field="slippage", expected="basis points, or srcAmount")
    return min(mul_div_down(quoted, BPS_ONE + body.slippage, BPS_ONE), UINT256_MAX)


def _before_sale_taxes(amount: int, taxes: Taxes) -> int:
    """What the last hops must give so that `amount` arrives."""
    for bps in (taxes.dest, taxes.dest_dex):
        amount = mul_div_up(amount, BPS_ONE, BPS_ONE - bps)
    return amount


def _expected_of_sale(opened: Opened, fee_bps: int) -> int:
    """What the Router has to send to the user where everything comes as it was quoted."""
    brought = sum(path.dest_amount for path in opened.plan.paths)
    arrives = mul_div_down(brought, BPS_ONE - opened.wanted.taxes.dest_dex, BPS_ONE)
    return arrives - mul_div_down(arrives, fee_bps, BPS_ONE)


def _after_purchase_taxes(amount: int, taxes: Taxes) -> int:
    """What is there for the first hops when the user gives `amount`."""
    for bps in (taxes.src, taxes.src_dex):
        amount = mul_div_down(amount, BPS_ONE - bps, BPS_ONE)
    return amount


# --- The rest -----------------------------------------------------------------------------------------


def _receiver(place: "Place", text: str | None) -> bytes:
    receiver = ZERO_ADDRESS if text is None else parse_address(text, "receiver")
    ours = (
        place.router,
        place.executor,
        place.rfq,
        place.delta,
        place.fee_vault,
        place.tokens.wrapped_native,
    )
    if receiver != ZERO_ADDRESS and (receiver in ours or receiver in place.tokens.by_address):
        raise InvalidInput(
            field="receiver", expected="an account, not a token or a contract of the venue", got=text
        )
    return receiver


def _permit(place: "Place", body: TransactionBody, user: bytes, *, is_native: bool) -> bytes:
    raw = b"" if body.permit is None else parse_permit(body.permit)
    if not raw:
        return raw
    if is_native:
        raise InvalidInput(field="permit", expected="none with the native token", got=body.permit)
    form = permit_form(raw)
    spender = permit_spender(raw)
    if spender is not None:
        owner = raw[_WORD_BYTES - ADDRESS_BYTES : _WORD_BYTES]
        for role, wanted, found in (("owner", user, owner), ("spender", place.router, spender)):
            if found != wanted:
                raise InvalidInput(
                    field="permit", expected=f"{role} {to_checksum(wanted)}", got=to_checksum(found)
                )
    if form is PermitForm.PERMIT2_TRANSFER and body.deadline is None:
        raise InvalidInput("a Permit2 transfer is signed with its deadline", field="deadline")
    return raw


def _deadline(deadline: int | None, now_ms: int) -> int:
    if deadline is None:
        return 0
    if deadline * 1_000 <= now_ms:
        raise InvalidInput(field="deadline", expected=f"after now, {now_ms // 1_000}", got=deadline)
    return deadline


def _value(value: Any) -> Any:
    """A struct as an array, a number as digits, bytes as hex, an address with its checksum."""
    if isinstance(value, Struct):
        return [_value(member) for member in msgspec.structs.astuple(value)]
    if isinstance(value, tuple):
        return [_value(member) for member in value]
    if isinstance(value, bytes):
        return to_checksum(value) if len(value) == ADDRESS_BYTES else to_hex(value)
    return str(value)
