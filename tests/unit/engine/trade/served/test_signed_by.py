"""Verdicts on signatures by the chain's answers: for orders with and without pre-signatures."""

import pytest

from cambist.config.errors import InvalidSignature
from cambist.crypto.addresses import to_checksum
from cambist.crypto.eip1271 import MAGIC_VALUE4, is_valid_signature_calldata
from cambist.crypto.hexadecimal import to_hex
from cambist.crypto.secp256k1 import SigningKey
from cambist.crypto.signatures import to_65, to_compact64
from cambist.engine.chain.port import EthCall
from cambist.engine.trade.served.signed_by import (
    SignatureState,
    read_signature,
    signature_call,
    signature_state,
)
from support.contracts.wrapped_signatures import FACTORY, wrapped_signature

KEY = SigningKey((7).to_bytes(32, "big"))
DIGEST, OWNER, ASKER = b"\xd1" * 32, b"\x0a" * 20, b"\xde" * 20
YES, NO, TRUE = MAGIC_VALUE4.ljust(32, b"\0"), bytes(32), bytes(31) + b"\1"
SIGNED, AWAITED = SignatureState.SIGNED, SignatureState.AWAITED
SOME = "0x" + "5a" * 70

_STATES = [
    # signature sent, awaited, code at the owner, the answer -> the state; None if refused
    ("0x", False, True, TRUE, SIGNED),
    ("0x", False, False, TRUE, SIGNED),
    ("0x", False, True, NO, AWAITED),
    ("0x", False, False, NO, None),
    (SOME, False, True, YES, SIGNED),
    (SOME, False, True, NO, None),
    (SOME, False, True, InvalidSignature("it reverts"), None),
    (SOME, False, False, YES, None),
    ("0x", True, True, YES, SIGNED),
    ("0x", True, True, TRUE, AWAITED),
    ("0x", True, True, InvalidSignature("it reverts"), AWAITED),
    ("0x", True, False, YES, None),
    (SOME, True, True, YES, SIGNED),
    (SOME, True, True, NO, AWAITED),
    (SOME, True, True, None, AWAITED),
    (SOME, True, False, NO, None),
]


@pytest.mark.parametrize(("text", "is_awaited", "has_code", "answer", "state"), _STATES)
def test_what_the_answer_makes_of_a_contracts_signature(
    text: str,
    is_awaited: bool,
    has_code: bool,
    answer: bytes | Exception | None,
    state: SignatureState | None,
) -> None:
    signature = read_signature(text, DIGEST, OWNER, is_awaited=is_awaited)
    if state is not None:
        assert signature_state(signature, answer, has_code=has_code) is state
        return
    with pytest.raises(InvalidSignature):
        signature_state(signature, answer, has_code=has_code)


@pytest.mark.parametrize("is_awaited", [False, True])
def test_the_owners_key_needs_no_chain(is_awaited: bool) -> None:
    rs64, recovery_id = KEY.sign(DIGEST)
    sent = to_hex(to_65(rs64, recovery_id))
    signature = read_signature(sent, DIGEST, KEY.address, is_awaited=is_awaited)
    assert signature_call(signature, ASKER) is None
    assert signature_state(signature, None, has_code=False) is SIGNED
    assert signature.kept == to_compact64(rs64, recovery_id)


@pytest.mark.parametrize("is_awaited", [False, True])
def test_the_key_of_somebody_else_is_named_where_no_contract_is(is_awaited: bool) -> None:
    sent = to_hex(to_65(*KEY.sign(DIGEST)))
    signature = read_signature(sent, DIGEST, OWNER, is_awaited=is_awaited)
    with pytest.raises(InvalidSignature, match="signed this, not the owner"):
        signature_state(signature, NO, has_code=False)


@pytest.mark.parametrize(
    ("text", "is_awaited", "asked"),
    [("0x", False, ASKER), ("0x", True, OWNER), (SOME, False, OWNER), (SOME, True, OWNER)],
)
def test_who_is_asked(text: str, is_awaited: bool, asked: bytes) -> None:
    call = signature_call(read_signature(text, DIGEST, OWNER, is_awaited=is_awaited), ASKER)
    assert isinstance(call, EthCall)
    assert call.to == asked
    if asked == OWNER:
        assert call.data == is_valid_signature_calldata(DIGEST, bytes.fromhex(text[2:]))
        assert call.sender == ASKER


def test_of_a_wrapped_signature_the_inner_one_counts() -> None:
    inner = b"\x5a" * 70
    signature = read_signature(to_hex(wrapped_signature(inner)), DIGEST, OWNER)
    assert (signature.kept, signature.is_by_key) == (inner, False)
    assert signature.wrapped is not None
    assert signature.wrapped.factory == FACTORY
    call = signature_call(signature, ASKER)
    assert call is not None
    assert (call.to, call.data) == (OWNER, is_valid_signature_calldata(DIGEST, inner))
    assert signature_state(signature, YES, has_code=True) is SIGNED
    with pytest.raises(InvalidSignature, match=f"deploy it first, by the call to {to_checksum(FACTORY)}"):
        signature_state(signature, YES, has_code=False)
    of_key = to_65(*KEY.sign(DIGEST))
    signed = read_signature(to_hex(wrapped_signature(of_key)), DIGEST, KEY.address)
    assert (signed.is_by_key, len(signed.kept)) == (True, 64)


@pytest.mark.parametrize(
    "broken",
    [
        wrapped_signature(b""),
        wrapped_signature(b"\x5a")[32:],
        wrapped_signature(b"\x5a" * 65)[:95] + b"\x41" + wrapped_signature(b"\x5a" * 65)[96:],
        bytes(200) + bytes.fromhex("6492" * 16),
        b"\xff" * 96 + bytes.fromhex("6492" * 16),
        bytes.fromhex("6492" * 16),
    ],
)
def test_what_is_not_wrapped_by_the_letter_is_a_contracts_signature_as_it_is(broken: bytes) -> None:
    signature = read_signature(to_hex(broken), DIGEST, OWNER)
    assert (signature.kept, signature.wrapped) == (broken, None)
