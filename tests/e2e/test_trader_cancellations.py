"""A trader cancels Delta orders: exactly those, and what won in the meantime is told."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec.structs import replace

from cambist.codecs.messages.vocabulary import OrderStatus
from cambist.config.errors import UnsafeTransaction, VenueError
from cambist.crypto.addresses import to_checksum
from cambist.engine.trader.client.order.order_cancelling import cancel, follow_all
from cambist.engine.trader.client.order.order_following import OrderFollower
from cambist.engine.trader.client.trusted_contract import DELTA, signing_contract
from support.chain.world import USDC, World
from support.client.order_trader import PAUSES, OrderTrader, an_order_trader
from support.client.scripted_orders import OrderLies
from support.patience import PATIENCE_S

THIEF = b"\x66" * 20
THIEF_TEXT = f"0x{THIEF.hex()}"
LIMIT = 2_500 * USDC * 9_950 // 10_000


@pytest.fixture
async def trader(world: World, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[OrderTrader]:
    for pause in PAUSES:
        monkeypatch.setattr(pause, 0.01)
    async with an_order_trader(world) as trading:
        yield trading


async def two_orders(trader: OrderTrader) -> list[str]:
    """Two that nobody settles; a look at one that is to be cancelled cancels it."""

    async def cancels(placed: Any) -> None:
        if placed.status == "CANCELLING":
            placed.status = "CANCELLED"

    trader.venue.at_look = cancels
    records = [(await trader.place())[1].record for _ in range(2)]
    return [record.id for record in records if record is not None]


async def cancelled(trader: OrderTrader, names: list[str]) -> list[OrderFollower]:
    world = trader.world
    contract = await signing_contract(world.chain, trader.client, DELTA, None)
    followers = await cancel(trader.account(), trader.client, contract, names)
    await follow_all(followers, PATIENCE_S)
    return followers


async def test_orders_are_cancelled_by_one_signature(trader: OrderTrader) -> None:
    ids = await two_orders(trader)
    followers = await cancelled(trader, [*ids, ids[0]])
    assert [follower.record.status for follower in followers if follower.record] == [
        OrderStatus.CANCELLED
    ] * 2
    assert [body["orderIds"] for body in trader.venue.cancellations] == [ids]


async def test_a_fill_in_flight_that_wins_is_told(trader: OrderTrader) -> None:
    trader.venue.at_look = None
    _, placed = await trader.place()
    assert placed.record is not None
    world = trader.world
    contract = await signing_contract(world.chain, trader.client, DELTA, None)
    (follower,) = await cancel(trader.account(), trader.client, contract, [f"0x{placed.order_hash.hex()}"])
    trader.venue.at_look = trader.venue.settle
    await follow_all([follower], PATIENCE_S)
    assert follower.record is not None
    assert follower.record.status is OrderStatus.COMPLETED


async def test_nobody_elses_order_is_cancelled(trader: OrderTrader) -> None:
    ids = await two_orders(trader)
    world = trader.world
    contract = await signing_contract(world.chain, trader.client, DELTA, None)
    with pytest.raises(VenueError, match=f"order {ids[0]} is {to_checksum(world.user.address)}'s"):
        await cancel(replace(trader.account(), key=world.stranger), trader.client, contract, ids[:1])
    assert trader.venue.cancellations == []


async def test_what_has_ended_is_not_cancelled(trader: OrderTrader) -> None:
    record, _ = await trader.settled()
    with pytest.raises(VenueError, match="is COMPLETED already: nothing was cancelled"):
        await cancelled(trader, [record.id])


async def test_time_that_is_up_is_up_for_all_but_one_look_each(trader: OrderTrader) -> None:
    ids = await two_orders(trader)
    trader.venue.at_look = None
    followers = [OrderFollower(trader.client, one, trader.told.append) for one in ids]
    await follow_all(followers, 1)
    looks = [request for request in trader.venue.requests if request == f"GET /v2/delta/orders/{ids[1]}"]
    assert len(looks) == 1
    assert [follower.record.status for follower in followers if follower.record] == [OrderStatus.PENDING] * 2


def unsigned_cancellation(**changed: Any) -> OrderLies:
    def changes(told: dict[str, Any]) -> dict[str, Any]:
        return told | {"toSign": told["toSign"] | changed}

    return OrderLies(cancellation=changes)


CANCEL_LIES: list[tuple[str, OrderLies, str]] = [
    ("another order", unsigned_cancellation(value={"orderIds": ["another"]}), "toSign.value.orderIds"),
    ("no order", unsigned_cancellation(value={"orderIds": []}), "toSign.value.orderIds"),
    (
        "another domain",
        unsigned_cancellation(
            domain={"name": "X", "version": "1", "chainId": 31337, "verifyingContract": THIEF_TEXT}
        ),
        "toSign.domain.verifyingContract",
    ),
    (
        "another type",
        unsigned_cancellation(types={"Permit": [{"name": "owner", "type": "address"}]}),
        "names of toSign.types",
    ),
    ("another hash", OrderLies(cancellation=lambda told: told | {"hash": "0x" + "11" * 32}), "hash"),
]


@pytest.mark.parametrize(
    ("lies", "member"), [row[1:] for row in CANCEL_LIES], ids=[row[0] for row in CANCEL_LIES]
)
async def test_a_cancellation_of_something_else_is_not_signed(
    trader: OrderTrader, lies: OrderLies, member: str
) -> None:
    ids = await two_orders(trader)
    trader.venue.order_lies = lies
    with pytest.raises(UnsafeTransaction) as refused:
        await cancelled(trader, ids)
    assert refused.value.member == member
    assert trader.venue.cancellations == []


async def test_a_venue_that_cancels_only_some_is_told(trader: OrderTrader) -> None:
    ids = await two_orders(trader)
    trader.venue.order_lies = OrderLies(cancelled=lambda told: told | {"cancelled": told["cancelled"][:1]})
    with pytest.raises(VenueError, match=f"the venue took {ids[0]}$"):
        await cancelled(trader, ids)
