"""The two signature forms: each into the other, and every refusal by name."""

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.config.errors import InvalidSignature
from cambist.crypto.keccak import keccak256
from cambist.crypto.secp256k1 import CURVE_ORDER, HALF_ORDER, SigningKey
from cambist.crypto.signatures import parse_signature, parse_signature_text, signer, to_65, to_compact64

DIGEST = keccak256(b"a message")
KEY = SigningKey(keccak256(b"a key"))
RS, RECOVERY_ID = KEY.sign(DIGEST)


def test_vector_in_both_forms(vectors: dict[str, Any]) -> None:
    vector = vectors["signature"]
    digest32 = bytes.fromhex(vector["hash"][2:])
    long, compact = (bytes.fromhex(vector[name][2:]) for name in ("sig65", "sig64"))
    assert parse_signature(long) == parse_signature(compact)
    assert to_65(*parse_signature(compact)) == long
    assert to_compact64(*parse_signature(long)) == compact
    assert signer(digest32, long) == signer(digest32, compact) == bytes.fromhex(vector["address"][2:])


def test_high_s_vector_is_refused(vectors: dict[str, Any]) -> None:
    with pytest.raises(InvalidSignature, match="s is in the upper half"):
        parse_signature(bytes.fromhex(vectors["signature"]["highS"][2:]))


def test_public_order_signatures(vectors: dict[str, Any]) -> None:
    for order in vectors["rfq"]["orders"]:
        if "signature" in order:
            digest32 = bytes.fromhex(order["orderHash"][2:])
            recovered = signer(digest32, parse_signature_text(order["signature"]))
            assert recovered == bytes.fromhex(order["recovered"][2:])
            assert (recovered == bytes.fromhex(order["order"]["maker"][2:])) is order["valid"]


@pytest.mark.parametrize("v", [0, 1, 27, 28])
def test_each_v_that_clients_send(v: int) -> None:
    assert parse_signature(RS + bytes([v])) == (RS, v % 27)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "expected 65 bytes, or 64"),
        (RS[:63], "got 63"),
        (RS + bytes(2), "got 66"),
        (RS + b"\x02", "v: expected 27, 28, 0 or 1, got 2"),
        (RS + b"\x25", "v: expected"),
        (bytes(32) + RS[32:] + b"\x1b", "r is zero"),
        (CURVE_ORDER.to_bytes(32, "big") + RS[32:] + b"\x1b", "r is zero or not below"),
        (RS[:32] + bytes(32) + b"\x1b", "s is zero"),
        (RS[:32] + (HALF_ORDER + 1).to_bytes(32, "big") + b"\x1b", "upper half"),
        (RS[:32] + CURVE_ORDER.to_bytes(32, "big") + b"\x1b", "out of range"),
        (bytes(64), "r is zero"),
        (RS[:32] + bytes(32), "s is zero"),
        (RS[:32] + HALF_ORDER.to_bytes(32, "big")[:-1] + b"\xff", "upper half"),
    ],
)
def test_refusals(raw: bytes, reason: str) -> None:
    with pytest.raises(InvalidSignature, match=reason) as refusal:
        parse_signature(raw)
    assert refusal.value.detail.startswith("Invalid signature")


@pytest.mark.parametrize("text", ["", "0", "0x0", "0xzz", "0x1 2", None, 5, "0x" + "é" * 2, "1234", b"0x12"])
def test_text_that_is_no_hexadecimal(text: object) -> None:
    with pytest.raises(InvalidSignature, match="0x and an even number of hexadecimal digits"):
        parse_signature_text(text)


def test_text_of_any_length_and_case() -> None:
    assert parse_signature_text("0x") == b""
    assert parse_signature_text("0XAb") == b"\xab"


@given(st.binary(max_size=70))
def test_any_bytes_give_an_address_or_our_refusal(raw: bytes) -> None:
    with contextlib.suppress(InvalidSignature):
        assert len(signer(DIGEST, raw)) == 20


@given(st.binary(min_size=32, max_size=32))
def test_both_forms_carry_the_same_signature(digest32: bytes) -> None:
    signature = KEY.sign(digest32)
    assert parse_signature(to_65(*signature)) == parse_signature(to_compact64(*signature)) == signature


@given(st.integers(0, 63), st.integers(1, 255))
def test_a_changed_byte_recovers_somebody_else_or_is_refused(at: int, change: int) -> None:
    raw = bytearray(to_65(RS, RECOVERY_ID))
    raw[at] ^= change
    with contextlib.suppress(InvalidSignature):
        assert signer(DIGEST, bytes(raw)) != KEY.address
