"""A server under test: its routes, real sockets or streams in memory, and clients that speak bytes.

The certificate is for loopback, made for one test run by the openssl command.
"""

import subprocess
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import trio
import trio.testing
from msgspec.structs import replace

from cambist.codecs.http1 import ClientConnection, Http1Limits, Response
from cambist.codecs.messages.resource_messages import maker_error_body
from cambist.config.errors import CambistError, InvalidInput, RateLimited
from cambist.config.sections.server import ServerSettings
from cambist.engine.host.server import AccessLog, HttpCall, Reply, RouteGroup, Router, Server, StreamReply
from cambist.feeds.transport.streams import listen
from support.patience import PATIENCE_S
from support.programs import program

NOW_MS = 1_700_000_000_000
GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
LAST_GET = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"


def encode_error(error: CambistError, request_id: str) -> bytes:
    return msgspec.json.encode(maker_error_body(error))


def post(path: bytes, body: bytes, *headers: bytes) -> bytes:
    length = b"Content-Length: %d" % len(body)
    return b"\r\n".join((b"POST %b HTTP/1.1" % path, b"Host: a", length, *headers, b"", body))


def hello(call: HttpCall) -> Reply:
    return Reply(200, b'"hello"')


def echo(call: HttpCall) -> Reply:
    return Reply(200, call.request.body)


def refuse(call: HttpCall) -> Reply:
    raise InvalidInput(field="side", expected="BUY or SELL", got="HOLD")


def limited(call: HttpCall) -> Reply:
    raise RateLimited


def over_rate(call: HttpCall) -> Reply:
    error = RateLimited()
    error.is_over_rate = True
    raise error


def broken(call: HttpCall) -> Reply:
    raise RuntimeError("the secret of the service")


def wide(call: HttpCall) -> Reply:
    return Reply(200, b'"%b"' % (b"x" * 1_000_000))


async def slow_echo(call: HttpCall) -> Reply:
    await trio.lowlevel.checkpoint()
    return Reply(200, call.request.body)


async def slow_refusal(call: HttpCall) -> Reply:
    await trio.lowlevel.checkpoint()
    over_rate(call)
    raise AssertionError


async def numbers(call: HttpCall) -> StreamReply:
    async def pieces() -> AsyncIterator[bytes]:
        for number in range(3):
            await trio.lowlevel.checkpoint()
            yield b"%d\n" % number

    return StreamReply(content_type=b"text/plain", pieces=pieces())


def a_surface(**options: Any) -> RouteGroup:
    surface = RouteGroup(encode_error, **options)
    surface.plain("GET", "/", hello)
    surface.plain("POST", "/echo", echo)
    surface.plain("GET", "/refuse", refuse)
    surface.plain("GET", "/limited", limited)
    surface.plain("GET", "/over", over_rate)
    surface.plain("GET", "/broken", broken)
    surface.plain("GET", "/wide", wide)
    surface.coroutine("POST", "/slow", slow_echo)
    surface.coroutine("GET", "/slow-refusal", slow_refusal)
    surface.coroutine("GET", "/numbers", numbers)
    return surface


def a_router(*surfaces: RouteGroup) -> Router:
    router = Router(encode_error)
    for surface in surfaces or (a_surface(),):
        router.mount(surface)
    return router


class Served:
    """A server that listens on loopback."""

    def __init__(self, server: Server, port: int) -> None:
        self.server = server
        self.port = port
        self.ended = trio.Event()

    async def connect(self) -> trio.SocketStream:
        return await trio.open_tcp_stream("127.0.0.1", self.port)

    async def connect_from(self, source: str) -> trio.SocketStream:
        """A connection from an address of this machine."""
        ours = trio.socket.socket()
        try:
            await ours.bind((source, 0))
            await ours.connect(("127.0.0.1", self.port))
        except BaseException:
            ours.close()
            raise
        return trio.SocketStream(ours)

    async def converse(self, *pieces: bytes, half_close: bool = False) -> bytes:
        """Send pieces, read to the end."""
        with trio.fail_after(PATIENCE_S):
            async with await self.connect() as stream:
                for piece in pieces:
                    await stream.send_all(piece)
                    await trio.lowlevel.checkpoint()
                if half_close:
                    await stream.send_eof()
                return await read_to_end(stream)


@asynccontextmanager
async def serving(
    router: Router | None = None,
    *,
    reactor: bool,
    access_log: AccessLog | None = None,
    proxies: Sequence[str] = (),
    waits: Mapping[str, float] | None = None,
    **settings: Any,
) -> AsyncIterator[Served]:
    """A server on loopback; cancelled in the end, unless it has ended by then.

    Args:
        waits: bounds of a connection that are no settings, see `Waits`.
    """
    server = Server(
        router or a_router(),
        ServerSettings(port=0, **settings),
        wall_ms=lambda: NOW_MS,
        access_log=access_log,
        reactor=reactor,
        proxies=proxies,
    )
    server._waits = replace(server._waits, **(waits or {}))
    listener = listen("127.0.0.1", 0)
    served = Served(server, listener.getsockname()[1])

    async def run(*, task_status: trio.TaskStatus[None]) -> None:
        await server.serve(listener, task_status=task_status)
        served.ended.set()

    async with trio.open_nursery() as nursery:
        await nursery.start(run)
        yield served
        nursery.cancel_scope.cancel()


class MemoryListener(trio.abc.Listener[trio.abc.Stream]):
    """Gives the server's ends of streams in memory."""

    def __init__(
        self,
        pair: Callable[[], tuple[trio.abc.Stream, trio.abc.Stream]] = trio.testing.memory_stream_pair,
    ) -> None:
        self._pair = pair
        self._send, self._receive = trio.open_memory_channel[trio.abc.Stream](100)

    def connect(self) -> trio.StapledStream[Any, Any]:
        ours, theirs = self._pair()
        self._send.send_nowait(theirs)
        assert isinstance(ours, trio.StapledStream)
        return ours

    async def accept(self) -> trio.abc.Stream:
        return await self._receive.receive()

    async def aclose(self) -> None:
        self._send.close()
        self._receive.close()
        await trio.lowlevel.checkpoint()


@asynccontextmanager
async def serving_memory(
    router: Router | None = None, listener: MemoryListener | None = None, **settings: Any
) -> AsyncIterator[tuple[Server, MemoryListener]]:
    server = Server(router or a_router(), ServerSettings(**settings), wall_ms=lambda: NOW_MS)
    listener = listener or MemoryListener()
    async with trio.open_nursery() as nursery:
        await nursery.start(server.serve, listener)
        yield server, listener
        nursery.cancel_scope.cancel()


async def read_to_end(stream: trio.abc.ReceiveStream) -> bytes:
    """All that comes until the end; a reset is an end too, and says so."""
    data = bytearray()
    try:
        while piece := await stream.receive_some(65_536):
            data += piece
    except trio.BrokenResourceError:
        data += b"<RESET>"
    return bytes(data)


def answers(data: bytes, *methods: bytes) -> list[Response]:
    """The answers in what a server wrote: as many as `methods`, or GETs as long as there is more."""
    found: list[Response] = []
    client = ClientConnection(WIDE)
    while data:
        head, _, _ = data.partition(b"\r\n\r\n")
        if head.startswith(b"HTTP/1.1 1"):
            data = data[len(head) + 4 :]
            continue
        method = methods[len(found)] if len(found) < len(methods) else b"GET"
        client = ClientConnection(WIDE)
        client.send_request(method, b"/", b"a")
        size = _answer_size(data, method)
        response = client.receive_data(data[:size])
        assert response is not None, data[:size]
        found.append(response)
        data = data[size:]
    return found


WIDE = Http1Limits(body_bytes_max=16 << 20)


def _answer_size(data: bytes, method: bytes) -> int:
    head, gap, rest = data.partition(b"\r\n\r\n")
    start = len(head) + len(gap)
    lines = head.lower().split(b"\r\n")
    if method == b"HEAD" or lines[0].split()[1] in (b"204", b"304"):
        return start
    if b"transfer-encoding: chunked" in lines:
        return start + rest.index(b"0\r\n\r\n") + 5
    (length,) = (int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length:"))
    return start + length


def statuses(data: bytes, *methods: bytes) -> list[int]:
    return [answer.status for answer in answers(data, *methods)]


def field(answer: Response, name: bytes) -> bytes | None:
    return dict(answer.headers).get(name)


def make_certificate(folder: Path) -> tuple[str, str]:
    """Certificate and key, PEM files in `folder`; the certificate is its own authority."""
    certificate, key = str(folder / "certificate.pem"), str(folder / "key.pem")
    subprocess.run(
        [
            program("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
            "-nodes", "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=localhost",
            "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
        ],
        check=True, capture_output=True, timeout=PATIENCE_S,
    )  # fmt: skip
    return certificate, key
