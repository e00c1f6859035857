"""Load test of an indexer that is 10,000 blocks behind a node far away.

    node    anvil, in a process of its own; a log in each tenth block
    proxy   delays requests and answers (`bench.slow_node`), in a process of its own
    figure  time from the first step to the last block, beside that with the node at hand

`python -m bench.load_catch_up [milliseconds ...]` prints the table.
"""

import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import trio
from msgspec import Struct
from rich.console import Console
from rich.table import Table

from bench.compare import Rounds
from bench.delta_ground import OWNER, deployed
from bench.delta_work import CHAIN_ID
from bench.load_children import HOST, ROOT, LoadError
from bench.slow_node import slow_node
from cambist.codecs.contracts.calldata import cancel_order
from cambist.codecs.transactions import Transaction, sign_transaction
from cambist.config.sections.nodes import NodeSettings
from cambist.config.settings import parse_settings
from cambist.engine.chain.artifacts import known_errors
from cambist.engine.chain.index.applied import IndexedContracts
from cambist.engine.chain.index.indexer import Indexer
from cambist.engine.chain.index.watch import Watch
from cambist.engine.dev.devnet.anvil import AnvilChain, anvil_command, find_anvil, running_anvil
from cambist.engine.host.process.clock import WallClock
from cambist.engine.store.process.open_store import open_store

BLOCKS, EACH = 10_000, 10
ROUND_TRIPS_MS = (0, 50, 200)
PATIENCE_S = 600.0
_GAS = 200_000
_STATES_KEPT = "100"  # of old blocks, whose logs are read alone: anvil mines faster with few


class CatchUp(Struct, frozen=True, kw_only=True):
    """Result of one distance of the node: seconds from the first step to the last block."""

    round_trip_ms: int
    seconds: float


async def catch_up(rounds: int, round_trips_ms: Sequence[int]) -> list[CatchUp]:
    """Measure a fresh indexer at each distance from one chain, `rounds` times in turn.

    Raises:
        LoadError: anvil is not installed.
        AssertionError: the indexer has left out a row.
    """
    program = find_anvil(os.environ, [ROOT / "tests" / "oracles"])
    if program is None:
        raise LoadError("anvil is missing: make setup-node")
    command = anvil_command(program, CHAIN_ID)
    command[command.index("--prune-history") + 1] = _STATES_KEPT
    async with (
        running_anvil(command) as near,
        AnvilChain.open(CHAIN_ID, near) as chain,
    ):
        contracts, first = await _grown(chain)
        found = []
        for _ in range(rounds):
            for round_trip_ms in round_trips_ms:
                async with slow_node(int(near.urls[0].rpartition(":")[2]), round_trip_ms / 1_000) as port:
                    settings = NodeSettings(urls=(f"http://{HOST}:{port}",))
                    async with AnvilChain.open(CHAIN_ID, settings, known_errors()) as far:
                        seconds = await _indexed(far, contracts, first)
                found.append(CatchUp(round_trip_ms=round_trip_ms, seconds=seconds))
        return found


async def _grown(chain: AnvilChain) -> tuple[IndexedContracts, int]:
    """Make the blocks; the contracts, and the height of the first block after their deployment."""
    world = await deployed(chain, 1)
    first, nonce = await _height(chain) + 1, await chain.nonce(OWNER.address)
    fees = await chain.fees()
    for number in range(BLOCKS // EACH):
        data = cancel_order(number.to_bytes(32, "big"))
        sent = Transaction(
            CHAIN_ID, nonce + number, fees.tip_wei, 100 * fees.base_fee_wei, _GAS, world.at.rfq, 0, data
        )
        await chain.send_raw(sign_transaction(sent, OWNER).raw)
        await chain.mine(EACH - 1)
    return IndexedContracts(world.at.rfq, world.at.delta), first


async def _height(chain: AnvilChain) -> int:
    head = await chain.block()
    assert head is not None
    return head.number


async def _indexed(chain: AnvilChain, contracts: IndexedContracts, first: int) -> float:
    async with _indexer(chain, contracts, first) as indexer:
        began = time.perf_counter()
        with trio.fail_after(PATIENCE_S):
            while await indexer.step():
                pass
        seconds = time.perf_counter() - began
        assert indexer.statistics().rows == BLOCKS // EACH
        return seconds


@asynccontextmanager
async def _indexer(chain: AnvilChain, contracts: IndexedContracts, first: int) -> AsyncIterator[Indexer]:
    now_ms = WallClock().now_ms
    with tempfile.TemporaryDirectory(prefix="cambist-bench-") as folder:
        settings = parse_settings('state_dir = "."', {}, Path(folder))
        async with open_store(settings, os.environ, Path(folder), now_ms) as store:
            yield Indexer(
                chain,
                store,
                contracts,
                Watch(),
                begun=trio.Event(),
                touched=lambda *_: None,
                logged=lambda _: None,
                now_ms=now_ms,
                first_block=first,
            )


def run(rounds: int) -> list[CatchUp]:
    """Measure each distance `rounds` times, in turn.

    Raises:
        LoadError: anvil is not installed.
    """
    return trio.run(catch_up, rounds, ROUND_TRIPS_MS)


def metrics(found: Sequence[CatchUp]) -> dict[str, Rounds]:
    """Return the test's results by name of the metric in budgets.toml, with a value for each round.

    Times beyond that with the node at hand are in round trips, so that they do not depend on the machine.
    """
    took = {ms: [one.seconds for one in found if one.round_trip_ms == ms] for ms in ROUND_TRIPS_MS}
    return {
        f"catch_up_{ms}": Rounds(
            tuple(1e3 * (far - near) / ms for far, near in zip(took[ms], took[0], strict=True))
        )
        for ms in ROUND_TRIPS_MS[1:]
    }


def table(found: Sequence[CatchUp]) -> Table:
    """Make a table with a row for each measurement."""
    shown = Table("round trip ms", "blocks a second", box=None)
    for one in found:
        shown.add_row(f"{one.round_trip_ms}", f"{BLOCKS / one.seconds:,.0f}")
    return shown


def main() -> None:
    """Run the load test, and print its table."""
    wanted = [int(text) for text in sys.argv[1:]] or ROUND_TRIPS_MS
    Console().print(table(trio.run(catch_up, 1, wanted)))


if __name__ == "__main__":
    main()
