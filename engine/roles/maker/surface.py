"""Routes of a market maker's five endpoints and WebSocket for one chain.

Every body but a firm quote's is encoded when its content changes, not at the request. Requests are verified
over their raw bytes before they are decoded.

Source: spec 3.7, 3.10, 3.11.
Choice: While trading is stopped /tokens, /pairs and /blacklist answer; /prices and /firm fail with 503.
Choice: A refused handshake is answered as other requests are, with a JSON error and its status.
"""

from typing import TYPE_CHECKING

from ....config import limits
from ....config.errors import TradingStopped
from ...host.server.gate import Gate, encode_maker_error
from ...host.server.routing import HttpCall, Reply, RouteGroup
from .quoting.blacklist import Blacklist
from .quoting.board import Board, message_tail
from .quoting.quotes import Desk
from .stream import Broadcast

if TYPE_CHECKING:
    from ....feeds.transport.websocket import WebSocket


class ChainSurface:
    """HTTP handlers of a market maker for one chain.

    Attributes:
        surface: group of the chain's routes, to be mounted in the server's route table.
        requests: number of admitted requests.
    """

    def __init__(
        self,
        *,
        gate: Gate,
        board: Board,
        desk: Desk,
        blacklist: Blacklist,
        broadcast: Broadcast,
        message: str,
        cors_origins: tuple[str, ...] = (),
    ) -> None:
        self._gate = gate
        self._board = board
        self._desk = desk
        self._blacklist = blacklist
        self._broadcast = broadcast
        self._tokens, self._pairs = Reply(200, board.tokens_body), Reply(200, board.pairs_body)
        self._tail = message_tail(message)
        self.requests = 0
        self.surface = surface = RouteGroup(
            encode_maker_error, cors_origins=cors_origins, body_bytes_max=limits.MAKER_REQUEST_BYTES_MAX
        )
        surface.plain("GET", "/tokens", self.tokens)
        surface.plain("GET", "/pairs", self.pairs)
        surface.plain("GET", "/prices", self.prices)
        surface.plain("GET", "/blacklist", self.blacklist)
        surface.plain("POST", "/firm", self.firm)
        surface.websocket("/ws", self.check_handshake, self.serve_socket)

    def tokens(self, call: HttpCall) -> Reply:
        """Answer a maker's GET /tokens with the tokens of the chain."""
        self._admit(call)
        return self._tokens

    def pairs(self, call: HttpCall) -> Reply:
        """Answer a maker's GET /pairs with the pairs of the chain."""
        self._admit(call)
        return self._pairs

    def prices(self, call: HttpCall) -> Reply:
        """Answer a maker's GET /prices; raises TradingStopped while trading on the chain is stopped."""
        self._admit(call)
        if self._desk.halted:
            raise TradingStopped
        return Reply(200, self._board.prices_body())

    def blacklist(self, call: HttpCall) -> Reply:
        """Answer a maker's GET /blacklist with the users who get no quote."""
        self._admit(call)
        return Reply(200, b'{"blacklist":%b%b' % (self._blacklist.json(), self._tail))

    def firm(self, call: HttpCall) -> Reply:
        """Answer POST /firm: verify the request's signature and sign a firm quote, synchronously."""
        request, now_ms = call.request, call.now_ms
        venue = self._gate.admit(request, request.target, now_ms)
        self.requests += 1
        return Reply(200, self._desk.answer(request.body, now_ms, venue))

    def check_handshake(self, call: HttpCall) -> None:
        """Refuse a WebSocket handshake without a valid signature, and every handshake while trading is
        stopped.
        """
        self._gate.admit(call.request, call.request.path, call.now_ms)
        if self._desk.halted:
            raise TradingStopped

    async def serve_socket(self, _: HttpCall, socket: "WebSocket") -> None:
        """Send tokens, pairs, prices and blacklist, then changed prices and newly blacklisted users.

        The call returns once the WebSocket is closed.
        """
        await self._broadcast.serve(socket, self._first_message)

    def _first_message(self) -> bytes | None:
        """Build the first WebSocket message, with tokens, pairs, prices and blacklist; None if trading was
        stopped after the handshake.
        """
        return None if self._desk.halted else self._board.first_message(self._blacklist.json())

    def _admit(self, call: HttpCall) -> None:
        request = call.request
        self._gate.admit(request, request.target, call.now_ms)
        self.requests += 1
