"""Half an hour of orders beside readers that do not read: memory, descriptors and tasks stay flat.

`HYPOTHESIS_PROFILE=long LOAD_S=600 pytest tests/e2e/test_long_load.py` takes ten minutes. The test fails
if the load ends before the ring of events is full, which takes five and a half minutes.
"""

import os
import socket
from pathlib import Path

import pytest
import trio
from msgspec import Struct

from cambist.engine.host.process.clock import WallClock
from support.patience import PATIENCE_S, until
from support.venue.process_story import Story, a_story
from support.venue.venue_processes import venue_processes
from support.venue.venue_role import API_KEY, GRIDS, write_grids

LOAD_S = int(os.environ.get("LOAD_S", "1800"))
PER_S = 8  # owners have enough for 40 minutes
SAMPLES = 20
DEAF = 4  # readers of each stream
SETTLED_MAX = 60  # orders under way at a time: beyond that the load waits
RING_ORDERS = 2_500  # so many orders fill the events that are kept in memory
GROWN_MB_MAX = 12.0  # from the first sample with a full ring to the end
MORE_MAX = 4  # descriptors or tasks: a connection to a maker or node, more or less
SEGMENT_BYTES = 536  # the least that every host takes; segments of a loopback let the kernel hold megabytes
EVENTS, OTC_EVENTS = "/v2/delta/orders/events", "/ft/events"


class Sample(Struct, frozen=True):
    """Of the engine and its process.

    Attributes:
        orders: submitted by now.
        rss_mb, descriptors, tasks: memory, open files, tasks of the event loop.
        quotes, streams: open streams of quotes, and of events.
        slow: WebSockets that were closed because nobody read them.
    """

    orders: int
    rss_mb: float
    descriptors: int
    tasks: int
    quotes: int
    streams: int
    slow: int


def used(pid: int) -> tuple[float, int]:
    """Memory of a process in MB, and its open files."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6, len(list(Path(f"/proc/{pid}/fd").iterdir()))


async def sample(story: Story, orders: int) -> Sample:
    told = await story.metrics()
    return Sample(
        orders,
        *used(story.running.pids[0]),
        int(told["cambist_tasks"]),
        int(told["cambist_quote_streams_streams"]),
        int(told["cambist_order_events_streams"]),
        int(told["cambist_order_events_slow_total"]),
    )


def deaf(port: int, path: str, *headers: str) -> socket.socket:
    """A reader of a stream that takes a few kilobytes, and nothing beyond."""
    reader = socket.socket()
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    reader.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, SEGMENT_BYTES)
    reader.connect(("127.0.0.1", port))
    lines = (f"GET {path} HTTP/1.1", "Host: a", f"X-API-KEY: {API_KEY}", *headers, "", "")
    reader.sendall("\r\n".join(lines).encode())
    return reader


UPGRADE = (
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
)


def move_price(folder: Path, number: int) -> None:
    """Let the first maker pay a little more or less DAI for WETH, which no order sells for DAI."""
    bids = {"bids": [[("2498", "2498.5")[number % 2], "20"]]}
    write_grids(folder / "alpha", "alpha", GRIDS["alpha"] | {"WETH/DAI": GRIDS["alpha"]["WETH/DAI"] | bids})


async def loaded(story: Story, folder: Path, seconds: int) -> list[Sample]:
    """Load the engine evenly, and sample it.

    Returns:
        SAMPLES samples at equal distances, then one at rest.
    """
    clock = WallClock()
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
                if not len(taken) % PER_S:
                    move_price(folder, len(taken) // PER_S)
                taken.append(await story.submitted(len(taken)))
            else:
                await trio.sleep(1 / PER_S / 4)
            if late_s >= len(samples) * seconds / SAMPLES:
                samples.append(await sample(story, len(taken)))
                print(samples[-1], flush=True)  # noqa: T201  what is measured
        await until(lambda: over == len(taken), PATIENCE_S)
        nursery.cancel_scope.cancel()
    return [*samples, await at_rest(story, len(taken), samples[0])]


async def at_rest(story: Story, orders: int, most: Sample) -> Sample:
    """The first sample with no more descriptors and tasks than `most`, or the last within patience."""
    found = await sample(story, orders)
    with trio.move_on_after(PATIENCE_S):
        while found.descriptors > most.descriptors or found.tasks > most.tasks:
            await trio.sleep(1)
            found = await sample(story, orders)
    print(found, flush=True)  # noqa: T201  what is measured
    return found


@pytest.mark.long
@pytest.mark.process
def test_memory_descriptors_and_tasks_are_flat_under_load_and_deaf_readers(tmp_path: Path) -> None:
    with venue_processes(tmp_path, [("WETH", "USDC")], has_agent=True) as running:

        async def story() -> None:
            async with a_story(running) as found:
                port = int(running.url.rpartition(":")[2])
                sale = found.running.devnet
                quote = (
                    f"/v2/quote/stream?chainId=31337&srcToken={sale.text('WETH')}&srcDecimals=18&mode=MARKET"
                    f"&destToken={sale.text('DAI')}&destDecimals=18&amount={10**18}&side=SELL"
                )
                deafs = [
                    deaf(port, path, *headers)
                    for path, headers in (
                        (quote, ()), (EVENTS, ()), (EVENTS, UPGRADE), (OTC_EVENTS, ()), (OTC_EVENTS, UPGRADE),
                    )
                    for _ in range(DEAF)
                ]  # fmt: skip
                try:
                    assert {one.recv(12) for one in deafs} == {b"HTTP/1.1 200", b"HTTP/1.1 101"}
                    samples = await loaded(found, tmp_path, LOAD_S)
                    metrics = await found.metrics()
                finally:
                    for one in deafs:
                        one.close()
                assert_flat(samples)
                assert_cut(samples[0], samples[-1])
                assert metrics["cambist_delta_shards"] == 256

        trio.run(story)


def assert_flat(samples: list[Sample]) -> None:
    """Memory, descriptors and tasks stay flat once the ring of events is full."""
    full = [one for one in samples[:-1] if one.orders >= RING_ORDERS]
    end = samples[-1]
    assert full, f"a load of {LOAD_S} s is too short: {end.orders} orders do not fill a ring of {RING_ORDERS}"
    assert end.rss_mb - full[0].rss_mb <= GROWN_MB_MAX, samples
    assert end.descriptors <= full[0].descriptors + MORE_MAX, samples
    assert end.tasks <= full[0].tasks + MORE_MAX, samples


def assert_cut(began: Sample, end: Sample) -> None:
    """The engine has cut all deaf readers but those to whom it sends next to nothing.

    Streams of OTC events carry a beat every fifteen seconds, for no OTC order is sent here. That fills no
    buffer of the kernel, so the server-sent events go on; the WebSockets are cut because they answer no ping.
    """
    assert (began.quotes, began.streams) == (DEAF, 4 * DEAF)
    assert (end.quotes, end.streams) == (0, DEAF)
    assert end.slow >= DEAF
