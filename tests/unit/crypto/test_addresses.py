"""Addresses: any case in, checksums out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.config.errors import InvalidInput
from cambist.crypto.addresses import checked_address, parse_address, to_checksum

EIP55 = [
    "0x52908400098527886E0F7030069857D2E4169EE7",
    "0xde709f2102306220921060314715629080e2fb77",
    "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
    "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
    "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
    "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
]


@pytest.mark.parametrize("text", EIP55)
def test_checksums_of_the_eip(text: str) -> None:
    assert to_checksum(parse_address(text.lower())) == text
    assert checked_address(text) == parse_address(text.lower())


def test_any_case_is_taken() -> None:
    text = EIP55[2]
    assert parse_address(text.swapcase().replace("0X", "0x")) == parse_address("0X" + text[2:].upper())
    assert checked_address(text.lower()) == checked_address("0x" + text[2:].upper()) == parse_address(text)


def test_a_wrong_checksum_is_refused_where_people_type_addresses() -> None:
    with pytest.raises(InvalidInput, match="rfq_contract: expected the EIP-55 checksum 0x5aAeb6"):
        checked_address(EIP55[2].swapcase().replace("0X", "0x"), "rfq_contract")


@pytest.mark.parametrize(
    "text",
    ["", "0x", "0x0", "0x" + "1" * 39, "0x" + "1" * 41, "1" * 42, "0x" + "g" * 40, None, 7, "0x" + "١" * 40],
)
def test_refusals_name_the_field(text: object) -> None:
    with pytest.raises(InvalidInput, match="owner: expected an address"):
        parse_address(text, "owner")


@given(st.binary(min_size=20, max_size=20))
def test_round_trip(address: bytes) -> None:
    assert checked_address(to_checksum(address)) == address
