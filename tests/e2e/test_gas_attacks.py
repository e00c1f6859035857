"""Orders that are worth less than their gas: refused as quotes refuse them, or settled up to a subsidy."""

from pathlib import Path

import pytest

from cambist.config.limits import AGENT_GAS_COVERED_MAX
from cambist.engine.trade.delta.auction import gas_cover
from support.chain.world import ONE, USDC, World
from support.delta.delta_stories import DeltaStory, Record
from support.delta.resting_stories import a_resting_story
from support.patience import until_found

pytestmark = pytest.mark.one_chain  # the venue looks at it all the while

POOR = 'gas_policy = "subsidised"\ngas_subsidy_owner = 1_000_000\ngas_subsidy = 1_500_000'
BOOKS = {"WETH/USDC": {"bids": [["2500", "50"]], "asks": [["2510", "50"]]}}


async def small(story: DeltaStory, least: int) -> Record:
    """A new order that sells a thousandth of a WETH for at least so much USDC."""
    return await story.submitted(
        await story.world.a_delta_order(src_amount=ONE // 1_000, dest_amount=least, expected_amount=least)
    )


async def mined(world: World) -> int:
    """Number of the relayer's transactions."""
    return await world.chain.nonce(world.relayer.address)


async def test_dust_is_refused_as_its_quote_is(world: World, tmp_path: Path) -> None:
    """Sixty orders of one raw unit: before, the venue settled them all."""
    async with a_resting_story(world, tmp_path, BOOKS) as resting:
        story, before = resting.story, await mined(world)
        for _ in range(60):
            order = await world.a_delta_order(src_amount=1, dest_amount=1, expected_amount=1)
            status, told = await story.submit(order)
            assert (status, told.get("errorType")) == (400, "GasCostExceedsTradeAmount"), told
            assert "order.srcAmount: expected worth more than the gas of a settlement" in told["details"]
        assert await mined(world) == before


async def test_what_does_not_carry_its_gas_is_settled_up_to_a_subsidy_and_then_waits(
    world: World, tmp_path: Path
) -> None:
    """Gains of ten cents at most, for gas of more. An order whose bid carries its gas is settled."""
    async with a_resting_story(world, tmp_path, BOOKS, policy=POOR) as resting:
        story, before = resting.story, await mined(world)
        records = [await small(story, 24 * USDC // 10) for _ in range(6)]
        for record in records:
            await until_decided(story, record)

        async def counts() -> tuple[int, int]:
            ends = [(await story.record(record["id"]))["status"] for record in records]
            return ends.count("COMPLETED"), await mined(world) - before

        # An order that waited may still be settled: less gas was used than had been charged for the others.
        settled, _ = await until_found(counts, lambda found: found[0] == found[1])
        assert 1 <= settled <= 4, "a million units of gas"
        await story.completed(await world.a_delta_order())


async def test_a_gain_that_an_agent_pays_to_its_owner_covers_no_more_than_a_bound_of_gas(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred USDC over the limit, and calls of the agent that use more gas than a gain may cover."""
    async with a_resting_story(world, tmp_path, BOOKS, policy='gas_policy = "covered"') as resting:
        story = resting.story
        monkeypatch.setattr(gas_cover, "AGENT_GAS_COVERED_MAX", 100_000)
        record = await story.submitted(await world.a_delta_order())
        await story.says(record, "gasNotCarried")
        monkeypatch.setattr(gas_cover, "AGENT_GAS_COVERED_MAX", AGENT_GAS_COVERED_MAX)
        await story.becomes(record, "COMPLETED")


async def until_decided(story: DeltaStory, record: Record) -> None:
    """Wait until an order is settled, or waits because its gas is not carried."""

    async def now() -> tuple[str, bool]:
        reasons = await story.reasons(record)
        return (await story.record(record["id"]))["status"], "gasNotCarried" in reasons

    await until_found(now, lambda found: found[0] == "COMPLETED" or found[1])
