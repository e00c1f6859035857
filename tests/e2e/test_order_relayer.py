"""The relayer's bad days: lost and stuck transactions, a restart in between. Each order is settled once."""

from pathlib import Path

import pytest

from cambist.codecs.contracts.contract_events import ORDER_SETTLED
from cambist.engine.chain.port import LogFilter
from support.chain.world import ONE, USDC, World
from support.delta.delta_stories import DeltaStory, a_delta_story
from support.patience import until

pytestmark = pytest.mark.one_chain  # the venue looks at it all the while

GWEI = 10**9


async def settlements(story: DeltaStory) -> list[bytes]:
    """Hashes of the orders that were settled, one for each settlement."""
    chain = story.world.chain
    head = await chain.block()
    assert head is not None
    wanted = LogFilter((story.world.at.delta,), ((ORDER_SETTLED,),))
    return [log.topics[1] for log in await chain.logs(wanted, 0, head.number)]


async def test_a_transaction_that_a_node_forgets_is_handed_in_again(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        story.agents["ann"].gives = lambda _: 2_500 * USDC
        await story.hold()
        record = await story.submitted(await world.a_delta_order())
        await story.under_way(record)
        (chain,) = story.web.app.delta.chains.values()
        (tx_hash,) = await story.waiting_transactions()
        await world.chain.drop(tx_hash)
        handed = chain.relayer.statistics().counts["handed"]
        await story.pass_time(30)
        await until(lambda: chain.relayer.statistics().counts["handed"] > handed)
        await story.mine()
        await story.becomes(record, "COMPLETED")
        assert await settlements(story) == [story.hash_of(record)]


async def test_a_transaction_that_pays_too_little_is_replaced(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann", relayer="stuck_s = 1") as story:
        story.agents["ann"].gives = lambda _: 2_500 * USDC
        await story.hold()
        record = await story.submitted(await world.a_delta_order())
        await story.under_way(record)
        await world.chain.set_base_fee(20 * GWEI)
        await world.chain.mine()
        (chain,) = story.web.app.delta.chains.values()
        await until(lambda: chain.relayer.statistics().counts["bumped"] > 0)
        await story.mine()
        await story.becomes(record, "COMPLETED")
        assert await settlements(story) == [story.hash_of(record)]


async def test_a_venue_that_starts_again_goes_on_with_what_was_under_way(
    world: World, tmp_path: Path
) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        market = story.market
        story.agents["ann"].gives = lambda _: 2_500 * USDC
        waiting = await story.submitted(await world.a_delta_order(dest_amount=2_501 * USDC))
        await story.heard_of("ann", waiting)
        before = await story.balances()
        await story.hold()
        record = await story.submitted(await world.a_delta_order())
        await story.under_way(record)
        assert (await story.cancel(waiting))[0] == 200
    await world.chain.mine()
    await world.chain.set_automine(on=True)
    async with a_delta_story(world, tmp_path, "ann", market=market) as story:
        await story.becomes(record, "COMPLETED")
        await story.becomes(waiting, "CANCELLED")
        assert story.agents["ann"].requests == []
        moved = await story.moved_since(before)
        assert moved["user", "WETH"] == -ONE
        assert await settlements(story) == [story.hash_of(record)]
