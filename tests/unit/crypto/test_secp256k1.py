"""Signing keys and recovery: known answers, refusals, threads, and nothing of a key in sight."""

import copy
import pickle
import threading
from typing import Any

import pytest

from cambist.config.errors import InvalidSignature
from cambist.crypto import secp256k1
from cambist.crypto.addresses import to_checksum
from cambist.crypto.keccak import keccak256
from cambist.crypto.secp256k1 import CURVE_ORDER, HALF_ORDER, SigningKey, recover_address

KEY = SigningKey(bytes.fromhex("ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"))
DIGEST = keccak256(b"a message")


def test_address_of_a_public_test_key() -> None:
    assert to_checksum(KEY.address) == "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"


def test_signs_as_the_public_sdk_vector_does(vectors: dict[str, Any]) -> None:
    signer = vectors["rfq"]["signerOfSdkVectors"]
    order = vectors["rfq"]["orders"][2]
    key = SigningKey(bytes.fromhex(signer["privateKey"][2:]))
    rs64, recovery_id = key.sign(bytes.fromhex(order["orderHash"][2:]))
    assert "0x" + rs64.hex() + bytes([27 + recovery_id]).hex() == order["signature"]
    assert to_checksum(key.address) == signer["address"]


def test_signature_is_low_s_deterministic_and_recovers_its_key() -> None:
    for number in range(200):
        digest32 = keccak256(number.to_bytes(4, "big"))
        rs64, recovery_id = KEY.sign(digest32)
        assert KEY.sign(digest32) == (rs64, recovery_id)
        assert 0 < int.from_bytes(rs64[32:], "big") <= HALF_ORDER
        assert recover_address(digest32, rs64, recovery_id) == KEY.address


@pytest.mark.parametrize(
    "secret32",
    [
        b"",
        bytes(31),
        bytes(33),
        bytes(32),
        CURVE_ORDER.to_bytes(32, "big"),
        b"\xff" * 32,
    ],
    ids=["none", "31 bytes", "33 bytes", "zero", "the order", "above the order"],
)
def test_a_key_out_of_range_is_refused_without_being_repeated(secret32: bytes) -> None:
    with pytest.raises(ValueError, match="a private key is 32 bytes") as refusal:
        SigningKey(secret32)
    assert secret32.hex() not in str(refusal.value) or not secret32


@pytest.mark.parametrize("length", [0, 31, 33, 64])
def test_only_a_digest_is_signed(length: int) -> None:
    with pytest.raises(ValueError, match="a digest is 32 bytes"):
        KEY.sign(bytes(length))


def test_nothing_of_a_key_is_shown_or_copied() -> None:
    assert KEY.secret32().hex() not in repr(KEY)
    assert not hasattr(KEY, "__dict__")
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(KEY)
    with pytest.raises(TypeError, match="not pickled"):
        copy.deepcopy(KEY)


def test_a_changed_digest_recovers_somebody_else() -> None:
    rs64, recovery_id = KEY.sign(DIGEST)
    assert recover_address(keccak256(DIGEST), rs64, recovery_id) != KEY.address


@pytest.mark.parametrize(
    ("digest32", "rs64", "recovery_id"),
    [
        (DIGEST, bytes(64), 0),
        (DIGEST, b"\xff" * 64, 1),
        (DIGEST, KEY.sign(DIGEST)[0], 2),
        (DIGEST, KEY.sign(DIGEST)[0], -1),
        (DIGEST, bytes(63), 0),
        (bytes(31), KEY.sign(DIGEST)[0], 0),
        # r = 5 is the x of no point of the curve
        (DIGEST, (5).to_bytes(32, "big") + (1).to_bytes(32, "big"), 0),
    ],
    ids=["zero", "above the order", "id 2", "id -1", "63 bytes", "short digest", "no point"],
)
def test_what_no_key_can_have_signed_is_refused(digest32: bytes, rs64: bytes, recovery_id: int) -> None:
    with pytest.raises(InvalidSignature):
        recover_address(digest32, rs64, recovery_id)


def test_threads_sign_and_recover_side_by_side() -> None:
    wrong: list[int] = []

    def work(number: int) -> None:
        key = SigningKey(keccak256(bytes([number])))
        for step in range(100):
            digest32 = keccak256(bytes([number, step]))
            if recover_address(digest32, *key.sign(digest32)) != key.address:
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


class OtherAddress(SigningKey):
    """A key that says another address than its own."""

    def __init__(self, secret32: bytes) -> None:
        super().__init__(secret32)
        self.address = bytes(20)


class OtherRecovery(SigningKey):
    """A key whose signatures recover another one."""

    def sign(self, digest32: bytes) -> tuple[bytes, int]:
        rs64, recovery_id = super().sign(digest32)
        return rs64, 1 - recovery_id


@pytest.mark.parametrize(
    ("name", "broken", "said"),
    [
        ("SigningKey", OtherRecovery, "sign differently"),
        ("SigningKey", OtherAddress, "recover differently"),
        ("recover_address", lambda *_: bytes(20), "recover differently"),
    ],
)
def test_a_library_that_is_called_wrongly_is_not_used(
    monkeypatch: pytest.MonkeyPatch, name: str, broken: object, said: str
) -> None:
    monkeypatch.setattr(secp256k1, name, broken)
    with pytest.raises(ImportError, match=said):
        secp256k1._prove()
