"""A quoted swap is built, sent and mined: the chain moves the quoted amounts, to the unit.

The makers sign the planned amounts; all other steps, from query to receipt, run as in a venue.
"""

from typing import Any

import pytest
from msgspec import Struct

from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.router_calldata import owed
from cambist.codecs.messages.market_messages import PriceRoute, TransactionEnvelope
from cambist.config.errors import InsufficientAllowance, InsufficientBalance, SimulationFailed
from cambist.crypto.addresses import parse_address, to_checksum
from cambist.crypto.hexadecimal import parse_hex
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.chain.port import Receipt
from support.chain.world import NATIVE, ONE, USDC, World, person
from support.contracts.permits import eip2612_permit, token_domain
from support.contracts.swapping import UNFILLED, Venue, a_wide_venue
from support.venue.market_place import CHAIN_ID, PARTNER, Shop, WillingDesk, a_shop

WBTC = b"\x44" * 20


class Story(Struct, frozen=True):
    """A shop on a world in which makers and the user have what they trade."""

    venue: Venue
    shop: Shop
    now_ms: int

    @property
    def world(self) -> World:
        return self.venue.world

    def route(self, **changed: Any) -> PriceRoute:
        """Route for selling one WETH for USDC, with `changed` query parameters."""
        parameters = {
            "srcToken": "WETH", "destToken": "USDC", "amount": ONE, "network": CHAIN_ID, "version": "6.2",
            **changed,
        }  # fmt: skip
        query = "&".join(f"{name}={value}" for name, value in parameters.items())
        return self.shop.prices(query, self.now_ms)

    async def build(self, route: PriceRoute, query: str = "", **body: Any) -> TransactionEnvelope:
        """The user's transaction, a per cent of slippage allowed."""
        fixed = "srcAmount" if route.side == "SELL" else "destAmount"
        amount = route.src_amount if route.side == "SELL" else route.dest_amount
        sent = {"userAddress": to_checksum(self.world.user.address), fixed: amount, "slippage": 100, **body}
        built = await self.shop.build(route, sent, query, now_ms=self.now_ms)
        assert isinstance(built, TransactionEnvelope)
        return built

    async def send(self, built: TransactionEnvelope, key: SigningKey | None = None) -> Receipt:
        """Exactly as the envelope says."""
        assert isinstance(built.gas, str)
        return await self.world.send(
            key or self.world.user,
            parse_address(built.to),
            parse_hex(built.data, "data"),
            value_wei=int(built.value),
            gas=int(built.gas),
        )


async def a_story(world: World) -> Story:
    venue = await a_wide_venue(world)
    await world.give(world.maker, world.weth, 100 * ONE, world.at.rfq)
    at = world.at
    now_s = await world.now_s()
    firm = WillingDesk(at.executor, world.maker.address, world.signed, now_s + 120)
    shop = a_shop(
        world.chain,
        firm,
        tokens=(world.weth, world.usdc, world.dai, WBTC),
        at=(at.router, at.executor, at.rfq, at.delta, at.fee_vault),
    )
    return Story(venue, shop, now_s * 1_000)


async def test_a_sale_brings_what_was_quoted(world: World) -> None:
    story = await a_story(world)
    route = story.route()
    await story.send(await story.build(route))
    assert await world.balance(world.usdc, world.user) == int(route.dest_amount)
    assert await world.balance(world.weth, world.user) == 9 * ONE
    fee = 2_499 * USDC - int(route.dest_amount)
    assert fee == 2_499 * USDC // 10_000
    assert await story.venue.owed(world.protocol, world.usdc) == fee  # anon's is the venue's


async def test_a_sale_over_two_hops_brings_what_was_quoted(world: World) -> None:
    story = await a_story(world)
    route = story.route(destToken="DAI")
    assert len(route.best_route[0].swaps) == 2
    receiver = to_checksum(b"\x77" * 20)
    await story.send(await story.build(route, receiver=receiver))
    assert await world.balance(world.dai, b"\x77" * 20) == int(route.dest_amount)


async def test_a_purchase_costs_what_was_quoted(world: World) -> None:
    story = await a_story(world)
    route = story.route(side="BUY", amount=1_000 * USDC)
    await story.send(await story.build(route))
    assert await world.balance(world.usdc, world.user) == 1_000 * USDC
    assert await world.balance(world.weth, world.user) == 10 * ONE - int(route.src_amount)


async def test_a_purchase_over_two_hops_costs_what_was_quoted(world: World) -> None:
    story = await a_story(world)
    route = story.route(side="BUY", destToken="DAI", amount=1_000 * ONE + 7)
    await story.send(await story.build(route))
    assert await world.balance(world.dai, world.user) == 1_000 * ONE + 7
    assert await world.balance(world.weth, world.user) == 10 * ONE - int(route.src_amount)


async def test_native_tokens_in(world: World) -> None:
    story = await a_story(world)
    route = story.route(srcToken="ETH")
    built = await story.build(route)
    assert built.value == str(ONE)
    before = await world.balance(NATIVE, world.user)
    receipt = await story.send(built)
    paid = receipt.gas_used * receipt.gas_price_wei
    assert await world.balance(NATIVE, world.user) == before - ONE - paid
    assert await world.balance(world.usdc, world.user) == int(route.dest_amount)


async def test_native_tokens_out_to_a_receiver(world: World) -> None:
    story = await a_story(world)
    await world.give(world.user, world.usdc, 3_000 * USDC, world.at.router)
    route = story.route(srcToken="USDC", destToken="ETH", amount=2_500 * USDC)
    await story.send(await story.build(route, receiver=to_checksum(b"\x77" * 20)))
    assert await world.balance(NATIVE, b"\x77" * 20) == int(route.dest_amount)


async def test_a_permit_in_place_of_an_allowance(world: World) -> None:
    story = await a_story(world)
    await world.mint(world.usdc, world.user, 3_000 * USDC)
    route = story.route(srcToken="USDC", destToken="WETH", amount=2_500 * USDC)
    with pytest.raises(InsufficientAllowance, match=f"Market router {to_checksum(world.at.router)}, got 0"):
        await story.build(route)
    domain = token_domain("USDC", CHAIN_ID, world.usdc)
    until = await world.now_s() + 60
    permit = eip2612_permit(domain, world.user, world.at.router, 2_500 * USDC, nonce=0, deadline=until)
    await story.send(await story.build(route, permit=f"0x{permit.hex()}"))
    assert await world.balance(world.weth, world.user) == 10 * ONE + int(route.dest_amount)
    await world.mint(world.usdc, world.user, 3_000 * USDC)
    with pytest.raises(InsufficientAllowance, match=r"got 0: the permit is refused"):
        await story.build(route, permit=f"0x{permit.hex()}")  # shown already


async def test_a_partner_is_paid_at_once_or_by_the_vault(world: World) -> None:
    story = await a_story(world)
    route = story.route(partner="wallet")
    fee = 2_499 * USDC * 50 // 10_000
    await story.send(await story.build(route, isDirectFeeTransfer=True))
    assert await world.balance(world.usdc, PARTNER) == fee
    await story.send(await story.build(route))
    assert await world.ask(world.at.fee_vault, owed(PARTNER, world.usdc)) == fee
    assert await world.balance(world.usdc, world.user) == 2 * (2_499 * USDC - fee)


async def test_surplus_is_the_users_unless_it_is_taken(world: World) -> None:
    story = await a_story(world)
    story.shop.firm.improvement_bps = 50
    route = story.route()
    better = 2_499 * USDC * 10_050 // 10_000
    await story.send(await story.build(route))
    assert await world.balance(world.usdc, world.user) == better - better // 10_000
    partner = to_checksum(world.partner.address)
    before = await world.balance(world.usdc, world.user)
    await story.send(await story.build(route, takeSurplus=True, partnerAddress=partner))
    net = better - better // 10_000
    half = (net - int(route.dest_amount)) // 2
    assert await world.balance(world.usdc, world.user) == before + net - 2 * half
    kept = await world.ask(world.at.fee_vault, owed(world.partner.address, world.usdc))
    assert kept == half + better // 10_000


async def test_funds_are_checked_by_the_chain_itself(world: World) -> None:
    story = await a_story(world)
    route = story.route(amount=11 * ONE)
    with pytest.raises(InsufficientBalance, match=f"at least {11 * ONE} of srcToken, got {10 * ONE}"):
        await story.build(route)
    await world.approve(world.user, world.weth, world.at.router, ONE - 1)
    with pytest.raises(InsufficientAllowance, match=f"got {ONE - 1}"):
        await story.build(story.route())
    poor = person(8)
    with pytest.raises(InsufficientBalance, match="got 0"):
        await story.build(story.route(srcToken="ETH"), userAddress=to_checksum(poor.address))


async def test_a_swap_that_nobody_can_fill_is_not_handed_out_unchecked(world: World) -> None:
    story = await a_story(world)
    await world.approve(world.maker, world.usdc, world.at.rfq, 0)
    with pytest.raises(SimulationFailed, match="Simulation failed: StepFailed.*" + UNFILLED):
        await story.build(story.route())
    built = await story.build(story.route(), "ignoreChecks=true")
    receipt = await world.forced(world.user, world.at.router, parse_hex(built.data, "data"))
    assert not receipt.succeeded
    assert await world.ask(world.weth, calldata.balance_of(world.user.address)) == 10 * ONE
