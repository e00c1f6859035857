"""Swaps after a bridge that go wrong: paid out in time, tried again, made anew; every unit is the owner's."""

import math
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
from msgspec.structs import replace

from cambist.codecs.bridges.arrivals import ArrivalTerms, arrival_address, pack_arrival, pay_out_arrival
from cambist.config.limits import ARRIVAL_UNTIL_MAX_S
from cambist.config.timeouts import ARRIVAL_SWAP_S
from cambist.crypto.addresses import to_checksum
from cambist.engine.chain.relay.relayer import Relayer
from cambist.engine.trade.delta.arriving.arrival_swaps import ArrivalStatistics
from cambist.engine.trade.delta.orders.arriving import arrival_code, arrival_of
from support.bridge.bridged_stories import (
    ACROSS,
    FAIR,
    BridgedStory,
    a_swapped_story,
    arriving,
    dai_for,
    far_place,
    quoted_dai,
)
from support.bridge.two_chains import TwoChains
from support.chain.world import ONE, Moved
from support.delta.delta_stories import CONFIRMATIONS, Record
from support.patience import PATIENCE_S, until, until_found

pytestmark = [pytest.mark.one_of(2), pytest.mark.seldom]

ENTERED = FAIR - FAIR // 10_000
ARRIVED = {"across": arriving(ENTERED), "cctp": ENTERED}
"""Bridge -> raw units of USDC that it delivers."""
BRIDGES = pytest.mark.parametrize("bridge", ARRIVED)


def sold(bridge: str) -> Moved:
    """Movements of the settlement and of the delivery, without the receiver's."""
    moved = {
        ("user", "WETH"): -ONE,
        ("agent", "WETH"): ONE,
        ("agent", "USDC"): -FAIR,
        ("vault", "USDC"): FAIR // 10_000,
    }
    if bridge == "across":
        return moved | {("pool", "USDC"): ENTERED, ("filler", "far USDC"): -ARRIVED[bridge]}
    return moved


def swapped(bridge: str) -> Moved:
    """Movements of the settlement, the delivery and the swap."""
    got = dai_for(ARRIVED[bridge])
    there = {("user", "far DAI"): got, ("zoe", "far DAI"): -got, ("zoe", "far USDC"): ARRIVED[bridge]}
    return sold(bridge) | there


def swapper(story: BridgedStory) -> ArrivalStatistics:
    """Counters of the venue's swaps on the second chain."""
    found = story.web.app.delta.bridges.statistics()[story.two.second].swapper
    assert found is not None
    return found


def terms_of(story: BridgedStory, record: Record) -> ArrivalTerms:
    live = story.web.app.delta.orders.get(story.hash_of(record))
    assert live is not None
    terms = arrival_of(live.order, far_place(story).arrivals)
    assert terms is not None
    return terms


async def has_arrived(story: BridgedStory, record: Record, tries: int = 1) -> None:
    """Wait until a bridge has delivered and no maker has filled the swap so many times."""
    await until(lambda: swapper(story).waiting == 1 and swapper(story).failed >= tries)
    assert (await story.record(record["id"]))["status"] == "BRIDGING"


@BRIDGES
async def test_without_a_maker_it_is_paid_out_after_the_signed_time(
    two: TwoChains, tmp_path: Path, bridge: str
) -> None:
    async with a_swapped_story(two, tmp_path) as (story, maker):
        maker.habit = "refuses"
        before = await story.balances()
        record = await story.ordered(await quoted_dai(story, bridge))
        await has_arrived(story, record)
        assert "zoe" in (await story.reasons(record))["swapDue"]
        assert await story.moved_since(before) == sold(bridge) | {}
        await story.far.pass_time(3_600 + ARRIVAL_SWAP_S + 60)
        record = await story.becomes(record, "COMPLETED")
        assert await story.moved_since(before) == sold(bridge) | {("user", "far USDC"): ARRIVED[bridge]}
        output = record["output"]
        assert output["token"] == to_checksum(story.far.usdc)
        assert output["executedAmount"] == str(ARRIVED[bridge])
        assert record["beneficiary"] == record["owner"]
        assert (swapper(story).swaps, swapper(story).pay_outs) == (0, 1)
        await story.becomes_final(record)


@pytest.mark.parametrize("habit", ["refuses", "signs wrongly", "names another taker", "cuts", "shrugs"])
async def test_a_maker_that_fails_is_asked_again(two: TwoChains, tmp_path: Path, habit: str) -> None:
    async with a_swapped_story(two, tmp_path) as (story, maker):
        maker.habit = habit
        before = await story.balances()
        record = await story.ordered(await quoted_dai(story, "across"))
        await has_arrived(story, record, tries=2)
        maker.habit = ""
        await story.becomes(record, "COMPLETED")
        assert await story.moved_since(before) == swapped("across")
        assert swapper(story).swaps == 1


async def test_a_node_that_is_behind_hides_no_end_of_a_swap(two: TwoChains, tmp_path: Path) -> None:
    async with a_swapped_story(two, tmp_path) as (story, maker):
        maker.habit, before = "refuses", await story.balances()
        record = await story.ordered(await quoted_dai(story, "across"))
        await has_arrived(story, record)
        far = story.nodes[two.second]
        head = await story.far.chain.block()
        assert head is not None
        maker.habit = ""
        far.shown = head.number
        await until_found(partial(story.moved_since, before), lambda moved: moved == swapped("across"))

        async def mined_unseen() -> None:
            looks = far.hidden
            await story.far.chain.mine()
            await until(lambda: far.hidden > looks)

        for _ in range(3 * CONFIRMATIONS):
            await mined_unseen()
        far.shown = math.inf
        await story.becomes(record, "COMPLETED")


async def test_quotes_below_the_signed_minimum_are_not_taken(two: TwoChains, tmp_path: Path) -> None:
    async with a_swapped_story(two, tmp_path) as (story, maker):
        maker.worse_bps = 200
        before = await story.balances()
        record = await story.ordered(await quoted_dai(story, "across"), slippage_bps=100)
        await has_arrived(story, record)
        maker.worse_bps = 100 - 20  # the quote's gas leaves more room than that
        await story.becomes(record, "COMPLETED")
        moved = await story.moved_since(before)
        assert moved["user", "far DAI"] >= terms_of(story, record).least
        assert moved["user", "far DAI"] == -moved["zoe", "far DAI"]


async def test_the_beneficiary_takes_it_as_it_came(two: TwoChains, tmp_path: Path) -> None:
    async with a_swapped_story(two, tmp_path) as (story, maker):
        maker.habit = "refuses"
        before = await story.balances()
        record = await story.ordered(await quoted_dai(story, "cctp"))
        await has_arrived(story, record)
        await story.far.chain.set_balance(story.world.user.address, ONE)
        call = pay_out_arrival(terms_of(story, record), story.far.usdc)
        await story.far.send(story.far.user, far_place(story).arrivals, call)
        record = await story.becomes(record, "COMPLETED")
        assert record["output"]["executedAmount"] == str(ENTERED)
        assert await story.moved_since(before) == sold("cctp") | {("user", "far USDC"): ENTERED}


async def test_a_token_that_comes_by_mistake_is_no_end(two: TwoChains, tmp_path: Path) -> None:
    """The owner takes another token out of the account: the order still waits for its swap."""
    async with a_swapped_story(two, tmp_path) as (story, maker):
        maker.habit = "refuses"
        record = await story.ordered(await quoted_dai(story, "cctp"))
        await has_arrived(story, record)
        terms, far = terms_of(story, record), story.far
        live = story.web.app.delta.orders.get(story.hash_of(record))
        assert live is not None
        await far.chain.set_balance(story.world.user.address, ONE)
        await far.mint(far.dai, live.terms.beneficiary, 7)
        await far.send(far.user, far_place(story).arrivals, pay_out_arrival(terms, far.dai))
        await has_arrived(story, record, tries=swapper(story).failed + 2)
        maker.habit = ""
        record = await story.becomes(record, "COMPLETED")
        assert record["output"]["executedAmount"] == str(dai_for(ENTERED))


@BRIDGES
async def test_dust_of_a_stranger_stops_no_swap(
    two: TwoChains, tmp_path: Path, bridge: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A unit more than makers have signed for comes between the estimate of each call and its block."""
    async with a_swapped_story(two, tmp_path) as (story, maker):
        maker.habit, before = "refuses", await story.balances()
        record = await story.ordered(await quoted_dai(story, bridge))
        await has_arrived(story, record)
        live = story.web.app.delta.orders.get(story.hash_of(record))
        assert live is not None
        account, relay, far = live.terms.beneficiary, Relayer.relay, story.far

        async def after_dust(self: Relayer, key: str, *call: Any) -> Any:
            if key.startswith("arrival:"):
                await far.mint(far.usdc, account, 1)
            return await relay(self, key, *call)

        monkeypatch.setattr(Relayer, "relay", after_dust)
        maker.habit = ""
        await story.becomes(record, "COMPLETED")
        assert swapper(story).swaps == 1
        assert await story.moved_since(before) == swapped(bridge) | {("user", "far USDC"): 1}


async def completes_with_blocks(story: BridgedStory, record: Record) -> None:
    """Mine blocks on the second chain, as chains do, until an order is completed."""
    with trio.fail_after(PATIENCE_S):
        while (await story.record(record["id"]))["status"] != "COMPLETED":
            await story.far.chain.mine()
            await trio.sleep(0.02)  # as chains make their blocks


@BRIDGES
async def test_the_swap_leaves_the_destination_and_is_made_again(
    two: TwoChains, tmp_path: Path, bridge: str
) -> None:
    async with a_swapped_story(two, tmp_path) as (story, _):
        before = await story.balances()
        record = await story.becomes(await story.ordered(await quoted_dai(story, bridge)), "COMPLETED")
        await story.far.chain.set_automine(on=False)
        await story.far.chain.reorganise(1)
        now = await story.turns(record, "BRIDGING")
        assert now["output"]["executedAmount"] is None
        await story.far.chain.set_automine(on=True)
        await completes_with_blocks(story, record)
        assert await story.moved_since(before) == swapped(bridge)
        await story.becomes_final(record)


@BRIDGES
async def test_delivery_and_swap_leave_the_destination(two: TwoChains, tmp_path: Path, bridge: str) -> None:
    async with a_swapped_story(two, tmp_path) as (story, _):
        before = await story.balances()
        record = await story.becomes(await story.ordered(await quoted_dai(story, bridge)), "COMPLETED")
        two.stop()
        await story.far.chain.set_automine(on=False)
        await story.far.chain.reorganise(2)
        await story.turns(record, "BRIDGING")
        await two.start()
        await story.far.chain.set_automine(on=True)
        await completes_with_blocks(story, record)
        assert await story.moved_since(before) == swapped(bridge)
        await story.becomes_final(record)


async def refusal(story: BridgedStory, route: dict[str, Any], **changed: Any) -> str:
    """Details of a build's refusal."""
    asked = {"route": route, "owner": to_checksum(story.world.user.address)}
    deadline = await story.world.now_s() + 3_600
    status, told = await story.web.post("/v2/delta/orders/build", asked | {"deadline": deadline} | changed)
    assert status == 400, told
    return str(told["details"])


async def test_only_a_whole_sale_is_swapped_after_its_bridge(two: TwoChains, tmp_path: Path) -> None:
    async with a_swapped_story(two, tmp_path) as (story, _):
        route = await quoted_dai(story, "across")
        assert "metadata: expected 0x" in await refusal(story, route, metadata="0x01")
        assert "partiallyFillable" in await refusal(story, route, partiallyFillable=True)
        twap = {"orderType": "TWAPOrder", "interval": 60, "numSlices": 2, "totalSrcAmount": str(2 * ONE)}
        assert "orderType: expected a sale by Order" in await refusal(story, route, **twap)
        dest = {"destToken": to_checksum(story.far.dai), "destDecimals": "18", "mode": "DELTA"}
        ends = {"srcToken": to_checksum(story.world.weth), "srcDecimals": "18", "amount": str(ONE)}
        chains = {"chainId": str(two.first), "destChainId": str(two.second)}
        for more in ({"side": "BUY"}, {"allowBridgeAndSwap": "false"}):
            status, told = await story.web.answer("/v2/quote", **dest | ends | chains | more)
            assert (status, told["errorType"]) == (400, "NoRoute")
            assert "no bridge delivers DAI" in told["details"]
        listed = (await story.web.get("/v2/delta/prices/bridge-routes"))["routes"]
        tokens = {(one["srcChainId"], one["destChainId"]): one["tokens"] for one in listed}
        assert to_checksum(story.far.dai) in tokens[two.first, two.second]
        listed = (await story.web.get("/v2/delta/prices/bridge-routes", allowBridgeAndSwap="false"))["routes"]
        assert all(to_checksum(story.far.dai) not in one["tokens"] for one in listed)


async def test_a_limit_is_of_the_token_that_is_wanted(two: TwoChains, tmp_path: Path) -> None:
    async with a_swapped_story(two, tmp_path) as (story, _):
        route = await quoted_dai(story, "across")
        limit = int(route["destination"]["output"]["amount"]) * 99 // 100
        asked = {
            "route": route,
            "owner": to_checksum(story.world.user.address),
            "limitAmount": str(limit),
            "deadline": await story.world.now_s() + 3_600,
        }
        status, built = await story.web.post("/v2/delta/orders/build", asked)
        assert status == 200, built
        value = built["toSign"]["value"]
        arriving_now = int(route["destination"]["input"]["amount"])
        assert int(value["destAmount"]) == int(value["expectedAmount"])
        assert 98 * arriving_now < 100 * int(value["destAmount"]) <= 99 * arriving_now + 100
        assert int(value["metadata"][2 + 3 * 64 : 2 + 4 * 64], 16) == limit


async def test_a_submission_has_listed_tokens_and_a_time_that_fits(two: TwoChains, tmp_path: Path) -> None:
    async with a_swapped_story(two, tmp_path) as (story, _):
        order = await story.an_order(ACROSS)
        good = ArrivalTerms(
            story.world.user.address, story.far.usdc, story.far.dai, 1, order.deadline + 1, bytes(32)
        )
        changes: list[tuple[dict[str, Any], str]] = [
            ({"dest_token": b"\x11" * 20}, "a swap between two tokens of GET /tokens"),
            ({"dest_token": story.far.usdc}, "another token than the bridge delivers"),
            ({"until": order.deadline - 1}, "a swap until"),
            ({"until": order.deadline + ARRIVAL_UNTIL_MAX_S + 1}, "a swap until"),
            ({"beneficiary": bytes(20)}, "order.metadata"),
        ]
        for changed, told in changes:
            terms = replace(good, **changed)
            at = arrival_address(far_place(story).arrivals, terms, arrival_code())
            bad = replace(order, beneficiary=at, metadata=pack_arrival(terms))
            status, refused = await story.submit(bad)
            assert status == 400, told
            assert told in refused["details"]
        at = arrival_address(far_place(story).arrivals, good, arrival_code())
        record = await story.submitted(replace(order, beneficiary=at, metadata=pack_arrival(good)))
        record = await story.becomes(record, "COMPLETED")
        assert record["output"]["executedAmount"] == str(dai_for(arriving()))
