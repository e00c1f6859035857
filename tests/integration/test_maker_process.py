"""`cambist maker serve` as a process: the process announces itself, drains on SIGTERM, obeys signals and the
file.
"""

import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import PIPE
from urllib.parse import urlsplit

import msgspec
import pytest
import trio

from cambist.codecs.http1 import Http1Limits
from cambist.config.errors import MakerError
from cambist.config.timeouts import SERVER_DRAIN_IDLE_S
from cambist.engine.host.process.clock import WallClock
from cambist.feeds.transport.http_client import HttpClient
from support.makers.maker_role import ENVIRON, TEXT, Venue, firm_request, write_prices
from support.patience import PATIENCE_S, until, until_told

CLIENTS = 64


@asynccontextmanager
async def maker_process(folder: Path, more: str = "") -> AsyncIterator[tuple[trio.Process, Venue]]:
    """The command on a port of the system's choice, once it serves."""
    write_prices(folder)
    config = folder / "maker.toml"
    config.write_text(f'state_dir = "{folder}"\n{TEXT}{more}')
    command = [sys.executable, "-m", "cambist", "maker", "serve", "--config", str(config)]
    async with trio.open_nursery() as nursery:
        process = await trio.lowlevel.open_process(command, env=os.environ | ENVIRON, stderr=PIPE)
        assert process.stderr
        try:
            lines = Lines(process.stderr)
            with trio.fail_after(PATIENCE_S):
                port = await lines.port()
            nursery.start_soon(lines.drop)
            async with HttpClient("127.0.0.1", port, connections_max=CLIENTS, limits=Http1Limits()) as client:
                venue = Venue(client, port, 0, WallClock().now_ms)
                await quotes(venue)
                yield process, venue
        finally:
            if process.returncode is None:
                process.kill()
            with trio.CancelScope(shield=True):
                await process.wait()
            nursery.cancel_scope.cancel()
    await process.stderr.aclose()


async def quotes(venue: Venue) -> None:
    """Return once firm quotes are signed: the price source is a task of its own."""

    async def is_signed() -> bool:
        answer = await venue.ask("POST", "/firm", firm_request(takerAmount="1000000000000"))
        return answer.status == 200

    await until_told(is_signed)


class Lines:
    """The process's log."""

    def __init__(self, stream: trio.abc.ReceiveStream) -> None:
        self._stream = stream
        self._text = b""

    async def port(self) -> int:
        while True:
            line, found, rest = self._text.partition(b"\n")
            if not found:
                piece = await self._stream.receive_some()
                assert piece, self._text.decode()
                self._text += piece
                continue
            self._text = rest
            entry = msgspec.json.decode(line)
            if entry["event"] == "serving":
                port = urlsplit(str(entry["url"])).port
                assert port
                return port

    async def drop(self) -> None:
        async for _ in self._stream:
            pass


@pytest.mark.parametrize("processes", [1, 2])
async def test_sigterm_loses_no_answer_in_flight(tmp_path: Path, processes: int) -> None:
    quoted, answered, lost, closed = 0, 0, [], 0

    async with maker_process(tmp_path, f"[server]\nport = 0\nprocesses = {processes}\n") as (process, venue):

        async def quote_until_it_closes() -> None:
            nonlocal quoted, answered, closed
            async with HttpClient("127.0.0.1", venue.port, connections_max=1, limits=Http1Limits()) as client:
                own = Venue(client, venue.port, 0, venue.wall_ms)
                await quotes(own)  # the process at the other end of this connection
                quoted += 1
                sent_at = trio.current_time()
                while True:
                    before, sent_at = sent_at, trio.current_time()
                    try:
                        response = await own.ask("POST", "/firm", firm_request(takerAmount="100000000000"))
                    except MakerError as error:
                        if trio.current_time() - before > SERVER_DRAIN_IDLE_S:  # late: it may have closed
                            closed += 1
                        else:
                            lost.append(error.detail)
                        return
                    assert response.status == 200, response.body
                    answered += 1
                    if not response.keep_alive:
                        closed += 1
                        return

        with trio.fail_after(PATIENCE_S):
            async with trio.open_nursery() as nursery:
                for _ in range(CLIENTS):
                    nursery.start_soon(quote_until_it_closes)
                await until(lambda: quoted == CLIENTS and answered >= 10 * CLIENTS)
                process.send_signal(signal.SIGTERM)
            assert await process.wait() == 0
    assert lost == []
    assert closed == CLIENTS


async def test_signals_and_the_halt_file_stop_and_resume_all_processes(tmp_path: Path) -> None:
    async with maker_process(tmp_path, "[server]\nport = 0\nprocesses = 2\n") as (process, venue):

        async def until_all_answer(status: int) -> float:
            """Several connections meet both processes; seconds until each says `status`, ten times over."""
            started, in_a_row = time.perf_counter(), 0
            with trio.fail_after(PATIENCE_S):
                while in_a_row < 10:
                    async with HttpClient(
                        "127.0.0.1", venue.port, connections_max=1, limits=Http1Limits()
                    ) as client:
                        own = Venue(client, venue.port, 0, venue.wall_ms)
                        answer = await own.ask("GET", "/prices")
                    in_a_row = in_a_row + 1 if answer.status == status else 0
            return time.perf_counter() - started

        process.send_signal(signal.SIGUSR1)
        await until_all_answer(503)
        assert (tmp_path / "halt").read_text() == "all\n"
        process.send_signal(signal.SIGUSR2)
        await until_all_answer(200)
        (tmp_path / "halt").touch()
        await until_all_answer(503)
        (tmp_path / "halt").unlink()
        await until_all_answer(200)


async def test_what_stops_a_start_is_one_line(tmp_path: Path) -> None:
    """The state directory is used by another process; a URL leads nowhere."""
    async with maker_process(tmp_path, "[server]\nport = 0\n"):
        second = await _failed_start(tmp_path / "maker.toml")
        assert "state_dir: another process uses it" in second
    config = tmp_path / "wrong.toml"
    config.write_text(
        (tmp_path / "maker.toml")
        .read_text()
        .replace('key = "maker"', 'key = "maker"\nnode_url = "env:NO_NODE"')
    )
    wrong = await _failed_start(config)
    assert "node_url" in wrong
    assert "NO_NODE" in wrong


async def _failed_start(config: Path) -> str:
    command = [sys.executable, "-m", "cambist", "maker", "serve", "--config", str(config)]
    with trio.fail_after(PATIENCE_S):
        ended = await trio.run_process(command, env=os.environ | ENVIRON, capture_stderr=True, check=False)
    text = ended.stderr.decode()
    assert ended.returncode == 1, text
    assert "Traceback" not in text
    assert len([line for line in text.splitlines() if "rror" in line]) == 1, text
    return text
