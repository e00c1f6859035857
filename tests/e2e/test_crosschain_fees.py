"""A bridge that asks more than the owner signed: the order waits, and nothing leaves its owner."""

from pathlib import Path

from cambist.codecs.bridges.bridge_terms import BridgeFee, output_of
from cambist.engine.dev.bridge.lanes import RelayerTerms
from support.bridge.bridged_stories import ACROSS, FAIR, a_bridged_story
from support.bridge.two_chains import TwoChains
from support.chain.world import ONE, USDC

LOW = BridgeFee(10, 22_000)


async def test_an_order_waits_until_the_bridge_carries_at_its_fee(two: TwoChains, tmp_path: Path) -> None:
    async with a_bridged_story(two, tmp_path) as story:
        before = await story.balances()
        order = await story.an_order(ACROSS, bridge=story.way(ACROSS, fee=LOW))
        record = await story.submitted(order)
        other = await story.submitted(await story.an_order(ACROSS))
        await story.becomes(other, "COMPLETED")
        told = await story.explain(record)
        assert told["status"] == "PENDING"
        assert "bridgeFee" in [reason["code"] for reason in told["reasons"]]
        assert (await story.record(record["id"]))["transactions"] == []
        two.relayer.terms = RelayerTerms(0, 0)
        await story.becomes(record, "COMPLETED")
        arrived = output_of(LOW, 0, FAIR)
        moved = await story.moved_since(before)
        assert moved["user", "WETH"] == -2 * ONE
        assert moved["user", "far USDC"] > arrived > 2_400 * USDC
