"""OTC orders whose maker allows nothing but came with a permit: as good as an approval, as long as it is."""

from pathlib import Path

import pytest

from cambist.codecs.contracts import calldata
from cambist.codecs.eip712_orders.rfq import RfqOrder
from cambist.crypto.hexadecimal import to_hex
from support.chain.world import HOUR_S, MOST, ONE, USDC, World
from support.contracts.permits import dai_permit, eip2612_permit, shown, token_domain
from support.otc.otc_stories import OtcStory, Stored, all_of, an_otc_story, balances_of, text_of

pytestmark = pytest.mark.one_chain  # the venue looks at it all the while

KINDS = ("eip2612", "dai")


async def signed(world: World, kind: str, amount: int = 2_500 * USDC, *, nonce: int = 0) -> bytes:
    """The maker lets the RFQ contract take USDC within the hour: so many, or as many as there are."""
    domain = token_domain("USDC", world.chain.chain_id, world.usdc)
    ends_s = await world.now_s() + HOUR_S
    if kind == "dai":
        return dai_permit(domain, world.maker, world.at.rfq, nonce=nonce, expiry=ends_s)
    return eip2612_permit(domain, world.maker, world.at.rfq, amount, nonce=nonce, deadline=ends_s)


async def posted(story: OtcStory, order: RfqOrder, permit: bytes) -> Stored:
    """A stored order with a permit, which is shown as it was posted."""
    stored = await story.later(order, permitMakerAsset=to_hex(permit))
    assert stored["permitMakerAsset"] == to_hex(permit)
    return stored


async def fill(story: OtcStory, order: RfqOrder, taker_amount: int, permit: bytes) -> str:
    """The taker shows the maker's permit with a part: the transaction."""
    world = story.world
    info = world.info(order, taker_fill_amount=taker_amount, permit_maker_asset=permit)
    data = calldata.partial_fill_order_with_target_permit(info, world.taker.address)
    return text_of(await world.send(world.taker, world.at.rfq, data))


@pytest.mark.parametrize("kind", KINDS)
async def test_an_order_with_a_permit_is_filled_without_an_approval(
    world: World, tmp_path: Path, kind: str
) -> None:
    async with an_otc_story(world, tmp_path) as story:
        await story.allows(0)
        bare, order = story.an_order(), story.an_order()
        without = await story.posted(bare)
        assert without["state"] == "SUSPENDED"
        await story.cancel(bare)
        await story.is_read()
        permit = await signed(world, kind)
        stored = await posted(story, order, permit)
        assert stored["state"] == "PENDING"
        assert all_of(2_500 * USDC).items() <= stored.items()
        assert await story.fillable() == 0, "a permit counts for its own order"
        await world.chain.mine()
        assert await story.refused(stored, order, story.filling(order)) == "TRANSFER_FROM_FAILED"
        first = await fill(story, order, ONE // 2, permit)
        assert (await story.seen(stored))["transactionHash"] == first
        await story.becomes(stored, "PENDING", **all_of(1_250 * USDC))
        last = await fill(story, order, ONE // 2, permit)
        ended = await story.seen(stored)
        assert (ended["state"], ended["transactionHash"]) == ("FULFILLED", last)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_permit_that_a_stranger_shows_is_an_allowance(
    world: World, tmp_path: Path, kind: str
) -> None:
    async with an_otc_story(world, tmp_path) as story:
        await story.allows(0)
        order, permit = story.an_order(), await signed(world, kind)
        stored = await posted(story, order, permit)
        await world.send(world.stranger, world.usdc, shown(permit))
        assert await story.seen(stored) == stored
        receipt = await story.fill(order)
        ended = await story.seen(stored)
        assert (ended["state"], ended["transactionHash"]) == ("FULFILLED", text_of(receipt))


@pytest.mark.parametrize("kind", KINDS)
async def test_a_permit_whose_nonce_another_has_used_suspends(
    world: World, tmp_path: Path, kind: str
) -> None:
    async with an_otc_story(world, tmp_path) as story:
        await story.allows(0)
        order, permit = story.an_order(), await signed(world, kind)
        stored = await posted(story, order, permit)
        other = await signed(world, "eip2612", 1_000 * USDC)
        await world.send(world.maker, world.usdc, shown(other))
        await story.becomes(stored, "SUSPENDED", **balances_of(2_500 * USDC, 1_000 * USDC, 0, 0))
        fresh = await signed(world, "eip2612", 2_500 * USDC, nonce=1)
        await world.send(world.maker, world.usdc, shown(fresh))
        await story.becomes(stored, "PENDING", **all_of(2_500 * USDC))


async def test_two_orders_with_one_permit_after_another(world: World, tmp_path: Path) -> None:
    """The second order's permit has the next nonce: the permit becomes valid once the first is used."""
    async with an_otc_story(world, tmp_path) as story:
        await story.allows(0)
        permits = [await signed(world, "eip2612", nonce=nonce) for nonce in range(2)]
        orders = [story.an_order() for _ in permits]
        first, second = [
            await posted(story, order, permit) for order, permit in zip(orders, permits, strict=True)
        ]
        assert [stored["state"] for stored in (first, second)] == ["PENDING", "SUSPENDED"]
        await fill(story, orders[0], ONE, permits[0])
        assert (await story.seen(first))["state"] == "FULFILLED"
        await story.becomes(second, "PENDING", **all_of(2_500 * USDC))
        await fill(story, orders[1], ONE, permits[1])
        assert (await story.seen(second))["state"] == "FULFILLED"


async def test_one_permit_of_two_orders_is_used_up_by_the_first(world: World, tmp_path: Path) -> None:
    async with an_otc_story(world, tmp_path) as story:
        await story.allows(0)
        permit = await signed(world, "eip2612")
        orders = [story.an_order() for _ in range(2)]
        first, second = [await posted(story, order, permit) for order in orders]
        assert [stored["state"] for stored in (first, second)] == ["PENDING", "PENDING"]
        await fill(story, orders[0], ONE, permit)
        assert (await story.seen(first))["state"] == "FULFILLED"
        await story.becomes(second, "SUSPENDED", **balances_of(2_500 * USDC, 0, 0, 0))
        await story.allows(MOST)
        await story.becomes(second, "PENDING", **all_of(2_500 * USDC))
        await story.fill(orders[1])
        assert (await story.seen(second))["state"] == "FULFILLED"


@pytest.mark.parametrize("kind", KINDS)
async def test_a_permit_whose_deadline_passes_suspends(world: World, tmp_path: Path, kind: str) -> None:
    async with an_otc_story(world, tmp_path) as story:
        await story.allows(0)
        order, permit = story.an_order(), await signed(world, kind)
        stored = await posted(story, order, permit)
        assert stored["state"] == "PENDING"
        await story.pass_time(HOUR_S + 10)
        late = await story.becomes(stored, "SUSPENDED", **balances_of(2_500 * USDC, 0, 0, 0))
        info = world.info(order, permit_maker_asset=permit)
        data = calldata.partial_fill_order_with_target_permit(info, world.taker.address)
        assert await story.refused(late, order, data) == "Permit failed"
        await story.allows(2_500 * USDC)
        await story.becomes(stored, "PENDING", **all_of(2_500 * USDC))
        await story.fill(order)
        assert (await story.seen(stored))["state"] == "FULFILLED"


async def test_a_permit_does_not_stand_for_a_balance(world: World, tmp_path: Path) -> None:
    async with an_otc_story(world, tmp_path) as story:
        await story.allows(0)
        permit = await signed(world, "eip2612", MOST)
        stored = await posted(story, story.an_order(), permit)
        await story.pays(8_000 * USDC)
        await story.becomes(stored, "SUSPENDED", **balances_of(2_500 * USDC, 2_000 * USDC, 0, 0))
        await story.gets_back(500 * USDC)
        await story.becomes(stored, "PENDING", **all_of(2_500 * USDC))
