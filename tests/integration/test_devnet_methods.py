"""Methods that wallets and client libraries ask a node for: answered as an anvil does, or named as absent.

The behaviour to compare with: anvil 1.7.1 of tests/oracles, asked the same; viem 2.57 and ethers 6.17, whose
sources name the methods that they send; EIP-7966 for the waiting send, which anvil has without its time-out.
"""

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
import trio
from bench.peers.process import ROOT

from cambist.codecs.http1 import Http1Limits
from cambist.codecs.transactions import decode_transaction
from cambist.config import limits
from cambist.engine.dev.devnet.dispatch import answer
from cambist.engine.dev.devnet.facade import Methods
from cambist.engine.dev.devnet.moves import Moves
from cambist.engine.dev.devnet.node import all_methods
from cambist.engine.dev.embedded.embedded import EmbeddedChain
from cambist.feeds.transport.http_client import HttpClient
from cambist.feeds.transport.websocket import connect_websocket
from support.chain.anvil import Anvil
from support.chain.devnet import KEYS, NOW_S, served_chain
from support.patience import PATIENCE_S
from support.programs import ORACLES, program

pytestmark = pytest.mark.needs("pyrevm")

Asked = Callable[..., Awaitable[dict[str, Any]]]
OWN, OTHERS, TO = "0x" + KEYS[2].address.hex(), "0x" + "78" * 20, "0x" + "77" * 20
SLOT = "0x" + "00" * 31 + "05"
PAID = {"from": OWN, "to": TO, "value": "0x1", "gas": "0xffff", "nonce": "0x0"}
FEES = {"maxFeePerGas": "0x77359400", "maxPriorityFeePerGas": "0x3b9aca00"}
LISTED = [{"address": TO, "storageKeys": [SLOT, "0x" + "00" * 32]}, {"address": OTHERS, "storageKeys": []}]
READS = "0x73" + "77" * 20 + "3150600554600160065500"
"""Init code: reads the balance of TO and slot 5, writes slot 6 and creates an empty contract."""
CREATES = "0x60006000600060006000f0" + "6001600755" + "00"
"""Init code: creates an empty contract, writes slot 7."""


@pytest.fixture
async def methods() -> AsyncIterator[Methods]:
    chain = EmbeddedChain(31_337, lambda: NOW_S, {key.address: 10**22 for key in KEYS})
    async with Moves.followed(chain) as moves:
        yield all_methods(chain, KEYS, moves, are_public=True)


@pytest.fixture
def ours(methods: Methods) -> Asked:
    async def ask(method: str, *parameters: Any) -> dict[str, Any]:
        call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}
        told: dict[str, Any] = json.loads(await answer(msgspec.json.encode(call), methods))
        return told

    return ask


@asynccontextmanager
async def an_anvil() -> AsyncIterator[Asked]:
    """A fresh anvil, asked over HTTP."""
    with Anvil() as anvil:
        async with HttpClient("127.0.0.1", anvil.port, connections_max=1, limits=Http1Limits()) as client:

            async def ask(method: str, *parameters: Any) -> dict[str, Any]:
                call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}
                heads = [(b"content-type", b"application/json")]
                body = msgspec.json.encode(call)
                told: dict[str, Any] = json.loads(
                    (await client.request(b"POST", b"/", heads, body, deadline_s=PATIENCE_S)).body
                )
                return told

            yield ask


async def result(ask: Asked, method: str, *parameters: Any) -> Any:
    told = await ask(method, *parameters)
    assert "error" not in told, (method, told)
    return told["result"]


# --- Against an anvil --------------------------------------------------------------------------------------

SAME: list[tuple[str, list[Any]]] = [
    ("eth_blobBaseFee", []),
    ("eth_coinbase", []),
    ("eth_hashrate", []),
    ("eth_syncing", []),
    ("txpool_status", []),
    ("txpool_inspect", []),
    ("eth_signTransaction", [PAID | FEES]),
    ("eth_signTransaction", [PAID | FEES | {"chainId": "0x7a69", "type": "0x2"}]),
    ("eth_signTransaction", [PAID | FEES | {"input": "0x1234", "data": "0x1234"}]),
    ("eth_signTransaction", [PAID | FEES | {"accessList": LISTED}]),
    ("eth_signTransaction", [PAID | FEES | {"to": None, "data": "0x00"}]),
    ("eth_signTransaction", [PAID | {"gasPrice": "0x77359400"}]),
    ("eth_signTransaction", [PAID | {"gasPrice": "0x77359400", "accessList": []}]),
    ("eth_signTransaction", [PAID | {"gasPrice": "0x77359400", "accessList": LISTED}]),
    ("eth_signTransaction", [PAID | FEES | {"chainId": "0x1"}]),
    ("eth_signTransaction", [PAID | FEES | {"from": OTHERS}]),
    ("eth_signTransaction", []),
    ("eth_sendTransaction", [PAID | FEES | {"chainId": "0x1"}]),
    ("eth_sendTransaction", [PAID | FEES | {"from": OTHERS}]),
    ("eth_newPendingTransactionFilter", ["latest"]),
    ("eth_createAccessList", [{"from": OWN, "to": TO}]),
    ("eth_createAccessList", [{"from": OWN, "to": TO}, "latest"]),
    ("eth_createAccessList", [{"from": OWN, "data": READS}]),
    ("eth_createAccessList", [{"from": OWN, "data": READS, "accessList": LISTED}]),
    ("eth_createAccessList", [{"from": OWN, "data": CREATES}]),
    ("eth_createAccessList", [{"from": OWN, "data": "0x602a60005260206000fd"}]),
    ("eth_sendRawTransactionSync", []),
    ("wallet_addEthereumChain", [{"chainId": "0x1"}]),
    ("wallet_getCapabilities", [OWN]),
    ("wallet_watchAsset", [{}]),
    ("personal_unlockAccount", [OWN, ""]),
]  # fmt: skip
"""Calls with the same answer on both: the same result, or an error of the same code."""


@pytest.mark.anvil
async def test_the_methods_answer_as_anvils(ours: Asked) -> None:
    async with an_anvil() as theirs:
        for name, parameters in SAME:
            told = [await ask(name, *parameters) for ask in (ours, theirs)]
            results = [_sorted(one.get("result")) for one in told]
            assert results[0] == results[1], (name, parameters)
            codes = [one.get("error", {}).get("code") for one in told]
            assert codes[0] == codes[1], (name, parameters, told)


def _sorted(answered: Any) -> Any:
    """An answer whose access list, which has no order, is sorted."""
    if isinstance(answered, dict) and "accessList" in answered:
        listed = [[one["address"], sorted(one["storageKeys"])] for one in answered["accessList"]]
        return {**answered, "accessList": sorted(listed)}
    return answered


@pytest.mark.anvil
async def test_pending_transactions_are_announced_and_shown_as_anvils_are(ours: Asked) -> None:
    """A transaction behind a gap counts once the gap is filled; a replacement counts anew."""
    async with an_anvil() as theirs:
        assert await _pending(ours) == await _pending(theirs)


async def _pending(ask: Asked) -> list[Any]:
    watched = await result(ask, "eth_newPendingTransactionFilter")
    heard: list[Any] = []

    async def send(nonce: int, **changed: Any) -> None:
        await result(ask, "eth_sendTransaction", PAID | FEES | {"nonce": hex(nonce)} | changed)
        heard.append(await result(ask, "eth_getFilterChanges", watched))

    first = await result(ask, "eth_sendTransaction", PAID | FEES | {"nonce": "0x0"})
    with trio.fail_after(PATIENCE_S):
        while await result(ask, "eth_getTransactionReceipt", first) is None:  # mined soon after the answer
            pass
    heard.append(await result(ask, "eth_getFilterChanges", watched))
    await result(ask, "evm_setAutomine", False)
    for nonce in (3, 1, 2):
        await send(nonce)
    await send(4, to=None, data="0x00", gas="0x1ffff")
    await send(5, maxFeePerGas=None, maxPriorityFeePerGas=None, gasPrice="0x77359401")
    await send(7)
    await send(1, maxFeePerGas="0xee6b2800", maxPriorityFeePerGas="0x77359400")
    heard += [await result(ask, name) for name in ("txpool_status", "txpool_inspect")]
    await result(ask, "evm_mine")
    heard.append(await result(ask, "eth_getFilterChanges", watched))
    heard.append((await ask("eth_getFilterLogs", watched))["error"]["code"])
    heard.append(await result(ask, "eth_uninstallFilter", watched))
    heard.append((await ask("eth_getFilterChanges", watched))["error"]["code"])
    return heard


@pytest.mark.anvil
async def test_a_signed_transaction_is_sent_and_its_receipt_waited_for(ours: Asked) -> None:
    async with an_anvil() as theirs:
        both = []
        for ask in (ours, theirs):
            raw = await result(ask, "eth_signTransaction", PAID | FEES)
            receipt = await result(ask, "eth_sendRawTransactionSync", raw)
            assert (
                receipt["transactionHash"] == "0x" + decode_transaction(bytes.fromhex(raw[2:])).tx_hash.hex()
            )
            both.append({name: receipt[name] for name in ("status", "gasUsed", "from", "to", "blockNumber")})
        assert both[0] == both[1]


# --- Beyond an anvil ---------------------------------------------------------------------------------------


async def test_a_send_that_waits_ends_at_its_time_out_with_the_hash(ours: Asked) -> None:
    """Source: EIP-7966: code 4 and the hash; code 5 for a transaction behind a gap."""
    raw = [
        await result(ours, "eth_signTransaction", PAID | FEES | {"nonce": hex(nonce)}) for nonce in (0, 1, 3)
    ]
    await result(ours, "evm_setAutomine", False)
    for timeout in (1, "0x1"):
        late = (await ours("eth_sendRawTransactionSync", raw[timeout == "0x1"], timeout))["error"]
        assert (late["code"], len(late["data"])) == (4, 66)
        assert (await result(ours, "eth_getTransactionByHash", late["data"]))["blockHash"] is None
    behind = (await ours("eth_sendRawTransactionSync", raw[2], 1))["error"]
    assert (behind["code"], len(behind["data"])) == (5, 66)
    refused = (await ours("eth_sendRawTransactionSync", "0x12"))["error"]
    assert refused["code"] == -32000
    receipts: list[Any] = []

    async def wait() -> None:
        signed = await result(ours, "eth_signTransaction", PAID | FEES | {"nonce": "0x2"})
        receipts.append(await result(ours, "eth_sendRawTransactionSync", signed))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        while (await result(ours, "txpool_status"))["pending"] != "0x4":
            await trio.lowlevel.checkpoint()
        await result(ours, "evm_mine")
    assert [(one["status"], one["blockNumber"]) for one in receipts] == [("0x1", "0x1")]


async def test_the_node_tells_whether_it_mines_at_once(ours: Asked) -> None:
    names = ("eth_mining", "anvil_getAutomine", "hardhat_getAutomine")
    assert [await result(ours, name) for name in names] == [True] * 3
    await result(ours, "evm_setAutomine", False)
    assert [await result(ours, name) for name in names] == [False] * 3


async def test_an_access_list_makes_what_it_lists_cheaper_and_is_sent(ours: Asked) -> None:
    """A contract that reads its slot five: the list has the slot, and a transaction uses the gas told."""
    deploy = "0x6004600c60003960046000f3" + "60055400"
    sent = await result(ours, "eth_sendTransaction", {"from": OWN, "data": deploy})
    contract = (await result(ours, "eth_getTransactionReceipt", sent))["contractAddress"]
    call = {"from": OWN, "to": contract}
    made = await result(ours, "eth_createAccessList", call, "latest")
    assert made["accessList"] == [{"address": contract, "storageKeys": [SLOT]}]
    tx_hash = await result(ours, "eth_sendTransaction", call | {"accessList": made["accessList"]})
    receipt = await result(ours, "eth_getTransactionReceipt", tx_hash)
    assert (receipt["status"], receipt["gasUsed"]) == ("0x1", made["gasUsed"])
    assert (await result(ours, "eth_getTransactionByHash", tx_hash))["accessList"] == made["accessList"]


async def test_a_pending_filter_that_was_not_asked_for_too_long_is_gone(ours: Asked) -> None:
    kept = await result(ours, "eth_newPendingTransactionFilter")
    await result(ours, "evm_setAutomine", False)
    for _ in range(2):
        snapshot = await result(ours, "evm_snapshot")
        for nonce in range(limits.EMBEDDED_ARRIVALS_MAX // 2 + 1):
            await result(ours, "eth_sendTransaction", PAID | FEES | {"nonce": hex(nonce)})
        await result(ours, "evm_revert", snapshot)
    assert (await ours("eth_getFilterChanges", kept))["error"]["message"] == "filter not found"


async def test_a_socket_is_told_of_pending_transactions() -> None:
    async with (
        served_chain() as served,
        connect_websocket(
            "127.0.0.1",
            served.port,
            "/",
            tls=None,
            headers={},
            message_bytes_max=1 << 20,
            send_bytes_max=1 << 20,
        ) as socket,
    ):

        async def asked(method: str, *parameters: object) -> Any:
            await socket.send(json.dumps({"jsonrpc": "2.0", "id": 9, "method": method, "params": parameters}))
            while True:
                message = await heard()
                if message.get("id") == 9:
                    return message["result"]
                announced.append(message["params"])

        async def heard() -> Any:
            with trio.fail_after(PATIENCE_S):
                return json.loads(await socket.receive())

        announced: list[Any] = []
        pending = await asked("eth_subscribe", "newPendingTransactions")
        whole = await asked("eth_subscribe", "newPendingTransactions", True)
        tx_hash = await asked("eth_sendTransaction", PAID | FEES)
        while len(announced) < 2:
            announced.append((await heard())["params"])
        told = {one["subscription"]: one["result"] for one in announced}
        assert told[pending] == tx_hash
        assert (told[whole]["hash"], told[whole]["blockHash"]) == (tx_hash, None)
        assert await asked("eth_unsubscribe", pending) is True


# --- Typed data --------------------------------------------------------------------------------------------

FLAT = {
    "types": {
        "EIP712Domain": [{"name": "name", "type": "string"}],
        "Person": [{"name": "wallet", "type": "address"}],
        "Mail": [{"name": "from", "type": "Person"}, {"name": "contents", "type": "string"}],
    },
    "primaryType": "Mail",
    "domain": {"name": "Ether Mail"},
    "message": {"from": {"wallet": TO}, "contents": "Hello"},
}
LISTS = {
    **FLAT,
    "types": {**FLAT["types"], "Mail": [{"name": "to", "type": "Person[]"}]},  # type: ignore[dict-item]
    "message": {"to": [{"wallet": TO}]},
}


async def test_typed_data_of_version_three_is_of_version_four_without_arrays(ours: Asked) -> None:
    signed = await result(ours, "eth_signTypedData_v4", OWN, FLAT)
    for name in ("eth_signTypedData", "eth_signTypedData_v3"):
        assert await result(ours, name, OWN, FLAT) == signed
        assert await result(ours, name, OWN, json.dumps(FLAT)) == signed
    assert await result(ours, "eth_signTypedData", OWN, LISTS) == await result(
        ours, "eth_signTypedData_v4", OWN, LISTS
    )
    refused = (await ours("eth_signTypedData_v3", OWN, LISTS))["error"]
    assert refused["code"] == -32602
    assert "eth_signTypedData_v4" in refused["message"]


async def test_typed_data_of_version_one_is_refused_by_name(ours: Asked) -> None:
    refused = (await ours("eth_signTypedData", [{"type": "string", "name": "m", "value": "hi"}], OWN))[
        "error"
    ]
    assert refused["code"] == -32602
    assert "EIP-712" in refused["message"]


# --- What the libraries send -------------------------------------------------------------------------------

_SENT = re.compile(
    r"""(?:method: |send\(|method === )["'`]([a-z0-9]+_[A-Za-z0-9]+|\$\{client\.mode\}_[A-Za-z]+)"""
)
_FOLDERS = ("viem/actions/public", "viem/actions/wallet", "viem/actions/test", "ethers/lib.esm/providers")


def _sent_by_libraries() -> set[str]:
    """Methods that the sources of viem and ethers name as sent; those of viem's test mode as anvil's."""
    program("npm-packages")
    packages = ORACLES / "node_modules"
    files = (
        path
        for folder in _FOLDERS
        for path in (packages / folder).rglob("*")
        if path.suffix in {".ts", ".js"}
    )
    return {
        name.replace("${client.mode}", "anvil")
        for path in files
        for name in _SENT.findall(path.read_text("utf-8"))
    }


async def test_each_method_of_the_libraries_is_answered_or_named_as_absent(methods: Methods) -> None:
    sent = _sent_by_libraries() - {"eth_subscription"}  # which the node sends
    assert {"eth_blobBaseFee", "eth_createAccessList", "anvil_mine", "eth_accounts"} <= sent
    guide = (ROOT / "docs" / "guides" / "devnet.md").read_text("utf-8")
    named = guide.partition("Absent, with error -32601:")[2].partition("\n\n")[0]
    absent = set(re.findall(r"`([a-z0-9]+_[A-Za-z0-9]+)`", named))
    assert absent, "the guide names the absent methods"
    assert absent.isdisjoint(methods)
    assert sent - methods.keys() <= absent


async def test_absent_methods_are_not_found(ours: Asked) -> None:
    for name in ("wallet_addEthereumChain", "eth_getProof", "eth_simulateV1"):
        assert (await ours(name))["error"]["code"] == -32601
