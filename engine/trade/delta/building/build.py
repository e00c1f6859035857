"""Builds a Delta order from an issued route and the owner's parameters (POST /v2/delta/orders/build). Pure.

    route + body -> checks of the order type -> amounts -> order struct -> `toSign`, `orderHash`

            sale                                    purchase
    fixed     srcAmount   = route's input           destAmount = route's output
    limit     destAmount  = output less slippage    srcAmount  = input plus slippage
    expected  expectedAmount = output               expectedAmount = input

`limitAmount`, if the body has it, replaces limit and expected amount. The route of a TWAP is priced for one
slice: the order's fixed side is the total in the body, its limit `destAmountPerSlice` (sale) or
`maxSrcAmount` (purchase).

An order across chains has the bridge of its route. Its destination amounts are in units of the token that
arrives; slippage, `limitAmount` and a TWAP's slices apply to these amounts as on one chain.

A build checks the order type's parameters first, then amounts, permit, partner and deadline. A build without
`nonce` gets 256 random bits: nonces are unordered.

Source: spec 1.16; interop.md 2; choices.md#fees-and-partners, choices.md#signatures-and-permits,
    choices.md#delta-orders, choices.md#quotes-and-routes.
Choice: A passed `deadline` is `Order expired` at the build already.
Choice: Parameters of another kind than `orderType` are ignored as unknown ones are.
Choice: An order across chains fills whole, or slice by slice: `partiallyFillable` is refused, since each part
    would pay the bridge's fixed fee.
Choice: A swap after a bridge is signed in `metadata`, with the swap's beneficiary. The order's beneficiary is
    the account from which the swap takes, and the order's amounts are of the token that the bridge delivers.
    Slippage counts for each swap.
Choice: The swap after a bridge may be made until an hour after the order's deadline. The time of a wrap is
    over from the start: what came is wrapped and paid out at once, whoever asks for it.
Choice: `metadata` is at most 4 KiB: it goes into the calldata of every settlement.
Choice: A permit is refused for the native token, which is deposited, and where its spender is not the Delta
    contract. A `permit_only` token needs one (`Permit / Permit2 required`) and has no limit orders or TWAPs,
    which need an approval.
"""

from collections.abc import Iterable
from typing import Any

from msgspec import UNSET, Raw, Struct

from .....codecs.amounts import parse_amount, parse_positive_amount
from .....codecs.bridges.arrivals import ArrivalTerms, arrival_address, pack_arrival
from .....codecs.contracts.permit import parse_permit, permit_spender
from .....codecs.eip712_orders.delta import (
    KIND_BUY,
    KIND_SELL,
    SAME_CHAIN,
    TWAP_BUY_ORDER,
    TWAP_ORDER,
    AnyDeltaOrder,
    DeltaBridge,
    DeltaOrder,
    TwapBuyOrder,
    TwapOrder,
)
from .....codecs.eip712_orders.partner_and_fee import PartnerAndFee, pack_partner_and_fee
from .....codecs.eip712_orders.signing_names import NamedDomain, OrderDigests, delta_others
from .....codecs.eip712_orders.typed_struct import TypedStruct
from .....codecs.iso_time import check_unix_seconds
from .....codecs.messages.delta_messages import (
    BuildBody,
    BuildResponse,
    Route,
    ToSign,
    TypedDomain,
    TypedMember,
)
from .....codecs.messages.vocabulary import BuildOrderType, Side
from .....codecs.messages.wire import encode
from .....codecs.trading_token import check_account
from .....config import limits
from .....config.chains import ChainSettings
from .....config.errors import (
    InvalidInput,
    InvalidTWAPBuyDestAmount,
    InvalidTWAPBuyParams,
    InvalidTWAPParams,
    InvalidTWAPSrcAmount,
    MissingDeadline,
    OrderExpired,
    PermitRequired,
    TwapDeadlineTooShort,
    TwapTotalTooSmall,
)
from .....config.sections.partners import resolve_fee
from .....config.timeouts import ARRIVAL_SWAP_S
from .....crypto.addresses import ZERO_ADDRESS, parse_address, to_checksum
from .....crypto.eip712 import signing_digest
from .....crypto.hexadecimal import parse_hex, to_hex
from ...quote.ask import FeeRules
from ...routing.tokens import ListedToken
from ...served.served_chain import ServedChains
from ..orders.arriving import arrival_code
from ..orders.terms import next_part
from .order_kinds import AdmittedHandlers, check_kind_of_contract, of_kind

_SLICES_MAX = 2**32 - 1  # a uint32 in the order
_TWAPS = frozenset({BuildOrderType.TWAP_ORDER, BuildOrderType.TWAP_BUY_ORDER})
_SIDES = {
    BuildOrderType.TWAP_ORDER: Side.SELL,
    BuildOrderType.TWAP_BUY_ORDER: Side.BUY,
    BuildOrderType.PRODUCTIVE_ORDER: Side.SELL,
}
"""Side (SELL or BUY) by order type, for the order types that have only one side."""


class DeltaDomain(Struct, frozen=True):
    """The EIP-712 domain of a chain's Delta contract.

    Attributes:
        contract: address of the Delta contract, 20 bytes.
        typed: domain in the form of the API's `toSign`.
        separator: domain separator, 32 bytes.
        named: values of the domain's fields.
        others: domains that owners may sign for by mistake; an error names the wrong domain.
    """

    contract: bytes
    typed: TypedDomain
    separator: bytes
    named: NamedDomain
    others: tuple[NamedDomain, ...]

    def signing(self, struct_hash32: bytes) -> OrderDigests:
        """Return the digests of an order to sign: under this EIP-712 domain, and under those in `others`.

        Args:
            struct_hash32: EIP-712 hash of the order's struct, 32 bytes.
        """
        return OrderDigests(struct_hash32, self.named, self.others)


class BuildTerms(Struct, frozen=True):
    """Inputs from which a Delta order is built, besides the request's body and the route.

    Attributes:
        src, dest: tokens of the route on its origin; `dest` is the bridge's token of a route across chains.
        quoted: side for which the route was quoted.
        fees: partners and fee tiers, which decide the partner's fee.
        now_s: time of the request, Unix seconds.
        nonce: nonce of the order if the body has none.
        shares: shares of the vault that a ProductiveOrder signs; 0 for every other order type.
        handlers: handlers of the chain; None for any.
        arrivals: contract on the destination that swaps what a bridge delivers, 20 bytes; empty without one.
        salt: random bytes that make the terms of a swap on the destination unique, 32 bytes.
        gets_wrapped: whether the beneficiary is a contract on the destination, to which bridges pay wrapped
            native tokens: nothing has to be wrapped for it.
    """

    domain: DeltaDomain
    src: ListedToken
    dest: ListedToken
    quoted: Side
    fees: FeeRules
    now_s: int
    nonce: int
    shares: int = 0
    handlers: AdmittedHandlers = None
    arrivals: bytes = b""
    salt: bytes = bytes(32)
    gets_wrapped: bool = False


class _BuildAmounts(Struct, frozen=True):
    """Amounts of an order to be built, raw units.

    Attributes:
        src, dest: input and output of the route.
        bound: limit on the side that the order does not fix: least output (SELL) or greatest input (BUY).
        expected: expected amount on the side that the order does not fix.
    """

    src: int
    dest: int
    bound: int
    expected: int


def delta_domain_of(
    chain_id: int, contract: bytes, chain: ChainSettings, served: Iterable[NamedDomain] = ()
) -> DeltaDomain:
    """Make the EIP-712 domain of a chain's Delta contract from the chain's settings.

    Args:
        contract: address of the Delta contract, 20 bytes.
        served: domains of the venue's other chains, which owners may sign for by mistake.
    """
    named = _named(chain_id, contract, chain)
    typed = TypedDomain(named.name, named.version, chain_id, to_checksum(contract))
    return DeltaDomain(contract, typed, named.separator, named, delta_others(named, served))


def delta_domains(chains: ServedChains) -> dict[int, DeltaDomain]:
    """Make the EIP-712 domain of each served chain's Delta contract, by chain id."""
    served = {chain_id: place for chain_id, place in chains.items() if not place.no_delta}
    named = [_named(chain_id, place.delta, place.settings) for chain_id, place in served.items()]
    return {
        chain_id: delta_domain_of(chain_id, place.delta, place.settings, named)
        for chain_id, place in served.items()
    }


def _named(chain_id: int, contract: bytes, chain: ChainSettings) -> NamedDomain:
    return NamedDomain(chain.delta_domain_name, chain.delta_domain_version, chain_id, contract)


def built(body: BuildBody, route: Route, terms: BuildTerms) -> BuildResponse:
    """Build the EIP-712 typed data of a Delta order, which its owner signs, and the order's hash.

    Args:
        route: issued route that the body carries.

    Raises:
        RequestError: the request is refused; see spec 1.25.
    """
    order_type, order = built_order(body, route, terms)
    digest = signing_digest(terms.domain.separator, order_type.compiled.hash_struct(order))
    to_sign = ToSign(
        terms.domain.typed,
        {
            name: tuple([TypedMember(member["name"], member["type"]) for member in members])
            for name, members in order_type.wire_types.items()
        },
        Raw(encode(order_type.to_wire(order))),
    )
    return BuildResponse(to_sign, to_hex(digest))


def built_order(body: BuildBody, route: Route, terms: BuildTerms) -> tuple[TypedStruct[Any], AnyDeltaOrder]:
    """Build the struct of a Delta order for its owner to sign.

    Returns:
        (EIP-712 type of the struct, the struct).

    Raises:
        RequestError: the request is refused; see `built`.
    """
    if body.deadline is None:
        raise MissingDeadline(field="deadline", expected="Unix seconds")
    owner = parse_address(body.owner, "owner")
    check_account(owner, "owner")
    beneficiary = owner if body.beneficiary is None else parse_address(body.beneficiary, "beneficiary")
    check_side(body)
    check_kind_of_contract(body, terms.handlers)
    _check_kind(body)
    side = terms.quoted
    check_quoted_side(body, side)
    beneficiary, metadata, amounts = _receiving(body, route, terms, side, beneficiary)
    permit = _permit(body, terms)
    partner_and_fee = _partner_and_fee(body, terms)
    nonce = terms.nonce if body.nonce is None else parse_amount(body.nonce, "nonce")
    _check_deadline(body, body.deadline, terms.now_s)
    ends = (owner, beneficiary, terms.src.address, terms.dest.address)
    bridge = _bridge(body, route, terms)
    if body.order_type not in _TWAPS:
        sells = side is Side.SELL
        order = DeltaOrder(
            *ends,
            src_amount=amounts.src if sells else amounts.bound,
            dest_amount=amounts.bound if sells else amounts.dest,
            expected_amount=amounts.expected,
            deadline=body.deadline,
            kind=KIND_SELL if sells else KIND_BUY,
            nonce=nonce,
            partner_and_fee=partner_and_fee,
            permit=permit,
            metadata=metadata,
            bridge=bridge,
        )
        return of_kind(body, order, terms.shares, terms.handlers)
    slices = body.interval or 0, body.num_slices or 0
    if body.order_type is BuildOrderType.TWAP_ORDER:
        # `amounts` are of one slice: the owner signs a limit per slice, so that the quote has to be for the
        # amount of a slice as the contract computes it, rounded down.
        total = _total(body.total_src_amount, "totalSrcAmount", slices[1])
        if amounts.src != total // slices[1]:
            raise InvalidTWAPSrcAmount(
                field="route.origin.input.amount", expected=str(total // slices[1]), got=amounts.src
            )
        return TWAP_ORDER, TwapOrder(
            *ends,
            nonce,
            partner_and_fee,
            body.deadline,
            *slices,
            amounts.bound,
            total,
            permit,
            metadata,
            bridge,
        )
    total = _total(body.total_dest_amount, "totalDestAmount", slices[1])
    spent_max = _total(body.max_src_amount, "maxSrcAmount", slices[1])
    if amounts.dest != total // slices[1]:
        raise InvalidTWAPBuyDestAmount(
            field=f"route.{'destination' if route.bridge else 'origin'}.output.amount",
            expected=str(total // slices[1]),
            got=amounts.dest,
        )
    purchase = TwapBuyOrder(
        *ends, nonce, partner_and_fee, body.deadline, *slices, total, spent_max, permit, metadata, bridge
    )
    check_purchase_slices(purchase, "maxSrcAmount")
    return TWAP_BUY_ORDER, purchase


# --- The kind -----------------------------------------------------------------------------------------


def wanted_side(body: BuildBody) -> Side | None:
    """Return the side that a request's body names or its order type implies; None if neither has a side."""
    return _SIDES.get(body.order_type) if body.side is UNSET else body.side


def check_side(body: BuildBody) -> None:
    """Check that a request's side does not contradict its order type.

    Raises:
        InvalidInput: the order type has only the other side.
    """
    fixed = _SIDES.get(body.order_type)
    if fixed is not None and body.side not in (UNSET, fixed):
        raise InvalidInput(
            field="side", expected=f"{fixed.value} for {body.order_type.value}", got=str(body.side)
        )


def check_quoted_side(body: BuildBody, quoted: Side) -> None:
    """Check that the side of a route's quote contradicts neither the side of a body nor its order type.

    Raises:
        InvalidInput: the order type has only the other side, or the body names the other side.
    """
    kind, fixed = body.order_type.value, _SIDES.get(body.order_type)
    if fixed not in (None, quoted):
        why = f"{kind} has no other side"
        if body.side is UNSET:
            why += f"; the body names no side, which stands for {fixed} here"
        raise InvalidInput(why, field="route", expected=f"a route quoted with side={fixed}", got=quoted.value)
    if body.side not in (UNSET, quoted):
        raise InvalidInput(field="side", expected=f"the route's, {quoted.value}", got=str(body.side))


def _check_kind(body: BuildBody) -> None:
    """Raise an error if the body of a request lacks a parameter of its order type, or has an invalid one."""
    kind = body.order_type
    if kind is BuildOrderType.TWAP_ORDER:
        fault = _twap_fault(body, "totalSrcAmount")
        if fault:
            raise InvalidTWAPParams(fault)
    elif kind is BuildOrderType.TWAP_BUY_ORDER:
        fault = _twap_fault(body, "totalDestAmount", "maxSrcAmount")
        if fault:
            raise InvalidTWAPBuyParams(fault)
        if body.limit_amount is not None:
            raise InvalidInput(
                field="limitAmount", expected="none: maxSrcAmount is the limit", got=body.limit_amount
            )


def _bridge(body: BuildBody, route: Route, terms: BuildTerms) -> DeltaBridge:
    """Return the bridge that an order on a route signs; SAME_CHAIN for a route on one chain.

    Raises:
        InvalidInput: the order is to be filled in parts, each of which would pay the bridge's fixed fee, or
            is of a kind that no bridge carries.
    """
    if route.bridge is None:
        return SAME_CHAIN
    if body.order_type in (BuildOrderType.EXTERNAL_ORDER, BuildOrderType.PRODUCTIVE_ORDER):
        raise InvalidInput(field="orderType", expected="Order or a TWAP across chains", got=body.order_type)
    if terms.src.routed == terms.dest.routed and body.order_type in _TWAPS:
        why = f"{terms.src.symbol} is the token that the bridge takes: one order can send it all"
        raise InvalidInput(why, field="orderType", expected=BuildOrderType.ORDER, got=body.order_type)
    if body.partially_fillable:
        raise InvalidInput(field="partiallyFillable", expected="false across chains", got=True)
    params, there = route.bridge.contract_params, route.destination.output.token
    return DeltaBridge(
        parse_hex(params.protocol_selector, "route.bridge.contractParams.protocolSelector"),
        there.chain_id,
        parse_address(params.output_token, "route.bridge.contractParams.outputToken"),
        params.scaling_factor,
        parse_hex(params.protocol_data, "route.bridge.contractParams.protocolData"),
    )


def _twap_fault(body: BuildBody, *totals: str) -> str:
    """Describe the first missing or invalid parameter of a TWAP; empty if all are valid.

    Args:
        totals: names of the body's amounts that this type of TWAP needs.
    """
    given = {
        "interval": body.interval,
        "numSlices": body.num_slices,
        "totalSrcAmount": body.total_src_amount,
        "totalDestAmount": body.total_dest_amount,
        "maxSrcAmount": body.max_src_amount,
    }
    missing = [name for name in ("interval", "numSlices", *totals) if given[name] is None]
    if missing:
        return f"missing: {', '.join(missing)}"
    bounds = (
        ("interval", body.interval, limits.TWAP_INTERVAL_MIN_S, limits.JSON_INT_MAX),
        ("numSlices", body.num_slices, limits.TWAP_SLICES_MIN, _SLICES_MAX),
    )
    for name, value, low, high in bounds:
        if value is not None and not low <= value <= high:
            return f"{name} is {low} to {high}, got {value}"
    return ""


def _total(text: str | None, field: str, slices: int) -> int:
    total = parse_positive_amount(text, field)
    if total < slices:
        raise TwapTotalTooSmall(field=field, got=total, message=f"{field} must be >= numSlices")
    return total


# --- Amounts, permit, fee, deadline -------------------------------------------------------------------


def _amounts(body: BuildBody, route: Route, side: Side) -> _BuildAmounts:
    src = parse_positive_amount(route.origin.input.amount, "route.origin.input.amount")
    dest = parse_positive_amount(route.destination.output.amount, "route.destination.output.amount")
    if body.limit_amount is not None:
        limit = parse_positive_amount(body.limit_amount, "limitAmount")
        return _BuildAmounts(src, dest, limit, limit)
    if side is Side.SELL:
        bound = dest * (limits.BPS_ONE - body.slippage) // limits.BPS_ONE
        return _BuildAmounts(src, dest, bound, dest)
    bound = src * (limits.BPS_ONE + body.slippage) // limits.BPS_ONE
    if bound > limits.UINT256_MAX:
        raise InvalidInput(
            field="slippage", expected="a source amount of at most 2^256 - 1", got=body.slippage
        )
    return _BuildAmounts(src, dest, bound, src)


def _receiving(
    body: BuildBody, route: Route, terms: BuildTerms, side: Side, beneficiary: bytes
) -> tuple[bytes, bytes, _BuildAmounts]:
    """Return an order's beneficiary, metadata and amounts; a swap after the order's bridge decides all three.

    Raises:
        InvalidInput: the metadata is invalid, or the swap is refused; see `_swap_there`.
    """
    amounts = _amounts(body, route, side)
    metadata = parse_hex(body.metadata, "metadata")
    check_metadata(metadata, "metadata")
    swap = _swap_there(body, route, terms, side, beneficiary)
    if swap is None:
        return beneficiary, metadata, amounts
    account = arrival_address(terms.arrivals, swap, arrival_code())
    return account, pack_arrival(swap), amounts if swap.is_wrap else _arriving_amounts(body, route, amounts)


def _arriving_amounts(body: BuildBody, route: Route, swapped: _BuildAmounts) -> _BuildAmounts:
    """Return an order's amounts in units of the token that its bridge delivers before a swap there.

    A `limitAmount`, which is in units of the token that the owner wants, becomes units of the delivered token
    at the rate of the quoted swap, rounded up.
    """
    arriving = parse_positive_amount(route.destination.input.amount, "route.destination.input.amount")
    if body.limit_amount is not None:
        limit = -(-arriving * swapped.bound // swapped.dest)
        return _BuildAmounts(swapped.src, arriving, limit, limit)
    bound = arriving * (limits.BPS_ONE - body.slippage) // limits.BPS_ONE
    return _BuildAmounts(swapped.src, arriving, bound, arriving)


def _swap_there(
    body: BuildBody, route: Route, terms: BuildTerms, side: Side, beneficiary: bytes
) -> ArrivalTerms | None:
    """Return the terms of the swap or wrap on the destination that an order signs; None without one.

    Raises:
        InvalidInput: the order is not whole, or not a sale for a swap, the body has metadata, or the route's
            swap is not served.
    """
    if route.bridge is None or route.destination.input.token == route.destination.output.token:
        return None
    there = route.destination
    token = parse_address(
        route.bridge.contract_params.output_token, "route.bridge.contractParams.outputToken"
    )
    dest = parse_address(there.output.token.address, "route.destination.output.token")
    is_wrap = token == dest
    if is_wrap and terms.gets_wrapped:
        return None
    # The terms have one account and one least amount for the whole order: not for slices, and a swap's
    # purchase would need a price there that nobody has signed.
    if body.order_type is not BuildOrderType.ORDER or not (is_wrap or side is Side.SELL):
        what = "Order, or a route to the native token, as which the token arrives"
        raise InvalidInput(
            field="orderType",
            expected=what if is_wrap else "a sale by Order, for a swap after a bridge",
            got=body.order_type,
        )
    if body.metadata != "0x":
        raise InvalidInput(
            field="metadata",
            expected="0x: the terms of what follows the bridge are there",
            got=body.metadata,
        )
    if not terms.arrivals or body.deadline is None:
        raise InvalidInput("nothing that follows a bridge is served on the destination", field="route")
    amounts = _amounts(body, route, side)
    least = amounts.bound if side is Side.SELL else amounts.dest
    until = 0 if is_wrap else body.deadline + ARRIVAL_SWAP_S  # from then on, what came is paid out
    return ArrivalTerms(beneficiary, token, dest, least, until, terms.salt)


def _permit(body: BuildBody, terms: BuildTerms) -> bytes:
    permit = parse_permit("0x" if body.permit is None else body.permit)
    is_permit_only = terms.src.listed is not None and terms.src.listed.permit_only
    if body.order_type is BuildOrderType.PRODUCTIVE_ORDER:
        is_permit_only = False  # the contract takes the vault's shares, not the source token
    needs_approval = body.limit_amount is not None or body.order_type in _TWAPS
    if permit and needs_approval:
        raise InvalidInput(
            field="permit", expected="0x: limit orders and TWAP need an on-chain approval", got=body.permit
        )
    if permit and terms.src.listed is None:
        raise InvalidInput(field="permit", expected="0x: the native token is deposited", got=body.permit)
    if is_permit_only and not permit:
        only = "; its limit orders and TWAP are not served" if needs_approval else ""
        raise PermitRequired(f"{terms.src.symbol} takes permits only{only}", field="permit")
    spender = permit_spender(permit)
    if spender not in (None, terms.domain.contract):
        raise InvalidInput(
            field="permit",
            expected=f"the spender {to_checksum(terms.domain.contract)}",
            got=to_checksum(spender or ZERO_ADDRESS),
        )
    return permit


def check_metadata(metadata: bytes, field: str) -> None:
    """Check that an order's metadata has at most VENUE_METADATA_BYTES_MAX bytes.

    Args:
        field: name of the request's field, for the error.

    Raises:
        InvalidInput: the metadata is too long.
    """
    if len(metadata) > limits.VENUE_METADATA_BYTES_MAX:
        raise InvalidInput(
            field=field,
            expected=f"at most {limits.VENUE_METADATA_BYTES_MAX} bytes",
            got=f"{len(metadata)} bytes",
        )


def check_purchase_slices(order: TwapBuyOrder, field: str) -> None:
    """Check that each slice of a TWAP purchase may spend more than 0.

    The check of the first slice suffices, since no slice is smaller.

    Args:
        field: name of the request's field, for the error.

    Raises:
        InvalidTWAPBuyParams: the slice's share of `maxSrcAmount` rounds down to 0.
    """
    first = next_part(order, 0)
    if first is not None and not first.src_amount:
        raise InvalidTWAPBuyParams(
            field=field, expected="an amount above 0 for each slice", got=order.max_src_amount
        )


def _partner_and_fee(body: BuildBody, terms: BuildTerms) -> int:
    named = parse_address(body.partner_address, "partnerAddress")
    fee = resolve_fee(
        body.partner,
        body.partner_fee_bps,
        terms.fees.partners,
        terms.fees.tiers,
        partner_address="" if named == ZERO_ADDRESS else to_checksum(named),
        takes_surplus=body.partner_takes_surplus,
        caps_surplus=body.cap_surplus,
    )
    address = parse_address(fee.address, "partnerAddress") if fee.address else ZERO_ADDRESS
    return pack_partner_and_fee(
        PartnerAndFee(address, fee.fee_bps, body.partner_takes_surplus, body.cap_surplus)
    )


def _check_deadline(body: BuildBody, deadline: int, now_s: int) -> None:
    check_unix_seconds("deadline", deadline)
    if deadline <= now_s:
        raise OrderExpired(field="deadline", expected=f"a time after {now_s}", got=deadline)
    if body.order_type in _TWAPS:
        earliest = now_s + (body.interval or 0) * (body.num_slices or 0)
        if deadline < earliest:
            raise TwapDeadlineTooShort(field="deadline", expected=f"at least {earliest}", got=deadline)
