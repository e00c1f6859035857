"""A JSON-RPC node on a real socket that answers as a test tells it, wrongly where it should.

The node has a small chain of its own: a block every ten seconds, a log in each odd block.

A chain over one scripted node or two, and what its first node is known for.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import trio

from cambist.codecs.http1 import Http1Limits, Request, ServerConnection, Upgrade, encode_response
from cambist.config.sections.nodes import NodeSettings
from cambist.crypto.keccak import keccak256
from cambist.engine.chain.nodes.logs_bloom import bloom_of
from cambist.engine.chain.nodes.rpc import RpcChain
from cambist.engine.chain.port import Header, Log
from cambist.feeds.transport.websocket import WebSocketClosed, serve_websocket
from support.patience import PATIENCE, PATIENCE_S

ADDRESS = b"\xad" * 20
TOPIC = b"\x70" * 32


def block_hash(number: int, branch: int = 0) -> bytes:
    return keccak256(f"block {number} {branch}".encode())


def hexed(value: bytes | int) -> str:
    return hex(value) if isinstance(value, int) else "0x" + value.hex()


class RpcError(Exception):
    """Raised by an answer: the node's error."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.said = {"code": code, "message": message} | ({} if data is None else {"data": data})


class ScriptedRpc:
    """A node that answers by its attributes, which a test sets.

    Attributes:
        height: of its latest block.
        replies: method -> what takes its parameters and returns its result, in place of its own.
        status, headers: of every answer.
        batch_max: a larger batch is refused.
        shape: change of a batch's answers before they are sent.
        body: sent in place of any answer.
        silent: the node answers no request.
        late: method -> what is awaited between finding its answer and sending it.
        asked: method names of all calls.
        batches: number of calls in each request.
        subscribes: whether eth_subscribe is answered; False refuses.
    """

    def __init__(self, chain_id: int = 1, height: int = 10) -> None:
        self.chain_id = chain_id
        self.height = height
        self.replies: dict[str, Callable[..., object]] = {}
        self.status = 200
        self.headers: tuple[tuple[bytes, bytes], ...] = ()
        self.batch_max = 1_000
        self.refusal: object = {"code": -32600, "message": "batch too large"}
        self.shape: Callable[[list[dict[str, Any]]], list[dict[str, Any]]] = lambda answers: answers
        self.body: bytes | None = None
        self.silent = False
        self.late: dict[str, Callable[[], Awaitable[object]]] = {}
        self.asked: list[str] = []
        self.batches: list[int] = []
        self.subscribes = True
        self.sockets: list[Any] = []
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/secret-key"

    @property
    def ws_url(self) -> str:
        return f"ws://user:pass@127.0.0.1:{self.port}/secret-key?a=b"

    def header(self, number: int) -> Header:
        return Header(number, block_hash(number), block_hash(number - 1), 10 * number, 7)

    def log(self, number: int) -> Log:
        return Log(ADDRESS, (TOPIC,), b"\1", number, block_hash(number), keccak256(b"%d" % number), 0, 0)

    def block(self, number: int) -> dict[str, Any] | None:
        if not 0 <= number <= self.height:
            return None
        header = self.header(number)
        return {
            "number": hexed(number), "hash": hexed(header.hash), "parentHash": hexed(header.parent_hash),
            "timestamp": hexed(header.time_s), "baseFeePerGas": "0x7", "gasUsed": "0x0", "gasLimit": "0x64",
            "logsBloom": hexed(bloom_of([self.log(number)] if number % 2 else [])),
        }  # fmt: skip

    def log_entry(self, number: int) -> dict[str, Any]:
        log = self.log(number)
        return {
            "address": hexed(log.address), "topics": [hexed(topic) for topic in log.topics],
            "data": hexed(log.data), "blockNumber": hexed(number), "blockHash": hexed(log.block_hash),
            "transactionHash": hexed(log.tx_hash), "transactionIndex": "0x0", "logIndex": "0x0",
        }  # fmt: skip

    def _number(self, named: Any) -> int:
        if named == "latest":
            return self.height
        if isinstance(named, str) and len(named) < 66:
            return int(named, 16)
        wanted = named["blockHash"] if isinstance(named, dict) else named
        found = (number for number in range(self.height + 1) if hexed(block_hash(number)) == wanted)
        return next(found, -1)

    def _result(self, method: str, params: list[Any]) -> object:
        if method in self.replies:
            return self.replies[method](*params)
        if method == "eth_chainId":
            return hexed(self.chain_id)
        if method in ("eth_getBlockByNumber", "eth_getBlockByHash"):
            return self.block(self._number(params[0]))
        if method == "eth_getLogs":
            if "blockHash" in params[0]:
                first = last = self._number(params[0]["blockHash"])
            else:
                first, last = int(params[0]["fromBlock"], 16), int(params[0]["toBlock"], 16)
            wanted = params[0].get("address", [hexed(ADDRESS)])
            odd = [number for number in range(first, min(last, self.height) + 1) if number % 2]
            return [self.log_entry(number) for number in odd] if hexed(ADDRESS) in wanted else []
        if self._number(params[-1]) < 0 or self._number(params[-1]) > self.height:
            raise RpcError(-32000, "header not found")
        return "0x05"

    def _answer(self, call: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(call["method"])
        answer = {"jsonrpc": "2.0", "id": call["id"]}
        try:
            return answer | {"result": self._result(call["method"], call["params"])}
        except RpcError as error:
            return answer | {"error": error.said}

    def _body(self, request: Any) -> bytes:
        calls = request if isinstance(request, list) else [request]
        self.batches.append(len(calls))
        if self.body is not None:
            return self.body
        if len(calls) > self.batch_max:
            return json.dumps({"jsonrpc": "2.0", "id": None, "error": self.refusal}).encode()
        answers = [self._answer(call) for call in calls]
        return json.dumps(self.shape(answers) if isinstance(request, list) else answers[0]).encode()

    async def serve(self, stream: trio.SocketStream) -> None:
        http = ServerConnection(Http1Limits())
        async with stream:
            while True:
                event = http.next_event()
                if isinstance(event, Upgrade):
                    await self._serve_heads(stream, event)
                    return
                if isinstance(event, Request):
                    request = json.loads(event.body)
                    body = self._body(request)
                    if self.silent:
                        await trio.sleep_forever()
                    for call in request if isinstance(request, list) else [request]:
                        if call["method"] in self.late:
                            await self.late[call["method"]]()
                    await stream.send_all(encode_response(self.status, body, extra_headers=self.headers))
                    continue
                try:
                    data = await stream.receive_some(65_536)
                except trio.BrokenResourceError:
                    return
                if not data:
                    return
                http.receive_data(data)

    async def _serve_heads(self, stream: trio.SocketStream, upgrade: Upgrade) -> None:
        self.upgrade = upgrade.request
        async with serve_websocket(
            stream, upgrade, message_bytes_max=1 << 20, send_bytes_max=1 << 20
        ) as socket:
            try:
                call = json.loads(await socket.receive())
                assert (call["method"], call["params"]) == ("eth_subscribe", ["newHeads"])
                outcome = (
                    {"result": "0x1"} if self.subscribes else {"error": {"code": -32601, "message": "no"}}
                )
                await socket.send(json.dumps({"jsonrpc": "2.0", "id": call["id"]} | outcome))
                self.sockets.append(socket)
                await socket.receive()
            except WebSocketClosed:
                pass

    async def announce(self, number: int) -> None:
        params = {"subscription": "0x1", "result": self.block(number)}
        message = json.dumps({"jsonrpc": "2.0", "method": "eth_subscription", "params": params})
        await self.sockets[-1].send(message)


@asynccontextmanager
async def scripted_rpc(chain_id: int = 1, height: int = 10) -> AsyncIterator[ScriptedRpc]:
    """Serve a node on loopback."""
    node = ScriptedRpc(chain_id, height)
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    node.port = listener.socket.getsockname()[1]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, node.serve, [listener])
        yield node
        nursery.cancel_scope.cancel()


FIRST, SECOND = "chains.1.node.urls[0]", "chains.1.node.urls[1]"
OWNER = b"\1" * 20
LONG_REST_S = PATIENCE_S
CALL_S = min(PATIENCE_S, 60.0)
LATE_CALL_S = min(PATIENCE, 20.0)
"""Deadline of a call, seconds: the first node misses it, the second answers within it."""


@asynccontextmanager
async def two_nodes(
    call_s: float = CALL_S, **settings: Any
) -> AsyncIterator[tuple[ScriptedRpc, ScriptedRpc, RpcChain]]:
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(scripted_rpc())
        second = await stack.enter_async_context(scripted_rpc())
        nodes = NodeSettings(urls=(first.url, second.url), call_s=call_s, **settings)
        chain = await stack.enter_async_context(RpcChain.open(1, nodes))
        yield first, second, chain


@asynccontextmanager
async def one_node(**settings: Any) -> AsyncIterator[tuple[ScriptedRpc, RpcChain]]:
    async with (
        scripted_rpc() as node,
        RpcChain.open(1, NodeSettings(urls=(node.url,), **settings)) as chain,
    ):
        yield node, chain


def first_said(chain: RpcChain) -> str:
    """Last error of the first node, which must be in its cool-down; no statistics may show its URL."""
    node = chain.statistics().nodes[0]
    assert node.name == FIRST
    assert node.rest_s > 0
    assert node.said.startswith(f"{FIRST}: ")
    assert "secret" not in repr(chain.statistics())
    assert "127.0.0.1" not in repr(chain.statistics())
    return node.said


def away(node: ScriptedRpc) -> None:
    node.status = 503


def fails(code: int, message: str, data: object = None) -> Any:
    def reply(*_: object) -> object:
        raise RpcError(code, message, data)

    return reply
