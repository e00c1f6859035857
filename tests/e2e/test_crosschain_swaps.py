"""Swaps whose output leaves by a bridge, from the quote to the delivery, to the unit on both chains."""

from pathlib import Path

import pytest

from cambist.codecs.bridges.bridge_terms import BridgeFee, BridgeKind, input_of, output_of
from cambist.codecs.contracts.contract_events import Transfer
from cambist.crypto.addresses import to_checksum
from support.bridge.bridged_stories import ACROSS, FAIR, FEE, BridgedStory, a_bridged_story, arriving
from support.bridge.two_chains import TwoChains
from support.chain.world import ONE, USDC, Moved
from support.contracts.settling import events
from support.delta.delta_stories import Record

pytestmark = [pytest.mark.one_of(2), pytest.mark.seldom]

OF_PROTOCOL = 10_000
"""Divisor of the fee that the venue takes of a quoted trade."""
SIGNED = {"across": FEE, "cctp": BridgeFee(0, 0), "express": BridgeFee(110, 0)}
"""Bridge -> fee that its quotes have the owner sign."""
ONE_BP = 10_000
"""Divisor of the fee that the attester takes of a fast burn."""
BRIDGES = pytest.mark.parametrize("bridge", SIGNED)
KINDS = pytest.mark.parametrize("kind", BridgeKind)


def carried(bridge: str, entered: int) -> Moved:
    """Movements of a bridge once it has delivered."""
    if bridge == "across":
        arrives = arriving(entered)
        fill = {("user", "far USDC"): arrives, ("filler", "far USDC"): -arrives}
        return {("pool", "USDC"): entered} | fill
    fee = -(-entered // ONE_BP) if bridge == "express" else 0
    return {("user", "far USDC"): entered - fee} | ({("circle", "far USDC"): fee} if fee else {})


async def delivered(story: BridgedStory, record: Record) -> list[int]:
    """Amounts that the deliveries of an order pay to its beneficiary, by the logs of the second chain."""
    found = []
    for transaction in record["transactions"]:
        receipt = await story.far.chain.receipt(bytes.fromhex(transaction["destinationTx"][2:]))
        assert receipt is not None
        (paid,) = [
            moved.amount
            for moved in events(receipt, Transfer)
            if to_checksum(moved.receiver) == record["beneficiary"]
        ]
        assert transaction["receivedAmount"] == str(paid)
        found.append(paid)
    return found


@BRIDGES
async def test_a_quoted_sale_arrives_and_both_chains_agree(
    two: TwoChains, tmp_path: Path, bridge: str
) -> None:
    async with a_bridged_story(two, tmp_path) as story:
        before = await story.balances()
        route = await story.quoted(bridge, "SELL", ONE)
        record = await story.becomes(await story.ordered(route), "COMPLETED")
        fee = FAIR // OF_PROTOCOL
        moved = carried(bridge, FAIR - fee)
        assert await story.moved_since(before) == moved | {
            ("user", "WETH"): -ONE,
            ("agent", "WETH"): ONE,
            ("agent", "USDC"): -FAIR,
            ("vault", "USDC"): fee,
        }
        arrived = moved["user", "far USDC"]
        assert await delivered(story, record) == [arrived]
        promised = int(route["destination"]["output"]["amount"])
        assert record["output"] == {
            "chainId": two.second,
            "token": to_checksum(story.far.usdc),
            "expectedAmount": str(promised),
            "executedAmount": str(arrived),
            "minAmount": str(promised * 9_900 // 10_000),
        }
        assert record["refunds"] == []
        await story.becomes_final(record)
        assert (await story.record(record["id"]))["status"] == "COMPLETED"


@BRIDGES
async def test_a_quoted_purchase_arrives_whole_and_costs_what_entered(
    two: TwoChains, tmp_path: Path, bridge: str
) -> None:
    wanted = 1_000 * USDC + 1
    async with a_bridged_story(two, tmp_path) as story:
        before = await story.balances()
        route = await story.quoted(bridge, "BUY", wanted)
        record = await story.becomes(await story.ordered(route), "COMPLETED")
        entered = input_of(SIGNED[bridge], 0, wanted)
        taken = -(-ONE * entered // FAIR)
        moved = carried(bridge, entered)
        found = await story.moved_since(before)
        fee = found.pop(("vault", "WETH"))
        assert fee == -(-taken // OF_PROTOCOL)
        assert found == moved | {
            ("user", "WETH"): -taken - fee,
            ("agent", "WETH"): taken,
            ("agent", "USDC"): -entered,
        }
        assert moved["user", "far USDC"] >= wanted
        assert await delivered(story, record) == [moved["user", "far USDC"]]
        assert record["output"]["amount"] == str(wanted)
        assert record["input"]["executedAmount"] == str(taken + fee)


async def test_a_token_of_other_decimals_arrives_in_its_own_units_at_another_account(
    two: TwoChains, tmp_path: Path
) -> None:
    async with a_bridged_story(two, tmp_path) as story:
        world, receiver = story.world, two.stranger.address
        usdt, there = two.tokens["USDT"][two.first], two.tokens["USDT"][two.second]
        await world.mint(usdt, story.market.agent, FAIR)
        way = story.way(ACROSS, "USDT")
        order = await world.a_delta_order(
            dest_token=usdt,
            dest_amount=2_400 * ONE,
            expected_amount=2_500 * ONE,
            bridge=way,
            beneficiary=receiver,
        )
        before = await story.far.balance(there, receiver)
        record = await story.becomes(await story.submitted(order), "COMPLETED")
        arrived = output_of(FEE, 12, FAIR)
        assert await story.far.balance(there, receiver) == before + arrived
        assert record["output"]["executedAmount"] == str(arrived)
        assert record["beneficiary"] == to_checksum(receiver)
        assert await world.balance(usdt, world.at.bridges) == await world.balance(usdt, world.at.delta) == 0
        assert await world.balance(usdt, world.spoke_pool) == FAIR


@KINDS
async def test_slices_of_a_sale_arrive_one_by_one(two: TwoChains, tmp_path: Path, kind: BridgeKind) -> None:
    async with a_bridged_story(two, tmp_path) as story:
        before = await story.balances()
        order = await story.market.a_twap(bridge=story.way(kind), dest_amount_per_slice=790 * USDC)
        record = await story.submitted(order)
        third = ONE // 3
        slices = [FAIR * third // ONE, FAIR * third // ONE, FAIR * (ONE - 2 * third) // ONE]
        for done in (1, 2):
            record = await story.arrives(record, done)
            assert record["status"] == "ACTIVE"
            await story.pass_time(60)
        record = await story.becomes(record, "COMPLETED")
        arrived = [carried(str(kind), one)["user", "far USDC"] for one in slices]
        assert await delivered(story, record) == arrived
        assert record["output"]["executedAmount"] == str(sum(arrived))
        assert sum(one["filledPercent"] for one in record["transactions"]) == 100
        moved = await story.moved_since(before)
        assert moved["user", "far USDC"] == sum(arrived)
        assert (moved["user", "WETH"], moved["agent", "USDC"]) == (-ONE, -sum(slices))
        assert moved.get(("pool", "USDC"), 0) == (sum(slices) if kind is ACROSS else 0)
        await story.becomes_final(record)


@KINDS
async def test_slices_of_a_purchase_arrive_one_by_one(
    two: TwoChains, tmp_path: Path, kind: BridgeKind
) -> None:
    async with a_bridged_story(two, tmp_path) as story:
        before = await story.balances()
        order = await story.market.a_twap_purchase(bridge=story.way(kind))
        record = await story.submitted(order)
        for done in (1, 2):
            record = await story.arrives(record, done)
            await story.pass_time(60)
        record = await story.becomes(record, "COMPLETED")
        wanted = order.total_dest_amount
        fee = FEE if kind is ACROSS else BridgeFee(0, 0)
        slices = [wanted // 3, wanted // 3, wanted - 2 * (wanted // 3)]
        entered = [input_of(fee, 0, one) for one in slices]
        arrived = [output_of(fee, 0, one) for one in entered]
        assert await delivered(story, record) == arrived
        assert all(got >= least for got, least in zip(arrived, slices, strict=True))
        moved = await story.moved_since(before)
        assert moved["user", "far USDC"] == sum(arrived)
        assert moved["agent", "USDC"] == -sum(entered)
        assert record["input"]["executedAmount"] == str(-moved["user", "WETH"])
