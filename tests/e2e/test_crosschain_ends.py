"""Orders across chains that end otherwise: cancelled, or attested anew; and events of their ends."""

from functools import partial
from pathlib import Path

import pytest

from cambist.codecs.bridges import cctp
from cambist.codecs.bridges.bridge_terms import BridgeKind
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import to_hex
from support.bridge.bridged_stories import (
    ACROSS,
    CCTP,
    FAIR,
    FILL_WITHIN_S,
    BridgedStory,
    a_bridged_story,
    arriving,
    way,
)
from support.bridge.two_chains import TwoChains
from support.chain.world import NATIVE, ONE, USDC
from support.delta.delta_stories import CONFIRMATIONS, Record
from support.events.event_streams import following
from support.patience import until_found, until_told

pytestmark = pytest.mark.one_of(2)

KINDS = pytest.mark.parametrize("kind", BridgeKind)


async def is_refused(story: BridgedStory, record: Record) -> bool:
    """Whether the venue says that the destination would refuse an order's message."""
    return "would refuse" in (await story.reasons(record)).get("transferUnderWay", "")


async def test_an_attestation_that_the_destination_refuses_is_asked_for_again(
    two: TwoChains, tmp_path: Path
) -> None:
    """Circle changes its attesters' keys; a message attested by an old one is attested anew on demand."""
    async with a_bridged_story(two, tmp_path) as story:
        two.attester.order(signs_wrongly=True)
        before = await story.balances()
        record = await story.bridging(CCTP)
        message, _ = await two.attested(two.first, bytes.fromhex(record["transactions"][0]["originTx"][2:]))
        await until_told(lambda: is_refused(story, record))
        two.attester.order(signs_wrongly=False)
        nonce = cctp.parse_message(message).nonce
        assert (await two.post(f"/v2/reattest/0x{nonce.hex()}"))[0] == 200
        await story.becomes(record, "COMPLETED")
        assert await story.moved_since(before) == story.carried(CCTP)


@pytest.mark.parametrize("is_filled", [True, False])
async def test_a_cancelled_order_follows_its_transfer_to_the_end(
    two: TwoChains, tmp_path: Path, *, is_filled: bool
) -> None:
    """The first slice is under way when its owner cancels the rest."""
    async with a_bridged_story(two, tmp_path) as story:
        two.relayer.order(is_silent=True)
        before = await story.balances()
        half, least = FAIR // 2, 1_150 * USDC
        order = await story.market.a_twap(
            num_slices=2, total_src_amount=ONE, dest_amount_per_slice=least, bridge=story.way(ACROSS)
        )
        record = await story.with_fills(await story.submitted(order), 1)
        status, told = await story.cancel(record)
        assert status == 200, told
        record = await story.becomes(record, "CANCELLED")
        assert (record["transactions"][0]["destinationTx"], record["refunds"]) == (None, [])
        assert "transferUnderWay" in await story.reasons(record)
        if is_filled:
            two.relayer.order(is_silent=False)
            record = await story.arrives(record, 1)
            assert record["output"]["executedAmount"] == str(arriving(half))
            came = {("user", "far USDC"): arriving(half), ("filler", "far USDC"): -arriving(half)}
        else:
            await story.pass_time(FILL_WITHIN_S + 60)
            await story.far.chain.mine(CONFIRMATIONS)
            await story.says(record, "refundDue")
            two.relayer.order(pays_out=True)
            record = await story.is_refunded(record)
            assert [one["amount"] for one in record["refunds"]] == [str(half)]
            came = {("user", "USDC"): half, ("pool", "USDC"): -half}
        assert record["status"] == "CANCELLED"
        moved = story.sold(half, ONE // 2)
        moved |= {key: moved.get(key, 0) + amount for key, amount in came.items()}
        assert await story.moved_since(before) == {key: amount for key, amount in moved.items() if amount}
        await story.becomes_final(record)
        assert (await story.record(record["id"]))["status"] == "CANCELLED"


async def test_equal_orders_of_one_owner_arrive_each_once(two: TwoChains, tmp_path: Path) -> None:
    """Burns of the same amount for the same account differ in nothing but their transactions."""
    async with a_bridged_story(two, tmp_path) as story:
        before = await story.balances()
        records = [await story.submitted(await story.an_order(kind)) for kind in (CCTP, ACROSS) * 2]
        done = [await story.becomes(record, "COMPLETED") for record in records]
        deliveries = [one["destinationTx"] for record in done for one in record["transactions"]]
        assert len(set(deliveries)) == 4
        moved = await story.moved_since(before)
        assert moved["user", "far USDC"] == 2 * (FAIR + arriving())
        assert (moved["user", "WETH"], moved["pool", "USDC"]) == (-4 * ONE, 2 * FAIR)


@KINDS
async def test_orders_go_both_ways_at_once(two: TwoChains, tmp_path: Path, kind: BridgeKind) -> None:
    """Each chain is the origin of one order and the destination of the other."""
    async with a_bridged_story(two, tmp_path, is_two_way=True) as story:
        before = await story.balances()
        there = await story.submitted(await story.an_order(kind))
        order = await story.far.a_delta_order(bridge=way(two, kind, origin=two.second))
        signature = to_hex(story.far.delta_signed(order))
        back = await story.submitted(order, chainId=two.second, signature=signature)
        for record, origin in ((there, two.first), (back, two.second)):
            done = await story.becomes(record, "COMPLETED")
            assert (done["input"]["chainId"], done["output"]["chainId"]) == (origin, two.other(origin))
            await story.becomes_final(record)
        moved = story.carried(kind)
        for (who, token), amount in story.carried(kind).items():
            key = who, token.removeprefix("far ") if token.startswith("far ") else f"far {token}"
            moved[key] = moved.get(key, 0) + amount
        assert await story.moved_since(before) == {key: amount for key, amount in moved.items() if amount}


async def test_native_tokens_are_sold_by_a_deposit(two: TwoChains, tmp_path: Path) -> None:
    async with a_bridged_story(two, tmp_path) as story:
        world = story.world
        order = await story.an_order(ACROSS, src_token=NATIVE)
        await story.market.deposit(order, ONE)
        record = await story.becomes(await story.submitted(order), "BRIDGING", "COMPLETED")
        record = await story.becomes(record, "COMPLETED")
        assert record["output"]["executedAmount"] == str(arriving())
        assert await story.market.deposited(order) == 0
        assert await world.balance(world.weth, world.at.delta) == 0


async def test_events_and_queries_tell_each_step_of_a_refund(two: TwoChains, tmp_path: Path) -> None:
    async with a_bridged_story(two, tmp_path) as story:
        two.relayer.order(is_silent=True)
        owner = to_checksum(story.world.user.address)
        async with following(story.web.port, f"userAddress={owner}") as events:
            await events.begun()
            record = await story.submitted(await story.an_order(ACROSS))
            bridging = (await events.until_status("BRIDGING"))[-1]
            assert (bridging.spent_amount, bridging.received_amount) == (str(ONE), "0")
            await story.is_listed(record, "BRIDGING")
            await story.pass_time(FILL_WITHIN_S + 60)
            await story.far.chain.mine(CONFIRMATIONS)
            assert [one.status for one in await events.until_status("REFUNDING")] == ["REFUNDING"]
            await story.is_listed(record, "REFUNDING")
            two.relayer.order(pays_out=True)
            assert [one.status for one in await events.until_status("REFUNDED")] == ["REFUNDED"]
            await story.is_listed(record, "REFUNDED")


@KINDS
async def test_events_tell_each_step_of_a_delivery(two: TwoChains, tmp_path: Path, kind: BridgeKind) -> None:
    async with a_bridged_story(two, tmp_path) as story:
        owner = to_checksum(story.world.user.address)
        async with following(story.web.port, f"userAddress={owner}") as events:
            await events.begun()
            await story.submitted(await story.an_order(kind))
            told = await events.until_status("COMPLETED")
        assert [one.status for one in told] == ["PENDING", "ACTIVE", "BRIDGING", "COMPLETED"]
        arrived = arriving() if kind is ACROSS else FAIR
        assert (told[-1].spent_amount, told[-1].received_amount) == (str(ONE), str(arrived))


async def test_a_fast_transfer_whose_fee_has_risen_arrives_by_the_standard_one(
    two: TwoChains, tmp_path: Path
) -> None:
    """Circle attests a burn whose fee is below the fast tier's once it is final, and takes no fee."""
    async with a_bridged_story(two, tmp_path) as story:
        two.attester.order(is_silent=True)
        record = await story.ordered(await story.quoted("express", "SELL", ONE))
        await story.becomes(record, "BRIDGING")
        two.attester.order(is_silent=False, fast_fee_bps=50, final_after_s=86_400)
        delayed = "it waits for its attestation, which the attester delays: 'insufficient_fee'"
        await until_found(
            partial(story.reasons, record), lambda told: delayed in told.get("transferUnderWay", "")
        )
        two.attester.order(final_after_s=0)
        record = await story.becomes(record, "COMPLETED")
        (settled,) = record["transactions"]
        assert settled["receivedAmount"] == str(FAIR - FAIR // 10_000)
        two.attester.order(fast_fee_bps=1)
