"""HTTP/1.1 framing: however the bytes are split the outcome is the same, and it is never an exception.

Oracles: h11 for well-formed requests, our own client for what our server writes, and the reverse.
"""

from collections.abc import Sequence
from itertools import pairwise

import h11
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cambist.codecs.http1 import (
    LAST_CHUNK,
    METHODS,
    ClientConnection,
    Closed,
    Http1Limits,
    Request,
    RequestFault,
    Response,
    ServerConnection,
    Upgrade,
    encode_chunk,
    encode_response,
    encode_stream_head,
)
from cambist.config.errors import MakerError
from support.examples import examples

LIMITS = Http1Limits(
    target_bytes_max=60,
    header_bytes_max=160,
    header_count_max=6,
    body_bytes_max=40,
    chunk_count_max=6,
    requests_per_connection_max=6,
)
WIDE = Http1Limits()

TOKEN = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
VISIBLE = "".join(map(chr, range(0x21, 0x7F)))
NOT_FREE = {
    b"host",
    b"content-length",
    b"transfer-encoding",
    b"connection",
    b"upgrade",
    b"trailer",
    b"expect",
}

names = (
    st.text(TOKEN, min_size=1, max_size=12).map(str.encode).filter(lambda name: name.lower() not in NOT_FREE)
)
values = st.text(VISIBLE + " \t\xe9", max_size=30).map(lambda text: text.encode("latin-1").strip(b" \t"))
headers = st.lists(st.tuples(names, values), max_size=8)
bodies = st.binary(max_size=300) | st.sampled_from([b"\r\n\r\n", b"0\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n"])
targets = st.text(VISIBLE.replace("#", ""), max_size=30).map(lambda text: b"/" + text.encode())

# Pieces that a request stream is made of, good and bad, so that the fuzz gets deep.
FRAGMENTS = [
    b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    b"POST /x?y HTTP/1.1\r\nHost: a\r\n",
    b"POST / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n",
    b"GET /ws HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: ",
    b"GET ",
    b"OPTIONS * ",
    b"FOO / HTTP/1.1\r\n",
    b"/" + b"p" * 60,
    b" HTTP/1.1\r\n",
    b" HTTP/2.0\r\n",
    b"Host: a\r\n",
    b"Content-Length: 3\r\n\r\nabc",
    b"Content-Length: 41\r\n",
    b"Content-Length: 5\r\n",
    b"Content-Length: 99999999999999999999999\r\n",
    b"Transfer-Encoding: chunked\r\n\r\n",
    b"Transfer-Encoding: gzip\r\n",
    b"Transfer-Encoding: chunked, chunked\r\n",
    b"Expect: 100-continue\r\n",
    b"Expect: x\r\n",
    b"Connection: close\r\n",
    b"Connection: upgrade\r\nUpgrade: h2c\r\n",
    b"websocket\r\n",
    b"X: " + b"v" * 80 + b"\r\n",
    b"X: y \t\r\n",
    b" folded\r\n",
    b"3\r\nabc\r\n",
    b"29\r\n",
    b"3;ext\r\nabc\r\n",
    b"0\r\n",
    b"0\r\n\r\n",
    b"\r\n",
    b"\r",
    b"\n",
    b"\x00",
    b"\xff",
    b"abc",
    b":",
    b" ",
]
ANSWER_FRAGMENTS = [
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
    b"HTTP/1.1 200 OK\r\n",
    b"HTTP/1.0 200 OK\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/1.1 101 Switching\r\n\r\n",
    b"HTTP/1.1 204 No Content\r\n\r\n",
    *(fragment for fragment in FRAGMENTS if not fragment.startswith((b"GET", b"POST", b"/", b"FOO"))),
]
wires = st.lists(st.sampled_from(FRAGMENTS), max_size=9).map(b"".join) | st.binary(max_size=60)
answer_wires = st.lists(st.sampled_from(ANSWER_FRAGMENTS), max_size=7).map(b"".join) | st.binary(max_size=60)


def split(data: bytes, cuts: Sequence[int]) -> list[bytes]:
    ends = sorted({cut % (len(data) + 1) for cut in cuts} | {0, len(data)})
    return [data[start:end] for start, end in pairwise(ends)]


cuts = st.lists(st.integers(0, 10_000), max_size=6)


def server_outcome(pieces: Sequence[bytes]) -> list[object]:
    """All events, faults as their class, an upgrade's bytes joined, and the phase at the end of input."""
    connection = ServerConnection(LIMITS)
    outcome: list[object] = []
    for number, piece in enumerate(pieces):
        connection.receive_data(piece)
        while (event := connection.next_event()) is not None:
            if isinstance(event, Upgrade):
                return [*outcome, event.request, event.trailing + b"".join(pieces[number + 1 :])]
            outcome.append(type(event.error) if isinstance(event, RequestFault) else event)
    outcome.append(connection.phase)
    connection.receive_eof()
    last = connection.next_event()
    assert last is None or isinstance(last, Closed)
    return [*outcome, last]


def client_outcome(pieces: Sequence[bytes]) -> list[object]:
    connection = ClientConnection(LIMITS)
    connection.send_request(b"POST", b"/", b"a", body=b"{}")
    outcome: list[object] = []
    try:
        for piece in pieces:
            response = connection.receive_data(piece)
            if response is not None:
                outcome.append((response.status, response.headers, response.body))
        connection.receive_eof()
    except MakerError:
        outcome.append(MakerError)
    return outcome


@settings(max_examples=examples(100), deadline=None)
@given(wires, cuts)
@example(b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\nX: y\n\r\n\r\n", [])
@example(2 * FRAGMENTS[2] + b"\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", [])
def test_requests_do_not_depend_on_the_split(data: bytes, where: list[int]) -> None:
    whole = server_outcome([data])
    assert server_outcome(split(data, where)) == whole
    assert server_outcome([data[at : at + 1] for at in range(len(data))]) == whole


@settings(max_examples=examples(80), deadline=None)
@given(answer_wires, cuts)
def test_answers_do_not_depend_on_the_split(data: bytes, where: list[int]) -> None:
    whole = client_outcome([data])
    if any(isinstance(event, tuple) for event in whole):
        whole = [whole[0]]  # bytes behind an answer show at the next call, if any
    for pieces in (split(data, where), [data[at : at + 1] for at in range(len(data))]):
        assert client_outcome(pieces)[: len(whole)] == whole


@settings(max_examples=examples(75), deadline=None)
@given(st.sampled_from(METHODS), targets, headers, bodies, cuts)
def test_our_server_reads_what_our_client_sends(
    method: bytes, target: bytes, fields: list[tuple[bytes, bytes]], body: bytes, where: list[int]
) -> None:
    sent = ClientConnection(WIDE).send_request(method, target, b"maker.example", fields, body)
    server = ServerConnection(WIDE)
    events = []
    for piece in split(sent, where):
        server.receive_data(piece)
        events += list(iter(server.next_event, None))
    (request,) = events
    assert isinstance(request, Request)
    assert (request.method, request.target, request.body) == (method, target, body)
    lower = [(name.lower(), value) for name, value in fields]
    assert [pair for pair in request.headers if pair[0] not in NOT_FREE] == lower
    assert request.keep_alive


def received(pieces: Sequence[bytes], method: bytes = b"POST") -> Response:
    client = ClientConnection(WIDE)
    client.send_request(method, b"/", b"a")
    *nothing, response = [client.receive_data(piece) for piece in pieces]
    assert nothing == [None] * len(nothing)
    assert response is not None
    return response


@settings(max_examples=examples(75), deadline=None)
@given(
    st.integers(200, 599).filter(lambda status: status not in (204, 304)),
    headers,
    bodies,
    st.booleans(),
    st.booleans(),
    cuts,
)
def test_our_client_reads_what_our_server_writes(
    status: int,
    fields: list[tuple[bytes, bytes]],
    body: bytes,
    keep_alive: bool,
    head: bool,
    where: list[int],
) -> None:
    sent = encode_response(status, body, extra_headers=fields, keep_alive=keep_alive, head=head)
    response = received(split(sent, where), b"HEAD" if head else b"POST")
    assert (response.status, response.keep_alive) == (status, keep_alive)
    assert response.body == (b"" if head else body)
    assert (b"content-length", str(len(body)).encode()) in response.headers
    assert response.headers[2:-1] == [(name.lower(), value) for name, value in fields]


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(bodies, max_size=5), cuts)
def test_our_client_reads_a_stream(chunks: list[bytes], where: list[int]) -> None:
    sent = encode_stream_head(200, content_type=b"text/event-stream")
    sent += b"".join(encode_chunk(chunk) for chunk in chunks) + LAST_CHUNK
    assert received(split(sent, where)).body == b"".join(chunks)


@settings(max_examples=examples(75), deadline=None)
@given(st.sampled_from(METHODS), targets, headers, st.lists(bodies, max_size=4), st.booleans(), st.booleans())
def test_h11_reads_the_same(
    method: bytes,
    target: bytes,
    fields: list[tuple[bytes, bytes]],
    chunks: list[bytes],
    coded: bool,
    spaced: bool,
) -> None:
    body = b"".join(chunks)
    framing = (b"Transfer-Encoding", b"chunked") if coded else (b"Content-Length", b"%d" % len(body))
    space = b" \t" if spaced else b""
    lines = [b"%b:%b%b%b\r\n" % (name, space, value, space) for name, value in [(b"Host", b"a"), *fields]]
    lines.append(b"%b: %b\r\n" % framing)  # llhttp takes no tab behind `chunked`
    wire = b"%b %b HTTP/1.1\r\n%b\r\n" % (method, target, b"".join(lines))
    wire += b"".join(map(encode_chunk, chunks)) + LAST_CHUNK if coded else body

    ours = ServerConnection(WIDE)
    ours.receive_data(wire)
    request = ours.next_event()
    assert isinstance(request, Request)

    theirs = h11.Connection(h11.SERVER)
    theirs.receive_data(wire)
    head = theirs.next_event()
    assert isinstance(head, h11.Request)
    data = b""
    while isinstance(event := theirs.next_event(), h11.Data):
        data += bytes(event.data)
    assert isinstance(event, h11.EndOfMessage)
    assert (request.method, request.target, request.body) == (head.method, head.target, data)
    assert request.headers == [(bytes(name), bytes(value)) for name, value in head.headers]


@settings(max_examples=examples(50), deadline=None)
@given(st.integers(200, 599), headers, bodies)
def test_h11_reads_our_responses(status: int, fields: list[tuple[bytes, bytes]], body: bytes) -> None:
    body = b"" if status in (204, 304) else body
    peer = h11.Connection(h11.CLIENT)
    peer.send(h11.Request(method="GET", target="/", headers=[("host", "a")]))
    peer.send(h11.EndOfMessage())
    peer.receive_data(encode_response(status, body, extra_headers=fields))
    head = peer.next_event()
    assert isinstance(head, h11.Response)
    assert head.status_code == status
    data = b""
    while isinstance(event := peer.next_event(), h11.Data):
        data += bytes(event.data)
    assert isinstance(event, h11.EndOfMessage)
    assert data == body


@pytest.mark.parametrize("size", [1, 7, 4_096, 65_536])
def test_a_burst_of_pipelined_requests(size: int) -> None:
    one = b"POST /firm HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
    wire = one * 200
    connection = ServerConnection(WIDE)
    count = 0
    for start in range(0, len(wire), size):
        connection.receive_data(wire[start : start + size])
        for event in iter(connection.next_event, None):
            assert isinstance(event, Request)
            assert event.body == b"hello"
            count += 1
    assert count == 200
