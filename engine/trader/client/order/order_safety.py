"""Checks of a venue's Delta answers before the trader signs an order or a cancellation. Pure.

The venue's order is never signed unchecked: it must equal, member by member, the order that the trader's
terms give. The digest is computed here from the trader's own copy, in the domain that the contract returns.

    price         chains, tokens, side, the fixed amount, spender, fee; no bridge in an order on one chain
                  (for the bridge of an order across chains see `bridge_safety`)
    domain        chain, the Delta contract, and a name and version that give the contract's own separator
    order         types, every member, a TWAP's schedule too; of partnerAndFee the fee and the partner's
                  share in surplus
    orderHash     equal to the computed digest
    cancellation  types, exactly the requested ids, hash equal to the computed digest
    record        members of the submitted order, and its kind
    unchecked     the partner's identity; its fee is within the bound

All typed-data types must be the expected ones, although only the order's are hashed: wallets show them.

Source: spec 1.16; interop.md 2 and 3; EIP-712; contracts/Delta.sol.
Choice: An order with a better bound than requested is refused as well, since it might never settle.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from .....codecs.amounts import parse_amount
from .....codecs.eip712_orders.delta import (
    ORDER_CANCELLATIONS,
    AnyDeltaOrder,
    OrderCancellations,
    ProductiveOrder,
    delta_domain_separator,
    order_type_of,
)
from .....codecs.eip712_orders.partner_and_fee import unpack_partner_and_fee
from .....codecs.eip712_orders.typed_struct import TypedStruct
from .....codecs.messages.delta_messages import (
    BuildResponse,
    CancellationBuildResponse,
    DeltaBlock,
    OrderRecord,
    TypedDomain,
    TypedMember,
)
from .....config.errors import InvalidInput, UnsafeTransaction, VenueError
from .....crypto.addresses import to_checksum
from .....crypto.hexadecimal import to_hex
from ..order_terms import OrderWish, SignableOrder, SignableTerms, SigningInputs, order_of
from ..safety import ComparedMember, bps_of_percent, hold, one_spelling, token_spelling, unsafe_if_invalid
from ..trusted_contract import SigningContract


class CheckedOrder(Struct, frozen=True):
    """An order that the trader may sign because it passed the checks, or an order of a venue's record whose
    hash was verified.

    Attributes:
        order_hash: digest to sign, 32 bytes.
    """

    order: AnyDeltaOrder
    order_hash: bytes


def check_price(block: DeltaBlock, wish: OrderWish, delta: bytes) -> int:
    """Check that the venue's price is for the requested order.

    Args:
        delta: the Delta contract, 20 bytes.

    Returns:
        The quoted fee in basis points.

    Raises:
        UnsafeTransaction: a member differs from the request; the error names it.
    """
    hold(_price_checks(block, wish, delta))
    route = block.route
    for member, amount in (
        ("origin.input.amount", route.origin.input.amount),
        ("destination.output.amount", route.destination.output.amount),
    ):
        with unsafe_if_invalid():
            is_zero = parse_amount(amount, f"route.{member}") == 0
        if is_zero:
            raise UnsafeTransaction(f"route.{member}", "an amount above zero", amount)
    return bps_of_percent(block.partner.fee_percent, "partner.feePercent")


def check_build(
    response: BuildResponse, terms: SignableTerms, signing: SigningInputs, contract: SigningContract
) -> CheckedOrder:
    """Check that the order that a venue built is the agreed one, member by member.

    Raises:
        UnsafeTransaction: a member differs from the agreed order; the error names it.

    Guarantees: with this release's Delta contract, the owner gives at most `src_amount_max`, and the
    beneficiary gets at least `dest_amount_min`, or the order is not settled. For each part of a partially
    settled order and each slice of a TWAP, the bound applies in proportion to the part's or slice's amount.
    """
    to_sign, struct_type = response.to_sign, terms.wish.struct_type
    _check_domain(to_sign.domain, contract)
    _check_types(to_sign.types, struct_type)
    with unsafe_if_invalid("toSign.value", f"the type {struct_type.name}"):
        order: SignableOrder = struct_type.from_wire(msgspec.json.decode(to_sign.value), "toSign.value")
        fee = unpack_partner_and_fee(order.partner_and_fee, "toSign.value.partnerAndFee")
    shares = order.shares if isinstance(order, ProductiveOrder) else 0
    if terms.wish.vault is not None and not 0 < shares <= terms.shares_max:
        raise UnsafeTransaction("toSign.value.shares", f"1 to {terms.shares_max}", shares)
    # Two members are taken over from the venue's order and bounded apart: the shares above, the fee below.
    # All others follow from the terms. The digest is computed from this copy, not from the venue's order.
    expected = order_of(terms, signing, order.partner_and_fee, shares)
    got = struct_type.to_wire(order)
    hold(
        (f"toSign.value.{name}", wanted, got[name]) for name, wanted in struct_type.to_wire(expected).items()
    )
    if fee.fee_bps > terms.fee_bps:
        raise UnsafeTransaction("partner fee in basis points", f"at most {terms.fee_bps}", fee.fee_bps)
    hold([("share of surplus for others", False, fee.partner_takes_surplus)])
    order_hash = contract.digest(struct_type.compiled.hash_struct(expected))
    hold([("orderHash", to_hex(order_hash), response.order_hash.lower())])
    return CheckedOrder(expected, order_hash)


def check_cancellation(
    response: CancellationBuildResponse, ids: Sequence[str], contract: SigningContract
) -> bytes:
    """Check that the cancellation that a venue built is of exactly the orders with these ids.

    Returns:
        The digest that is signed, 32 bytes.

    Raises:
        UnsafeTransaction: a member differs from the expected cancellation; the error names it.
    """
    to_sign = response.to_sign
    _check_domain(to_sign.domain, contract)
    _check_types(to_sign.types, ORDER_CANCELLATIONS)
    hold([("toSign.value.orderIds", list(ids), list(to_sign.value.order_ids))])
    struct_hash = ORDER_CANCELLATIONS.compiled.hash_struct(OrderCancellations(tuple(ids)))
    digest = contract.digest(struct_hash)
    hold([("hash", to_hex(digest), response.hash.lower())])
    return digest


def signed_order(record: OrderRecord, contract: SigningContract) -> CheckedOrder:
    """Return the order in a venue's record, after its hash was computed and compared with the record's.

    Raises:
        VenueError: the record's `order` has another hash, or is invalid.
    """
    try:
        wire = msgspec.json.decode(record.order)
        struct_type = order_type_of(wire)
        order: AnyDeltaOrder = struct_type.from_wire(wire, "order")
    except (InvalidInput, msgspec.DecodeError) as fault:
        raise VenueError(f"the record of order {record.id}: {fault}") from None
    order_hash = contract.digest(struct_type.compiled.hash_struct(order))
    if to_hex(order_hash) != record.order_hash.lower():
        raise VenueError(f"the record of order {record.id}: `order` has the hash {to_hex(order_hash)}")
    return CheckedOrder(order, order_hash)


def check_record(record: OrderRecord, order_hash: bytes, terms: SignableTerms) -> None:
    """Check that a venue's record is of the submitted order.

    Raises:
        VenueError: a member differs from the submitted order; the error names it.
    """
    wish = terms.wish
    checks: tuple[ComparedMember, ...] = (
        ("orderHash", to_hex(order_hash), record.order_hash.lower()),
        ("owner", to_checksum(wish.owner), one_spelling(record.owner)),
        ("side", wish.side.value, record.side.value),
        ("onChainOrderType", wish.kind.value, record.on_chain_order_type.value),
        ("input.chainId", wish.chain_id, record.input.chain_id),
        ("input.token", wish.src.text, token_spelling(record.input.token, "srcToken")),
        ("output.chainId", wish.dest_chain_id, record.output.chain_id),
        ("output.token", wish.dest.text, token_spelling(record.output.token, "destToken")),
    )
    for member, expected, got in checks:
        if expected != got:
            raise VenueError(f"the venue's record differs from the order: {member} is {got}, not {expected}")


def _price_checks(block: DeltaBlock, wish: OrderWish, delta: bytes) -> Iterator[ComparedMember]:
    route = block.route
    yield "spender", to_checksum(delta), one_spelling(block.spender)
    yield "side", wish.side.value, block.side.value
    for name, entry, token, field in (
        ("inputToken", block.input_token, wish.src, "srcToken"),
        ("route.origin.input", route.origin.input.token, wish.src, "srcToken"),
        ("outputToken", block.output_token, wish.dest, "destToken"),
        ("route.destination.output", route.destination.output.token, wish.dest, "destToken"),
    ):
        chain_id = wish.chain_id if field == "srcToken" else wish.dest_chain_id
        yield f"chainId of {name}", chain_id, entry.chain_id
        yield f"address of {name}", token.text, token_spelling(entry.address, field)
    sells = wish.is_sale
    fixed = route.origin.input if sells else route.destination.output
    yield f"route, the {wish.side.value} amount", str(wish.priced_amount), fixed.amount
    if wish.bridging is None:
        yield "route.bridge", None, route.bridge


def _check_domain(domain: TypedDomain, contract: SigningContract) -> None:
    expected, got = to_checksum(contract.address), one_spelling(domain.verifying_contract)
    hold([("toSign.domain.chainId", contract.chain_id, domain.chain_id)])
    hold([("toSign.domain.verifyingContract", expected, got)])
    separator = delta_domain_separator(domain.name, domain.version, contract.chain_id, contract.address)
    if separator != contract.separator:
        named = f"{domain.name} {domain.version}"
        raise UnsafeTransaction("toSign.domain", "the name and version of the contract's own domain", named)


def _check_types(types: dict[str, tuple[TypedMember, ...]], wanted: TypedStruct[Any]) -> None:
    got = {name: [f"{member.type} {member.name}" for member in members] for name, members in types.items()}
    expected = {
        name: [f"{member['type']} {member['name']}" for member in members]
        for name, members in wanted.wire_types.items()
    }
    hold([("names of toSign.types", sorted(expected), sorted(got))])
    for name, members in expected.items():
        hold([(f"toSign.types.{name}", ", ".join(members), ", ".join(got[name]))])
