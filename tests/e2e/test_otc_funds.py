"""OTC orders whose maker's funds move: SUSPENDED and back, and the shares of several orders of one maker."""

from pathlib import Path

import pytest

from support.chain.world import MOST, ONE, USDC, World
from support.otc.otc_stories import (
    OtcStory,
    Stored,
    all_of,
    an_otc_story,
    balances_of,
    none_of,
    running_otc,
    text_of,
)

pytestmark = pytest.mark.one_chain  # the venue looks at it all the while


def share(of: int, reserved: int, has: int | None = None) -> Stored:
    """Members of a backed order of which only a part is reserved."""
    return balances_of(of, of if has is None else has, reserved, reserved)


async def three(story: OtcStory, amount: int) -> list[Stored]:
    """Orders of so many USDC each, the oldest first."""
    return [await story.later(story.an_order(maker_amount=amount)) for _ in range(3)]


async def test_a_balance_that_moves_away_suspends_until_it_is_back(world: World, tmp_path: Path) -> None:
    async with an_otc_story(world, tmp_path) as story:
        order = story.an_order()
        stored = await story.posted(order)
        await story.pays(7_500 * USDC)  # exactly what is left over
        assert await story.seen(stored) == stored
        await story.pays(1)
        some = 2_500 * USDC - 1
        gone = await story.becomes(stored, "SUSPENDED", **balances_of(2_500 * USDC, some, 0, 0))
        assert gone["transactionHash"] is None
        assert await story.fillable() == some
        assert await story.refused(gone, order, story.filling(order)) == "TRANSFER_FROM_FAILED"
        await story.pays(some)
        await story.becomes(stored, "SUSPENDED", **balances_of(2_500 * USDC, 0, 0, 0))
        await story.gets_back(2_500 * USDC)
        await story.becomes(stored, "PENDING", **all_of(2_500 * USDC))
        receipt = await story.fill(order)
        ended = await story.seen(stored)
        assert (ended["state"], ended["transactionHash"]) == ("FULFILLED", text_of(receipt))
        assert await world.balance(world.usdc, world.maker) == 0


async def test_an_allowance_that_is_revoked_suspends_until_it_is_back(world: World, tmp_path: Path) -> None:
    async with an_otc_story(world, tmp_path) as story:
        order = story.an_order()
        stored = await story.posted(order)
        for allowed in (0, 2_500 * USDC - 1):
            await story.allows(allowed)
            gone = await story.becomes(stored, "SUSPENDED", **balances_of(2_500 * USDC, allowed, 0, 0))
            assert await story.fillable() == allowed
            assert await story.refused(gone, order, story.filling(order)) == "TRANSFER_FROM_FAILED"
        await world.approve(world.maker, world.usdc, world.stranger.address)
        assert await story.seen(stored) == gone
        await story.allows(2_500 * USDC)
        await story.becomes(stored, "PENDING", **all_of(2_500 * USDC))
        await story.fill(order, ONE // 2)
        await story.becomes(stored, "PENDING", **all_of(1_250 * USDC))
        assert (await story.order(stored))["updatedAt"] >= stored["createdAt"]


async def test_an_order_that_funds_do_not_cover_is_taken_and_waits(world: World, tmp_path: Path) -> None:
    async with an_otc_story(world, tmp_path) as story:
        order = story.an_order(maker_amount=12_000 * USDC)
        stored = await story.posted(order)
        short = balances_of(12_000 * USDC, 10_000 * USDC, 0, 0)
        assert stored["state"] == "SUSPENDED"
        assert short.items() <= stored.items()
        # A part is filled all the same: the contract only asks for what it takes.
        receipt = await story.fill(order, ONE // 2)
        begun = await story.seen(stored)
        assert (begun["state"], begun["transactionHash"]) == ("SUSPENDED", text_of(receipt))
        await story.becomes(stored, "SUSPENDED", **balances_of(6_000 * USDC, 4_000 * USDC, 0, 0))
        await world.mint(world.usdc, world.maker, 2_000 * USDC)
        await story.becomes(stored, "PENDING", **all_of(6_000 * USDC))


async def test_other_tokens_of_the_maker_do_not_count(world: World, tmp_path: Path) -> None:
    async with an_otc_story(world, tmp_path) as story:
        await world.give(world.maker, world.dai, 5 * ONE, world.at.rfq)
        order, other = story.an_order(), story.an_order(maker_asset=world.dai, maker_amount=5 * ONE)
        stored, untouched = await story.posted(order), await story.later(other)
        await story.pays(10_000 * USDC)
        await story.becomes(stored, "SUSPENDED", **balances_of(2_500 * USDC, 0, 0, 0))
        assert await story.order(untouched) == untouched
        assert all_of(5 * ONE).items() <= untouched.items()
        assert await story.fillable("DAI") == 0


async def test_funds_go_to_the_oldest_order_first(world: World, tmp_path: Path) -> None:
    async with an_otc_story(world, tmp_path) as story:
        first, second, third = await three(story, 4_000 * USDC)
        for stored, reserved in ((first, 4_000), (second, 4_000), (third, 2_000)):
            assert stored["state"] == "PENDING"
            assert share(4_000 * USDC, reserved * USDC).items() <= stored.items()
        assert await story.fillable() == 0
        await story.pays(3_000 * USDC)
        await story.becomes(second, "PENDING", **share(4_000 * USDC, 3_000 * USDC))
        await story.becomes(third, "PENDING", **share(4_000 * USDC, 0))
        assert await story.order(first) == first
        await story.pays(4_000 * USDC)
        for stored in (first, second, third):
            await story.becomes(stored, "SUSPENDED", **balances_of(4_000 * USDC, 3_000 * USDC, 0, 0))
        await story.gets_back(7_000 * USDC)
        for stored, reserved in ((first, 4_000), (second, 4_000), (third, 2_000)):
            await story.becomes(stored, "PENDING", **share(4_000 * USDC, reserved * USDC))


async def test_an_order_above_the_funds_hides_none_of_the_later_ones(world: World, tmp_path: Path) -> None:
    async with an_otc_story(world, tmp_path) as story:
        giant = await story.later(story.an_order(maker_amount=12_000 * USDC))
        assert (giant["state"], giant["reservedBalance"]) == ("SUSPENDED", "0")
        assert await story.fillable() == 10_000 * USDC
        order = story.an_order()
        stored = await story.later(order)
        assert all_of(2_500 * USDC).items() <= stored.items()
        assert await story.fillable() == 7_500 * USDC
        await world.mint(world.usdc, world.maker, 2_000 * USDC)  # covered, it is the older one again
        await story.becomes(giant, "PENDING", **all_of(12_000 * USDC))
        await story.becomes(stored, "PENDING", **share(2_500 * USDC, 0))
        await story.pays(1)
        await story.becomes(giant, "SUSPENDED", reservedBalance="0")
        await story.becomes(stored, "PENDING", **all_of(2_500 * USDC))
        await story.fill(order)
        assert (await story.seen(stored))["state"] == "FULFILLED"


async def test_an_allowance_is_shared_as_a_balance_is(world: World, tmp_path: Path) -> None:
    async with an_otc_story(world, tmp_path) as story:
        await story.allows(7_000 * USDC)
        first, second, third = await three(story, 4_000 * USDC)
        for stored, reserved in ((first, 4_000), (second, 3_000), (third, 0)):
            assert share(4_000 * USDC, reserved * USDC).items() <= stored.items()
        await story.allows(9_000 * USDC)
        for stored, reserved in ((first, 4_000), (second, 4_000), (third, 1_000)):
            await story.becomes(stored, "PENDING", **share(4_000 * USDC, reserved * USDC))


async def test_a_fill_of_one_shifts_the_shares_of_the_others(world: World, tmp_path: Path) -> None:
    async with an_otc_story(world, tmp_path) as story:
        orders = [story.an_order(maker_amount=4_000 * USDC) for _ in range(3)]
        first, second, third = [await story.later(order) for order in orders]
        # The youngest is filled beyond its share: an older one is left without.
        receipt = await story.fill(orders[2], 3 * ONE // 4)
        await story.becomes(third, "PENDING", transactionHash=text_of(receipt), **share(1_000 * USDC, 0))
        await story.becomes(second, "PENDING", transactionHash=None, **share(4_000 * USDC, 3_000 * USDC))
        assert await story.order(first) == first
        # The oldest is filled in part: it needs less, and has less; nobody else's share moves.
        await story.fill(orders[0], ONE // 2)
        await story.becomes(first, "PENDING", **all_of(2_000 * USDC))
        await story.becomes(second, "PENDING", **share(4_000 * USDC, 3_000 * USDC))
        # A cancelled order's share goes to the next orders.
        await story.cancel(orders[0])
        await story.becomes(first, "CANCELLED", **none_of(2_000 * USDC))
        await story.becomes(second, "PENDING", **share(4_000 * USDC, 4_000 * USDC))
        await story.becomes(third, "PENDING", **share(1_000 * USDC, 1_000 * USDC))
        await story.fill(orders[1])
        assert (await story.seen(second))["state"] == "FULFILLED"
        await story.becomes(third, "PENDING", **all_of(1_000 * USDC))
        await story.fill(orders[2], ONE // 4)
        assert (await story.seen(third))["state"] == "FULFILLED"
        assert await world.balance(world.usdc, world.maker) == 0


async def test_what_a_maker_receives_backs_its_orders(world: World, tmp_path: Path) -> None:
    """The maker's WETH come from the fill of its other order."""
    async with an_otc_story(world, tmp_path) as story:
        await world.approve(world.maker, world.weth, world.at.rfq)
        sale = story.an_order()
        resale = story.an_order(
            maker_asset=world.weth, taker_asset=world.usdc, maker_amount=ONE, taker_amount=2_600 * USDC
        )
        stored, waiting = await story.posted(sale), await story.later(resale)
        assert waiting["state"] == "SUSPENDED"
        await story.fill(sale)
        assert (await story.seen(stored))["state"] == "FULFILLED"
        await story.becomes(waiting, "PENDING", **all_of(ONE))


async def test_funds_that_move_while_the_venue_is_away_are_found_at_its_start(
    world: World, tmp_path: Path
) -> None:
    async with an_otc_story(world, tmp_path) as story:
        orders = [story.an_order(maker_amount=4_000 * USDC) for _ in range(2)]
        first, second = [await story.later(order) for order in orders]
        large = await story.later(story.an_order(maker_amount=11_000 * USDC))
        assert large["state"] == "SUSPENDED"
    await story.pays(5_000 * USDC)
    async with running_otc(world, tmp_path) as again:
        await again.becomes(second, "PENDING", **share(4_000 * USDC, 1_000 * USDC))
        await again.becomes(large, "SUSPENDED", **balances_of(11_000 * USDC, 5_000 * USDC, 0, 0))
        assert await again.order(first) == first
        await again.allows(0)
        await again.becomes(first, "SUSPENDED")
    await story.allows(MOST)
    await story.gets_back(5_000 * USDC)
    await world.mint(world.usdc, world.maker, 9_000 * USDC)
    async with running_otc(world, tmp_path) as last:
        await last.becomes(first, "PENDING", **all_of(4_000 * USDC))
        await last.becomes(second, "PENDING", **all_of(4_000 * USDC))
        await last.becomes(large, "PENDING", **all_of(11_000 * USDC))
