"""Follow the WebSocket of one market maker on one chain: a complete first message, then updates, for ever.

    connecting --101--> opened --the complete first message--> up --closed, garbage--> down
        \\--refused, late----------\\--late, incomplete, garbage--> down --jittered, doubling--> connecting

While the socket is up, the age of each book decides whether it is used. A socket that is down for longer than
SOCKET_GRACE_S withholds the maker (see `heed_grace`), until the next complete first message is applied.

A socket that was up for FEED_PAUSE_S_MAX reconnects at once, any other after a pause.

Source: spec 3.11, 3.10.24 (the path alone is signed).
Choice: A socket's first message without one of its four contents, and any message of another form, closes it
    with 1007.
"""

import math
from collections.abc import Callable, Generator
from random import Random
from ssl import SSLContext
from urllib.parse import urlsplit

import structlog
import trio
from msgspec import UNSET, Struct

from ..codecs.messages.maker_messages import StreamMessage, decode_stream_message
from ..config import limits
from ..config.errors import InvalidInput, MakerError, WebSocketClosed
from ..config.timeouts import FEED_PAUSE_S_MAX, FIRST_MESSAGE_S, SOCKET_GRACE_S
from ..crypto.hmac_auth import RequestSigner
from .backoff import pause_s
from .maker_cache import MakerCache
from .remarks import Remarks
from .slices import Slices
from .transport.streams import Dial
from .transport.websocket import WebSocket, connect_websocket

_SEND_BYTES_MAX = 4_096  # only pongs and close frames are sent
_INVALID_DATA = 1007
_WITHHOLDS = "socket"


class StreamStatistics(Struct, frozen=True):
    """Counters of a maker's WebSocket at one moment.

    Attributes:
        is_up: whether the complete first message is applied and the connection is open.
        connections: number of connections whose first message was applied.
        messages: number of applied messages.
        failures: number of connections that were refused or have ended.
        in_a_row: number of failures since the last connection that lasted for at least FEED_PAUSE_S_MAX.
        said: text of the last failure; empty before the first.
    """

    is_up: bool
    connections: int
    messages: int
    failures: int
    in_a_row: int
    said: str


class Stream:
    """Follows the WebSocket of one maker on one chain and applies its messages to the cache.

    Args:
        url: URL of the WebSocket, ws or wss.
        signer: None sends an unsigned handshake.
        tls: context for wss.
        dial: function that opens a connection.
    """

    def __init__(
        self,
        url: str,
        *,
        signer: RequestSigner | None,
        tls: SSLContext,
        dial: Dial,
        cache: MakerCache,
        slices: Slices,
        remarks: Remarks,
        log: structlog.typing.FilteringBoundLogger,
        wall_ms: Callable[[], int],
        random: Random,
    ) -> None:
        parts = urlsplit(url)
        self._host = parts.hostname or ""
        self._is_secure = parts.scheme == "wss"
        self._port = parts.port or (443 if self._is_secure else 80)
        self._path = parts.path or "/"
        self._query = f"?{parts.query}" if parts.query else ""
        self._signer = signer
        self._tls = tls
        self._dial = dial
        self._cache = cache
        self._slices = slices
        self._remarks = remarks
        self._log = log
        self._wall_ms = wall_ms
        self._random = random
        self._down_since = -math.inf  # trio time; -inf before the first connection, inf while up
        self._connections = self._messages = self._failures = self._in_a_row = 0
        self._said = ""
        # Polls alone never route a maker that has a socket, not even before the first connection.
        cache.withhold(_WITHHOLDS)

    @property
    def is_up(self) -> bool:
        """Whether the complete first message is applied and the WebSocket is open."""
        return self._down_since == math.inf

    def statistics(self) -> StreamStatistics:
        """Counters of the maker's WebSocket since the start, and whether it is up."""
        return StreamStatistics(
            self.is_up, self._connections, self._messages, self._failures, self._in_a_row, self._said
        )

    def heed_grace(self) -> None:
        """Withhold the maker's books once the WebSocket has been down for longer than SOCKET_GRACE_S."""
        if trio.current_time() - self._down_since > SOCKET_GRACE_S:
            self._cache.withhold(_WITHHOLDS)

    async def follow(self) -> None:
        """Connect to the maker's WebSocket and apply its messages; reconnect for ever."""
        while True:
            began, connections = trio.current_time(), self._connections
            try:
                await self._listen()
            except (MakerError, WebSocketClosed, InvalidInput) as fault:
                lasted = trio.current_time() - began >= FEED_PAUSE_S_MAX and self._connections > connections
                self._fail(fault.detail, lasted=lasted)
                if not lasted:
                    await trio.sleep(pause_s(self._in_a_row, self._random))

    def _fail(self, said: str, *, lasted: bool) -> None:
        if said != self._said or lasted:
            self._log.warning("socket ended", reason=said)
        self._said = said
        self._failures += 1
        self._in_a_row = 0 if lasted else self._in_a_row + 1

    async def _listen(self) -> None:
        """Connect to the maker's WebSocket once and apply its messages until the connection fails."""
        headers = {}
        if self._signer is not None:
            headers = self._signer.headers(self._wall_ms(), "GET", self._path)
        async with connect_websocket(
            self._host,
            self._port,
            self._path + self._query,
            tls=self._tls if self._is_secure else None,
            headers=headers,
            message_bytes_max=limits.MAKER_JSON_BYTES_MAX,
            send_bytes_max=_SEND_BYTES_MAX,
            dial=self._dial,
        ) as socket:
            try:
                await self._take_first(socket)
                while True:
                    await self._take(await socket.receive(), is_first=False)
            except InvalidInput as error:
                self._lower()  # before the close, which may take seconds: the grace counts from the fault
                await socket.aclose(_INVALID_DATA, error.detail)
                raise
            finally:
                self._lower()

    def _lower(self) -> None:
        if self.is_up:
            self._down_since = trio.current_time()

    async def _take_first(self, socket: WebSocket) -> None:
        """Apply the complete first message of a connection, then let the maker's books be routed again."""
        try:
            with trio.fail_after(FIRST_MESSAGE_S):
                first = await socket.receive()
        except trio.TooSlowError:
            raise MakerError(f"no first message within {FIRST_MESSAGE_S:g} s") from None
        await self._take(first, is_first=True)
        self._connections += 1
        self._down_since = math.inf
        self._cache.release(_WITHHOLDS)
        self._log.info("socket is up", connections=self._connections)

    async def _take(self, message: str | bytes, *, is_first: bool) -> None:
        raw = message.encode() if isinstance(message, str) else message
        await self._slices.work(self._apply(raw, is_first=is_first))
        self._messages += 1

    def _apply(self, raw: bytes, *, is_first: bool) -> Generator[None, None, None]:
        """Decode and apply a message, yielding per entry; raise InvalidInput for a malformed message."""
        decoded = yield from decode_stream_message.in_steps(raw)
        if is_first:
            _refuse_incomplete(decoded.body)
        self._remarks.take(decoded.body.message)
        yield from self._cache.apply_message(decoded, self._wall_ms(), is_first=is_first)


def _refuse_incomplete(first: StreamMessage) -> None:
    for name in ("tokens", "pairs", "prices", "blacklist"):
        if getattr(first, name) is UNSET:
            raise InvalidInput("missing in the first message", field=name)
