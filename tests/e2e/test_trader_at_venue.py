"""The trader's side and our own venue together: an agent settles orders, the chain proves it, some end."""

from collections.abc import AsyncIterator
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest
import trio
from msgspec import Struct

from cambist.codecs.messages.event_messages import OrderEventMessage, OrderStreamMessage
from cambist.codecs.messages.maker_messages import PriceGrid
from cambist.codecs.messages.vocabulary import OnChainOrderType, OrderStatus, OrderType, Side
from cambist.config.errors import VenueError
from cambist.crypto.addresses import to_checksum
from cambist.engine.trader.client.client import VenueClient
from cambist.engine.trader.client.events import EventsWanted, OrderEvents
from cambist.engine.trader.client.order.order_cancelling import cancel, follow_all
from cambist.engine.trader.client.order.order_following import SettledOnChain
from cambist.engine.trader.client.order.order_listing import OrdersWanted, pages
from cambist.engine.trader.client.schedule import Schedule
from cambist.engine.trader.client.trusted_contract import DELTA, signing_contract
from cambist.feeds.books.book import build_book
from cambist.feeds.books.pair_index import LiveBook
from support.chain.world import ONE, USDC, World
from support.client.order_trader import ETH, TraderAtVenue
from support.delta.delta_stories import DeltaStory, a_delta_story
from support.patience import PATIENCE_S, until
from support.venue.venue_role import CHAIN_ID

pytestmark = pytest.mark.one_chain  # the venue looks at it all the while

_WEEK_S = 7 * 86_400


class Trading(Struct):
    """A venue with one agent and a book to quote by, and its trader."""

    story: DeltaStory
    trader: TraderAtVenue

    def delivers(self, usdc: int) -> None:
        """Set the USDC that the agent gives for a sale of one WETH."""
        self.story.agents["ann"].gives = lambda _: usdc


@pytest.fixture
async def trading(world: World, tmp_path: Path) -> AsyncIterator[Trading]:
    async with a_delta_story(world, tmp_path, "ann") as story:
        grid = PriceGrid(bids=(("2500", "50"),), asks=(("2501", "50"),))
        book = LiveBook("alpha", world.weth, world.usdc, build_book(grid, 18, 6), Decimal(1_000_000))
        story.web.app.chains[CHAIN_ID].index.put(book)
        async with VenueClient.open(story.web.url) as client:
            yield Trading(story, TraderAtVenue(world, client))


async def test_a_sale_is_quoted_signed_settled_and_proven(trading: Trading) -> None:
    trading.delivers(2_500 * USDC)
    record, settled = await trading.trader.settled()
    assert record.status is OrderStatus.COMPLETED
    assert (settled.spent, settled.is_closed, settled.fault, settled.remarks) == (ONE, True, "", ())
    assert settled.received == 2_500 * USDC * 9_999 // 10_000, "what came, less the basis point of `anon`"


async def test_a_purchase_and_a_deposit_of_native_tokens(trading: Trading) -> None:
    trading.story.agents["ann"].takes = lambda _: ONE * 2 // 5
    trader = trading.trader
    wish = trader.wish(src=ETH, side=Side.BUY, amount=900 * USDC, slippage_bps=1_500)
    offer, placed = await trader.place(wish)
    assert placed.record is not None, placed.fault
    await trading.story.becomes({"id": placed.record.id}, "COMPLETED")
    record = await trader.client.order(f"0x{placed.order_hash.hex()}")
    settled: SettledOnChain = await trader.proven(offer, placed, record)
    assert (settled.received, settled.fault) == (900 * USDC, "")
    assert settled.spent <= offer.terms.limit
    assert await trader.deposited() == 0


async def test_a_resting_limit_order_is_cancelled_and_its_nonce_is_not_used(trading: Trading) -> None:
    trader = trading.trader
    wish = trader.wish(type=OrderType.LIMIT, limit_amount=3_000 * USDC, life_s=_WEEK_S)
    _, placed = await trader.place(wish)
    assert placed.record is not None, placed.fault
    await trading.story.becomes({"id": placed.record.id}, "ACTIVE")
    world = trader.world
    contract = await signing_contract(world.chain, trader.client, DELTA, None)
    followers = await cancel(trader.account(), trader.client, contract, [placed.record.id])
    await follow_all(followers, PATIENCE_S)
    assert [follower.record.status for follower in followers if follower.record] == [OrderStatus.CANCELLED]


async def test_our_venue_pushes_what_happens_to_an_order(trading: Trading) -> None:
    trading.delivers(2_500 * USDC)
    trader, heard = trading.trader, list[OrderStreamMessage]()
    owner = to_checksum(trader.world.user.address)
    told: list[str] = []
    events = OrderEvents(
        trader.client, EventsWanted(owner=owner), heard.append, tell=told.append, random=Random(1)
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(events.run)
        await until(lambda: events.is_live)
        record, _ = await trader.settled()
        await until(lambda: len(heard) >= 4)
        nursery.cancel_scope.cancel()
    changes = [each for each in heard if isinstance(each, OrderEventMessage)]
    assert {each.id for each in changes} == {record.id}
    assert [each.status for each in changes][:2] == ["PENDING", "ACTIVE"]
    assert changes[-1].status == "COMPLETED"
    assert told == []
    assert not any("connecting again" in line for line in trader.told)


async def test_a_twap_is_taken_as_one_and_orders_are_listed(trading: Trading) -> None:
    trader = trading.trader
    twap = trader.wish(schedule=Schedule(4, 60), life_s=3_600, limit_amount=2_400 * USDC)
    in_parts = trader.wish(type=OrderType.LIMIT, limit_amount=3_000 * USDC, life_s=_WEEK_S, is_partial=True)
    for wish in (twap, in_parts):
        _, placed = await trader.place(wish)
        assert placed.record is not None, placed.fault
    owner = to_checksum(trader.world.user.address)
    listed = [record async for page in pages(trader.client, OrdersWanted(owner=owner)) for record in page]
    kinds = [record.on_chain_order_type for record in listed]
    assert kinds == [OnChainOrderType.FILLABLE_ORDER, OnChainOrderType.TWAP_ORDER]
    assert listed[1].output.min_amount == str(2_400 * USDC)
    wanted = OrdersWanted(owner=owner, statuses=(OrderStatus.COMPLETED,), chain_ids=(CHAIN_ID,))
    assert [page async for page in pages(trader.client, wanted)] == []


async def test_a_refusal_of_the_venue_is_told_in_its_words(trading: Trading) -> None:
    trader = trading.trader
    missing: Any = trader.wish(src=trader.usdc, dest=ETH, amount=1)
    with pytest.raises(VenueError, match=r"GET /v2/quote: 400 \w+: .+ \(request "):
        await trader.place(missing)
