"""An order without a partner of its own pays one basis point, and the venue's fee address gets it."""

from pathlib import Path

import pytest

from cambist.codecs.contracts.abi import address_word
from cambist.codecs.eip712_orders.partner_and_fee import PartnerAndFee, pack_partner_and_fee
from cambist.config.limits import ANON_FEE_BPS
from cambist.crypto.addresses import ZERO_ADDRESS
from support.chain.world import USDC, World
from support.contracts.settling import OWED
from support.delta.delta_stories import a_delta_story

pytestmark = pytest.mark.one_chain  # the venue looks at it all the while

RECEIVED = 2_600 * USDC + 9_999


async def test_the_fee_of_anon_goes_to_the_venue_rounded_down(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        story.agents["ann"].gives = lambda _: RECEIVED
        terms = PartnerAndFee(ZERO_ADDRESS, ANON_FEE_BPS, partner_takes_surplus=False, cap_surplus=True)
        order = await world.a_delta_order(partner_and_fee=pack_partner_and_fee(terms))
        record, moved = await story.completed(order)
        fee = RECEIVED // 10_000
        assert moved["user", "USDC"] == RECEIVED - fee
        owed = await world.ask(
            world.at.fee_vault, OWED + address_word(world.protocol) + address_word(world.usdc)
        )
        assert (owed, moved["vault", "USDC"]) == (fee, fee)
        assert record["output"]["executedAmount"] == str(RECEIVED - fee)
