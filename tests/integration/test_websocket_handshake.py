"""Opening handshakes of the WebSocket driver, both ways; time is the test's."""

import pytest
import trio
from trio.testing import MockClock, memory_stream_pair, wait_all_tasks_blocked

from cambist.config.errors import HttpFault, MakerError
from cambist.config.timeouts import (
    WEBSOCKET_OPEN_S,
)
from cambist.feeds.transport.websocket import (
    HandshakeRefused,
    connect_websocket,
    serve_websocket,
)
from support.server.raw_websocket import (
    ACCEPT,
    TEXT,
    RawPeer,
    answer_handshake,
    connected,
    frame,
    our_server,
    upgrade,
)

# --- The opening handshake, as the server ---------------------------------------------------------


async def test_a_handshake_is_answered_as_the_rfc_shows(autojump_clock: MockClock) -> None:
    near, far = memory_stream_pair()
    async with serve_websocket(near, upgrade(), message_bytes_max=100, send_bytes_max=100):
        head = await RawPeer(far, masks=True).head()
    status, *fields = head[:-4].split(b"\r\n")
    assert status == b"HTTP/1.1 101 Switching Protocols"
    assert sorted(fields) == [
        b"Connection: Upgrade",
        b"Sec-WebSocket-Accept: " + ACCEPT,
        b"Upgrade: websocket",
    ]


@pytest.mark.parametrize(
    ("header", "value", "text"),
    [
        (b"sec-websocket-version", b"8", "invalid Sec-WebSocket-Version header: 8"),
        (b"sec-websocket-version", None, "missing Sec-WebSocket-Version header"),
        (b"sec-websocket-key", None, "missing Sec-WebSocket-Key header"),
        (b"sec-websocket-key", b"c2hvcnQ=", "invalid Sec-WebSocket-Key header: c2hvcnQ="),
        (b"sec-websocket-key", b"\xff!", "invalid Sec-WebSocket-Key header"),
    ],
)
async def test_a_malformed_handshake_raises_before_anything_is_written(
    autojump_clock: MockClock, header: bytes, value: bytes | None, text: str
) -> None:
    near, far = memory_stream_pair()
    with pytest.raises(HttpFault, match=text):
        async with serve_websocket(near, upgrade((header, value)), message_bytes_max=9, send_bytes_max=9):
            pytest.fail("opened")
    await near.aclose()
    assert await far.receive_some() == b""


async def test_compression_is_not_accepted(autojump_clock: MockClock) -> None:
    near, far = memory_stream_pair()
    offer = upgrade((b"sec-websocket-extensions", b"permessage-deflate"))
    async with serve_websocket(near, offer, message_bytes_max=100, send_bytes_max=100):
        assert b"xtension" not in await RawPeer(far, masks=True).head()


async def test_bytes_behind_the_handshake_are_the_first_message(autojump_clock: MockClock) -> None:
    async with our_server(trailing=frame(TEXT, b"early", masked=True)) as (socket, _):
        assert await socket.receive() == "early"


# --- The opening handshake, as the client ---------------------------------------------------------


async def test_the_handshake_carries_path_host_and_headers_and_offers_no_compression(
    autojump_clock: MockClock,
) -> None:
    near, far = memory_stream_pair()
    heads: list[bytes] = []

    async def server() -> None:
        heads.append(await answer_handshake(RawPeer(far, masks=False), frame(TEXT, b"early", masked=False)))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(server)
        async with connected(near) as socket:
            assert await socket.receive() == "early"
    lines = heads[0].split(b"\r\n")
    assert lines[0] == b"GET /ws?a=1 HTTP/1.1"
    assert {b"Host: maker.example:443", b"X-AUTH-DOMAIN: venue", b"Sec-WebSocket-Version: 13"} <= set(lines)
    assert b"xtensions" not in heads[0]


async def refused_by(*answer: bytes, ends: bool = True) -> MakerError:
    """The error of a handshake that is answered with these pieces."""
    near, far = memory_stream_pair()

    async def server() -> None:
        await RawPeer(far, masks=False).head()
        for piece in answer:
            await far.send_all(piece)
            await wait_all_tasks_blocked()
        if ends:
            await far.aclose()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(server)
        with pytest.raises(MakerError) as caught:
            async with connected(near):
                pytest.fail("opened")
    assert not await far.receive_some() if not ends else True
    return caught.value


REFUSAL = b'{"error":"X-AUTH-SIGNATURE: does not fit"}'


@pytest.mark.parametrize(
    "answer",
    [
        [b"HTTP/1.1 401 Unauthorized\r\ncontent-length: %d\r\n\r\n%b" % (len(REFUSAL), REFUSAL)],
        [b"HTTP/1.1 401 Unauthorized\r\nconnection: close\r\n\r\n", REFUSAL],
        [b"HTTP/1.1 401 Un", b"authorized\r\n\r", b"\n" + REFUSAL[:7], REFUSAL[7:]],
        [
            b"HTTP/1.1 401 U\r\ntransfer-encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n"
            % (len(REFUSAL), REFUSAL)
        ],
    ],
)
async def test_a_refused_handshake_shows_status_and_body(
    autojump_clock: MockClock, answer: list[bytes]
) -> None:
    error = await refused_by(*answer)
    assert isinstance(error, HandshakeRefused)
    assert (error.status, error.body) == (401, REFUSAL)
    assert "401" in error.detail
    assert "X-AUTH-SIGNATURE" in error.detail


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", "refused with 200"),
        (b"SSH-2.0-OpenSSH\r\n", "no whole HTTP answer .* began with 'SSH-2.0-OpenSSH'"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "no whole HTTP answer .* began with 'SSH-2.0-OpenSSH'"),
        (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", "refused with 101: missing Connection header"),
        (b"HTTP/1.1 101 Go\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "
         + ACCEPT + b"\r\n\r\n", "refused with 101: invalid Sec-WebSocket-Accept"),
        (b"", "no answer to the handshake"),
        (b"HTTP/1.1 500 E\r\nx: " + b"a" * 100_000, "no whole HTTP answer .* began with 'HTTP/1.1 500 E'"),
        (b"HTTP/1.1 500 E\r\ncontent-length: 200000\r\n\r\n" + b"a" * 100_000, "no whole HTTP answer"),
    ],
)  # fmt: skip
async def test_an_answer_that_is_no_handshake_is_told(
    autojump_clock: MockClock, answer: bytes, text: str
) -> None:
    with pytest.raises(MakerError, match=text):
        raise await refused_by(answer)


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 503 Down\r\ncontent-length: 9\r\n\r\nhalf"])
async def test_a_handshake_that_is_not_answered_ends_in_time(
    autojump_clock: MockClock, answer: bytes
) -> None:
    start = trio.current_time()
    error = await refused_by(answer, ends=False)
    assert trio.current_time() - start == pytest.approx(WEBSOCKET_OPEN_S)
    assert f"within {WEBSOCKET_OPEN_S:g} s" in error.detail
    assert ("503 Down" in error.detail) is bool(answer)


@pytest.mark.parametrize(
    ("path", "name", "value"), [("ws", "a", "b"), ("/a b", "a", "b"), ("/", "a", "b\r\nc: d")]
)
async def test_what_would_break_the_framing_is_refused(
    autojump_clock: MockClock, path: str, name: str, value: str
) -> None:
    with pytest.raises(ValueError, match=r"not a path|control character"):
        async with connect_websocket(
            "maker.example", 1, path, tls=None, headers={name: value}, message_bytes_max=9, send_bytes_max=9
        ):
            pytest.fail("opened")
