"""`cambist serve` as a process: the process announces itself, quotes, drains on SIGTERM, and reports
faults.
"""

import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from stat import S_IMODE
from subprocess import PIPE, run
from typing import Any
from urllib.parse import urlencode, urlsplit

import msgspec
import pytest
import trio
from bench.peers.ports import held_port, port_of

from cambist.codecs.canonical_json import canonical
from cambist.codecs.http1 import Http1Limits
from cambist.codecs.messages.vocabulary import Side
from cambist.config.settings import parse_settings
from cambist.engine.host.process.clock import WallClock
from cambist.engine.store.process.open_store import open_store
from cambist.engine.trade.quote.issued import IssuedRoutes, quoted_as
from cambist.feeds.transport.http_client import HttpClient
from support.patience import PATIENCE_S
from support.venue.venue_processes import ready
from support.venue.venue_role import CHAIN_ID, ENVIRON, GRIDS, running_makers, served_devnet, venue_text

COMMAND = [sys.executable, "-m", "cambist", "serve"]


class Log:
    """JSON lines of the process on standard error."""

    def __init__(self, stream: trio.abc.ReceiveStream) -> None:
        self._stream = stream
        self._text = b""

    async def event(self, name: str) -> dict[str, Any]:
        """The next line of that event."""
        with trio.fail_after(PATIENCE_S):
            while True:
                line, found, rest = self._text.partition(b"\n")
                if not found:
                    piece = await self._stream.receive_some()
                    assert piece, self._text.decode()
                    self._text += piece
                    continue
                self._text = rest
                told: dict[str, Any] = msgspec.json.decode(line)
                if told["event"] == name:
                    return told


@asynccontextmanager
async def venue_process(config: Path) -> AsyncIterator[tuple[trio.Process, Log, int]]:
    """The command, once it serves, its log, and its port."""
    process = await trio.lowlevel.open_process(
        [*COMMAND, "--config", str(config)], env=os.environ | ENVIRON, stderr=PIPE
    )
    assert process.stderr
    async with process.stderr as stream:
        try:
            log = Log(stream)
            serving = await log.event("serving")
            assert serving["chains"] == [CHAIN_ID]
            port = urlsplit(serving["url"]).port
            assert port
            yield process, log, port
        finally:
            if process.returncode is None:
                process.kill()
            with trio.CancelScope(shield=True):
                await process.wait()


async def test_it_serves_and_drains_with_everything_written(tmp_path: Path) -> None:
    async with served_devnet(tmp_path) as devnet, running_makers(tmp_path, devnet, GRIDS) as makers:
        config = tmp_path / "venue.toml"
        config.write_text(venue_text(devnet, {name: port for name, (_, port) in makers.items()}))
        async with venue_process(config) as (process, _, port):
            async with HttpClient("127.0.0.1", port, connections_max=2, limits=Http1Limits()) as client:
                await ready(client)
                sale = {
                    "chainId": CHAIN_ID,
                    "srcToken": devnet.text("WETH"),
                    "destToken": devnet.text("USDC"),
                    "amount": 10**18,
                    "srcDecimals": 18,
                    "destDecimals": 6,
                }
                target = f"/v2/quote?{urlencode(sale)}".encode()
                quote = await client.request(b"GET", target, deadline_s=PATIENCE_S)
                assert quote.status == 200
                assert b'"delta"' in quote.body
            process.send_signal(signal.SIGTERM)
            with trio.fail_after(PATIENCE_S):
                assert await process.wait() == 0
    settings = parse_settings('state_dir = "."', {}, tmp_path)
    async with open_store(settings, {}, tmp_path, WallClock().now_ms, in_process=True) as store:
        route = msgspec.json.encode(msgspec.json.decode(quote.body)["delta"]["route"])
        quoted = quoted_as(Side.SELL, canonical(route))
        assert await IssuedRoutes(store, 600).is_issued(quoted, WallClock().now_ms())


async def test_a_crowd_does_not_keep_anybody_from_its_health(tmp_path: Path) -> None:
    """All connections are taken; the listener for health has its own, and serves nothing else."""
    most = 4
    async with served_devnet(tmp_path) as devnet, AsyncExitStack() as owned:
        held = owned.enter_context(held_port())
        bounds = f"[server]\nconnections_max = {most}\nhealth = {{ port = {port_of(held)} }}\n"
        config = tmp_path / "venue.toml"
        config.write_text(venue_text(devnet, {}).replace("[server]\n", bounds, 1))
        process, log, port = await owned.enter_async_context(venue_process(config))
        health = HttpClient("127.0.0.1", port_of(held), connections_max=2, limits=Http1Limits())
        await owned.enter_async_context(health)
        crowd = [
            await owned.enter_async_context(await trio.open_tcp_stream("127.0.0.1", port))
            for _ in range(most)
        ]
        async with await trio.open_tcp_stream("127.0.0.1", port) as late:
            await late.send_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
            assert (await late.receive_some()).startswith(b"HTTP/1.1 503 ")
        answers = {
            path: await health.request(b"GET", path.encode(), deadline_s=PATIENCE_S)
            for path in ("/healthz", "/readyz", "/metrics", "/tokens/1", "/v2/quote", "/docs", "/")
        }
        assert {path: answer.status for path, answer in answers.items()} == {
            "/healthz": 200,
            "/readyz": 503,
            "/metrics": 200,
            "/tokens/1": 404,
            "/v2/quote": 404,
            "/docs": 404,
            "/": 404,
        }
        reasons = msgspec.json.decode(answers["/readyz"].body)["reasons"]
        assert f"chain {CHAIN_ID}: no maker has a live book" in reasons
        assert b"cambist_server_refused_total 1.0" in answers["/metrics"].body
        assert b"cambist_server_refused_by_address_total 0.0" in answers["/metrics"].body
        await crowd[0].send_all(b"GET /healthz HTTP/1.1\r\n")  # a drain waits for the rest of it
        process.send_signal(signal.SIGTERM)
        await log.event("draining")
        ending = await health.request(b"GET", b"/readyz", deadline_s=PATIENCE_S)
        assert ending.status == 503
        assert "the venue ends" in msgspec.json.decode(ending.body)["reasons"]
        await crowd[0].send_all(b"host: x\r\n\r\n")
        with trio.fail_after(PATIENCE_S):
            assert await process.wait() == 0


async def test_what_it_keeps_is_its_owners_alone(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir(0o755)
    async with served_devnet(tmp_path) as devnet:
        config = tmp_path / "venue.toml"
        config.write_text(venue_text(devnet, {}).replace('state_dir = "."', f'state_dir = "{state}"', 1))
        (state / "contracts.json").write_bytes((tmp_path / "contracts.json").read_bytes())
        async with venue_process(config):
            kept = [path for path in state.iterdir() if path.name != "contracts.json"]
            assert any(path.suffix == ".sqlite3" for path in kept)
            modes = {path.name: f"{S_IMODE(path.stat().st_mode):04o}" for path in (state, *kept)}
    assert modes.pop("state") == "0700"
    assert set(modes.values()) == {"0600"}


async def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    async with served_devnet(tmp_path) as devnet:
        config = tmp_path / "venue.toml"
        config.write_text(venue_text(devnet, {}, has_relayer=False))
        async with (
            venue_process(config) as (process, log, port),
            await trio.open_tcp_stream("127.0.0.1", port) as stream,
        ):
            lacking = f"Delta is not served on chain {CHAIN_ID}: no relayer settles its orders"
            warned = await log.event(lacking)
            assert warned["missing"] == f"[relayers.{CHAIN_ID}]"
            head = f"POST /transactions/{CHAIN_ID} HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n"
            await stream.send_all(f"{head}expect: 100-continue\r\n\r\n".encode())
            assert (await stream.receive_some()).startswith(b"HTTP/1.1 100")  # a drain waits for its body
            process.send_signal(signal.SIGTERM)
            await log.event("draining")
            assert process.returncode is None
            process.send_signal(signal.SIGTERM)
            with trio.fail_after(PATIENCE_S):
                assert await process.wait() == 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "venue: "),
        ('route_seal_keys = ["env:ROUTE_SEAL"]\n[venue]\n', "chains: no chain has"),
        ("[venue]\nport = 1\n", "venue.port: is not a setting"),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path: Path, text: str, says: str) -> None:
    config = tmp_path / "venue.toml"
    config.write_text(text)
    done = run(
        [*COMMAND, "--config", str(config)],
        env=os.environ | ENVIRON | {"CAMBIST__SERVER__PORT": "0", "CAMBIST__STATE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 1
    assert says in done.stderr
    assert "Traceback" not in done.stderr


async def test_an_interrupt_while_the_store_opens_is_one_line(tmp_path: Path) -> None:
    """A server takes the connection and says nothing; the store's process gives up later, or is cut off."""
    async with served_devnet(tmp_path) as devnet:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        async with listener:
            port = listener.socket.getsockname()[1]
            config = tmp_path / "venue.toml"
            store = f'[store]\nurl = "postgresql://cambist@127.0.0.1:{port}/venue"\n'
            config.write_text(venue_text(devnet, {}) + store)
            process = await trio.lowlevel.open_process(
                [*COMMAND, "--config", str(config)], env=os.environ | ENVIRON, stderr=PIPE
            )
            assert process.stderr
            with trio.fail_after(PATIENCE_S):
                async with await listener.accept() as dialled, process.stderr as stream:
                    process.send_signal(signal.SIGINT)
                    await dialled.aclose()
                    said = b"".join([piece async for piece in stream])
                    assert await process.wait() == 130
    (line,) = said.splitlines()
    assert msgspec.json.decode(line)["event"] == "interrupted before it served"
