"""Client side of one HTTP/1.1 connection, without I/O: one request in flight, whole answers out.

    IDLE --send_request--> AWAITING --answer complete--> IDLE
      any --anything unacceptable, the end of input, a last answer--> FAILED

Once the connection has failed, every later call raises the same MakerError.

An answer has a Content-Length, is chunked, or ends with the connection; 1xx are skipped; HEAD, 204 and 304
have no body. The client refuses with a MakerError what no server sends: two different lengths, another
coding, 101, unsolicited bytes, anything beyond the limits. The head goes to llhttp in one piece once it is
complete. A head that llhttp refuses, and one whose lines end in LF alone, are read by `fields_of_answer`.

Source: RFC 9112 2.2, 4, 5, 6, 7, 9.3; RFC 9110 15.2.
"""

import re
from collections.abc import Sequence

from httptools import HttpParserError, HttpResponseParser
from msgspec import Struct

from ...config.errors import AnswerOverLimit, BodyTooLarge, HttpFault, MakerError, TransitionError
from .chunked import ChunkedBody
from .events import Headers
from .fields import FieldSink, answer_end, check_count, fields_of_answer, has_bare_lf, render_fields
from .framing import CHUNKED, UNTIL_CLOSE, answer_length, persists
from .limits import Http1Limits
from .request_head import METHODS, is_host, is_target

_match_status_line = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9]{2})(?: [\t -~\x80-\xff]*+)?\r?\n").match
_STATUS_LINE_START = b"HTTP/1."
_INTERIM_MAX = 8


class Response(Struct, gc=False):
    """A complete HTTP response.

    Attributes:
        status: 200 to 599.
        headers: in order; names in lower case, values without the white space around them.
        keep_alive: whether the connection can serve another request: False if the response ends the
            connection, or if the server has sent bytes after the response.
        body: decoded; trailers are dropped.
    """

    status: int
    headers: Headers
    keep_alive: bool
    body: bytes = b""


class ClientConnection:
    """Client's HTTP protocol state of one connection: works on bytes, and uses neither socket nor clock.

    `send_request` renders a request, `receive_data` parses the response.

    Attributes:
        head: status and headers of the last answer, kept even if an error in the answer's body follows.
        response_started: whether a byte of the awaited answer has come. If the connection died while this was
            False, the request may be sent again on another connection, provided that this connection had
            served an earlier request.
    """

    __slots__ = (
        "_body",
        "_buffer",
        "_chunks",
        "_failure",
        "_in_flight",
        "_interim",
        "_limits",
        "_missing",
        "_response",
        "_scanned",
        "head",
        "response_started",
    )

    def __init__(self, limits: Http1Limits) -> None:
        self._limits = limits
        self.response_started = False
        self.head: Response | None = None
        self._failure = ""
        self._in_flight: bytes | None = None  # the request's method
        self._buffer = b""
        self._scanned = 0
        self._interim = 0
        self._response: Response | None = None  # the answer whose body is under way
        self._body = bytearray()
        self._missing = 0
        self._chunks: ChunkedBody | None = None

    def send_request(
        self,
        method: bytes,
        target: bytes,
        host: bytes,
        headers: Sequence[tuple[bytes, bytes]] = (),
        body: bytes = b"",
    ) -> bytes:
        """Render one request to bytes, which the caller sends; the connection then awaits the answer.

        Args:
            method: one of `METHODS`.
            target: path and query, percent-encoded.
            host: the Host header's value.
            headers: further headers, without Host, Content-Length and other headers of the framing.
            body: announced with its length unless it is empty and the method is GET, HEAD or OPTIONS.

        Raises:
            ValueError: an argument would break the framing: our bug.
            TransitionError: the previous answer is not complete: our bug.
            MakerError: the connection is not usable any more.
        """
        self._check_usable()
        if self._in_flight is not None:
            raise TransitionError("a second request before the first is answered")
        if method not in METHODS or not is_target(target) or not is_host(host):
            raise ValueError(f"not a method, target and host: {method!r} {target!r} {host!r}")
        # All that may raise comes before the first change: after a ValueError the connection is still idle.
        fields = render_fields(headers)
        self._in_flight = method
        self._interim = 0
        self.response_started = False
        self.head = None
        if not body and method in (b"GET", b"HEAD", b"OPTIONS"):
            return b"%b %b HTTP/1.1\r\nhost: %b\r\n%b\r\n" % (method, target, host, fields)
        return b"%b %b HTTP/1.1\r\nhost: %b\r\n%bcontent-length: %d\r\n\r\n%b" % (
            method,
            target,
            host,
            fields,
            len(body),
            body,
        )

    def receive_data(self, data: bytes) -> Response | None:
        """Parse received bytes; return the answer once all of the answer has come, else None.

        If bytes follow a complete answer, the answer is valid, its `keep_alive` is False, and every later
        call raises MakerError.

        Raises:
            MakerError: the bytes are no acceptable answer, no request awaits an answer, or the connection is
                not usable any more.
        """
        self._check_usable()
        if not data:
            return None
        if self._in_flight is None:
            raise self._fail("unsolicited bytes")
        self.response_started = True
        self._buffer = self._buffer + data if self._buffer else data
        try:
            response = self._read_head() if self._response is None else self._read_body(self._response)
        except HttpFault as fault:
            kind = AnswerOverLimit if isinstance(fault, BodyTooLarge) else MakerError
            raise self._fail(_reason(fault), kind) from None
        if response is None:
            return None
        self._in_flight = self._response = None
        # `_fail` returns an error, which is not raised here: this answer is good, and later calls raise.
        if self._buffer:
            response.keep_alive = False
            self._fail("unsolicited bytes behind an answer")
        elif not response.keep_alive:
            self._fail("closed by an answer")
        return response

    def receive_eof(self) -> Response | None:
        """Handle the end of input: the server sends no more bytes.

        Returns:
            The answer if its body ends with the connection; None if no request awaits an answer.

        Raises:
            MakerError: a request awaits its answer (`response_started` is True if a part of the answer has
                come), or the connection is not usable any more.
        """
        self._check_usable()
        response, awaited = self._response, self._in_flight is not None
        if response is not None and self.is_until_close:
            response.body = bytes(self._body)
            self._fail("closed by an answer")
            return response
        error = self._fail("closed by the other side")
        if awaited:
            raise error
        return None

    @property
    def is_until_close(self) -> bool:
        """Whether an answer is under way whose body ends with the connection."""
        return self._response is not None and self._missing == UNTIL_CLOSE

    def _check_usable(self) -> None:
        if self._failure:
            raise MakerError(self._failure)

    def _fail(self, reason: str, kind: type[MakerError] = MakerError) -> MakerError:
        """Make the connection unusable and return the error to raise, of class `kind`."""
        self._failure = f"connection: {reason}"
        self._buffer = b""
        self._body = bytearray()
        self._chunks = None
        return kind(self._failure)

    def _read_head(self) -> Response | None:
        while True:
            buffer = self._buffer
            end = answer_end(buffer, self._scanned, self._limits.answer_head_bytes_max)
            if not end:
                # Refused at the first wrong byte: a server of another protocol may never send an empty line.
                if not buffer.startswith(_STATUS_LINE_START[: len(buffer)]):
                    raise HttpFault("the answer does not begin with a status line")
                self._scanned = len(buffer)
                return None
            self._scanned = 0
            line = _match_status_line(buffer)
            if line is None:
                raise HttpFault("no status line of HTTP/1.0 or HTTP/1.1")
            http_minor, status = int(line[1]), int(line[2])
            if status >= 200:
                break
            self._skip_interim(status, end)

        headers = self._parse_fields(buffer[:end])
        # Set before the framing is checked: `head` serves callers even if the rest of the answer is refused.
        self.head = response = Response(status, headers, keep_alive=False)
        length, is_sure = self._body_length(headers, status, http_minor)
        options = b",".join([value for name, value in headers if name == b"connection"]).lower()
        response.keep_alive = is_sure and persists(options, http_minor)
        self._response = response
        self._buffer = buffer[end:]
        if length == CHUNKED:
            self._chunks = ChunkedBody(self._limits, is_answer=True)
            self._buffer = b"\r\n" + self._buffer  # the first size line includes the end of the head
        self._missing = length
        self._body = bytearray()
        return self._read_body(response)

    def _skip_interim(self, status: int, end: int) -> None:
        """Drop an interim (1xx) response, which ends at offset `end` of the buffer.

        Raises:
            HttpFault: status 101, or too many interim responses to one request.
        """
        self._interim += 1
        if status == 101 or self._interim > _INTERIM_MAX:
            raise HttpFault("an upgrade or too many interim answers")
        self._parse_fields(self._buffer[:end])
        self._buffer = self._buffer[end:]

    def _parse_fields(self, head: bytes) -> Headers:
        fields = fields_of_answer(head) if has_bare_lf(head) else _usual_fields(head)
        check_count(len(fields), self._limits.answer_fields_max)
        return fields

    def _body_length(self, headers: Headers, status: int, http_minor: int) -> tuple[int, bool]:
        if self._in_flight == b"HEAD" or status in (204, 304):
            return 0, True
        return answer_length(headers, http_minor, self._limits.body_bytes_max)

    def _read_body(self, response: Response) -> Response | None:
        chunks = self._chunks
        if chunks:
            taken = chunks.read(self._buffer, 0)
            while chunks.is_due:
                taken = chunks.read(self._buffer, taken)
            self._buffer = self._buffer[taken:]
            if not chunks.complete:
                return None
            self._chunks = None
            response.body = bytes(chunks.data)
            return response
        if self._missing == UNTIL_CLOSE:
            self._body += self._buffer
            self._buffer = b""
            if len(self._body) > self._limits.body_bytes_max:
                raise BodyTooLarge(expected=f"at most {self._limits.body_bytes_max} bytes")
            return None
        if not self._body and len(self._buffer) >= self._missing:
            response.body = self._buffer[: self._missing]
            self._buffer = self._buffer[self._missing :]
            return response
        piece = self._buffer[: self._missing]
        self._buffer = self._buffer[len(piece) :]
        self._body += piece
        self._missing -= len(piece)
        if self._missing:
            return None
        response.body = bytes(self._body)
        return response


def _usual_fields(head: bytes) -> Headers:
    sink = FieldSink()
    try:
        # A parser for each answer: llhttp has no way to learn that HEAD has no body.
        HttpResponseParser(sink).feed_data(head)
    except HttpParserError:
        return fields_of_answer(head)
    return sink.fields


def _reason(fault: HttpFault) -> str:
    """Format the reason for which a server's answer is refused.

    The text leaves out the fault's own message, since that message speaks of requests.
    """
    row = "malformed" if type(fault) is HttpFault else fault.error_type
    return f"answer refused, {row}{fault.detail.removeprefix(fault.message)}"
