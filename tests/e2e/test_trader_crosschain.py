"""The trader's side and our own venue on two chains: quoted, signed, delivered or refunded, and proven."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from cambist.codecs.bridges.bridge_terms import BridgeFee, fee_of, input_of, output_of
from cambist.codecs.messages.vocabulary import OrderStatus, Side
from cambist.config.errors import UnsafeTransaction, VenueError
from cambist.engine.trader.client.client import VenueClient
from cambist.engine.trader.client.order.order_following import OrderFollower, SettledOnChain, Subject, proven
from cambist.engine.trader.client.order.order_safety import signed_order
from cambist.engine.trader.client.order_terms import BridgeWish, OrderWish
from cambist.engine.trader.client.terms import TradedToken
from support.bridge.bridged_stories import FAIR, FEE, FILL_WITHIN_S, BridgedStory, a_bridged_story
from support.bridge.two_chains import TwoChains
from support.chain.world import ONE, USDC
from support.client.order_trader import TraderAtVenue
from support.patience import PATIENCE_S

OF_PROTOCOL = 10_000
ENTERS = FAIR - FAIR // OF_PROTOCOL
"""Proceeds of the sale of one WETH, less the fee that the venue takes of a quoted trade."""


class Trading(Struct):
    """A venue on two chains, and its trader."""

    story: BridgedStory
    trader: TraderAtVenue

    def wish(self, bridge: str, **changed: Any) -> OrderWish:
        """The user sells one WETH for USDC on the second chain, by a bridge."""
        bridging = BridgeWish(
            chain_id=self.story.two.second, fee_bps_max=20, via=self.trader.usdc, bridges=(bridge,)
        )
        dest = TradedToken(self.story.far.usdc, "USDC", 6)
        return self.trader.wish(**({"dest": dest, "bridging": bridging, "slippage_bps": 100} | changed))

    async def placed(self, wish: OrderWish) -> tuple[OrderFollower, Subject]:
        """A submitted order: its follower, and its subject with a node of the destination chain."""
        offer, placed = await self.trader.place(wish)
        assert placed.record is not None, placed.fault
        follower = OrderFollower(self.trader.client, placed.record.id, self.trader.told.append)
        follower.see(placed.record)
        signed = signed_order(placed.record, offer.contract)
        return follower, Subject(offer.contract.address, signed, self.story.far.chain)

    async def ended(self, wish: OrderWish) -> tuple[OrderStatus, SettledOnChain]:
        """An order followed to its end, which both chains prove."""
        follower, subject = await self.placed(wish)
        await follower.follow(PATIENCE_S)
        assert follower.record is not None
        settled = await proven(self.story.world.chain, subject, follower.record)
        return follower.record.status, settled


@pytest.fixture
async def trading(two: TwoChains, tmp_path: Path) -> AsyncIterator[Trading]:
    async with a_bridged_story(two, tmp_path) as story, VenueClient.open(story.web.url) as client:
        yield Trading(story, TraderAtVenue(story.world, client))


@pytest.mark.parametrize(
    ("bridge", "signed", "kept"),
    [
        ("across", FEE, fee_of(FEE, ENTERS)),
        ("cctp", BridgeFee(0, 0), 0),
        ("express", BridgeFee(110, 0), -(-ENTERS // 10_000)),
    ],
)
async def test_a_sale_is_quoted_signed_delivered_and_proven(
    trading: Trading, bridge: str, signed: BridgeFee, kept: int
) -> None:
    user, far = trading.trader.world.user, trading.story.far
    before = await far.balance(far.usdc, user)
    status, settled = await trading.ended(trading.wish(bridge))
    assert (status, settled.fault) == (OrderStatus.COMPLETED, "")
    assert settled == SettledOnChain(
        spent=ONE, received=ENTERS - kept, bridged=ENTERS, is_closed=True, remarks=settled.remarks
    )
    assert settled.received >= output_of(signed, 0, ENTERS)
    assert await far.balance(far.usdc, user) == before + settled.received


async def test_a_purchase_pays_for_what_has_to_arrive(trading: Trading) -> None:
    wanted = 1_000 * USDC
    status, settled = await trading.ended(trading.wish("across", side=Side.BUY, amount=wanted))
    assert (status, settled.fault) == (OrderStatus.COMPLETED, "")
    assert settled.bridged >= input_of(FEE, 0, wanted)
    assert settled.received >= wanted
    assert settled.spent <= ONE


async def test_an_unfilled_transfer_is_followed_to_its_refund_and_proven(trading: Trading) -> None:
    two, story, trader = trading.story.two, trading.story, trading.trader
    two.relayer.order(is_silent=True)
    before = await trader.has(trader.world.usdc)
    follower, subject = await trading.placed(trading.wish("across"))
    record = {"id": follower.record.id} if follower.record else {}
    await story.becomes(record, "BRIDGING")
    await story.pass_time(FILL_WITHIN_S + 60)  # the second chain may be behind
    await story.far.chain.mine(3)
    await story.becomes(record, "REFUNDING")
    two.relayer.order(pays_out=True)
    await follower.follow(PATIENCE_S)
    assert follower.record is not None
    assert follower.record.status is OrderStatus.REFUNDED
    settled = await proven(story.world.chain, subject, follower.record)
    assert (settled.fault, settled.bridged, settled.refunded, settled.received) == ("", ENTERS, ENTERS, 0)
    assert await trader.has(trader.world.usdc) == before + ENTERS
    assert trader.told[-1].endswith("is REFUNDED: the bridge failed, and what entered it came back")
    two.relayer.order(is_silent=False, pays_out=False)


async def test_a_fee_above_the_traders_bound_and_a_bridge_that_is_not_served(trading: Trading) -> None:
    wish = trading.wish("across")
    assert wish.bridging is not None
    narrow = BridgeWish(chain_id=wish.bridging.chain_id, fee_bps_max=1, bridges=("across",))
    with pytest.raises(UnsafeTransaction, match="the bridge's fee: expected at most 1 basis points"):
        await trading.trader.place(trading.wish("across", bridging=narrow))
    with pytest.raises(VenueError, match=r"GET /v2/quote: 400 \w+"):
        await trading.trader.place(trading.wish("hop"))


SENT = 1_000 * USDC


@pytest.mark.parametrize(
    ("bridge", "fee_of_bridge"),
    [("across", FEE), ("cctp", BridgeFee(0, 0)), ("express", BridgeFee(110, 0))],
)
async def test_the_bridge_s_own_token_is_sent_without_a_swap(
    trading: Trading, bridge: str, fee_of_bridge: BridgeFee
) -> None:
    trader, far = trading.trader, trading.story.far
    world, user = trader.world, trader.world.user
    await world.mint(world.usdc, user, SENT)
    before = await trader.has(world.usdc), await far.balance(far.usdc, user)
    paid = await world.balance(world.usdc, world.relayer)
    status, settled = await trading.ended(trading.wish(bridge, src=trader.usdc, amount=SENT))
    assert (status, settled.fault) == (OrderStatus.COMPLETED, "")
    gas = await world.balance(world.usdc, world.relayer) - paid
    received = SENT - gas
    assert SENT // 1_000 > gas > 0
    assert (settled.spent, settled.bridged) == (SENT, received - received // OF_PROTOCOL)
    assert settled.received >= output_of(fee_of_bridge, 0, settled.bridged)
    assert await trader.has(world.usdc) == before[0] - SENT
    assert await far.balance(far.usdc, user) == before[1] + settled.received


async def test_a_purchase_without_a_swap_costs_the_fees_and_gas(trading: Trading) -> None:
    trader, far = trading.trader, trading.story.far
    world, user = trader.world, trader.world.user
    await world.mint(world.usdc, user, 2 * SENT)
    before = await trader.has(world.usdc), await far.balance(far.usdc, user)
    paid = await world.balance(world.usdc, world.relayer)
    wish = trading.wish("across", src=trader.usdc, side=Side.BUY, amount=SENT)
    status, settled = await trading.ended(wish)
    assert (status, settled.fault) == (OrderStatus.COMPLETED, "")
    gas = await world.balance(world.usdc, world.relayer) - paid
    assert SENT // 1_000 > gas > 0
    assert settled.bridged == input_of(FEE, 0, SENT)
    needed = settled.bridged + gas
    assert settled.spent == needed + needed // OF_PROTOCOL
    assert await trader.has(world.usdc) == before[0] - settled.spent
    assert await far.balance(far.usdc, user) == before[1] + settled.received >= SENT
