"""Decode logs of our contracts and of ERC-20 by hand: about 1 us, against 19 us with eth-abi.

A log's first topic is the hash of its event's signature; the indexed members follow as topics, the others
as words of the data. Every member of the events below is one word, so the logs of an event have one size; a
log of another size is refused.

Addresses are 20 bytes, amounts raw units, hashes 32 bytes.

Source: Contract ABI specification of Solidity, "Events"; interop.md section 1; EIP-20.
"""

import struct
from collections.abc import Callable, Sequence
from typing import NoReturn

import msgspec

from ...config.errors import InvalidInput
from ...crypto.keccak import keccak256
from .abi import WORD_BYTES


class OrderFilled(msgspec.Struct, frozen=True, gc=False):
    """Event of Rfq: an order was filled in part or whole. `taker` is the receiver of the maker's tokens."""

    order_hash: bytes
    maker: bytes
    maker_asset: bytes
    maker_amount: int
    taker: bytes
    taker_asset: bytes
    taker_amount: int


class OrderCancelled(msgspec.Struct, frozen=True, gc=False):
    """Event of Rfq: the maker cancelled an order."""

    order_hash: bytes
    maker: bytes


class OrdersCancelledUntil(msgspec.Struct, frozen=True, gc=False):
    """Event of Rfq: the maker cancelled all its orders that expire at or before `expiry` or never expire.

    Attributes:
        expiry: Unix seconds.
    """

    maker: bytes
    expiry: int


class OrderSettled(msgspec.Struct, frozen=True, gc=False):
    """Event of Delta: a part of an order, or all of it, was settled.

    Attributes:
        spent: raw units of `src_token` that this settlement spent.
        received: raw units of `dest_token` that the order's beneficiary got by this settlement.
        filled: total of all settlements of the order so far: raw units of `src_token` for a sale, raw units
            of `dest_token` for a purchase, number of slices for a TWAP.
        is_closed: whether no further part of the order can be settled.
    """

    order_hash: bytes
    owner: bytes
    nonce: int
    src_token: bytes
    dest_token: bytes
    spent: int
    received: int
    filled: int
    is_closed: bool


class OrderBridged(msgspec.Struct, frozen=True, gc=False):
    """Event of Delta: a settlement handed the bought tokens to a bridge.

    Attributes:
        protocol_selector: selector of the order's bridge, 4 bytes.
        amount: raw units of the order's `dest_token` that entered the bridge.
        output: least raw units of `output_token` that the bridge promised to deliver.
        id: the bridge's number of the transfer; 0 for a bridge without numbers.
    """

    order_hash: bytes
    protocol_selector: bytes
    destination_chain_id: int
    output_token: bytes
    amount: int
    output: int
    id: int


class FeeAccrued(msgspec.Struct, frozen=True, gc=False):
    """Event of Delta: `receiver` earned a fee or a share of surplus.

    Attributes:
        amount: raw units of `token`.
        is_surplus: whether the amount is a share of surplus, not a fee.
    """

    order_hash: bytes
    receiver: bytes
    token: bytes
    amount: int
    is_surplus: bool


class NonceInvalidated(msgspec.Struct, frozen=True, gc=False):
    """Event of Delta: an owner invalidated a nonce, so that no order with the nonce can be settled."""

    owner: bytes
    nonce: int


class OrderPreSigned(msgspec.Struct, frozen=True, gc=False):
    """Event of Delta: an owner signed an order by a transaction, or withdrew that signature.

    Attributes:
        is_signed: False for a withdrawal.
    """

    order_hash: bytes
    owner: bytes
    is_signed: bool


class Credited(msgspec.Struct, frozen=True, gc=False):
    """Event of FeeVault: a fee was credited to `account`."""

    account: bytes
    token: bytes
    amount: int


class Claimed(msgspec.Struct, frozen=True, gc=False):
    """Event of FeeVault: the vault sent fees of `account`, in one token, to `receiver`."""

    account: bytes
    token: bytes
    receiver: bytes
    amount: int


class Swapped(msgspec.Struct, frozen=True, gc=False):
    """Event of Router: a swap was made.

    Attributes:
        spent: raw units of `src_token`: the amount sold, or the cost of a purchase including fee and surplus
            shares.
        received: raw units of `dest_token` that `receiver` got.
        fee: raw units of `dest_token` for a sale (exact input), of `src_token` for a purchase (exact output).
        share: the partner's share of the surplus, in the token of `fee`; the protocol gets the same amount.
    """

    sender: bytes
    receiver: bytes
    src_token: bytes
    dest_token: bytes
    spent: int
    received: int
    fee: int
    share: int


class Transfer(msgspec.Struct, frozen=True, gc=False):
    """Event of an ERC-20 token: `owner` sent `amount` to `receiver`. The log's address is the token."""

    owner: bytes
    receiver: bytes
    amount: int


class Approval(msgspec.Struct, frozen=True, gc=False):
    """Event of an ERC-20 token: `spender` may now take up to `amount` of `owner`'s tokens.

    The log's address is the token.
    """

    owner: bytes
    spender: bytes
    amount: int


ContractEvent = (
    OrderFilled
    | OrderCancelled
    | OrdersCancelledUntil
    | OrderSettled
    | OrderBridged
    | FeeAccrued
    | NonceInvalidated
    | OrderPreSigned
    | Credited
    | Claimed
    | Swapped
    | Transfer
    | Approval
)


def topic(signature: str) -> bytes:
    """Compute the first topic of an event's logs, 32 bytes, the hash of the event's signature.

    Args:
        signature: e.g. `Transfer(address,address,uint256)`.
    """
    return keccak256(signature.encode())


ORDER_FILLED = topic("OrderFilled(bytes32,address,address,uint256,address,address,uint256)")
ORDER_CANCELLED = topic("OrderCancelled(bytes32,address)")
ORDERS_CANCELLED_UNTIL = topic("OrdersCancelledUntil(address,uint128)")
ORDER_SETTLED = topic("OrderSettled(bytes32,address,uint256,address,address,uint256,uint256,uint256,bool)")
ORDER_BRIDGED = topic("OrderBridged(bytes32,bytes4,uint256,address,uint256,uint256,uint256)")
FEE_ACCRUED = topic("FeeAccrued(bytes32,address,address,uint256,bool)")
NONCE_INVALIDATED = topic("NonceInvalidated(address,uint256)")
ORDER_PRE_SIGNED = topic("OrderPreSigned(bytes32,address,bool)")
NATIVE_DEPOSITED = topic("NativeDeposited(address,uint256)")
NATIVE_WITHDRAWN = topic("NativeWithdrawn(address,address,uint256)")
CREDITED = topic("Credited(address,address,uint256)")
CLAIMED = topic("Claimed(address,address,address,uint256)")
SWAPPED = topic("Swapped(address,address,address,address,uint256,uint256,uint256,uint256)")
TRANSFER = topic("Transfer(address,address,uint256)")
APPROVAL = topic("Approval(address,address,uint256)")

_PAD = bytes(12)  # in front of an address
_PAD_4 = bytes(28)  # behind four bytes
_BOOLS = {bytes(31) + b"\0": False, bytes(31) + b"\1": True}
_uint = int.from_bytes

# The words of a log: its first topic, which is skipped, the indexed members, the other members. A is an
# address with its padding, W any word.
_A, _W, _TOPIC = "12s20s", "32s", "32x"
_WA = struct.Struct(_TOPIC + _W + _A).unpack
_WAW = struct.Struct(_TOPIC + _W + _A + _W).unpack
_AW = struct.Struct(_TOPIC + _A + _W).unpack
_AAW = struct.Struct(_TOPIC + _A + _A + _W).unpack
_AAAW = struct.Struct(_TOPIC + _A + _A + _A + _W).unpack
_AAAAWWWW = struct.Struct(_TOPIC + 4 * _A + 4 * _W).unpack
_WAAWW = struct.Struct(_TOPIC + _W + _A + _A + _W + _W).unpack
_FILLED = struct.Struct(_TOPIC + _W + _A + _A + _A + _W + _A + _W).unpack
_BRIDGED = struct.Struct(_TOPIC + _W + "4s28s" + _W + _A + 3 * _W).unpack
_SETTLED = struct.Struct(_TOPIC + _W + _A + _W + _A + _A + 4 * _W).unpack


def decode_event(topics: Sequence[bytes], data: bytes) -> ContractEvent | None:
    """Decode a log to the event that it records.

    Args:
        topics: all topics of the log, 32 bytes each; the hash of the event's signature is the first.
        data: the words of the members that are not indexed.

    Returns:
        The event; None for an event that this module does not know.

    Raises:
        InvalidInput: the log of a known event is malformed: a wrong number of topics, a wrong size, or an
            address or a bool with bits set beyond its width. (An NFT's Transfer is such a log.)
    """
    known = DECODERS.get(topics[0]) if topics else None
    if known is None:
        return None
    topic_count, word_bytes, decode = known
    words = b"".join(topics) + data
    # Both counts are needed: the total is the same if a member is in the data instead of the topics, as in an
    # event of the same signature that indexes other members.
    if len(topics) != topic_count or len(words) != word_bytes:
        _refuse(
            decode,
            f"{topic_count} topics and {word_bytes - topic_count * WORD_BYTES} bytes of data",
            f"{len(topics)} and {len(data)}",
        )
    return decode(words)


def _order_filled(words: bytes) -> OrderFilled:
    (order_hash, pad_1, maker, pad_2, taker, pad_3, maker_asset, maker_amount, pad_4, taker_asset,
     taker_amount) = _FILLED(words)  # fmt: skip
    if not pad_1 == pad_2 == pad_3 == pad_4 == _PAD:
        _refuse_address(_order_filled)
    return OrderFilled(
        order_hash=order_hash,
        maker=maker,
        maker_asset=maker_asset,
        maker_amount=_uint(maker_amount),
        taker=taker,
        taker_asset=taker_asset,
        taker_amount=_uint(taker_amount),
    )


def _order_cancelled(words: bytes) -> OrderCancelled:
    order_hash, pad, maker = _WA(words)
    if pad != _PAD:
        _refuse_address(_order_cancelled)
    return OrderCancelled(order_hash, maker)


def _orders_cancelled_until(words: bytes) -> OrdersCancelledUntil:
    pad, maker, expiry = _AW(words)
    if pad != _PAD:
        _refuse_address(_orders_cancelled_until)
    return OrdersCancelledUntil(maker, _uint(expiry))


def _order_settled(words: bytes) -> OrderSettled:
    (order_hash, pad_1, owner, nonce, pad_2, src_token, pad_3, dest_token, spent, received, filled,
     closed) = _SETTLED(words)  # fmt: skip
    if not pad_1 == pad_2 == pad_3 == _PAD:
        _refuse_address(_order_settled)
    return OrderSettled(
        order_hash=order_hash,
        owner=owner,
        nonce=_uint(nonce),
        src_token=src_token,
        dest_token=dest_token,
        spent=_uint(spent),
        received=_uint(received),
        filled=_uint(filled),
        is_closed=_bool(_order_settled, closed),
    )


def _order_bridged(words: bytes) -> OrderBridged:
    order_hash, selector4, pad_1, destination, pad_2, token, amount, output, bridge_id = _BRIDGED(words)
    if pad_2 != _PAD:
        _refuse_address(_order_bridged)
    if pad_1 != _PAD_4:
        _refuse(_order_bridged, "4 bytes with 28 zero bytes behind them", "others")
    return OrderBridged(
        order_hash=order_hash,
        protocol_selector=selector4,
        destination_chain_id=_uint(destination),
        output_token=token,
        amount=_uint(amount),
        output=_uint(output),
        id=_uint(bridge_id),
    )


def _fee_accrued(words: bytes) -> FeeAccrued:
    order_hash, pad_1, receiver, pad_2, token, amount, surplus = _WAAWW(words)
    if not pad_1 == pad_2 == _PAD:
        _refuse_address(_fee_accrued)
    return FeeAccrued(order_hash, receiver, token, _uint(amount), _bool(_fee_accrued, surplus))


def _nonce_invalidated(words: bytes) -> NonceInvalidated:
    pad, owner, nonce = _AW(words)
    if pad != _PAD:
        _refuse_address(_nonce_invalidated)
    return NonceInvalidated(owner, _uint(nonce))


def _order_pre_signed(words: bytes) -> OrderPreSigned:
    order_hash, pad, owner, signed = _WAW(words)
    if pad != _PAD:
        _refuse_address(_order_pre_signed)
    return OrderPreSigned(order_hash, owner, _bool(_order_pre_signed, signed))


def _credited(words: bytes) -> Credited:
    pad_1, account, pad_2, token, amount = _AAW(words)
    if not pad_1 == pad_2 == _PAD:
        _refuse_address(_credited)
    return Credited(account, token, _uint(amount))


def _claimed(words: bytes) -> Claimed:
    pad_1, account, pad_2, token, pad_3, receiver, amount = _AAAW(words)
    if not pad_1 == pad_2 == pad_3 == _PAD:
        _refuse_address(_claimed)
    return Claimed(account, token, receiver, _uint(amount))


def _swapped(words: bytes) -> Swapped:
    (pad_1, sender, pad_2, receiver, pad_3, src_token, pad_4, dest_token, spent, received, fee,
     share) = _AAAAWWWW(words)  # fmt: skip
    if not pad_1 == pad_2 == pad_3 == pad_4 == _PAD:
        _refuse_address(_swapped)
    return Swapped(
        sender=sender,
        receiver=receiver,
        src_token=src_token,
        dest_token=dest_token,
        spent=_uint(spent),
        received=_uint(received),
        fee=_uint(fee),
        share=_uint(share),
    )


def _transfer(words: bytes) -> Transfer:
    pad_1, owner, pad_2, receiver, amount = _AAW(words)
    if not pad_1 == pad_2 == _PAD:
        _refuse_address(_transfer)
    return Transfer(owner, receiver, _uint(amount))


def _approval(words: bytes) -> Approval:
    pad_1, owner, pad_2, spender, amount = _AAW(words)
    if not pad_1 == pad_2 == _PAD:
        _refuse_address(_approval)
    return Approval(owner, spender, _uint(amount))


_Decoder = Callable[[bytes], ContractEvent]

DECODERS: dict[bytes, tuple[int, int, _Decoder]] = {
    # first topic: (number of topics, bytes of topics and data, reader of both)
    ORDER_FILLED: (4, 8 * WORD_BYTES, _order_filled),
    ORDER_CANCELLED: (3, 3 * WORD_BYTES, _order_cancelled),
    ORDERS_CANCELLED_UNTIL: (2, 3 * WORD_BYTES, _orders_cancelled_until),
    ORDER_SETTLED: (3, 10 * WORD_BYTES, _order_settled),
    ORDER_BRIDGED: (2, 8 * WORD_BYTES, _order_bridged),
    FEE_ACCRUED: (3, 6 * WORD_BYTES, _fee_accrued),
    NONCE_INVALIDATED: (2, 3 * WORD_BYTES, _nonce_invalidated),
    ORDER_PRE_SIGNED: (3, 4 * WORD_BYTES, _order_pre_signed),
    CREDITED: (3, 4 * WORD_BYTES, _credited),
    CLAIMED: (3, 5 * WORD_BYTES, _claimed),
    SWAPPED: (3, 9 * WORD_BYTES, _swapped),
    TRANSFER: (3, 4 * WORD_BYTES, _transfer),
    APPROVAL: (3, 4 * WORD_BYTES, _approval),
}


def _bool(decoder: _Decoder, word: bytes) -> bool:
    value = _BOOLS.get(word)
    if value is None:
        _refuse(decoder, "a bool", f"0x{word.hex()}")
    return value


def _refuse_address(decoder: _Decoder) -> NoReturn:
    _refuse(decoder, "addresses with 12 zero bytes before them", "others")


def _refuse(decoder: _Decoder, expected: str, got: str) -> NoReturn:
    name = decoder.__name__.removeprefix("_").replace("_", " ").title().replace(" ", "")
    raise InvalidInput(field=f"event {name}", expected=expected, got=got)
