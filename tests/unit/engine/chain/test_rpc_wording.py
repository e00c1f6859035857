"""Meanings of nodes' errors, in the words of the different nodes."""

import json

import msgspec
import pytest

from cambist.config.errors import RefusalKind
from cambist.engine.chain.nodes import rpc_wording as wording
from cambist.engine.chain.nodes.rpc_wording import RpcError
from cambist.engine.chain.reverts import revert_reason

ERROR = "08c379a0" + "20".rjust(64, "0") + "8".rjust(64, "0") + b"too late".hex().ljust(64, "0")


def fault(message: str, code: int = -32000, data: object = None) -> RpcError:
    return RpcError(code, message, msgspec.Raw(json.dumps(data).encode() if data is not None else b""))


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        # geth and its forks
        ("nonce too low: next nonce 5, tx nonce 3", RefusalKind.NONCE_TOO_LOW),
        ("nonce too high", RefusalKind.NONCE_TOO_HIGH),
        ("replacement transaction underpriced", RefusalKind.UNDERPRICED),
        ("transaction underpriced: tip needed 1, tip permitted 0", RefusalKind.FEE_TOO_LOW),
        (
            "max fee per gas less than block base fee: address 0x1, maxFeePerGas: 1, baseFee: 7",
            RefusalKind.FEE_TOO_LOW,
        ),
        ("insufficient funds for gas * price + value: balance 0, tx cost 1, overshot 1", RefusalKind.FUNDS),
        ("intrinsic gas too low: gas 20000, minimum needed 21000", RefusalKind.GAS),
        ("exceeds block gas limit", RefusalKind.GAS),
        ("max priority fee per gas higher than max fee per gas", RefusalKind.INVALID),
        ("invalid sender", RefusalKind.INVALID),
        ("tx fee (2.00 ether) exceeds the configured cap (1.00 ether)", RefusalKind.INVALID),
        ("oversized data: transaction size 140000, limit 131072", RefusalKind.INVALID),
        ("only replay-protected (EIP-155) transactions allowed over RPC", RefusalKind.INVALID),
        # erigon
        ("could not replace existing tx", RefusalKind.UNDERPRICED),
        ("fee too low", RefusalKind.FEE_TOO_LOW),
        ("GasUintOverflow", RefusalKind.GAS),
        ("initcode too large", RefusalKind.INVALID),
        # nethermind
        ("OldNonce, Current nonce: 5, nonce of rejected tx: 3", RefusalKind.NONCE_TOO_LOW),
        ("NonceGap, Future nonce. Expected nonce: 5", RefusalKind.NONCE_TOO_HIGH),
        ("ReplacementNotAllowed", RefusalKind.UNDERPRICED),
        ("InsufficientFunds, Account balance: 0", RefusalKind.FUNDS),
        ("FeeTooLow, MaxFeePerGas too low", RefusalKind.FEE_TOO_LOW),
        ("GasLimitExceeded, gas limit", RefusalKind.GAS),
        # besu
        ("Nonce too low", RefusalKind.NONCE_TOO_LOW),
        ("Transaction nonce is too distant from current sender nonce", RefusalKind.NONCE_TOO_HIGH),
        ("Max priority fee per gas exceeds max fee per gas", RefusalKind.INVALID),
        ("Transaction fee cap exceeded", RefusalKind.INVALID),
        ("Wrong chainId", RefusalKind.INVALID),
        ("Intrinsic gas exceeds gas limit", RefusalKind.GAS),
        ("Gas price below current base fee", RefusalKind.FEE_TOO_LOW),
        ("Upfront cost exceeds account balance", RefusalKind.FUNDS),
        ("Gas price below configured minimum gas price", RefusalKind.FEE_TOO_LOW),
        ("Transaction gas limit exceeds block gas limit", RefusalKind.GAS),
        ("Replacement transaction underpriced", RefusalKind.UNDERPRICED),
        # reth
        ("nonce too low: next nonce 6, tx nonce 3", RefusalKind.NONCE_TOO_LOW),
        ("insufficient funds for gas * price + value: have 0 want 1", RefusalKind.FUNDS),
        ("max fee per gas less than block base fee", RefusalKind.FEE_TOO_LOW),
        ("gas limit too high", RefusalKind.GAS),
        # anvil
        ("Tx: [0x12] insufficient gas price to replace existing transaction", RefusalKind.UNDERPRICED),
        ("Incompatible EIP-155 transaction, signed for another chain", RefusalKind.INVALID),
        ("Transaction gas limit is greater than the block gas limit, gas_limit: 9, cap: 8", RefusalKind.GAS),
        ("Insufficient funds for gas * price + value", RefusalKind.FUNDS),
        ("intrinsic gas too high -- tx.gas_limit > env.block.gas_limit", RefusalKind.GAS),
        ("invalid chain id for signer", RefusalKind.INVALID),
        ("max initcode size exceeded", RefusalKind.INVALID),
        ("Failed to decode transaction", RefusalKind.INVALID),
        # not of a transaction
        ("database is locked", None),
        ("", None),
    ],
)
def test_why_a_transaction_was_not_taken(message: str, kind: RefusalKind | None) -> None:
    assert wording.refusal_kind(fault(message)) == kind


@pytest.mark.parametrize(
    "message",
    [
        "already known", "ALREADY_EXISTS: already known", "AlreadyKnown", "Known transaction",
        "Transaction with the same hash was already imported.", "Tx: [0x12] already Imported",
        "existing txn with same hash", "INTERNAL_ERROR: existing tx with same hash",
    ],
)  # fmt: skip
def test_what_is_known_is_known(message: str) -> None:
    assert wording.is_known_already(fault(message))


@pytest.mark.parametrize("message", ["nonce too low", "unknown transaction type", "unknown account"])
def test_what_only_sounds_like_it_is_not(message: str) -> None:
    assert not wording.is_known_already(fault(message))


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (-32005, "query returned more than 10000 results"),
        (-32005, "query returned more than 10000 results. Try with this block range [0x1, 0x2]."),
        (-32602, "Log response size exceeded. You can make eth_getLogs requests with up to a 2K block range"),
        (-32000, "exceed maximum block range: 5000"),
        (-32000, "block range is too wide"),
        (-32000, "eth_getLogs is limited to a 10,000 range"),
        (-32614, "eth_getLogs is limited to a 10,000 range"),
        (-32000, "query timeout exceeded"),
        (-32002, "request timed out"),
        (-32602, "query exceeds max results 20000, retry with the range 1-2"),
        (-32005, "Requested range exceeds maximum RPC range limit"),
        (-32000, "too many blocks requested"),
        (-32602, "query exceeds max block range 100000"),
        (35, "ranges over 10000 blocks are not supported on freetier"),
        (-32701, "Please specify an address in your request or, to reduce the number of logs"),
    ],
)
def test_a_range_that_is_too_wide(code: int, message: str) -> None:
    said = fault(message, code)
    assert wording.is_logs_refusal(said)
    assert not wording.is_over_rate(said)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (-32005, "limit exceeded"),
        (-32005, "daily request count exceeded, request rate limited"),
        (429, "Your app has exceeded its compute units per second capacity"),
        (-32016, "over rate limit"),
        (-32029, "Too many requests"),
        (-32007, "50/second request limit reached"),
    ],
)
def test_over_its_rate(code: int, message: str) -> None:
    assert wording.is_over_rate(fault(message, code))
    assert not wording.is_logs_refusal(fault(message, code))


@pytest.mark.parametrize(
    "message", ["batch too large", "Batch size is too large", "Number of requests exceeds max batch size"]
)
def test_a_batch_that_is_too_large(message: str) -> None:
    assert wording.is_batch_refusal(fault(message))
    assert not wording.is_over_rate(fault(message, -32005))


@pytest.mark.parametrize(
    "message",
    [
        "unknown block", "header not found", "header for hash not found", "Resource not found",
        "hash 0x01 is not currently canonical", "block not found: hash 0x01", "Block not found",
        "Header not found", "0x01 block is not canonical", "block range extends beyond current head block",
        "BlockOutOfRangeError: block height is 2 but requested was 153",
    ],
)  # fmt: skip
def test_a_block_that_is_not_there(message: str) -> None:
    assert wording.is_block_unknown(fault(message))
    assert wording.revert_data(fault(message)) is None


@pytest.mark.parametrize(
    "message", ["missing trie node 01", "historical state is not available", "rate limit"]
)
def test_a_state_that_is_pruned_is_no_block_that_is_gone(message: str) -> None:
    assert not wording.is_block_unknown(fault(message))
    assert wording.revert_data(fault(message)) is None


@pytest.mark.parametrize(
    "said",
    [
        fault("execution reverted: too late", 3, f"0x{ERROR}"),  # geth, anvil, reth, erigon
        fault("execution reverted", -32000, {"data": f"0x{ERROR}"}),  # hardhat
        fault(
            "Error: VM Exception while processing transaction",
            -32603,
            {"data": f"0x{ERROR}", "txHash": "0x1"},
        ),
        fault("VM execution error.", -32015, f"Reverted 0x{ERROR}"),  # nethermind, openethereum
        fault("Execution reverted (too late)", -32000, f"0x{ERROR}"),  # besu
    ],
)
def test_where_nodes_put_what_a_contract_returned(said: RpcError) -> None:
    refusal = wording.as_revert(said, revert_reason)
    assert refusal is not None
    assert refusal.data == bytes.fromhex(ERROR)
    assert refusal.reason == "too late"


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (fault("execution reverted: too late"), "too late"),
        (fault("execution reverted", 3, "0x"), ""),
        (fault("execution reverted", 3), ""),
        (fault("execution reverted", 3, "0xzz"), ""),
        (fault("execution reverted", 3, {"data": {"data": ["0x"]}}), ""),
        (fault("execution reverted", 3, 5), ""),
        (fault("invalid opcode: INVALID"), "invalid opcode: INVALID"),
        (fault("EVM error InvalidFEOpcode", -32603), "EVM error InvalidFEOpcode"),
        (fault("out of gas"), "out of gas"),
        (fault("gas required exceeds allowance (50000)"), "gas required exceeds allowance (50000)"),
    ],
)
def test_a_refusal_without_data(said: RpcError, reason: str) -> None:
    refusal = wording.as_revert(said, revert_reason)
    assert refusal is not None
    assert (refusal.reason, refusal.data) == (reason, b"")


def test_a_transaction_that_besu_refuses_is_no_matter_of_rate() -> None:
    said = fault("Transaction gas limit exceeds block gas limit", -32005)
    assert not wording.is_over_rate(said)
    assert wording.refusal_kind(said) is RefusalKind.GAS


def test_a_long_message_is_cut() -> None:
    said = fault("execution reverted: " + "x" * 10_000)
    refusal = wording.as_revert(said, revert_reason)
    assert refusal is not None
    assert len(refusal.reason) == wording.DETAIL_CHARS_MAX
    assert len(str(said)) < 300


@pytest.mark.parametrize(
    "words", ["over rate limit", "batch too large", "header not found", "query timeout exceeded", "quota"]
)
@pytest.mark.parametrize("code", [3, -32000])
def test_a_contract_cannot_speak_for_the_node(words: str, code: int) -> None:
    said = fault(f"execution reverted: {words}", code)
    assert not wording.is_over_rate(said)
    assert not wording.is_batch_refusal(said)
    assert not wording.is_logs_refusal(said)
    assert not wording.is_block_unknown(said)
    refusal = wording.as_revert(said, revert_reason)
    assert refusal is not None
    assert refusal.reason == words
