"""The demo's scenes: what they say, and that they end with an error where a result is not as it should be.

`test_cli_process` runs the command as a whole.
"""

import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from rich.console import Console

from cambist.codecs.contracts.calldata import transfer
from cambist.engine.chain.transact import transact
from cambist.engine.dev.demo import orders
from cambist.engine.dev.demo.stage import DemoStage, open_stage, until
from support.patience import STORY_S
from support.programs import DEVELOPMENT_CHAIN, program


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[DemoStage]:
    program(*DEVELOPMENT_CHAIN)
    with trio.fail_after(STORY_S):
        async with open_stage(Console(file=io.StringIO(), width=200), folder) as stage:
            yield stage


async def test_a_settlement_that_does_not_fail_is_no_scene_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Alpha's transaction comes behind everything else."""
    monkeypatch.setattr(orders, "_TIP_WEI", 0)
    async with opened(tmp_path) as stage:
        with pytest.raises(AssertionError, match="successes in the block of alpha and the settlement"):
            await orders.show_failure(stage)


async def test_a_unit_that_is_lost_is_seen(tmp_path: Path) -> None:
    async with opened(tmp_path) as stage:
        before = await stage.balances()
        await transact(stage.near, stage.key("user"), stage.at("USDC"), transfer(b"\x01" * 20, 1))
        with pytest.raises(AssertionError, match=r"lost or made: expected \[\], got \['USDC'\]"):
            await stage.moves(before)


async def test_a_maker_that_trades_again_is_live_once_its_readers_hear_it(tmp_path: Path) -> None:
    """A reader keeps the books of a closed WebSocket for a second, and would lose them during an auction."""
    async with opened(tmp_path) as stage:
        feed = stage.place.roles.agents["rapid"].chains[stage.near.chain_id].makers.feeds["alpha"]
        switch = stage.place.roles.makers["alpha"].switch
        switch.stop("all")
        await until(lambda: (stream := feed.statistics().stream) is not None and not stream.is_up)
        switch.resume("all")
        await stage.live()
        stream = feed.statistics().stream
        assert stream is not None
        assert (stream.is_up, stream.connections) == (True, 2)
