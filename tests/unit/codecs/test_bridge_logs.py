"""Logs, relay hashes and calls of Across and CCTP: topics of the deployed contracts, encodings of eth-abi."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cambist.codecs.bridges import across, cctp
from cambist.codecs.contracts.abi import LogLayout, selector
from cambist.config.errors import InvalidInput
from cambist.config.limits import LOG_DATA_BYTES_MAX
from cambist.crypto.keccak import keccak256
from support.oracles import Oracle

word = st.binary(min_size=32, max_size=32)
address = st.binary(min_size=20, max_size=20)
uint256 = st.integers(0, 2**256 - 1)
uint32 = st.integers(0, 2**32 - 1)
raw = st.binary(max_size=100)
KINDS: dict[str, st.SearchStrategy[Any]] = {
    "bytes32": word,
    "address": address,
    "uint256": uint256,
    "uint32": uint32,
    "uint8": st.integers(0, 255),
    "bool": st.booleans(),
    "bytes": raw,
    "uint256[]": st.lists(uint256, max_size=4).map(tuple),
    "address[]": st.lists(address, max_size=4).map(tuple),
}
Decoder = Callable[[list[bytes], bytes], Any]
# Topics: of logs of the deployed contracts. Members: `*` follows the indexed ones.
EVENTS: list[tuple[type[msgspec.Struct], LogLayout, Decoder, str, str]] = [
    (across.FundsDeposited, across.FUNDS_DEPOSITED, across.decode_across_log,
     "32ed1a409ef04c7b0227189c3a103dc5ac10e775a15b785dcc510201f7c25ad3",
     "bytes32 bytes32 uint256 uint256 uint256* uint256* uint32 uint32 uint32 bytes32* bytes32 bytes32 bytes"),
    (across.FilledRelay, across.FILLED_RELAY, across.decode_across_log,
     "44b559f101f8fbcc8a0ea43fa91a05a729a5ea6e14a7c75aa750374690137208",
     ("bytes32 bytes32 uint256 uint256 uint256 uint256* uint256* uint32 uint32 bytes32 bytes32* bytes32"
      " bytes32 bytes32 bytes32 bytes32 uint256 uint8")),
    (across.ExecutedRelayerRefundRoot, across.EXECUTED_REFUND_ROOT, across.decode_across_log,
     "f4ad92585b1bc117fbdd644990adf0827bc4c95baeae8a23322af807b6d0020e",
     "uint256 uint256* uint256[] uint32* uint32* address address[] bool address"),
    (cctp.DepositForBurn, cctp.DEPOSIT_FOR_BURN, cctp.decode_cctp_log,
     "0c8c1cbdc5190613ebd485511d4e2812cfa45eecb79d845893331fedad5130a5",
     "address* uint256 address* bytes32 uint32 bytes32 bytes32 uint256 uint32* bytes"),
    (cctp.MessageSent, cctp.MESSAGE_SENT, cctp.decode_cctp_log,
     "8c5261668696ce22758910d05bab8f186d6eb247ceac2af2e82c7dc17669b036", "bytes"),
    (cctp.MessageReceived, cctp.MESSAGE_RECEIVED, cctp.decode_cctp_log,
     "ff48c13eda96b1cceacc6b9edeedc9e9db9d6226afbc30146b720c19d3addb1c",
     "address* uint32 bytes32* bytes32 uint32* bytes"),
    (cctp.MintAndWithdraw, cctp.MINT_AND_WITHDRAW, cctp.decode_cctp_log,
     "50c55e915134d457debfa58eb6f4342956f8b0616d51a89a3659360178e1ab63", "address* uint256 address* uint256"),
]  # fmt: skip
NAMES = [event[0].__name__ for event in EVENTS]

RELAYS = st.builds(
    across.RelayData,
    word, word, word, word, word, uint256, uint256, uint256, uint256, uint32, uint32, raw,
)  # fmt: skip
RELAY = "(bytes32,bytes32,bytes32,bytes32,bytes32,uint256,uint256,uint256,uint256,uint32,uint32,bytes)"


def as_json(value: Any) -> Any:
    """As the oracle's JSON has it: structs are lists of their members."""
    if isinstance(value, msgspec.Struct):
        return list(map(as_json, msgspec.structs.astuple(value)))
    if isinstance(value, list | tuple):
        return list(map(as_json, value))
    if isinstance(value, bool):
        return value
    return f"hex:{value.hex()}" if isinstance(value, bytes) else f"int:{value}"


def encoded(oracle: Oracle, types: list[str], values: list[Any]) -> bytes:
    return bytes.fromhex(oracle.ask(ask="abi", types=types, values=as_json(values))["encoded"])


@pytest.mark.oracle
@pytest.mark.parametrize(("event", "layout", "decode", "topic", "members"), EVENTS, ids=NAMES)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_log_is_read_as_eth_abi_writes_it(
    eth_account: Oracle,
    event: type[msgspec.Struct],
    layout: LogLayout,
    decode: Decoder,
    topic: str,
    members: str,
    data: st.DataObject,
) -> None:
    kinds = members.split()
    values = [data.draw(KINDS[kind.removesuffix("*")]) for kind in kinds]
    drawn = list(zip(kinds, values, strict=True))
    topics = [encoded(eth_account, [kind[:-1]], [value]) for kind, value in drawn if kind.endswith("*")]
    others = [(kind, value) for kind, value in drawn if not kind.endswith("*")]
    log_data = encoded(eth_account, [kind for kind, _ in others], [value for _, value in others])
    read = decode([layout.topic, *topics], log_data)
    assert layout.topic.hex() == topic
    assert type(read) is event
    assert list(msgspec.structs.astuple(read)) == values


def plain_log(kinds: str) -> tuple[list[bytes], bytes]:
    """Topics after the first, and data, of a log whose words are all zero and whose tails are empty."""
    heads = [kind for kind in kinds.split() if not kind.endswith("*")]
    tail, words = len(heads) * 32, b""
    tails = 0
    for kind in heads:
        is_dynamic = kind == "bytes" or kind.endswith("[]")
        words += (tail + tails * 32).to_bytes(32, "big") if is_dynamic else bytes(32)
        tails += is_dynamic
    return [bytes(32)] * kinds.count("*"), words + bytes(32 * tails)


@pytest.mark.parametrize(("event", "layout", "decode", "topic", "members"), EVENTS, ids=NAMES)
def test_a_log_of_another_form_is_refused(
    event: type[msgspec.Struct], layout: LogLayout, decode: Decoder, topic: str, members: str
) -> None:
    topics, data = plain_log(members)
    first = layout.topic
    assert type(decode([first, *topics], data)) is event
    bad: list[tuple[list[bytes], bytes]] = [
        ([first, *topics, bytes(32)], data),
        ([first, *topics], data[:-32]),
        ([first, *topics], data[:-1]),
        ([first, *topics], data + bytes(32)),
        ([first, *topics], b""),
        ([first, *topics], data + bytes(LOG_DATA_BYTES_MAX)),
    ]
    if topics:
        bad.append(([first, *topics[:-1]], data))
        bad.append(([first, *topics[:-1], bytes(31)], data))
    ones = b"\xff" * 32
    for number, kind in enumerate(kind for kind in members.split() if not kind.endswith("*")):
        if kind not in {"bytes32", "uint256"}:  # a word beyond its type, or an offset elsewhere
            bad.append(([first, *topics], data[: 32 * number] + ones + data[32 * number + 32 :]))
    for number, kind in enumerate(kind for kind in members.split() if kind.endswith("*")):
        if kind not in {"bytes32*", "uint256*"}:
            bad.append(([first, *topics[:number], ones, *topics[number + 1 :]], data))
    for log_topics, log_data in bad:
        with pytest.raises(InvalidInput, match=f"event {layout.name}"):
            decode(log_topics, log_data)


@pytest.mark.parametrize("length", [1, 33, 2**255])
def test_lengths_and_padding_of_a_message_are_checked(length: int) -> None:
    offset, count = (32).to_bytes(32, "big"), length.to_bytes(32, "big")
    for tail in (b"", b"\x01" * 32, b"\x01" * 64):  # too short, or with more than zeros after it
        with pytest.raises(InvalidInput, match="MessageSent"):
            cctp.decode_cctp_log([cctp.MESSAGE_SENT.topic], offset + count + tail)


@settings(max_examples=200)
@given(data=st.data())
def test_any_bytes_are_read_or_refused(data: st.DataObject) -> None:
    _, layout, decode, _, members = data.draw(st.sampled_from(EVENTS))
    topics, plain = plain_log(members)
    changed = bytearray(plain)
    for at in data.draw(st.lists(st.integers(0, max(0, len(plain) - 1)), max_size=4)):
        changed[at : at + 1] = data.draw(st.binary(min_size=1, max_size=1))
    cut = bytes(changed)[: data.draw(st.integers(0, len(plain)))]
    for log_data in (bytes(changed), cut, data.draw(st.binary(max_size=600))):
        with suppress(InvalidInput):
            assert decode([layout.topic, *topics], log_data) is not None


@given(st.binary(max_size=400))
def test_any_message_is_parsed_or_refused(raw: bytes) -> None:
    for parse in (cctp.parse_message, cctp.parse_burn):
        with suppress(InvalidInput):
            parse(b"\0\0\0\1" + raw)


def test_other_events_are_none() -> None:
    for decode in (across.decode_across_log, cctp.decode_cctp_log):
        assert decode([], b"") is None
        assert decode([bytes(32)], b"") is None
    assert across.decode_across_log([cctp.MESSAGE_SENT.topic], b"") is None


@pytest.mark.oracle
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(RELAYS, uint256, word)
def test_a_relay_is_hashed_and_filled_as_eth_abi_says(
    eth_account: Oracle, relay: across.RelayData, chain_id: int, account: bytes
) -> None:
    hashed = encoded(eth_account, [RELAY, "uint256"], [relay, chain_id])
    assert across.relay_hash(relay, chain_id) == keccak256(hashed)
    call = encoded(eth_account, [RELAY, "uint256", "bytes32"], [relay, chain_id, account])
    assert (
        across.fill_relay(relay, chain_id, account) == selector(f"fillRelay({RELAY},uint256,bytes32)") + call
    )


@pytest.mark.oracle
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_calls_are_what_eth_abi_says(eth_account: Oracle, data: st.DataObject) -> None:
    def check(signature: str, call: Callable[..., bytes], names: str = "") -> None:
        types = split_types(signature)
        values = [data.draw(KINDS[kind]) for kind in types]
        named = dict(zip(names.split(), values, strict=True)) if names else {}
        made = call(**named) if names else call(*values)
        assert made == selector(signature) + encoded(eth_account, types, values)

    check(
        "depositV3(address,address,address,address,uint256,uint256,uint256,address,uint32,uint32,uint32,bytes)",
        across.deposit_v3,
        "depositor recipient input_token output_token input_amount output_amount destination_chain_id"
        " exclusive_relayer quote_timestamp fill_deadline exclusivity message",
    )
    check("fillStatuses(bytes32)", across.fill_status)
    check("receiveMessage(bytes,bytes)", cctp.receive_message)
    check("usedNonces(bytes32)", cctp.used_nonce)
    assert selector("numberOfDeposits()") == across.NUMBER_OF_DEPOSITS


def split_types(signature: str) -> list[str]:
    return signature.partition("(")[2].removesuffix(")").split(",")


@pytest.mark.oracle
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(uint32, uint256, address, st.lists(st.tuples(address, uint256), max_size=3))
def test_a_refund_leaf_is_what_eth_abi_says(
    eth_account: Oracle, bundle: int, chain_id: int, token: bytes, refunds: list[tuple[bytes, int]]
) -> None:
    leaf = "(uint256,uint256,uint256[],uint32,address,address[])"
    amounts, receivers = [amount for _, amount in refunds], [receiver for receiver, _ in refunds]
    value = [0, chain_id, amounts, 0, token, receivers]
    call = encoded(eth_account, ["uint32", leaf, "bytes32[]"], [bundle, value, []])
    made = across.execute_refund_leaf(bundle, chain_id, token, refunds)
    assert made == selector(f"executeRelayerRefundLeaf(uint32,{leaf},bytes32[])") + call


@pytest.mark.oracle
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(uint256, uint32, word, address, uint256, uint32)
def test_a_burn_is_what_eth_abi_says(
    eth_account: Oracle,
    amount: int,
    domain: int,
    recipient: bytes,
    token: bytes,
    max_fee: int,
    finality: int,
) -> None:
    signature = "depositForBurn(uint256,uint32,bytes32,address,bytes32,uint256,uint32)"
    values = [amount, domain, recipient, token, bytes(32), max_fee, finality]
    made = cctp.deposit_for_burn(amount, domain, recipient, token, max_fee, finality)
    assert made == selector(signature) + encoded(eth_account, split_types(signature), values)


@given(RELAYS, uint256, word)
def test_a_fill_is_only_of_the_deposit_whose_every_member_it_has(
    relay: across.RelayData, repaid_on: int, relayer: bytes
) -> None:
    message_hash = keccak256(relay.message) if relay.message else bytes(32)
    members = {name: getattr(relay, name) for name in relay.__struct_fields__ if name != "message"}
    fill = across.FilledRelay(
        **members,
        repayment_chain_id=repaid_on,
        relayer=relayer,
        message_hash=message_hash,
        updated_recipient=relay.recipient,
        updated_message_hash=message_hash,
        updated_output_amount=relay.output_amount,
        fill_type=0,
    )
    assert fill.is_of(relay)
    for name, value in members.items():
        other = value + 1 if isinstance(value, int) else bytes(byte ^ 1 for byte in value)
        assert not fill.is_of(msgspec.structs.replace(relay, **{name: other}))
    assert not fill.is_of(msgspec.structs.replace(relay, message=relay.message + b"\0"))


def test_the_relay_data_of_a_deposit() -> None:
    one, two, three, four, five = (bytes([number]) * 32 for number in range(1, 6))
    deposit = across.FundsDeposited(one, two, 10, 9, 31_338, 7, 100, 200, 150, three, four, five, b"hi")
    assert deposit.relay(31_337) == across.RelayData(
        depositor=three, recipient=four, exclusive_relayer=five, input_token=one, output_token=two,
        input_amount=10, output_amount=9, origin_chain_id=31_337, deposit_id=7, fill_deadline=200,
        exclusivity_deadline=150, message=b"hi",
    )  # fmt: skip
