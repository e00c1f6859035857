"""Server of firm quotes as a process of the load tests; options add other work that disturbs it.

    python -m bench.firm_server --fd 5 --snapshots --watch watched.json

The chain's feed runs as it does in a market maker: it refreshes prices and frees reservations of expired
quotes.

SIGTERM ends the server. With `--watch` it then writes how long its other tasks had to wait: a task sleeps
1 ms again and again and records how late it woke up, but only if a quote was signed meanwhile: idle time
before and after the load would dilute the percentiles.
"""

import json
import signal
import sys
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any, cast

import trio

from bench.maker_fixture import Maker, build_maker
from bench.maker_work import CHAIN_ID, PAIRS, snapshot, wall_ms
from bench.peers.served import freeze, inherited, options
from cambist.codecs.messages.maker_messages import PriceGrid
from cambist.config.sections.server import ServerSettings
from cambist.engine.host.process.processes import inherited_listener, inherited_spread, run_processes
from cambist.engine.host.server import AccessLog, Router, Server, open_access_log
from cambist.engine.host.server.gate import encode_maker_error
from cambist.engine.host.server.spread import Spread
from cambist.engine.roles.maker.feed import Feed
from cambist.engine.roles.maker.prices.source import PriceSource

SNAPSHOT_EVERY_S = 0.5
VERSIONS = 8  # every column of one differs from that of the version before
NAP_S = 0.001


class Watch:
    """Lateness of a task that wakes up every millisecond while the server signs quotes.

    Args:
        done: returns the amount of work done so far.

    Attributes:
        late_s: lateness of each sleep, seconds.
        snapshot_s: seconds to apply each snapshot of prices, waits for other tasks included.
    """

    def __init__(self, done: Callable[[], int]) -> None:
        self._done = done
        self.late_s: list[float] = []
        self.snapshot_s: list[float] = []

    async def nap(self) -> None:
        """Record, without end, the lateness of every sleep of 1 ms during which the server did work."""
        while True:
            before, started = self._done(), time.perf_counter()
            await trio.sleep(NAP_S)
            late_s = time.perf_counter() - started - NAP_S
            if self._done() != before:
                self.late_s.append(late_s)

    def write(self, path: Path) -> None:
        """Write the recorded latenesses to a JSON file."""
        found = {"late_s": self.late_s, "snapshot_s": self.snapshot_s}
        path.write_text(json.dumps(found), encoding="utf-8")


class Snapshots:
    """Price source that gives new prices of all pairs every half second.

    A pair whose grid the feed refuses is quoted no more, so the load meets an error and fails.
    """

    def __init__(self, snapshots: list[dict[str, PriceGrid]], watch: Watch) -> None:
        self._snapshots = snapshots
        self._watch = watch

    async def updates(self) -> AsyncGenerator[dict[str, PriceGrid], None]:
        """Yield versions of the prices of all pairs in turn.

        The consumer has applied a version when it asks for the next.
        """
        due, turn = trio.current_time(), 1
        while True:
            started = time.perf_counter()
            yield self._snapshots[turn % len(self._snapshots)]
            self._watch.snapshot_s.append(time.perf_counter() - started)
            due, turn = due + SNAPSHOT_EVERY_S, turn + 1
            await trio.sleep_until(due)


def feed_of(maker: Maker, source: Snapshots) -> Feed:
    """Make the feed that applies a price source to the maker's prices on its chain."""
    return Feed(
        desk=maker.role.desk,
        broadcast=maker.role.broadcast,
        make_source=lambda: cast("PriceSource", source),
        refresh_ms=maker.role.settings.refresh_ms,
        wall_ms=wall_ms,
        random=Random(1),
    )


async def end_on_signal(
    scope: trio.CancelScope, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    with trio.open_signal_receiver(signal.SIGTERM) as signals:
        task_status.started()
        async for _ in signals:
            scope.cancel()


async def serve(chosen: Any) -> None:
    maker = build_maker(chosen.pairs)
    watch = Watch(lambda: maker.role.desk.signed)
    router = Router(encode_maker_error)
    router.mount(maker.surface.surface, prefix=f"/{CHAIN_ID}")
    with ExitStack() as stack:
        sink = stack.enter_context(open_access_log(chosen.access_log)) if chosen.access_log else None
        access_log = AccessLog(sink) if sink else None
        spread = inherited_spread()
        server = Server(
            router,
            maker.settings.server,
            wall_ms=wall_ms,
            access_log=access_log,
            reactor=not chosen.no_reactor,
            spread=spread,
        )
        versions = range(VERSIONS if chosen.snapshots else 0)
        snapshots = [snapshot(version, chosen.pairs) for version in versions]
        feed = feed_of(maker, Snapshots(snapshots, watch))
        freeze()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(feed.keep_fresh)
            if chosen.watch:
                stack.callback(watch.write, Path(chosen.watch))
                nursery.start_soon(watch.nap)
            if snapshots:
                nursery.start_soon(feed.follow_source)
            await nursery.start(end_on_signal, nursery.cancel_scope)
            if spread:
                await all_accept(spread)
            await server.serve(inherited_listener() or inherited(chosen.fd))


async def all_accept(spread: Spread) -> None:
    """Wait until all processes are ready: the first connections would otherwise go to the first process."""
    spread.tell(0)
    while any(number < 0 for number in spread.others()):  # noqa: ASYNC110 - no event of other processes
        await trio.sleep(NAP_S)


async def serve_in(processes: int, descriptor: int) -> None:
    """Serve in child processes, as a maker with `processes` of `[server]` does."""
    command = [sys.executable, "-m", "bench.firm_server", "--fd", str(descriptor)]
    await run_processes(ServerSettings(processes=processes, drain_s=1), command, inherited(descriptor))


if __name__ == "__main__":
    parser = options(__doc__)
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--snapshots", action="store_true", help="apply all prices anew every half second")
    parser.add_argument("--watch", default="", help="the file to write lateness to")
    parser.add_argument("--access-log", default="", help="the file to write the access log to")
    parser.add_argument("--no-reactor", action="store_true", help="a task for every connection")
    parser.add_argument("--processes", type=int, default=0, help="child processes; 0 serves in this one")
    chosen = parser.parse_args()
    if chosen.processes:
        trio.run(serve_in, chosen.processes, chosen.fd)
    else:
        trio.run(serve, chosen)
