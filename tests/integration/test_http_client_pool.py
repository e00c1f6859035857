"""The HTTP client's connections: which are used again, for what, and how they end. Real sockets."""

import ssl

import pytest
import trio

from cambist.codecs.http1 import Http1Limits, Response
from cambist.config.errors import MakerError
from cambist.feeds.transport import http_client
from cambist.feeds.transport.http_client import HttpClient
from cambist.feeds.transport.lean_stream import LeanStream
from cambist.feeds.transport.streams import client_tls, server_tls
from support.patience import PATIENCE_S
from support.server.scripted_server import OK, Caller, keep_answering, scripted_server
from support.server.server_harness import make_certificate

LIMITS = Http1Limits(body_bytes_max=1_000, answer_head_bytes_max=1_000)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    return make_certificate(tmp_path_factory.mktemp("tls"))


def client_of(port: int, *, tls: ssl.SSLContext | None = None) -> HttpClient:
    return HttpClient("localhost" if tls else "127.0.0.1", port, connections_max=4, limits=LIMITS, tls=tls)


async def post(client: HttpClient) -> Response:
    return await client.request(b"POST", b"/", deadline_s=PATIENCE_S)


async def failure_of(client: HttpClient) -> str:
    with pytest.raises(MakerError) as caught:
        await post(client)
    return caught.value.detail


@pytest.mark.parametrize(
    ("method", "repeats"),
    [(b"GET", True), (b"HEAD", True), (b"PUT", True), (b"DELETE", True), (b"POST", False), (b"PATCH", False)],
)
async def test_only_what_may_be_taken_twice_is_sent_twice(method: bytes, repeats: bool) -> None:
    async def dies(caller: Caller) -> None:
        await caller.answer()
        await caller.request()

    async def answers_empty(caller: Caller) -> None:
        await caller.answer(b"HTTP/1.1 204 No Content\r\n\r\n")

    async with scripted_server(dies, answers_empty) as port, client_of(port) as client:
        await post(client)
        if repeats:
            assert (await client.request(method, b"/", deadline_s=PATIENCE_S)).status == 204
        else:
            with pytest.raises(MakerError, match="closed by the other side"):
                await client.request(method, b"/", deadline_s=PATIENCE_S)
        assert client.statistics().retries == int(repeats)


async def test_leaving_the_client_ends_what_is_under_way_over_tls(certificate: tuple[str, str]) -> None:
    server, trusting = server_tls(*certificate), client_tls(certificate[0])
    asked = trio.Event()
    told: list[str] = []

    async def hangs(caller: Caller) -> None:
        await caller.request()
        asked.set()
        assert await caller.at_end()

    async def ask(client: HttpClient) -> None:
        told.append(await failure_of(client))

    with trio.fail_after(PATIENCE_S):
        async with (
            scripted_server(hangs, tls=server) as port,
            trio.open_nursery() as nursery,
            client_of(port, tls=trusting) as client,
        ):
            nursery.start_soon(ask, client)
            await asked.wait()
    assert [text.endswith("the client was closed") for text in told] == [True]


class _Held(trio.abc.SendStream):
    """Keeps what is sent."""

    def __init__(self) -> None:
        self.data = b""

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        self.data += data

    async def wait_send_all_might_not_block(self) -> None:
        raise NotImplementedError

    async def aclose(self) -> None:
        raise NotImplementedError


async def test_over_tls_an_answer_nobody_asked_for_is_nobodys(certificate: tuple[str, str]) -> None:
    """The extra answer arrives in one segment with the answer before it, so only the TLS object holds it."""

    async def script(caller: Caller) -> None:
        await caller.request()
        secured = caller.stream
        assert isinstance(secured, trio.SSLStream)
        plain, held = secured.transport_stream, _Held()
        secured.transport_stream = held
        await secured.send_all(OK)
        await secured.send_all(OK.replace(b"ok", b"ko"))
        secured.transport_stream = plain
        await plain.send_all(held.data)
        assert await caller.at_end()

    server, trusting = server_tls(*certificate), client_tls(certificate[0])
    async with (
        scripted_server(script, keep_answering, tls=server) as port,
        client_of(port, tls=trusting) as client,
    ):
        assert [(await post(client)).body for _ in range(3)] == [b"ok"] * 3
        assert client.statistics().dialled == 2


async def test_a_connection_closed_while_idle_is_closed_without_a_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_client, "HTTP_POOL_LOOK_S", 0.01)

    async def script(caller: Caller) -> None:
        await caller.answer()
        await caller.stream.aclose()

    async with scripted_server(script) as port, client_of(port) as client:
        await post(client)
        with trio.fail_after(PATIENCE_S):
            while client.statistics().idle:
                await trio.lowlevel.checkpoint()


async def test_leaving_the_client_while_it_closes_idle_connections_leaves_none_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_client, "HTTP_POOL_LOOK_S", 0.01)
    closing, leaving = trio.Event(), trio.Event()
    closed: list[LeanStream] = []

    class Lingering(LeanStream):
        async def aclose(self) -> None:
            self.close()
            closed.append(self)
            closing.set()
            with trio.CancelScope(shield=True):
                await leaving.wait()
            await trio.lowlevel.checkpoint()

    async def dial(host: str, port: int, **_: object) -> trio.abc.Stream:
        return Lingering(await trio.open_tcp_stream(host, port))

    async with scripted_server(keep_answering) as port:
        async with HttpClient("127.0.0.1", port, connections_max=3, limits=LIMITS, dial=dial) as client:
            async with trio.open_nursery() as nursery:
                for _ in range(3):
                    nursery.start_soon(post, client)
            assert client.statistics().idle == 3
            monkeypatch.setattr(http_client, "HTTP_POOL_IDLE_S", 0.0)
            await closing.wait()
            leaving.set()
        assert len(closed) == 3
