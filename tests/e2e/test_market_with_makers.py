"""From a query to a mined swap, with the pathfinder on live books and makers who sign over sockets."""

import pytest

from cambist.config.errors import NoRoute
from support.chain.world import ONE, World
from support.makers.firm_makers import a_stage
from support.venue.market_front import Front

BIDS = (("2500", "0.3"), ("2499", "0.7"), ("2480", "20"))
ASKS = (("2501", "0.3"), ("2503", "0.7"), ("2520", "20"))
DAI_BIDS = (("1.0001", "900"), ("0.9997", "70000"))
DAI_ASKS = (("1.0003", "900"), ("1.0007", "70000"))


async def test_a_sale_to_two_makers_brings_what_was_quoted(world: World) -> None:
    async with a_stage(world) as stage:
        for name in ("alpha", "beta"):
            stage.quote(name, (world.weth, world.usdc, BIDS, ASKS))
            await stage.stock(name, world.usdc)
        front = Front(stage)
        route = front.quote(amount=2 * ONE)
        (swap,) = route.best_route[0].swaps
        assert {one.exchange for one in swap.swap_exchanges} == {"alpha", "beta"}
        assert not route.max_impact_reached
        assert await front.swap(route) == (2 * ONE, int(route.dest_amount))


async def test_a_native_sale_and_a_native_purchase(world: World) -> None:
    async with a_stage(world) as stage:
        stage.quote("alpha", (world.weth, world.usdc, BIDS, ASKS))
        await stage.stock("alpha", world.usdc)
        await stage.stock("alpha", world.weth)
        front = Front(stage)
        route = front.quote(srcToken="ETH")
        assert await front.swap(route) == (ONE, int(route.dest_amount))
        buying = front.quote(srcToken="USDC", destToken="ETH", side="BUY", amount=ONE)
        assert await front.swap(buying) == (int(buying.src_amount), ONE)


async def test_two_hops_stay_within_the_users_bound(world: World) -> None:
    async with a_stage(world) as stage:
        stage.quote("alpha", (world.weth, world.usdc, BIDS, ASKS))
        stage.quote("beta", (world.dai, world.usdc, DAI_BIDS, DAI_ASKS))
        await stage.stock("alpha", world.usdc)
        await stage.stock("beta", world.dai)
        front = Front(stage)
        route = front.quote(destToken="DAI")
        assert len(route.best_route[0].swaps) == 2
        spent, received = await front.swap(route)
        assert spent == ONE
        assert int(route.dest_amount) * 9_999 // 10_000 <= received
        buying = front.quote(destToken="DAI", side="BUY", amount=1_000 * ONE)
        spent, received = await front.swap(buying)
        assert received == 1_000 * ONE
        assert spent <= int(buying.src_amount) * 10_001 // 10_000


async def test_a_sale_over_two_paths(world: World) -> None:
    async with a_stage(world) as stage:
        stage.quote("alpha", (world.weth, world.usdc, (("2500", "2"), ("2300", "9")), ASKS))
        stage.quote("beta", (world.dai, world.usdc, DAI_BIDS, (("1.0003", "70000"),)))
        stage.quote("gamma", (world.weth, world.dai, (("2499", "2"), ("2300", "9")), (("2600", "9"),)))
        await stage.stock("alpha", world.usdc)
        await stage.stock("beta", world.dai)
        await stage.stock("gamma", world.dai)
        front = Front(stage)
        route = front.quote(destToken="DAI", amount=4 * ONE)
        assert len(route.best_route) == 2
        assert sum(part.percent for part in route.best_route) == 100
        spent, received = await front.swap(route)
        assert spent == 4 * ONE
        assert received >= int(route.dest_amount) * 9_999 // 10_000


async def test_a_maker_that_refuses_costs_the_user_nothing_but_the_fallback(world: World) -> None:
    async with a_stage(world) as stage:
        better = (("2501", "20"),)
        stage.quote("alpha", (world.weth, world.usdc, better, ASKS[1:]))
        stage.quote("beta", (world.weth, world.usdc, BIDS, ASKS))
        await stage.stock("beta", world.usdc)  # alpha has nothing
        front = Front(stage)
        route = front.quote()
        assert [one.exchange for one in route.best_route[0].swaps[0].swap_exchanges] == ["alpha"]
        spent, received = await front.swap(route)
        assert spent == ONE
        assert int(route.dest_amount) * 99 // 100 <= received < int(route.dest_amount)
        with pytest.raises(NoRoute, match="alpha"):
            await front.swap(route, slippage=0)


async def test_a_sealed_route_may_be_used_again(world: World) -> None:
    async with a_stage(world) as stage:
        stage.quote("alpha", (world.weth, world.usdc, BIDS, ASKS))
        await stage.stock("alpha", world.usdc)
        front = Front(stage)
        route = front.quote(partner="wallet")
        first = await front.swap(route)
        assert first == (ONE, int(route.dest_amount)) == await front.swap(route)
        assert first[1] == 2_499_300_000 - 2_499_300_000 * 50 // 10_000


async def test_what_a_tax_was_expected_to_take_of_the_source_stays_with_the_user(world: World) -> None:
    """A unit more than expected arrives where a token rounds its tax otherwise; here it takes none at all."""
    async with a_stage(world) as stage:
        stage.quote("alpha", (world.weth, world.usdc, BIDS, ASKS))
        await stage.stock("alpha", world.usdc)
        front = Front(stage)
        route = front.quote(srcTokenTransferFee=100)
        assert await front.swap(route, slippage=0) == (ONE * 99 // 100, int(route.dest_amount))
