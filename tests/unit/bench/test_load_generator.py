"""The load's reader of answers; the environments of the load benches hold the product's own versions."""

import asyncio
import math
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from bench import cpu_use
from bench.cpu_use import CpuUse, await_quiet
from bench.load_answers import AnswerFault, take_answer
from bench.load_generator import Corpus, Load, open_clients, open_loop, rest

ROOT = Path(__file__).parents[3]
ANSWER = b"HTTP/1.1 200 OK\r\nserver: a\r\nContent-Length: 5\r\nconnection: keep-alive\r\n\r\nhello"


def test_answers_are_taken_one_by_one() -> None:
    data = ANSWER + ANSWER.replace(b"200", b"503")
    assert take_answer(data, 0) == (200, b"hello", len(ANSWER))
    assert take_answer(data, len(ANSWER)) == (503, b"hello", len(data))


@pytest.mark.parametrize("size", range(len(ANSWER)))
def test_a_part_of_an_answer_is_none_yet(size: int) -> None:
    assert take_answer(ANSWER[:size], 0) is None


@pytest.mark.parametrize(
    "data", [b"HTTP/1.1 200 OK\r\n\r\n", b"GET / HTTP/1.1\r\ncontent-length: 0\r\n\r\n", b"\r\n\r\n"]
)
def test_what_is_no_answer_with_a_length_is_refused(data: bytes) -> None:
    with pytest.raises(AnswerFault):
        take_answer(data, 0)


def test_the_peers_run_with_the_versions_of_the_product() -> None:
    locks = [(ROOT / ".ci" / "locks" / name).read_text(encoding="utf-8") for name in ("dev.txt", "load.txt")]
    dev, load = (dict(re.findall(r"^([a-z0-9-]+)==(\S+)", lock, re.MULTILINE)) for lock in locks)
    settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (dependencies,) = re.findall(r"^dependencies = \[(.*?)^\]", settings, re.MULTILINE | re.DOTALL)
    names = re.findall(r'"([a-z-]+)', dependencies)
    assert names
    assert {name: load[name] for name in names} == {name: dev[name] for name in names}


def test_our_own_use_of_the_cores_is_not_foreign() -> None:
    use = CpuUse(())
    while use.own == 0.0:
        sum(range(100_000))
        use.end()
    assert use.own is None or use.own > 0
    assert (use.foreign is None) is (use.own is None)
    assert use.foreign is None or use.foreign >= 0


@pytest.mark.parametrize(("foreign", "quiet"), [(None, True), (0.03, True), (0.04, False)])
def test_quiet_is_a_sample_without_foreign_use_before_patience_ends(
    foreign: float | None, quiet: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu_use, "_SAMPLE_S", 0.0)
    monkeypatch.setattr(CpuUse, "foreign", foreign)
    assert await_quiet(0.03, 0.0) is quiet


def test_a_sample_of_no_time_has_no_foreign_use() -> None:
    assert not CpuUse(()).foreign


# --- The open loop ------------------------------------------------------------------------------------


@dataclass
class _Stall:
    """From when till when, by `perf_counter`; none yet."""

    from_s: float = math.inf
    until_s: float = math.inf


class _Stalling(asyncio.Protocol):
    """Answers each request, but none during a stall."""

    def __init__(self, stall: _Stall) -> None:
        self._stall = stall

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        now = time.perf_counter()
        wait_s = self._stall.until_s - now if self._stall.from_s <= now else 0.0
        asyncio.get_running_loop().call_later(max(wait_s, 0.0), self._transport.write, ANSWER)


@asynccontextmanager
async def stalling_server(stall: _Stall) -> AsyncIterator[int]:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Stalling(stall), "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def test_a_stall_at_the_end_of_an_open_loop_is_charged_for_all_that_was_due_meanwhile() -> None:
    rate, seconds, stall_s, clients = 200.0, 0.6, 0.3, 4

    async def measure() -> list[float]:
        load, stall = Load(Corpus(0, 200, 1)), _Stall()
        async with stalling_server(stall) as port:
            opened = await open_clients(load, "127.0.0.1", port, clients, rest)
            begin = time.perf_counter()
            until = begin + seconds
            stall.from_s, stall.until_s = until - stall_s, until + 0.1
            load.window = (begin, until)
            await open_loop(load, opened, rate, until)
            load.stopping = True
            if load.outstanding:
                await asyncio.wait_for(load.all_answered.wait(), 5)
            for client in opened:
                client.close()
        assert not load.failures
        return load.latencies

    latencies = asyncio.run(measure())
    assert len(latencies) >= rate * seconds * 0.9
    late = [latency for latency in latencies if latency > 0.1]
    assert len(late) >= rate * stall_s * 0.9
    assert max(latencies) >= stall_s
