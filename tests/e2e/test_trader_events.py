"""Changes that a venue pushes to a trader: each once, over any number of connections; or no events at all."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import pytest
import trio
import trio.testing

from cambist.codecs.messages.event_messages import OpenMessage, OrderEventMessage, OrderStreamMessage
from cambist.codecs.messages.vocabulary import OrderStatus
from cambist.config.errors import VenueError
from cambist.engine.trader.client.client import VenueClient
from cambist.engine.trader.client.events import EventsWanted, OrderEvents
from cambist.engine.trader.client.order.order_following import OrderFollower
from support.chain.world import World
from support.client.order_trader import OrderTrader, an_order_trader
from support.patience import PATIENCE_S, until


@pytest.fixture
async def trader(world: World, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[OrderTrader]:
    monkeypatch.setattr("cambist.feeds.backoff.FEED_PAUSE_S", 0.01)
    async with an_order_trader(world) as trading:
        trading.venue.at_look = None
        trading.venue.pushes = True
        yield trading


class Listener:
    """Keeps what it hears."""

    def __init__(self, trader: OrderTrader, wanted: EventsWanted, after: str = "") -> None:
        self.heard: list[OrderStreamMessage] = []
        self.told: list[str] = []
        self._arrived = trio.Event()
        self.events = OrderEvents(
            trader.client, wanted, self._hear, tell=self.told.append, random=Random(1), after=after
        )

    def _hear(self, message: OrderStreamMessage) -> None:
        self.heard.append(message)
        self._arrived.set()

    @property
    def changes(self) -> list[tuple[str, str]]:
        return [(each.token, each.status) for each in self.heard if isinstance(each, OrderEventMessage)]

    async def until(self, count: int) -> None:
        """Wait until `count` messages have arrived."""
        with trio.fail_after(PATIENCE_S):
            while len(self.heard) < count:
                self._arrived = trio.Event()
                await self._arrived.wait()

    async def until_changes(self, count: int) -> None:
        """Wait until `count` changes have arrived."""
        await until(lambda: len(self.changes) >= count, PATIENCE_S)


@asynccontextmanager
async def listening(
    trader: OrderTrader, wanted: EventsWanted | None = None, after: str = ""
) -> AsyncIterator[Listener]:
    listener = Listener(trader, wanted or EventsWanted(), after)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(listener.events.run)
        yield listener
        nursery.cancel_scope.cancel()


async def test_it_begins_with_now_and_hears_every_change(trader: OrderTrader) -> None:
    await trader.place()
    async with listening(trader) as listener:
        await listener.until(1)
        assert listener.heard == [OpenMessage("1")]
        assert listener.events.is_live
        await trader.venue.settle(trader.venue.only)
        await listener.until(2)
    assert listener.changes == [("2", "COMPLETED")]
    assert listener.events.token == "2"


async def test_over_lost_connections_nothing_is_missed_and_nothing_told_twice(trader: OrderTrader) -> None:
    await trader.place()
    placed, venue = trader.venue.only, trader.venue
    async with listening(trader, after="0") as listener:
        for round_ in range(5):
            venue.change(placed, "SUSPENDED")
            venue.cut()
            venue.change(placed, "ACTIVE")
            await listener.until_changes(3 + 2 * round_)
    assert [token for token, _ in listener.changes] == [f"{number}" for number in range(1, 12)]
    assert len(venue.listening) >= 5
    assert venue.listening[-1]["after"] != "0", "it goes on from its token"
    assert any("connecting again" in line for line in listener.told)


async def test_only_what_is_wanted_is_asked_for(trader: OrderTrader) -> None:
    await trader.place()
    chain_ids, owner = (31_337, 31_338), trader.world.user.address.hex()
    for wanted, query in (
        (EventsWanted(order="0x12", partner="wallet"), {"orderHash": "0x12", "partner": "wallet"}),
        (EventsWanted(order="7e", chain_ids=chain_ids), {"orderId": "7e", "chainId": "31337,31338"}),
        (EventsWanted(owner=owner), {"userAddress": owner}),
    ):
        async with listening(trader, wanted) as listener:
            await listener.until(1)
        assert trader.venue.listening[-1] == query


async def test_a_refusal_is_for_good_and_a_busy_venue_is_asked_again(trader: OrderTrader) -> None:
    trader.venue.pushes = False
    with pytest.raises(VenueError, match=r"GET /v2/delta/orders/events: 404 NotFound") as refused:
        await Listener(trader, EventsWanted()).events.run()
    assert refused.value.status == 404
    async with VenueClient.open("http://127.0.0.1:1") as client:
        gone = OrderEvents(client, EventsWanted(), lambda _: None, tell=trader.told.append, random=Random(1))
        await gone.run(1)
    assert not gone.is_live
    assert trader.told[-1].startswith("events: GET /v2/delta/orders/events: no answer: ")
    assert trader.told[-1].endswith(": connecting again")


async def test_a_token_of_another_database_is_refused_for_good(trader: OrderTrader) -> None:
    listener = Listener(trader, EventsWanted(), after="7")
    with trio.fail_after(PATIENCE_S), pytest.raises(VenueError, match="1008 after: expected a token of this"):
        await listener.events.run()
    assert len(trader.venue.listening) == 1
    assert listener.told == []


async def test_who_follows_an_order_asks_only_when_it_has_changed(
    trader: OrderTrader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And asks by itself where the venue does not push."""
    _, placed = await trader.place()
    assert placed.record is not None
    for pause in ("TRADER_ORDER_LOOK_S", "TRADER_ORDER_LOOK_S_MAX"):
        monkeypatch.setattr(f"cambist.engine.trader.client.following.{pause}", 0.01)
    venue, name = trader.venue, placed.record.id
    before = venue.requests.count(f"GET /v2/delta/orders/{name}")
    follower = OrderFollower(trader.client, name, trader.told.append)

    def looks() -> int:
        return venue.requests.count(f"GET /v2/delta/orders/{name}") - before

    def has_become(status: OrderStatus) -> bool:
        return follower.record is not None and follower.record.status is status

    async with trio.open_nursery() as nursery:
        nursery.start_soon(follower.follow, PATIENCE_S)
        await until(lambda: bool(venue.listening), PATIENCE_S)
        await trio.testing.wait_all_tasks_blocked(0.1)
        at_rest = looks()
        await trio.testing.wait_all_tasks_blocked(0.2)
        assert looks() == at_rest, "nothing has changed"
        venue.change(venue.only, "SUSPENDED")
        await until(lambda: has_become(OrderStatus.SUSPENDED), PATIENCE_S)
        assert looks() == at_rest + 1
        venue.pushes = False
        venue.cut()
        await venue.settle(venue.only)
    assert follower.has_ended
    assert any(line.endswith("connecting again") for line in trader.told)
