"""httpx through our network port, against scripted servers on real sockets."""

import gzip
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import httpx
import pytest
import trio
import trio.testing
from bench.peers.ports import held_port, port_of

from cambist.codecs.http1 import Http1Limits
from cambist.feeds.transport import http_client
from cambist.feeds.transport.httpx_transport import DialTransport
from cambist.feeds.transport.streams import client_tls, server_tls
from support.server.scripted_server import OK, Caller, keep_answering, scripted_server
from support.server.server_harness import make_certificate

LONG_S = 30.0
BOMB = gzip.compress(bytes(1 << 20))
LIMITS = Http1Limits(body_bytes_max=100_000)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    return make_certificate(tmp_path_factory.mktemp("tls"))


@asynccontextmanager
async def client(
    tls: ssl.SSLContext | None = None, *, connections_max: int = 4, deadline_s: float = LONG_S
) -> AsyncGenerator[httpx.AsyncClient]:
    transport = DialTransport(tls=tls or client_tls(), connections_max=connections_max, limits=LIMITS)
    async with httpx.AsyncClient(transport=transport, timeout=deadline_s) as opened:
        yield opened


async def test_requests_share_a_connection() -> None:
    async def script(caller: Caller) -> None:
        request = await caller.answer()
        assert (request.method, request.target, request.body) == (b"POST", b"/rpc?a=1", b'{"id":1}')
        fields = dict(request.headers)
        assert fields[b"host"] == b"127.0.0.1:%d" % port
        assert fields[b"accept-encoding"] == b"identity"
        await caller.answer()

    async def only_once(_: Caller) -> None:
        pytest.fail("connected again")

    async with scripted_server(script, only_once) as port, client() as http:
        answer = await http.post(f"http://127.0.0.1:{port}/rpc?a=1", json={"id": 1})
        assert (answer.status_code, answer.text) == (200, "ok")
        assert (await http.get(f"http://127.0.0.1:{port}/")).text == "ok"


async def test_cookies_are_not_kept() -> None:
    async def script(caller: Caller) -> None:
        for number in range(3):
            answer = b"HTTP/1.1 200 OK\r\nset-cookie: c%d=%d\r\ncontent-length: 2\r\n\r\nok" % (
                number,
                number,
            )
            request = await caller.answer(answer)
            assert b"cookie" not in dict(request.headers)

    async with scripted_server(script) as port, client() as http:
        for _ in range(3):
            assert (await http.get(f"http://127.0.0.1:{port}/")).text == "ok"
        assert not len(http.cookies)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" + OK,
        b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
    ],
)
async def test_answers_of_any_shape(answer: bytes) -> None:
    async def script(caller: Caller) -> None:
        await caller.answer(answer)

    async with scripted_server(script) as port, client() as http:
        assert (await http.get(f"http://127.0.0.1:{port}/")).text == "ok"


async def test_over_tls(certificate: tuple[str, str]) -> None:
    async with (
        scripted_server(keep_answering, tls=server_tls(*certificate)) as port,
        client(client_tls(certificate[0])) as http,
    ):
        for size in (1, 200_000):
            assert (await http.post(f"https://localhost:{port}/", content=b"a" * size)).text == "ok"
        with pytest.raises((httpx.ReadError, httpx.RemoteProtocolError)):
            await http.get(f"http://localhost:{port}/")


async def test_an_untrusted_certificate_is_a_connect_error(certificate: tuple[str, str]) -> None:
    async def never(caller: Caller) -> None:
        with pytest.raises((trio.BrokenResourceError, EOFError)):
            await caller.request()

    async with scripted_server(never, tls=server_tls(*certificate)) as port, client() as http:
        with pytest.raises(httpx.ConnectError, match="self-signed certificate"):
            await http.get(f"https://localhost:{port}/")


async def test_a_refused_connection() -> None:
    with held_port() as unused:
        async with client() as http:
            with pytest.raises(httpx.ConnectError, match="Connection refused"):
                await http.get(f"http://127.0.0.1:{port_of(unused)}/")


async def test_a_connection_closed_while_idle_is_not_used() -> None:
    async def script(caller: Caller) -> None:
        await caller.answer()
        await caller.stream.aclose()
        closed.set()

    closed = trio.Event()
    async with scripted_server(script, keep_answering) as port, client() as http:
        assert (await http.get(f"http://127.0.0.1:{port}/")).text == "ok"
        await closed.wait()
        assert (await http.get(f"http://127.0.0.1:{port}/")).text == "ok"


async def test_a_post_is_never_sent_twice() -> None:
    async def dies(caller: Caller) -> None:
        await caller.answer()
        await caller.request()

    async with scripted_server(dies, keep_answering) as port, client() as http:
        for method, status in (("GET", 200), ("POST", None), ("GET", 200)):
            if status:
                assert (await http.request(method, f"http://127.0.0.1:{port}/")).status_code == status
            else:
                with pytest.raises(httpx.RemoteProtocolError, match="closed by the other side"):
                    await http.request(method, f"http://127.0.0.1:{port}/")


async def test_a_host_without_connections_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "HTTP_POOL_LOOK_S", 0.01)

    async def once(caller: Caller) -> None:
        await caller.answer()

    transport = DialTransport(tls=client_tls(), connections_max=1, limits=LIMITS)
    async with (
        scripted_server(once) as first,
        scripted_server(keep_answering) as second,
        scripted_server(keep_answering) as third,
        httpx.AsyncClient(transport=transport, timeout=LONG_S) as http,
    ):
        await http.get(f"http://127.0.0.1:{first}/")
        with trio.fail_after(LONG_S):
            while not all(pooled.is_unused for pooled, _ in transport._clients.values()):
                await trio.lowlevel.checkpoint()
        for port in (second, third):
            await http.get(f"http://127.0.0.1:{port}/")
        assert [origin[2] for origin in transport._clients] == [second, third]
        assert (await http.get(f"http://127.0.0.1:{first}/")).text == "ok"


async def silent(caller: Caller) -> None:
    await caller.request()
    assert await caller.at_end()


async def test_a_late_answer_is_a_read_time_out() -> None:
    async with (
        scripted_server(silent) as port,
        client(deadline_s=1) as http,
    ):
        with pytest.raises(httpx.ReadTimeout, match="timed out after 1000 ms: no answer"):
            await http.get(f"http://127.0.0.1:{port}/")


async def test_a_full_pool_is_a_pool_time_out() -> None:
    async with (
        scripted_server(silent) as port,
        client(connections_max=1) as http,
        trio.open_nursery() as nursery,
    ):

        async def ask(deadline_s: float) -> None:
            await http.get(f"http://127.0.0.1:{port}/", timeout=deadline_s)

        nursery.start_soon(ask, LONG_S)
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(httpx.PoolTimeout):
            await ask(0.05)
        nursery.cancel_scope.cancel()


async def test_a_server_that_takes_no_more_is_a_write_time_out(mock_clock: trio.testing.MockClock) -> None:
    async def deaf(caller: Caller) -> None:
        await caller.stream.receive_some(1)
        mock_clock.jump(3)
        await trio.sleep_forever()

    async with scripted_server(deaf) as port, client(deadline_s=3) as http:
        with pytest.raises(httpx.WriteTimeout, match="the request is not sent"):
            await http.post(f"http://127.0.0.1:{port}/", content=bytes(50 << 20))


async def test_a_dial_without_end_is_a_connect_time_out(autojump_clock: trio.testing.MockClock) -> None:
    async def dial(host: str, port: int, **_: object) -> trio.abc.Stream:
        await trio.sleep_forever()
        raise AssertionError

    transport = DialTransport(tls=client_tls(), connections_max=1, limits=LIMITS, dial=dial)
    async with httpx.AsyncClient(transport=transport, timeout=3) as http:
        with pytest.raises(httpx.ConnectTimeout, match="node:80: timed out after 3000 ms: not connected"):
            await http.get("http://node/")


async def test_an_international_name_is_dialled_and_asked_for_in_ascii() -> None:
    async def script(caller: Caller) -> None:
        asked.append(dict((await caller.answer()).headers)[b"host"])

    async def dial(host: str, port: int, **_: object) -> trio.abc.Stream:
        dialled.append((host, port))
        return await trio.open_tcp_stream("127.0.0.1", served)

    asked: list[bytes] = []
    dialled: list[tuple[str, int]] = []
    transport = DialTransport(tls=client_tls(), connections_max=1, limits=LIMITS, dial=dial)
    async with scripted_server(script) as served, httpx.AsyncClient(transport=transport) as http:
        await http.get("http://bücher.example/")
    assert (dialled, asked) == ([("xn--bcher-kva.example", 80)], [b"xn--bcher-kva.example"])


@pytest.mark.parametrize(
    ("answer", "kind", "text"),
    [
        (b"SSH-2.0-OpenSSH\r\n\r\n", httpx.RemoteProtocolError, "no status line"),
        (OK[:-1], httpx.RemoteProtocolError, "closed by the other side"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + bytes(100_001), httpx.RemoteProtocolError, "BodyTooLarge"),
        (b"", httpx.RemoteProtocolError, "closed by the other side"),
        (
            b"HTTP/1.1 200 OK\r\ncontent-length: 100001\r\n\r\n" + bytes(100_001),
            httpx.RemoteProtocolError,
            "BodyTooLarge",
        ),
        (
            b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(BOMB) + BOMB,
            httpx.RemoteProtocolError,
            "unsolicited content-encoding",
        ),
    ],
)
async def test_an_answer_that_we_do_not_take(answer: bytes, kind: type[Exception], text: str) -> None:
    async def script(caller: Caller) -> None:
        await caller.request()
        with suppress(trio.BrokenResourceError):
            await caller.stream.send_all(answer)

    async with scripted_server(script) as port, client() as http:
        with pytest.raises(kind, match=text):
            await http.get(f"http://127.0.0.1:{port}/")


async def test_a_cancelled_request_leaves_nothing_behind() -> None:
    async def hears(caller: Caller) -> None:
        await caller.request()
        nursery.cancel_scope.cancel()
        assert await caller.at_end()

    async with scripted_server(hears, keep_answering) as port, client(connections_max=1) as http:
        async with trio.open_nursery() as nursery:
            await http.get(f"http://127.0.0.1:{port}/")
        assert nursery.cancel_scope.cancelled_caught
        assert (await http.get(f"http://127.0.0.1:{port}/")).text == "ok"


async def test_no_other_scheme() -> None:
    async with client() as http:
        with pytest.raises(httpx.UnsupportedProtocol):
            await http.get("ftp://127.0.0.1/")


async def test_an_error_of_the_user_is_raised_as_it_is() -> None:
    with pytest.raises(ZeroDivisionError):
        async with client():
            _ = 1 // 0


async def test_two_first_requests_to_a_host_at_once() -> None:
    async def script(caller: Caller) -> None:
        await keep_answering(caller)

    async def only_once(_: Caller) -> None:
        pytest.fail("connected again")

    async with (
        scripted_server(script, only_once) as port,
        client(connections_max=1) as http,
        trio.open_nursery() as nursery,
    ):
        for _ in range(5):
            nursery.start_soon(http.get, f"http://127.0.0.1:{port}/")
