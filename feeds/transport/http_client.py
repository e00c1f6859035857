"""The HTTP client of the hot paths: pooled connections to one host, one request at a time on each.

    waiting for a turn --> an idle connection, the newest first --> answered --> idle again
                       \\-> a new one, dialled                   \\-> fault, time-out, cancelled --> dropped

A connection that saw anything but a whole, clean answer is never used again. A request is sent a second time,
on a new connection, only if it went out on a reused connection that died before a byte of the answer: most
likely the server closed that connection while it was idle. The request itself may also have caused the end,
so a request that is not idempotent is repeated only if the caller permits it. A deadline covers the whole
request; every failure is a MakerError with its stage. If only the status counts (`needs_body` False), an
answer whose body breaks off, comes late or cannot be framed is reduced to its head.

A connection that the other side ends while it is idle is closed within HTTP_POOL_LOOK_S, an unused connection
within HTTP_POOL_IDLE_S.

Requests wait for a connection first come, first served. An HTTP request is retried once at most. POST and
PATCH are retried only where the caller allows it, as for /firm.

Source: ARCHITECTURE.md, "HTTP client"; RFC 9110 9.2.2 (retries); RFC 9112 9.
"""

import math
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from enum import Enum
from ssl import SSLContext
from types import TracebackType
from typing import Self

import trio
from msgspec import Struct

from ...codecs.http1 import ClientConnection, Http1Limits, Response
from ...config.errors import AnswerOverLimit, MakerError
from ...config.timeouts import HTTP_POOL_IDLE_S, HTTP_POOL_LOOK_S
from ..ticks import next_tick
from .dial_fault import dial_fault
from .lean_stream import LeanStream, has_input
from .streams import Dial, dial

_READ_BYTES = 65_536
PLAIN = (b"accept-encoding", b"identity")
"""Header field of a request whose answer may not be compressed."""
_IDEMPOTENT = frozenset((b"GET", b"HEAD", b"OPTIONS", b"PUT", b"DELETE"))


class RequestStage(Enum):
    """Stage of a request at which the request failed; the value is the text for errors."""

    TURN = "no connection was free"
    CONNECT = "not connected"
    SEND = "the request is not sent"
    WAIT = "no answer"
    READ = "the answer is not complete"


class HttpFailure(MakerError):
    """Error: a request got no answer, or no acceptable answer.

    Attributes:
        stage: stage that the request had reached.
        is_late: whether the deadline passed and no other fault is known.
        refused: why a received answer is not acceptable; empty without an answer. The text names no host.
        is_over_limit: whether the received answer is larger than the client accepts.
    """

    def __init__(
        self, text: str, stage: RequestStage, *, is_late: bool, refused: str = "", is_over_limit: bool = False
    ) -> None:
        super().__init__(text)
        self.is_over_limit = is_over_limit
        self.stage = stage
        self.is_late = is_late
        self.refused = refused


class HttpClientStatistics(Struct, frozen=True):
    """Counters of an HTTP client at one moment.

    Attributes:
        busy, idle: number of connections with a request; number of connections without.
        waiting: number of requests that wait for a connection.
        requests: requests begun so far.
        dialled: connections dialled so far.
        retries: requests that were sent a second time.
        failures: requests that ended in a MakerError.
    """

    busy: int
    idle: int
    waiting: int
    requests: int
    dialled: int
    retries: int
    failures: int


class _Connection:
    """A pooled connection: its stream, its HTTP parser, its deadline and the start of its idle time."""

    __slots__ = ("deadline", "framing", "idle_since", "is_overdue", "stream")

    def __init__(self, stream: trio.abc.Stream, limits: Http1Limits) -> None:
        self.stream = LeanStream(stream) if isinstance(stream, trio.SocketStream) else stream
        self.framing = ClientConnection(limits)
        self.idle_since = 0.0
        self.deadline = math.inf
        self.is_overdue = False

    def has_input(self) -> bool:
        """Whether an idle connection is unusable: the other side closed it, or sent unsolicited bytes."""
        return has_input(self.stream)


class _Call(Struct):
    """A request, its deadline, and the stage that the request has reached."""

    method: bytes
    target: bytes
    headers: Sequence[tuple[bytes, bytes]]
    body: bytes
    deadline: float
    deadline_s: float
    may_repeat: bool
    stage: RequestStage = RequestStage.TURN


class HttpClient:
    """HTTP client for one host, with a pool of connections.

    Use it as an async context manager: leaving it closes the connections.

    Args:
        host, port: destination; also the Host header, without the port if it is the scheme's own.
        tls: None for plain HTTP.
        connections_max: requests that run at once; further ones wait.
        limits: size limits of the answers.
        dial: function that opens a connection.
        needs_body: whether an answer whose body is not received whole is a failure; if False, such an answer
            is returned with status, headers and an empty body, and its connection is dropped.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        tls: SSLContext | None = None,
        connections_max: int,
        limits: Http1Limits,
        dial: Dial = dial,
        needs_body: bool = True,
    ) -> None:
        self._host = host
        self._port = port
        self._tls = tls
        self._limits = limits
        self._dial = dial
        self._needs_body = needs_body
        name = f"[{host}]" if ":" in host else host
        self._host_field = (name if port == (443 if tls else 80) else f"{name}:{port}").encode()
        self._idle: list[_Connection] = []
        self._turns = connections_max  # requests that may begin at once
        self._connections_max = connections_max
        self._waiting = trio.lowlevel.ParkingLot()
        self._watched: dict[_Connection, LeanStream] = {}
        self._scopes: set[trio.CancelScope] = set()  # of requests that are not watched
        self._wake_at = math.inf
        self._nap = trio.CancelScope()
        self._is_open = False
        self._requests = self._dialled = self._retries = self._failures = 0

    async def __aenter__(self) -> Self:
        self._life = self._living()
        await self._life.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        """Close the connections; requests that are still under way end in a MakerError."""
        return await self._life.__aexit__(kind, error, trace)

    @asynccontextmanager
    async def _living(self) -> AsyncGenerator[None]:
        failure: Exception | None = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._watch)
            self._is_open = True
            try:
                yield
            except Exception as error:  # noqa: BLE001 - raised below, not within an exception group
                failure = error
            finally:
                self._is_open = False
                for stream in self._watched.values():
                    stream.close()
                for scope in self._scopes:
                    scope.cancel()
                with trio.CancelScope(shield=True):  # or the first checkpoint would keep the rest open
                    while self._idle:
                        await trio.aclose_forcefully(self._idle.pop().stream)
                nursery.cancel_scope.cancel()
        if failure is not None:
            raise failure

    @property
    def is_unused(self) -> bool:
        """Whether the client has no connection and no request."""
        return not self._idle and self._turns == self._connections_max

    def statistics(self) -> HttpClientStatistics:
        """Counters since the start, and the present numbers of connections and waiting requests."""
        return HttpClientStatistics(
            busy=self._connections_max - self._turns,
            idle=len(self._idle),
            waiting=len(self._waiting),
            requests=self._requests,
            dialled=self._dialled,
            retries=self._retries,
            failures=self._failures,
        )

    async def request(
        self,
        method: bytes,
        target: bytes,
        headers: Sequence[tuple[bytes, bytes]] = (),
        body: bytes = b"",
        *,
        deadline_s: float,
        may_repeat: bool = False,
    ) -> Response:
        """Send a request and wait for the whole answer, of any status.

        Args:
            method: GET, HEAD, POST, OPTIONS, PUT, PATCH or DELETE.
            target: path and query, percent-encoded.
            headers: without the framing headers: Host, Content-Length, Connection and similar.
            body: sent with its length.
            deadline_s: seconds from now for the wait, the connection and the answer together.
            may_repeat: whether a POST or PATCH may be sent again if a reused connection closes before a byte
                of the answer; the server may then receive it twice.

        Raises:
            HttpFailure: a MakerError: no connection, no answer in time, or no acceptable answer.
            ValueError: an argument would break the HTTP framing: a bug of the caller.
            trio.ClosedResourceError: the client is closed: a bug of the caller.
        """
        if not self._is_open:
            await trio.lowlevel.checkpoint_if_cancelled()  # a client may be cancelled with its caller
            raise trio.ClosedResourceError("this HTTP client is not open")
        self._requests += 1
        deadline = trio.current_time() + deadline_s
        may_repeat = may_repeat or method in _IDEMPOTENT
        call = _Call(method, target, headers, body, deadline, deadline_s, may_repeat)
        try:
            # Outside the inner `try`: a request that fails in its wait holds no turn that it could pass on.
            await self._take_turn(call)
            try:
                return await self._answer(call)
            finally:
                self._pass_turn()
        except MakerError:
            self._failures += 1
            raise

    async def _take_turn(self, call: _Call) -> None:
        if self._turns:
            self._turns -= 1
            return
        with trio.CancelScope(deadline=call.deadline):
            # A request that ends passes its turn on by unparking this task. trio ends the wait either by the
            # unparking or by the deadline, not by both: a request whose wait ends late holds no turn.
            await self._waiting.park()
            return
        raise self._late(call)

    def _pass_turn(self) -> None:
        if self._waiting:
            self._waiting.unpark()
        else:
            self._turns += 1

    async def _answer(self, call: _Call) -> Response:
        connection = await self._reusable() if self._idle else None
        if connection is not None:
            try:
                return await self._exchange(connection, call)
            except MakerError:
                if connection.framing.response_started or connection.is_overdue or not self._is_open:
                    raise
                if not call.may_repeat:
                    raise
                self._retries += 1
        return await self._exchange(await self._connect(call), call)

    async def _reusable(self) -> _Connection | None:
        """Take the most recently used idle connection that is still open, or None; close the dead ones."""
        oldest = trio.current_time() - HTTP_POOL_IDLE_S
        while self._idle and self._idle[0].idle_since < oldest:
            await trio.aclose_forcefully(self._idle.pop(0).stream)
        while self._idle:
            connection = self._idle.pop()  # before any checkpoint: no other task can take or close it as well
            if not connection.has_input():
                return connection
            await trio.aclose_forcefully(connection.stream)
        return None

    async def _connect(self, call: _Call) -> _Connection:
        call.stage = RequestStage.CONNECT
        self._dialled += 1
        with trio.CancelScope(deadline=call.deadline):
            try:
                stream = await self._dial(self._host, self._port, tls=self._tls)
            except OSError as error:
                raise self._fault(call, f"no connection: {dial_fault(error)}") from None
            return _Connection(stream, self._limits)
        raise self._late(call)

    async def _exchange(self, connection: _Connection, call: _Call) -> Response:
        """Send the request and read the answer by the deadline; then keep the connection idle, or drop it."""
        try:
            answer = await self._in_time(connection, call)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            await trio.aclose_forcefully(connection.stream)
            if head := self._head(connection):
                return head
            if connection.is_overdue:
                raise self._late(call) from None
            raise self._fault(call, f"the connection broke: {call.stage.value}") from None
        except MakerError:
            await trio.aclose_forcefully(connection.stream)
            if head := self._head(connection):
                return head
            raise
        except BaseException:
            await trio.aclose_forcefully(connection.stream)
            raise
        # No checkpoint from here to `append`: else `__aexit__` could end first and leave the connection open.
        if answer.keep_alive and self._is_open:
            connection.idle_since = now = trio.current_time()
            self._idle.append(connection)
            # `_watch` sleeps until `_wake_at`: bring forward its next look at idle connections.
            if self._wake_at > now + HTTP_POOL_LOOK_S:
                self._wake_at = self._nap.deadline = next_tick(HTTP_POOL_LOOK_S)
        else:
            await trio.aclose_forcefully(connection.stream)
        return answer

    def _head(self, connection: _Connection) -> Response | None:
        """Build a response of status and headers alone from an answer whose body could not be received.

        Returns:
            None if bodies are needed (`needs_body`), or if the header section is not complete.
        """
        head = None if self._needs_body else connection.framing.head
        return head and Response(head.status, head.headers, keep_alive=False)

    async def _converse(self, connection: _Connection, call: _Call) -> Response:
        stream, framing = connection.stream, connection.framing
        answer: Response | None = None
        data: bytes | bytearray = b""
        call.stage = RequestStage.SEND
        request = framing.send_request(call.method, call.target, self._host_field, call.headers, call.body)
        await stream.send_all(request)
        call.stage = RequestStage.WAIT
        try:
            while answer is None:
                data = await stream.receive_some(_READ_BYTES)
                if data:
                    answer = framing.receive_data(bytes(data))
                    call.stage = RequestStage.READ
                    if answer is None and framing.is_until_close:
                        answer = self._head(connection)
                else:
                    answer = framing.receive_eof()
        except MakerError as error:
            is_over_limit = isinstance(error, AnswerOverLimit)
            refused = error.detail if data else ""
            raise self._fault(call, error.detail, refused=refused, is_over_limit=is_over_limit) from None
        return answer

    # --- Deadlines: one watchdog for all, since a cancel scope costs more than parsing an answer ------

    async def _in_time(self, connection: _Connection, call: _Call) -> Response:
        stream = connection.stream
        if not self._is_open:  # closed meanwhile, and the watchdog is gone
            raise self._fault(call, "the client was closed")
        if not isinstance(stream, LeanStream):
            return await self._in_scope(connection, call)
        connection.deadline = call.deadline
        self._watched[connection] = stream
        if call.deadline < self._wake_at:
            self._wake_at = self._nap.deadline = call.deadline
        try:
            return await self._converse(connection, call)
        finally:
            del self._watched[connection]

    async def _in_scope(self, connection: _Connection, call: _Call) -> Response:
        with trio.CancelScope(deadline=call.deadline) as scope:
            self._scopes.add(scope)
            try:
                return await self._converse(connection, call)
            finally:
                self._scopes.discard(scope)
        if not self._is_open:
            raise self._fault(call, "the client was closed")
        connection.is_overdue = True
        raise self._late(call)

    async def _watch(self) -> None:
        """Run the task that closes connections idle too long or past their request's deadline."""
        while True:
            with trio.CancelScope(deadline=self._wake_at) as self._nap:
                await trio.sleep_forever()
            now = trio.current_time()
            self._wake_at = math.inf
            for connection, stream in self._watched.items():
                if connection.deadline > now:
                    self._wake_at = min(self._wake_at, connection.deadline)
                elif not connection.is_overdue:
                    connection.is_overdue = True
                    # The request's task fails in its wait, or in `recv` if it was already woken. `_exchange`
                    # treats both alike, and reads `is_overdue`, which is set before.
                    stream.close()
            ended = [connection for connection in self._idle if self._is_spent(connection, now)]
            for connection in ended:
                self._idle.remove(connection)
            if self._idle:
                self._wake_at = min(self._wake_at, next_tick(HTTP_POOL_LOOK_S))
            # A request may set an earlier `_wake_at` at the checkpoints below; the loop reads it after them.
            with trio.CancelScope(shield=True):  # or the first checkpoint would keep the rest open
                for connection in ended:
                    await trio.aclose_forcefully(connection.stream)

    def _is_spent(self, connection: _Connection, now: float) -> bool:
        return connection.idle_since + HTTP_POOL_IDLE_S <= now or connection.has_input()

    def _fault(
        self,
        call: _Call,
        text: str,
        *,
        is_late: bool = False,
        refused: str = "",
        is_over_limit: bool = False,
    ) -> HttpFailure:
        text = f"{self._host}:{self._port}: {text}"
        return HttpFailure(text, call.stage, is_late=is_late, refused=refused, is_over_limit=is_over_limit)

    def _late(self, call: _Call) -> HttpFailure:
        text = f"timed out after {call.deadline_s * 1_000:.0f} ms: {call.stage.value}"
        return self._fault(call, text, is_late=True)


def unsolicited_coding(answer: Response) -> str:
    """Content coding of an answer to a request that asked for none (`PLAIN`); empty for none."""
    for name, value in answer.headers:
        if name == b"content-encoding" and value.lower() != b"identity":
            return value.decode("latin-1")
    return ""
