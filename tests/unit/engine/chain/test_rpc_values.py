"""Strict reading of nodes' answers: values of valid answers, a clear refusal of all others."""

import json
from collections.abc import Callable
from typing import Any

import hypothesis
import hypothesis.strategies as st
import pytest

from cambist.config.errors import InvalidInput
from cambist.config.limits import CHAIN_COUNT_MAX, UINT256_MAX
from cambist.engine.chain.nodes import rpc_values as values
from cambist.engine.chain.port import EthCall, Header, Log, LogFilter, Receipt

HASH, PARENT, TX = ("0x" + digit * 64 for digit in "abc")
ADDRESS = "0x" + "d" * 40
TOPIC = "0x" + "e" * 64
LOG: dict[str, Any] = {
    "address": ADDRESS, "topics": [TOPIC], "data": "0x0102", "blockNumber": "0x10", "blockHash": HASH,
    "transactionHash": TX, "transactionIndex": "0x1", "logIndex": "0x2", "removed": False,
}  # fmt: skip
BLOCK: dict[str, Any] = {
    "number": "0x10", "hash": HASH, "parentHash": PARENT, "timestamp": "0x64", "gasUsed": "0x5208",
    "gasLimit": "0x1c9c380", "baseFeePerGas": "0x7", "logsBloom": "0x" + "00" * 256, "extra": [1, {}],
}  # fmt: skip
RECEIPT: dict[str, Any] = {
    "transactionHash": TX, "status": "0x1", "blockNumber": "0x10", "blockHash": HASH,
    "transactionIndex": "0x1", "gasUsed": "0x5208", "effectiveGasPrice": "0x8", "logs": [LOG],
    "contractAddress": None,
}  # fmt: skip

READ_LOG = Log(
    address=bytes.fromhex("dd" * 20), topics=(bytes.fromhex("ee" * 32),), data=b"\1\2", block_number=16,
    block_hash=bytes.fromhex("aa" * 32), tx_hash=bytes.fromhex("cc" * 32), tx_index=1, log_index=2,
)  # fmt: skip


def raw(value: object) -> bytes:
    return json.dumps(value).encode()


def test_a_block() -> None:
    block = values.read_block(raw(BLOCK))
    assert block is not None
    assert block.header == Header(16, bytes.fromhex("aa" * 32), bytes.fromhex("bb" * 32), 100, 7)
    assert (block.gas_used, block.gas_limit, block.bloom) == (21_000, 30_000_000, bytes(256))
    assert values.read_block(b"null") is None


def test_a_block_of_a_chain_without_base_fees() -> None:
    block = values.read_block(raw({name: value for name, value in BLOCK.items() if name != "baseFeePerGas"}))
    assert block is not None
    assert block.header.base_fee_wei == 0


def test_logs_are_put_in_order() -> None:
    later = LOG | {"blockNumber": "0x11", "logIndex": "0x0"}
    earlier = LOG | {"logIndex": "0x1"}
    read = values.read_logs(raw([later, LOG, earlier]))
    assert [(log.block_number, log.log_index) for log in read] == [(16, 1), (16, 2), (17, 0)]
    assert read[1] == READ_LOG


def test_a_receipt() -> None:
    assert values.read_receipt(raw(RECEIPT)) == Receipt(
        READ_LOG.tx_hash, True, 16, READ_LOG.block_hash, 1, 21_000, 8, None, (READ_LOG,)
    )
    failed = values.read_receipt(raw(RECEIPT | {"status": "0x0", "contractAddress": ADDRESS, "logs": []}))
    assert failed is not None
    assert (failed.succeeded, failed.contract) == (False, READ_LOG.address)
    assert values.read_receipt(b"null") is None


def test_fee_history() -> None:
    history = {"baseFeePerGas": ["0x1", "0x2"], "reward": [["0x3"]], "gasUsedRatio": [0.5]}
    assert values.read_fee_history(raw(history)) == values.FeeHistory(2, 3)
    assert values.read_fee_history(raw(history | {"reward": None})) == values.FeeHistory(2, None)
    assert values.read_fee_history(raw(history | {"reward": [[]]})) == values.FeeHistory(2, None)
    with pytest.raises(InvalidInput, match="baseFeePerGas is empty"):
        values.read_fee_history(raw(history | {"baseFeePerGas": []}))


@pytest.mark.parametrize(
    ("text", "number"),
    [("0x0", 0), ("0x00", 0), ("0x0a", 10), ("0XfF", 255), ("0x" + "f" * 64, UINT256_MAX)],
)
def test_quantities(text: str, number: int) -> None:
    assert values.read_quantity(raw(text)) == number


@pytest.mark.parametrize(
    "value",
    [
        "0x", "", "10", "-0x1", "0x-1", "0x_1", "0x1_0", " 0x1", "0x1 ", "0x1\n", "0xg", "0x" + "0" * 65,
        "0x" + "f" * 65, "0x١", 1, -1, 1.5, None, True, [], {}, ["0x1"], {"result": "0x1"},
    ],
)  # fmt: skip
def test_what_is_no_quantity(value: object) -> None:
    with pytest.raises(InvalidInput):
        values.read_quantity(raw(value))


@pytest.mark.parametrize(
    ("read", "good", "changes"),
    [
        (values.read_block, BLOCK, {"number": hex(CHAIN_COUNT_MAX + 1)}),
        (values.read_block, BLOCK, {"number": None}),
        (values.read_block, BLOCK, {"hash": "0x" + "a" * 62}),
        (values.read_block, BLOCK, {"hash": None}),
        (values.read_block, BLOCK, {"parentHash": "0x" + "a" * 66}),
        (values.read_block, BLOCK, {"timestamp": 100}),
        (values.read_block, BLOCK, {"timestamp": hex(CHAIN_COUNT_MAX // 1_000 + 1)}),
        (values.read_block, BLOCK, {"timestamp": "-0x1"}),
        (values.read_block, BLOCK, {"logsBloom": "0x"}),
        (values.read_block, BLOCK, {"gasLimit": "0x" + "f" * 64}),
        (values.read_receipt, RECEIPT, {"status": "0x2"}),
        (values.read_receipt, RECEIPT, {"blockHash": None}),
        (values.read_receipt, RECEIPT, {"logs": {}}),
        (values.read_receipt, RECEIPT, {"logs": [LOG | {"blockHash": PARENT}]}),
        (values.read_receipt, RECEIPT, {"logs": [LOG | {"transactionHash": HASH}]}),
        (values.read_receipt, RECEIPT, {"contractAddress": "0x"}),
    ],
)
def test_a_wrong_field_spoils_the_whole(
    read: Callable[[bytes], object], good: dict[str, Any], changes: dict[str, Any]
) -> None:
    read(raw(good))
    with pytest.raises(InvalidInput):
        read(raw(good | changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"address": ADDRESS[:-2]}, {"topics": [TOPIC] * 5}, {"topics": [TOPIC[:-2]]}, {"topics": None},
        {"data": "0x1"}, {"data": None}, {"blockNumber": None}, {"blockHash": None}, {"logIndex": "2"},
        {"transactionIndex": "-0x1"}, {"removed": True}, {"removed": "no"},
    ],
)  # fmt: skip
def test_a_wrong_log_spoils_all(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        values.read_logs(raw([LOG, LOG | {"logIndex": "0x3"} | changes]))


def test_a_log_that_comes_twice() -> None:
    with pytest.raises(InvalidInput, match="log 2 of block 16 comes twice"):
        values.read_logs(raw([LOG, LOG]))


def test_what_is_nested_or_huge_is_refused() -> None:
    for reader in (values.read_block, values.read_logs, values.read_receipt, values.read_bytes):
        for hostile in (b"[" * 100_000, b'{"a":' * 100_000, b'"' + b"0" * (33 << 20) + b'"', b"", b"\xff"):
            with pytest.raises(InvalidInput):
                reader(hostile)


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.from_regex(r"0x[0-9a-f]{0,70}", fullmatch=True),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from([*LOG, *BLOCK, *RECEIPT]), inner)
    ),
    max_leaves=20,
)


@hypothesis.given(_JSON)
def test_nothing_but_a_refusal_ever_comes_of_nonsense(value: object) -> None:
    readers = (
        values.read_block, values.read_logs, values.read_receipt, values.read_bytes, values.read_quantity,
        values.read_hash, values.read_fee_history, values.read_transaction_hash,
    )  # fmt: skip
    for reader in readers:
        try:
            reader(raw(value))
        except InvalidInput:
            continue


def test_how_nodes_are_asked() -> None:
    assert values.block_parameter(None) == "latest"
    assert values.block_parameter(255) == "0xff"
    assert values.block_parameter(b"\1" * 32) == {"blockHash": "0x" + "01" * 32, "requireCanonical": True}
    assert values.call_parameter(EthCall(b"\1" * 20, b"\2")) == {"to": "0x" + "01" * 20, "data": "0x02"}
    assert values.call_parameter(EthCall(b"", b"", b"\3" * 20, 5, 21_000)) == {
        "data": "0x", "from": "0x" + "03" * 20, "value": "0x5", "gas": "0x5208",
    }  # fmt: skip
    assert values.filter_parameter(LogFilter()) == {}
    assert values.filter_parameter(LogFilter((b"\1" * 20,), ((), (b"\2" * 32,)))) == {
        "address": ["0x" + "01" * 20],
        "topics": [None, ["0x" + "02" * 32]],
    }
