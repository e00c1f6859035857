"""Random typed data: the general hasher, the compiled one and eth-account agree."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cambist.config.errors import InvalidInput
from cambist.crypto.eip712 import Members
from cambist.crypto.eip712_compiled import CompiledStruct
from cambist.crypto.typed_data import hash_typed_data
from support.examples import examples
from support.oracles import Oracle
from support.typed_data import documents, with_domain_type


@given(documents())
def test_compiled_equals_general(case: tuple[dict[str, Members], dict[str, Any], Any]) -> None:
    structs, document, value = case
    hashes = hash_typed_data(document)
    compiled = CompiledStruct("Struct0", structs)
    assert compiled.type_hash == hashes.type_hash
    assert compiled.hash_struct(value) == hashes.struct_hash
    assert compiled.digest_for(hashes.domain_separator)(value) == hashes.digest


@pytest.mark.oracle
@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(documents())
def test_general_equals_eth_account(
    eth_account: Oracle, case: tuple[dict[str, Members], dict[str, Any], Any]
) -> None:
    _, document, _ = case
    answer = eth_account.ask(ask="typed_data", document=with_domain_type(document), key="0x" + "11" * 32)
    hashes = hash_typed_data(document)
    assert hashes.domain_separator.hex() == answer["separator"]
    assert hashes.digest.hex() == answer["digest"]


@given(documents())
def test_a_spelled_out_domain_type_and_an_inferred_primary_type_change_nothing(
    case: tuple[dict[str, Members], dict[str, Any], Any],
) -> None:
    _, document, _ = case
    spelled = with_domain_type(document)
    assert hash_typed_data(spelled) == hash_typed_data(document)
    free = [
        name
        for name in document["types"]
        if not any(
            member["type"].split("[")[0] == name
            for members in document["types"].values()
            for member in members
        )
    ]
    if free == ["Struct0"]:
        del spelled["primaryType"]
        assert hash_typed_data(spelled) == hash_typed_data(document)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just("0x12"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=20,
)


@given(documents(), st.data())
def test_any_replaced_value_gives_hashes_or_our_refusal(
    case: tuple[dict[str, Members], dict[str, Any], Any], data: st.DataObject
) -> None:
    _, document, _ = case
    node: Any = document
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            return
        key = data.draw(st.sampled_from(keys))
        if isinstance(node[key], dict | list) and data.draw(st.booleans()):
            node = node[key]
        else:
            break
    node[key] = data.draw(JSON)
    try:
        assert len(hash_typed_data(document).digest) == 32
    except InvalidInput as refusal:
        assert len(refusal.detail) < 700  # noqa: PT017  either outcome is right


@given(JSON)
def test_any_json_gives_hashes_or_our_refusal(document: object) -> None:
    with pytest.raises(InvalidInput):
        hash_typed_data(document)
