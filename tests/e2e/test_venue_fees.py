"""Shares of a swap: partners by name or address, paid at once or from the vault, and the surplus."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from cambist.codecs.contracts.router_calldata import claim
from cambist.crypto.addresses import to_checksum
from support.chain.world import ONE, USDC, World
from support.venue.venue_stories import PARTNER, Story, a_venue_story

pytestmark = pytest.mark.one_chain  # makers and venue look at it all the while

BOOK: dict[str, Any] = {"WETH/USDC": {"bids": [["2500", "50"]], "asks": [["2501", "50"]]}}
GROSS = 2_500 * USDC
BETTER = 2_550 * USDC  # signed by the maker in cases of surplus: two per cent more
ANON = 250_000
ADDRESS = to_checksum(PARTNER.address)


@pytest.fixture
async def story(world: World, tmp_path: Path) -> AsyncIterator[Story]:
    async with a_venue_story(world, tmp_path, {"alpha": BOOK}) as story:
        yield story


async def test_a_registered_partner_is_paid_its_fee(story: Story) -> None:
    fee = GROSS * 50 // 10_000
    route = await story.prices("SELL", "WETH", "USDC", ONE, partner="wallet")
    assert (route["partner"], route["partnerFee"]) == ("wallet", 0.5)
    assert route["destAmount"] == str(GROSS - fee)
    moved = await story.swap(route, slippage=0)
    assert moved["user", "USDC"] == GROSS - fee
    assert moved["vault", "USDC"] == fee
    assert await story.owed("partner", "USDC") == fee
    world = story.world
    await world.chain.set_balance(PARTNER.address, ONE)
    await world.send(PARTNER, world.at.fee_vault, claim([world.usdc], PARTNER.address))
    assert await world.balance(world.usdc, PARTNER) == fee
    assert await story.owed("partner", "USDC") == 0


async def test_a_fee_may_be_paid_at_once(story: Story) -> None:
    fee = GROSS * 50 // 10_000
    route = await story.prices("SELL", "WETH", "USDC", ONE, partner="wallet")
    moved = await story.swap(route, isDirectFeeTransfer=True)
    assert moved["partner", "USDC"] == fee
    assert ("vault", "USDC") not in moved


async def test_the_fee_of_a_purchase_is_on_top(story: Story) -> None:
    fee = ONE * 50 // 10_000
    route = await story.prices("BUY", "WETH", "USDC", GROSS, partner="wallet")
    assert route["srcAmount"] == str(ONE + fee)
    moved = await story.swap(route, slippage=0, isDirectFeeTransfer=True)
    assert moved["user", "WETH"] == -ONE - fee
    assert moved["partner", "WETH"] == fee
    assert moved["user", "USDC"] == GROSS


async def test_anybody_may_name_an_address_and_a_fee(story: Story) -> None:
    """The fee was not in the quote: the fee reduces the expected amount and the bound."""
    fee = GROSS * 75 // 10_000
    route = await story.prices("SELL", "WETH", "USDC", ONE)
    moved = await story.swap(route, partnerAddress=ADDRESS, partnerFeeBps="75", slippage=0)
    assert moved["user", "USDC"] == GROSS - fee
    assert moved["vault", "USDC"] == fee
    assert await story.owed("partner", "USDC") == fee


async def test_a_quote_with_a_fee_of_its_own_is_built_with_it(story: Story) -> None:
    """GET /v2/quote takes partnerFeeBps; the registered fee stacks."""
    told = await story.quote("SELL", "WETH", "USDC", ONE, partner="wallet", partnerFeeBps=25)
    route = told["market"]
    fee = GROSS * 75 // 10_000
    assert route["destAmount"] == str(GROSS - fee)
    moved = await story.swap(route, slippage=0, isDirectFeeTransfer=True)
    assert moved["partner", "USDC"] == fee


async def test_a_tier_bounds_what_its_partners_ask_for(story: Story) -> None:
    route = await story.prices("SELL", "WETH", "USDC", ONE, partner="modest")
    for asked in ({"partnerFeeBps": "11"}, {"takeSurplus": True}):
        status, details = await story.not_built(route, **asked)
        assert status == 422
        assert details.startswith("Partner not allowed")
    moved = await story.swap(route, partnerFeeBps="10", slippage=100)
    assert moved["vault", "USDC"] == GROSS * 20 // 10_000


CAP = (GROSS - ANON) // 100  # a per cent of what is expected
FEE = BETTER // 10_000
SURPLUS = BETTER - FEE - (GROSS - ANON)
SURPLUSES = [
    ("nobody takes it", {}, 0),
    ("taken, up to the cap", {"takeSurplus": True}, CAP // 2),
    ("taken uncapped", {"takeSurplus": True, "isCapSurplus": False}, SURPLUS // 2),
    ("left to the user all the same", {"takeSurplus": True, "isSurplusToUser": True}, 0),
]


@pytest.mark.parametrize(("flags", "half"), [row[1:] for row in SURPLUSES], ids=[row[0] for row in SURPLUSES])
async def test_surplus_goes_where_the_flags_say(story: Story, flags: dict[str, Any], half: int) -> None:
    assert CAP < SURPLUS
    front = story.fronts["alpha"]
    front.habit, front.worse_bps = "drifts", -200
    route = await story.prices("SELL", "WETH", "USDC", ONE)
    moved = await story.swap(route, partnerAddress=ADDRESS, **flags)
    assert moved["alpha", "USDC"] == -BETTER
    assert moved["user", "USDC"] == BETTER - FEE - 2 * half
    assert moved["vault", "USDC"] == FEE + 2 * half
    partner, protocol = await story.owed("partner", "USDC"), await story.owed("protocol", "USDC")
    if half:  # the fee is of the one who is named
        assert (partner, protocol) == (FEE + half, half)
    else:
        assert partner + protocol == FEE


async def test_surplus_of_a_purchase_is_what_was_not_spent(story: Story) -> None:
    front = story.fronts["alpha"]
    front.habit, front.worse_bps = "drifts", -100
    route = await story.prices("BUY", "WETH", "USDC", GROSS)
    spent = ONE * 99 // 100
    fee = spent // 10_000
    expected = int(route["srcAmount"])
    half = min(expected - spent - fee, expected // 100) // 2
    moved = await story.swap(route, partnerAddress=ADDRESS, takeSurplus=True, isDirectFeeTransfer=True)
    assert moved["user", "WETH"] == -spent - fee - 2 * half
    assert moved["partner", "WETH"] == fee + half
    assert moved["protocol", "WETH"] == half
