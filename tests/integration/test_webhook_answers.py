"""Receivers' answers on the venue's connections: the status alone decides whether a delivery succeeded."""

import gzip
import socket
import threading
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from typing import Any

import pytest
import trio

from cambist.config.secret import Secret
from cambist.config.sections.webhooks import WebhookSettings
from cambist.engine.store.leases import Leases
from cambist.engine.store.queries import by
from cambist.engine.store.store import Store
from cambist.engine.store.tables import WEBHOOK
from cambist.engine.trade.events.open_webhooks import open_webhooks
from cambist.engine.trade.events.webhooks import HookStatistics, Webhooks
from cambist.feeds.transport.streams import client_tls
from support.events.webhook_receiver import SECRET
from support.patience import PATIENCE_S, until, until_told
from support.store.stores import NOW_MS, Engine, a_delta_order, kept

Answer = Callable[[BaseHTTPRequestHandler], None]


def bare(handler: BaseHTTPRequestHandler) -> None:
    """As most begin: no length at all."""
    handler.send_response(200)
    handler.end_headers()


def until_closed(handler: BaseHTTPRequestHandler) -> None:
    bare(handler)
    handler.wfile.write(b'{"ok":true}')
    handler.close_connection = True


def zipped(handler: BaseHTTPRequestHandler) -> None:
    body = gzip.compress(b"ok")
    handler.send_response(201)
    handler.send_header("content-encoding", "gzip")
    handler.send_header("content-length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def long(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("content-length", "100000")
    handler.end_headers()
    handler.wfile.write(bytes(100_000))


def long_in_chunks(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(202)
    handler.send_header("transfer-encoding", "chunked")
    handler.end_headers()
    handler.wfile.write(b"186a0\r\n" + bytes(100_000) + b"\r\n0\r\n\r\n")


def broken_off(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("content-length", "100")
    handler.end_headers()
    handler.wfile.write(b"half")
    handler.close_connection = True


def failed_and_bare(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(500)
    handler.end_headers()


def nothing(handler: BaseHTTPRequestHandler) -> None:
    handler.close_connection = True


def gibberish(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"SSH-2.0-OpenSSH_9.6\r\n")
    handler.close_connection = True


async def after_one_try(
    folder: Path,
    answer: Answer,
    *,
    host: str = "127.0.0.1",
    is_private: bool = True,
    beside: WebhookSettings | None = None,
) -> HookStatistics:
    """Statistics of a webhook after a delivery with this answer; `beside` is another webhook."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            try:
                answer(self)
                self.wfile.flush()
            except ConnectionError:  # the rest is not read
                self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  its name
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        url = f"http://{host}:{server.server_address[1]}/orders"
        hook = WebhookSettings(url=url, secret=Secret(SECRET, "a test"), private_addresses=is_private)
        return await _told(folder, {"acme": hook} | ({} if beside is None else {"beside": beside}))
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


async def _told(folder: Path, settings: Mapping[str, WebhookSettings]) -> HookStatistics:
    async def is_answered() -> bool:
        told = webhooks.statistics()["acme"]
        return bool(told.taken or told.failed)

    async with posting_to(folder, settings) as (store, webhooks):
        await kept(store, a_delta_order(1))
        await until_told(is_answered)
    return webhooks.statistics()["acme"]


@asynccontextmanager
async def posting_to(
    folder: Path, settings: Mapping[str, WebhookSettings]
) -> AsyncGenerator[tuple[Store, Webhooks]]:
    """Webhooks as a venue opens them, once the place of `acme` is stored."""
    async with (
        Engine("sqlite:cambist.sqlite3", folder, in_process=True).open() as store,
        AsyncExitStack() as owned,
    ):
        leases = Leases(store, "one", life_s=10, now_ms=lambda: NOW_MS)
        webhooks = await open_webhooks(
            owned,
            settings,
            store,
            leases,
            tls=client_tls(),
            now_ms=lambda: NOW_MS,
            random=Random(1),
        )

        async def is_there() -> bool:
            return bool((await store.read(by(WEBHOOK, "acme")))[0])

        async with trio.open_nursery() as nursery:
            await nursery.start(leases.run)
            await nursery.start(webhooks.run)
            await until_told(is_there)
            yield store, webhooks
            nursery.cancel_scope.cancel()


@pytest.mark.parametrize("answer", [bare, until_closed, zipped, long, long_in_chunks, broken_off])
async def test_any_2xx_takes_a_delivery_whatever_follows_it(tmp_path: Path, answer: Answer) -> None:
    told = await after_one_try(tmp_path, answer)
    assert (told.taken, told.failed, told.reason) == (1, 0, "")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (failed_and_bare, "answered 500"),
        (nothing, "closed by the other side"),
        (gibberish, "does not begin with a status line"),
    ],
)
async def test_a_failure_is_told_for_what_it_is(tmp_path: Path, answer: Answer, reason: str) -> None:
    told = await after_one_try(tmp_path, answer)
    assert (told.taken, told.failed) == (0, 1)
    assert reason in told.reason
    assert "maker" not in told.reason.lower()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433"])
async def test_a_host_that_leads_inward_is_not_connected_to(tmp_path: Path, host: str) -> None:
    asked: list[str] = []
    told = await after_one_try(
        tmp_path, lambda handler: asked.append(handler.path), host=host, is_private=False
    )
    assert (told.taken, told.failed, asked) == (0, 1, [])
    assert "leads to a private address" in told.reason


async def test_a_port_that_one_webhook_may_lead_to_opens_no_other_on_its_host(tmp_path: Path) -> None:
    asked: list[str] = []
    ours = WebhookSettings(
        url="http://127.0.0.1:9/orders", secret=Secret(SECRET, "a test"), private_addresses=True
    )
    told = await after_one_try(
        tmp_path, lambda handler: asked.append(handler.path), is_private=False, beside=ours
    )
    assert (told.taken, told.failed, asked) == (0, 1, [])
    assert "leads to a private address" in told.reason


async def test_name_servers_that_answer_late_on_purpose_hold_up_no_other_look_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A partner runs the name servers of its receiver: a look-up keeps its thread until they answer."""
    answered, asked = threading.Event(), list[Any]()
    right = socket.getaddrinfo

    def late(host: Any, *rest: Any, **named: Any) -> Any:
        is_here = threading.current_thread() is threading.main_thread()  # no server is asked: a numeric host
        if is_here or host not in ("acme.example", b"acme.example"):
            return right(host, *rest, **named)
        asked.append(host)
        answered.wait()
        raise socket.gaierror(socket.EAI_NONAME, "no such name")

    monkeypatch.setattr(socket, "getaddrinfo", late)
    hook = WebhookSettings(
        url="https://acme.example/orders", secret=Secret(SECRET, "a test"), posts_max=64, post_s=60
    )
    async with posting_to(tmp_path, {"acme": hook}) as (store, webhooks):
        try:
            for number in range(1, 65):
                await kept(store, a_delta_order(number))
            await until(lambda: webhooks.statistics()["acme"].posted == 64)
            await until(lambda: asked)
            with trio.fail_after(PATIENCE_S):
                await trio.socket.getaddrinfo("localhost", 80)
            assert len(asked) == 1, "one thread for each host"
        finally:
            answered.set()
