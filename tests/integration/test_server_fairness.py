"""While clients pipeline as fast as they can, the other tasks of the process have their turn."""

import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from time import perf_counter

import pytest
import trio

from support.server_harness import GET, PATIENCE_S, Served, serving

both = pytest.mark.parametrize("reactor", [False, True], ids=["task", "reactor"])

FLOOD = Path(__file__).parents[1] / "support" / "server_flood.py"
GAP_S_MAX = 0.010
ATTEMPTS = 20


@asynccontextmanager
async def flooded(reactor: bool) -> AsyncIterator[Served]:
    """A server that 64 clients of another process keep busy."""
    async with serving(reactor=reactor) as served:
        command = [sys.executable, str(FLOOD), str(served.port), "64"]
        flood = await trio.lowlevel.open_process(command, stderr=subprocess.DEVNULL)
        try:
            with trio.fail_after(PATIENCE_S):
                while (
                    served.server.statistics().connections < 64 or served.server.statistics().requests < 5_000
                ):
                    await trio.lowlevel.checkpoint()
                yield served
        finally:
            flood.kill()
            await flood.wait()


@both
async def test_another_task_never_waits_long(reactor: bool) -> None:
    """The one test that asserts a time: the best of several attempts, for a busy machine is no fault."""
    async with flooded(reactor) as served:
        best = min([await _longest_gap(served) for _ in range(ATTEMPTS)])
    assert best < GAP_S_MAX


async def _longest_gap(served: Served) -> float:
    """The longest time between two turns of this task, over some thousands of requests."""
    longest, last = 0.0, perf_counter()
    until = served.server.statistics().requests + 2_000
    while served.server.statistics().requests < until:
        await trio.lowlevel.checkpoint()
        now = perf_counter()
        longest, last = max(longest, now - last), now
    return longest


@both
async def test_a_quiet_client_is_answered_before_the_others_have_had_many_more(reactor: bool) -> None:
    async with flooded(reactor) as served, await served.connect() as quiet:
        for _ in range(20):
            before = served.server.statistics().requests
            await quiet.send_all(GET)
            assert (await quiet.receive_some(1_000)).startswith(b"HTTP/1.1 200")
            assert served.server.statistics().requests - before < 64 * 64
