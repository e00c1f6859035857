"""The server: accepts connections, limits their number, hands them to a driver, and drains.

    listening socket --accept--> room? --plain TCP, epoll--> reactor --promoted--> a task
                                   |   --TLS, streams of a test, no epoll--------> a task
                                   no: 503, close

Draining: the server accepts the connections in the listening socket's queue and closes the socket at once;
the reactor hands all connections to tasks, which answer the requests that have arrived (see `connection`).
After `drain_s` the server cuts off the connections that are left.

A TLS handshake costs a millisecond: each of its steps waits for a turn, as does all work of a connection's
task (see `turns`).

A client that was refused for its rate pauses, and so do its new connections: see `pauses`.

A connection that says nothing costs its owner nothing. A network may therefore have as many connections as
are still free: those that take all they can leave room for a client from elsewhere, however many they are.

A trusted proxy's address has no bound of connections, since it serves many clients, and its connections do
not count towards its network: another client of the same network has as many as without the proxy. Refused
connections are answered in at most 64 tasks; more of them are just closed, and so are all over TLS, whose
handshake costs more than the request. The process may open as many files as its hard limit says; 192 of them
are reserved for other uses, refusals included. TLS handshakes under way when a drain begins have a quarter of
a second to end.

Source: ARCHITECTURE.md, "HTTP server".
"""

import errno
import resource
import socket
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TypeAlias

import structlog
import trio
from msgspec.structs import replace
from trio import TASK_STATUS_IGNORED, TaskStatus

from ....codecs.http1 import Event, Http1Limits, ServerConnection
from ....config.errors import ServiceUnavailable
from ....config.sections.server import ServerSettings
from ....config.timeouts import (
    SERVER_ACCEPT_PAUSE_S,
    SERVER_DRAIN_IDLE_S,
    SERVER_SPREAD_S,
    TLS_HANDSHAKE_S,
)
from ....feeds.durations import Durations
from ....feeds.transport.streams import BACKLOG, server_tls
from .access_log import AccessLog
from .addresses import address_share, canonical_address, client_at, network_of
from .connection import Connection, Waits
from .exchange import Counters, Responder
from .pauses import Pauses
from .reactor import HAS_EPOLL, Reactor
from .routing import Router
from .spread import Spread
from .turns import PacedStream, Turns

Listener: TypeAlias = socket.socket | trio.abc.Listener[trio.abc.Stream]

_ACCEPTS_MAX = 32  # between two checkpoints
_REFUSALS_MAX = 64
_FILES_KEPT = 192  # descriptors that are not for connections: files, outgoing connections, refusals, health
_NO_ROOM = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))

_log = structlog.get_logger("cambist.server")


class Server:
    """HTTP server on one listening socket; `serve` may be called only once.

    Args:
        router: the routes to serve.
        settings: limits, time-outs and TLS files; the address is not used, as `serve` receives the listener.
        wall_ms: wall clock, Unix milliseconds.
        access_log: log of all answers, whose task the server runs during `serve`; None for no access log.
        reactor: whether one task (`Reactor`) may serve all connections without TLS, if the platform has
            epoll.
        proxies: IP addresses of trusted proxies, which may have any number of connections.
        spread: numbers of connections of the processes that share the listening socket; None for one process.

    Raises:
        ConfigError: the TLS files cannot be used.
    """

    def __init__(
        self,
        router: Router,
        settings: ServerSettings,
        *,
        wall_ms: Callable[[], int],
        access_log: AccessLog | None = None,
        reactor: bool = True,
        proxies: Iterable[str] = (),
        spread: Spread | None = None,
    ) -> None:
        limits = Http1Limits(
            body_bytes_max=settings.body_bytes_max,
            requests_per_connection_max=settings.requests_per_connection_max,
        )
        self._settings = settings
        self._waits = Waits.of(settings)
        self._proxies = frozenset(map(canonical_address, proxies))
        self._pauses = Pauses(self._proxies)
        self._exchange = Responder(
            router, limits, wall_ms, access_log, settings.bodies_bytes_max, self._pauses
        )
        self._turns = Turns()
        self._spread = spread
        self._is_accepting = False
        self._proxied = 0
        self._connections_max = settings.connections_max
        self._access_log = access_log
        self._tls = server_tls(settings.tls.certificate, settings.tls.key) if settings.tls else None
        self._by_address: Counter[str] = Counter()
        self._by_network: Counter[str] = Counter()
        self._refusals = 0
        self._is_queue_empty = False
        self._connections: set[Connection] = set()
        self._handshakes: set[trio.CancelScope] = set()
        self._may_react = reactor and HAS_EPOLL and self._tls is None
        self._reactor: Reactor | None = None
        self._nursery: trio.Nursery
        self._draining = trio.Event()
        self._empty = trio.Event()

    def statistics(self) -> Counters:
        """Return a copy of the server's counters of connections and requests."""
        dropped = self._access_log.dropped if self._access_log else 0
        return replace(self._exchange.counters, log_dropped=dropped)

    def durations(self) -> dict[str, Durations]:
        """Return the durations of answers by route, such as `GET /v2/quote`."""
        return self._exchange.router.durations()

    def drain(self) -> None:
        """Stop accepting connections and answer the requests in flight; `serve` then returns.

        The wait for the answers takes at most `drain_s` seconds.
        """
        self._draining.set()

    async def serve(self, listener: Listener, *, task_status: TaskStatus[None] = TASK_STATUS_IGNORED) -> None:
        """Accept and serve connections until cancelled, or until the shutdown begun by `drain` is complete.

        Args:
            listener: a non-blocking listening socket, or a trio listener of streams; closed at the end.
        """
        self._connections_max = min(self._settings.connections_max, _files_max() - _FILES_KEPT)
        if self._connections_max < self._settings.connections_max:
            _log.warning("too few file descriptors: fewer connections", connections_max=self._connections_max)
        # Turns and the access log outlive the inner nursery: the last answers of its connections need both.
        async with trio.open_nursery() as outer:
            outer.start_soon(self._turns.run)
            if self._access_log:
                outer.start_soon(self._access_log.run)
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                if self._may_react and isinstance(listener, socket.socket):
                    self._reactor = Reactor(self._exchange, self._waits, self._promoted, self._leave)
                    nursery.start_soon(self._reactor.run)
                with trio.CancelScope() as accepting:
                    nursery.start_soon(self._await_drain, accepting)
                    self._is_accepting = True
                    self._count(0)
                    task_status.started()
                    try:
                        await self._accept(listener)
                    finally:
                        await _close(listener)
                if self._reactor:
                    self._reactor.stop()
                # A connection that the reactor hands over later drains itself: `_draining` is set by now.
                for connection in tuple(self._connections):
                    connection.drain()
                soon = trio.current_time() + SERVER_DRAIN_IDLE_S
                for scope in self._handshakes:
                    scope.deadline = min(scope.deadline, soon)
                with trio.move_on_after(self._settings.drain_s):
                    while self._exchange.counters.connections or self._refusals:
                        self._empty = trio.Event()
                        await self._empty.wait()
                nursery.cancel_scope.cancel()
                # A wait for a turn is shielded: `close` ends it, and the cancelled task gets no turn.
                self._turns.close()
            outer.cancel_scope.cancel()

    async def _await_drain(self, accepting: trio.CancelScope) -> None:
        await self._draining.wait()
        accepting.cancel()
        self._pauses.end()

    # --- Accepting ----------------------------------------------------------------------------------

    async def _accept(self, listener: Listener) -> None:
        """Accept connections until cancelled; at the end accept all that still wait in the socket's queue."""
        if not isinstance(listener, socket.socket):
            while True:
                stream = await listener.accept()
                self._admit(stream, "")
        try:
            while True:
                await trio.lowlevel.wait_readable(listener)
                is_done = (
                    self._accept_queued(listener)
                    if self._spread is None
                    else await self._accept_share(listener, self._spread)
                )
                if not is_done:
                    await trio.sleep(SERVER_ACCEPT_PAUSE_S)
        finally:
            self._is_accepting = False
            if self._spread:
                self._spread.leave()
            for _ in range(0, BACKLOG, _ACCEPTS_MAX):
                if not self._accept_queued(listener) or self._is_queue_empty:
                    break
                await trio.lowlevel.cancel_shielded_checkpoint()

    async def _accept_share(self, listener: socket.socket, spread: Spread) -> bool:
        """Accept those of the queued connections that fall to this process. See `_accept_queued`."""
        if room := self._room(spread):
            return self._accept_queued(listener, room)
        there = spread.others()
        await trio.sleep(SERVER_SPREAD_S)
        if room := self._room(spread):
            return self._accept_queued(listener, room)
        # The others are busy or stand still, and this process takes what still waits: one connection while
        # their numbers change, since they may be just about to accept, and more while they do not.
        is_still, before = spread.others() == there, self._total()
        is_done = self._accept_queued(listener, spread.left if is_still else 1)
        if is_still and self._total() > before:
            spread.took_left()
        return is_done

    def _room(self, spread: Spread) -> int:
        """Number of connections that fall to this process now, and for which it has room."""
        return max(0, min(spread.room(), self._connections_max - self._exchange.counters.connections))

    def _total(self) -> int:
        """Number of connections accepted and refused until now."""
        return self._exchange.counters.accepted + self._exchange.counters.refused

    def _accept_queued(self, listener: socket.socket, most: int = _ACCEPTS_MAX) -> bool:
        """Accept a bounded number of connections from the listening socket's queue.

        Returns:
            False if the system is out of file descriptors or memory.
        """
        self._is_queue_empty = False
        for _ in range(min(most, _ACCEPTS_MAX)):
            try:
                connected, address = listener.accept()
            except BlockingIOError:
                self._is_queue_empty = True
                return True
            except OSError as error:
                if error.errno in _NO_ROOM:
                    _log.warning("connections cannot be accepted", reason=error.strerror)
                    return False
                continue  # the connection broke while it waited
            connected.settimeout(0)
            self._admit(connected, client_at(address[0]))
        return True

    def _admit(self, peer: socket.socket | trio.abc.Stream, client: str) -> None:
        counters = self._exchange.counters
        is_crowded = self._is_crowded(client)
        if is_crowded or not self._has_room(client):
            counters.refused += 1
            counters.refused_by_address += is_crowded
            self._refuse(peer, client)
            return
        counters.accepted += 1
        self._count(1)
        if client not in self._proxies:
            self._by_address[address_share(client)] += 1
            self._by_network[network_of(client)] += 1
        resumes_at = self._pauses.until(client)
        if self._reactor and isinstance(peer, socket.socket) and not resumes_at:
            try:
                self._reactor.adopt(peer, client)
            except (OSError, ValueError) as error:  # ValueError: a cancelled reactor has ended
                _log.warning("a connection cannot be watched", reason=str(error))
                counters.broken += 1
                peer.close()
                self._leave(client)
            return
        stream = (
            PacedStream(peer, self._turns, self._turn_key(client))
            if isinstance(peer, socket.socket)
            else peer
        )
        self._nursery.start_soon(self._serve_stream, stream, client, None, b"", None, resumes_at)

    def _turn_key(self, client: str) -> str:
        """Whose turns a new connection shares: its network's; a trusted proxy's connection has its own."""
        if client not in self._proxies:
            return network_of(client)
        self._proxied += 1
        return f"{client} {self._proxied}"

    def _is_crowded(self, client: str) -> bool:
        """Whether the client's address has as many connections as allowed; trusted proxies have no limit."""
        most = self._settings.connections_per_address_max
        return self._by_address[address_share(client)] >= most and client not in self._proxies

    def _has_room(self, client: str) -> bool:
        """Whether a connection is free, and the client's network has fewer than are free.

        A network that has no connection gets the last one. Trusted proxies get any that is free.
        """
        free = self._connections_max - self._exchange.counters.connections
        return free > 0 and (self._by_network[network_of(client)] < free or client in self._proxies)

    def _promoted(
        self,
        connected: socket.socket,
        client: str,
        http: ServerConnection,
        output: bytes,
        event: Event | None,
        resumes_at: float,
    ) -> None:
        """Start a task for a connection that the reactor hands over; parameters as those of `Promote`."""
        stream = PacedStream(connected, self._turns, self._turn_key(client))
        self._nursery.start_soon(self._serve_stream, stream, client, http, output, event, resumes_at)

    def _leave(self, client: str) -> None:
        """Subtract an ended connection from the totals of `_admit`: all, its address's and its network's."""
        self._count(-1)
        if client not in self._proxies:
            share = address_share(client)
            self._by_address[share] -= 1
            if not self._by_address[share]:
                del self._by_address[share]
            network = network_of(client)
            self._by_network[network] -= 1
            if not self._by_network[network]:
                del self._by_network[network]
        self._empty.set()

    def _count(self, more: int) -> None:
        """Add to the number of open connections, and tell it the other processes."""
        self._exchange.counters.connections += more
        if self._spread and self._is_accepting:
            self._spread.tell(self._exchange.counters.connections)

    def _refuse(self, peer: socket.socket | trio.abc.Stream, client: str) -> None:
        """Refuse a connection above a limit: answer 503, or only close it over TLS or among many refusals."""
        if not isinstance(peer, socket.socket) or (self._tls is None and self._refusals < _REFUSALS_MAX):
            self._refusals += 1
            stream = (
                PacedStream(peer, self._turns, self._turn_key(client))
                if isinstance(peer, socket.socket)
                else peer
            )
            self._nursery.start_soon(self._serve_refusal, stream, client)
        else:
            peer.close()

    # --- Serving ------------------------------------------------------------------------------------

    async def _serve_stream(
        self,
        stream: trio.abc.Stream,
        client: str,
        http: ServerConnection | None = None,
        output: bytes = b"",
        event: Event | None = None,
        resumes_at: float = 0.0,
    ) -> None:
        """Serve one connection in this task, after the TLS handshake if the server has TLS."""
        try:
            secured = await self._secured(stream, resumes_at)
            if secured is not None:
                connection = Connection(
                    secured,
                    client,
                    self._exchange,
                    self._waits,
                    self._turns,
                    turn_key=stream.turn_key if isinstance(stream, PacedStream) else client,
                    http=http,
                    output=output,
                    event=event,
                    resumes_at=resumes_at,
                )
                # No await in between: a drain finds the connection in the set, or has set `_draining` before.
                self._connections.add(connection)
                if self._draining.is_set():
                    connection.drain()
                try:
                    await connection.run()
                finally:
                    self._connections.discard(connection)
        finally:
            self._leave(client)

    async def _serve_refusal(self, stream: trio.abc.Stream, client: str) -> None:
        """Send the answer 503 `too many connections` on a refused connection, and close the connection."""
        try:
            secured = await self._secured(stream)
            if secured is not None:
                too_many = self._exchange.encode_fault(ServiceUnavailable("too many connections"), client)
                refusal = Connection(
                    secured, client, self._exchange, self._waits, self._turns, output=too_many
                )
                await refusal.close()
        finally:
            self._refusals -= 1
            self._empty.set()

    async def _secured(self, stream: trio.abc.Stream, resumes_at: float = 0.0) -> trio.abc.Stream | None:
        """Return the stream that carries HTTP: `stream` itself, or a TLS stream on it after the handshake.

        Args:
            resumes_at: end of the client's pause, which comes before a handshake; 0 if it does not pause.

        Returns:
            The stream; None if the handshake failed or took too long. `stream` is then closed.
        """
        if self._tls is None:
            return stream
        secured: trio.SSLStream[trio.abc.Stream] = trio.SSLStream(
            stream, self._tls, server_side=True, https_compatible=True
        )
        scope = trio.CancelScope()
        try:
            if resumes_at:
                await self._pauses.over(resumes_at)
            # No await until the scope is noted: a drain before has set `_draining`, a later finds the scope.
            bound_s = SERVER_DRAIN_IDLE_S if self._draining.is_set() else TLS_HANDSHAKE_S
            scope.deadline = trio.current_time() + bound_s
            self._handshakes.add(scope)
            with scope:
                await secured.do_handshake()
                return secured
        except trio.BrokenResourceError:
            self._exchange.counters.broken += 1
        except BaseException:
            await trio.aclose_forcefully(stream)
            raise
        finally:
            self._handshakes.discard(scope)
        await trio.aclose_forcefully(stream)
        return None


def _files_max() -> int:
    """Raise the process's limit of open files as far as the system allows; return the limit then in force."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard or hard == resource.RLIM_INFINITY:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):  # the system's own bound is lower
            return soft
    return hard if hard != resource.RLIM_INFINITY else sys.maxsize


async def _close(listener: Listener) -> None:
    if isinstance(listener, socket.socket):
        trio.lowlevel.notify_closing(listener)
        listener.close()
    else:
        await trio.aclose_forcefully(listener)
