"""Limit orders wait for their price: agents receive no request for an order until makers' books make it
fillable.
"""

from pathlib import Path

import pytest

from cambist.codecs.trading_token import NATIVE_TOKEN
from support.chain.world import ONE, USDC, World
from support.delta.resting_stories import a_resting_story, prices
from support.patience import until

pytestmark = pytest.mark.one_chain  # the venue looks at it all the while

PRICES = {"WETH/USDC": prices("2500", "2510")}


async def test_a_sale_rests_until_a_maker_bids_enough(world: World, tmp_path: Path) -> None:
    async with a_resting_story(world, tmp_path, PRICES) as story:
        before = await story.story.balances()
        order = await world.a_delta_order(dest_amount=2_600 * USDC, expected_amount=2_600 * USDC)
        record = await story.submitted(order)
        told = await story.rests(record)
        assert f"it sells {ONE} for at least {2_600 * USDC}" in told
        assert "makers' books give 249" in told, "2,500 less gas"
        await story.quotes({"WETH/USDC": prices("2590", "2595")})
        await story.quoted("WETH", "USDC", "2590")
        assert "makers' books give 258" in await story.rests(record)
        assert story.asked() == 0
        await story.quotes({"WETH/USDC": prices("2620", "2630")})
        record = await story.becomes(record, "COMPLETED")
        assert story.asked() >= 1
        assert record["type"] == "LIMIT"
        moved = await story.story.moved_since(before)
        assert moved["user", "WETH"] == -ONE
        assert moved["user", "USDC"] >= 2_600 * USDC


async def test_a_purchase_rests_until_a_maker_asks_little_enough(world: World, tmp_path: Path) -> None:
    async with a_resting_story(world, tmp_path, PRICES) as story:
        before = await story.story.balances()
        order = await world.a_delta_order(
            owner=world.taker.address,
            beneficiary=world.taker.address,
            kind=1,
            src_token=world.usdc,
            dest_token=world.weth,
            src_amount=2_400 * USDC,
            dest_amount=ONE,
            expected_amount=2_400 * USDC,
        )
        record = await story.submitted(order, key=world.taker)
        told = await story.rests(record)
        assert f"it buys {ONE} for at most {2_400 * USDC}" in told
        assert "makers' books want 251" in told, "2,510 and gas"
        assert story.asked() == 0
        await story.quotes({"WETH/USDC": prices("2380", "2390")})
        await story.becomes(record, "COMPLETED")
        assert story.asked() >= 1
        moved = await story.story.moved_since(before)
        assert moved["taker", "WETH"] == ONE
        assert -2_400 * USDC <= moved["taker", "USDC"] < -2_380 * USDC


async def test_a_route_of_two_hops_crosses_an_order_when_one_of_them_does(
    world: World, tmp_path: Path
) -> None:
    pairs = {"WETH/DAI": prices("2500", "2510"), "DAI/USDC": prices("0.99", "1.01", "100000")}
    async with a_resting_story(world, tmp_path, pairs) as story:
        order = await world.a_delta_order(dest_amount=2_500 * USDC, expected_amount=2_500 * USDC)
        record = await story.submitted(order)
        assert "makers' books give 247" in await story.rests(record)
        assert story.asked() == 0
        await story.quotes({**pairs, "DAI/USDC": prices("1.005", "1.01", "100000")})
        record = await story.becomes(record, "COMPLETED")
        assert int(record["output"]["executedAmount"]) >= 2_500 * USDC
        assert story.asked() >= 1


async def test_an_order_that_is_fillable_when_it_comes_does_not_rest(world: World, tmp_path: Path) -> None:
    async with a_resting_story(world, tmp_path, PRICES) as story:
        record = await story.submitted(await world.a_delta_order(dest_amount=2_490 * USDC))
        await story.becomes(record, "COMPLETED")
        assert story.asked() >= 1


@pytest.mark.parametrize("least", [2_500 * USDC, 2_499_900_000])
async def test_gas_is_what_a_price_at_the_limit_falls_short_by(
    world: World, tmp_path: Path, least: int
) -> None:
    async with a_resting_story(world, tmp_path, PRICES) as story:
        record = await story.submitted(await world.a_delta_order(dest_amount=least))
        await story.rests(record)
        assert story.asked() == 0


async def test_a_native_order_rests_by_the_wrapped_tokens_books(world: World, tmp_path: Path) -> None:
    async with a_resting_story(world, tmp_path, PRICES) as story:
        order = await world.a_delta_order(
            owner=world.taker.address,
            beneficiary=world.taker.address,
            src_token=world.usdc,
            dest_token=NATIVE_TOKEN,
            src_amount=2_400 * USDC,
            dest_amount=ONE,
            expected_amount=ONE,
        )
        record = await story.submitted(order, key=world.taker)
        await story.rests(record)
        await story.quotes({"WETH/USDC": prices("2380", "2390")})
        record = await story.becomes(record, "COMPLETED")
        assert int(record["output"]["executedAmount"]) >= ONE


async def test_two_orders_that_meet_are_asked_about_though_no_book_crosses_either(
    world: World, tmp_path: Path
) -> None:
    async with a_resting_story(world, tmp_path, {"WETH/USDC": prices("2000", "3000")}) as story:
        sale = await story.submitted(await world.a_delta_order(dest_amount=2_500 * USDC))
        await story.rests(sale)
        assert story.asked() == 0
        purchase = await story.submitted(
            await world.a_delta_order(
                owner=world.taker.address,
                beneficiary=world.taker.address,
                src_token=world.usdc,
                dest_token=world.weth,
                src_amount=2_500 * USDC,
                dest_amount=ONE,
                expected_amount=ONE,
            ),
            key=world.taker,
        )
        await until(lambda: story.asked() > 0)
        asked = {order.order_hash for order in story.story.agents["ann"].requests[0].orders}
        assert asked == {sale["orderHash"], purchase["orderHash"]}


async def test_orders_rest_again_after_a_restart(world: World, tmp_path: Path) -> None:
    async with a_resting_story(world, tmp_path, PRICES) as story:
        record = await story.submitted(await world.a_delta_order(dest_amount=2_600 * USDC))
        await story.rests(record)
        market = story.story.market
    async with a_resting_story(world, tmp_path, PRICES, market=market) as story:
        await story.rests(record)
        assert story.asked() == 0
        await story.quotes({"WETH/USDC": prices("2620", "2630")})
        await story.becomes(record, "COMPLETED")


async def test_one_that_no_agent_fills_rests_again_and_is_asked_about_when_its_price_is_better(
    world: World, tmp_path: Path
) -> None:
    async with a_resting_story(world, tmp_path, PRICES, again_s=30) as story:
        order = await world.a_delta_order(dest_amount=2_490 * USDC)
        record = await story.submitted(order, excludeAgents=["filler"])
        await until(lambda: story.asked() == 1)
        told = await story.rests(record)
        assert "makers' books give 249" in told
        await story.quotes({"WETH/USDC": prices("2400", "2530")})
        await story.quoted("WETH", "USDC", "2400")
        assert "makers' books give 239" in await story.rests(record)
        assert story.asked() == 1
        await story.quotes({"WETH/USDC": prices("2520", "2530")})
        await until(lambda: story.asked() == 2)


async def test_a_cancelled_order_rests_no_more(world: World, tmp_path: Path) -> None:
    async with a_resting_story(world, tmp_path, PRICES) as story:
        record = await story.submitted(await world.a_delta_order(dest_amount=2_600 * USDC))
        await story.rests(record)
        status, told = await story.story.cancel(record)
        assert status == 200, told
        await story.becomes(record, "CANCELLED")
        await story.quotes({"WETH/USDC": prices("2620", "2630")})
        await story.quoted("WETH", "USDC", "2620")
        looks = story.looks()
        await until(lambda: story.looks() > looks)
        assert story.asked() == 0
        metrics = (await story.web.ask("GET", "/metrics")).body.decode()
        assert 'cambist_delta_orders_resting{chain="31337"} 0.0' in metrics
