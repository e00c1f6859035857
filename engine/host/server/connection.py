"""Serve one connection in a task of its own, with all of HTTP/1.1 that the server offers.

    read --events--> answer in order --joined--> write --all written--> read
                                              --over its rate--> write, pause (see `pauses`) --> go on
      last request, fault, end of input, time-out, drain --> send any last answer, read on a while, close

The task does not read while an answer is unsent, so that a connection holds at most one read, one request and
the answers to one read. Every wait has a bound: by phase for reads, `write_s` for writes, `route_s` for a
coroutine route.

Draining: the server answers requests that have arrived; the last answer has `connection: close`. An idle
connection gets `SERVER_DRAIN_IDLE_S` for a request that may be on its way, then is closed.

Plain routes of all connections share a millisecond of every pass: see `turns`.

A disconnect does not cancel a route's work, which ends within `route_s`. End of input during a streamed
answer is a disconnect, since no subscriber half-closes. Before and between answers a half-closed client
receives all its answers. An incomplete request at the end of input closes the connection without an answer. A
connection that has sent no byte closes after `header_s`, not after `idle_s`.

Source: RFC 9112 9.3 to 9.6; RFC 9110 10.1.1; RFC 6455 10.2 (Origin).
Choice: A WebSocket whose Origin is neither listed nor the request's own host is refused with 400.
"""

import time
from collections.abc import Awaitable, Callable
from typing import cast

import structlog
import trio
from msgspec import Struct

from ....codecs.http1 import (
    Event,
    Phase,
    Request,
    RequestFault,
    ServerConnection,
    Upgrade,
)
from ....config.errors import HttpFault, RequestTimeout, ServiceUnavailable, WebSocketClosed
from ....config.sections.server import ServerSettings
from ....config.timeouts import SERVER_DRAIN_IDLE_S, SERVER_LINGER_S
from ....feeds.transport.lean_stream import LeanStream, has_input
from ....feeds.transport.websocket import serve_websocket
from .exchange import Responder
from .routing import CoroutineHandler, HttpCall, HttpRoute, Reply, RouteGroup, SocketRoute, StreamReply
from .streaming import Pump, close_pieces
from .turns import SMALL_BYTES, Turns

READ_BYTES = 16_384
_JOINED_BYTES_MAX = 65_536  # answers are sent once so much of them has come together
_LINGER_BYTES_MAX = 16 << 20
_LINGER_READ_BYTES = 65_536

_log = structlog.get_logger("cambist.server")

IDLE, HEADERS, BODY, CLOSED = Phase.IDLE, Phase.HEADERS, Phase.BODY, Phase.CLOSED


class Waits(Struct, frozen=True):
    """Limits of one HTTP connection: time-outs in seconds, and a bound on unsent bytes.

    Attributes:
        header_s, body_s: time to receive a request's header section, and its body.
        idle_s: time between two requests.
        write_s: time for one write.
        route_s: time for a coroutine handler to return its reply.
        socket_bytes_max: most unsent bytes on a WebSocket.
        linger_s: time to close the connection after the last answer.
        drain_idle_s: time for a further request to arrive while the server shuts down.
    """

    header_s: float
    body_s: float
    idle_s: float
    write_s: float
    route_s: float
    socket_bytes_max: int
    linger_s: float = SERVER_LINGER_S
    drain_idle_s: float = SERVER_DRAIN_IDLE_S

    @classmethod
    def of(cls, settings: ServerSettings) -> "Waits":
        """Take a connection's time-outs and byte limit from the server's settings."""
        return cls(
            settings.header_s,
            settings.body_s,
            settings.idle_s,
            settings.write_s,
            settings.route_s,
            settings.socket_bytes_max,
        )

    def reading(self, phase: Phase) -> float:
        """Time-out, in seconds, for the client's bytes in a phase of the HTTP parser.

        Args:
            phase: HEADERS or BODY while a request has arrived in part; any other phase between requests.
        """
        if phase is HEADERS:
            return self.header_s
        return self.body_s if phase is BODY else self.idle_s


class _CutOff(Exception):
    """A write exceeded its time-out, as the client reads too slowly; the connection is dropped."""


class Connection:
    """Serves HTTP/1.1 on one stream until the client or the server ends the connection.

    Args:
        stream: byte stream to the client, which this object owns and closes.
        client: IP address of the client.
        exchange: answers the requests.
        waits: time-outs, and the most unsent bytes.
        turns: limits the time that all connections together use in one pass of trio's scheduler.
        turn_key: whose turns the connection shares; see `Turns.take`.
        http: HTTP parser of a connection that the reactor, one task for many connections, has served before;
            None for a new connection.
        output: bytes to send first: answers to earlier requests of the connection.
        event: event (such as a request) that `http` has parsed and that is not answered yet, if any.
        resumes_at: end of the client's pause on trio's clock (see `pauses`); 0 if it does not pause.
    """

    def __init__(
        self,
        stream: trio.abc.Stream,
        client: str,
        exchange: Responder,
        waits: Waits,
        turns: Turns,
        *,
        turn_key: str = "",
        http: ServerConnection | None = None,
        output: bytes = b"",
        event: Event | None = None,
        resumes_at: float = 0.0,
    ) -> None:
        self._stream = stream
        self._client = client
        self._exchange = exchange
        self._waits = waits
        self._turns = turns
        self._turn_key = turn_key
        self._http = http or ServerConnection(exchange.limits, exchange.bodies)
        self._output = [output] if output else []
        self._output_bytes = len(output)
        self._ahead = event
        self._resumes_at = resumes_at
        self._awaited: tuple[Phase, int] | None = None
        self._deadline = 0.0
        self._draining = False
        self._closing = False  # no further request is read
        self._refused = False  # the last answer is a refusal; more bytes may be on their way
        self._ended = False  # the other side's input has ended
        self._idle_scope: trio.CancelScope | None = None
        self._cut_scope: trio.CancelScope | None = None  # of a subscription or WebSocket, for a drain

    async def run(self) -> None:
        """Answer the client's requests until the last one, and close the connection.

        The method raises no error but trio.Cancelled.
        """
        await self._guarded(self._serve)

    async def close(self) -> None:
        """Refuse the connection: send the constructor's `output`, the refusing answer, and close."""
        self._refused = True
        await self._guarded(trio.lowlevel.checkpoint)

    async def _guarded(self, serve: Callable[[], Awaitable[None]]) -> None:
        try:
            await serve()
            await self._finish()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self._exchange.counters.broken += 1
        except _CutOff:
            self._exchange.counters.cut_off += 1
        except Exception as error:  # noqa: BLE001 - our bug: it ends this connection and no other
            _log.error("a connection failed", client=self._client, exc_info=error)
        finally:
            self._http.release()
            await trio.aclose_forcefully(self._stream)

    def drain(self) -> None:
        """Answer the requests that have arrived, then close the connection; called at a shutdown."""
        self._draining = True
        if self._idle_scope:
            soon = trio.current_time() + self._waits.drain_idle_s
            self._idle_scope.deadline = min(self._idle_scope.deadline, soon)
        if self._cut_scope:
            self._cut_scope.cancel()

    # --- Reading ------------------------------------------------------------------------------------

    async def _serve(self) -> None:
        """Answer the requests that the HTTP parser yields until the connection's last one."""
        if self._ahead:  # handed over by the reactor: no read, which would take the turn, comes before
            await self._turns.take(self._turn_key)
        while True:
            if self._resumes_at and self._http.phase is not CLOSED:
                await self._pause()
            event = self._ahead or self._http.next_event()
            self._ahead = None
            if event is None:
                if self._http.is_due:  # bytes are left to parse: a read would buffer more without a bound
                    self._turns.end()
                    await trio.lowlevel.checkpoint()
                    await self._turns.take(self._turn_key)
                else:
                    await self._flush()
                    if not await self._read():
                        return
            elif isinstance(event, Request):
                await self._answer(event)
            elif isinstance(event, RequestFault):
                self._refuse(event)
            elif isinstance(event, Upgrade):
                await self._upgrade(event)
                return
            else:
                self._ended = True
                return

    async def _pause(self) -> None:
        """Send the answers, and wait for the end of the client's pause."""
        await self._flush()
        self._turns.end()
        await self._exchange.pauses.over(self._resumes_at)
        self._resumes_at = 0.0
        await self._turns.take(self._turn_key)

    async def _read(self) -> bool:
        """Read bytes from the client into the HTTP parser.

        Returns:
            False if no further request is to be answered.
        """
        http, waits = self._http, self._waits
        if self._closing or http.phase is CLOSED:
            return False
        interim = http.take_continue()
        if interim:
            await self._send(interim)
        # A deadline per phase of a request, not per read: bytes that trickle in must not postpone it.
        awaited = (http.phase, http.requests)
        if awaited != self._awaited:
            self._awaited = awaited
            waited_for = HEADERS if not http.requests and http.phase is IDLE else http.phase
            self._deadline = trio.current_time() + waits.reading(waited_for)
        deadline = self._deadline
        idle = http.phase is IDLE
        # No await until the scope is set: an earlier drain has set `_draining`, a later one finds the scope.
        if idle and self._draining and not has_input(self._stream):
            deadline = min(deadline, trio.current_time() + waits.drain_idle_s)
        data: bytes | bytearray = b""
        with trio.CancelScope(deadline=deadline) as scope:
            self._idle_scope = scope if idle else None
            data = await self._stream.receive_some(READ_BYTES)
        self._idle_scope = None
        if scope.cancelled_caught and idle and has_input(self._stream):
            # The bytes came in time, but this task had no turn to read them.
            with trio.move_on_after(waits.header_s) as scope:
                data = await self._stream.receive_some(READ_BYTES)
        if scope.cancelled_caught:
            if idle:
                self._ended = True  # there is no answer that could be lost
            else:
                self._refuse(RequestFault(RequestTimeout(), http.unfinished))
            return False
        if data:
            http.receive_data(bytes(data))
        else:
            http.receive_eof()
        return True

    def _refuse(self, fault: RequestFault) -> None:
        """Answer bytes that are no valid HTTP request with an error, the connection's last answer."""
        self._closing = self._refused = True
        self._put(self._exchange.encode_fault(fault.error, self._client, fault.request))

    def _keep_alive(self, request: Request) -> bool:
        """Whether the connection stays open after the next answer, which is the answer to `request`.

        During a shutdown the connection stays open only if a part of a further request has arrived; to find
        out, the method parses the next event into `_ahead`.
        """
        if not request.keep_alive or self._closing:
            return False
        if self._draining:
            self._ahead = self._ahead or self._http.next_event()
            if self._ahead is None and self._http.phase is IDLE:
                self._closing = True
                return False
        return True

    # --- Writing ------------------------------------------------------------------------------------

    def _put(self, answer: bytes) -> None:
        self._output.append(answer)
        self._output_bytes += len(answer)

    async def _flush(self) -> None:
        if self._output:
            joined = b"".join(self._output)
            self._output.clear()
            self._output_bytes = 0
            await self._send(joined)

    async def _send(self, data: bytes) -> None:
        # A time-out costs more than the sending of an answer that the socket takes whole, as it mostly does.
        sent = 0
        if isinstance(self._stream, LeanStream) and len(data) <= SMALL_BYTES:
            sent = self._stream.send_now(data)
        if sent == len(data):
            return
        with trio.move_on_after(self._waits.write_s) as scope:
            await self._stream.send_all(data[sent:])
        if scope.cancelled_caught:
            raise _CutOff

    async def _finish(self) -> None:
        """Close the connection so that the last answer arrives although the client may still be sending.

        TCP resets a connection that is closed with unread bytes, and the reset can overtake the answer. The
        server therefore closes only its sending side at first, and discards the client's bytes. A TLS stream
        cannot close one side alone; over TLS the server discards bytes only after a refusal.
        """
        await self._flush()
        half_closes = isinstance(self._stream, trio.abc.HalfCloseableStream)
        with trio.move_on_after(self._waits.linger_s):
            if not self._ended and (half_closes or self._refused):
                await self._linger()
            await self._stream.aclose()

    async def _linger(self) -> None:
        """Discard the client's bytes until the client closes its side or has sent _LINGER_BYTES_MAX bytes."""
        if isinstance(self._stream, trio.abc.HalfCloseableStream):
            await self._stream.send_eof()
        left = _LINGER_BYTES_MAX
        while left > 0:
            data = await self._stream.receive_some(_LINGER_READ_BYTES)
            if not data:
                return
            left -= len(data)

    # --- Answering ----------------------------------------------------------------------------------

    async def _answer(self, request: Request) -> None:
        exchange = self._exchange
        started = time.perf_counter()
        route, parameters = exchange.router.resolve(request)
        call = exchange.call(request, self._client, parameters, exchange.wall_ms())
        if route.plain is not None:
            if self._output and not self._turns.has_room():  # not the first answer to one read
                self._turns.end()
                await self._flush()
                await trio.lowlevel.checkpoint()
                await self._turns.take(self._turn_key)
            reply: Reply | StreamReply = exchange.run_plain_handler(route.surface, route.plain, call)
        else:
            await self._flush()
            reply = await self._await_reply(route.surface, cast("CoroutineHandler", route.coroutine), call)
        if isinstance(reply, StreamReply):
            await self._answer_stream(route, call, reply, started)
            return
        if reply.pauses:
            self._resumes_at = exchange.pauses.begin(self._client)
        keep_alive = self._keep_alive(request)
        self._put(exchange.encode(route.surface, call, reply, started, keep_alive=keep_alive))
        route.durations.add(time.perf_counter() - started)
        if self._output_bytes >= _JOINED_BYTES_MAX:
            await self._flush()

    async def _await_reply(
        self, surface: RouteGroup, handler: CoroutineHandler, call: HttpCall
    ) -> Reply | StreamReply:
        """Run a coroutine route's handler and return its reply; after `route_s` seconds the reply is 503."""
        error: Exception
        try:
            with trio.move_on_after(self._waits.route_s):
                return await handler(call)
            error = ServiceUnavailable("no answer in time")
        except Exception as raised:  # noqa: BLE001 - answered, and logged if it is our fault
            error = raised
        return self._exchange.refusal(surface, error, call.request_id)

    async def _answer_stream(
        self, route: HttpRoute, call: HttpCall, reply: StreamReply, started: float
    ) -> None:
        """Send a streamed reply piece by piece, or for HEAD only its headers; add it to the access log."""
        exchange = self._exchange
        keep_alive = self._keep_alive(call.request)
        try:
            try:
                head = exchange.encode_stream(route.surface, call, reply, keep_alive=keep_alive)
            except Exception as error:  # noqa: BLE001 - a status or header that breaks the framing; logged
                refusal = exchange.refusal(route.surface, error, call.request_id)
                self._put(exchange.encode(route.surface, call, refusal, started, keep_alive=keep_alive))
            else:
                await self._stream_pieces(call, head, reply, started)
        finally:
            await close_pieces(reply.pieces)

    async def _stream_pieces(self, call: HttpCall, head: bytes, reply: StreamReply, started: float) -> None:
        exchange, request = self._exchange, call.request
        pump = Pump(self._stream, self._send, endless=reply.endless)
        try:
            await self._send(head)
            if request.method == b"HEAD":
                return
            self._cut_scope = pump.scope if reply.endless else None
            if self._cut_scope and self._draining:
                self._cut_scope.cancel()
            chunked = request.http_minor == 1
            await pump.run(reply, chunked=chunked, request_id=call.request_id)
            self._closing = self._closing or not chunked
        finally:
            self._cut_scope = None
            exchange.log(call, reply.status, pump.sent, started)
        self._after_stream(pump)

    def _after_stream(self, pump: Pump) -> None:
        """Prepare the connection for its next request, or for its end if a streamed answer is incomplete.

        The HTTP parser receives the bytes that the client sent during a complete answer.

        Raises:
            _CutOff: the client read the answer too slowly.
            trio.BrokenResourceError: another error ended the answer.
        """
        if pump.failure:
            is_slow = isinstance(pump.failure, _CutOff)
            pump.failure = None  # its frames hold the pump: a cycle that would keep the connection's state
            raise _CutOff if is_slow else trio.BrokenResourceError
        if not pump.complete:
            self._closing = self._ended = True
            self._http.receive_eof()
            self._ahead = None
        elif pump.received and self._http.phase is not Phase.UPGRADED:
            self._http.receive_data(pump.received)

    # --- WebSocket ----------------------------------------------------------------------------------

    async def _upgrade(self, upgrade: Upgrade) -> None:
        """Hand the connection to the WebSocket route of the requested path, or refuse the upgrade."""
        exchange, request = self._exchange, upgrade.request
        request.keep_alive = False
        found = exchange.router.resolve_socket(request)
        if found is None:
            await self._answer(request)
            return
        route, parameters = found
        call = exchange.call(request, self._client, parameters, exchange.wall_ms())
        started = time.perf_counter()
        try:
            route.surface.check_origin(request)
            route.check(call)
        except Exception as error:  # noqa: BLE001 - answered, and logged if it is our fault
            refusal = exchange.refusal(route.surface, error, call.request_id)
            if refusal.pauses:
                exchange.pauses.begin(self._client)  # for the client's next connection
            self._put(exchange.encode(route.surface, call, refusal, started, keep_alive=False))
            return
        await self._flush()
        await self._serve_socket(route, call, upgrade, started)

    async def _serve_socket(
        self, route: SocketRoute, call: HttpCall, upgrade: Upgrade, started: float
    ) -> None:
        """Run a WebSocket route until its handler returns, the client closes, or the server shuts down."""
        exchange = self._exchange
        limits = exchange.limits
        # `serve_websocket` closes the stream itself: `_finish` must not linger on it.
        self._closing = self._ended = True
        self._cut_scope = trio.CancelScope()
        # A drain before this line found no scope to cancel.
        if self._draining:
            self._cut_scope.cancel()
        failure: Exception | None = None
        opened = serve_websocket(
            self._stream,
            upgrade,
            message_bytes_max=limits.body_bytes_max,
            send_bytes_max=self._waits.socket_bytes_max,
        )
        try:
            async with opened as web_socket:
                exchange.log(call, 101, 0, started)
                exchange.counters.requests += 1
                with self._cut_scope:
                    try:
                        await route.serve(call, web_socket)
                    except WebSocketClosed:
                        pass
                    except Exception as error:  # noqa: BLE001 - logged
                        failure = error
                code = 1001 if self._cut_scope.cancel_called else 1011 if failure else 1000
                await web_socket.aclose(code)
        # Only a refused handshake raises HttpFault, and no byte is written then: `_finish` sends the answer.
        except HttpFault as error:
            self._ended = False
            refusal = exchange.refusal(route.surface, error, call.request_id)
            self._put(exchange.encode(route.surface, call, refusal, started, keep_alive=False))
        finally:
            self._cut_scope = None
        # For the log and the count of errors alone: the WebSocket is closed, and nobody gets the reply.
        if failure:
            exchange.refusal(route.surface, failure, call.request_id)
