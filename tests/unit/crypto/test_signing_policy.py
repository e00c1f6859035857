"""The policy in front of a key: allowed orders and their bounds; no other order is signed."""

import copy
import pickle
from typing import Any

import msgspec
import pytest

from cambist.config.errors import PolicyError
from cambist.crypto.custody.signing_policy import PolicedKey, SigningPolicy
from cambist.crypto.secp256k1 import SigningKey, recover_address

NOW_S = 1_700_000_000
CONTRACT, OTHER_CONTRACT = b"\x11" * 20, b"\x22" * 20
TOKEN, OTHER_TOKEN = b"\xaa" * 20, b"\xbb" * 20
SECRET = bytes.fromhex("7a28b5ba57c53603b0b07b56bba752f7784bf506fa95edc395f5cf6c7514fe9d")
DIGEST = b"\x42" * 32

POLICY = SigningPolicy(
    contracts=frozenset({(1, CONTRACT), (137, OTHER_CONTRACT)}),
    amounts_max={(1, TOKEN): 1_000, (137, OTHER_TOKEN): 5},
    expiry_min_s=120,
    expiry_max_s=3_600,
)
FINE: dict[str, Any] = {
    "chain_id": 1,
    "contract": CONTRACT,
    "token": TOKEN,
    "amount": 1_000,
    "expiry_s": NOW_S + 180,
    "now_s": NOW_S,
}


def with_change(**change: Any) -> dict[str, Any]:
    return FINE | change


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({}, id="all within"),
        pytest.param({"amount": 0}, id="nothing"),
        pytest.param({"amount": 1_000}, id="the most"),
        pytest.param({"expiry_s": NOW_S + 120}, id="soonest"),
        pytest.param({"expiry_s": NOW_S + 3_600}, id="latest"),
        pytest.param(
            {"chain_id": 137, "contract": OTHER_CONTRACT, "token": OTHER_TOKEN, "amount": 5},
            id="second chain",
        ),
    ],
)
def test_within_its_bounds_a_key_signs(change: dict[str, Any]) -> None:
    key = PolicedKey(SigningKey(SECRET), POLICY)
    assert recover_address(DIGEST, *key.sign(DIGEST, **with_change(**change))) == key.address


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "another contract": ({"contract": OTHER_CONTRACT}, "on chain 1 is not on this key's list"),
    "another chain": (
        {"chain_id": 10},
        "contract 0x1111111111111111111111111111111111111111 on chain 10 is not",
    ),
    "contract of another chain": ({"chain_id": 137}, "on chain 137 is not on this key's list"),
    "no contract": ({"contract": b"\0" * 20}, "is not on this key's list"),
    "another token": ({"token": OTHER_TOKEN}, "on chain 1 is not on this key's list"),
    "one unit more": ({"amount": 1_001}, "this key signs at most 1000"),
    "the largest amount": ({"amount": 2**256 - 1}, "this key signs at most 1000"),
    "a negative amount": ({"amount": -1}, "this key signs at most 1000"),
    "a second too soon": ({"expiry_s": NOW_S + 119}, "an expiry 119 s ahead: this key signs 120 to 3600 s"),
    "a second too late": (
        {"expiry_s": NOW_S + 3_601},
        "an expiry 3601 s ahead: this key signs 120 to 3600 s",
    ),
    "in the past": ({"expiry_s": NOW_S - 1}, "an expiry -1 s ahead"),
    "never": ({"expiry_s": 0}, "this key signs 120 to 3600 s"),
}


@pytest.mark.parametrize(("change", "said"), REFUSED.values(), ids=REFUSED)
def test_beyond_a_bound_nothing_is_signed(change: dict[str, Any], said: str) -> None:
    with pytest.raises(PolicyError) as caught:
        PolicedKey(SigningKey(SECRET), POLICY).sign(DIGEST, **with_change(**change))
    assert said in str(caught.value)


def test_without_amounts_every_token_and_amount_passes_and_the_rest_still_binds() -> None:
    policy = msgspec.structs.replace(POLICY, amounts_max=None)
    policy.check(**with_change(token=OTHER_TOKEN, amount=2**256 - 1))
    with pytest.raises(PolicyError, match="contract"):
        policy.check(**with_change(contract=OTHER_CONTRACT))


def test_an_empty_amount_list_signs_no_token() -> None:
    with pytest.raises(PolicyError, match="token"):
        msgspec.structs.replace(POLICY, amounts_max={}).check(**FINE)


def test_an_empty_contract_list_signs_nothing() -> None:
    with pytest.raises(PolicyError, match="contract"):
        msgspec.structs.replace(POLICY, contracts=frozenset()).check(**FINE)


def test_never_is_beyond_the_widest_bounds() -> None:
    wide = msgspec.structs.replace(POLICY, expiry_min_s=-(10**12), expiry_max_s=10**12)
    wide.check(**with_change(expiry_s=1))
    with pytest.raises(PolicyError, match="expiry"):
        wide.check(**with_change(expiry_s=0))


def test_a_policy_is_frozen() -> None:
    with pytest.raises(AttributeError):
        POLICY.expiry_max_s = 10**9  # type: ignore[misc]


def test_a_policed_key_shows_its_address_and_never_itself() -> None:
    key = PolicedKey(SigningKey(SECRET), POLICY)
    assert repr(key) == "PolicedKey(0x008AeEda4D805471dF9b2A5B0f38A0C3bCBA786b)"
    for take in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError):
            take(key)
    with pytest.raises(ValueError, match="32 bytes") as caught:
        key.sign(b"short", **FINE)
    assert SECRET.hex() not in str(caught.value)
