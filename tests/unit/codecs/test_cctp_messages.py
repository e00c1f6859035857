"""Bytes of CCTP V2 messages: each field at the index of Circle's tables; other forms are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.codecs.bridges.cctp import (
    CctpBurn,
    CctpMessage,
    pack_burn,
    pack_message,
    parse_burn,
    parse_message,
)
from cambist.config.errors import InvalidInput
from cambist.config.limits import CCTP_BODY_BYTES_MAX

word = st.binary(min_size=32, max_size=32)
uint256 = st.integers(0, 2**256 - 1)
uint32 = st.integers(0, 2**32 - 1)
BURNS = st.builds(
    CctpBurn, word, word, uint256, word, uint256, uint256, uint256, st.binary(max_size=100)
)  # fmt: skip
MESSAGES = st.builds(
    CctpMessage, uint32, uint32, word, word, word, word, uint32, uint32, st.binary(max_size=300)
)


@given(BURNS)
def test_the_fields_of_a_burn_are_at_their_indices(burn: CctpBurn) -> None:
    raw = pack_burn(burn)
    assert raw[:4] == b"\0\0\0\1"
    assert (raw[4:36], raw[36:68], raw[100:132]) == (
        burn.burn_token,
        burn.mint_recipient,
        burn.message_sender,
    )
    numbers = [int.from_bytes(raw[at : at + 32], "big") for at in (68, 132, 164, 196)]
    assert numbers == [burn.amount, burn.max_fee, burn.fee_executed, burn.expiration_block]
    assert raw[228:] == burn.hook_data
    assert parse_burn(raw) == burn


@given(MESSAGES)
def test_the_fields_of_a_message_are_at_their_indices(message: CctpMessage) -> None:
    raw = pack_message(message)
    assert raw[:4] == b"\0\0\0\1"
    numbers = [int.from_bytes(raw[at : at + 4], "big") for at in (4, 8, 140, 144)]
    assert numbers == [
        message.source_domain,
        message.destination_domain,
        message.min_finality,
        message.finality_executed,
    ]
    words = [raw[at : at + 32] for at in (12, 44, 76, 108)]
    assert words == [message.nonce, message.sender, message.recipient, message.destination_caller]
    assert raw[148:] == message.body
    assert parse_message(raw) == message


@pytest.mark.parametrize("version", [0, 2, 2**32 - 1])
def test_another_version_is_refused(version: int) -> None:
    with pytest.raises(InvalidInput, match="CCTP message: expected version 1"):
        parse_message(version.to_bytes(4, "big") + bytes(144))
    with pytest.raises(InvalidInput, match="CCTP burn: expected version 1"):
        parse_burn(version.to_bytes(4, "big") + bytes(224))


def test_lengths_are_bounded() -> None:
    one = b"\0\0\0\1"
    assert parse_message(one + bytes(144)).body == b""
    assert parse_burn(one + bytes(224)).hook_data == b""
    assert len(parse_message(one + bytes(144 + CCTP_BODY_BYTES_MAX)).body) == CCTP_BODY_BYTES_MAX
    for length in (0, 4, 147, 149 + CCTP_BODY_BYTES_MAX):
        with pytest.raises(InvalidInput, match="CCTP message: expected 148 to"):
            parse_message((one + bytes(length))[:length])
    for length in (0, 227, 1 + CCTP_BODY_BYTES_MAX):
        with pytest.raises(InvalidInput, match="CCTP burn: expected 228 to"):
            parse_burn((one + bytes(length))[:length])
