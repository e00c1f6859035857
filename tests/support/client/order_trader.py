"""A trader's side of a scripted venue for Delta orders.

async with an_order_trader(world) as trader:
    record, settled = await trader.settled(trader.wish(amount=ONE))

The venue's maker has both tokens and fills an order when a client looks at it; the user has ten WETH and
10,000 USDC, and has given no allowance.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from msgspec.structs import replace

from cambist.codecs.contracts.delta_calldata import deposits
from cambist.codecs.messages.delta_messages import OrderRecord
from cambist.codecs.messages.vocabulary import OrderType, Side
from cambist.crypto.keccak import keccak256
from cambist.engine.trader.client.allowing import Allowing
from cambist.engine.trader.client.client import VenueClient
from cambist.engine.trader.client.following import Placed
from cambist.engine.trader.client.order.order_following import OrderFollower, SettledOnChain, Subject, proven
from cambist.engine.trader.client.order.order_placing import OrderOffer, OrderPlacer
from cambist.engine.trader.client.order.order_safety import signed_order
from cambist.engine.trader.client.order_terms import OrderWish
from cambist.engine.trader.client.terms import TradedToken
from cambist.engine.trader.client.trader import Trader
from support.chain.world import HOUR_S, NATIVE, ONE, World
from support.client.scripted_orders import OrderVenue, endow, scripted_orders
from support.patience import PATIENCE_S

ETH = TradedToken(NATIVE, "ETH", 18)
TRADER = "cambist.engine.trader.client"
PAUSES = tuple(
    f"{TRADER}.{pause}"
    for pause in (
        "client.TRADER_PAUSE_S",
        "following.TRADER_PAUSE_S",
        "following.TRADER_ORDER_LOOK_S",
    )
)
"""Pauses of the client that a test shortens."""


class TraderAtVenue:
    """The user's side of a venue."""

    def __init__(self, world: World, client: VenueClient) -> None:
        self.world = world
        self.client = client
        self.told: list[str] = []
        self.nonces = 0
        self.weth = TradedToken(self.world.weth, "WETH", 18)
        self.usdc = TradedToken(self.world.usdc, "USDC", 6)

    def account(self, allowing: Allowing = Allowing.EXACT) -> Trader:
        return Trader(
            chain=self.world.chain,
            key=self.world.user,
            wall_s=lambda: 0,
            random32=self.random32,
            tell=self.told.append,
            allowing=allowing,
        )

    def placer(self, allowing: Allowing = Allowing.EXACT) -> OrderPlacer:
        return OrderPlacer(self.account(allowing), self.client)

    def random32(self) -> bytes:
        self.nonces += 1
        return keccak256(bytes([self.nonces]))

    def wish(self, **changed: Any) -> OrderWish:
        """The user sells one WETH for USDC within the hour."""
        user = self.world.user.address
        wish = OrderWish(
            chain_id=self.world.chain.chain_id,
            src=self.weth,
            dest=self.usdc,
            side=Side.SELL,
            amount=ONE,
            slippage_bps=50,
            limit_amount=None,
            type=OrderType.MARKET,
            owner=user,
            beneficiary=user,
            partner="",
            life_s=HOUR_S,
        )
        return replace(wish, **changed)

    async def place(
        self, wish: OrderWish | None = None, allowing: Allowing = Allowing.EXACT, pinned: bytes | None = None
    ) -> tuple[OrderOffer, Placed[OrderRecord]]:
        placer = self.placer(allowing)
        offer = await placer.offer(wish or self.wish(), pinned)
        return offer, await placer.place(offer)

    async def settled(
        self, wish: OrderWish | None = None, allowing: Allowing = Allowing.EXACT
    ) -> tuple[OrderRecord, SettledOnChain]:
        """Placed[OrderRecord], followed to its end, and what the chain says of that."""
        offer, placed = await self.place(wish, allowing)
        assert placed.record is not None, placed.fault
        record = await self.followed(placed.record)
        return record, await self.proven(offer, placed, record)

    async def followed(self, record: OrderRecord) -> OrderRecord:
        """The last record of an order that is followed to its end."""
        follower = OrderFollower(self.client, record.id, self.told.append)
        follower.see(record)
        await follower.follow(PATIENCE_S)
        assert follower.record is not None
        return follower.record

    async def proven(
        self, offer: OrderOffer, placed: Placed[OrderRecord], record: OrderRecord
    ) -> SettledOnChain:
        subject = Subject(offer.contract.address, signed_order(record, offer.contract))
        return await proven(self.world.chain, subject, record)

    async def has(self, token: bytes, who: bytes | None = None) -> int:
        return await self.world.balance(token, who or self.world.user.address)

    async def deposited(self) -> int:
        return await self.world.ask(self.world.at.delta, deposits(self.world.user.address))


class OrderTrader(TraderAtVenue):
    """The user's side of a scripted venue."""

    def __init__(self, venue: OrderVenue, client: VenueClient) -> None:
        super().__init__(venue.world, client)
        self.venue = venue


@asynccontextmanager
async def an_order_trader(world: World) -> AsyncGenerator[OrderTrader]:
    """See the module."""
    await endow(world)
    async with scripted_orders(world) as venue, VenueClient.open(venue.url) as client:
        venue.at_look = venue.settle
        yield OrderTrader(venue, client)
