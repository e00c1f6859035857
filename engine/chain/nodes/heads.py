"""Subscribe to a chain's new blocks (heads) over WebSocket; an announced head only wakes waiting tasks.

    connecting --subscribed--> listening --closed, silent for NODE_SUBSCRIPTION_S, invalid--> backoff
        \\--refused--> backoff --jittered, doubling--> connecting, to the next URL

Without a connected WebSocket no task is woken: a waiting task polls the head from time to time.

Source: eth_subscribe("newHeads") of the execution API.
"""

import base64
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from urllib.parse import SplitResult, unquote, urlsplit

import msgspec
import trio

from ....codecs.messages.wire import decoder, encode
from ....config import limits
from ....config.errors import ChainError, InvalidInput, MakerError, WebSocketClosed
from ....config.timeouts import NODE_CALL_S, NODE_SUBSCRIPTION_S
from ....crypto.hexadecimal import parse_hex
from ....feeds.transport.streams import client_tls
from ....feeds.transport.websocket import WebSocket, connect_websocket
from .failover import rest_s

_REMEMBERED = 64
_SUBSCRIBE = encode({"jsonrpc": "2.0", "id": 1, "method": "eth_subscribe", "params": ["newHeads"]}).decode()


class HeadStatistics(msgspec.Struct, frozen=True):
    """State and counters of a chain's subscription to new heads, at one moment.

    Attributes:
        is_listening: whether a subscription is established now.
        connections: number of subscriptions that were established.
        heads: number of announced heads.
        failures: number of connections that were refused or ended.
        said: text of the last failure; empty before the first.
    """

    is_listening: bool
    connections: int
    heads: int
    failures: int
    said: str


class _Head(msgspec.Struct):
    hash: str


class _Announcement(msgspec.Struct):
    result: _Head


class _Message(msgspec.Struct):
    """A node's WebSocket message: the answer to the subscription, or an announced head."""

    id: int | None = None
    result: str | None = None
    params: _Announcement | None = None


_decode = decoder(_Message, bytes_max=limits.CHAIN_HEAD_BYTES_MAX)


class Heads:
    """Subscription to the new heads (latest blocks) of one chain, at one node at a time.

    Args:
        urls: nodes' URLs with the scheme ws or wss, tried in turn; may be empty.
        jitter: returns a random number from 0 to 1.
    """

    def __init__(self, chain_id: int, urls: Sequence[str], jitter: Callable[[], float]) -> None:
        self._field = f"chains.{chain_id}.node.ws_urls"
        self._urls = [urlsplit(url) for url in urls]
        self._jitter = jitter
        self._announced: deque[bytes] = deque(maxlen=_REMEMBERED)
        self._arrived = trio.Event()
        self._is_listening = False
        self._connections = self._failures = self._heads = 0
        self._said = ""

    def statistics(self) -> HeadStatistics:
        """Return the state and the counters of the subscription."""
        return HeadStatistics(self._is_listening, self._connections, self._heads, self._failures, self._said)

    def is_past(self, known: bytes) -> bool:
        """Whether the head with hash `known` was announced, but is not the last announced head."""
        return known in self._announced and self._announced[-1] != known

    async def other_than(self, known: bytes) -> None:
        """Wait until a node announces a head with another hash than `known`."""
        while True:
            await self._arrived.wait()
            if self._announced[-1] != known:
                return

    @asynccontextmanager
    async def followed(self) -> AsyncGenerator[None]:
        """Context manager: keep the subscription established until the `with` block ends."""
        failure: Exception | None = None
        async with trio.open_nursery() as nursery:
            if self._urls:
                nursery.start_soon(self._follow)
            try:
                yield
            except Exception as error:  # noqa: BLE001 - raised below, not within an exception group
                failure = error
            finally:
                nursery.cancel_scope.cancel()
        if failure is not None:
            raise failure

    async def _follow(self) -> None:
        in_a_row = at = 0
        while True:
            heads, began = self._heads, trio.current_time()
            try:
                await self._listen(self._urls[at])
            except (ChainError, MakerError, WebSocketClosed) as error:
                self._said = f"{self._field}[{at}]: {_reason(error)}"
            self._is_listening = False
            self._failures += 1
            lived = self._heads > heads or trio.current_time() - began >= NODE_SUBSCRIPTION_S
            in_a_row = 0 if lived else in_a_row + 1
            at = (at + 1) % len(self._urls)
            await trio.sleep(rest_s(in_a_row, self._jitter()))

    async def _listen(self, url: SplitResult) -> None:
        """Subscribe at a URL and record the announced heads until the connection fails."""
        is_secure = url.scheme == "wss"
        path = f"{url.path or '/'}{f'?{url.query}' if url.query else ''}"
        async with connect_websocket(
            url.hostname or "",
            url.port or (443 if is_secure else 80),
            path,
            tls=client_tls() if is_secure else None,
            headers=_credentials(url),
            message_bytes_max=limits.CHAIN_HEAD_BYTES_MAX,
            send_bytes_max=limits.CHAIN_HEAD_BYTES_MAX,
        ) as socket:
            await socket.send(_SUBSCRIBE)
            answer = await _next(socket, NODE_CALL_S)
            if answer.result is None:
                raise ChainError("the subscription was refused")
            self._is_listening = True
            self._connections += 1
            while True:
                self._read_head(await _next(socket, NODE_SUBSCRIPTION_S))

    def _read_head(self, message: _Message) -> None:
        if message.params is None:
            raise ChainError("expected a new head")
        try:
            head = parse_hex(message.params.result.hash, "hash")
        except InvalidInput as error:
            raise ChainError(error.detail) from None
        self._heads += 1
        self._announced.append(head)
        self._arrived.set()
        self._arrived = trio.Event()


async def _next(socket: WebSocket, seconds: float) -> _Message:
    with trio.move_on_after(seconds):
        message = await socket.receive()
        try:
            return _decode(message.encode() if isinstance(message, str) else message)
        except InvalidInput as error:
            raise ChainError(error.detail) from None
    raise ChainError(f"silent for {seconds:g} s")


def _credentials(url: SplitResult) -> dict[str, str]:
    if url.username is None:
        return {}
    pair = f"{unquote(url.username)}:{unquote(url.password or '')}"
    return {"authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}


def _reason(error: ChainError | MakerError | WebSocketClosed) -> str:
    """Describe a failed connection as text, without the node's host, which a MakerError may name."""
    return error.detail if not isinstance(error, MakerError) else "no connection"
