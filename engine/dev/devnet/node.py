"""A devnet node: JSON-RPC over HTTP and WebSocket for an embedded chain, at one address.

    POST /       a call or a batch
    GET /        a WebSocket for calls, batches and subscriptions

Web pages of any origin may call the node: the chain has no real funds, and wallets run in browsers.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio

from ....codecs.http1 import JSON
from ....config import limits
from ....config.errors import CambistError, WebSocketClosed
from ....config.sections.server import ServerSettings
from ....crypto.secp256k1 import SigningKey
from ...host.process.clock import WallClock
from ...host.server import HttpCall, Reply, RouteGroup, Router, Server
from ..embedded.embedded import EmbeddedChain
from . import parameters as given
from .controls import Controls
from .dispatch import answer, error_body
from .facade import Method, Methods, Reads
from .faults import INVALID_REQUEST, REFUSED, RpcFault
from .filters import Filters, Subscriptions
from .moves import Lost, Moves
from .signing import WalletMethods

if TYPE_CHECKING:
    from ....feeds.transport.websocket import WebSocket

_TOO_SLOW = 1013
_SETTINGS = ServerSettings(body_bytes_max=limits.DEVNET_REQUEST_BYTES_MAX)


def all_methods(
    chain: EmbeddedChain, keys: Sequence[SigningKey], moves: Moves, *, are_public: bool = False
) -> Methods:
    """Return the JSON-RPC methods that a devnet node answers over HTTP, by name.

    A WebSocket adds subscriptions; over HTTP, `eth_subscribe` and `eth_unsubscribe` are refused.

    Args:
        keys: private keys of the accounts for which the node signs.
        moves: record of the chain's added and removed blocks, which filters read.
        are_public: whether `keys` are publicly known; with secret keys the node signs transactions, but no
            texts or typed data.
    """
    reads = Reads(chain, keys)
    refused = {
        "eth_subscribe": Method(given.OfSubscription, _no_subscriptions),
        "eth_unsubscribe": Method(given.OfFilterId, _no_subscriptions),
    }
    return {
        **reads.methods(),
        **Filters(moves, chain, reads).methods(),
        **WalletMethods(chain.chain_id, keys, is_public=are_public).methods(),
        **Controls(chain).methods(),
        **refused,
    }


async def _no_subscriptions(_: object) -> None:
    raise RpcFault(REFUSED, "notifications not supported: subscribe over a WebSocket")


class DevNode:
    """JSON-RPC server of an embedded chain, over HTTP and WebSocket, created by `opened`.

    Attributes:
        server: the HTTP server, which the caller has to run.
    """

    def __init__(self, methods: Methods, moves: Moves, chain: EmbeddedChain) -> None:
        self._methods = methods
        self._moves = moves
        self._chain = chain
        surface = RouteGroup(_encode_error, cors_origins=("*",), body_bytes_max=_SETTINGS.body_bytes_max)
        surface.coroutine("POST", "/", self._post)
        surface.websocket("/", lambda _: None, self._converse)
        router = Router(_encode_error)
        router.mount(surface)
        self.server = Server(router, _SETTINGS, wall_ms=WallClock().now_ms)

    @classmethod
    @asynccontextmanager
    async def opened(
        cls, chain: EmbeddedChain, keys: Sequence[SigningKey], *, are_public: bool = False
    ) -> AsyncIterator["DevNode"]:
        """Context manager: open a JSON-RPC node for a chain, and follow the chain's new and removed blocks.

        Args:
            keys: private keys of the accounts for which the node signs.
            are_public: whether `keys` are publicly known; with secret keys the node signs transactions, but
                no texts or typed data.
        """
        async with Moves.followed(chain) as moves:
            yield cls(all_methods(chain, keys, moves, are_public=are_public), moves, chain)

    async def _post(self, call: HttpCall) -> Reply:
        body = await answer(call.request.body, self._methods)
        return Reply(200, body) if body else Reply(204, b"", content_type=JSON)

    async def _converse(self, _: HttpCall, socket: "WebSocket") -> None:
        """Serve a WebSocket until the socket is closed: answer messages in order, send subscribed events."""
        subscriptions = Subscriptions(self._moves, self._chain, socket.send_nowait)
        methods = {**self._methods, **subscriptions.methods()}
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_announce, subscriptions.run, socket)
            nursery.start_soon(_announce, subscriptions.run_pending, socket)
            try:
                while True:
                    message = await socket.receive()
                    body = await answer(message.encode() if isinstance(message, str) else message, methods)
                    if body:
                        await socket.send(body.decode())
            except WebSocketClosed:
                nursery.cancel_scope.cancel()


async def _announce(run: Callable[[], Awaitable[None]], socket: "WebSocket") -> None:
    try:
        await run()
    except Lost:
        await socket.aclose(_TOO_SLOW, "more blocks or transactions at once than are remembered")


def _encode_error(error: CambistError, request_id: str) -> bytes:  # noqa: ARG001  it is in the headers
    return error_body(RpcFault(INVALID_REQUEST, error.detail))
