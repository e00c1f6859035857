"""Load test of several engines: CPU of a sale with one, two and three engines on one PostgreSQL database.

Engines, makers, agent and node are processes of their own. Every engine receives an equal share of
the orders; each runs the auctions of its own shards, one of them relays, all read the chain. The CPU that an
idle engine uses is subtracted. Rates are those of one machine that all processes share.

`python -m bench.load_engines [sales]` prints a table; it needs PostgreSQL's server programs.
"""

import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import trio
from msgspec import Struct
from rich.console import Console
from rich.table import Table

from support.patience import STORY_S
from support.store.postgres import PostgresServer, running_postgres
from support.store.store_work import store_processes
from support.venue.process_story import Story, a_story
from support.venue.venue_processes import Running, venue_processes

SALES = 400
SENT_AT_ONCE = 16
IDLE_S = 10.0
_LOOK_S = 0.1


class Row(Struct, frozen=True):
    """Results of a measurement with a number of engines.

    Attributes:
        rate: settled sales per second.
        engines_ms, stores_ms: CPU per sale of each engine's process, and of each store process.
    """

    rate: float
    engines_ms: tuple[float, ...]
    stores_ms: tuple[float, ...]


def measure(server: PostgresServer, engines: int, sales: int) -> Row:
    """Start engines and all other processes, and measure while `sales` sales are settled."""
    with (
        tempfile.TemporaryDirectory(prefix="cambist-bench-") as folder,
        venue_processes(
            Path(folder), [("WETH", "USDC")], has_agent=True, round_s=1.0,
            store_url=server.migrated_database(), engines=engines,
        ) as running,
    ):  # fmt: skip
        return trio.run(_sales, running, sales)


async def _sales(running: Running, sales: int) -> Row:
    engines = range(len(running.urls))
    with trio.fail_after(STORY_S):
        async with a_story(running) as story:
            while not await _is_shared(story, engines):  # noqa: ASYNC110  another process
                await trio.sleep(_LOOK_S)
            await story.completed([await story.submitted(0)])
            idle = _cpu_s(running)
            await trio.sleep(IDLE_S)
            idle = [(now - then) / IDLE_S for then, now in zip(idle, _cpu_s(running), strict=True)]
            numbers, ids = iter(range(1, sales + 1)), list[str]()

            async def send() -> None:
                for number in numbers:
                    ids.append(await story.submitted(number, engine=number % len(engines)))

            began, begins = trio.current_time(), _cpu_s(running)
            async with trio.open_nursery() as nursery:
                for _ in range(SENT_AT_ONCE):
                    nursery.start_soon(send)
            for engine in engines:
                await story.completed(ids[engine :: len(engines)], engine=engine)
            took_s, ends = trio.current_time() - began, _cpu_s(running)
    each = [
        1e3 * (end - begin - rest * took_s) / sales
        for begin, end, rest in zip(begins, ends, idle, strict=True)
    ]
    return Row(sales / took_s, tuple(each[::2]), tuple(each[1::2]))


async def _is_shared(story: Story, engines: Sequence[int]) -> bool:
    held = [(await story.metrics(engine=engine))["cambist_delta_shards"] for engine in engines]
    return sum(held) == 256 and max(held) - min(held) <= 1


def _cpu_s(running: Running) -> list[float]:
    """Return CPU seconds so far of each engine and its store process: [engine, store, engine, ...]."""
    found = []
    for engine in running.pids:
        (store,) = store_processes(engine)
        for process in (engine, store):
            ticks = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
            found.append(sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK"))
    return found


def table(sales: int = SALES) -> Table:
    """Run the load test of several engines, and return its results as a table."""
    shown = Table(
        "engines", "sales a second", "CPU ms a sale of each engine", "of its store process", box=None
    )
    with running_postgres() as server:
        for engines in (1, 2, 3):
            row = measure(server, engines, sales)
            shown.add_row(
                str(engines),
                f"{row.rate:.0f}",
                ", ".join(f"{cpu_ms:.1f}" for cpu_ms in row.engines_ms),
                ", ".join(f"{cpu_ms:.1f}" for cpu_ms in row.stores_ms),
            )
    return shown


def main() -> None:
    """Run the load test of several engines, and print its results as a table."""
    Console().print(table(int(sys.argv[1]) if len(sys.argv) > 1 else SALES))


if __name__ == "__main__":
    main()
