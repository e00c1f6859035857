"""Prices of gas, from any of the four answers that nodes have."""

import json

import pytest

from cambist.config.errors import ChainError
from cambist.engine.chain.nodes.rpc_fees import fees_of, next_base_fee
from cambist.engine.chain.nodes.rpc_values import FullHeader
from cambist.engine.chain.nodes.rpc_wording import RpcError
from cambist.engine.chain.port import GasFees, Header

ABSENT = RpcError(-32601, "the method does not exist")
HISTORY = json.dumps({"baseFeePerGas": ["0x64", "0x65"], "reward": [["0x7"]]}).encode()
NO_REWARD = json.dumps({"baseFeePerGas": ["0x64", "0x65"]}).encode()
LATEST = json.dumps(
    {
        "number": "0x1", "hash": "0x" + "01" * 32, "parentHash": "0x" + "02" * 32, "timestamp": "0x1",
        "baseFeePerGas": "0x3e8", "gasUsed": "0xa", "gasLimit": "0xa", "logsBloom": "0x" + "00" * 256,
    }
).encode()  # fmt: skip


@pytest.mark.parametrize(
    ("history", "suggested", "fees"),
    [
        (HISTORY, b'"0x9"', GasFees(0x65, 9)),
        (HISTORY, ABSENT, GasFees(0x65, 7)),
        (NO_REWARD, ABSENT, GasFees(0x65, 2_000 - 0x65)),
        (ABSENT, b'"0x9"', GasFees(1_125, 9)),
        (ABSENT, ABSENT, GasFees(1_125, 2_000 - 1_125)),
    ],
)
def test_the_best_that_a_node_has(
    history: bytes | RpcError, suggested: bytes | RpcError, fees: GasFees
) -> None:
    assert fees_of(history, suggested, LATEST, b'"0x7d0"') == fees


def test_a_price_below_the_base_fee_leaves_no_tip() -> None:
    assert fees_of(ABSENT, ABSENT, LATEST, b'"0x1"') == GasFees(1_125, 0)


def test_a_node_that_tells_nothing() -> None:
    with pytest.raises(ChainError, match="eth_gasPrice: -32601"):
        fees_of(NO_REWARD, ABSENT, LATEST, ABSENT)
    with pytest.raises(ChainError, match="has no latest block"):
        fees_of(ABSENT, ABSENT, b"null", ABSENT)


@pytest.mark.parametrize(
    ("base_fee_wei", "gas_used", "gas_limit", "after"),
    [
        (1_000, 50, 100, 1_000),
        (1_000, 100, 100, 1_125),
        (1_000, 0, 100, 875),
        (1, 100, 100, 2),
        (1, 0, 100, 1),
        (0, 100, 100, 0),
        (1_000, 10, 0, 1_000),
    ],
)
def test_the_next_base_fee(base_fee_wei: int, gas_used: int, gas_limit: int, after: int) -> None:
    """EIP-1559: by an eighth at most, up by one at least."""
    header = Header(1, b"\1" * 32, b"\2" * 32, 1, base_fee_wei)
    assert next_base_fee(FullHeader(header, bytes(256), gas_used, gas_limit)) == after
