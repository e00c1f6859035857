"""Swaps signed by makers on sockets and executed on the chain: the chain moves the amounts that the desk
promises.
"""

import random

from cambist.codecs.messages.vocabulary import Side
from cambist.engine.trade.routing.firm.firm_desk import FirmDeskStatistics
from support.chain.world import ONE, USDC, World
from support.contracts.rfq_stories import a_wallet
from support.makers.firm_makers import a_stage, execute, fits_together

BIDS = (("2500", "0.3"), ("2499", "0.7"), ("2480", "20"))
ASKS = (("2501", "0.3"), ("2503", "0.7"), ("2520", "20"))
DAI_BIDS = (("1.0001", "900"), ("0.9997", "70000"))
DAI_ASKS = (("1.0003", "900"), ("1.0007", "70000"))


async def test_a_sale_to_one_maker(world: World) -> None:
    async with a_stage(world) as stage:
        stage.quote_weth("alpha")
        await stage.stock("alpha", world.usdc)
        route = await stage.sell(world.weth, world.usdc, ONE)
        assert (route.src_amount, route.dest_amount) == (ONE, 2_500 * USDC)
        assert route.expiry_s == stage.now_ms // 1_000 + 300
        (asked,) = stage.makers["alpha"].asked
        assert asked == {
            "makerAsset": f"0x{world.usdc.hex()}",
            "takerAsset": f"0x{world.weth.hex()}",
            "takerAmount": str(ONE),
            "userAddress": f"0x{world.user.address.hex()}",
            "takerAddress": f"0x{world.at.executor.hex()}",
        }
        assert await execute(world, route) == (ONE, 2_500 * USDC)
        assert stage.desk.statistics() == FirmDeskStatistics(0, 1, 0, 1, 0, 0)
        told = stage.firm["alpha"].health.report(stage.now_ms)
        assert (told.maker.quotes, told.maker.score, told.pairs) == (1, 100, ())


async def test_a_purchase_from_one_maker(world: World) -> None:
    async with a_stage(world) as stage:
        stage.quote_weth("alpha")
        await stage.stock("alpha", world.usdc)
        route = await stage.buy(world.weth, world.usdc, 1_250 * USDC)
        assert (route.src_amount, route.dest_amount) == (ONE // 2, 1_250 * USDC)
        assert stage.makers["alpha"].asked[0]["makerAmount"] == str(1_250 * USDC)
        assert await execute(world, route) == (ONE // 2, 1_250 * USDC)


async def test_a_sale_over_two_hops_asks_the_second_for_one_percent_more(world: World) -> None:
    async with a_stage(world) as stage:
        stage.quote("alpha", (world.weth, world.usdc, BIDS, ASKS))
        stage.quote("beta", (world.dai, world.usdc, DAI_BIDS, DAI_ASKS))
        await stage.stock("alpha", world.usdc)
        await stage.stock("beta", world.dai)
        plan, _ = stage.plan(Side.SELL, world.weth, world.dai, ONE)
        route = await stage.sell(world.weth, world.dai, ONE)
        (first,) = stage.makers["alpha"].asked
        (second,) = stage.makers["beta"].asked
        assert first["takerAmount"] == str(ONE)
        assert int(second["takerAmount"]) == plan.paths[0].hops[1].src_amount * 10_100 // 10_000
        assert await execute(world, route) == (ONE, route.dest_amount)


async def test_a_purchase_over_two_hops_asks_the_first_for_a_basis_point_more(world: World) -> None:
    async with a_stage(world) as stage:
        stage.quote("alpha", (world.weth, world.usdc, BIDS, ASKS))
        stage.quote("beta", (world.dai, world.usdc, DAI_BIDS, DAI_ASKS))
        await stage.stock("alpha", world.usdc)
        await stage.stock("beta", world.dai)
        plan, _ = stage.plan(Side.BUY, world.weth, world.dai, 1_000 * ONE)
        route = await stage.buy(world.weth, world.dai, 1_000 * ONE)
        (first,) = stage.makers["alpha"].asked
        (second,) = stage.makers["beta"].asked
        assert int(first["makerAmount"]) == plan.paths[0].hops[0].dest_amount * 10_001 // 10_000
        assert second["makerAmount"] == str(1_000 * ONE)
        assert await execute(world, route) == (route.src_amount, 1_000 * ONE)


async def test_a_first_hop_that_is_worse_than_planned_is_taken_within_the_limit(world: World) -> None:
    async with a_stage(world) as stage:
        stage.quote("alpha", (world.weth, world.usdc, BIDS, ASKS))
        stage.quote("beta", (world.dai, world.usdc, DAI_BIDS, DAI_ASKS))
        await stage.stock("alpha", world.usdc)
        await stage.stock("beta", world.dai)
        stage.makers["alpha"].worse_bps = 40
        plan, _ = stage.plan(Side.SELL, world.weth, world.dai, ONE)
        route = await stage.sell(world.weth, world.dai, ONE, limit=plan.dest_amount * 99 // 100)
        assert plan.dest_amount * 99 // 100 <= route.dest_amount < plan.dest_amount
        assert await execute(world, route) == (ONE, route.dest_amount)
        assert stage.reasons("alpha") == {}


async def test_a_hop_that_brings_more_than_the_next_can_take_leaves_the_rest_to_the_user(
    world: World,
) -> None:
    async with a_stage(world) as stage:
        stage.quote("alpha", (world.weth, world.usdc, BIDS, ASKS))
        stage.quote("beta", (world.dai, world.usdc, DAI_BIDS, DAI_ASKS))
        await stage.stock("alpha", world.usdc)
        await stage.stock("beta", world.dai)
        stage.makers["alpha"].worse_bps = -300
        had = await world.balance(world.usdc, world.user)
        route = await stage.sell(world.weth, world.dai, ONE)
        assert route.hops[1].taker_amount == route.hops[1].fills[0].order.taker_amount
        assert await execute(world, route) == (ONE, route.dest_amount)
        brought = route.hops[0].fills[0].order.maker_amount
        assert await world.balance(world.usdc, world.user) - had == brought - route.hops[1].taker_amount > 0


async def test_a_purchase_whose_last_hop_costs_more_has_the_first_asked_anew(world: World) -> None:
    async with a_stage(world) as stage:
        stage.quote("alpha", (world.weth, world.usdc, BIDS, ASKS))
        stage.quote("beta", (world.dai, world.usdc, DAI_BIDS, DAI_ASKS))
        await stage.stock("alpha", world.usdc)
        await stage.stock("beta", world.dai)
        stage.makers["beta"].worse_bps = 20
        route = await stage.buy(world.weth, world.dai, 1_000 * ONE)
        assert len(stage.makers["alpha"].asked) == 2
        assert await execute(world, route) == (route.src_amount, 1_000 * ONE)
        assert stage.reasons("alpha") == stage.reasons("beta") == {}


async def test_sales_split_over_makers_and_paths_bring_what_is_promised(world: World) -> None:
    async with a_stage(world) as stage:
        await stage.everybody_quotes()
        for seed in range(6):
            source = random.Random(seed)
            amount = source.randint(1, 2 * ONE)
            for name, maker in stage.makers.items():
                maker.worse_bps = source.randint(0, 30) if name != "alpha" else 0
            route = await stage.sell(world.weth, world.dai, amount)
            assert fits_together(route)
            assert await execute(world, route) == (amount, route.dest_amount)


async def test_purchases_split_over_makers_and_paths_cost_what_is_promised(world: World) -> None:
    async with a_stage(world) as stage:
        await stage.everybody_quotes()
        for seed in range(6):
            source = random.Random(seed)
            amount = source.randint(1, 4_000 * ONE)
            for maker in stage.makers.values():
                maker.worse_bps = source.randint(-10, 30)
            route = await stage.buy(world.weth, world.dai, amount)
            assert await execute(world, route) == (route.src_amount, amount)


async def test_several_paths_share_an_executor(world: World) -> None:
    async with a_stage(world) as stage:
        await stage.everybody_quotes()
        route = await stage.sell(world.weth, world.dai, 3 * ONE)
        assert len(route.hops) == 3, "one path of a hop and one of two"
        assert sum(hop.src_token == world.weth for hop in route.hops) == 2
        assert await execute(world, route) == (3 * ONE, route.dest_amount)


async def test_a_contract_is_a_maker(world: World) -> None:
    async with a_stage(world) as stage:
        stage.quote_weth("alpha")
        alpha = stage.makers["alpha"]
        await world.chain.set_balance(alpha.key.address, ONE)
        alpha.account = await a_wallet(world, alpha.key)
        route = await stage.sell(world.weth, world.usdc, ONE)
        assert route.hops[0].fills[0].order.maker == alpha.account
        assert await execute(world, route) == (ONE, 2_500 * USDC)


async def test_more_than_the_need_is_not_asked_for_where_that_is_dearer(world: World) -> None:
    """The second hop's book falls beyond the hop's need: one percent more would cost half a percent."""
    async with a_stage(world) as stage:
        stage.quote("alpha", (world.weth, world.usdc, (("2500", "50"),), ASKS))
        stage.quote("beta", (world.usdc, world.dai, (("1", "2500"), ("0.5", "90000")), (("1.1", "9"),)))
        await stage.stock("alpha", world.usdc)
        await stage.stock("beta", world.dai)
        route = await stage.sell(world.weth, world.dai, ONE, limit=2_400 * ONE)
        assert stage.makers["beta"].asked[0]["takerAmount"] == str(2_500 * USDC)
        assert await execute(world, route) == (ONE, 2_500 * ONE)
