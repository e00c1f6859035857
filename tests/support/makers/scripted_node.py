"""An EVM node, as far as a market maker reads one: balances, allowances and what remains of orders."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import msgspec

from cambist.codecs.contracts.calldata import ALLOWANCE, BALANCE_OF, REMAINING_BALANCES
from cambist.codecs.http1 import Http1Limits
from cambist.codecs.messages.resource_messages import maker_error_body
from cambist.codecs.messages.wire import encode
from cambist.config import limits
from cambist.config.errors import ServiceUnavailable
from cambist.config.sections.server import ServerSettings
from cambist.crypto.hexadecimal import to_hex
from cambist.crypto.keccak import keccak256
from cambist.engine.chain.nodes.json_rpc import RpcNode
from cambist.engine.host.process.clock import WallClock
from cambist.engine.host.server import HttpCall, Reply, RouteGroup, Router, Server
from cambist.feeds.transport.httpx_transport import DialTransport
from cambist.feeds.transport.streams import client_tls
from support.server.asked_front import listening
from support.server.scripted_server import Script, keep_answering, scripted_server


class ScriptedNode:
    """A node that answers by its attributes, which a test sets.

    Attributes:
        balances, allowances: token text -> raw units.
        remaining: order hash -> as the contract's `remaining`.
        takers: what /adapters/contract-takers lists.
        block, behind_s: the latest block, and how old it is.
        away: answer 503 to everything.
        reverting: answer each call with an error.
        returned: what each call returns instead, unless it is empty.
        asked: method names of all calls.
        tags: the block tags of eth_call.
        lists_asked: number of requests for the list of takers.
    """

    def __init__(self) -> None:
        self.url = ""
        self.balances: dict[str, int] = {}
        self.allowances: dict[str, int] = {}
        self.remaining: dict[bytes, int] = {}
        self.takers: list[str] = []
        self.block = 100
        self.behind_s = 0
        self.away = self.reverting = False
        self.returned = b""
        self.asked: list[str] = []
        self.lists_asked = 0
        self.tags: set[str] = set()

    def answer(self, call: HttpCall) -> Reply:
        if self.away:
            raise ServiceUnavailable
        asked = msgspec.json.decode(call.request.body)
        if isinstance(asked, list):
            return Reply(200, encode([self._result(request) for request in asked]))
        return Reply(200, encode(self._result(asked)))

    def list_takers(self, _: HttpCall) -> Reply:
        self.lists_asked += 1
        if self.away:
            raise ServiceUnavailable
        return Reply(200, encode(self.takers))

    def _result(self, request: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(request["method"])
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": request["id"]}
        if self.reverting:
            return answer | {"error": {"code": 3, "message": "execution reverted"}}
        if request["method"] == "eth_getBlockByNumber":
            time_s = int(time.time()) - self.behind_s
            return answer | {
                "result": {"number": hex(self.block), "timestamp": hex(time_s), "hash": to_hex(self._hash())}
            }
        call, tag = request["params"]
        self.tags.add(tag)
        data = bytes.fromhex(call["data"][2:])
        return answer | {"result": "0x" + self._returned(call["to"], data).hex()}

    def _hash(self) -> bytes:
        """Hash of the latest block, which stands for all that calls read at it."""
        state = self.block, self.balances, self.allowances, self.remaining, self.returned
        return keccak256(repr(state).encode())

    def _returned(self, to: str, data: bytes) -> bytes:
        if self.returned:
            return self.returned
        word = data[:4]
        if word == BALANCE_OF:
            return self.balances.get(to, 0).to_bytes(32, "big")
        if word == ALLOWANCE:
            return self.allowances.get(to, 0).to_bytes(32, "big")
        assert word == REMAINING_BALANCES
        hashes = [data[at : at + 32] for at in range(4 + 96, len(data), 32)]
        words = [self.remaining.get(order_hash, 0) for order_hash in hashes]
        return b"".join(number.to_bytes(32, "big") for number in (32, len(words), *words))


@asynccontextmanager
async def scripted_node() -> AsyncIterator[ScriptedNode]:
    """Serve one on loopback."""
    node = ScriptedNode()
    surface = RouteGroup(lambda error, _: encode(maker_error_body(error)))
    surface.plain("POST", "/", node.answer)
    surface.plain("GET", "/adapters/contract-takers", node.list_takers)
    router = Router(lambda error, _: encode(maker_error_body(error)))
    router.mount(surface)
    server = Server(router, ServerSettings(), wall_ms=WallClock().now_ms)
    async with listening(server.serve) as port:
        node.url = f"http://127.0.0.1:{port}"
        yield node


@asynccontextmanager
async def node_at(url: str, name: str) -> AsyncIterator[RpcNode]:
    """A client of the package for a node, with a transport of its own."""
    bounds = Http1Limits(body_bytes_max=limits.CHAIN_ANSWER_BYTES_MAX)
    async with DialTransport(tls=client_tls(), connections_max=1, limits=bounds) as transport:
        yield RpcNode(transport, url, name)


@asynccontextmanager
async def node_that_says(answer: bytes, name: str) -> AsyncIterator[RpcNode]:
    """A client for a node that gives every request the same answer. Its URL holds a `secret`."""
    script: Script = partial(keep_answering, answer=answer)
    async with scripted_server(script) as port, node_at(f"http://127.0.0.1:{port}/secret", name) as node:
        yield node
