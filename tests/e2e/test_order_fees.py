"""Partner fees and surplus: to the unit what the one pure function says."""

from pathlib import Path

import pytest

from cambist.codecs.contracts.abi import address_word
from cambist.codecs.eip712_orders.partner_and_fee import PartnerAndFee, pack_partner_and_fee
from cambist.engine.chain.proceeds import of_purchase, of_sale
from support.chain.world import ONE, USDC, World
from support.contracts.settling import OWED
from support.delta.delta_stories import DeltaStory, a_delta_story

pytestmark = pytest.mark.one_chain  # the venue looks at it all the while

RECEIVED = 2_600 * USDC + 7


async def owed(story: DeltaStory, who: bytes, token: str) -> int:
    words = address_word(who) + address_word(story.tokens[token])
    return await story.world.ask(story.world.at.fee_vault, OWED + words)


def terms_of(story: DeltaStory, *, takes: bool, caps: bool) -> PartnerAndFee:
    return PartnerAndFee(story.world.partner.address, 50, takes, caps)


@pytest.mark.parametrize(("takes", "caps"), [(False, True), (True, True), (True, False)])
async def test_what_a_sale_brings_is_shared_as_signed(
    world: World, tmp_path: Path, takes: bool, caps: bool
) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        story.agents["ann"].gives = lambda _: RECEIVED
        terms = terms_of(story, takes=takes, caps=caps)
        order = await world.a_delta_order(partner_and_fee=pack_partner_and_fee(terms))
        cut = of_sale(RECEIVED, 2_500 * USDC, 2_400 * USDC, terms)
        assert bool(cut.share) is takes
        record, moved = await story.completed(order)
        assert moved["user", "USDC"] == RECEIVED - cut.total
        assert moved["vault", "USDC"] == cut.total
        assert await owed(story, world.partner.address, "USDC") == cut.fee + cut.share
        assert await owed(story, world.protocol, "USDC") == cut.share
        assert record["output"]["executedAmount"] == str(RECEIVED - cut.total)


async def test_what_a_purchase_saves_is_shared_as_signed(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        spent = 97 * ONE // 100
        story.agents["ann"].takes = lambda _: spent
        terms = terms_of(story, takes=True, caps=True)
        order = await story.market.a_purchase(partner_and_fee=pack_partner_and_fee(terms))
        cut = of_purchase(spent, order.expected_amount, order.src_amount, terms)
        assert cut is not None
        assert cut.share
        record, moved = await story.completed(order)
        assert moved["user", "WETH"] == -(spent + cut.total)
        assert moved["vault", "WETH"] == cut.total
        assert await owed(story, world.partner.address, "WETH") == cut.fee + cut.share
        assert record["input"]["executedAmount"] == str(spent + cut.total)
