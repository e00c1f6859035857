"""Load test of a venue whose node is far away: intake of orders and whole swaps behind a delaying proxy.

    node    anvil, a block for each transaction, in a process of its own
    proxy   delays requests and answers (`bench.slow_node`), in a process of its own
    intake  one order after another: the time of an answer
    swaps   orders as fast as the venue takes them, until the last is COMPLETED

`python -m bench.load_remote [milliseconds ...]` prints the table.
"""

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import msgspec
import trio
from rich.console import Console
from rich.table import Table

from bench.compare import Rounds
from bench.delta_work import CHAIN_ID, Orders
from bench.load_children import HOST, ROOT, LoadError
from bench.load_swaps import PATIENCE_S, follow, opened, submit_all
from bench.slow_node import slow_node
from cambist.engine.dev.devnet.anvil import AnvilChain, anvil_command, find_anvil, running_anvil

ROUND_TRIPS_MS = (0, 50, 200)
SINGLE, SWAPS = 30, 300


class Remote(msgspec.Struct, frozen=True, kw_only=True):
    """Results of one distance of the node.

    Attributes:
        intake_s: median time of the answer to an order, when orders come one by one.
        swaps_s: orders a second, from the first COMPLETED event of many at once to the last.
        swap_s: median time from an order's submission to its COMPLETED event, when many come at once.
    """

    round_trip_ms: int
    intake_s: float
    swaps_s: float
    swap_s: float


async def remote(round_trip_ms: int, late_share: float = 0.0) -> Remote:
    """Measure intake and whole swaps of a venue at one distance from its node.

    Raises:
        LoadError: anvil is not installed.
        AssertionError: an order did not reach its expected state.
    """
    program = find_anvil(os.environ, [ROOT / "tests" / "oracles"])
    if program is None:
        raise LoadError("anvil is missing: make setup-node")
    with tempfile.TemporaryDirectory(prefix="cambist-bench-") as folder:
        async with (
            running_anvil(anvil_command(program, CHAIN_ID)) as near,
            AnvilChain.open(CHAIN_ID, near) as chain,
            slow_node(int(near.urls[0].rpartition(":")[2]), round_trip_ms / 1_000, late_share) as port,
            opened(Path(folder), SINGLE + SWAPS, chain, f"{HOST}:{port}") as (app, world, venue),
        ):
            orders = Orders(world.ground)
            signed = [orders.signed(number) for number in range(SINGLE + SWAPS)]
            named = [(one.order_hash, orders.body(one)) for one in signed]
            sent: dict[bytes, float] = {}
            done: dict[bytes, float] = {}
            each_s: list[float] = []
            with trio.fail_after(PATIENCE_S):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(follow, app, done, SINGLE)
                    for one in named[:SINGLE]:
                        began = time.perf_counter()
                        await submit_all(venue, [one], sent)
                        each_s.append(time.perf_counter() - began)
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(follow, app, done, SINGLE + SWAPS)
                    await submit_all(venue, named[SINGLE:], sent)
            ended = sorted(done[one.order_hash] for one in signed[SINGLE:])
            return Remote(
                round_trip_ms=round_trip_ms,
                intake_s=median(each_s),
                swaps_s=(SWAPS - 1) / (ended[-1] - ended[0]),
                swap_s=median(done[one.order_hash] - sent[one.order_hash] for one in signed[SINGLE:]),
            )


def run(rounds: int) -> list[Remote]:
    """Measure each distance `rounds` times, in turn.

    Raises:
        LoadError: anvil is not installed.
    """
    return [trio.run(remote, round_trip_ms) for _ in range(rounds) for round_trip_ms in ROUND_TRIPS_MS]


def metrics(found: Sequence[Remote]) -> dict[str, Rounds]:
    """Return the test's results by name of the metric in budgets.toml, with a value for each round.

    Times are in round trips to the node, so that they do not depend on the machine.
    """
    near = {ms: [one for one in found if one.round_trip_ms == ms] for ms in ROUND_TRIPS_MS}
    results = {}
    for ms in ROUND_TRIPS_MS[1:]:
        results[f"remote_swap_{ms}"] = Rounds(tuple(1e3 / one.swaps_s / ms for one in near[ms]))
        results[f"remote_intake_{ms}"] = Rounds(
            tuple(
                1e3 * (far.intake_s - here.intake_s) / ms for far, here in zip(near[ms], near[0], strict=True)
            )
        )
    return results


def table(found: Sequence[Remote]) -> Table:
    """Make a table of the medians over all rounds, by distance."""
    shown = Table("round trip ms", "intake p50 ms", "swaps a second", "swap p50 s", box=None)
    for ms in dict.fromkeys(one.round_trip_ms for one in found):
        mine = [one for one in found if one.round_trip_ms == ms]
        shown.add_row(
            f"{ms}",
            f"{1e3 * median(one.intake_s for one in mine):.0f}",
            f"{median(one.swaps_s for one in mine):.1f}",
            f"{median(one.swap_s for one in mine):.2f}",
        )
    return shown


def main() -> None:
    """Run the load test, and print its table."""
    wanted = [int(text) for text in sys.argv[1:]] or ROUND_TRIPS_MS
    Console().print(table([trio.run(remote, round_trip_ms) for round_trip_ms in wanted]))


if __name__ == "__main__":
    main()
