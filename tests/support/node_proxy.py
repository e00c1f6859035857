"""A proxy in front of a node that does to its answers what real nodes do: refuses, cuts, lags, leaves out.

async with node_proxy(anvil) as proxy:
    proxy.range_blocks_max = 10
    ... AnvilChain.open(anvil.chain_id, proxy.settings)
"""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import trio

from cambist.codecs.http1 import Http1Limits
from cambist.config import limits
from cambist.config.sections.nodes import NodeSettings
from cambist.feeds.net.http_client import HttpClient, HttpFailure
from support.anvil import Anvil
from support.patience import PATIENCE_S
from support.port_gate import ENDED, pump
from support.scripted_server import Caller, scripted_server

_JSON = (b"content-type", b"application/json")
_WIDE = Http1Limits(body_bytes_max=limits.CHAIN_ANSWER_BYTES_MAX)
_Words = dict[str, Any]


class NodeProxy:
    """Set its attributes; it does by them.

    Attributes:
        range_blocks_max: wider ranges of logs are refused.
        cut_every: each so many-th request gets no answer but the end of its connection; 0 for none.
        behind: its latest block is so many below the node's.
        leave_out: so many answers with logs come without their last one.
        cuts, refused, left_out: how often it was done.
        requests, calls: that it was asked; a request has one call or more.
    """

    def __init__(self, anvil: Anvil, client: HttpClient) -> None:
        self.range_blocks_max = 1 << 60
        self.cut_every = 0
        self.behind = 0
        self.leave_out = 0
        self.cuts = self.refused = self.left_out = 0
        self.http_port = self.ws_port = 0
        self._anvil = anvil
        self._client = client
        self.requests = self.calls = 0
        self._sockets: set[trio.abc.Stream] = set()

    @property
    def settings(self) -> NodeSettings:
        return NodeSettings(
            urls=(f"http://127.0.0.1:{self.http_port}",),
            ws_urls=(f"ws://127.0.0.1:{self.ws_port}",),
            poll_s=0.05,
        )

    async def cut_subscriptions(self) -> int:
        """End every WebSocket; returns how many there were."""
        sockets = list(self._sockets)
        for stream in sockets:
            await trio.aclose_forcefully(stream)
        return len(sockets)

    # --- JSON-RPC -----------------------------------------------------------------------------------

    async def serve(self, caller: Caller) -> None:
        while True:
            try:
                request = await caller.request()
                self.requests += 1
                if self.cut_every and self.requests % self.cut_every == 0:
                    self.cuts += 1
                    return
                asked = json.loads(request.body)
                self.calls += len(asked) if isinstance(asked, list) else 1
                try:
                    answered = await self._answers(asked if isinstance(asked, list) else [asked])
                except HttpFailure:
                    return  # the node is away
                body = json.dumps(answered if isinstance(asked, list) else answered[0]).encode()
                head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
                await caller.stream.send_all(head % len(body) + body)
            except ENDED:
                return

    async def _answers(self, asked: list[_Words]) -> list[_Words]:
        if self.behind:
            asked = [await self._as_behind(one) for one in asked]
        refused = {one["id"]: one for one in asked if self._is_too_wide(one)}
        self.refused += len(refused)
        passed = [one for one in asked if one["id"] not in refused]
        answers = {one["id"]: one for one in (await self._node(passed) if passed else [])}
        for one in refused.values():
            error = {"code": -32005, "message": f"block range exceeds the maximum of {self.range_blocks_max}"}
            answers[one["id"]] = {"jsonrpc": "2.0", "id": one["id"], "error": error}
        for one in passed:
            logs = answers[one["id"]].get("result")
            if self.leave_out and one["method"] == "eth_getLogs" and logs:
                self.leave_out -= 1
                self.left_out += 1
                logs.pop()
        return [answers[one["id"]] for one in asked]

    async def _node(self, asked: list[_Words]) -> list[_Words]:
        body = json.dumps(asked).encode()
        response = await self._client.request(b"POST", b"/", [_JSON], body, deadline_s=PATIENCE_S)
        answered: list[_Words] = json.loads(response.body)
        return answered

    async def _as_behind(self, one: _Words) -> _Words:
        if one["method"] != "eth_getBlockByNumber" or one["params"][0] != "latest":
            return one
        number = {"jsonrpc": "2.0", "id": 1, "method": "eth_blockNumber", "params": []}
        height = int((await self._node([number]))[0]["result"], 16)
        return one | {"params": [hex(max(0, height - self.behind)), one["params"][1]]}

    def _is_too_wide(self, one: _Words) -> bool:
        if one["method"] != "eth_getLogs" or "fromBlock" not in one["params"][0]:
            return False
        first, last = (int(one["params"][0][name], 16) for name in ("fromBlock", "toBlock"))
        return last - first >= self.range_blocks_max

    # --- WebSocket ----------------------------------------------------------------------------------

    async def tunnel(self, caller: Caller) -> None:
        """Pass the bytes of a WebSocket on, both ways, until it is cut."""
        try:
            node = await trio.open_tcp_stream("127.0.0.1", urlsplit(self._anvil.url).port or 0)
        except OSError:
            return
        self._sockets.add(caller.stream)
        async with node, trio.open_nursery() as nursery:
            for source, target in ((caller.stream, node), (node, caller.stream)):
                nursery.start_soon(pump, source, target, nursery.cancel_scope)
        self._sockets.discard(caller.stream)


@asynccontextmanager
async def node_proxy(anvil: Anvil) -> AsyncGenerator[NodeProxy]:
    """The proxy, for as long as the context is open."""
    async with HttpClient("127.0.0.1", anvil.port, connections_max=64, limits=_WIDE) as client:
        proxy = NodeProxy(anvil, client)
        async with (
            scripted_server(proxy.serve) as proxy.http_port,
            scripted_server(proxy.tunnel) as proxy.ws_port,
        ):
            yield proxy
