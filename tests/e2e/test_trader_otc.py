"""Maker and taker of OTC orders at our own venue, which says of them what the chain says."""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
import trio
from msgspec import Struct, structs

from cambist.codecs.contracts.calldata import allowance
from cambist.codecs.messages.event_messages import OrderEventMessage, OrderStreamMessage
from cambist.codecs.messages.otc_messages import StoredOrder
from cambist.codecs.messages.vocabulary import OtcState, OtcType
from cambist.config.errors import ChainError, VenueError
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import to_hex
from cambist.crypto.keccak import keccak256
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.trader.client.allowing import Allowing
from cambist.engine.trader.client.client import VenueClient
from cambist.engine.trader.client.events import OrderEvents, OtcEventsWanted
from cambist.engine.trader.client.otc.otc_cancelling import Ending, cancel_otc
from cambist.engine.trader.client.otc.otc_filling import OtcFiller
from cambist.engine.trader.client.otc.otc_following import OtcFollower, disproof
from cambist.engine.trader.client.otc.otc_listing import OtcWanted, otc_pages
from cambist.engine.trader.client.otc.otc_posting import OtcPoster
from cambist.engine.trader.client.otc.otc_safety import check_asked
from cambist.engine.trader.client.otc.otc_terms import (
    OtcWish,
    SignedOtc,
    body_of,
    part_given,
    part_received,
    rest_of,
)
from cambist.engine.trader.client.outcome import SentOutcome, TradeVerdict
from cambist.engine.trader.client.terms import TradedToken
from cambist.engine.trader.client.trader import Trader
from cambist.engine.trader.client.trusted_contract import RFQ, SigningContract, signing_contract
from support.chain.world import HOUR_S, NOBODY, ONE, USDC, World
from support.contracts.rfq_stories import a_wallet
from support.delta.delta_stories import DeltaStory, a_delta_story
from support.patience import PATIENCE_S, until

pytestmark = pytest.mark.one_chain  # the venue looks at it all the while


class Bilateral(Struct):
    """A venue, a maker of USDC and a taker who has WETH; neither needs anybody in between."""

    story: DeltaStory
    client: VenueClient
    contract: SigningContract
    told: list[str]
    nonces: list[int]

    @property
    def world(self) -> World:
        return self.story.world

    @property
    def usdc(self) -> TradedToken:
        return TradedToken(self.world.usdc, "USDC", 6)

    @property
    def weth(self) -> TradedToken:
        return TradedToken(self.world.weth, "WETH", 18)

    def wish(self, maker: SigningKey | None = None, **changed: Any) -> OtcWish:
        """2,500 USDC for one WETH, for the user alone, within the hour."""
        wish = OtcWish(
            chain_id=self.contract.chain_id,
            src=self.usdc,
            dest=self.weth,
            src_amount=2_500 * USDC,
            dest_amount=ONE,
            maker=(maker or self.world.maker).address,
            taker=self.world.user.address,
            life_s=HOUR_S,
        )
        return structs.replace(wish, **changed)

    async def post(
        self,
        wish: OtcWish | None = None,
        maker: SigningKey | None = None,
        allowing: Allowing = Allowing.EXACT,
    ) -> tuple[SignedOtc, StoredOrder]:
        """An order that the venue has."""
        self.nonces.append(len(self.nonces))
        poster = OtcPoster(
            Trader(
                chain=self.world.chain,
                key=maker or self.world.maker,
                wall_s=lambda: 0,
                random32=partial(keccak256, bytes([self.nonces[-1]])),
                tell=self.told.append,
                allowing=allowing,
            ),
            self.client,
        )
        signed, placed = await poster.post(await poster.offer(wish or self.wish(maker)))
        assert placed.record is not None, placed.fault
        return signed, placed.record

    def filler(self, taker: SigningKey | None = None, allowing: Allowing = Allowing.EXACT) -> OtcFiller:
        return OtcFiller(
            Trader(
                chain=self.world.chain,
                key=taker or self.world.user,
                wall_s=lambda: 0,
                tell=self.told.append,
                allowing=allowing,
            ),
            self.contract,
        )

    async def fill(
        self, signed: SignedOtc, *, amount: int = 0, receive: int = 0, taker: SigningKey | None = None
    ) -> SentOutcome:
        """All that is left, or a part."""
        filler = self.filler(taker)
        standing = await filler.standing(signed)
        left = standing.left(signed.order)
        part = rest_of(signed.order, left)
        if amount:
            part = part_given(signed.order, left, amount, self.weth, "--amount")
        elif receive:
            part = part_received(signed.order, left, receive, self.usdc, "--receive")
        return await filler.fill(await filler.offer(signed, standing, part, self.weth, self.usdc))

    async def stored(self, signed: SignedOtc) -> StoredOrder:
        """Order as the venue has it now, checked to be the signed order."""
        stored = await self.client.otc_order(to_hex(signed.order_hash))
        assert check_asked(stored, signed.order_hash, self.contract) == signed
        return stored

    async def becomes(self, signed: SignedOtc, state: OtcState, left: int | None = None) -> StoredOrder:
        """Once it is so, as the venue says; the chain bears it out."""
        with trio.fail_after(PATIENCE_S):
            while True:
                stored = await self.stored(signed)
                if stored.state is state and left in (None, int(stored.fillable_balance)):
                    break
                await trio.sleep(0.01)  # as a client polls
        assert await disproof(self.world.chain, self.contract, signed, stored, wall_s=0) == ""
        return stored


@pytest.fixture
async def bilateral(world: World, tmp_path: Path) -> AsyncIterator[Bilateral]:
    async with (
        a_delta_story(world, tmp_path) as story,
        VenueClient.open(story.web.url) as client,
    ):
        contract = await signing_contract(world.chain, client, RFQ, None)
        assert contract.address == world.at.rfq
        yield Bilateral(story, client, contract, [], [])


async def test_a_named_taker_fills_in_parts_to_the_end(bilateral: Bilateral) -> None:
    world = bilateral.world
    signed, stored = await bilateral.post()
    assert (stored.state, stored.type) == (OtcState.PENDING, OtcType.P2P)
    assert stored.taker_from_meta == to_checksum(world.user.address)
    assert stored.swappable_balance == str(2_500 * USDC)
    before = await world.balance(world.usdc, world.user)
    first = await bilateral.fill(signed, amount=ONE // 4)
    assert (first.verdict, first.received, first.remarks) == (TradeVerdict.FILLED, 625 * USDC, ())
    stored = await bilateral.becomes(signed, OtcState.PENDING, 1_875 * USDC)
    assert stored.transaction_hash == to_hex(first.tx_hash)
    second = await bilateral.fill(signed, receive=1_000 * USDC)
    assert (second.spent, second.received) == (4 * ONE // 10, 1_000 * USDC)
    await bilateral.becomes(signed, OtcState.PENDING, 875 * USDC)
    last = await bilateral.fill(signed)
    assert last.received == 875 * USDC
    stored = await bilateral.becomes(signed, OtcState.FULFILLED, 0)
    assert stored.transaction_hash == to_hex(last.tx_hash)
    assert await world.balance(world.usdc, world.user) == before + 2_500 * USDC
    assert await world.balance(world.weth, world.maker) == ONE
    with pytest.raises(ChainError, match="the order has no unfilled amount"):
        await bilateral.fill(signed)


async def test_a_stranger_is_refused_and_an_open_order_is_anyones(bilateral: Bilateral) -> None:
    world = bilateral.world
    await world.mint(world.weth, world.stranger, ONE)
    nonce = await world.chain.nonce(world.stranger.address)
    signed, _ = await bilateral.post()
    with pytest.raises(ChainError, match="as its taker, and the key is of"):
        await bilateral.fill(signed, taker=world.stranger)
    assert await world.chain.nonce(world.stranger.address) == nonce
    anyones, stored = await bilateral.post(bilateral.wish(taker=NOBODY, life_s=0))
    assert (stored.type, stored.expiry) == (OtcType.LIMIT, 0)
    filled = await bilateral.fill(anyones, taker=world.stranger)
    assert (filled.verdict, filled.received) == (TradeVerdict.FILLED, 2_500 * USDC)
    await bilateral.becomes(anyones, OtcState.FULFILLED)


async def test_an_order_expires_at_the_venue_and_on_chain(bilateral: Bilateral) -> None:
    signed, _ = await bilateral.post()
    await bilateral.story.pass_time(HOUR_S + 60)
    await bilateral.becomes(signed, OtcState.EXPIRED)
    with pytest.raises(ChainError, match="the order expired at"):
        await bilateral.fill(signed)
    with pytest.raises(VenueError, match="400"):
        await bilateral.client.post_otc(
            bilateral.contract.chain_id, structs.replace(body_of(signed), expiry=signed.order.expiry - 1)
        )


async def test_one_and_many_are_cancelled_by_their_maker(bilateral: Bilateral) -> None:
    world = bilateral.world
    orders = [(await bilateral.post())[0] for _ in range(4)]
    maker = Trader(chain=world.chain, key=world.maker, wall_s=lambda: 0, tell=bilateral.told.append)
    cancel = partial(cancel_otc, maker, bilateral.contract)
    one = await cancel({orders[0].order_hash: orders[0].order})
    assert one.receipt is not None
    stored = await bilateral.becomes(orders[0], OtcState.CANCELLED)
    assert stored.transaction_hash == to_hex(one.receipt.tx_hash)
    many = await cancel({signed.order_hash: signed.order for signed in orders})
    assert list(many.endings.values()) == [Ending.CLOSED] + [Ending.CANCELLED] * 3
    for signed in orders[1:]:
        await bilateral.becomes(signed, OtcState.CANCELLED)
        with pytest.raises(ChainError, match="the order has no unfilled amount"):
            await bilateral.fill(signed)


async def test_what_the_balance_does_not_cover_is_suspended_and_back(bilateral: Bilateral) -> None:
    world = bilateral.world
    await world.give(world.partner, world.usdc, 1_000 * USDC, world.at.rfq)
    signed, stored = await bilateral.post(maker=world.partner)
    assert (stored.state, stored.swappable_balance) == (OtcState.SUSPENDED, "0")
    with pytest.raises(ChainError, match="has 1000 USDC, and 2500 USDC would be taken"):
        await bilateral.fill(signed)
    await world.mint(world.usdc, world.partner, 1_500 * USDC)
    stored = await bilateral.becomes(signed, OtcState.PENDING)
    assert stored.swappable_balance == str(2_500 * USDC)
    assert (await bilateral.fill(signed)).verdict is TradeVerdict.FILLED


async def test_a_permit_of_the_makers_stands_for_its_approval(bilateral: Bilateral) -> None:
    world = bilateral.world
    await world.mint(world.usdc, world.partner, 2_500 * USDC)
    signed, stored = await bilateral.post(maker=world.partner, allowing=Allowing.PERMIT)
    assert (stored.state, len(signed.permit)) == (OtcState.PENDING, 224)
    assert await world.ask(world.usdc, allowance(world.partner.address, world.at.rfq)) == 0
    assert (await bilateral.fill(signed, receive=500 * USDC)).received == 500 * USDC
    await bilateral.becomes(signed, OtcState.PENDING, 2_000 * USDC)
    assert (await bilateral.fill(signed)).received == 2_000 * USDC


async def test_an_order_of_a_contract_is_posted_and_filled(bilateral: Bilateral) -> None:
    world = bilateral.world
    wallet = await a_wallet(world, world.partner)
    order = world.an_rfq_order(maker=wallet, taker=world.user.address)
    signed = SignedOtc(order, world.rfq_hash(order), world.signed(order, world.partner))
    stored = await bilateral.client.post_otc(bilateral.contract.chain_id, body_of(signed))
    assert stored.state is OtcState.PENDING
    assert (await bilateral.fill(signed)).received == 2_500 * USDC
    await bilateral.becomes(signed, OtcState.FULFILLED)


async def test_both_sides_find_their_orders_and_hear_of_them(bilateral: Bilateral) -> None:
    world, heard = bilateral.world, list[OrderStreamMessage]()
    wanted = OtcEventsWanted(taker=to_checksum(world.user.address))
    events = OrderEvents(bilateral.client, wanted, heard.append, tell=bilateral.told.append, random=Random(7))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(events.run)
        await until(lambda: bool(heard))
        mine = [(await bilateral.post())[0] for _ in range(3)]
        await bilateral.post(bilateral.wish(taker=world.stranger.address))
        await bilateral.fill(mine[0])

        def told() -> list[tuple[str, str]]:
            return [(each.order_hash, each.status) for each in heard if isinstance(each, OrderEventMessage)]

        await until(lambda: (to_hex(mine[0].order_hash), "FULFILLED") in told())
        nursery.cancel_scope.cancel()
    names = [to_hex(signed.order_hash) for signed in mine]
    assert {name for name, _ in told()} == set(names)
    for role, account, count in (("maker", world.maker, 4), ("taker", world.user, 3)):
        listing = OtcWanted(chain_id=bilateral.contract.chain_id, role=role, account=account.address)
        found = [stored.order_hash async for page in otc_pages(bilateral.client, listing) for stored in page]
        assert len(found) == len(set(found)) == count
        assert set(names) <= set(found)


async def test_an_order_is_followed_to_its_end(bilateral: Bilateral) -> None:
    signed, stored = await bilateral.post()
    follower = OtcFollower(bilateral.client, to_hex(signed.order_hash), bilateral.told.append)
    follower.see(stored)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(follower.follow, 20)
        await bilateral.fill(signed)
    assert follower.has_ended
    assert bilateral.told[-2].endswith("is FULFILLED: all of it is filled")
