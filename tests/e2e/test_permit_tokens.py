"""Tokens whose permits are not EIP-2612 to the letter: signed as the token takes them, or not at all.

Source: contracts/dev/DevPermitTokens.sol, which names for each token one in use that it is like.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec import Struct, structs

from cambist.codecs.contracts.calldata import allowance
from cambist.codecs.messages.otc_messages import StoredOrder
from cambist.codecs.messages.vocabulary import OtcState
from cambist.config.errors import ChainError
from cambist.crypto.keccak import keccak256
from cambist.engine.trader.client.allowing import Allowing, MissingAllowance
from cambist.engine.trader.client.client import VenueClient
from cambist.engine.trader.client.otc.otc_filling import OtcFiller
from cambist.engine.trader.client.otc.otc_posting import OtcPoster
from cambist.engine.trader.client.otc.otc_terms import OtcWish, SignedOtc, body_of, rest_of
from cambist.engine.trader.client.outcome import SentOutcome
from cambist.engine.trader.client.terms import TradedToken
from cambist.engine.trader.client.trader import Trader
from cambist.engine.trader.client.trusted_contract import RFQ, SigningContract, signing_contract
from support.chain.world import HOUR_S, MOST, ONE, USDC, World
from support.contracts.permits import eip2612_permit, shown, token_domain
from support.contracts.settling import a_market
from support.contracts.swapping import a_venue
from support.delta.delta_stories import a_delta_story

pytestmark = pytest.mark.one_chain  # the venue looks at it all the while

SOLD = 2_500 * USDC
ALL_OR_NOTHING = "DevTokenPermitsAll"
KINDS = (
    "DevToken", ALL_OR_NOTHING, "DevTokenSalted", "DevTokenUnversioned", "DevTokenRenamed",
    "DevTokenOwnNonces",
)  # fmt: skip
REFUSED = {
    "DevTokenUntold": "the permit domain of 0x[0-9A-Fa-f]{40} does not follow from its name",
    "DevTokenDeaf": "the permit is refused: the token takes none",
}
each_kind = pytest.mark.parametrize("kind", KINDS)


class Selling(Struct):
    """A maker who sells a token for WETH to the user, by permits, at the venue of this package."""

    world: World
    client: VenueClient
    contract: SigningContract
    told: list[str]

    async def token(self, kind: str) -> TradedToken:
        """A new token, of which the maker has some and the RFQ contract may take none."""
        address = await self.world.new_token(kind, "ODD", 6)
        await self.world.mint(address, self.world.maker, 10 * SOLD)
        return TradedToken(address, "ODD", 6)

    def trader(self, allowing: Allowing = Allowing.PERMIT, *, is_maker: bool = True) -> Trader:
        world = self.world
        return Trader(
            chain=world.chain,
            key=world.maker if is_maker else world.user,
            wall_s=lambda: 0,
            random32=lambda: keccak256(bytes([len(self.told)])),
            tell=self.told.append,
            allowing=allowing,
        )

    def wish(self, token: TradedToken) -> OtcWish:
        world = self.world
        return OtcWish(
            chain_id=self.contract.chain_id, src=token, dest=TradedToken(world.weth, "WETH", 18),
            src_amount=SOLD, dest_amount=ONE, maker=world.maker.address, taker=world.user.address,
            life_s=HOUR_S,
        )  # fmt: skip

    async def post(self, token: TradedToken) -> tuple[SignedOtc, StoredOrder]:
        poster = OtcPoster(self.trader(), self.client)
        signed, placed = await poster.post(await poster.offer(self.wish(token)))
        assert placed.record is not None, placed.fault
        return signed, placed.record

    async def fill(self, signed: SignedOtc, token: TradedToken) -> SentOutcome:
        filler = OtcFiller(self.trader(Allowing.EXACT, is_maker=False), self.contract)
        standing = await filler.standing(signed)
        part = rest_of(signed.order, standing.left(signed.order))
        gives = TradedToken(self.world.weth, "WETH", 18)
        return await filler.fill(await filler.offer(signed, standing, part, gives, token))


@pytest.fixture
async def selling(world: World, tmp_path: Path) -> AsyncIterator[Selling]:
    async with a_delta_story(world, tmp_path) as story, VenueClient.open(story.web.url) as client:
        yield Selling(world, client, await signing_contract(world.chain, client, RFQ, None), [])


@each_kind
async def test_a_permit_is_signed_as_the_token_takes_it(selling: Selling, kind: str) -> None:
    world, token = selling.world, await selling.token(kind)
    missing = MissingAllowance(token.address, world.at.delta, SOLD, 0)
    permit = await selling.trader().permit(missing, await world.now_s() + HOUR_S)
    assert len(permit) == (256 if kind == ALL_OR_NOTHING else 224)
    await world.send(world.stranger, token.address, shown(permit))
    allowed = await world.ask(token.address, allowance(world.maker.address, world.at.delta))
    assert allowed == (MOST if kind == ALL_OR_NOTHING else SOLD)
    assert ("the token's permits allow any amount" in selling.told) is (kind == ALL_OR_NOTHING)


@each_kind
async def test_a_second_permit_has_the_next_nonce(selling: Selling, kind: str) -> None:
    world, token = selling.world, await selling.token(kind)
    for spender in (world.at.delta, world.at.router):
        missing = MissingAllowance(token.address, spender, SOLD, 0)
        permit = await selling.trader().permit(missing, await world.now_s() + HOUR_S)
        await world.send(world.stranger, token.address, shown(permit))
        assert await world.ask(token.address, allowance(world.maker.address, spender)) >= SOLD


@each_kind
async def test_an_order_by_such_a_permit_is_backed_and_filled(selling: Selling, kind: str) -> None:
    token = await selling.token(kind)
    signed, stored = await selling.post(token)
    assert stored.state is OtcState.PENDING
    assert (await selling.fill(signed, token)).received == SOLD


@pytest.mark.parametrize("kind", REFUSED)
async def test_a_permit_that_no_token_would_take_is_refused_before_anything_is_sent(
    selling: Selling, kind: str
) -> None:
    world, token = selling.world, await selling.token(kind)
    nonce = await world.chain.nonce(world.maker.address)
    with pytest.raises(ChainError, match=f"{REFUSED[kind]}.*: use an approval in place of --permit"):
        await selling.post(token)
    assert await world.chain.nonce(world.maker.address) == nonce
    assert not [line for line in selling.told if "posting" in line]


async def test_a_permit_that_a_token_only_seems_to_take_backs_no_order_and_is_filled_by_nobody(
    selling: Selling,
) -> None:
    world, token = selling.world, await selling.token("DevTokenDeaf")
    order = world.an_rfq_order(maker_asset=token.address, maker_amount=SOLD, taker=world.user.address)
    domain = token_domain("ODD", world.chain.chain_id, token.address)
    ends = await world.now_s() + HOUR_S
    permit = eip2612_permit(domain, world.maker, world.at.rfq, SOLD, nonce=0, deadline=ends)
    signed = SignedOtc(order, world.rfq_hash(order), world.signed(order), permit)
    stored = await selling.client.post_otc(selling.contract.chain_id, body_of(signed))
    assert stored.state is OtcState.SUSPENDED
    nonce = await world.chain.nonce(world.user.address)
    with pytest.raises(ChainError, match="the permit is refused: the token takes none"):
        await selling.fill(signed, token)
    assert await world.chain.nonce(world.user.address) == nonce


@each_kind
async def test_the_router_and_delta_take_such_a_token_by_its_permit(world: World, kind: str) -> None:
    token = await world.new_token(kind, "ODD", 6)
    await world.mint(token, world.user, 2 * SOLD)
    trader = Trader(
        chain=world.chain, key=world.user, wall_s=lambda: 0, tell=lambda _: None, allowing=Allowing.PERMIT
    )
    venue, market = await a_venue(world), await a_market(world)
    await world.give(world.maker, world.weth, ONE, world.at.rfq)
    quote = venue.quote(maker_asset=world.weth, taker_asset=token, maker_amount=ONE, taker_amount=SOLD)
    swap = venue.swap(
        venue.hop(quote), src_token=token, dest_token=world.weth, src_amount=SOLD, dest_amount=ONE
    )
    for_router = await trader.permit(MissingAllowance(token, world.at.router, SOLD, 0), venue.deadline)
    assert (await venue.sell(structs.replace(swap, permit=for_router))).event.received == ONE
    order = await world.a_delta_order(
        src_token=token, dest_token=world.dai, src_amount=SOLD, dest_amount=2_400 * ONE, expected_amount=0
    )
    for_delta = await trader.permit(MissingAllowance(token, world.at.delta, SOLD, 0), order.deadline)
    steps = market.to_agent(SOLD, token), market.from_agent(2_500 * ONE, world.dai)
    settled = await market.settle(structs.replace(order, permit=for_delta), *steps)
    assert (settled.event.spent, settled.event.received) == (SOLD, 2_500 * ONE)
