"""A swap that is split over paths: hops with fixed amounts, and the use of the rest.

Both paths run through USDC here: the second path uses the first one's rest, and the caller gets the final
rest.
"""

from typing import Any

from cambist.codecs.contracts.router_calldata import Hop, RouterSwap
from cambist.codecs.eip712_orders.rfq import RfqOrder
from support.chain.world import NATIVE, ONE, USDC, World
from support.contracts.swapping import Venue, a_wide_venue, step_failed


async def _user_has(venue: Venue, *, weth: int, usdc: int = 0, dai: int = 0) -> None:
    world = venue.world
    held = [await world.balance(token, world.user) for token in (world.weth, world.usdc, world.dai)]
    assert held == [weth, usdc, dai]


def _direct(venue: Venue) -> RfqOrder:
    """The rival sells 2,480 DAI for one WETH."""
    return venue.quote(
        maker=venue.rival.address, maker_asset=venue.world.dai, maker_amount=2_480 * ONE, taker_amount=ONE
    )


def _rivals_second(venue: Venue, **changed: Any) -> RfqOrder:
    """The rival sells 2,500 DAI for 2,500 USDC."""
    return venue.second_quote(
        **{"maker": venue.rival.address, "maker_amount": 2_500 * ONE, "taker_amount": 2_500 * USDC} | changed
    )


def _into_dai(venue: Venue, *hops: Hop, **changed: Any) -> RouterSwap:
    return venue.swap(*hops, **{"dest_token": venue.world.dai, "dest_amount": 2_400 * ONE} | changed)


async def test_a_sale_over_two_paths_sells_each_its_part_and_the_last_the_rest(world: World) -> None:
    venue = await a_wide_venue(world)
    swap = _into_dai(
        venue,
        venue.hop(venue.quote(), taker_amount=6 * ONE // 10),
        venue.hop(venue.second_quote()),
        venue.hop(_direct(venue)),
    )
    done = await venue.sell(swap)
    bought = 1_494 * ONE + 992 * ONE  # 1,500 USDC at 0.996, and 0.4 WETH at 2,480
    assert (done.event.spent, done.event.received) == (ONE, bought)
    await _user_has(venue, weth=9 * ONE, dai=bought)
    assert await world.balance(world.weth, world.maker) == 6 * ONE // 10
    assert await world.balance(world.weth, venue.rival) == 4 * ONE // 10


async def test_a_sale_over_two_paths_through_the_same_token(world: World) -> None:
    venue = await a_wide_venue(world)
    third = ONE // 3
    rest = ONE - third
    rivals_first = venue.quote(maker=venue.rival.address, maker_amount=2_510 * USDC, taker_amount=ONE)
    swap = _into_dai(
        venue,
        venue.hop(venue.quote(), taker_amount=third),
        venue.hop(venue.second_quote()),
        venue.hop(rivals_first),
        venue.hop(_rivals_second(venue)),
    )
    done = await venue.sell(swap)
    first_usdc = third * 2_500 * USDC // ONE
    second_usdc = rest * 2_510 * USDC // ONE
    first_dai = first_usdc * 2_490 * ONE // (2_500 * USDC)
    second_dai = second_usdc * 10**12
    assert done.event.received == first_dai + second_dai
    await _user_has(venue, weth=9 * ONE, dai=first_dai + second_dai)
    assert await world.balance(world.usdc, world.maker) == 100_000 * USDC
    assert await world.balance(world.usdc, venue.rival) == 100_000 * USDC


async def test_what_a_sale_leaves_between_its_hops_goes_to_the_caller(world: World) -> None:
    venue = await a_wide_venue(world)
    swap = _into_dai(
        venue,
        venue.hop(venue.quote(), taker_amount=9 * ONE // 10),
        venue.hop(venue.second_quote(), taker_amount=2_000 * USDC),
        dest_amount=1_992 * ONE,
        receiver=world.stranger.address,
    )
    done = await venue.sell(swap)
    assert done.event.received == 1_992 * ONE
    await _user_has(venue, weth=9 * ONE + ONE // 10, usdc=250 * USDC)
    assert await world.balance(world.dai, world.stranger) == 1_992 * ONE


async def test_a_purchase_over_two_paths_buys_each_its_part_exactly(world: World) -> None:
    venue = await a_wide_venue(world)
    swap = venue.purchase(
        venue.hop(venue.quote(), maker_amount=1_500 * USDC),
        venue.hop(venue.second_quote(), maker_amount=1_494 * ONE),
        venue.hop(_direct(venue), maker_amount=992 * ONE),
        dest_token=world.dai,
        dest_amount=2_486 * ONE,
    )
    done = await venue.buy(swap)
    assert (done.event.spent, done.event.received) == (ONE, 2_486 * ONE)
    await _user_has(venue, weth=9 * ONE, dai=2_486 * ONE)


async def test_a_purchase_over_two_paths_through_the_same_token_gives_back_every_unit(world: World) -> None:
    venue = await a_wide_venue(world)
    rivals_first = venue.quote(maker=venue.rival.address, maker_amount=2_510 * USDC, taker_amount=ONE)
    swap = venue.purchase(
        venue.hop(venue.quote(), maker_amount=1_000 * USDC + 7),
        venue.hop(venue.second_quote(), maker_amount=996 * ONE),
        venue.hop(rivals_first, maker_amount=500 * USDC + 5),
        venue.hop(_rivals_second(venue), maker_amount=500 * ONE),
        dest_token=world.dai,
        dest_amount=1_496 * ONE,
        receiver=world.stranger.address,
    )
    done = await venue.buy(swap)
    spent = -(-(1_000 * USDC + 7) * ONE // (2_500 * USDC)) - (-(500 * USDC + 5) * ONE // (2_510 * USDC))
    assert (done.event.spent, done.event.received) == (spent, 1_496 * ONE)
    await _user_has(venue, weth=10 * ONE - spent, usdc=12)
    assert await world.balance(world.dai, world.stranger) == 1_496 * ONE


async def test_a_native_purchase_over_two_paths_gives_the_rest_back_unwrapped(world: World) -> None:
    venue = await a_wide_venue(world)
    swap = venue.purchase(
        venue.hop(venue.quote(), maker_amount=1_500 * USDC),
        venue.hop(venue.second_quote(), maker_amount=1_494 * ONE),
        venue.hop(_direct(venue), maker_amount=992 * ONE),
        src_token=NATIVE,
        dest_token=world.dai,
        dest_amount=2_486 * ONE,
    )
    before = await world.chain.balance(world.user.address)
    done = await venue.buy(swap, value_wei=swap.src_amount)
    gas_wei = done.receipt.gas_used * done.receipt.gas_price_wei
    assert await world.chain.balance(world.user.address) == before - ONE - gas_wei
    await _user_has(venue, weth=10 * ONE, dai=2_486 * ONE)


async def test_a_path_falls_back_by_itself(world: World) -> None:
    venue = await a_wide_venue(world)
    gone = _direct(venue)
    await world.chain.set_time(await world.now_s() + 10)
    expired = venue.quote(maker_asset=world.dai, maker_amount=2_600 * ONE, expiry=1)
    first = venue.hop(venue.quote(), taker_amount=6 * ONE // 10)
    second = venue.hop(venue.second_quote())
    alone = _into_dai(venue, first, second, venue.hop(expired))
    assert await venue.refused_sale(alone) == step_failed(step=2)
    done = await venue.sell(_into_dai(venue, first, second, venue.hop(expired, gone)))
    assert done.event.received == 2_486 * ONE


async def test_a_part_beyond_what_is_there_is_refused(world: World) -> None:
    venue = await a_wide_venue(world)
    large = venue.quote(maker_amount=25_000 * USDC, taker_amount=10 * ONE)
    swap = venue.swap(venue.hop(large, taker_amount=ONE + 1))
    assert await venue.refused_sale(swap) == step_failed()
    assert (await venue.sell(venue.swap(venue.hop(large, taker_amount=ONE)))).event.received == 2_500 * USDC


async def test_a_hop_that_gives_both_amounts_is_refused_by_name(world: World) -> None:
    venue = await a_wide_venue(world)
    both = venue.hop(venue.second_quote(), taker_amount=1, maker_amount=1)
    for hops in ((both,), (venue.hop(venue.quote()), both)):
        assert await venue.refused_sale(_into_dai(venue, *hops)) == "BOTH_AMOUNTS"
        assert await venue.refused_purchase(_into_dai(venue, *hops)) == "BOTH_AMOUNTS"
