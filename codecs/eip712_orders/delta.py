"""The Delta orders: swap and limit (Order), ExternalOrder, ProductiveOrder, the two TWAPs, and cancellation.

The kind of a submitted order follows from its members (choices.md#delta-orders): each type has its own set of
members. FillableOrder is no type: records report a partially fillable Order under that name.

Choice: The sequence of ProductiveOrder's members is not public; ours is that of the struct below. A
    ProductiveOrder is SELL only.
Choice: A ProductiveOrder with `useShares` sells `shares` of its vault, and `srcAmount` is an estimate.
    Without `useShares` the order sells `srcAmount` for at most `shares`, and a part of it pro rata.
Choice: The handler of an ExternalOrder trades alone, without an agent's steps. A caller contract that is no
    agent's calls the handler, and Delta measures what the handler delivers.

Source: spec 1.16; interop.md section 2; choices.md#delta-orders, choices.md#quotes-and-routes.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from ...config.errors import InvalidInput
from ...crypto.addresses import ZERO_ADDRESS, to_checksum
from ...crypto.eip712 import domain_separator
from .typed_struct import TypedStruct

KIND_SELL = 0
KIND_BUY = 1


class DeltaBridge(msgspec.Struct, frozen=True, gc=False):
    """Member `bridge` of a signed order: the bridge that carries the bought token to another chain.

    An order without a bridge has SAME_CHAIN. `codecs.bridges.bridge_terms` decodes `protocol_data`.

    Attributes:
        protocol_selector: protocol of the bridge, 4 bytes; zero in SAME_CHAIN.
        scaling_factor: decimals of `output_token` minus decimals of the order's `dest_token`.
    """

    protocol_selector: bytes
    destination_chain_id: int
    output_token: bytes
    scaling_factor: int
    protocol_data: bytes


SAME_CHAIN = DeltaBridge(bytes(4), 0, ZERO_ADDRESS, 0, b"")


class DeltaOrder(msgspec.Struct, frozen=True):
    """A swap or limit order. Amounts in raw units; `deadline` in Unix seconds; kind 0 SELL, 1 BUY.

    SELL gives `src_amount` for at least `dest_amount`; BUY gives at most `src_amount` for `dest_amount`.
    `expected_amount` estimates the amount that the kind does not fix (SELL: destination, BUY: source);
    surplus is the improvement over the estimate.
    """

    owner: bytes
    beneficiary: bytes
    src_token: bytes
    dest_token: bytes
    src_amount: int
    dest_amount: int
    expected_amount: int
    deadline: int
    kind: int
    nonce: int
    partner_and_fee: int
    permit: bytes
    metadata: bytes
    bridge: DeltaBridge


class ExternalOrder(msgspec.Struct, frozen=True):
    """An order that the contract `handler` executes in a settlement; `data` is the handler's own input."""

    owner: bytes
    handler: bytes
    src_token: bytes
    dest_token: bytes
    src_amount: int
    dest_amount: int
    expected_amount: int
    deadline: int
    kind: int
    nonce: int
    partner_and_fee: int
    permit: bytes
    metadata: bytes
    data: bytes


class ProductiveOrder(msgspec.Struct, frozen=True):
    """A SELL order whose source tokens are withdrawn from the yield vault `strategy`."""

    owner: bytes
    beneficiary: bytes
    src_token: bytes
    dest_token: bytes
    src_amount: int
    dest_amount: int
    expected_amount: int
    deadline: int
    nonce: int
    partner_and_fee: int
    permit: bytes
    metadata: bytes
    strategy: bytes
    shares: int
    use_shares: bool
    bridge: DeltaBridge


class TwapOrder(msgspec.Struct, frozen=True):
    """A scheduled sale (TWAP): `num_slices` slices, settled at least `interval` seconds apart."""

    owner: bytes
    beneficiary: bytes
    src_token: bytes
    dest_token: bytes
    nonce: int
    partner_and_fee: int
    deadline: int
    interval: int
    num_slices: int
    dest_amount_per_slice: int
    total_src_amount: int
    permit: bytes
    metadata: bytes
    bridge: DeltaBridge


class TwapBuyOrder(msgspec.Struct, frozen=True):
    """A scheduled purchase (TWAP): `num_slices` slices, settled at least `interval` seconds apart.

    All slices together spend at most `max_src_amount` raw units.
    """

    owner: bytes
    beneficiary: bytes
    src_token: bytes
    dest_token: bytes
    nonce: int
    partner_and_fee: int
    deadline: int
    interval: int
    num_slices: int
    total_dest_amount: int
    max_src_amount: int
    permit: bytes
    metadata: bytes
    bridge: DeltaBridge


class OrderCancellations(msgspec.Struct, frozen=True):
    """Message that an owner signs to cancel orders; the message lists the ids of the orders."""

    order_ids: tuple[str, ...]


AnyDeltaOrder = DeltaOrder | ExternalOrder | ProductiveOrder | TwapOrder | TwapBuyOrder

_TOKENS = "address srcToken,address destToken"
_AMOUNTS = "uint256 srcAmount,uint256 destAmount,uint256 expectedAmount"
_TWAP = (
    f"address owner,address beneficiary,{_TOKENS},uint256 nonce,uint256 partnerAndFee,"
    "uint64 deadline,uint64 interval,uint32 numSlices"
)

BRIDGE = TypedStruct(
    "Bridge",
    "bytes4 protocolSelector,uint256 destinationChainId,address outputToken,int8 scalingFactor,"
    "bytes protocolData",
    DeltaBridge,
)
ORDER = TypedStruct(
    "Order",
    f"address owner,address beneficiary,{_TOKENS},{_AMOUNTS},uint256 deadline,uint8 kind,uint256 nonce,"
    "uint256 partnerAndFee,bytes permit,bytes metadata,Bridge bridge",
    DeltaOrder,
    (BRIDGE,),
)
EXTERNAL_ORDER = TypedStruct(
    "ExternalOrder",
    f"address owner,address handler,{_TOKENS},{_AMOUNTS},uint256 deadline,uint8 kind,uint256 nonce,"
    "uint256 partnerAndFee,bytes permit,bytes metadata,bytes data",
    ExternalOrder,
)
PRODUCTIVE_ORDER = TypedStruct(
    "ProductiveOrder",
    f"address owner,address beneficiary,{_TOKENS},{_AMOUNTS},uint256 deadline,uint256 nonce,"
    "uint256 partnerAndFee,bytes permit,bytes metadata,address strategy,uint256 shares,bool useShares,"
    "Bridge bridge",
    ProductiveOrder,
    (BRIDGE,),
)
TWAP_ORDER = TypedStruct(
    "TWAPOrder",
    f"{_TWAP},uint256 destAmountPerSlice,uint256 totalSrcAmount,bytes permit,bytes metadata,Bridge bridge",
    TwapOrder,
    (BRIDGE,),
)
TWAP_BUY_ORDER = TypedStruct(
    "TWAPBuyOrder",
    f"{_TWAP},uint256 totalDestAmount,uint256 maxSrcAmount,bytes permit,bytes metadata,Bridge bridge",
    TwapBuyOrder,
    (BRIDGE,),
)
ORDER_CANCELLATIONS = TypedStruct("OrderCancellations", "string[] orderIds", OrderCancellations)

ORDER_TYPES: tuple[TypedStruct[Any], ...] = (
    ORDER,
    EXTERNAL_ORDER,
    PRODUCTIVE_ORDER,
    TWAP_ORDER,
    TWAP_BUY_ORDER,
)


def order_type_of(wire: object, field: str = "order") -> TypedStruct[Any]:
    """Determine the order type whose members are exactly those of a submitted order.

    Raises:
        InvalidInput: no type has exactly these members; the error names the nearest type's missing and
            unknown members.
    """
    if not isinstance(wire, Mapping):
        raise InvalidInput(field=field, expected="an object", got=wire)
    names = frozenset(map(str, wire))
    for order_type in ORDER_TYPES:
        if names == order_type.member_names:
            return order_type
    nearest = min(ORDER_TYPES, key=lambda order_type: len(order_type.member_names ^ names))
    lacking = ", ".join(sorted(nearest.member_names - names)) or "none"
    unknown = ", ".join(sorted(names - nearest.member_names)[:5]) or "none"
    raise InvalidInput(
        f"missing: {lacking}; unknown: {unknown}", field=field, expected=f"the members of {nearest.name}"
    )


def delta_domain(name: str, version: str, chain_id: int, contract: bytes) -> dict[str, object]:
    """Make the EIP-712 domain of a chain's Delta contract, deployed with this domain name and version."""
    return {
        "name": name,
        "version": version,
        "chainId": chain_id,
        "verifyingContract": to_checksum(contract),
    }


def delta_domain_separator(name: str, version: str, chain_id: int, contract: bytes) -> bytes:
    """Compute the EIP-712 domain separator (32 bytes) of a chain's Delta contract."""
    return domain_separator(delta_domain(name, version, chain_id, contract))
