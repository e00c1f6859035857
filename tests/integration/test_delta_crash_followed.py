"""A settlement is handed in once the chain is followed: before, nobody would ever read that it was mined."""

import time
from pathlib import Path

import pytest
import trio
from structlog.testing import capture_logs

from cambist.engine.chain.artifacts import known_errors
from cambist.engine.chain.index.indexer import Indexer
from cambist.engine.dev.embedded.embedded import EmbeddedChain
from support.chain.world import USDC, a_world
from support.delta.delta_stories import a_delta_story
from support.patience import until
from support.venue.venue_role import CHAIN_ID


async def test_nothing_is_handed_in_before_the_chain_is_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step, is_away = Indexer.step, trio.Event()

    async def late(indexer: Indexer) -> bool:
        await is_away.wait()
        return await step(indexer)

    monkeypatch.setattr(Indexer, "step", late)
    world = await a_world(EmbeddedChain(CHAIN_ID, lambda: int(time.time()), {}, known_errors()))
    async with a_delta_story(world, tmp_path, "ann") as story:
        story.agents["ann"].gives = lambda _: 2_500 * USDC
        nonce = await world.chain.nonce(world.relayer.address)
        with capture_logs() as logs:
            record = await story.submitted(await world.a_delta_order())
            await until(
                lambda: (
                    story.agents["ann"].told("settling")
                    or any(line["event"] == "a settlement waits" for line in logs)
                )
            )
        assert await world.chain.nonce(world.relayer.address) == nonce
        is_away.set()
        await story.becomes(record, "COMPLETED")
