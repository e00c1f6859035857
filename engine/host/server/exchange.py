"""Convert requests to the bytes of their answers, for both drivers of connections. Does no I/O.

Every answer, a refusal's too, carries `x-request-id` and `date`. A handler's CambistError becomes its
route group's error body; anything else is logged once with its traceback and answered 500.
"""

import time
from collections.abc import Callable
from email.utils import formatdate
from secrets import token_hex

import structlog
from msgspec import Struct

from ....codecs.http1 import Bodies, Http1Limits, Request, encode_response, encode_stream_head
from ....config.errors import CambistError, HttpFault, InternalError, RequestError
from .access_log import AccessLog
from .pauses import Pauses
from .routing import HttpCall, PlainHandler, Reply, RouteGroup, Router, StreamReply

_CLIENT_ERRORS, _SERVER_ERRORS = 400, 500  # first status of each class

_log = structlog.get_logger("cambist.server")


class Counters(Struct):
    """Counts of events in the HTTP server since its start; only `connections` is a current number.

    Attributes:
        connections: connections open at this moment.
        accepted: accepted connections.
        refused: connections refused because too many were open, in total or from the same address.
        refused_by_address: connections refused because too many from the same address were open.
        promoted: connections that moved from the reactor (one task for many connections) to their own tasks.
        requests: answered requests, of any status.
        faults: error answers to invalid or too slow requests, and to connections over a limit.
        errors: answers with status 500.
        refusals, failures: answers with a status of 400 to 499, and of 500 to 599.
        cut_off: connections dropped because the client took too long to read its answers.
        broken: connections that ended in a transport error, such as a reset.
        log_dropped: access log entries that were lost.
    """

    connections: int = 0
    accepted: int = 0
    refused: int = 0
    refused_by_address: int = 0
    promoted: int = 0
    requests: int = 0
    faults: int = 0
    errors: int = 0
    refusals: int = 0
    failures: int = 0
    cut_off: int = 0
    broken: int = 0
    log_dropped: int = 0


class Responder:
    """Answers requests: calls their handlers and encodes the replies.

    Args:
        router: finds the handler of a request.
        limits: limits that the HTTP parser of each connection enforces.
        wall_ms: wall clock, Unix milliseconds.
        access_log: log that gets an entry for each answer; None for no access log.
        bodies_bytes_max: most bytes of request bodies held at a time, of all connections together.
        pauses: pauses of clients that ask beyond their rate.

    Attributes:
        bodies: memory budget of the request bodies of all connections.
        pauses: pauses of clients that ask beyond their rate.
    """

    def __init__(
        self,
        router: Router,
        limits: Http1Limits,
        wall_ms: Callable[[], int],
        access_log: AccessLog | None,
        bodies_bytes_max: int,
        pauses: Pauses,
    ) -> None:
        self.router = router
        self.limits = limits
        least = router.body_bytes_min(limits.body_bytes_max)
        self.bodies = Bodies(bodies_bytes_max, self._body_bytes_max, least)
        self.counters = Counters()
        self.pauses = pauses
        self.wall_ms = wall_ms
        self._log_entry = access_log.add if access_log else None
        self._id_start = f"{token_hex(4)}-"
        self._ids = 0
        self._lines_start = ""
        self._second_ms = -1_000

    def _body_bytes_max(self, request: Request) -> int:
        bytes_max = self.router.surface(request).body_bytes_max
        return self.limits.body_bytes_max if bytes_max is None else bytes_max

    def call(self, request: Request, client: str, parameters: tuple[str, ...], now_ms: int) -> HttpCall:
        """Build the `HttpCall` that a route's handler receives for a request."""
        self._ids += 1
        return HttpCall(request, client, f"{self._id_start}{self._ids:x}", now_ms, parameters)

    def run_plain_handler(self, surface: RouteGroup, handler: PlainHandler, call: HttpCall) -> Reply:
        """Run the handler of a plain (never awaiting) route; an error becomes an error reply."""
        try:
            return handler(call)
        except Exception as error:  # noqa: BLE001 - answered, and logged if it is our fault
            return self.refusal(surface, error, call.request_id)

    def refusal(self, surface: RouteGroup, error: Exception, request_id: str) -> Reply:
        """Make the reply to an error of a route's handler, in the route group's shape of error bodies.

        A fault of the server, rather than of the client, is logged.
        """
        known = error if isinstance(error, CambistError) else InternalError()
        reply = surface.refusal(known, request_id)
        if reply.status == InternalError.status:
            self.counters.errors += 1
            _log.error("a handler failed", request_id=request_id, exc_info=error)
            return reply
        if not isinstance(error, RequestError) and reply.status > InternalError.status:
            _log.warning("a handler found a service unavailable", request_id=request_id, reason=str(error))
        _release(error)
        return reply

    def encode(
        self, surface: RouteGroup, call: HttpCall, reply: Reply, started: float, *, keep_alive: bool
    ) -> bytes:
        """Encode a reply to the bytes to send; count the reply, and add an entry to the access log.

        Args:
            started: `time.perf_counter()` when the request was complete.
            keep_alive: whether the connection stays open.
        """
        request = call.request
        head = request.method == b"HEAD"
        lines = self._own_lines(call)
        try:
            answer = encode_response(
                reply.status,
                reply.body,
                content_type=reply.content_type,
                extra_headers=reply.headers + surface.cors_headers(request)
                if surface.cors
                else reply.headers,
                keep_alive=keep_alive,
                head=head,
                lines=lines,
            )
        except Exception as error:  # noqa: BLE001 - a status or header that breaks the framing; logged
            # `reply` is replaced for the access log too: the client gets the refusal.
            reply = self.refusal(surface, error, call.request_id)
            answer = encode_response(
                reply.status,
                reply.body,
                extra_headers=reply.headers + (surface.cors_headers(request) if surface.cors else ()),
                keep_alive=keep_alive,
                head=head,
                lines=lines,
            )
        self.counters.requests += 1
        if reply.status >= _CLIENT_ERRORS:
            self._count_error(reply.status)
        if self._log_entry:
            self.log(call, reply.status, 0 if head else len(reply.body), started)
        return answer

    def encode_stream(
        self, surface: RouteGroup, call: HttpCall, reply: StreamReply, *, keep_alive: bool
    ) -> bytes:
        """Encode the status line and headers of a streamed reply, and count the reply.

        The access log gets its entry later, from the code that sends the pieces.
        """
        self.counters.requests += 1
        headers = reply.headers
        if surface.cors:
            headers += surface.cors_headers(call.request)
        return encode_stream_head(
            reply.status,
            content_type=reply.content_type,
            extra_headers=headers,
            keep_alive=keep_alive,
            chunked=call.request.http_minor == 1,
            lines=self._own_lines(call),
        )

    def encode_fault(
        self, error: HttpFault | RequestError, client: str, request: Request | None = None
    ) -> bytes:
        """Encode the last answer of a connection that sent no valid request, or exceeds a limit.

        Args:
            request: the refused request, whose path selects the route group that shapes the error body;
                None if no request could be read.
        """
        self.counters.faults += 1
        surface = self.router.surface(request) if request else self.router.default
        request = request or _NO_REQUEST
        call = self.call(request, client, (), self.wall_ms())
        reply = surface.refusal(error, call.request_id)
        self._count_error(reply.status)
        head = request.method == b"HEAD"
        if self._log_entry:
            self.log(call, reply.status, 0 if head else len(reply.body), time.perf_counter())
        return encode_response(
            reply.status,
            reply.body,
            extra_headers=reply.headers + (surface.cors_headers(request) if surface.cors else ()),
            keep_alive=False,
            head=head,
            lines=self._own_lines(call),
        )

    def log(self, call: HttpCall, status: int, body_bytes: int, started: float) -> None:
        """Add an answer to the access log, if the server has an access log.

        Args:
            started: `time.perf_counter()` when the request was complete.
        """
        if self._log_entry:
            request = call.request
            self._log_entry(
                (
                    call.now_ms,
                    call.client,
                    request.method,
                    request.target,
                    status,
                    body_bytes,
                    time.perf_counter() - started,
                    call.request_id,
                )
            )

    def _count_error(self, status: int) -> None:
        """Count an answer with a status of 400 to 599."""
        if status < _SERVER_ERRORS:
            self.counters.refusals += 1
        else:
            self.counters.failures += 1

    def _own_lines(self, call: HttpCall) -> bytes:
        """Header lines of every answer: `x-request-id`, and `date`, which is rendered once a second."""
        if not self._second_ms <= call.now_ms < self._second_ms + 1_000:
            second = call.now_ms // 1_000
            self._second_ms = second * 1_000
            self._lines_start = f"date: {formatdate(second, usegmt=True)}\r\nx-request-id: "
        return f"{self._lines_start}{call.request_id}\r\n".encode()


def _release(error: BaseException) -> None:
    """Take the tracebacks off an error that has been answered, and off those that led to it.

    A function that names an error before it raises it (`error = ...; raise error`) makes a cycle: the error
    has a traceback, the traceback a frame, and the frame the error. Without tracebacks all of them are freed
    here; otherwise a refusal leaves some twenty objects to the garbage collector, whose passes hold up
    every connection.
    """
    errors = [error]
    for found in errors:
        found.__traceback__ = None
        more = found.exceptions if isinstance(found, BaseExceptionGroup) else ()
        before = found.__cause__, found.__context__
        errors += [other for other in (*more, *before) if other is not None and other not in errors]


_NO_REQUEST = Request(
    method=b"-", target=b"-", path=b"-", query=None, http_minor=1, headers=[], keep_alive=False, fields={}
)
