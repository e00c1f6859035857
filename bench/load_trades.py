"""Load test of trades whose nodes are all far away: the trader's, the venue's, the makers' and the agents'.

    place    a market place as of `cambist up`, all roles in this process, its chains anvils
    proxies  delay requests and answers of both chains (`bench.slow_node`), in processes of their own
    trader   the Python client: one trade after another, so that each waits alone

A time counts from the call of the client to its end: a swap and a fill once they are mined, an order once it
is settled and checked on chain, an OTC order once the venue has it.

`python -m bench.load_trades [milliseconds ...]` prints the table; `--late` holds back 1 % of the requests by
two seconds.
"""

import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from statistics import median

import msgspec
import trio
from rich.console import Console
from rich.table import Table

from bench.compare import Rounds
from bench.load_children import HOST, ROOT, LoadError
from bench.slow_node import LATE_SHARE, slow_node
from cambist.client import Venue
from cambist.config.errors import CambistError
from cambist.engine.dev.devnet.anvil import find_anvil
from cambist.engine.dev.place.layout import CHAIN_ID, VENUE, Layout
from cambist.engine.dev.place.up import TRADERS, UpOptions, running_up
from cambist.engine.host.process.clock import WallClock
from cambist.feeds.transport.streams import listen

ROUND_TRIPS_MS = (0, 50, 200)
_JUDGED_MS = (0, 50)
TRADES = 5
PATIENCE_S = 300.0
_CHAINS = 2
_SIZE = "0.1"  # WETH of a trade

Trade = Callable[[], Awaitable[object]]


class Trades(msgspec.Struct, frozen=True, kw_only=True):
    """Results of one distance of the nodes.

    Attributes:
        seconds: median time of each kind of trade.
    """

    round_trip_ms: int
    seconds: dict[str, float]


async def trades(round_trip_ms: int, late_share: float = 0.0) -> Trades:
    """Measure each kind of trade at one distance of the nodes.

    Raises:
        LoadError: anvil is not installed, or a trade failed.
    """
    if find_anvil(os.environ, [ROOT / "tests" / "oracles"]) is None:
        raise LoadError("anvil is missing: make setup-node")
    with tempfile.TemporaryDirectory(prefix="cambist-bench-") as folder, trio.fail_after(PATIENCE_S):
        async with _trader(Path(folder), round_trip_ms, late_share) as kinds:
            found: dict[str, list[float]] = {name: [] for name in kinds}
            for _ in range(TRADES):
                for name, trade in kinds.items():
                    began = time.perf_counter()
                    try:
                        await trade()
                    except CambistError as error:
                        raise LoadError(f"{name}: {error}") from error
                    found[name].append(time.perf_counter() - began)
    return Trades(round_trip_ms=round_trip_ms, seconds={name: median(each) for name, each in found.items()})


@asynccontextmanager
async def _trader(folder: Path, round_trip_ms: int, late_share: float) -> AsyncIterator[dict[str, Trade]]:
    """Open the market place behind its proxies, and a trader: its kinds of trades by name."""
    devnet_port = _free_ports()
    wanted = UpOptions(
        folder=folder,
        is_kept=False,
        port=0,
        devnet_port=devnet_port,
        block_time_s=0,
        anvil=True,
        without=frozenset(),
    )
    async with AsyncExitStack() as owned:
        near, far = [
            await owned.enter_async_context(slow_node(devnet_port + at, round_trip_ms / 1_000, late_share))
            for at in range(_CHAINS)
        ]

        def planned(layout: Layout) -> Layout:
            return msgspec.structs.replace(
                layout,
                near=msgspec.structs.replace(layout.near, url=f"http://{HOST}:{near}"),
                far=msgspec.structs.replace(layout.far, url=f"http://{HOST}:{far}"),
            )

        environ = {"PATH": f"{ROOT / 'tests' / 'oracles' / 'node_modules' / '.bin'}:{os.environ['PATH']}"}
        place = await owned.enter_async_context(running_up(wanted, environ, WallClock(), planned))
        url = f"http://{HOST}:{place.layout.ports[VENUE]}"
        maker, taker = place.keys[TRADERS][:2]
        venue = await owned.enter_async_context(Venue.open(url, CHAIN_ID, rpc=f"http://{HOST}:{near}"))

        async def order() -> None:
            await venue.follow(await venue.order("WETH", "USDC", _SIZE, key=taker))

        posted = []

        async def post() -> None:
            posted.append(await venue.otc("WETH", "USDC", _SIZE, price="2000", key=maker))

        yield {
            "quote": lambda: venue.quote("WETH", "USDC", _SIZE),
            "swap": lambda: venue.swap("WETH", "USDC", _SIZE, key=taker),
            "order": order,
            "OTC post": post,
            "OTC fill": lambda: venue.fill(posted[-1], key=taker),
        }


def _free_ports() -> int:
    """First of three ports in a row that are free now."""
    while True:
        with listen(HOST, 0) as first:
            port: int = first.getsockname()[1]
            try:
                for at in (1, 2):
                    listen(HOST, port + at).close()
            except (OSError, OverflowError, CambistError):
                continue
        return port


def run(rounds: int) -> list[Trades]:
    """Measure each judged distance `rounds` times, in turn.

    Raises:
        LoadError: anvil is not installed, or a trade failed.
    """
    return [trio.run(trades, round_trip_ms) for _ in range(rounds) for round_trip_ms in _JUDGED_MS]


def metrics(found: Sequence[Trades]) -> dict[str, Rounds]:
    """Return the test's results by name of the metric in budgets.toml, with a value for each round.

    Times are in round trips, beside those of nodes without delay, so that they depend little on the machine.
    """
    here, far = [[one for one in found if one.round_trip_ms == ms] for ms in _JUDGED_MS]
    ms = _JUDGED_MS[1]
    return {
        f"trade_{name.lower().replace(' ', '_')}_{ms}": Rounds(
            tuple(
                max(0.0, 1e3 * (late.seconds[name] - soon.seconds[name]) / ms)
                for soon, late in zip(here, far, strict=True)
            )
        )
        for name in far[0].seconds
    }


def table(found: Sequence[Trades]) -> Table:
    """Make a table of the medians over all rounds, by distance."""
    names = list(found[0].seconds)
    shown = Table("round trip ms", *[f"{name} ms" for name in names], box=None)
    for ms in dict.fromkeys(one.round_trip_ms for one in found):
        mine = [one for one in found if one.round_trip_ms == ms]
        shown.add_row(f"{ms}", *[f"{1e3 * median(one.seconds[name] for one in mine):.0f}" for name in names])
    return shown


def main() -> None:
    """Run the load test, and print its table."""
    arguments = sys.argv[1:]
    late_share = LATE_SHARE if "--late" in arguments else 0.0
    wanted = [int(text) for text in arguments if text != "--late"] or ROUND_TRIPS_MS
    Console().print(table([trio.run(trades, round_trip_ms, late_share) for round_trip_ms in wanted]))


if __name__ == "__main__":
    main()
