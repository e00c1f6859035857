"""A trader's OTC order: the wish, the signed order, and the parts that can be filled. Pure.

    wish     amounts of both tokens --a nonce, an expiry--> order --signed--> SignedOtc
    part     the amounts of a fill: the maker's amount rounds down and is at most the order's rest
    states   DRAFT, PENDING, SUSPENDED may change; FULFILLED, CANCELLED, EXPIRED are final

A signed order is handed over as JSON: the order of spec 2.3, with its chain and its hash.

A taker who names the amount to receive gives the smallest amount that buys it. A taker who names the amount
to give keeps the part of it that buys no further raw unit.

Source: spec 2.3, 2.5; interop.md 1; contracts/Rfq.sol.
"""

from collections.abc import Mapping

import msgspec
from msgspec import UNSET, Struct, UnsetType

from .....codecs.eip712_orders.nonce_and_meta import pack_otc
from .....codecs.eip712_orders.rfq import RFQ_ORDER, RfqOrder
from .....codecs.messages.otc_messages import OtcOrderBody
from .....codecs.messages.vocabulary import ChainId, OtcState
from .....codecs.messages.wire import decoder
from .....codecs.rounding import mul_div_down, mul_div_up
from .....config import limits
from .....config.errors import ChainError, InvalidInput
from .....crypto.addresses import ZERO_ADDRESS, parse_address
from .....crypto.hexadecimal import parse_hex, to_hex
from ..terms import TradedToken, amount_text
from ..trusted_contract import SigningContract

_NONCE_BYTES = limits.OTC_NONCE_BITS // 8

OTC_TERMINAL = frozenset({OtcState.FULFILLED, OtcState.CANCELLED, OtcState.EXPIRED})
"""Final states of an OTC order, which no event changes any more."""

OTC_MEANS: Mapping[str, str] = {
    OtcState.DRAFT: "the maker's contract has yet to accept the signature",
    OtcState.PENDING: "it can be filled",
    OtcState.SUSPENDED: "the maker's balance or allowance is below it",
    OtcState.FULFILLED: "all of it is filled",
    OtcState.CANCELLED: "the maker cancelled it",
    OtcState.EXPIRED: "its time is over",
}


def otc_order_hash(contract: SigningContract, order: RfqOrder) -> bytes:
    """The hash of an OTC order, 32 bytes: the digest that the maker signs for the RFQ contract."""
    return contract.digest(RFQ_ORDER.compiled.hash_struct(order))


class OtcWish(Struct, frozen=True, kw_only=True):
    """A maker's wish for an OTC order.

    Attributes:
        src, dest: the sold and the bought token; src_amount, dest_amount: raw units of each.
        maker: the account that signs and sells, 20 bytes; taker: the account that may fill, 20 bytes, all
            zero for anyone.
        life_s: seconds from the signature to the expiry; 0 for no expiry.
    """

    chain_id: int
    src: TradedToken
    dest: TradedToken
    src_amount: int
    dest_amount: int
    maker: bytes
    taker: bytes
    life_s: int


class SignedOtc(Struct, frozen=True):
    """An OTC order with its hash, its signature and the maker's permit: the data that a taker needs to fill
    it.

    Attributes:
        order_hash: 32 bytes, computed by the client.
        permit: the maker's permit for the sold token; empty for none.
    """

    order: RfqOrder
    order_hash: bytes
    signature: bytes
    permit: bytes = b""


class OtcHandOver(OtcOrderBody, frozen=True, rename="camel", kw_only=True):
    """A signed OTC order in the JSON form that a maker hands to a taker.

    A venue's record of an order can be decoded to this type too. `chain_id` and `order_hash` may be absent.
    """

    chain_id: ChainId | UnsetType = UNSET
    order_hash: str | UnsetType = UNSET


class OtcPart(Struct, frozen=True):
    """Amounts of a fill of an OTC order, raw units: given by the taker, and given by the maker."""

    taker_amount: int
    maker_amount: int


decode_hand_over = decoder(OtcHandOver, bytes_max=limits.JSON_BYTES_MAX)


def order_of(wish: OtcWish, now_s: int, random32: bytes) -> RfqOrder:
    """The OTC order that the maker signs for a wish.

    Args:
        now_s: the start of the order's life, Unix seconds.
        random32: random bytes for the nonce.
    """
    return RfqOrder(
        nonce_and_meta=pack_otc(wish.maker, int.from_bytes(random32[:_NONCE_BYTES], "big")),
        expiry=now_s + wish.life_s if wish.life_s else 0,
        maker_asset=wish.src.address,
        taker_asset=wish.dest.address,
        maker=wish.maker,
        taker=wish.taker,
        maker_amount=wish.src_amount,
        taker_amount=wish.dest_amount,
    )


# --- On the wire --------------------------------------------------------------------------------------


def hand_over_of(signed: SignedOtc, chain_id: int) -> OtcHandOver:
    """The signed OTC order in the JSON form that a maker hands to a taker."""
    identity = {"chainId": chain_id, "orderHash": to_hex(signed.order_hash)}
    return msgspec.convert(msgspec.to_builtins(body_of(signed)) | identity, OtcHandOver)


def body_of(signed: SignedOtc) -> OtcOrderBody:
    """The signed OTC order in the form in which it is posted to a venue."""
    permit = to_hex(signed.permit) if signed.permit else None
    more = {"signature": to_hex(signed.signature), "permitMakerAsset": permit}
    return msgspec.convert(RFQ_ORDER.to_wire(signed.order) | more, OtcOrderBody)


def signed_of(body: OtcOrderBody, contract: SigningContract) -> SignedOtc:
    """The signed order in a request's or file's body, with its hash computed for this contract.

    Raises:
        InvalidInput: a member is invalid; the error names it.
    """
    members = msgspec.to_builtins(body)
    order = RFQ_ORDER.from_wire({name: members[name] for name in RFQ_ORDER.member_names})
    return SignedOtc(
        order,
        otc_order_hash(contract, order),
        parse_hex(body.signature, "signature"),
        parse_hex(body.permit_maker_asset or "0x", "permitMakerAsset"),
    )


def party(text: str) -> bytes:
    """Parse an address of a venue's answer to 20 bytes; the zero address if the text is invalid."""
    try:
        return parse_address(text)
    except InvalidInput:
        return ZERO_ADDRESS


# --- Parts --------------------------------------------------------------------------------------------


def rest_of(order: RfqOrder, left: int) -> OtcPart:
    """The largest possible fill of an OTC order.

    Args:
        left: unfilled raw units of the maker's amount; above zero.

    Raises:
        ChainError: no fill is possible: one raw unit of the taker's asset buys more than the unfilled amount.
    """
    most = min(order.taker_amount, ((left + 1) * order.taker_amount - 1) // order.maker_amount)
    maker_amount = mul_div_down(most, order.maker_amount, order.taker_amount)
    if maker_amount == 0:
        raise ChainError("the unfilled part of the order is worth less than one unit of the given token")
    return _cheapest(order, maker_amount)


def part_given(order: RfqOrder, left: int, given: int, gives: TradedToken, field: str) -> OtcPart:
    """The fill in which the taker gives at most `given` raw units.

    The taker gives the smallest amount that buys the same maker amount as `given`.

    Args:
        left: unfilled raw units of the maker's amount.
        gives: the taker's asset, for errors.
        field: the option that holds the amount, for errors.

    Raises:
        ChainError: `given` buys more than the unfilled amount, or buys nothing.
    """
    maker_amount = mul_div_down(given, order.maker_amount, order.taker_amount)
    if given > order.taker_amount or maker_amount > left:
        most = rest_of(order, left)
        raise ChainError(
            f"{field}: too much: {amount_text(most.taker_amount, gives)} at most can be given, "
            f"got {amount_text(given, gives)}"
        )
    if maker_amount == 0:
        raise ChainError(f"{field}: too little: {amount_text(given, gives)} brings nothing")
    return _cheapest(order, maker_amount)


def part_received(order: RfqOrder, left: int, wanted: int, gets: TradedToken, field: str) -> OtcPart:
    """The smallest fill in which the taker receives at least `wanted` raw units.

    Args:
        left: unfilled raw units of the maker's amount.
        gets: the maker's asset, for errors.
        field: the option that holds the amount, for errors.

    Raises:
        ChainError: `wanted` is more than the largest possible fill gives.
    """
    most = rest_of(order, left)
    if wanted > most.maker_amount:
        raise ChainError(
            f"{field}: too much: {amount_text(most.maker_amount, gets)} at most can be had, "
            f"got {amount_text(wanted, gets)}"
        )
    given = mul_div_up(wanted, order.taker_amount, order.maker_amount)
    return OtcPart(given, mul_div_down(given, order.maker_amount, order.taker_amount))


def _cheapest(order: RfqOrder, maker_amount: int) -> OtcPart:
    """The fill in which the taker gives the smallest amount that buys exactly `maker_amount`.

    Args:
        maker_amount: raw units of the maker's asset; an amount that at least one taker amount buys exactly.
    """
    return OtcPart(mul_div_up(maker_amount, order.taker_amount, order.maker_amount), maker_amount)
