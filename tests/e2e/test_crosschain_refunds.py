"""Deposits that nobody fills: refunded to the owner, to the unit; and deliveries that come late."""

from pathlib import Path

import pytest

from cambist.codecs.bridges import across
from cambist.codecs.bridges.bridge_terms import BridgeKind
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import to_hex
from cambist.engine.chain.port import LogFilter
from support.bridge.bridged_stories import (
    ACROSS,
    CCTP,
    FAIR,
    FILL_WITHIN_S,
    BridgedStory,
    a_bridged_story,
    arriving,
)
from support.bridge.two_chains import TwoChains
from support.chain.world import ONE, USDC
from support.delta.delta_stories import Record
from support.patience import until, until_told

pytestmark = pytest.mark.one_of(2)

HOUR_S = 3_600


async def time_is_over(story: BridgedStory) -> None:
    """Let the fill deadline pass on both chains, for good."""
    await story.pass_time(FILL_WITHIN_S + 60)  # the chains' clocks differ a little
    await story.far.chain.mine(3)


async def is_settled_for_good(story: BridgedStory, record: Record) -> None:
    """The owner can cancel nothing."""
    status, told = await story.cancel(record)
    assert (status, told["errorType"]) == (400, "OrderAlreadySettled"), told


async def test_a_deposit_that_nobody_fills_comes_back_to_its_owner(two: TwoChains, tmp_path: Path) -> None:
    async with a_bridged_story(two, tmp_path) as story:
        two.relayer.order(is_silent=True)
        before = await story.balances()
        record = await story.bridging(ACROSS, beneficiary=two.stranger.address)
        assert await story.moved_since(before) == story.sold()
        await is_settled_for_good(story, record)
        await time_is_over(story)
        record = await story.becomes(record, "REFUNDING")
        assert (record["refunds"], record["output"]["executedAmount"]) == ([], None)
        await is_settled_for_good(story, record)
        two.relayer.order(pays_out=True)
        record = await story.becomes(record, "REFUNDED")
        moved = story.sold() | {("user", "USDC"): FAIR}
        del moved["pool", "USDC"]
        assert await story.moved_since(before) == moved
        (refund,) = record["refunds"]
        assert refund["tx"] in await payouts(story)
        assert refund == {
            "tx": refund["tx"],
            "chainId": two.first,
            "token": to_checksum(story.world.usdc),
            "amount": str(FAIR),
        }
        (transaction,) = record["transactions"]
        assert (transaction["destinationTx"], transaction["receivedAmount"]) == (None, None)
        await is_settled_for_good(story, record)
        await story.becomes_final(record)
        assert (await story.record(record["id"]))["refunds"] == [refund]


async def test_a_refund_that_the_chain_takes_back_is_owed_again(two: TwoChains, tmp_path: Path) -> None:
    async with a_bridged_story(two, tmp_path) as story:
        two.relayer.order(is_silent=True)
        before = await story.balances()
        record = await story.bridging(ACROSS)
        await time_is_over(story)
        await story.becomes(record, "REFUNDING")
        two.relayer.order(pays_out=True)
        await story.becomes(record, "REFUNDED")
        two.relayer.order(pays_out=False)
        await story.world.chain.reorganise(1)
        record = await story.turns(record, "REFUNDING")
        assert record["refunds"] == []
        two.relayer.order(pays_out=True)
        record = await story.becomes(record, "REFUNDED")
        assert [one["amount"] for one in record["refunds"]] == [str(FAIR)]
        moved = await story.moved_since(before)
        assert moved["user", "USDC"] == FAIR
        await story.becomes_final(record)


async def test_a_slice_is_refunded_and_the_others_arrive(two: TwoChains, tmp_path: Path) -> None:
    async with a_bridged_story(two, tmp_path) as story:
        before = await story.balances()
        order = await story.market.a_twap(
            total_src_amount=3 * ONE // 10, dest_amount_per_slice=230 * USDC, bridge=story.way(ACROSS)
        )
        record = await story.submitted(order)
        each = FAIR // 10
        await story.arrives(record, 1)
        two.relayer.order(is_silent=True)
        await story.pass_time(60)
        await story.with_fills(record, 2)
        await story.pass_time(60)
        record = await story.becomes(record, "BRIDGING")
        assert [one["destinationTx"] is None for one in record["transactions"]] == [False, True, True]
        await until(lambda: any(one.deposit_id == 2 for one in two.relayer.open_deposits()))
        (last,) = [one for one in two.relayer.open_deposits() if one.deposit_id == 2]
        await two.fill(last, two.stranger)
        await story.arrives(record, 2)
        await time_is_over(story)
        record = await story.becomes(record, "REFUNDING")
        two.relayer.order(pays_out=True)
        record = await story.becomes(record, "REFUNDED")
        assert [one["amount"] for one in record["refunds"]] == [str(each)]
        assert record["output"]["executedAmount"] == str(2 * arriving(each))
        assert [one["receivedAmount"] for one in record["transactions"]] == [
            str(arriving(each)),
            None,
            str(arriving(each)),
        ]
        await story.becomes_final(record)
        moved = await story.moved_since(before)
        assert (moved["user", "USDC"], moved["user", "far USDC"]) == (each, 2 * arriving(each))


@pytest.mark.parametrize("kind", BridgeKind)
async def test_a_destination_stands_still_for_an_hour_and_delivers_then(
    two: TwoChains, tmp_path: Path, kind: BridgeKind
) -> None:
    async with a_bridged_story(two, tmp_path) as story:
        before = await story.balances()
        await story.far.chain.set_automine(on=False)
        record = await story.bridging(kind)
        assert await story.says(record, "transferUnderWay")
        await story.stands_still(HOUR_S)
        await story.says(record, "transferLate")
        await until(lambda: story.deliveries().late == 1)
        assert await story.moved_since(before) == story.sold(by=kind)
        await is_settled_for_good(story, record)
        await story.far.chain.set_time(await story.far.now_s() + HOUR_S)
        await story.far.chain.set_automine(on=True)
        await story.far.chain.mine()
        record = await story.becomes(record, "COMPLETED")
        arrived = arriving() if kind is ACROSS else FAIR
        assert await story.moved_since(before) == story.carried(kind)
        assert record["output"]["executedAmount"] == str(arrived)
        assert (await story.explain(record))["reasons"] == []
        await until(lambda: (story.deliveries().late, story.deliveries().delivered) == (0, 1))
        await story.becomes_final(record)


async def test_a_destination_delivers_by_a_clock_that_is_hours_behind(two: TwoChains, tmp_path: Path) -> None:
    """A chain goes on after an outage with blocks of that time, and the venue looks at them later."""
    async with a_bridged_story(two, tmp_path) as story:
        await story.stands_still(2 * HOUR_S)
        story.nodes[two.second].is_away = True
        record = await story.bridging(ACROSS)
        await until(two.relayer.open_deposits)
        (deposit,) = two.relayer.open_deposits()
        await until_told(lambda: two.fills(deposit))
        await story.far.chain.mine(10)
        story.nodes[two.second].is_away = False
        record = await story.becomes(record, "COMPLETED")
        assert record["output"]["executedAmount"] == str(arriving())
        assert await story.far.now_s() < await story.world.now_s() - HOUR_S


async def test_a_message_waits_an_hour_for_its_attestation(two: TwoChains, tmp_path: Path) -> None:
    async with a_bridged_story(two, tmp_path) as story:
        two.attester.order(is_silent=True)
        before = await story.balances()
        record = await story.bridging(CCTP)
        await story.pass_time(HOUR_S)
        assert "attestation" in await story.says(record, "transferLate")
        assert await story.moved_since(before) == story.sold(by=CCTP)
        two.attester.order(is_silent=False)
        await story.becomes(record, "COMPLETED")
        assert await story.moved_since(before) == story.carried(CCTP)


async def payouts(story: BridgedStory) -> list[str]:
    """Hashes of the transactions by which the first chain's pool has paid out."""
    chain = story.world.chain
    wanted = LogFilter((story.world.spoke_pool,), ((across.EXECUTED_REFUND_ROOT.topic,),))
    logs = await chain.logs(wanted, 0, (await chain.upcoming()).head.number)
    return [to_hex(log.tx_hash) for log in logs]
