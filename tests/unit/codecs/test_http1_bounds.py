"""The server's side of a connection: costly work is bounded, and the memory of bodies is counted."""

import pytest

from cambist.codecs.http1 import (
    Bodies,
    Closed,
    Event,
    Http1Limits,
    Phase,
    Request,
    RequestFault,
    ServerConnection,
    encode_chunk,
)
from cambist.codecs.http1.fields import FieldSink

LIMITS = Http1Limits()


def drain(connection: ServerConnection, data: bytes) -> list[Event]:
    connection.receive_data(data)
    return list(iter(connection.next_event, None))


def post(line: bytes, body: bytes = b"") -> bytes:
    return b"\r\n".join((b"POST /firm HTTP/1.1", b"Host: a", line, b"", body))


def chunked(*chunks: bytes) -> bytes:
    coded = b"".join(encode_chunk(chunk) for chunk in chunks)
    return post(b"Transfer-Encoding: chunked", coded + b"0\r\n\r\n")


def test_tiny_chunks_are_read_a_part_at_a_time() -> None:
    connection = ServerConnection(LIMITS)
    connection.receive_data(chunked(*[b"x"] * 1_000) + b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    rests = 0
    while (event := connection.next_event()) is None:
        assert connection.is_due
        assert connection.phase is Phase.BODY
        rests += 1
    assert isinstance(event, Request)
    assert event.body == b"x" * 1_000
    assert rests == 1_001 // 128
    assert not connection.is_due
    assert isinstance(connection.next_event(), Request)


def test_the_end_of_input_waits_for_the_chunks_at_hand() -> None:
    connection = ServerConnection(LIMITS)
    connection.receive_data(chunked(*[b"x"] * 300))
    connection.receive_eof()
    events = [connection.next_event() for _ in range(5)]
    assert [type(event) for event in events] == [type(None), type(None), Request, Closed, type(None)]


def test_too_many_fields_are_refused_before_llhttp_sees_them(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[bytes] = []
    monkeypatch.setattr(FieldSink, "on_header", lambda self, name, value: calls.append(name))
    head = b"GET / HTTP/1.1\r\nHost: a\r\n" + b"a:b\r\n" * 1_600 + b"\r\n"
    (fault,) = drain(ServerConnection(LIMITS), head)
    assert isinstance(fault, RequestFault)
    assert fault.error.status == 431
    assert not calls


@pytest.mark.parametrize("count", [63, 64])
def test_the_bound_of_fields_is_exact(count: int) -> None:
    head = b"GET / HTTP/1.1\r\nHost: a\r\n" + b"a:b\r\n" * count + b"\r\n"
    (event,) = drain(ServerConnection(LIMITS), head)
    assert type(event) is (Request if count == 63 else RequestFault)


@pytest.mark.parametrize(
    ("data", "path"),
    [
        (post(b"Content-Length: 9999999"), b"/firm"),
        (post(b"Transfer-Encoding: chunked", b"zz\r\n"), b"/firm"),
        (b"garbage\r\n\r\n", None),
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\ngarbage\r\n\r\n", None),
    ],
)
def test_a_fault_knows_its_request_once_the_head_is_read(data: bytes, path: bytes | None) -> None:
    fault = drain(ServerConnection(LIMITS), data)[-1]
    assert isinstance(fault, RequestFault)
    assert (fault.request and fault.request.path) == path


def test_bodies_are_counted_until_the_next_request_or_the_end() -> None:
    bodies = Bodies(100, lambda request: 60 if request.path == b"/firm" else 90, 60)
    first, second = ServerConnection(LIMITS, bodies), ServerConnection(LIMITS, bodies)
    assert drain(first, post(b"Content-Length: 60", b"x" * 59)) == []
    assert bodies.bytes == 59
    refused = drain(second, post(b"Content-Length: 50", b"x" * 42))
    assert isinstance(refused[-1], RequestFault)
    assert refused[-1].error.status == 503
    assert bodies.bytes == 59
    first.receive_data(b"x")
    assert isinstance(first.next_event(), Request)
    assert bodies.bytes == 60
    assert first.next_event() is None
    assert bodies.bytes == 0
    drain(first, post(b"Content-Length: 60", b"x" * 10))
    first.release()
    assert bodies.bytes == 0


@pytest.mark.parametrize(("path", "size", "taken"), [(b"/firm", 61, False), (b"/rest", 61, True)])
def test_the_bound_of_a_body_is_that_of_its_path(path: bytes, size: int, *, taken: bool) -> None:
    bodies = Bodies(1_000, lambda request: 60 if request.path == b"/firm" else 90, 60)
    for wire in (post(b"Content-Length: %d" % size, b"x" * size), chunked(b"x" * size)):
        event = drain(ServerConnection(LIMITS, bodies), wire.replace(b"/firm", path))[-1]
        assert isinstance(event, Request) is taken
