"""Serve many plain connections in one task, on a private epoll whose descriptor trio awaits.

    epoll --ready--> a turn each: one read, its answers joined, one write --> epoll
      TLS, a coroutine route, an upgrade, a fault, a last request, a short write, a pause --> promoted

An optimisation of `connection` for connections that have so far asked plain routes only: no task, no
cancel scope and no scheduler pass for each request. Any other need promotes the connection, once and for
good: socket, framing and unsent bytes go to a task of its own.

Fairness is a budget of time: after `_TURN_S` the other tasks have their turn. Parsing, answering, refusing,
writing, promoting and time-outs all count. A connection reads 8 KiB at a time, and gets at most
`_REQUESTS_MAX` answers, or about 64 KiB of answers, in a row; its other requests wait for the next round. A
round is a turn for each connection that was ready or has unanswered requests, and is finished before epoll is
polled again, which would only show the same connections first. The queue holds connections, not descriptors,
so that a reused descriptor number never stands for a closed connection.

The answers of one budget are written together at its end: the first write wakes the client's process up, and
the others find the process awake, which is worth a quarter of the throughput when client and server share a
machine.

Source: ARCHITECTURE.md, "HTTP server".
"""

import select
from collections import deque
from collections.abc import Callable
from socket import socket as Socket  # noqa: N812 - `_Peer.socket` is one
from time import perf_counter
from typing import Protocol

import structlog
import trio

from ....codecs.http1 import Closed, Event, Phase, Request, RequestFault, ServerConnection
from ....config.errors import RequestTimeout
from ....feeds.transport.lean_stream import is_readable
from .connection import Waits
from .exchange import Responder

HAS_EPOLL = hasattr(select, "epoll")

_READ_BYTES = 8_192
_TURN_S = 0.001
_REQUESTS_MAX = 16  # of one connection in a row
_OUTPUT_BYTES_MAX = 65_536  # of one connection in a row; the answer that passes it is the last
_EVENTS_MAX = 256
_SWEEP_S_MAX = 1.0
_ENDED_AT_ONCE = 32
_WRITES_PER_LOOK = 8  # writes between two looks at the clock

_log = structlog.get_logger("cambist.server")

_IDLE, _CLOSED = Phase.IDLE, Phase.CLOSED


class Promote(Protocol):
    """Callback that hands a connection from the reactor's shared task to a task of its own."""

    def __call__(
        self,
        connected: Socket,
        client: str,
        http: ServerConnection,
        output: bytes,
        event: Event | None,
        resumes_at: float,
    ) -> None:
        """Continue to serve a connection: send `output`, pause, answer `event`, if any, then read.

        Args:
            connected: the connection's socket, which the callback then owns.
            client: IP address of the client.
            http: state of the HTTP parser.
            output: bytes not yet sent.
            event: event (such as a request) of `http` that is not answered yet.
            resumes_at: end of the client's pause on trio's clock (see `pauses`); 0 if it does not pause.
        """
        ...


class _Peer:
    """A connection that the reactor serves in its single task, which all such connections share.

    A turn of the connection consists of one read and the answers to the complete requests.

    Attributes:
        deadline: time on trio's clock at which the wait for the client's next bytes times out.
        awaited: (phase of the HTTP parser, number of parsed requests) for which `deadline` was set, so that
            further bytes of the same request do not postpone `deadline`.
        resumes_at: end of the client's pause on trio's clock (see `pauses`); 0 if it does not pause.
        left_over: whether received requests may be unanswered, so that the next turn begins without a read.
        output: encoded answers of the latest turn that are not sent yet.
        event: event that the latest turn parsed, such as a request, and that the reactor cannot answer.
        served: whether the latest turn's `output` and `event` still have to be sent or handed over.
        gone: whether the connection is closed, or handed to a task of its own.
    """

    __slots__ = (
        "awaited",
        "client",
        "deadline",
        "event",
        "gone",
        "http",
        "left_over",
        "output",
        "receive",
        "resumes_at",
        "send",
        "served",
        "socket",
    )

    def __init__(self, connected: Socket, client: str, http: ServerConnection, deadline: float) -> None:
        self.socket = connected
        self.receive = connected.recv
        self.send = connected.send
        self.client = client
        self.http = http
        self.deadline = deadline
        self.awaited: tuple[Phase, int] = (http.phase, 0)
        self.output: list[bytes] = []
        self.event: Event | None = None
        self.resumes_at = 0.0
        self.left_over = False
        self.served = False
        self.gone = False


class Reactor:
    """Serves many connections without TLS in one task, by epoll, until stopped or cancelled.

    Args:
        exchange: answers the requests.
        waits: time-outs.
        promote: called with each connection that needs a task of its own.
        leave: called with the client's address when the reactor closes a connection.
    """

    def __init__(
        self, exchange: Responder, waits: Waits, promote: Promote, leave: Callable[[str], None]
    ) -> None:
        self._exchange = exchange
        self._waits = waits
        self._hand_over = promote
        self._leave = leave
        self._epoll = select.epoll()
        self._peers: dict[int, _Peer] = {}
        self._ready: deque[_Peer] = deque()
        self._left_over: list[_Peer] = []
        self._served: deque[_Peer] = deque()
        self._running = trio.CancelScope()
        self._clock = 0.0  # when the last piece of work was done
        self._turn_end = self._now = 0.0
        self._now_ms = 0

    def adopt(self, connected: Socket, client: str) -> None:
        """Begin to serve the connection of a non-blocking socket; the reactor then owns the socket.

        Raises:
            OSError: epoll cannot watch the socket; the caller still owns it.
        """
        descriptor = connected.fileno()
        self._epoll.register(descriptor, select.EPOLLIN)
        http = ServerConnection(self._exchange.limits, self._exchange.bodies)
        deadline = trio.current_time() + self._waits.header_s
        self._peers[descriptor] = _Peer(connected, client, http, deadline)

    def stop(self) -> None:
        """Make `run` hand every connection over to a task of its own and then return."""
        self._running.cancel()

    async def run(self) -> None:
        """Serve the connections until `stop` is called; when cancelled, all connections are closed."""
        try:
            with self._running:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._sweep_regularly)
                    await self._react()
            for number, peer in enumerate(tuple(self._peers.values())):
                if number % _ENDED_AT_ONCE == 0:
                    await trio.lowlevel.checkpoint()
                self._promote(peer, b"", None)
        finally:
            for peer in tuple(self._peers.values()):
                self._drop(peer)
            self._epoll.close()

    # --- The loop -----------------------------------------------------------------------------------

    async def _react(self) -> None:
        ready, left_over, peers, epoll = self._ready, self._left_over, self._peers, self._epoll
        descriptor = epoll.fileno()
        self._begin_turn()
        while True:
            if not ready:
                ready.extend(left_over)
                left_over.clear()
                for number, _ in epoll.poll(0, _EVENTS_MAX):
                    peer = peers[number]
                    if not peer.left_over:  # else it is in `ready` already, for one turn in this round
                        ready.append(peer)
                if not ready:
                    await trio.lowlevel.wait_readable(descriptor)
                    self._begin_turn()
                    continue
            peer = ready.popleft()
            try:
                self._serve(peer)
            except Exception as error:  # noqa: BLE001 - ends this connection and no other
                self._lose(peer, error)
            over = self._clock >= self._turn_end
            # Before any await that can be cancelled: `run` hands connections over without unsent answers.
            if over or not ready:
                while not self._write():
                    await trio.lowlevel.cancel_shielded_checkpoint()
                    self._now = trio.current_time()
                    self._clock = perf_counter()
            if over:
                await trio.lowlevel.checkpoint()
                self._begin_turn()

    def _begin_turn(self) -> None:
        self._clock = perf_counter()
        self._turn_end = self._clock + _TURN_S
        self._now = trio.current_time()
        self._now_ms = self._exchange.wall_ms()

    def _lose(self, peer: _Peer, error: Exception) -> None:
        """Close a connection after an error on it; an error that is a bug of the server is logged."""
        self._clock = perf_counter()
        if isinstance(error, OSError):
            self._exchange.counters.broken += 1
        else:
            _log.error("a connection failed", client=peer.client, exc_info=error)
        if not peer.gone:
            self._drop(peer)

    def _write(self) -> bool:
        """Send the answers of all connections that have had a turn since their last answers, for about 1 ms.

        Returns:
            True if all answers are handled. False if time ran out: the caller then lets other tasks run,
            shielded from cancellation so that no finished answer is lost, and calls this method again.
        """
        served = self._served
        end = self._clock + _TURN_S
        until_look = _WRITES_PER_LOOK
        while served:
            peer = served.popleft()
            try:
                self._conclude(peer)
            except Exception as error:  # noqa: BLE001 - ends this connection and no other
                self._lose(peer, error)
            until_look -= 1
            if not until_look:
                until_look = _WRITES_PER_LOOK
                if served and perf_counter() >= end:
                    return False
        self._clock = perf_counter()
        return True

    def _serve(self, peer: _Peer) -> None:
        """Give a connection its turn: read once, and answer complete requests until a limit is reached."""
        if peer.gone:
            return
        http = peer.http
        if peer.left_over:  # no read: the parser still holds bytes, and its buffer would grow turn by turn
            peer.left_over = False
        else:
            try:
                data = peer.receive(_READ_BYTES)
            except BlockingIOError:
                return
            if data:
                http.receive_data(data)
            else:
                http.receive_eof()
        exchange = self._exchange
        output = peer.output
        size = 0
        event: Event | None = None
        # The loop leaves in `event` what this task cannot answer, and None after the last answer.
        for _ in range(_REQUESTS_MAX):
            event = http.next_event()
            if type(event) is not Request:
                break
            route, parameters = exchange.router.resolve(event)
            surface, handler = route.surface, route.plain
            if handler is None:
                break
            call = exchange.call(event, peer.client, parameters, self._now_ms)
            reply = exchange.run_plain_handler(surface, handler, call)
            answer = exchange.encode(surface, call, reply, self._clock, keep_alive=event.keep_alive)
            output.append(answer)
            size += len(answer)
            event = None
            started, self._clock = self._clock, perf_counter()
            route.durations.add(self._clock - started)
            peer.resumes_at = exchange.pauses.begin(peer.client) if reply.pauses else 0.0
            if peer.resumes_at or self._clock >= self._turn_end or size >= _OUTPUT_BYTES_MAX:
                peer.left_over = True
                break
        else:
            peer.left_over = True
        if event is not None or http.phase is not _IDLE:  # parsing without an answer took time too
            self._clock = perf_counter()
            if http.is_due:
                peer.left_over = True
        peer.event = event
        peer.served = True
        self._served.append(peer)

    def _conclude(self, peer: _Peer) -> None:
        """Send a connection's new answers, then keep it, hand it to a task of its own, or close it."""
        output, event = peer.output, peer.event
        http = peer.http
        peer.served = False
        if event is None and not peer.left_over:  # else `100 Continue` would overtake an answer
            interim = http.take_continue()
            if interim:
                output.append(interim)
        unsent = b""
        if output:
            joined = output[0] if len(output) == 1 else b"".join(output)
            output.clear()
            try:
                sent = peer.send(joined)
            except BlockingIOError:
                sent = 0
            unsent = joined[sent:] if sent < len(joined) else b""
        phase = http.phase
        if type(event) is Closed and not unsent:
            self._drop(peer)
        elif unsent or event is not None or phase is _CLOSED or peer.resumes_at:
            # The task begins with the unsent bytes, then handles the event: answers keep their order.
            self._promote(peer, unsent, event)
        else:
            if peer.left_over:
                self._left_over.append(peer)
            # A deadline belongs to what is awaited: further bytes of the same request do not lengthen it. A
            # connection that has sent no request keeps the deadline of `adopt`.
            if phase is _IDLE:
                if http.requests:
                    peer.deadline = self._now + self._waits.idle_s
            elif peer.awaited != (phase, http.requests):
                peer.awaited = (phase, http.requests)
                peer.deadline = self._now + self._waits.reading(phase)

    # --- Time-outs and ends -------------------------------------------------------------------------

    async def _sweep_regularly(self) -> None:
        waits = self._waits
        pause_s = min(_SWEEP_S_MAX, min(waits.header_s, waits.body_s, waits.idle_s) / 4)
        while True:
            await trio.sleep(pause_s)
            await self._sweep()

    async def _sweep(self) -> None:
        """End each connection whose client has not sent the awaited bytes before the time-out.

        A connection without a begun request is closed, unless bytes have come that had no turn yet; any other
        connection is handed to a task of its own, which answers 408. The method lets other tasks run after
        every _ENDED_AT_ONCE connections.
        """
        now = trio.current_time()
        late = [peer for peer in self._peers.values() if peer.deadline <= now]
        for number, peer in enumerate(late, 1):
            # Looked at again: other tasks run in between, and a peer may have been served or dropped.
            if peer.deadline <= now and not (peer.gone or peer.left_over or peer.served):
                if peer.http.phase is not _IDLE:
                    self._promote(peer, b"", RequestFault(RequestTimeout(), peer.http.unfinished))
                elif not is_readable(peer.socket):
                    self._drop(peer)
            if number % _ENDED_AT_ONCE == 0:
                await trio.lowlevel.checkpoint()

    def _promote(self, peer: _Peer, output: bytes, event: Event | None) -> None:
        self._forget(peer)
        self._exchange.counters.promoted += 1
        self._hand_over(peer.socket, peer.client, peer.http, output, event, peer.resumes_at)

    def _drop(self, peer: _Peer) -> None:
        self._forget(peer)
        peer.http.release()
        peer.socket.close()
        self._leave(peer.client)

    def _forget(self, peer: _Peer) -> None:
        peer.gone = True
        descriptor = peer.socket.fileno()
        del self._peers[descriptor]
        self._epoll.unregister(descriptor)
