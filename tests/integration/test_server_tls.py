"""TLS: versions, ALPN, every kind of answer, and clients that do not shake hands."""

import ssl
import warnings
from pathlib import Path

import pytest
import trio

from cambist.config.errors import ConfigError
from cambist.config.sections.server import ServerSettings, TlsSettings
from cambist.engine.host.server import RouteGroup, Router, Server
from cambist.feeds.transport.streams import client_tls, dial, server_tls
from support.patience import PATIENCE_S
from support.server.server_harness import (
    GET,
    LAST_GET,
    answers,
    make_certificate,
    post,
    read_to_end,
    serving,
    statuses,
)
from support.stretched_bounds import OWN_S


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    return make_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def tls(files: tuple[str, str]) -> TlsSettings:
    return TlsSettings(certificate=files[0], key=files[1])


async def test_requests_are_served_over_tls(tls: TlsSettings) -> None:
    async with serving(reactor=True, tls=tls) as served:
        with trio.fail_after(PATIENCE_S):
            async with await dial("localhost", served.port, tls=client_tls(tls.certificate)) as stream:
                assert isinstance(stream, trio.SSLStream)
                assert stream.selected_alpn_protocol() == "http/1.1"
                await stream.send_all(GET + post(b"/slow", b"abc") + LAST_GET)
                found = answers(await read_to_end(stream))
                assert [answer.body for answer in found] == [b'"hello"', b"abc", b'"hello"']
        assert served.server.statistics().promoted == 0


@pytest.mark.parametrize(("request_", "status"), [(b"garbage\r\n\r\n", 400), (LAST_GET, 200)])
async def test_the_last_answer_arrives_before_the_end(tls: TlsSettings, request_: bytes, status: int) -> None:
    async with serving(reactor=False, tls=tls, waits={"linger_s": OWN_S["SERVER_LINGER_S"]}) as served:
        with trio.fail_after(PATIENCE_S):
            async with await dial("localhost", served.port, tls=client_tls(tls.certificate)) as stream:
                await stream.send_all(request_)
                assert statuses(await read_to_end(stream)) == [status]


async def test_too_many_connections_are_closed_without_a_handshake(tls: TlsSettings) -> None:
    async with serving(reactor=False, tls=tls, connections_max=1) as served:
        with trio.fail_after(PATIENCE_S):
            context = client_tls(tls.certificate)
            async with await dial("localhost", served.port, tls=context) as first:
                await first.send_all(GET)
                await first.receive_some(1_000)
                with pytest.raises(OSError, match=r"(?i)eof|reset|ssl|handshake"):
                    await dial("localhost", served.port, tls=context)
                assert served.server.statistics().refused == 1


async def test_an_older_tls_is_refused(tls: TlsSettings) -> None:
    context = client_tls(tls.certificate)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    async with serving(reactor=False, tls=tls) as served:
        with pytest.raises(OSError, match=r"(?i)tls|ssl|handshake|reset"):
            await dial("localhost", served.port, tls=context)


async def test_a_plain_request_to_a_tls_port_is_closed_on(tls: TlsSettings) -> None:
    async with serving(reactor=True, tls=tls) as served:
        assert b"HTTP" not in await served.converse(GET)
        assert served.server.statistics().broken == 1


async def test_a_certificate_for_another_name_or_of_nobody_known_is_refused(tls: TlsSettings) -> None:
    async with serving(reactor=False, tls=tls) as served:
        with pytest.raises(ssl.SSLCertVerificationError):
            await dial("localhost", served.port, tls=client_tls())
        context = client_tls(tls.certificate)
        with pytest.raises(ssl.SSLCertVerificationError):
            await dial("localhost", served.port, tls=context, server_hostname="other.example")


async def test_a_handshake_that_takes_too_long_is_closed_on(
    tls: TlsSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cambist.engine.host.server.listener.TLS_HANDSHAKE_S", 0.05)
    async with serving(reactor=False, tls=tls) as served:
        assert await served.converse() == b""


async def test_a_drain_does_not_wait_for_a_handshake(tls: TlsSettings) -> None:
    async with serving(reactor=False, tls=tls, drain_s=30) as served:
        with trio.fail_after(PATIENCE_S / 6):
            async with await served.connect() as silent:
                while not served.server.statistics().connections:
                    await trio.lowlevel.checkpoint()
                served.server.drain()
                assert await read_to_end(silent) in (b"", b"<RESET>")
            await served.ended.wait()


async def test_dial_raises_os_errors_only(tls: TlsSettings) -> None:
    async with serving(reactor=False) as served:
        port = served.port
        with pytest.raises(OSError, match=r"(?i)ssl|handshake|wrong version|record"):
            await dial("127.0.0.1", port, tls=client_tls())
        with pytest.raises(TimeoutError):
            await dial("127.0.0.1", port, tls=None, timeout_s=0)
    with pytest.raises(OSError, match=r"."):
        await dial("127.0.0.1", port, tls=None)
    with pytest.raises(OSError, match=r"."):
        await dial("no-such-host.invalid", 80, tls=None)


def test_files_that_are_no_certificate_are_the_operators_fault(
    files: tuple[str, str], tmp_path: Path
) -> None:
    (tmp_path / "empty.pem").write_text("")
    for certificate, key in ((files[0], str(tmp_path / "empty.pem")), (str(tmp_path / "none.pem"), files[1])):
        with pytest.raises(ConfigError):
            server_tls(certificate, key)
    with pytest.raises(ConfigError):
        client_tls(str(tmp_path / "none.pem"))
    bad = ServerSettings(tls=TlsSettings(certificate="none.pem", key="none.pem"))
    surface = RouteGroup(lambda error, request_id: b"")
    with pytest.raises(ConfigError):
        Server(Router(surface.encode_error), bad, wall_ms=lambda: 0)
