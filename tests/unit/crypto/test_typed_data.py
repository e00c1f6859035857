"""Typed-data documents: known answers, forms that wallets exchange, and every refusal by path."""

import copy
from typing import Any

import pytest

from cambist.config.errors import InvalidInput
from cambist.crypto.eip712 import domain_separator
from cambist.crypto.typed_data import hash_typed_data

MAIL: dict[str, Any] = {
    "types": {
        "EIP712Domain": [
            {"name": "name", "type": "string"},
            {"name": "version", "type": "string"},
            {"name": "chainId", "type": "uint256"},
            {"name": "verifyingContract", "type": "address"},
        ],
        "Person": [{"name": "name", "type": "string"}, {"name": "wallet", "type": "address"}],
        "Mail": [
            {"name": "from", "type": "Person"},
            {"name": "to", "type": "Person"},
            {"name": "contents", "type": "string"},
        ],
    },
    "primaryType": "Mail",
    "domain": {
        "name": "Ether Mail",
        "version": "1",
        "chainId": 1,
        "verifyingContract": "0xCcCCccccCCCCcCCCCCCcCcCccCcCCCcCcccccccC",
    },
    "message": {
        "from": {"name": "Cow", "wallet": "0xCD2a3d9F938E13CD947Ec05AbC7FE734Df8DD826"},
        "to": {"name": "Bob", "wallet": "0xbBbBBBBbbBBBbbbBbbBbbbbBBbBbbbbBbBbbBBbB"},
        "contents": "Hello, Bob!",
    },
}
MAIL_DIGEST = "be609aee343fb3c4b28e1df9e632fca64fcfaede20f02e86244efddf30957bd2"


def mail(**changes: Any) -> dict[str, Any]:
    return {**copy.deepcopy(MAIL), **changes}


def atomic(type_name: str, value: object) -> dict[str, Any]:
    return {
        "types": {"A": [{"name": "x", "type": type_name}]},
        "domain": {"name": "n"},
        "message": {"x": value},
    }


def test_the_example_of_the_eip() -> None:
    hashes = hash_typed_data(MAIL)
    assert hashes.digest.hex() == MAIL_DIGEST
    assert hashes.type_hash.hex() == "a0cedeb2dc280ba39b857546d74f5549c3a1d7bdc2dd96bf881f76108e23dac2"
    assert hashes.struct_hash.hex() == "c52c0ee5d84264471806290a3f2c4cecfc5490626bf912d01f240d7a274b371e"
    assert hashes.domain_separator.hex() == "f2cee375fa42b42143804025fc449deafd50cc031ca257e0b194a650a912090f"


@pytest.mark.parametrize("section", ["rfq", "delta"])
def test_domain_separators_of_deployed_contracts(vectors: dict[str, Any], section: str) -> None:
    vector = vectors[section]["domainSeparatorMainnet"]
    assert "0x" + domain_separator(vector["domain"]).hex() == vector["value"]


def test_delta_vectors_through_the_general_hasher(vectors: dict[str, Any]) -> None:
    for vector in vectors["delta"]["vectors"]:
        types = vectors["delta"]["types"][vector["primaryType"]]
        hashes = hash_typed_data({"types": types, "domain": vector["domain"], "value": vector["value"]})
        assert "0x" + hashes.digest.hex() == vector["hash"]
        assert "0x" + hashes.struct_hash.hex() == vector["structHash"]
        assert hashes.primary_type == vector["primaryType"]


def test_forms_that_mean_the_same() -> None:
    assert hash_typed_data(mail(primaryType=None)).digest.hex() == MAIL_DIGEST
    document = mail()
    del document["types"]["EIP712Domain"]
    document["value"] = document.pop("message")
    document["value"]["unknown"] = "members that the type does not name are not signed"
    assert hash_typed_data(document).digest.hex() == MAIL_DIGEST


@pytest.mark.parametrize("value", [255, "255", "0xff", "0xFF", "00255"])
def test_forms_of_an_integer(value: object) -> None:
    assert hash_typed_data(atomic("uint8", value)) == hash_typed_data(atomic("uint8", 255))


def test_the_domain_alone_may_be_signed() -> None:
    hashes = hash_typed_data(mail(primaryType="EIP712Domain"))
    assert hashes.struct_hash == hashes.domain_separator
    spelled_out = mail(primaryType="EIP712Domain", types={})
    assert hash_typed_data(spelled_out) == hashes


def test_a_recursive_type_ends_with_null() -> None:
    document = {
        "types": {"Node": [{"name": "value", "type": "uint8"}, {"name": "next", "type": "Node"}]},
        "domain": {"name": "n"},
        "message": {"value": 1, "next": {"value": 2, "next": None}},
    }
    assert len(hash_typed_data(document).digest) == 32
    node: Any = None
    for _ in range(40):
        node = {"value": 1, "next": node}
    with pytest.raises(InvalidInput, match=r"message\.next\.next.*at most 32 values in one another"):
        hash_typed_data({**document, "message": node})


def test_struct_names_in_use_hold_a_colon() -> None:
    document = atomic("uint8", 1)
    document["types"] = {"Exchange:Approve": document["types"]["A"]}
    assert hash_typed_data(document).primary_type == "Exchange:Approve"


@pytest.mark.parametrize(
    ("type_name", "value", "said"),
    [
        ("uint8", 256, "message.x: expected uint8: 0 to 255, got 256"),
        ("uint8", -1, "message.x: expected uint8: 0 to 255, got -1"),
        ("int8", 128, "int8: -128 to 127"),
        ("uint256", 2**256, "uint256: 0 to"),
        ("uint256", "1e18", "an integer, or a decimal or 0x string, got '1e18'"),
        ("uint256", 1.0, "got 1.0"),
        ("uint256", True, "got true"),
        ("uint256", None, "got null"),
        ("uint256", "", "got ''"),
        ("uint256", "9" * 5000, "(5000 long)"),
        ("uint256", "١", "an integer"),
        ("uint256", " 1", "an integer"),
        ("uint256", "1_0", "an integer"),
        ("address", "0x12", "message.x: expected an address"),
        ("address", "0x5AAeB6053F3E94C9b9A09f33669435E7Ef1BeAed", "EIP-55 checksum"),
        ("bool", 1, "true or false"),
        ("bool", "true", "true or false"),
        ("string", 5, "a string, got 5"),
        ("string", "\ud800", "lone surrogate"),
        ("bytes", "12", "0x and an even number"),
        ("bytes", "0x1", "0x and an even number"),
        ("bytes4", "0x112233", "4 bytes (bytes4)"),
        ("bytes4", "0x1122334455", "4 bytes (bytes4)"),
        ("uint8[]", 5, "an array of uint8, got 5"),
        ("uint8[]", "ab", "an array of uint8"),
        ("uint8[2]", [1], "2 elements, got 1"),
        ("uint8[]", [1, 300], "message.x[1]: expected uint8: 0 to 255, got 300"),
        ("uint8[][1]", [[1, "x"]], "message.x[0][1]"),
    ],
)
def test_values_that_are_not_of_their_type(type_name: str, value: object, said: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        hash_typed_data(atomic(type_name, value))
    assert said in refusal.value.detail


@pytest.mark.parametrize(
    "type_name",
    [
        "uint", "int", "uint7", "uint08", "uint264", "uint0", "int512", "bytes0", "bytes33", "bytes01",
        "Unknown", "function", "address payable", "", "[]", "uint8[", "uint8]", "uint8[-1]", "uint8[1][x]",
        "fixed",
    ],
)  # fmt: skip
def test_types_that_the_eip_does_not_have(type_name: str) -> None:
    with pytest.raises(InvalidInput, match="expected a known type"):
        hash_typed_data(atomic(type_name, 1))


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (None, "an object with types, domain and message"),
        ([], "an object with types"),
        ({}, "types: expected an object of struct types"),
        ({"types": []}, "types: expected"),
        ({"types": {"A": 5}, "domain": {}}, "types.A: expected an array of {name, type}"),
        ({"types": {"A": [{"name": "x"}]}, "domain": {}}, "types.A[0]"),
        ({"types": {"A": [{"name": 1, "type": "uint8"}]}, "domain": {}}, "types.A[0]"),
        ({"types": {"A": []}}, "domain: expected an object"),
        ({"types": {"A": []}, "domain": {"chain": 1}, "message": {}}, "domain: expected only name, version"),
        ({"types": {"A": []}, "domain": {}}, "message: expected an object, got 'nothing'"),
        ({"types": {"A": [], "B": []}, "domain": {}, "message": {}}, "primaryType: expected to be given"),
        ({"types": {}, "domain": {}, "message": {}}, "primaryType: expected to be given"),
        (
            {"types": {"A": []}, "primaryType": "B", "domain": {}, "message": {}},
            "primaryType: expected a type",
        ),
        (
            {"types": {"A": []}, "primaryType": 5, "domain": {}, "message": {}},
            "primaryType: expected a string",
        ),
        ({"types": {"A": []}, "domain": {}, "message": 5}, "message: expected an object (A)"),
    ],
)
def test_documents_that_are_none(document: object, said: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        hash_typed_data(document)
    assert said in refusal.value.detail


def test_members_are_named_once_and_given() -> None:
    twice = mail()
    twice["types"]["Mail"].append({"name": "to", "type": "Person"})
    with pytest.raises(
        InvalidInput, match=r"types\.Mail: expected members with names of their own, got 'to'"
    ):
        hash_typed_data(twice)
    missing = mail()
    del missing["message"]["to"]["wallet"]
    with pytest.raises(InvalidInput, match=r"message\.to\.wallet: expected address, got 'nothing'"):
        hash_typed_data(missing)
    domain = mail()
    del domain["domain"]["chainId"]
    with pytest.raises(InvalidInput, match=r"domain\.chainId: expected uint256"):
        hash_typed_data(domain)


def test_a_hostile_document_ends() -> None:
    with pytest.raises(InvalidInput, match="at most 100000 values"):
        hash_typed_data(atomic("uint8[]", [1] * 100_001))
    with pytest.raises(InvalidInput, match="at most 32 arrays"):
        hash_typed_data(atomic("uint8" + "[]" * 60, []))
    many = {f"S{index}": [{"name": "x", "type": "uint8"}] for index in range(1_025)}
    with pytest.raises(InvalidInput, match="at most 1024 members"):
        hash_typed_data({"types": many, "domain": {}, "message": {}})
    with pytest.raises(InvalidInput, match=r"types\.A\[0\]"):
        hash_typed_data(atomic("uint8" + "[]" * 5_000, []))


def nested(name: str, type_name: str, structs: int) -> dict[str, Any]:
    """A document of so many structs in one another, the last without a value."""
    value: Any = None
    for _ in range(structs):
        value = {"next": [value] if type_name.endswith("[]") else value}
    types = {name: [{"name": "next", "type": type_name}]}
    return {"types": types, "primaryType": name, "domain": {}, "message": value}


def members(count: int) -> dict[str, Any]:
    many = {f"S{index}": [{"name": "x", "type": "uint8"}] for index in range(count)}
    return {"types": many, "primaryType": "S0", "domain": {}, "message": {"x": 1}}


def long_type(last: str) -> dict[str, Any]:
    """A document of 23 arrays in one another; the type has 247 characters and those of the last brackets."""
    value: Any = 1
    for _ in range(23):
        value = [value]
    return atomic("uint8" + "[000000001]" * 22 + last, value)


@pytest.mark.parametrize(
    ("last", "first"),
    [
        (atomic("uint8[]", [1] * 99_999), atomic("uint8[]", [1] * 100_000)),
        (atomic("uint8" + "[]" * 31, []), atomic("uint8" + "[]" * 32, [])),
        (members(1_024), members(1_025)),
        (nested("A", "A", 33), nested("A", "A", 34)),
        (nested("A", "A[]", 17), nested("A", "A[]", 18)),
        (long_type("[0000001]"), long_type("[00000001]")),
    ],
    ids=["values", "arrays", "members", "structs in structs", "structs in arrays", "text of a type"],
)
def test_a_document_at_a_bound_is_hashed_and_one_beyond_is_refused(
    last: dict[str, Any], first: dict[str, Any]
) -> None:
    assert len(hash_typed_data(last).digest) == 32
    with pytest.raises(InvalidInput):
        hash_typed_data(first)


def test_a_domain_type_that_is_there_but_empty_counts() -> None:
    document = atomic("uint8", 1)
    document["types"]["EIP712Domain"] = []
    assert hash_typed_data(document) != hash_typed_data(atomic("uint8", 1))


@pytest.mark.parametrize("name", ["uint", "int", "uint8", "bytes32", "A(uint8 x)B", "a\ud800", "a b", ""])
def test_names_that_no_struct_may_have(name: str) -> None:
    with pytest.raises(InvalidInput, match="a struct name, got '"):
        hash_typed_data({"types": {name: []}, "domain": {}, "message": {}})


def test_a_member_name_without_a_utf8_form() -> None:
    with pytest.raises(InvalidInput, match="members with names of their own"):
        hash_typed_data(
            {"types": {"A": [{"name": "x\ud800", "type": "uint8"}]}, "domain": {}, "message": {"x\ud800": 1}}
        )


@pytest.mark.parametrize(("length", "is_read"), [(256, True), (257, False)])
def test_a_members_type_is_read_up_to_256_characters(length: int, is_read: bool) -> None:
    """There is no type of so long a name; only a shorter one is looked up."""
    with pytest.raises(InvalidInput) as refused:
        hash_typed_data(atomic("x" * length, 1))
    assert (refused.value.field != "types.A[0]") is is_read
