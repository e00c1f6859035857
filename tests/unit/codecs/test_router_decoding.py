"""Swaps are read back from calldata; only their one canonical encoding is accepted."""

import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.codecs.contracts.calldata import OrderInfo
from cambist.codecs.contracts.router_calldata import Hop, RouterSwap, owed, swap_exact_in, swap_exact_out
from cambist.codecs.contracts.router_decoding import decode_swap
from cambist.codecs.eip712_orders.rfq import RFQ_ORDER
from cambist.codecs.messages.vocabulary import Side
from cambist.config import limits
from cambist.config.errors import InvalidInput
from support.typed_data import orders

address = st.binary(min_size=20, max_size=20)
uint256 = st.integers(0, 2**256 - 1)
infos = st.builds(
    OrderInfo, orders(RFQ_ORDER), st.binary(max_size=100), uint256, st.binary(max_size=70), st.binary()
)
hops = st.builds(
    Hop, taker_amount=uint256, maker_amount=uint256, orders=st.lists(infos, max_size=3).map(tuple)
)
swaps = st.builds(
    RouterSwap,
    src_token=address,
    dest_token=address,
    src_amount=uint256,
    dest_amount=uint256,
    expected_amount=uint256,
    receiver=address,
    deadline=uint256,
    partner_and_fee=uint256,
    permit=st.binary(max_size=256),
    hops=st.lists(hops, max_size=3).map(tuple),
)
PLAIN = RouterSwap(
    src_token=b"\1" * 20,
    dest_token=b"\2" * 20,
    src_amount=3,
    dest_amount=4,
    expected_amount=5,
    receiver=bytes(20),
    deadline=6,
    partner_and_fee=7,
    permit=b"",
    hops=(Hop(orders=()),),
)


@given(swaps)
def test_what_is_encoded_is_read_back(swap: RouterSwap) -> None:
    assert decode_swap(swap_exact_in(swap)) == (Side.SELL, swap)
    assert decode_swap(swap_exact_out(swap)) == (Side.BUY, swap)


@given(swaps, st.data())
def test_a_changed_byte_is_another_swap_or_none(swap: RouterSwap, data: st.DataObject) -> None:
    encoded = swap_exact_in(swap)
    at = data.draw(st.integers(0, len(encoded) - 1))
    changed = bytearray(encoded)
    changed[at] ^= data.draw(st.integers(1, 255))
    try:
        side, read = decode_swap(bytes(changed))
    except InvalidInput:
        return
    assert (swap_exact_in if side is Side.SELL else swap_exact_out)(read) == bytes(changed)
    assert (side, read) != (Side.SELL, swap)


@given(st.binary(max_size=2_000))
def test_bytes_of_no_meaning_are_refused(noise: bytes) -> None:
    with pytest.raises(InvalidInput):
        decode_swap(swap_exact_in(PLAIN)[:4] + noise)


@pytest.mark.parametrize(
    "data",
    [b"", b"\0" * 4, owed(b"\1" * 20, b"\2" * 20), swap_exact_in(PLAIN)[:-1], swap_exact_in(PLAIN) + b"\0"],
    ids=["nothing", "an unknown function", "another function", "a byte less", "a byte more"],
)
def test_what_is_no_swap_is_refused_by_name(data: bytes) -> None:
    with pytest.raises(InvalidInput, match=r"txParams\.data: expected"):
        decode_swap(data, "txParams.data")


def test_an_encoding_that_points_twice_at_the_same_words_is_refused() -> None:
    """The contract would read such an encoding, but its two readers could be made to differ."""
    encoded = bytearray(swap_exact_in(msgspec.structs.replace(PLAIN, hops=(Hop(orders=()), Hop(orders=())))))
    second_offset = encoded.rindex((2 * 32 + 4 * 32).to_bytes(32, "big"))
    encoded[second_offset : second_offset + 32] = (2 * 32).to_bytes(32, "big")
    with pytest.raises(InvalidInput):
        decode_swap(bytes(encoded))


def test_what_refers_to_itself_over_and_over_is_refused_at_once() -> None:
    word = (0).to_bytes(32, "big")
    many = (3_000).to_bytes(32, "big")
    began = time.process_time()
    for filling in (word, many, (32).to_bytes(32, "big")):
        with pytest.raises(InvalidInput):
            decode_swap(swap_exact_in(PLAIN)[:4] + (32).to_bytes(32, "big") + filling * 3_000)
    assert time.process_time() - began < 2
    with pytest.raises(InvalidInput, match="at most"):
        decode_swap(bytes(limits.RELAY_DATA_BYTES_MAX + 1))


@pytest.mark.parametrize("word", [0, 1, 5])
def test_an_address_with_more_bits_is_none(word: int) -> None:
    data = bytearray(swap_exact_in(PLAIN))
    start = 4 + 32  # the selector and the offset of the swap
    data[start + 32 * word + 11] = 1
    with pytest.raises(InvalidInput):
        decode_swap(bytes(data))
