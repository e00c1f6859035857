"""Request smuggling and malformed framing, case by case: the answer is a fault, and nothing follows."""

from itertools import pairwise

import pytest

from cambist.codecs.http1 import Http1Limits, Phase, Request, RequestFault, ServerConnection
from cambist.codecs.http1.framing import joined
from cambist.codecs.http1.request_head import request_framing
from cambist.config.errors import HttpFault

NEXT = b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"


def get(lines: bytes = b"Host: a\r\n", line: bytes = b"GET / HTTP/1.1") -> bytes:
    return line + b"\r\n" + lines + b"\r\n" + NEXT


def post(lines: bytes, body: bytes = b"abc", version: bytes = b"1.1") -> bytes:
    return b"POST / HTTP/%b\r\nHost: a\r\n%b\r\n%b" % (version, lines, body) + NEXT


def chunks(body: bytes) -> bytes:
    return post(b"Transfer-Encoding: chunked\r\n", body)


TE = b"Transfer-Encoding: "
CASES: dict[str, tuple[bytes, int]] = {
    # The length of the body.
    "length beside coding": (post(b"Content-Length: 3\r\n" + TE + b"chunked\r\n", b"0\r\n\r\n"), 400),
    "coding beside length": (post(TE + b"chunked\r\nContent-Length: 3\r\n", b"0\r\n\r\n"), 400),
    "two lengths that differ": (post(b"Content-Length: 3\r\nContent-Length: 4\r\n"), 400),
    "two equal lengths": (post(b"Content-Length: 3\r\nContent-Length: 3\r\n"), 400),
    "two lengths in two cases": (post(b"Content-Length: 3\r\ncontent-length: 3\r\n"), 400),
    "two zero lengths": (post(b"Content-Length: 0\r\nContent-Length: 0\r\n", b""), 400),
    "length list": (post(b"Content-Length: 3, 3\r\n"), 400),
    "length with plus": (post(b"Content-Length: +3\r\n"), 400),
    "length with minus": (post(b"Content-Length: -3\r\n"), 400),
    "length in hex": (post(b"Content-Length: 0x3\r\n"), 400),
    "length with exponent": (post(b"Content-Length: 3e0\r\n"), 400),
    "length with fraction": (post(b"Content-Length: 3.0\r\n"), 400),
    "length with underscore": (post(b"Content-Length: 3_0\r\n"), 400),
    "length with inner space": (post(b"Content-Length: 3 3\r\n"), 400),
    "length empty": (post(b"Content-Length:\r\n"), 400),
    "length quoted": (post(b'Content-Length: "3"\r\n'), 400),
    "length with vertical tab": (post(b"Content-Length: \x0b3\r\n"), 400),
    "length in another script": (post(b"Content-Length: \xb2\r\n"), 400),
    "length behind many zeros": (post(b"Content-Length: %b3\r\n" % (b"0" * 5_000)), 413),
    "length of 19 digits": (post(b"Content-Length: 1000000000000000000\r\n"), 413),
    "length over 64 bits": (post(b"Content-Length: 18446744073709551619\r\n"), 413),
    "length over the limit": (post(b"Content-Length: 1048577\r\n"), 413),
    "space ahead of the length's colon": (post(b"Content-Length : 3\r\n"), 400),
    # The transfer coding.
    "gzip": (post(TE + b"gzip\r\n"), 501),
    "gzip, chunked": (post(TE + b"gzip, chunked\r\n", b"0\r\n\r\n"), 501),
    "chunked, gzip": (post(TE + b"chunked, gzip\r\n", b"0\r\n\r\n"), 501),
    "chunked, chunked": (post(TE + b"chunked, chunked\r\n", b"0\r\n\r\n"), 501),
    "chunked twice": (post((TE + b"chunked\r\n") * 2, b"0\r\n\r\n"), 501),
    "gzip then chunked in two lines": (post(TE + b"gzip\r\n" + TE + b"chunked\r\n", b"0\r\n\r\n"), 501),
    "chunked, identity": (post(TE + b"chunked, identity\r\n", b"0\r\n\r\n"), 501),
    "identity": (post(TE + b"identity\r\n"), 501),
    "xchunked": (post(TE + b"xchunked\r\n"), 501),
    "chunkedx": (post(TE + b"chunkedx\r\n"), 501),
    "chunked with a parameter": (post(TE + b"chunked;a=b\r\n", b"0\r\n\r\n"), 501),
    "chunked quoted": (post(TE + b'"chunked"\r\n', b"0\r\n\r\n"), 501),
    "comma ahead of chunked": (post(TE + b",chunked\r\n", b"0\r\n\r\n"), 501),
    "comma behind chunked": (post(TE + b"chunked,\r\n", b"0\r\n\r\n"), 501),
    "tab behind chunked": (post(TE + b"chunked\t\r\n", b"0\r\n\r\n"), 501),  # llhttp's; harmless
    "empty coding": (post(TE + b"\r\n"), 501),
    "coding on GET": (get(b"Host: a\r\n" + TE + b"gzip\r\n"), 501),
    "vertical tab ahead of chunked": (post(TE + b"\x0bchunked\r\n", b"0\r\n\r\n"), 400),
    "coding in HTTP/1.0": (post(TE + b"chunked\r\n", b"0\r\n\r\n", b"1.0"), 400),
    "unknown coding in HTTP/1.0": (post(TE + b"gzip\r\n", b"", b"1.0"), 400),
    "space ahead of the coding's colon": (post(b"Transfer-Encoding : chunked\r\n", b"0\r\n\r\n"), 400),
    "coding folded": (post(b"Transfer-Encoding:\r\n chunked\r\n", b"0\r\n\r\n"), 400),
    "coding behind a bare CR": (post(b"X: a\rTransfer-Encoding: chunked\r\n", b"0\r\n\r\n"), 400),
    "coding behind a bare LF": (post(b"X: a\nTransfer-Encoding: chunked\r\n", b"0\r\n\r\n"), 400),
    # Chunks.
    "chunk size with sign": (chunks(b"+3\r\nabc\r\n0\r\n\r\n"), 400),
    "chunk size negative": (chunks(b"-3\r\nabc\r\n0\r\n\r\n"), 400),
    "chunk size with 0x": (chunks(b"0x3\r\nabc\r\n0\r\n\r\n"), 400),
    "chunk size with space ahead": (chunks(b" 3\r\nabc\r\n0\r\n\r\n"), 400),
    "chunk size with space behind": (chunks(b"3 \r\nabc\r\n0\r\n\r\n"), 400),
    "chunk size with tab behind": (chunks(b"3\t\r\nabc\r\n0\r\n\r\n"), 400),
    "chunk size with underscore": (chunks(b"0_3\r\nabc\r\n0\r\n\r\n"), 400),
    "chunk size empty": (chunks(b"\r\nabc\r\n0\r\n\r\n"), 400),
    "chunk size over 64 bits": (chunks(b"10000000000000003\r\nabc\r\n0\r\n\r\n"), 400),
    "chunk size over 32 bits": (chunks(b"100000003\r\nabc\r\n0\r\n\r\n"), 400),
    "chunk size padded with zeros": (chunks(b"000000003\r\nabc\r\n0\r\n\r\n"), 400),
    "chunk size over the limit": (chunks(b"100001\r\n"), 413),
    "chunk size behind a bare LF": (chunks(b"3\nabc\r\n0\r\n\r\n"), 400),
    "chunk size behind a bare CR": (chunks(b"3\rabc\r\n0\r\n\r\n"), 400),
    "chunk extension": (chunks(b"3;a=b\r\nabc\r\n0\r\n\r\n"), 400),
    "chunk extension, empty": (chunks(b"3;\r\nabc\r\n0\r\n\r\n"), 400),
    "chunk extension with LF": (chunks(b"3;a\nxx\r\nabc\r\n0\r\n\r\n"), 400),
    "chunk extension on the last": (chunks(b"3\r\nabc\r\n0;a\r\n\r\n"), 400),
    "chunk data longer than its size": (chunks(b"3\r\nabcd\r\n0\r\n\r\n"), 400),
    "chunk data with the wrong end": (chunks(b"3\r\nabcXX0\r\n\r\n"), 400),
    "chunk data that ends in LF": (chunks(b"3\r\nabc\n0\r\n\r\n"), 400),
    "trailer folded": (chunks(b"0\r\nX: a\r\n b\r\n\r\n"), 400),
    "trailer without colon": (chunks(b"0\r\nX\r\n\r\n"), 400),
    "trailer with space ahead of colon": (chunks(b"0\r\nX : a\r\n\r\n"), 400),
    "trailer with bare LF": (chunks(b"0\r\nX: a\nY: b\r\n\r\n"), 400),
    "trailer with bare CR": (chunks(b"0\r\nX: a\rY: b\r\n\r\n"), 400),
    "trailer section that ends in LF": (chunks(b"0\r\n\n"), 400),
    # Header fields.
    "line folded": (get(b"Host: a\r\nX: a\r\n b\r\n"), 400),
    "line folded with tab": (get(b"Host: a\r\nX: a\r\n\tb\r\n"), 400),
    "first line folded": (get(b" X: a\r\nHost: a\r\n"), 400),
    "bare CR in a value": (get(b"Host: a\r\nX: a\rb\r\n"), 400),
    "bare CR in a name": (get(b"Host: a\r\nX\r: b\r\n"), 400),
    "bare CR at a value's end": (get(b"Host: a\r\nX: a\r\r\n"), 400),
    "bare LF behind the request line": (b"GET / HTTP/1.1\nHost: a\r\n\r\n" + NEXT, 400),
    "bare LF behind a field": (get(b"Host: a\nX: b\r\n"), 400),
    "bare LF for the empty line": (b"GET / HTTP/1.1\r\nHost: a\r\n\n" + NEXT, 400),
    "bare LF everywhere": (b"GET / HTTP/1.1\nHost: a\n\n", 400),
    "bare CR for the empty line": (b"GET / HTTP/1.1\r\nHost: a\r\n\r" + NEXT, 400),
    "NUL in a value": (get(b"Host: a\r\nX: a\x00b\r\n"), 400),
    "NUL in a name": (get(b"Host: a\r\nX\x00: b\r\n"), 400),
    "control character in a value": (get(b"Host: a\r\nX: a\x1fb\r\n"), 400),
    "DEL in a value": (get(b"Host: a\r\nX: a\x7fb\r\n"), 400),
    "space ahead of a colon": (get(b"Host: a\r\nX : b\r\n"), 400),
    "tab ahead of a colon": (get(b"Host: a\r\nX\t: b\r\n"), 400),
    "space within a name": (get(b"Host: a\r\nX Y: b\r\n"), 400),
    "empty name": (get(b"Host: a\r\n: b\r\n"), 400),
    "no colon": (get(b"Host: a\r\nX\r\n"), 400),
    "name beyond ASCII": (get(b"Host: a\r\n\xc3\xa9: b\r\n"), 400),
    "parenthesis in a name": (get(b"Host: a\r\nX(y): b\r\n"), 400),
    # Host.
    "no host": (get(b""), 400),
    "two hosts": (get(b"Host: a\r\nHost: b\r\n"), 400),
    "two equal hosts": (get(b"Host: a\r\nhost: a\r\n"), 400),
    "two hosts in HTTP/1.0": (get(b"Host: a\r\nHost: b\r\n", b"GET / HTTP/1.0"), 400),
    "empty host": (get(b"Host:\r\n"), 400),
    "host with a path": (get(b"Host: a/b\r\n"), 400),
    "host with user": (get(b"Host: u@a\r\n"), 400),
    "host with space": (get(b"Host: a b\r\n"), 400),
    "host with two ports": (get(b"Host: a:1:2\r\n"), 400),
    "host with a port that is none": (get(b"Host: a:x\r\n"), 400),
    "host beyond ASCII": (get(b"Host: \xc3\xa9\r\n"), 400),
    "host with an open bracket": (get(b"Host: [::1\r\n"), 400),
    # Request line.
    "HTTP/0.9": (b"GET /\r\n\r\n" + NEXT, 505),
    "HTTP/0.9 that ends in LF": (b"GET /x\n" + NEXT, 400),
    "HTTP/0.9 by name": (get(line=b"GET / HTTP/0.9"), 505),
    "HTTP/1.2": (get(line=b"GET / HTTP/1.2"), 505),
    "HTTP/2.0": (get(line=b"GET / HTTP/2.0"), 505),
    "HTTP/2 preface": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    "HTTP/1.10": (get(line=b"GET / HTTP/1.10"), 400),
    "HTTP/1": (get(line=b"GET / HTTP/1"), 400),
    "http in lower case": (get(line=b"GET / http/1.1"), 400),
    "RTSP": (get(line=b"GET / RTSP/1.0"), 400),
    "ICE": (get(line=b"SOURCE / ICE/1.0"), 400),
    "TLS hello": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
    "method in lower case": (get(line=b"get / HTTP/1.1"), 501),
    "unknown method": (get(line=b"BREW / HTTP/1.1"), 501),
    "known method with a tail": (get(line=b"GETX / HTTP/1.1"), 501),
    "TRACE": (get(line=b"TRACE / HTTP/1.1"), 501),
    "CONNECT": (get(line=b"CONNECT a:443 HTTP/1.1"), 400),
    "method with a bad character": (get(line=b"G(T / HTTP/1.1"), 400),
    "method beyond ASCII": (get(line=b"G\xc9T / HTTP/1.1"), 400),
    "endless method": (get(line=b"G" * 33 + b" / HTTP/1.1"), 400),
    "no method": (get(line=b" / HTTP/1.1"), 400),
    "absolute form": (get(line=b"GET http://a/ HTTP/1.1"), 400),
    "authority form": (get(line=b"GET a:443 HTTP/1.1"), 400),
    "asterisk with GET": (get(line=b"GET * HTTP/1.1"), 400),
    "relative target": (get(line=b"GET a HTTP/1.1"), 400),
    "empty target": (get(line=b"GET  HTTP/1.1"), 400),
    "fragment": (get(line=b"GET /a#b HTTP/1.1"), 400),
    "fragment in the query": (get(line=b"GET /a?b#c HTTP/1.1"), 400),
    "space in the target": (get(line=b"GET /a b HTTP/1.1"), 400),
    "tab for a space": (get(line=b"GET\t/\tHTTP/1.1"), 400),
    "two spaces": (get(line=b"GET  / HTTP/1.1"), 400),
    "space behind the version": (get(line=b"GET / HTTP/1.1 "), 400),
    "raw bytes in the target": (get(line=b"GET /\xff HTTP/1.1"), 400),
    "control character in the target": (get(line=b"GET /\x01 HTTP/1.1"), 400),
    "NUL in the target": (get(line=b"GET /\x00 HTTP/1.1"), 400),
    "bare CR in the request line": (get(line=b"GET /\r HTTP/1.1"), 400),
    "many empty lines": (b"\r\n" * 3 + get(), 400),
    "bare LF ahead": (b"\n" + get(), 400),
    "bare CR ahead": (b"\r" + get(), 400),
    "space ahead": (b" " + get(), 400),
    "byte order mark": (b"\xef\xbb\xbf" + get(), 400),
    # Heads that look like an upgrade.
    "tunnel with a body": (
        b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc" + NEXT,
        400,
    ),
    "upgrade with two lengths": (
        post(b"Upgrade: h2c\r\nConnection: Upgrade\r\nContent-Length: 3\r\nContent-Length: 5\r\n"),
        400,
    ),
    "upgrade with another coding": (
        post(b"Upgrade: h2c\r\nConnection: Upgrade\r\n" + TE + b"gzip, chunked\r\n"),
        501,
    ),
}


def run(pieces: list[bytes]) -> tuple[list[bytes], RequestFault]:
    """The paths of the requests that came ahead of the fault, and the fault."""
    connection = ServerConnection(Http1Limits())
    paths: list[bytes] = []
    for piece in pieces:
        connection.receive_data(piece)
        while (event := connection.next_event()) is not None:
            if isinstance(event, RequestFault):
                assert connection.phase is Phase.CLOSED
                return paths, event
            assert isinstance(event, Request), event
            paths.append(event.path)
    raise AssertionError(f"no fault, but {paths} and {connection.phase}")


@pytest.mark.parametrize("name", CASES)
def test_whole(name: str) -> None:
    data, status = CASES[name]
    paths, fault = run([data])
    assert paths == []
    assert fault.error.status == status, fault.error


@pytest.mark.parametrize("name", CASES)
def test_byte_by_byte(name: str) -> None:
    data, _ = CASES[name]
    paths, fault = run([data[at : at + 1] for at in range(len(data))])
    assert paths == []
    assert type(fault.error) is type(run([data])[1].error)


@pytest.mark.parametrize("name", CASES)
def test_behind_good_requests(name: str) -> None:
    """A parser that has served every kind of request before refuses the same."""
    data, status = CASES[name]
    good = (
        b"POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nok"
        b"POST /2 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
        b"GET /3 HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n"
        b"GET /4 HTTP/1.1\r\nHost: a\r\nProxy-Connection: close\r\n\r\n"
    )
    paths, fault = run([good + data])
    assert paths == [b"/1", b"/2", b"/3", b"/4"]
    assert fault.error.status == status


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([(b"content-length", b"3"), (b"transfer-encoding", b"chunked")], 400),
        ([(b"content-length", b"3"), (b"content-length", b"3")], 400),
        ([(b"content-length", b"+3")], 400),
        ([(b"content-length", b"3,3")], 400),
        ([(b"content-length", b"")], 400),
        ([(b"content-length", b"1" * 5_000)], 413),
        ([(b"transfer-encoding", b"chunked"), (b"transfer-encoding", b"chunked")], 501),
        ([(b"transfer-encoding", b"chunked,chunked")], 501),
        ([(b"transfer-encoding", b"")], 501),
    ],
)
def test_framing_does_not_rely_on_the_parser(headers: list[tuple[bytes, bytes]], status: int) -> None:
    """llhttp refuses these by itself today; should a later one be lenient, we are not."""
    with pytest.raises(HttpFault) as caught:
        request_framing(b"POST", 1, joined([(b"host", b"a"), *headers]), 100)
    assert caught.value.status == status


def taken(data: bytes) -> bool:
    connection = ServerConnection(Http1Limits())
    connection.receive_data(data)
    return isinstance(connection.next_event(), Request)


def test_every_byte_in_a_header_value() -> None:
    """Visible ASCII, space, tab and the upper half pass; every other byte is refused."""
    passed = [at for at in range(256) if taken(b"GET / HTTP/1.1\r\nHost: a\r\nX: a%bb\r\n\r\n" % bytes([at]))]
    assert passed == [9, *range(32, 127), *range(128, 256)]


def test_every_byte_in_a_header_name() -> None:
    """A token's bytes pass; a colon ends the name early, which is no fault."""
    passed = [at for at in range(256) if taken(b"GET / HTTP/1.1\r\nHost: a\r\nX%bb: 1\r\n\r\n" % bytes([at]))]
    token = b"!#$%&'*+-.^_`|~0123456789:abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    assert passed == sorted(token)


def test_the_cases_are_all_different() -> None:
    assert all(one != two for one, two in pairwise(sorted(data for data, _ in CASES.values())))
