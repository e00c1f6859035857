"""The server's side of a connection: its events, and the bytes that it writes back."""

from collections.abc import Iterable

import pytest
from httptools import HttpParserError, HttpParserUpgrade

from cambist.codecs.http1 import (
    CONTINUE,
    LAST_CHUNK,
    Closed,
    Event,
    Http1Limits,
    Phase,
    Request,
    RequestFault,
    ServerConnection,
    Upgrade,
    encode_chunk,
    encode_response,
    encode_stream_head,
)
from cambist.codecs.http1 import server as server_module
from cambist.codecs.http1.fields import FieldSink
from cambist.config.errors import HttpFault, TransitionError

LIMITS = Http1Limits()
SMALL = Http1Limits(
    target_bytes_max=100,
    header_bytes_max=200,
    header_count_max=5,
    body_bytes_max=10,
    chunk_count_max=3,
    requests_per_connection_max=2,
)
HANDSHAKE = (
    b"GET /ws HTTP/1.1\r\nHost: a\r\nUpgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


def drain(connection: ServerConnection, data: bytes = b"") -> list[Event]:
    connection.receive_data(data)
    events = []
    while (event := connection.next_event()) is not None:
        events.append(event)
    return events


def requests_of(*pieces: bytes, limits: Http1Limits = LIMITS) -> list[Request]:
    connection = ServerConnection(limits)
    requests = []
    for piece in pieces:
        for event in drain(connection, piece):
            assert isinstance(event, Request), event
            requests.append(event)
    return requests


def request_of(*pieces: bytes) -> Request:
    (request,) = requests_of(*pieces)
    return request


def fault_of(data: bytes, limits: Http1Limits = LIMITS) -> HttpFault:
    connection = ServerConnection(limits)
    event = drain(connection, data)[-1]
    assert isinstance(event, RequestFault), event
    assert connection.phase is Phase.CLOSED
    assert drain(connection, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n") == []
    assert isinstance(event.error, HttpFault)
    return event.error


def post(*lines: bytes, body: bytes = b"", version: bytes = b"1.1") -> bytes:
    return b"\r\n".join((b"POST /firm HTTP/%b" % version, b"Host: a", *lines, b"", b"")) + body


def chunked(*chunks: bytes, trailers: bytes = b"") -> bytes:
    coded = b"".join(encode_chunk(chunk) for chunk in chunks)
    return post(b"Transfer-Encoding: chunked", body=coded + b"0\r\n" + trailers + b"\r\n")


def test_a_request_is_given_whole() -> None:
    request = request_of(
        b"POST /firm?chain=1&x=%20 HTTP/1.1\r\nHost: maker.example:8443\r\nX-Auth-Key: \t k 1 \t\r\n"
        b"X-Empty:\r\nX-Blank:  \r\nX-Name: \xe9\r\nContent-Length: 7\r\n\r\n{\r\n\r\n\x00}"
    )
    assert request == Request(
        method=b"POST",
        target=b"/firm?chain=1&x=%20",
        path=b"/firm",
        query=b"chain=1&x=%20",
        http_minor=1,
        headers=[
            (b"host", b"maker.example:8443"),
            (b"x-auth-key", b"k 1"),
            (b"x-empty", b""),
            (b"x-blank", b""),
            (b"x-name", b"\xe9"),
            (b"content-length", b"7"),
        ],
        keep_alive=True,
        fields={
            b"host": b"maker.example:8443",
            b"x-auth-key": b"k 1",
            b"x-empty": b"",
            b"x-blank": b"",
            b"x-name": b"\xe9",
            b"content-length": b"7",
        },
        body=b"{\r\n\r\n\x00}",
    )


@pytest.mark.parametrize("method", [b"GET", b"HEAD", b"POST", b"OPTIONS", b"PUT", b"PATCH", b"DELETE"])
def test_the_known_methods_parse(method: bytes) -> None:
    assert request_of(method + b" / HTTP/1.1\r\nHost: a\r\n\r\n").method == method


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        (b"/", b"/", None),
        (b"/?", b"/", b""),
        (b"/a?b?c=/", b"/a", b"b?c=/"),
        (b"//a/..", b"//a/..", None),
        (b"/%23%00", b"/%23%00", None),
        (b"/!\"$&'()*+,;=:@[]{}|\\^`~", b"/!\"$&'()*+,;=:@[]{}|\\^`~", None),
    ],
)
def test_the_target_is_split_at_its_first_question_mark(target: bytes, path: bytes, query: bytes) -> None:
    request = request_of(b"GET %b HTTP/1.1\r\nHost: a\r\n\r\n" % target)
    assert (request.target, request.path, request.query) == (target, path, query)


def test_options_may_ask_about_the_server_itself() -> None:
    request = request_of(b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n")
    assert (request.target, request.path, request.query) == (b"*", b"*", None)


@pytest.mark.parametrize(
    "host",
    [b"a", b"a:80", b"a:", b"127.0.0.1:8080", b"[::1]:8080", b"[2001:db8::1]", b"xn--bcher-kva.example"],
)
def test_hosts_that_are_taken(host: bytes) -> None:
    assert request_of(b"GET / HTTP/1.1\r\nHost: %b\r\n\r\n" % host).headers == [(b"host", host)]


@pytest.mark.parametrize(
    ("version", "connection", "keep_alive"),
    [
        (b"1.1", b"", True),
        (b"1.1", b"Connection:\r\n", True),
        (b"1.1", b"Connection: keep-alive\r\n", True),
        (b"1.1", b"Connection: close\r\n", False),
        (b"1.1", b"Connection: foo , CLOSE\r\n", False),
        (b"1.1", b"Connection: keep-alive\r\nConnection: close\r\n", False),
        (b"1.1", b"Connection: closed\r\n", True),
        (b"1.1", b"Proxy-Connection: close\r\n", True),
        (b"1.0", b"", False),
        (b"1.0", b"Connection: Keep-Alive\r\n", True),
        (b"1.0", b"Connection: keep-alive, close\r\n", False),
        (b"1.0", b"Proxy-Connection: keep-alive\r\n", False),
    ],
)
def test_persistence(version: bytes, connection: bytes, keep_alive: bool) -> None:
    one = b"GET /1 HTTP/%b\r\nHost: a\r\n%b\r\n" % (version, connection)
    two = b"GET /2 HTTP/1.1\r\nHost: a\r\n\r\n"
    requests = requests_of(one + two)
    assert requests[0].keep_alive is keep_alive
    assert [request.path for request in requests] == ([b"/1", b"/2"] if keep_alive else [b"/1"])


def test_http_1_0_needs_no_host() -> None:
    assert request_of(b"GET / HTTP/1.0\r\n\r\n").http_minor == 0


def test_pipelined_requests_come_in_order_each_with_its_body() -> None:
    data = (
        post(b"Content-Length: 3", body=b"one")
        + b"\r\n"
        + chunked(b"t", b"wo")
        + b"GET /3 HTTP/1.1\r\nHost: a\r\n\r\n"
        + post(b"Content-Length: 4", body=b"four")
    )
    assert [request.body for request in requests_of(data)] == [b"one", b"two", b"", b"four"]


def test_a_pipelined_request_is_not_parsed_before_its_turn() -> None:
    connection = ServerConnection(LIMITS)
    connection.receive_data(b"GET / HTTP/1.1\r\nHost: a\r\n\r\nrubbish\r\n")
    assert isinstance(connection.next_event(), Request)
    assert isinstance(connection.next_event(), RequestFault)


@pytest.mark.parametrize("pieces", [1, 2, 5])
def test_a_chunked_body_is_joined_and_its_trailers_dropped(pieces: int) -> None:
    data = chunked(b"{}", b"\r\n0\r\n\r\n", b"x" * 300, trailers=b"X-Sum: 1\r\nX-Other:\r\n")
    size = -(-len(data) // pieces)
    request = request_of(*(data[start : start + size] for start in range(0, len(data), size)))
    assert request.body == b"{}\r\n0\r\n\r\n" + b"x" * 300
    assert request.headers == [(b"host", b"a"), (b"transfer-encoding", b"chunked")]


def test_the_phase_follows_the_bytes() -> None:
    connection = ServerConnection(LIMITS)
    seen = [connection.phase]
    for piece in (b"\r\n", b"PO", b"ST / HTTP/1.1\r\n", b"Host: a\r\nContent-Length: 2\r\n\r\n", b"a", b"b"):
        drain(connection, piece)
        seen.append(connection.phase)
    assert seen == [
        Phase.IDLE,
        Phase.IDLE,
        Phase.HEADERS,
        Phase.HEADERS,
        Phase.BODY,
        Phase.BODY,
        Phase.IDLE,
    ]


@pytest.mark.parametrize(
    ("data", "clean"),
    [
        (b"", True),
        (b"\r\n", True),
        (b"G", False),
        (b"GET / HTTP/1.1\r\nHost: a\r\n", False),
        (post(b"Content-Length: 2", body=b"a"), False),
        (post(b"Transfer-Encoding: chunked", body=b"1\r\na\r\n0\r\n"), False),
        (post(b"Content-Length: 1", body=b"a"), True),
    ],
)
def test_the_end_of_input(data: bytes, clean: bool) -> None:
    connection = ServerConnection(LIMITS)
    connection.receive_data(data)
    connection.receive_eof()
    events = drain(connection)
    assert events[-1] == Closed(clean)
    assert connection.phase is Phase.CLOSED
    assert connection.next_event() is None


def test_the_last_request_of_a_connection_says_so() -> None:
    data = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" * 3
    assert [request.keep_alive for request in requests_of(data, limits=SMALL)] == [True, False]


def test_nothing_follows_a_last_request() -> None:
    connection = ServerConnection(LIMITS)
    assert len(drain(connection, b"GET / HTTP/1.0\r\n\r\n")) == 1
    assert connection.phase is Phase.CLOSED
    connection.receive_eof()
    assert drain(connection, b"rubbish") == []


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GET /%b HTTP/1.1\r\nHost: a\r\n\r\n" % (b"x" * 99), None),
        (b"GET /%b HTTP/1.1\r\nHost: a\r\n\r\n" % (b"x" * 100), 414),
        (b"GET /%b" % (b"x" * 10_000), 414),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: %b\r\n\r\n" % (b"x" * 184), None),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: %b\r\n\r\n" % (b"x" * 185), 431),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: %b" % (b"x" * 10_000), 431),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: %b\n" % (b"x" * 10_000), 431),
        (b"GET / HTTP/1.1\r\nHost: a\r\n%b\r\n" % (b"X: 1\r\n" * 4), None),
        (b"GET / HTTP/1.1\r\nHost: a\r\n%b\r\n" % (b"X: 1\r\n" * 5), 431),
        (post(b"Content-Length: 10", body=b"x" * 10), None),
        (post(b"Content-Length: 11"), 413),
        (post(b"Content-Length: 999999999999999999999999"), 413),
        (chunked(b"x" * 4, b"y" * 6), None),
        (chunked(b"x" * 5, b"y" * 6), 413),
        (post(b"Transfer-Encoding: chunked", body=b"FFFFFFFF\r\n"), 413),
        (chunked(b"x", b"y"), None),
        (chunked(b"x", b"y", b"z"), 413),
        (chunked(b"x", trailers=b"X: 1\r\n" * 5), None),
        (chunked(b"x", trailers=b"X: 1\r\n" * 6), 431),
        (chunked(b"x", trailers=b"X: %b\r\n" % (b"x" * 193)), None),
        (chunked(b"x", trailers=b"X: %b\r\n" % (b"x" * 194)), 431),
        (b"\r\n" * 2 + post(b"Content-Length: 0"), None),
        (b"\r\n" * 3, 400),
    ],
)
def test_each_limit_at_its_edge(data: bytes, status: int | None) -> None:
    if status is None:
        assert len(requests_of(data, limits=SMALL)) == 1
    else:
        assert fault_of(data, SMALL).status == status


def test_a_huge_header_value_is_refused_before_the_parser_sees_it(monkeypatch: pytest.MonkeyPatch) -> None:
    fed = 0

    class CountingParser:
        def __init__(self, sink: object) -> None: ...

        def set_dangerous_leniencies(self, **leniencies: bool) -> None: ...

        def feed_data(self, data: bytes) -> None:
            nonlocal fed
            fed += len(data)

    monkeypatch.setattr(server_module, "HttpRequestParser", CountingParser)
    huge = b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * (8 << 20)
    assert fault_of(huge).status == 431

    connection = ServerConnection(LIMITS)
    taken = 0
    for start in range(0, len(huge), 8_192):
        taken += 8_192
        if drain(connection, huge[start : start + 8_192]):
            break
    assert taken <= LIMITS.header_bytes_max + 2 * 8_192
    assert fed == 0


def test_empty_lines_are_counted_for_each_request() -> None:
    one = b"\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"
    assert len(requests_of(one * 4)) == 4


def test_a_lone_lf_is_found_at_once_also_behind_a_head_that_came_in_pieces() -> None:
    connection = ServerConnection(LIMITS)
    drain(connection, b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 100)
    assert len(drain(connection, b"\r\n\r\n")) == 1
    (event,) = drain(connection, b"GET / HTTP/1.1\r\nHost: a\n")
    assert isinstance(event, RequestFault)


def test_expect_is_answered_only_while_the_body_is_awaited() -> None:
    head = post(b"Content-Length: 2", b"Expect: 100-Continue")
    connection = ServerConnection(LIMITS)
    assert drain(connection, head) == []
    assert connection.take_continue() == CONTINUE
    assert connection.take_continue() == b""
    (request,) = drain(connection, b"ab")
    assert isinstance(request, Request)
    assert request.body == b"ab"
    assert connection.take_continue() == b""


@pytest.mark.parametrize(
    "pieces",
    [
        (post(b"Content-Length: 2", b"Expect: 100-continue", body=b"a"),),
        (post(b"Content-Length: 2", b"Expect: 100-continue"), b"a"),
        (post(b"Content-Length: 0", b"Expect: 100-continue"),),
        (post(b"Expect: 100-continue"),),
        (post(b"Content-Length: 2", b"Expect: 100-continue", version=b"1.0"),),
        (post(b"Content-Length: 2"),),
        (post(b"Content-Length: 99999999", b"Expect: 100-continue"),),
    ],
)
def test_no_continue_is_due(pieces: Iterable[bytes]) -> None:
    connection = ServerConnection(LIMITS)
    for piece in pieces:
        drain(connection, piece)
    assert connection.take_continue() == b""


def test_expect_with_a_chunked_body() -> None:
    connection = ServerConnection(LIMITS)
    drain(connection, post(b"Transfer-Encoding: chunked", b"Expect: 100-continue"))
    assert connection.take_continue() == CONTINUE
    assert len(drain(connection, LAST_CHUNK)) == 1


@pytest.mark.parametrize("framing", [b"Content-Length: 2", b"Transfer-Encoding: chunked"])
@pytest.mark.parametrize("coding", [b"gzip", b"br", b"identity, gzip", b"deflate"])
def test_a_coded_body_is_refused_before_it_is_read(framing: bytes, coding: bytes) -> None:
    fault = fault_of(post(framing, b"Content-Encoding: " + coding))
    assert fault.status == 415
    assert fault.headers == ((b"accept-encoding", b"identity"),)
    assert str(fault) == (
        f"Unsupported content coding: content-encoding: expected identity, got '{coding.decode()}'"
    )


@pytest.mark.parametrize(
    "head",
    [
        post(b"Content-Length: 2", b"Content-Encoding: Identity", body=b"ab"),
        post(b"Content-Length: 2", b"Content-Encoding:", body=b"ab"),
        post(b"Content-Length: 0", b"Content-Encoding: gzip"),
        post(b"Content-Encoding: gzip"),
    ],
)
def test_a_coding_that_changes_nothing_passes(head: bytes) -> None:
    (request,) = drain(ServerConnection(Http1Limits()), head)
    assert isinstance(request, Request)


def test_another_expectation_fails() -> None:
    assert fault_of(post(b"Content-Length: 2", b"Expect: 200-ok", body=b"ab")).status == 417


def test_a_websocket_handshake_hands_the_bytes_over() -> None:
    connection = ServerConnection(LIMITS)
    (event,) = drain(connection, HANDSHAKE + b"\x81\x80abcd")
    assert isinstance(event, Upgrade)
    assert event.request.path == b"/ws"
    assert event.trailing == b"\x81\x80abcd"
    assert connection.phase is Phase.UPGRADED
    with pytest.raises(TransitionError):
        connection.receive_data(b"more")


@pytest.mark.parametrize(
    ("request_line", "lines", "body"),
    [
        (b"POST /p HTTP/1.1", b"Upgrade: h2c\r\nConnection: Upgrade\r\nContent-Length: 3\r\n", b"abc"),
        (b"POST /p HTTP/1.1", b"Upgrade: h2c\r\nConnection: Upgrade\r\nTransfer-Encoding: chunked\r\n", b""),
        (b"GET /p HTTP/1.1", b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\n", b""),
        (b"GET /p HTTP/1.1", b"Upgrade: websocket, h2c\r\nConnection: Upgrade\r\n", b""),
        (b"GET /p HTTP/1.1", b"Upgrade: websocket\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n", b""),
        (b"GET /p HTTP/1.1", b"Upgrade: websocket\r\n", b""),
        (b"GET /p HTTP/1.1", b"Connection: upgrade\r\n", b""),
        (b"GET /p HTTP/1.1", b"Proxy-Connection: upgrade\r\nUpgrade: websocket\r\n", b""),
        (b"GET /p HTTP/1.1", b"Upgrade: websocket\r\nConnection: Upgrade\r\nContent-Length: 1\r\n", b"x"),
        (b"POST /p HTTP/1.1", b"Upgrade: websocket\r\nConnection: Upgrade\r\nContent-Length: 0\r\n", b""),
        (b"GET /p HTTP/1.0", b"Upgrade: websocket\r\nConnection: Upgrade, keep-alive\r\n", b""),
    ],
)
def test_any_other_upgrade_offer_is_ignored_and_shifts_nothing(
    request_line: bytes, lines: bytes, body: bytes
) -> None:
    sent = LAST_CHUNK if b"chunked" in lines else body
    data = b"%b\r\nHost: a\r\n%b\r\n%bGET /next HTTP/1.1\r\nHost: a\r\n\r\n" % (request_line, lines, sent)
    first, second = requests_of(data)
    assert (first.path, first.body) == (b"/p", body)
    assert second.path == b"/next"


class DoubtfulParser:
    """Agrees with a head, then raises what it is told to when it is fed again."""

    raises: Exception
    head_raises: Exception | None = None

    def __init__(self, sink: FieldSink) -> None:
        self.sink = sink
        self.fed = 0

    def set_dangerous_leniencies(self, **leniencies: bool) -> None: ...

    def feed_data(self, data: bytes) -> None:
        self.fed += 1
        if self.head_raises:
            raise self.head_raises
        if self.fed > 1:
            raise self.raises
        self.sink.on_header(b"Host", b"a")
        self.sink.on_header(b"Content-Length", b"1")


@pytest.mark.parametrize(
    ("attribute", "error", "detail"),
    [
        ("raises", HttpParserError("what body?"), "what body?"),
        ("head_raises", HttpParserUpgrade(5), "the parsers disagree about the end of the head"),
    ],
)
def test_a_parser_that_disagrees_is_a_fault(
    monkeypatch: pytest.MonkeyPatch, attribute: str, error: Exception, detail: str
) -> None:
    monkeypatch.setattr(server_module, "HttpRequestParser", DoubtfulParser)
    monkeypatch.setattr(DoubtfulParser, attribute, error, raising=False)
    assert fault_of(post(b"Content-Length: 1", body=b"x")).detail.endswith(detail)


def test_a_parser_that_misses_the_end_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FieldSink, "on_message_complete", lambda self: None)
    assert "disagree" in fault_of(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").detail


def test_a_response_is_one_piece_of_bytes() -> None:
    assert encode_response(
        200,
        b"{}",
        extra_headers=((b"x-request-id", b"7"), (b"retry-after", b"1")),
        date=b"Tue, 15 Nov 1994 08:12:31 GMT",
    ) == (
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: keep-alive\r\n"
        b"date: Tue, 15 Nov 1994 08:12:31 GMT\r\nx-request-id: 7\r\nretry-after: 1\r\n"
        b"content-length: 2\r\n\r\n{}"
    )


def test_a_response_to_head_announces_the_length_alone() -> None:
    with_body = encode_response(404, b"{}", content_type=b"text/plain", keep_alive=False)
    assert (
        encode_response(404, b"{}", content_type=b"text/plain", keep_alive=False, head=True) == with_body[:-2]
    )
    assert with_body == (
        b"HTTP/1.1 404 Not Found\r\ncontent-type: text/plain\r\nconnection: close\r\n"
        b"content-length: 2\r\n\r\n{}"
    )


@pytest.mark.parametrize("status", [204, 304])
def test_a_response_without_content(status: int) -> None:
    response = encode_response(status, b"", extra_headers=((b"etag", b'"1"'),))
    assert b"content-" not in response
    assert response.endswith(b'etag: "1"\r\n\r\n')
    with pytest.raises(ValueError, match="no body"):
        encode_response(status, b"x")
    with pytest.raises(ValueError, match="no body"):
        encode_stream_head(status, content_type=b"text/plain")


def test_a_status_without_a_phrase() -> None:
    assert encode_response(599, b"").startswith(b"HTTP/1.1 599 \r\n")


@pytest.mark.parametrize("status", [100, 101, 199, 600, -1])
def test_only_final_statuses_are_written(status: int) -> None:
    with pytest.raises(ValueError, match="status"):
        encode_response(status, b"")


@pytest.mark.parametrize(
    "header",
    [
        (b"x", b"a\r\nb: c"),
        (b"x", b"a\nb"),
        (b"x", b"a\rb"),
        (b"x", b"a\x00b"),
        (b"x", b"a\x7f"),
        (b"x\r\ny", b"a"),
        (b"x:", b"a"),
        (b"x ", b"a"),
        (b"x\x00", b"a"),
        (b"", b"a"),
        (b"\xe9", b"a"),
        (b"Content-Length", b"1"),
        (b"transfer-encoding", b"chunked"),
        (b"connection", b"close"),
    ],
)
def test_a_header_cannot_break_out(header: tuple[bytes, bytes]) -> None:
    with pytest.raises(ValueError, match=r"header|framing"):
        encode_response(200, b"", extra_headers=(header,))
    with pytest.raises(ValueError, match=r"header|framing"):
        encode_stream_head(200, content_type=b"text/plain", extra_headers=(header,))


def test_content_type_and_date_cannot_break_out() -> None:
    with pytest.raises(ValueError, match="control"):
        encode_response(200, b"", content_type=b"a\r\nb: c")
    with pytest.raises(ValueError, match="control"):
        encode_response(200, b"", date=b"a\r\nb: c")


def test_a_streamed_response_is_chunked() -> None:
    head = encode_stream_head(200, content_type=b"text/event-stream", date=b"now")
    assert head == (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: keep-alive\r\ndate: now\r\n"
        b"transfer-encoding: chunked\r\n\r\n"
    )
    assert encode_chunk(b"data: 1\n\n") == b"9\r\ndata: 1\n\n\r\n"
    assert encode_chunk(b"x" * 26).startswith(b"1a\r\n")
    assert encode_chunk(b"") == b""


def test_a_stream_for_http_1_0_ends_with_the_connection() -> None:
    assert encode_stream_head(200, content_type=b"text/event-stream", chunked=False) == (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
    )
