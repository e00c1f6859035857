"""The policy in front of a relayer's key: its bounds; no transaction beyond them is signed."""

from typing import Any

import pytest

from cambist.config.errors import PolicyError
from cambist.crypto.custody.transaction_policy import PolicedRelayKey, TransactionPolicy
from cambist.crypto.secp256k1 import SigningKey, recover_address

DELTA, OTHER = b"\x11" * 20, b"\x22" * 20
DIGEST = b"\x42" * 32
SECRET = bytes.fromhex("7a28b5ba57c53603b0b07b56bba752f7784bf506fa95edc395f5cf6c7514fe9d")
POLICY = TransactionPolicy(
    frozenset({(1, DELTA), (137, OTHER)}), 100, 1_000_000, value_max_wei=5, creates_on=frozenset({137})
)
KEY = PolicedRelayKey(SigningKey(SECRET), POLICY)
FINE: dict[str, Any] = {"chain_id": 1, "to": DELTA, "value_wei": 5, "gas": 1_000_000, "fee_max_wei": 100}


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"value_wei": 0, "gas": 0, "fee_max_wei": 0},
        {"chain_id": 137, "to": OTHER},
        {"chain_id": 137, "to": b""},
    ],
    ids=["the most", "nothing", "second chain", "creates where it may"],
)
def test_within_its_bounds_a_key_signs(change: dict[str, Any]) -> None:
    assert recover_address(DIGEST, *KEY.sign(DIGEST, **FINE | change)) == KEY.address


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"to": OTHER}, "contract 0x2222222222222222222222222222222222222222 on chain 1 is not"),
        ({"chain_id": 137}, "on chain 137 is not on this key's list"),
        ({"chain_id": 10}, "on chain 10 is not on this key's list"),
        ({"to": b""}, "this key creates no contracts on chain 1"),
        ({"to": bytes(20)}, "is not on this key's list"),
        ({"value_wei": 6}, "value in wei 6: this key signs at most 5"),
        ({"value_wei": -1}, "value in wei -1"),
        ({"gas": 1_000_001}, "gas 1000001: this key signs at most 1000000"),
        ({"fee_max_wei": 101}, "fee per gas in wei 101: this key signs at most 100"),
    ],
    ids=str,
)
def test_beyond_its_bounds_nothing_is_signed(change: dict[str, Any], says: str) -> None:
    with pytest.raises(PolicyError, match=says):
        KEY.sign(DIGEST, **FINE | change)


def test_by_default_no_value_and_no_creation() -> None:
    key = PolicedRelayKey(SigningKey(SECRET), TransactionPolicy(frozenset({(1, DELTA)}), 100, 1_000_000))
    with pytest.raises(PolicyError, match="value in wei 1: this key signs at most 0"):
        key.sign(DIGEST, **{**FINE, "value_wei": 1})
    with pytest.raises(PolicyError, match="creates no contracts on chain 1"):
        key.sign(DIGEST, chain_id=1, to=b"", value_wei=0, gas=1, fee_max_wei=1)


def test_the_key_is_not_in_sight() -> None:
    assert repr(KEY).startswith("PolicedRelayKey(0x")
    assert SECRET.hex() not in repr(KEY)
