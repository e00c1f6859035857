"""Re-organisations of either chain at each step of an order across chains: followed, and paid for once."""

from pathlib import Path

import pytest

from cambist.codecs.bridges.bridge_terms import BridgeKind
from support.bridge.bridged_stories import ACROSS, CCTP, FAIR, BridgedStory, a_bridged_story, arriving
from support.bridge.two_chains import TwoChains
from support.chain.world import ONE, USDC
from support.delta.delta_stories import Record
from support.patience import until

pytestmark = pytest.mark.one_of(2)

KINDS = pytest.mark.parametrize("kind", BridgeKind)


async def undone(story: BridgedStory, record: Record) -> Record:
    """Record once the venue sees that its settlement has left the first chain, where blocks wait now."""
    await story.hold()
    await story.world.chain.reorganise(1)
    now = await story.turns(record, "ACTIVE")
    assert (now["transactions"], now["output"]["executedAmount"]) == ([], None)
    return now


@KINDS
async def test_a_settlement_leaves_the_chain_before_anything_is_delivered(
    two: TwoChains, tmp_path: Path, kind: BridgeKind
) -> None:
    async with a_bridged_story(two, tmp_path) as story:
        two.relayer.order(is_silent=True)
        two.attester.order(is_silent=True)
        before = await story.balances()
        record = await story.bridging(kind)
        await undone(story, record)
        assert await story.moved_since(before) == {}
        await story.mine()
        await story.turns(record, "BRIDGING")
        two.relayer.order(is_silent=False)
        two.attester.order(is_silent=False)
        record = await story.becomes(record, "COMPLETED")
        assert len(record["transactions"]) == 1
        assert await story.moved_since(before) == story.carried(kind)
        await story.becomes_final(record)
        assert len(story.agents["ann"].requests) == 1, "nothing is auctioned anew while it may be mined again"


async def test_a_fill_of_a_deposit_that_left_the_chain_is_not_the_orders(
    two: TwoChains, tmp_path: Path
) -> None:
    """The relayer filled before the deposit was final: that is the relayer's loss, and the owner's gain."""
    async with a_bridged_story(two, tmp_path) as story:
        before = await story.balances()
        record = await story.becomes(await story.submitted(await story.an_order(ACROSS)), "COMPLETED")
        first = record["transactions"][0]["destinationTx"]
        await undone(story, record)
        await story.world.chain.set_time(await story.world.now_s() + 30)
        await story.mine()
        record = await story.becomes(record, "COMPLETED")
        (transaction,) = record["transactions"]
        assert transaction["destinationTx"] != first
        assert record["output"]["executedAmount"] == str(arriving())
        moved = await story.moved_since(before)
        assert moved == story.sold() | {
            ("user", "far USDC"): 2 * arriving(),
            ("filler", "far USDC"): -2 * arriving(),
        }
        await story.becomes_final(record)


async def test_a_burn_that_is_mined_again_has_been_delivered(two: TwoChains, tmp_path: Path) -> None:
    async with a_bridged_story(two, tmp_path) as story:
        before = await story.balances()
        record = await story.becomes(await story.submitted(await story.an_order(CCTP)), "COMPLETED")
        first = record["transactions"][0]
        await undone(story, record)
        await story.mine()
        record = await story.becomes(record, "COMPLETED")
        assert record["transactions"] == [first]
        assert await story.moved_since(before) == story.carried(CCTP)
        await story.becomes_final(record)


@KINDS
async def test_a_delivery_leaves_the_destination_and_is_made_again(
    two: TwoChains, tmp_path: Path, kind: BridgeKind
) -> None:
    async with a_bridged_story(two, tmp_path) as story:
        before = await story.balances()
        record = await story.becomes(await story.submitted(await story.an_order(kind)), "COMPLETED")
        two.stop()
        await story.far.chain.set_automine(on=False)
        await story.far.chain.reorganise(1)
        now = await story.turns(record, "BRIDGING")
        assert [one["destinationTx"] for one in now["transactions"]] == [None]
        assert now["output"]["executedAmount"] is None
        assert await story.moved_since(before) == story.sold(by=kind)
        await two.start()
        await story.far.chain.set_automine(on=True)
        await story.far.chain.mine()
        await story.becomes(record, "COMPLETED")
        assert await story.moved_since(before) == story.carried(kind)
        await until(lambda: story.deliveries().gone == 1)
        await story.becomes_final(record)


@KINDS
async def test_both_chains_are_reorganised_at_once(two: TwoChains, tmp_path: Path, kind: BridgeKind) -> None:
    async with a_bridged_story(two, tmp_path) as story:
        before = await story.balances()
        record = await story.becomes(await story.submitted(await story.an_order(kind)), "COMPLETED")
        two.stop()  # or the relayer fills the old deposit once more between the two
        for world in (story.far, story.world):
            await world.chain.set_automine(on=False)
            await world.chain.reorganise(1)
        await story.turns(record, "ACTIVE")
        assert await story.moved_since(before) == {}
        await story.far.chain.set_automine(on=True)
        await story.far.chain.mine()
        await story.mine()
        await story.turns(record, "BRIDGING" if kind is ACROSS else "COMPLETED")
        await two.start()
        await story.becomes(record, "COMPLETED")
        assert await story.moved_since(before) == story.carried(kind)
        await story.becomes_final(record)


@KINDS
async def test_the_last_slice_leaves_the_chain_and_the_first_stays_delivered(
    two: TwoChains, tmp_path: Path, kind: BridgeKind
) -> None:
    async with a_bridged_story(two, tmp_path) as story:
        before = await story.balances()
        order = await story.market.a_twap(
            num_slices=2, total_src_amount=ONE, dest_amount_per_slice=1_150 * USDC, bridge=story.way(kind)
        )
        record = await story.arrives(await story.submitted(order), 1)
        await story.pass_time(60)
        record = await story.becomes(record, "COMPLETED")
        two.relayer.order(is_silent=True)
        await story.hold()
        await story.world.chain.reorganise(1)
        now = await story.turns(record, "ACTIVE")
        assert now["transactions"] == [record["transactions"][0] | {"filledPercent": 50}]
        await story.world.chain.set_time(await story.world.now_s() + 30)
        await story.mine()
        two.relayer.order(is_silent=False)
        record = await story.becomes(record, "COMPLETED")
        assert len(record["transactions"]) == 2
        half = FAIR // 2
        moved = await story.moved_since(before)
        assert (moved["user", "WETH"], moved["agent", "USDC"]) == (-ONE, -FAIR)
        each = arriving(half) if kind is ACROSS else half
        assert record["output"]["executedAmount"] == str(2 * each)
        lost = arriving(half) if kind is ACROSS else 0
        assert moved["user", "far USDC"] == 2 * each + lost
        await story.becomes_final(record)
