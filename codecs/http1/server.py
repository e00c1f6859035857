"""Server side of one HTTP/1.1 connection, without I/O: bytes in, whole requests out, in order.

    IDLE --bytes--> HEADERS --head complete--> BODY --body complete--> IDLE
      any --a fault, a last request, the end of input--> CLOSED          IDLE/HEADERS --handshake--> UPGRADED

The driver passes in received bytes and takes events until none is left. A request is parsed when the driver
asks for it, so that a burst of pipelined requests costs nothing before its turn; a body in tiny chunks is
read a part at a time (`is_due`). Events depend on the bytes alone, never on their splitting.

Two parsers must agree: `request_head` and the bounds find a message's start and end; llhttp parses each head,
in one piece. A body is sliced here; llhttp gets a body with a length only to stay in step. llhttp cannot
follow a chunked body (see `chunked`), and after an upgrade offer it assumes no body: the next request then
gets a new parser, so that an ignored offer (h2c) cannot shift the framing.

Source: RFC 9112; RFC 9110 7.8 (Upgrade), 10.1.1 (Expect).
"""

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from ...config.errors import BodyTooLarge, HttpFault, ServiceUnavailable, TargetTooLong, TransitionError
from .chunked import ChunkedBody
from .events import Closed, Event, Headers, Phase, Request, RequestFault, Upgrade
from .fields import FieldSink, bare_line_feed, check_count, check_unfinished
from .framing import CHUNKED, joined
from .limits import Bodies, Http1Limits
from .request_head import (
    match_request_line,
    parser_fault,
    request_framing,
    request_line_bytes_max,
    request_line_fault,
)

# Members by name, because the hot path reads them and access through the class is slow.
IDLE, HEADERS, BODY, CLOSED, UPGRADED = Phase
_FIELD_BYTES_MIN = len("a:\r\n")
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class ServerConnection:
    """Server's HTTP protocol state of one connection: parses requests from bytes, without sockets and clock.

    Attributes:
        phase: the input that the connection waits for, valid once `next_event` has returned None.
        requests: number of requests so far whose head (request line and header section) was accepted.
        is_due: whether `next_event` returned None only to let other tasks run; then call it again later.

    Args:
        limits: bounds on the input of this connection.
        bodies: counter of body bytes over all connections of the server; `release` subtracts the bytes of
            this connection.
    """

    __slots__ = (
        "_bodies",
        "_body",
        "_body_bytes_max",
        "_buffer",
        "_chunks",
        "_continue_due",
        "_empty_lines",
        "_eof",
        "_few_fields_bytes",
        "_in_step",
        "_limits",
        "_line_bytes_max",
        "_missing",
        "_parser",
        "_position",
        "_request",
        "_scanned",
        "_sink",
        "_taken",
        "is_due",
        "phase",
        "requests",
    )

    def __init__(self, limits: Http1Limits, bodies: Bodies | None = None) -> None:
        self._limits = limits
        self._bodies = bodies
        self._body_bytes_max = bodies.one_bytes_min if bodies else limits.body_bytes_max
        self._taken = 0  # bytes of this connection that `bodies` counts
        self._line_bytes_max = request_line_bytes_max(limits.target_bytes_max)
        self._few_fields_bytes = limits.header_count_max * _FIELD_BYTES_MIN
        self.phase: Phase = IDLE
        self.requests = 0
        self._buffer = b""
        self._position = 0  # offset of the first unconsumed byte of the buffer
        self._scanned = 0  # bytes behind `_position` that hold no lone LF
        self._empty_lines = 0
        self._eof = False
        self._continue_due = False
        self._request: Request | None = None  # the request whose body is under way
        self._body = bytearray()
        self._missing = 0  # bytes of a body with a length
        self._chunks: ChunkedBody | None = None
        self.is_due = False  # the chunks at hand are not all read
        self._sink = FieldSink()
        self._renew_parser()

    @property
    def unfinished(self) -> Request | None:
        """Request whose body is not complete yet, or None."""
        return self._request

    def release(self) -> None:
        """Subtract this connection's request-body bytes from the server's count (`Bodies`).

        The driver calls this method when the connection ends.
        """
        if self._bodies:
            self._bodies.bytes -= self._taken
            self._taken = 0

    def receive_data(self, data: bytes) -> None:
        """Buffer received bytes. Call `next_event` until it returns None before reading more.

        Raises:
            TransitionError: after an Upgrade, since the bytes belong to another protocol.
        """
        if self._position == len(self._buffer):
            self._buffer = data
        else:
            self._buffer = self._buffer[self._position :] + data
        self._position = 0
        self._continue_due = False
        if self.phase is CLOSED:
            self._buffer = b""
        elif self.phase is UPGRADED:
            raise TransitionError("an upgraded connection was given HTTP bytes")

    def receive_eof(self) -> None:
        """Note that the client sends no more bytes; `next_event` then ends with `Closed`."""
        self._eof = True

    def next_event(self) -> Event | None:
        """Return the next event: a request, an upgrade, a fault, or `Closed` at the end of input.

        The result is None if the next event needs more bytes, if other tasks should run first (`is_due`), and
        after the last event. A request with `keep_alive` False is a last event: not even `Closed` follows.
        The caller has to answer a request before the next call, since the call subtracts that request's body
        from the server's count (`Bodies`).
        """
        if self._taken and self._request is None:
            self.release()
        try:
            event: Event | None
            if self._request is not None:
                event = self._read_body(self._request)
            elif self._position == len(self._buffer):
                event = None
            else:
                event = self._read_head()
        except (HttpFault, ServiceUnavailable) as fault:
            request = self._request  # taken first: `_close` forgets it, and the event has to name it
            self._close()
            self.release()
            # Without its traceback, whose frames hold the event: a cycle that keeps the connection's state.
            return RequestFault(fault.with_traceback(None), request)
        # While chunks at hand are unread (`is_due`), the body may still turn out whole: no unclean end yet.
        if event is None and self._eof and not self.is_due and self.phase not in (CLOSED, UPGRADED):
            clean = self.phase is IDLE
            self._close()
            return Closed(clean)
        return event

    def take_continue(self) -> bytes:
        """Return the response `100 Continue` if the client waits for this response before it sends a body.

        Otherwise the result is empty, as in later calls for the same request and after further bytes have
        arrived. The caller may send the response only after `next_event` has returned None and every earlier
        request has been answered.
        """
        if not self._continue_due:
            return b""
        self._continue_due = False
        return CONTINUE

    def _renew_parser(self) -> None:
        self._parser = HttpRequestParser(self._sink)
        self._in_step = True
        # llhttp heeds `Proxy-Connection: close` and then refuses later bytes; persistence is decided here.
        self._parser.set_dangerous_leniencies(lenient_keep_alive=True)

    def _close(self) -> None:
        self.phase = CLOSED
        self._buffer = b""
        self._position = 0
        self._request = None
        self.is_due = False

    def _read_head(self) -> Event | None:
        buffer, start = self._buffer, self._position
        line = match_request_line(buffer, start, start + self._line_bytes_max)
        if line is None:
            return self._await_request_line()
        method, target, path, query, minor = line.groups()
        limits = self._limits
        # `_line_bytes_max` has room for the longest method, so a short method can have too long a target.
        if len(target) > limits.target_bytes_max:
            raise TargetTooLong(expected=f"at most {limits.target_bytes_max} bytes")
        if path is None:
            if method != b"OPTIONS":
                raise HttpFault(field="request target", expected="* with OPTIONS only", got=method)
            path = target
        after_line = line.end()
        # Searched from `after_line - 2`: without fields, the empty line follows the request line's own CRLF.
        end = buffer.find(b"\r\n\r\n", after_line - 2, after_line + limits.header_bytes_max) + 4
        if end < 4:  # -1 for "not found", plus 4
            self._await_fields(after_line)
            return None
        self._position = end
        self._scanned = self._empty_lines = 0

        http_minor = 1 if minor == b"1" else 0
        if end - after_line > self._few_fields_bytes:  # counted ahead of llhttp, which makes a call for each
            count = buffer.count(b"\r\n", after_line, end) - 1
            if count > limits.header_count_max and bare_line_feed(buffer, after_line, end):
                raise HttpFault("a line ends in LF without CR")  # the same error as for an incomplete section
            check_count(count, limits.header_count_max)
        # llhttp has the whole head from here on: no line below may return to wait for more of it.
        headers = self._parse_fields(buffer[start:end], http_minor)
        fields = joined(headers)
        request = Request(method, target, path, query, http_minor, headers, False, fields)  # noqa: FBT003
        # Set before `request_framing` may raise: `next_event` puts this request into the RequestFault.
        self._request = request
        length, keep_alive, expects_continue, websocket = request_framing(
            method, http_minor, fields, limits.body_bytes_max
        )
        self.requests += 1
        request.keep_alive = keep_alive and self.requests < limits.requests_per_connection_max
        if websocket:
            return self._upgrade(request)
        if length > self._body_bytes_max and length > (bytes_max := self._bytes_max(request)):
            raise BodyTooLarge(expected=f"at most {bytes_max} bytes", got=length)
        # Complete with its head: `Bodies` does not count such a body. CHUNKED is below 0, and goes on below.
        if 0 <= length <= len(buffer) - end:
            self._position = end + length
            return self._finish(request, buffer[end : end + length])
        # Bytes behind the head mean that the client did not wait for 100 Continue: none is sent then.
        return self._start_body(request, length, continue_due=expects_continue and end == len(buffer))

    def _await_request_line(self) -> Event | None:
        """Handle a buffer without a request line: skip empty lines, refuse bytes that can begin none."""
        buffer, position = self._buffer, self._position
        while buffer.startswith(b"\r\n", position):
            position += 2
            self._empty_lines += 1
            if self._empty_lines > self._limits.empty_lines_max:
                raise HttpFault("too many empty lines ahead of the request line")
        if position != self._position:
            self._position = position
            return self._read_head() if position < len(buffer) else None
        if buffer[position:] == b"\r":
            return None
        fault = request_line_fault(buffer, position, position + self._line_bytes_max)
        if fault:
            raise fault
        self.phase = HEADERS
        return None

    def _await_fields(self, after_line: int) -> None:
        scanned = self._position + self._scanned
        check_unfinished(self._buffer, after_line, scanned, self._limits.header_bytes_max)
        self._scanned = len(self._buffer) - self._position
        self.phase = HEADERS

    def _parse_fields(self, head: bytes, http_minor: int) -> Headers:
        sink = self._sink
        headers: Headers = []
        sink.fields = headers
        sink.messages = 0
        try:
            self._parser.feed_data(head)
        except HttpParserUpgrade as offer:
            self._in_step = False
            if offer.args[0] != len(head):
                raise HttpFault("the parsers disagree about the end of the head") from None
        except HttpParserError as error:
            raise parser_fault(str(error), head, http_minor) from None
        return headers

    def _start_body(self, request: Request, length: int, *, continue_due: bool) -> Event | None:
        if length == CHUNKED:
            self._chunks = ChunkedBody(self._limits, self._bytes_max(request))
            self._position -= 2  # the first size line includes the CRLF that ends the head
            self._in_step = False
        self._missing = length
        self._body = bytearray()
        self._continue_due = continue_due
        self.phase = BODY
        return self._read_body(request)

    def _bytes_max(self, request: Request) -> int:
        """Largest body, in bytes, that `request` may have."""
        bytes_max = self._limits.body_bytes_max
        return min(self._bodies.one_bytes_max(request), bytes_max) if self._bodies else bytes_max

    def _take(self, size: int) -> None:
        if self._bodies:
            self._bodies.take(size)
            self._taken += size

    def _read_body(self, request: Request) -> Event | None:
        buffer, position, chunks = self._buffer, self._position, self._chunks
        if chunks:
            before = len(chunks.data)
            self._position = chunks.read(buffer, position)
            self.is_due = chunks.is_due
            self._take(len(chunks.data) - before)
            if not chunks.complete:
                return None
            self._chunks = None
            return self._finish(request, bytes(chunks.data))
        piece = buffer[position : position + self._missing]
        self._position = position + len(piece)
        self._take(len(piece))
        self._body += piece
        self._missing -= len(piece)
        return None if self._missing else self._finish(request, bytes(self._body))

    def _finish(self, request: Request, body: bytes) -> Request:
        if not self._in_step:
            self._renew_parser()
        else:
            if body:
                self._step_over(body)
            if self._sink.messages != 1:
                raise HttpFault("the parsers disagree about the end of the request")
        request.body = body
        self._request = None
        self.phase = IDLE
        if not request.keep_alive:
            self._close()
        return request

    def _step_over(self, body: bytes) -> None:
        try:
            self._parser.feed_data(body)
        except HttpParserError as error:
            raise HttpFault(str(error)) from None

    def _upgrade(self, request: Request) -> Upgrade:
        trailing = self._buffer[self._position :]
        self._close()
        self.phase = UPGRADED
        return Upgrade(request, trailing)
