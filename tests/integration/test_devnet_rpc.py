"""JSON-RPC 2.0 as the devnet speaks it: envelopes, errors with their codes and words, filters, sockets."""

import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Any

import msgspec
import pytest
import trio

from cambist.codecs.http1 import Http1Limits
from cambist.codecs.transactions import Transaction, sign_transaction
from cambist.config import limits
from cambist.engine.dev.devnet.dispatch import answer
from cambist.engine.dev.devnet.facade import Methods
from cambist.engine.dev.devnet.moves import Moves
from cambist.engine.dev.devnet.node import all_methods
from cambist.engine.dev.embedded.embedded import EmbeddedChain
from cambist.feeds.transport.http_client import HttpClient
from cambist.feeds.transport.websocket import WebSocket, connect_websocket
from support.chain.anvil import Anvil
from support.chain.devnet import KEYS, NOW_S, served_chain
from support.patience import PATIENCE_S

pytestmark = pytest.mark.needs("pyrevm")

ALICE = KEYS[0]
HASH = "0x" + "11" * 32
ADDRESS = "0x" + "77" * 20
PUSH_LOG = bytes.fromhex("60006000a000")  # emits a log without topics


@pytest.fixture
async def methods() -> AsyncIterator[Methods]:
    chain = EmbeddedChain(31_337, lambda: NOW_S, {key.address: 10**20 for key in KEYS})
    async with Moves.followed(chain) as moves:
        yield all_methods(chain, KEYS, moves, are_public=True)


async def ask(methods: Methods, method: str, *parameters: Any) -> Any:
    body = await answer(
        msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}), methods
    )
    return json.loads(body)


async def result(methods: Methods, method: str, *parameters: Any) -> Any:
    told = await ask(methods, method, *parameters)
    assert "error" not in told, told
    return told["result"]


_TYPED = {
    "types": {
        "EIP712Domain": [{"name": "name", "type": "string"}, {"name": "chainId", "type": "uint256"}],
        "Mail": [{"name": "to", "type": "address"}, {"name": "amounts", "type": "uint256[]"}],
    },
    "primaryType": "Mail",
    "domain": {"name": "Ether Mail", "chainId": 31_337},
    "message": {"to": ADDRESS, "amounts": ["7", "0x10", 3]},
}
_OWN, _OTHERS = "0x" + KEYS[2].address.hex(), ADDRESS
_SIGNED: list[tuple[str, list[Any]]] = [
    ("eth_accounts", []),
    ("eth_requestAccounts", []),
    ("personal_sign", ["0x1234", _OWN]),
    ("personal_sign", ["0x", _OWN]),
    ("eth_sign", [_OWN, "0x" + "ab" * 300]),
    ("eth_signTypedData_v4", [_OWN, _TYPED]),
    ("eth_signTypedData_v4", [_OWN, json.dumps(_TYPED)]),
    ("personal_sign", ["hello", _OWN]),
    ("personal_sign", ["0x1234", _OTHERS]),
    ("eth_sign", [_OTHERS, "0x1234"]),
    ("eth_sign", [_OWN]),
    ("eth_signTypedData_v4", [_OTHERS, _TYPED]),
    ("eth_signTypedData_v4", [_OWN, _TYPED | {"message": {"to": ADDRESS}}]),
    ("eth_signTypedData_v4", [_OWN, "{"]),
]


@pytest.mark.anvil
async def test_a_wallets_methods_answer_as_anvils(methods: Methods) -> None:
    """The same accounts and signatures, and refusals with the same codes."""
    with Anvil() as anvil:
        async with HttpClient("127.0.0.1", anvil.port, connections_max=1, limits=Http1Limits()) as client:
            for name, parameters in _SIGNED:
                body = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": name, "params": parameters})
                heads = [(b"content-type", b"application/json")]
                answered = await client.request(b"POST", b"/", heads, body, deadline_s=PATIENCE_S)
                theirs, ours = json.loads(answered.body), await ask(methods, name, *parameters)
                assert ours.get("result") == theirs.get("result"), name
                codes = [told.get("error", {}).get("code") for told in (ours, theirs)]
                assert codes[0] == codes[1], (ours, theirs)


@pytest.mark.parametrize(("name", "parameters"), _SIGNED[2:7])
async def test_accounts_of_a_private_mnemonic_sign_transactions_alone(
    name: str, parameters: list[Any]
) -> None:
    chain = EmbeddedChain(31_337, lambda: NOW_S, {key.address: 10**20 for key in KEYS})
    async with Moves.followed(chain) as moves:
        methods = all_methods(chain, KEYS, moves)
        fault = (await ask(methods, name, *parameters))["error"]
        assert fault["message"] == "accounts of --mnemonic sign transactions alone"
        sent = {"from": _OWN, "to": ADDRESS, "value": "0x1"}
        assert await result(methods, "eth_sendTransaction", sent)


async def test_a_chain_that_goes_back_before_its_record_is_followed_on() -> None:
    chain = EmbeddedChain(31_337, lambda: NOW_S, {key.address: 10**20 for key in KEYS})
    snapshot = await chain.snapshot()
    await chain.mine(3)
    async with Moves.followed(chain) as moves:  # as after a restart of a kept chain
        methods = all_methods(chain, KEYS, moves)
        assert await result(methods, "evm_revert", hex(snapshot))
        await moves.catch_up()
        heard = moves.count
        await chain.mine()
        await moves.wait(heard)
        assert [move.block.header.number for move in moves.since(heard)] == [1]


async def test_a_wallet_is_switched_to_this_chain_alone(methods: Methods) -> None:
    assert await result(methods, "wallet_switchEthereumChain", {"chainId": "0x7a69"}) is None
    told = await ask(methods, "wallet_switchEthereumChain", {"chainId": "0x1"})
    assert told["error"] == {"code": 4902, "message": "unrecognized chain ID 0x1: this is 0x7a69"}
    told = await ask(methods, "wallet_switchEthereumChain", {})
    assert told["error"]["code"] == -32602


@pytest.mark.parametrize(
    ("body", "code", "call_id"),
    [
        (b"", -32700, None),
        (b"{", -32700, None),
        (b"\xff", -32700, None),
        (b'{"jsonrpc":"2.0","id":7}', -32600, 7),
        (b'{"jsonrpc":"1.0","id":7,"method":"eth_chainId"}', -32600, 7),
        (b'{"jsonrpc":"2.0","id":{},"method":"eth_chainId"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":true,"method":"eth_chainId"}', -32600, None),
        (b"1", -32600, None),
        (b"[]", -32600, None),
        (b'{"jsonrpc":"2.0","id":"a","method":"eth_nothing"}', -32601, "a"),
        (b'{"jsonrpc":"2.0","id":"a","method":"eth_getBalance","params":{"address":"0x"}}', -32602, "a"),
    ],
)
async def test_what_is_no_call_is_refused(methods: Methods, body: bytes, code: int, call_id: object) -> None:
    told = json.loads(await answer(body, methods))
    assert told["error"]["code"] == code
    assert told["id"] == call_id


@pytest.mark.parametrize(
    ("method", "parameters", "named"),
    [
        ("eth_getBalance", [], "argument 0: address"),
        ("eth_getBalance", ["0x12"], "address: expected an address"),
        ("eth_getBalance", [ADDRESS, "newest"], "block: expected latest"),
        ("eth_getBalance", [ADDRESS, "latest", 1], "too many"),
        ("eth_call", [{"to": ADDRESS, "value": "12"}], "transaction.value: expected a quantity"),
        ("eth_call", [{"data": "0x1", "to": ADDRESS}], "transaction.data: expected 0x"),
        ("eth_call", [{"data": "0x12", "input": "0x13"}], "data and input"),
        ("eth_call", [{}, "latest", {ADDRESS: {}}], "overrides"),
        ("eth_getBlockByHash", ["0x1234", False], "hash: expected 32 bytes"),
        ("eth_getBlockByNumber", ["latest", "yes"], "full: expected `bool`"),
        ("eth_getLogs", [{"topics": [HASH] * 5}], "at most 4 topics"),
        ("eth_getLogs", [{"blockHash": HASH, "fromBlock": "0x1"}], "blockHash, or fromBlock"),
        ("eth_getLogs", [{"fromBlock": "0x5", "toBlock": "0x1"}], "5 is above 1"),
        ("eth_feeHistory", ["0x1", "latest", [50, 20]], "percentiles"),
        ("evm_setNextBlockTimestamp", [-1], "seconds: expected a number"),
        ("anvil_setBalance", [ADDRESS], "argument 1: wei"),
        ("anvil_reorg", [1, [["0x00", 1]]], "blocks below 1"),
    ],
)
async def test_a_wrong_parameter_is_named(
    methods: Methods, method: str, parameters: list[object], named: str
) -> None:
    error = (await ask(methods, method, *parameters))["error"]
    assert error["code"] == -32602
    assert named in error["message"]


async def test_batches_and_notifications(methods: Methods) -> None:
    one = {"jsonrpc": "2.0", "id": 1, "method": "eth_chainId"}
    silent = {"jsonrpc": "2.0", "method": "evm_mine"}
    told = json.loads(await answer(msgspec.json.encode([one, silent, 5]), methods))
    assert told[0]["result"] == "0x7a69"
    assert told[1]["error"]["code"] == -32600
    assert len(told) == 2
    assert await answer(msgspec.json.encode(silent), methods) == b""
    assert await answer(msgspec.json.encode([silent]), methods) == b""
    assert await result(methods, "eth_blockNumber") == "0x3"
    many = [one] * (limits.DEVNET_BATCH_CALLS_MAX + 1)
    assert json.loads(await answer(msgspec.json.encode(many), methods))["error"]["code"] == -32600


def a_creation(nonce: int, code: bytes, **changed: Any) -> str:
    """Creates the contract whose init code this is."""
    members: dict[str, Any] = {
        "chain_id": 31_337,
        "nonce": nonce,
        "tip_wei": 1,
        "fee_max_wei": 10**10,
        "gas": 200_000,
        "to": b"",
        "value_wei": 0,
        "data": code,
    }
    return "0x" + sign_transaction(Transaction(**members | changed), ALICE).raw.hex()


async def test_refusals_are_in_geths_words(methods: Methods) -> None:
    raw = a_creation(0, PUSH_LOG)
    await result(methods, "evm_setAutomine", False)
    await result(methods, "eth_sendRawTransaction", raw)
    pending = await result(methods, "eth_getTransactionCount", "0x" + ALICE.address.hex(), "pending")
    assert pending == "0x1"
    for sent, words in (
        (raw, "already known"),
        (a_creation(0, b""), "replacement transaction underpriced"),
        (a_creation(1, b"", gas=21_000), "intrinsic gas too low"),
        (a_creation(1, b"", gas=31_000_000), "exceeds block gas limit"),
        (a_creation(1, b"", value_wei=10**21), "insufficient funds for gas * price + value"),
        (a_creation(1, b"", fee_max_wei=1), "max fee per gas less than block base fee"),
        ("0x02", "invalid transaction"),
    ):
        error = (await ask(methods, "eth_sendRawTransaction", sent))["error"]
        assert (error["code"], error["message"].startswith(words)) == (-32000, True), error
    await result(methods, "evm_mine")
    error = (await ask(methods, "eth_sendRawTransaction", a_creation(0, b"")))["error"]
    assert error["message"].startswith("nonce too low")


async def test_the_pool_tells_executable_transactions_from_those_behind_a_gap(methods: Methods) -> None:
    await result(methods, "evm_setAutomine", False)
    sent = {
        nonce: await result(methods, "eth_sendRawTransaction", a_creation(nonce, PUSH_LOG))
        for nonce in (0, 1, 3)
    }
    pool = await result(methods, "txpool_content")
    alice = "0x" + ALICE.address.hex()
    waiting = {at: {nonce: tx["hash"] for nonce, tx in pool[at][alice].items()} for at in pool}
    assert waiting == {"pending": {"0": sent[0], "1": sent[1]}, "queued": {"3": sent[3]}}
    assert pool["queued"][alice]["3"] == await result(methods, "eth_getTransactionByHash", sent[3])
    await result(methods, "evm_mine")
    pool = await result(methods, "txpool_content")
    assert (pool["pending"], list(pool["queued"][alice])) == ({}, ["3"])


async def test_reverts_carry_their_data(methods: Methods) -> None:
    reverting = "0x602a60005260206000fd"  # reverts with the word 42
    error = (await ask(methods, "eth_call", {"data": reverting}))["error"]
    assert (error["code"], error["data"]) == (3, "0x" + "2a".rjust(64, "0"))
    assert error["message"].startswith("execution reverted")
    halted = (await ask(methods, "eth_call", {"data": "0xfe"}))["error"]
    assert halted["code"] == -32000
    unknown = (await ask(methods, "eth_call", {"to": ADDRESS}, {"blockHash": HASH}))["error"]
    assert "header not found" in unknown["message"]


async def test_blocks_transactions_and_receipts_have_their_members(methods: Methods) -> None:
    tx_hash = await result(methods, "eth_sendRawTransaction", a_creation(0, PUSH_LOG))
    block = await result(methods, "eth_getBlockByNumber", "latest", True)
    for name in ("logsBloom", "baseFeePerGas", "withdrawals", "mixHash", "gasLimit", "stateRoot", "uncles"):
        assert name in block
    assert block["logsBloom"] != "0x" + "00" * 256
    (transaction,) = block["transactions"]
    assert transaction == await result(methods, "eth_getTransactionByHash", tx_hash)
    assert transaction == await result(methods, "eth_getTransactionByBlockNumberAndIndex", "0x1", "0x0")
    assert transaction == await result(methods, "eth_getTransactionByBlockHashAndIndex", block["hash"], "0x0")
    assert await result(methods, "eth_getTransactionByBlockNumberAndIndex", "0x1", "0x1") is None
    assert (transaction["type"], transaction["chainId"]) == ("0x2", "0x7a69")
    receipt = await result(methods, "eth_getTransactionReceipt", tx_hash)
    assert receipt["status"] == "0x1"
    assert receipt["cumulativeGasUsed"] == receipt["gasUsed"] == block["gasUsed"]
    assert receipt["contractAddress"]
    assert [receipt] == await result(methods, "eth_getBlockReceipts", "latest")
    assert await result(methods, "eth_getBlockTransactionCountByHash", block["hash"]) == "0x1"
    assert await result(methods, "eth_getLogs", {"fromBlock": "earliest"}) == receipt["logs"]
    history = await result(methods, "eth_feeHistory", "0x5", "latest", [0, 50, 100])
    assert [len(history[name]) for name in ("baseFeePerGas", "gasUsedRatio", "reward")] == [3, 2, 2]
    assert history["reward"] == [["0x0"] * 3, ["0x1"] * 3]


async def test_a_transaction_of_an_account_is_signed_here(methods: Methods) -> None:
    sender = "0x" + ALICE.address.hex()
    assert sender in await result(methods, "eth_accounts")
    tx_hash = await result(methods, "eth_sendTransaction", {"from": sender, "to": ADDRESS, "value": "0x5"})
    assert (await result(methods, "eth_getTransactionReceipt", tx_hash))["status"] == "0x1"
    assert await result(methods, "eth_getBalance", ADDRESS) == "0x5"
    error = (await ask(methods, "eth_sendTransaction", {"from": ADDRESS, "to": ADDRESS}))["error"]
    assert "unknown account" in error["message"]


async def test_transactions_that_are_sent_at_once_have_nonces_of_their_own(methods: Methods) -> None:
    sent = {"from": "0x" + ALICE.address.hex(), "to": ADDRESS, "value": "0x1"}
    hashes: list[str] = []

    async def send() -> None:
        hashes.append(await result(methods, "eth_sendTransaction", sent))

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(send)
    assert len(set(hashes)) == 5
    assert await result(methods, "eth_getBalance", ADDRESS) == "0x5"


async def test_filters_tell_what_is_new_and_what_is_gone(methods: Methods) -> None:
    of_logs = await result(methods, "eth_newFilter", {})
    of_blocks = await result(methods, "eth_newBlockFilter")
    raw = a_creation(0, PUSH_LOG)
    await result(methods, "eth_sendRawTransaction", raw)
    (log,) = await result(methods, "eth_getFilterChanges", of_logs)
    assert await result(methods, "eth_getFilterChanges", of_blocks) == [log["blockHash"]]
    assert await result(methods, "eth_getFilterChanges", of_logs) == []
    await result(methods, "anvil_reorg", 1, [[raw, 0]])
    gone, came = await result(methods, "eth_getFilterChanges", of_logs)
    assert gone == log | {"removed": True}
    assert came["blockHash"] != log["blockHash"]
    assert came["removed"] is False
    assert await result(methods, "eth_uninstallFilter", of_logs) is True
    assert await result(methods, "eth_uninstallFilter", of_logs) is False
    error = (await ask(methods, "eth_getFilterChanges", of_logs))["error"]
    assert error["message"] == "filter not found"


async def test_filters_are_bounded(methods: Methods) -> None:
    first = await result(methods, "eth_newBlockFilter")
    others = [await result(methods, "eth_newBlockFilter") for _ in range(limits.DEVNET_FILTERS_MAX)]
    assert "error" in await ask(methods, "eth_getFilterChanges", first)
    assert await result(methods, "eth_getFilterChanges", others[0]) == []


async def test_a_filter_that_was_not_asked_for_too_long_is_gone(methods: Methods) -> None:
    kept = await result(methods, "eth_newBlockFilter")
    await result(methods, "anvil_mine", limits.DEVNET_MOVES_MAX + 1)
    new = await result(methods, "eth_newBlockFilter")
    assert (await ask(methods, "eth_getFilterChanges", kept))["error"]["message"] == "filter not found"
    await result(methods, "evm_mine")
    assert len(await result(methods, "eth_getFilterChanges", new)) == 1


async def test_time_is_passed(methods: Methods) -> None:
    assert await result(methods, "evm_increaseTime", 60) == 60
    assert await result(methods, "evm_increaseTime", "0x3c") == 120
    await result(methods, "evm_mine")
    assert int((await result(methods, "eth_getBlockByNumber", "latest"))["timestamp"], 16) == NOW_S + 120
    await result(methods, "evm_mine", {"timestamp": NOW_S + 500, "blocks": 2})
    assert int((await result(methods, "eth_getBlockByNumber", "latest"))["timestamp"], 16) == NOW_S + 500
    await result(methods, "anvil_mine", "0x3", "0xa")
    assert int((await result(methods, "eth_getBlockByNumber", "latest"))["timestamp"], 16) == NOW_S + 520
    assert (await ask(methods, "evm_setNextBlockTimestamp", NOW_S))["error"]["code"] == -32000


def a_socket(port: int) -> AbstractAsyncContextManager[WebSocket]:
    return connect_websocket(
        "127.0.0.1", port, "/", tls=None, headers={}, message_bytes_max=1 << 20, send_bytes_max=1 << 20
    )


async def received(socket: WebSocket) -> Any:
    with trio.fail_after(PATIENCE_S):
        return json.loads(await socket.receive())


async def test_subscriptions_announce_heads_and_logs() -> None:
    async with served_chain() as served, a_socket(served.port) as socket:

        async def asked(method: str, *parameters: object) -> Any:
            await socket.send(json.dumps({"jsonrpc": "2.0", "id": 9, "method": method, "params": parameters}))
            while True:
                message = await received(socket)
                if message.get("id") == 9:
                    return message
                announced.append(message["params"])

        announced: list[Any] = []
        heads = (await asked("eth_subscribe", "newHeads"))["result"]
        logs = (await asked("eth_subscribe", "logs", {}))["result"]
        for refused in (["syncing"], ["logs", True]):
            assert (await asked("eth_subscribe", *refused))["error"]["code"] == -32602
        assert "result" in await asked("eth_sendRawTransaction", a_creation(0, PUSH_LOG))
        while len(announced) < 2:
            announced.append((await received(socket))["params"])
        told = {one["subscription"]: one["result"] for one in announced}
        assert told[heads]["number"] == "0x1"
        assert told[logs]["blockHash"] == told[heads]["hash"]
        assert (await asked("eth_unsubscribe", heads))["result"] is True
        assert (await asked("eth_unsubscribe", heads))["result"] is False


async def test_http_serves_browsers_and_refuses_what_is_too_large() -> None:
    async with (
        served_chain() as served,
        HttpClient("127.0.0.1", served.port, connections_max=1, limits=Http1Limits()) as client,
    ):
        origin = [(b"origin", b"https://wallet.example"), (b"access-control-request-method", b"POST")]
        preflight = await client.request(b"OPTIONS", b"/", origin, b"", deadline_s=PATIENCE_S)
        assert preflight.status == 204
        assert dict(preflight.headers)[b"access-control-allow-origin"] == b"*"
        large = b" " * (limits.DEVNET_REQUEST_BYTES_MAX + 1)
        refused = await client.request(b"POST", b"/", [], large, deadline_s=PATIENCE_S)
        assert refused.status == 413
        assert json.loads(refused.body)["error"]["code"] == -32600
        subscribe = b'{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["newHeads"]}'
        told = await client.request(b"POST", b"/", [], subscribe, deadline_s=PATIENCE_S)
        assert "notifications not supported" in json.loads(told.body)["error"]["message"]


# --- The time of the next block -------------------------------------------------------------------------

TIME_TELLER = "0x60078060095f395ff3425f5260205ff3"
"""Init code of a contract that returns the block's time."""


async def test_a_call_reads_the_time_of_its_block_of_the_next_one_or_as_overridden(methods: Methods) -> None:
    sender = "0x" + ALICE.address.hex()
    sent = await result(methods, "eth_sendTransaction", {"from": sender, "data": TIME_TELLER})
    to = (await result(methods, "eth_getTransactionReceipt", sent))["contractAddress"]
    head = await result(methods, "eth_getBlockByNumber", "latest", False)
    await result(methods, "evm_increaseTime", 1_000)
    pending = await result(methods, "eth_getBlockByNumber", "pending", True)
    assert (pending["hash"], pending["parentHash"]) == (None, head["hash"])
    assert int(pending["number"], 16) == int(head["number"], 16) + 1
    assert int(pending["timestamp"], 16) == int(head["timestamp"], 16) + 1_000
    assert await result(methods, "eth_blockNumber") == head["number"], "no block is made"

    async def told(*more: Any) -> str:
        return hex(int(await result(methods, "eth_call", {"to": to}, *more), 16))

    for named in ([], ["latest"], [{"blockHash": head["hash"]}]):
        assert await told(*named) == head["timestamp"]
    assert await told("pending") == pending["timestamp"]
    assert await told({"blockHash": head["hash"]}, {}, {"time": "0x5"}) == "0x5"
    assert await told("latest", None, {}) == head["timestamp"]
    refused = await ask(methods, "eth_call", {"to": to}, "latest", {}, {"number": "0x5"})
    assert refused["error"]["code"] == -32602
    await result(methods, "evm_mine")
    mined = await result(methods, "eth_getBlockByNumber", "latest", False)
    assert (mined["number"], mined["timestamp"]) == (pending["number"], pending["timestamp"])
