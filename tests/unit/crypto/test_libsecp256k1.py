"""Each binding of libsecp256k1 signs, recovers and derives byte for byte as the others do."""

import importlib.util
from types import ModuleType

import pytest

from cambist.crypto import libsecp256k1, secp256k1
from cambist.crypto.keccak import keccak256
from cambist.crypto.libsecp256k1 import BINDINGS, Binding, installed
from cambist.crypto.secp256k1 import CURVE_ORDER

SECRETS = [1, 2, 3, CURVE_ORDER // 2, CURVE_ORDER - 2, CURVE_ORDER - 1]


def over(load: object, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Module `secp256k1`, loaded once more over one binding alone."""
    monkeypatch.setattr(libsecp256k1, "BINDINGS", (load,))
    spec = importlib.util.spec_from_file_location("cambist.crypto.secp256k1_again", secp256k1.__file__)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(params=BINDINGS, ids=lambda load: load.__name__.strip("_"))
def module(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    try:
        request.param()
    except ImportError:  # coincurve has no wheels for the newest Pythons
        assert request.param is not libsecp256k1._btclib
        return over(libsecp256k1._btclib, monkeypatch)
    return over(request.param, monkeypatch)


def test_keys_sign_and_are_recovered_alike(module: ModuleType) -> None:
    for number in SECRETS:
        secret32 = number.to_bytes(32, "big")
        ours, theirs = secp256k1.SigningKey(secret32), module.SigningKey(secret32)
        assert theirs.address == ours.address
        for text in range(100):
            digest32 = keccak256(b"%d" % text)
            signature = ours.sign(digest32)
            assert theirs.sign(digest32) == signature
            assert module.recover_address(digest32, *signature) == ours.address


def test_public_keys_are_alike_in_both_forms(module: ModuleType) -> None:
    for number in SECRETS:
        secret32 = number.to_bytes(32, "big")
        for compressed in (False, True):
            found = module.public_key(secret32, compressed=compressed)
            assert found == secp256k1.public_key(secret32, compressed=compressed)
            assert len(found) == (33 if compressed else 65)
    for wrong in (bytes(32), CURVE_ORDER.to_bytes(32, "big"), bytes(31)):
        with pytest.raises(ValueError, match="a private key is 32 bytes"):
            module.public_key(wrong)


def test_a_binding_that_disagrees_with_itself_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    right = installed()

    def wrong_id() -> Binding:
        def sign65(secret32: bytes, digest32: bytes) -> bytes:
            signature = right.sign65(secret32, digest32)
            return signature[:64] + bytes([1 - signature[64]])

        return Binding(
            right.name, right.ffi, right.lib, right.context, right.point65, sign65, right.recover65
        )

    with pytest.raises(ImportError, match="sign differently"):
        over(wrong_id, monkeypatch)


def test_without_a_binding_the_reason_for_each_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def _absent() -> Binding:
        raise ImportError("No module named 'absent'")

    monkeypatch.setattr(libsecp256k1, "BINDINGS", (_absent,))
    with pytest.raises(ImportError, match=r"no binding of libsecp256k1 can be used \(absent: No module"):
        installed()
