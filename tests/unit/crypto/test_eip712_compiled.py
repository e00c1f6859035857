"""Compiled hashers refuse what their type does not hold, instead of hashing something else."""

from types import SimpleNamespace
from typing import Any

import pytest

from cambist.config.errors import InvalidInput
from cambist.crypto.eip712_compiled import CompiledStruct, attribute_name


@pytest.mark.parametrize(
    ("member", "attribute"),
    [
        ("nonceAndMeta", "nonce_and_meta"),
        ("expiry", "expiry"),
        ("partnerAndFee", "partner_and_fee"),
        ("numSlices", "num_slices"),
    ],
)
def test_attribute_names(member: str, attribute: str) -> None:
    assert attribute_name(member) == attribute


@pytest.mark.parametrize(
    ("type_name", "value"),
    [
        ("uint8", 256),
        ("uint8", -1),
        ("uint128", 2**128),
        ("uint256", 2**256),
        ("uint256", "1"),
        ("uint256", 1.0),
        ("uint256", None),
        ("int8", 128),
        ("int8", -129),
        ("address", bytes(19)),
        ("address", bytes(21)),
        ("address", "0x" + "00" * 20),
        ("bytes4", bytes(3)),
        ("bytes32", bytes(33)),
        ("bytes", 5),
        ("string", b"text"),
        ("string", "\ud800"),
        ("uint8[2]", [1]),
        ("uint8[2]", [1, 2, 3]),
        ("uint8[]", [256]),
        ("Inner", SimpleNamespace(y=300)),
        ("Inner", SimpleNamespace()),
    ],
)
def test_values_that_the_type_does_not_hold(type_name: str, value: Any) -> None:
    compiled = CompiledStruct("Outer", {"Outer": (("x", type_name),), "Inner": (("y", "uint8"),)})
    with pytest.raises(InvalidInput):
        compiled.hash_struct(SimpleNamespace(x=value))
    with pytest.raises(InvalidInput):
        compiled.digest_for(bytes(32))(SimpleNamespace(x=value))


def test_a_missing_attribute_is_named() -> None:
    compiled = CompiledStruct("Outer", {"Outer": (("numSlices", "uint8"),)})
    with pytest.raises(InvalidInput, match="num_slices"):
        compiled.hash_struct(SimpleNamespace())
