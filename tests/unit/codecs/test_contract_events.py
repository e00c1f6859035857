"""Events: the topics and layouts of the contracts' own ABI, the words of eth-abi, other forms refused."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cambist.codecs.contracts.contract_events import DECODERS, Approval, Transfer, decode_event, topic
from cambist.config.errors import InvalidInput
from cambist.engine.chain.artifacts import abi_of
from support.oracles import Oracle

ERC20: list[dict[str, Any]] = [
    {
        "type": "event",
        "name": name,
        "inputs": [
            {"name": members[0], "type": "address", "indexed": True},
            {"name": members[1], "type": "address", "indexed": True},
            {"name": members[2], "type": "uint256", "indexed": False},
        ],
    }
    for name, members in (("Transfer", ("from", "to", "value")), ("Approval", ("owner", "spender", "value")))
]
STRATEGIES: dict[str, st.SearchStrategy[Any]] = {
    "address": st.binary(min_size=20, max_size=20),
    "bytes32": st.binary(min_size=32, max_size=32),
    "bytes4": st.binary(min_size=4, max_size=4),
    "uint256": st.integers(0, 2**256 - 1),
    "uint128": st.integers(0, 2**128 - 1),
    "bool": st.booleans(),
}


def events_of_the_contracts() -> dict[str, dict[str, Any]]:
    found = {row["name"]: row for row in ERC20}
    for name in ("Rfq", "Delta", "FeeVault", "Router"):
        found |= {row["name"]: row for row in abi_of(name) if row["type"] == "event"}
    return found


EVENTS = events_of_the_contracts()
FOLLOWED = [
    name
    for name, row in EVENTS.items()
    if topic(f"{name}({','.join(member['type'] for member in row['inputs'])})") in DECODERS
]


def test_every_event_that_is_read_is_one_of_a_contract() -> None:
    assert len(FOLLOWED) == len(DECODERS) == 13


def oracle_words(eth_account: Oracle, row: dict[str, Any], values: list[Any]) -> tuple[list[bytes], bytes]:
    """The log of an event as eth-abi has it: topics and data."""
    kinds = [member["type"] for member in row["inputs"]]
    texts = [
        value
        if isinstance(value, bool)
        else f"hex:{value.hex()}"
        if isinstance(value, bytes)
        else f"int:{value}"
        for value in values
    ]
    encoded = bytes.fromhex(eth_account.ask(ask="abi", types=kinds, values=texts)["encoded"])
    words = [encoded[start : start + 32] for start in range(0, len(encoded), 32)]
    indexed = [word for word, member in zip(words, row["inputs"], strict=True) if member["indexed"]]
    others = [word for word, member in zip(words, row["inputs"], strict=True) if not member["indexed"]]
    return [topic(f"{row['name']}({','.join(kinds)})"), *indexed], b"".join(others)


@pytest.mark.oracle
@pytest.mark.parametrize("name", FOLLOWED)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_an_event_is_read_as_its_abi_says(eth_account: Oracle, name: str, data: st.DataObject) -> None:
    row = EVENTS[name]
    values = [data.draw(STRATEGIES[member["type"]]) for member in row["inputs"]]
    event = decode_event(*oracle_words(eth_account, row, values))
    assert isinstance(event, msgspec.Struct)
    assert type(event).__name__ == name
    assert list(msgspec.structs.astuple(event)) == values
    if row not in ERC20:
        assert list(map(camel, event.__struct_fields__)) == [member["name"] for member in row["inputs"]]


def camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.title, others))


def word(value: int | bytes) -> bytes:
    return value.to_bytes(32, "big") if isinstance(value, int) else value.rjust(32, b"\0")


def test_an_erc20_transfer_and_approval() -> None:
    owner, other = b"\xaa" * 20, b"\xbb" * 20
    # keccak-256 of the signatures, as in EIP-20's logs everywhere
    transfer = bytes.fromhex("ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef")
    approval = bytes.fromhex("8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925")
    assert decode_event((transfer, word(owner), word(other)), word(5)) == Transfer(owner, other, 5)
    assert decode_event((approval, word(owner), word(other)), word(6)) == Approval(owner, other, 6)


def test_an_unknown_event_is_none_of_ours() -> None:
    assert decode_event((), b"") is None
    assert decode_event((topic("Paused(address)"),), word(1)) is None


@pytest.mark.parametrize("name", FOLLOWED)
def test_another_form_is_refused(name: str) -> None:
    row = EVENTS[name]
    first = topic(f"{name}({','.join(member['type'] for member in row['inputs'])})")
    topic_count, word_bytes, _ = DECODERS[first]
    topics, data = [first] + [bytes(32)] * (topic_count - 1), bytes(word_bytes - 32 * topic_count)
    assert decode_event(topics, data) is not None
    others: list[tuple[list[bytes], bytes]] = [
        (topics[:-1], data),
        ([*topics, bytes(32)], data),
        (topics, data + b"\0"),
        (topics, data + bytes(32)),
        (topics[:-1], bytes(32) + data),
        ([*topics[:-1], bytes(31)], data),
        ([*topics[:-1], bytes(33)], data),
    ]
    if data:
        others += [(topics, data[:-1]), (topics, b"")]
    for wrong_topics, wrong_data in others:
        with pytest.raises(
            InvalidInput, match=f"event {name}: expected {topic_count} topics and {len(data)} bytes"
        ):
            decode_event(wrong_topics, wrong_data)


def members_of(kind: str) -> list[tuple[str, int]]:
    """(event, which member) for all members of a type."""
    return [
        (name, position)
        for name in FOLLOWED
        for position, member in enumerate(EVENTS[name]["inputs"])
        if member["type"] == kind
    ]


def log_with(name: str, position: int, change: Callable[[bytes], bytes]) -> tuple[list[bytes], bytes]:
    """A log of zeros in which the word of one member is changed."""
    row = EVENTS[name]
    words = [bytes(32) if at != position else change(bytes(32)) for at in range(len(row["inputs"]))]
    indexed = [one for one, member in zip(words, row["inputs"], strict=True) if member["indexed"]]
    others = [one for one, member in zip(words, row["inputs"], strict=True) if not member["indexed"]]
    first = topic(f"{name}({','.join(member['type'] for member in row['inputs'])})")
    return [first, *indexed], b"".join(others)


@pytest.mark.parametrize(("name", "position"), members_of("address"))
@pytest.mark.parametrize("byte", [0, 11])
def test_a_word_that_is_no_address_is_refused(name: str, position: int, byte: int) -> None:
    log = log_with(name, position, lambda zero: zero[:byte] + b"\1" + zero[byte + 1 :])
    with pytest.raises(InvalidInput, match=f"event {name}: expected addresses"):
        decode_event(*log)


@pytest.mark.parametrize(("name", "position"), members_of("bool"))
@pytest.mark.parametrize("number", [2, 256, 1 << 255])
def test_a_word_that_is_no_bool_is_refused(name: str, position: int, number: int) -> None:
    with pytest.raises(InvalidInput, match=f"event {name}: expected a bool"):
        decode_event(*log_with(name, position, lambda _: word(number)))


@pytest.mark.parametrize(("name", "position"), members_of("bytes4"))
@pytest.mark.parametrize("byte", [4, 31])
def test_a_word_that_is_no_selector_is_refused(name: str, position: int, byte: int) -> None:
    log = log_with(name, position, lambda zero: zero[:byte] + b"\1" + zero[byte + 1 :])
    with pytest.raises(InvalidInput, match=f"event {name}: expected 4 bytes"):
        decode_event(*log)
