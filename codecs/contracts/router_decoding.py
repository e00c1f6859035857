"""Decode calldata of Router swaps, so that a signer can compare it with the requested swap.

Only the encoding that `router_calldata` writes is accepted: the contract would accept others too, and a
reader that differs from the contract by one offset would show another swap than the executed one.

Source: contracts/Router.sol; Contract ABI specification of Solidity, "Use of Dynamic Types".
"""

from collections.abc import Iterator

from ...config import limits
from ...config.errors import InvalidInput
from ..eip712_orders.rfq import RfqOrder
from ..messages.vocabulary import Side
from .abi import SELECTOR_BYTES, WORD_BYTES
from .calldata import OrderInfo
from .router_calldata import SWAP_EXACT_IN, SWAP_EXACT_OUT, Hop, RouterSwap, swap_exact_in, swap_exact_out

_SIDES = {SWAP_EXACT_IN: Side.SELL, SWAP_EXACT_OUT: Side.BUY}
_ENCODERS = {Side.SELL: swap_exact_in, Side.BUY: swap_exact_out}


def decode_swap(data: bytes, field: str = "data") -> tuple[Side, RouterSwap]:
    """Decode the calldata of a Router swap.

    Args:
        data: calldata of the Router, selector included.
        field: named in errors.

    Returns:
        SELL for `swapExactIn`, BUY for `swapExactOut`; and the swap's arguments.

    Raises:
        InvalidInput: another function, or not the encoding of a swap.

    Guarantees: encoding the result again gives the same bytes.
    """
    if len(data) > limits.RELAY_DATA_BYTES_MAX:
        expected = f"at most {limits.RELAY_DATA_BYTES_MAX} bytes"
        raise InvalidInput(field=field, expected=expected, got=f"{len(data)} bytes")
    side = _SIDES.get(data[:SELECTOR_BYTES])
    if side is None:
        got = f"0x{data[:SELECTOR_BYTES].hex()}"
        raise InvalidInput(field=field, expected="swapExactIn or swapExactOut of the Router", got=got)
    # Encoded again and compared: the contract would read other encodings too, which could hide another swap.
    try:
        swap = _swap(_Tuple(_Reader(data), SELECTOR_BYTES).inner(0))
        if _ENCODERS[side](swap) == data:
            return side, swap
    except _OutsideError:
        pass
    raise InvalidInput(field=field, expected="a swap, encoded as the Router's ABI says", got="other bytes")


class _OutsideError(Exception):
    """Malformed calldata: an offset points past the end, values overlap, or an address has over 20 bytes."""


class _Reader:
    """Reader of calldata that bounds the work of decoding.

    `read` raises _OutsideError for bytes past the end, and once all reads together exceed the calldata's
    length, as reads of overlapping values do.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._left = len(data)

    def read(self, at: int, length: int) -> bytes:
        self._left -= length
        if self._left < 0 or at + length > len(self._data):
            raise _OutsideError
        return self._data[at : at + length]


class _Tuple:
    """Reader of an ABI-encoded tuple's members; offsets count from the tuple's start."""

    def __init__(self, reader: _Reader, start: int) -> None:
        self._reader = reader
        self._start = start

    def uint(self, word: int) -> int:
        return int.from_bytes(self._reader.read(self._start + word * WORD_BYTES, WORD_BYTES), "big")

    def address(self, word: int) -> bytes:
        number = self.uint(word)
        if number >> 160:
            raise _OutsideError
        return number.to_bytes(20, "big")

    def inner(self, word: int) -> "_Tuple":
        return _Tuple(self._reader, self._start + self.uint(word))

    def bytes_of(self, word: int) -> bytes:
        tail = self.inner(word)
        return self._reader.read(tail._start + WORD_BYTES, tail.uint(0))

    def tuples(self, word: int) -> Iterator["_Tuple"]:
        """Iterate over the dynamic tuples of the array whose offset is in member number `word`."""
        tail = self.inner(word)
        elements = _Tuple(self._reader, tail._start + WORD_BYTES)
        return (elements.inner(at) for at in range(tail.uint(0)))


def _swap(words: _Tuple) -> RouterSwap:
    return RouterSwap(
        src_token=words.address(0),
        dest_token=words.address(1),
        src_amount=words.uint(2),
        dest_amount=words.uint(3),
        expected_amount=words.uint(4),
        receiver=words.address(5),
        deadline=words.uint(6),
        partner_and_fee=words.uint(7),
        permit=words.bytes_of(8),
        hops=tuple([_hop(hop) for hop in words.tuples(9)]),
    )


def _hop(words: _Tuple) -> Hop:
    return Hop(
        taker_amount=words.uint(0),
        maker_amount=words.uint(1),
        orders=tuple([_order_info(info) for info in words.tuples(2)]),
    )


def _order_info(words: _Tuple) -> OrderInfo:
    order = RfqOrder(
        nonce_and_meta=words.uint(0),
        expiry=words.uint(1),
        maker_asset=words.address(2),
        taker_asset=words.address(3),
        maker=words.address(4),
        taker=words.address(5),
        maker_amount=words.uint(6),
        taker_amount=words.uint(7),
    )
    return OrderInfo(
        order=order,
        signature=words.bytes_of(8),
        taker_fill_amount=words.uint(9),
        permit_taker_asset=words.bytes_of(10),
        permit_maker_asset=words.bytes_of(11),
    )
