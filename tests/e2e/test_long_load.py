"""Half an hour of orders beside readers that do not read: memory and descriptors of the engine stay flat.

`HYPOTHESIS_PROFILE=long LOAD_S=600 pytest tests/e2e/test_long_load.py` takes ten minutes.
"""

import os
import socket
from pathlib import Path

import pytest
import trio
from msgspec import Struct

from cambist.engine.telemetry.clock import WallClock
from support.patience import PATIENCE_S, until
from support.process_story import Story, a_story
from support.venue_processes import venue_processes

LOAD_S = int(os.environ.get("LOAD_S", "1800"))
PER_S = 8  # owners have enough for 40 minutes
SAMPLES = 20
SLOW = 4  # readers of each stream
SETTLED_MAX = 60  # orders under way at a time: beyond that the load waits
RING_ORDERS = 2_500  # so many orders fill the events that are kept in memory
GROWN_MB_MAX = 12.0  # of the second half
DESCRIPTORS_MORE_MAX = 4  # a connection to a maker or node, more or less
EVENTS, OTC_EVENTS = "/v2/delta/orders/events", "/ft/events"


class Sample(Struct, frozen=True):
    """Of the engine's process."""

    orders: int
    rss_mb: float
    descriptors: int


def sample(pid: int, orders: int) -> Sample:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    fds = len(list(Path(f"/proc/{pid}/fd").iterdir()))
    return Sample(orders, pages * os.sysconf("SC_PAGE_SIZE") / 1e6, fds)


def deaf(port: int, path: str, *headers: str) -> socket.socket:
    """A reader of a stream that takes a few kilobytes, and nothing beyond."""
    reader = socket.socket()
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    reader.connect(("127.0.0.1", port))
    lines = (f"GET {path} HTTP/1.1", "Host: a", *headers, "", "")
    reader.sendall("\r\n".join(lines).encode())
    return reader


UPGRADE = (
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
)


async def loaded(story: Story, seconds: int) -> list[Sample]:
    """The same load all the time, and what the engine is like meanwhile."""
    (pid,), clock = story.running.pids, WallClock()
    began_ms = clock.now_ms()
    samples: list[Sample] = []
    taken: list[str] = []
    over = 0

    def is_more() -> bool:
        return over < len(taken)

    async def follow() -> None:
        nonlocal over
        while True:
            await until(is_more, PATIENCE_S)
            await story.completed([taken[over]])
            over += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(follow)
        while (late_s := (clock.now_ms() - began_ms) / 1_000) < seconds:
            if len(taken) < late_s * PER_S and len(taken) - over < SETTLED_MAX:
                taken.append(await story.submitted(len(taken)))
            else:
                await trio.sleep(1 / PER_S / 4)
            if late_s >= len(samples) * seconds / SAMPLES:
                samples.append(sample(pid, len(taken)))
        await until(lambda: over == len(taken), PATIENCE_S)
        nursery.cancel_scope.cancel()
    samples.append(sample(pid, len(taken)))
    return samples


@pytest.mark.long
@pytest.mark.process
def test_memory_and_descriptors_are_flat_under_load_and_deaf_readers(tmp_path: Path) -> None:
    with venue_processes(tmp_path, [("WETH", "USDC")], has_agent=True) as running:

        async def story() -> None:
            async with a_story(running) as found:
                port = int(running.url.rpartition(":")[2])
                sale = found.running.devnet
                quote = (
                    f"/v2/quote/stream?chainId=31337&srcToken={sale.text('WETH')}&srcDecimals=18&mode=MARKET"
                    f"&destToken={sale.text('USDC')}&destDecimals=6&amount={10**18}&side=SELL"
                )
                deafs = [
                    deaf(port, path, *headers)
                    for path, headers in (
                        (quote, ()), (EVENTS, ()), (EVENTS, UPGRADE), (OTC_EVENTS, ()), (OTC_EVENTS, UPGRADE),
                    )
                    for _ in range(SLOW)
                ]  # fmt: skip
                try:
                    assert {one.recv(12) for one in deafs} == {b"HTTP/1.1 200", b"HTTP/1.1 101"}
                    samples = await loaded(found, LOAD_S)
                    metrics = await found.metrics()
                finally:
                    for one in deafs:
                        one.close()
                print(*samples, sep="\n")  # noqa: T201  what is measured
                half, end = samples[len(samples) // 2], samples[-1]
                assert end.rss_mb - half.rss_mb <= GROWN_MB_MAX or half.orders < RING_ORDERS, samples
                assert end.descriptors <= half.descriptors + DESCRIPTORS_MORE_MAX, samples
                assert metrics["cambist_delta_shards"] == 256

        trio.run(story)
