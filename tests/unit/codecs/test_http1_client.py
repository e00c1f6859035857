"""The client's side of a connection: requests, accepted answers, and answers that are the maker's fault."""

import pytest

from cambist.codecs.http1 import ClientConnection, Http1Limits, Response, encode_chunk
from cambist.config.errors import AnswerOverLimit, MakerError, TransitionError

LIMITS = Http1Limits(
    answer_head_bytes_max=200, answer_fields_max=5, header_bytes_max=200, body_bytes_max=10, chunk_count_max=3
)
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


def asked(method: bytes = b"POST") -> ClientConnection:
    """A connection with a request in flight."""
    connection = ClientConnection(LIMITS)
    connection.send_request(method, b"/firm", b"maker.example", body=b"{}" if method == b"POST" else b"")
    return connection


def answer(data: bytes, method: bytes = b"POST") -> Response:
    """The answer to `data`, the same whole and byte by byte."""
    response = asked(method).receive_data(data)
    assert response is not None
    connection = asked(method)
    ends = [connection.receive_data(data[at : at + 1]) for at in range(len(data))]
    assert ends == [None] * (len(data) - 1) + [response]
    return response


def coded(*chunks: bytes, trailers: bytes = b"") -> bytes:
    body = b"".join(encode_chunk(chunk) for chunk in chunks) + b"0\r\n" + trailers + b"\r\n"
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body


def test_a_request_is_one_piece_of_bytes() -> None:
    assert ClientConnection(LIMITS).send_request(
        b"POST", b"/firm?x=1", b"maker.example:8443", [(b"X-Auth-Key", b"k"), (b"accept", b"a, b")], b"{}"
    ) == (
        b"POST /firm?x=1 HTTP/1.1\r\nhost: maker.example:8443\r\nX-Auth-Key: k\r\naccept: a, b\r\n"
        b"content-length: 2\r\n\r\n{}"
    )


@pytest.mark.parametrize(
    ("method", "announced"), [(b"GET", False), (b"HEAD", False), (b"POST", True), (b"DELETE", True)]
)
def test_an_empty_body_is_announced_where_one_is_expected(method: bytes, announced: bool) -> None:
    sent = ClientConnection(LIMITS).send_request(method, b"/", b"a")
    assert (b"content-length: 0\r\n" in sent) is announced
    assert sent.endswith(b"\r\n\r\n")


@pytest.mark.parametrize(
    ("method", "target", "host", "header"),
    [
        (b"POST", b"/", b"a", (b"x", b"a\r\nb: c")),
        (b"POST", b"/", b"a", (b"x", b"a\nb")),
        (b"POST", b"/", b"a", (b"x", b"a\rb")),
        (b"POST", b"/", b"a", (b"x", b"a\x00")),
        (b"POST", b"/", b"a", (b"x\r\ny", b"a")),
        (b"POST", b"/", b"a", (b"x: y", b"a")),
        (b"POST", b"/", b"a", (b"", b"a")),
        (b"POST", b"/", b"a", (b"Host", b"b")),
        (b"POST", b"/", b"a", (b"content-length", b"0")),
        (b"POST", b"/", b"a", (b"Transfer-Encoding", b"chunked")),
        (b"POST", b"/ HTTP/1.1\r\nx: y", b"a", (b"x", b"a")),
        (b"POST", b"/a b", b"a", (b"x", b"a")),
        (b"POST", b"/#a", b"a", (b"x", b"a")),
        (b"POST", b"/\xe9", b"a", (b"x", b"a")),
        (b"POST", b"http://a/", b"a", (b"x", b"a")),
        (b"POST", b"", b"a", (b"x", b"a")),
        (b"POST", b"/", b"a\r\nx: y", (b"x", b"a")),
        (b"POST", b"/", b"", (b"x", b"a")),
        (b"POST", b"/", b"a b", (b"x", b"a")),
        (b"post", b"/", b"a", (b"x", b"a")),
        (b"CONNECT", b"/", b"a", (b"x", b"a")),
    ],
)
def test_no_argument_can_break_out(
    method: bytes, target: bytes, host: bytes, header: tuple[bytes, bytes]
) -> None:
    connection = ClientConnection(LIMITS)
    with pytest.raises(ValueError, match=r"."):
        connection.send_request(method, target, host, [header], b"{}")
    assert connection.send_request(b"GET", b"/", b"a")  # nothing was begun


def test_an_answer_with_a_length() -> None:
    assert answer(
        b"HTTP/1.1 429 Too Many\r\nContent-Length: 2\r\nRetry-After: \t 1 \r\nX:\r\n\r\n{}"
    ) == Response(
        429, [(b"content-length", b"2"), (b"retry-after", b"1"), (b"x", b"")], keep_alive=True, body=b"{}"
    )


def test_a_chunked_answer() -> None:
    assert answer(coded(b"{", b"}")).body == b"{}"
    assert answer(coded(b"\r\n0\r\n\r\n", trailers=b"X: 1\r\nY:\r\n")).body == b"\r\n0\r\n\r\n"
    assert answer(coded()).body == b""


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", 200),
        (b"HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n", 200),
        (b"HTTP/1.1 200 \xe9t\xe9\r\nContent-Length: 0\r\n\r\n", 200),
        (b"HTTP/1.1 204 No Content\r\n\r\n", 204),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", 304),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, 200),
        (b"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK, 200),
        (b"HTTP/1.1 426 Upgrade\r\nUpgrade: h2c\r\nConnection: upgrade\r\nContent-Length: 0\r\n\r\n", 426),
    ],
)
def test_answers_that_are_taken(data: bytes, status: int) -> None:
    assert answer(data).status == status


def test_an_answer_to_head_has_no_body() -> None:
    assert answer(b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n", b"HEAD").body == b""
    assert answer(b"HTTP/1.1 200 OK\r\n\r\n", b"HEAD").body == b""
    assert answer(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"HEAD").body == b""


def test_a_connection_serves_request_after_request() -> None:
    connection = ClientConnection(LIMITS)
    started = []
    for data in (OK, coded(b"ab"), b"HTTP/1.1 204 No Content\r\n\r\n", OK):
        connection.send_request(b"POST", b"/", b"a", body=b"{}")
        started.append(connection.response_started)
        assert connection.receive_data(data[:1]) is None
        started.append(connection.response_started)
        assert connection.receive_data(data[1:]) is not None
    assert started == [False, True] * 4


@pytest.mark.parametrize(
    ("version", "connection", "keep_alive"),
    [
        (b"1.1", b"", True),
        (b"1.1", b"Connection: close\r\n", False),
        (b"1.1", b"Connection: a, Close\r\n", False),
        (b"1.0", b"", False),
        (b"1.0", b"Connection: keep-alive\r\n", True),
    ],
)
def test_persistence(version: bytes, connection: bytes, keep_alive: bool) -> None:
    used = asked()
    response = used.receive_data(b"HTTP/%b 200 OK\r\n%bContent-Length: 0\r\n\r\n" % (version, connection))
    assert response is not None
    assert response.keep_alive is keep_alive
    if keep_alive:
        assert used.send_request(b"GET", b"/", b"a")
    else:
        with pytest.raises(MakerError, match="closed by an answer"):
            used.send_request(b"GET", b"/", b"a")


BAD = {
    "two lengths": (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", "content-length"),
    "two lengths in one field": (b"HTTP/1.1 200 OK\r\nContent-Length: 2,3\r\n\r\n{}", "content-length"),
    "length with sign": (b"HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\n{}", "content-length"),
    "no length": (b"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n{}", "content-length"),
    "large body that ends with the connection": (b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 11, "BodyTooLarge"),
    "field without a colon": (b"HTTP/1.1 200 OK\r\nX\r\nContent-Length: 2\r\n\r\n{}", "malformed"),
    "long chunk extension": (coded().replace(b"0\r\n", b"0;" + b"a" * 1_100 + b"\r\n"), "chunk"),
    "gzip": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n{}", "expected chunked, got 'gzip'"),
    "gzip, chunked": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "expected chunked, got 'gzip, chunked'",
    ),
    "101": (b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", "upgrade"),
    "endless interim answers": (b"HTTP/1.1 100 Continue\r\n\r\n" * 9, "interim"),
    "bare CR": (b"HTTP/1.1 200 OK\r\nX: a\rb\r\nContent-Length: 2\r\n\r\n{}", "malformed"),
    "NUL": (b"HTTP/1.1 200 OK\r\nX: a\x00b\r\nContent-Length: 2\r\n\r\n{}", "malformed"),
    "HTTP/2": (b"HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\n{}", "status line"),
    "HTTP/0.9": (b"<html>hello", "status line"),
    "empty line ahead": (b"\r\n" + OK, "status line"),
    "status of two digits": (b"HTTP/1.1 20 OK\r\nContent-Length: 2\r\n\r\n{}", "status line"),
    "status of four digits": (b"HTTP/1.1 2000 OK\r\nContent-Length: 2\r\n\r\n{}", "status line"),
    "status 600": (b"HTTP/1.1 600 OK\r\nContent-Length: 2\r\n\r\n{}", "status line"),
    "large head": (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 300, "HeadersTooLarge"),
    "many fields": (
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n" + b"X: 1\r\n" * 5 + b"\r\n{}",
        "HeadersTooLarge",
    ),
    "large body": (b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n", "BodyTooLarge"),
    "large chunked body": (coded(b"x" * 5, b"y" * 6), "BodyTooLarge"),
    "many chunks": (coded(b"x", b"y", b"z"), "BodyTooLarge"),
    "large trailers": (coded(b"x", trailers=b"X: %b\r\n" % (b"x" * 300)), "HeadersTooLarge"),
    "malformed trailers": (coded(b"x", trailers=b"X\r\n"), "malformed trailers"),
    "chunk size that is none": (coded().replace(b"0\r\n", b"x\r\n"), "chunk"),
    "chunk data with the wrong end": (coded(b"abc").replace(b"abc\r\n", b"abcd\r\n"), "chunk"),
}


def feed_byte_by_byte(connection: ClientConnection, data: bytes) -> None:
    for at in range(len(data)):
        assert connection.receive_data(data[at : at + 1]) is None


@pytest.mark.parametrize("name", BAD)
def test_answers_that_are_the_makers_fault(name: str) -> None:
    data, reason = BAD[name]
    connection = asked()
    with pytest.raises(MakerError) as caught:
        connection.receive_data(data)
    assert reason in caught.value.detail
    assert isinstance(caught.value, AnswerOverLimit) == (reason == "BodyTooLarge")
    with pytest.raises(MakerError):
        feed_byte_by_byte(asked(), data)


def test_a_failed_connection_stays_failed() -> None:
    connection = asked()
    with pytest.raises(MakerError, match="status line"):
        connection.receive_data(b"rubbish")
    with pytest.raises(MakerError, match="status line"):
        connection.receive_data(OK)
    with pytest.raises(MakerError, match="status line"):
        connection.send_request(b"GET", b"/", b"a")
    with pytest.raises(MakerError, match="status line"):
        connection.receive_eof()


def test_bytes_ahead_of_any_request_are_refused() -> None:
    connection = ClientConnection(LIMITS)
    with pytest.raises(MakerError, match="unsolicited"):
        connection.receive_data(OK)


@pytest.mark.parametrize("more", [b"\r\n", OK])
def test_bytes_behind_an_answer_make_the_connection_unusable(more: bytes) -> None:
    together = asked()
    response = together.receive_data(OK + more)
    assert response is not None
    assert (response.body, response.keep_alive) == (b"{}", False)
    with pytest.raises(MakerError, match="unsolicited"):
        together.send_request(b"GET", b"/", b"a")
    apart = asked()
    assert apart.receive_data(OK) is not None
    with pytest.raises(MakerError, match="unsolicited"):
        apart.receive_data(more)


def test_a_body_where_none_may_be_is_unsolicited() -> None:
    response = asked().receive_data(b"HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n{}")
    assert response is not None
    assert not response.keep_alive


# --- What RFC 9112 lets a client take ------------------------------------------------------------------

LETTER = b"HTTP/1.1 200 OK\r\nX: a b\r\nContent-Length: 2\r\n\r\n{}"
TAKEN = {
    "a folded line (5.2), of old Java and CGI": (
        b"HTTP/1.1 200 OK\r\nX: a\r\n \tb\r\nContent-Length: 2\r\n\r\n{}"
    ),
    "a folded line behind the status line (2.2)": (
        b"HTTP/1.1 200 OK\r\n more\r\nX: a b\r\nContent-Length: 2\r\n\r\n{}"
    ),
    "lines that end in LF alone (2.2), of CGI scripts": b"HTTP/1.1 200 OK\nX: a b\nContent-Length: 2\n\n{}",
    "one line that ends in LF alone": b"HTTP/1.1 200 OK\r\nX: a b\nContent-Length: 2\r\n\r\n{}",
    "an empty line of LF alone": b"HTTP/1.1 200 OK\r\nX: a b\r\nContent-Length: 2\r\n\n{}",
    "white space ahead of a colon (5.1)": b"HTTP/1.1 200 OK\r\nX : a b\r\nContent-Length\t: 2\r\n\r\n{}",
    "two equal lengths (6.3), of a proxy before a server": (
        b"HTTP/1.1 200 OK\r\nX: a b\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}"
    ),
    "a list of equal lengths": b"HTTP/1.1 200 OK\r\nX: a b\r\nContent-Length: 2, 2\r\n\r\n{}",
    "identity beside a length, of RFC 2616": (
        b"HTTP/1.1 200 OK\r\nX: a b\r\nTransfer-Encoding: identity\r\nContent-Length: 2\r\n\r\n{}"
    ),
    "a padded size of a chunk, of old Apache and WebLogic": (
        b"HTTP/1.1 200 OK\r\nX: a b\r\nTransfer-Encoding: Chunked\r\n\r\n2  \r\n{}\r\n0000\r\n\r\n"
    ),
    "a size with leading zeros": (
        b"HTTP/1.1 200 OK\r\nX: a b\r\nTransfer-Encoding: chunked\r\n\r\n0000000002\r\n{}\r\n0\r\n\r\n"
    ),
    "an extension of a chunk (7.1.1)": (
        b'HTTP/1.1 200 OK\r\nX: a b\r\nTransfer-Encoding: chunked\r\n\r\n2;a="b"\r\n{}\r\n0;c\r\n\r\n'
    ),
    "chunks behind a head of LF alone": (
        b"HTTP/1.1 200 OK\nX: a b\nTransfer-Encoding: chunked\n\n2\r\n{}\r\n0\r\n\r\n"
    ),
}
"""Answers that mean what LETTER says."""


@pytest.mark.parametrize("name", TAKEN)
def test_an_answer_that_means_what_one_to_the_letter_says(name: str) -> None:
    wanted, found = answer(LETTER), answer(TAKEN[name])
    assert (found.status, found.body, found.keep_alive) == (wanted.status, wanted.body, wanted.keep_alive)
    assert dict(found.headers)[b"x"] == b"a b"


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n",
        b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n",
    ],
)
def test_a_framing_in_doubt_ends_the_connection(data: bytes) -> None:
    found = answer(data + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n")
    assert (found.body, found.keep_alive) == (b"{}", False)


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.0 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-type: application/json\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n\r\n",
        b"HTTP/1.0 200 OK\n\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\n",
    ],
)
@pytest.mark.parametrize("body", [b"", b"{}", b'{"a":\r\n1}'])
def test_a_body_may_end_with_the_connection(head: bytes, body: bytes) -> None:
    """As of servers of HTTP/1.0, and of PHP's built-in one."""
    for pieces in ([head + body], [head, body], [bytes([one]) for one in head + body]):
        connection = asked()
        assert [connection.receive_data(piece) for piece in pieces] == [None] * len(pieces)
        found = connection.receive_eof()
        assert found is not None
        assert (found.status, found.body, found.keep_alive) == (200, body, False)
        with pytest.raises(MakerError, match="closed by an answer"):
            connection.send_request(b"GET", b"/", b"a")


def test_a_head_of_many_proxies_is_taken() -> None:
    connection = ClientConnection(Http1Limits())
    connection.send_request(b"GET", b"/", b"a")
    more = b"".join(b"X-Proxy-%d: %b\r\n" % (number, b"v" * 200) for number in range(200))
    found = connection.receive_data(b"HTTP/1.1 200 OK\r\n%bContent-Length: 2\r\n\r\n{}" % more)
    assert found is not None
    assert (len(found.headers), found.body) == (201, b"{}")


@pytest.mark.parametrize("arrived", [b"", b"H", OK[:-1], b"HTTP/1.1 100 Continue\r\n\r\n"])
def test_the_end_within_an_answer_tells_whether_any_of_it_came(arrived: bytes) -> None:
    connection = asked()
    connection.receive_data(arrived)
    with pytest.raises(MakerError, match="closed by the other side"):
        connection.receive_eof()
    assert connection.response_started is bool(arrived)


def test_the_end_between_answers_is_no_error_but_final() -> None:
    connection = ClientConnection(LIMITS)
    connection.receive_eof()
    with pytest.raises(MakerError, match="closed by the other side"):
        connection.send_request(b"GET", b"/", b"a")


def test_a_second_request_in_flight_is_our_bug() -> None:
    connection = asked()
    with pytest.raises(TransitionError):
        connection.send_request(b"GET", b"/", b"a")
    assert connection.receive_data(OK) is not None
