"""A trader's TWAPs and partial orders: the trader signs the agreed terms, and the chain proves each part."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from cambist.codecs.eip712_orders.delta import TwapBuyOrder, TwapOrder
from cambist.codecs.messages.vocabulary import OnChainOrderType, OrderStatus, OrderType, Side
from cambist.config.errors import UnsafeTransaction, VenueError
from cambist.engine.trader.client.order.order_following import SettledOnChain
from cambist.engine.trader.client.order_terms import OrderWish
from cambist.engine.trader.client.schedule import Schedule
from support.chain.world import HOUR_S, NATIVE, ONE, USDC, World
from support.client.order_trader import ETH, PAUSES, OrderTrader, an_order_trader
from support.client.scripted_orders import OrderLies

SCHEDULE = Schedule(3, 300)
THIEF_TEXT = f"0x{'66' * 20}"


@pytest.fixture
async def trader(world: World, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[OrderTrader]:
    for pause in PAUSES:
        monkeypatch.setattr(pause, 0.01)
    async with an_order_trader(world) as trading:
        trading.venue.at_look = trading.venue.settle_on_schedule
        yield trading


def a_twap(trader: OrderTrader, **changed: Any) -> OrderWish:
    """Wish to sell one WETH in three slices, five minutes apart."""
    return trader.wish(**({"schedule": SCHEDULE} | changed))


async def test_a_sale_in_slices_is_proven_to_the_remainder(trader: OrderTrader) -> None:
    world = trader.world
    record, settled = await trader.settled(a_twap(trader, limit_amount=2_400 * USDC))
    assert (record.status, record.on_chain_order_type) == (
        OrderStatus.COMPLETED,
        OnChainOrderType.TWAP_ORDER,
    )
    assert (settled.spent, settled.is_closed, settled.fault, settled.remarks) == (ONE, True, "", ())
    assert settled.received >= 2_400 * USDC
    order = trader.venue.only.order
    assert isinstance(order, TwapOrder)
    assert (order.dest_amount_per_slice, order.total_src_amount) == (800 * USDC, ONE)
    assert (order.num_slices, order.interval) == (3, 300)
    assert [line.split(", ")[-1][:4] for line in trader.told if "settled by" in line] == ["33.3"] * 3
    assert await trader.venue.allowed(world.weth, world.user.address) == 0, "the total, and no more"


async def test_a_purchase_in_slices_spends_its_shares(trader: OrderTrader) -> None:
    wish = a_twap(trader, side=Side.BUY, amount=1_000 * USDC, limit_amount=41 * ONE // 100)
    _, settled = await trader.settled(wish)
    assert (settled.received, settled.fault) == (1_000 * USDC, "")
    assert settled.spent <= 41 * ONE // 100
    order = trader.venue.only.order
    assert isinstance(order, TwapBuyOrder)
    assert (order.total_dest_amount, order.max_src_amount) == (1_000 * USDC, 41 * ONE // 100)


async def test_slices_of_native_tokens_are_deposited_all_at_once(trader: OrderTrader) -> None:
    before = await trader.has(NATIVE)
    offer, _ = await trader.place(a_twap(trader, src=ETH))
    assert await trader.deposited() == ONE
    assert before - await trader.has(NATIVE) > ONE
    assert offer.must_deposit


async def test_a_slice_that_may_spend_nothing_is_refused_before_it_is_built(trader: OrderTrader) -> None:
    wish = a_twap(trader, side=Side.BUY, src=trader.usdc, dest=trader.weth, amount=ONE, limit_amount=2)
    with pytest.raises(VenueError, match="a slice may spend less than one unit"):
        await trader.place(wish)
    assert trader.venue.builds == []


LIES: list[tuple[str, dict[str, Any], str]] = [
    ("fewer slices", {"numSlices": 2}, "toSign.value.numSlices"),
    ("slices in a burst", {"interval": 0}, "toSign.value.interval"),
    ("less for each slice", {"destAmountPerSlice": "1"}, "toSign.value.destAmountPerSlice"),
    ("more sold in all", {"totalSrcAmount": str(3 * ONE)}, "toSign.value.totalSrcAmount"),
    ("a later deadline", {"deadline": 2**37}, "toSign.value.deadline"),
    ("another beneficiary", {"beneficiary": THIEF_TEXT}, "toSign.value.beneficiary"),
    ("a member of another kind", {"maxSrcAmount": "1"}, "toSign.value.maxSrcAmount"),
    ("a permit of its own", {"permit": "0x01"}, "toSign.value.permit"),
    ("surplus for others", {"partnerAndFee": str(1 << 8)}, "share of surplus for others"),
]


@pytest.mark.parametrize(("lie", "member"), [row[1:] for row in LIES], ids=[row[0] for row in LIES])
async def test_a_lie_about_a_schedule_is_refused_by_name(
    trader: OrderTrader, lie: dict[str, Any], member: str
) -> None:
    await trader.world.approve(trader.world.user, trader.world.weth, trader.world.at.delta, ONE)
    trader.venue.order_lies = OrderLies(order=lambda order: order | lie)
    with pytest.raises(UnsafeTransaction) as refused:
        await trader.place(a_twap(trader))
    assert refused.value.member == member
    assert trader.venue.submissions == []


async def test_a_price_of_all_in_place_of_one_slice_is_refused(trader: OrderTrader) -> None:
    def of_all(block: dict[str, Any]) -> dict[str, Any]:
        leg = block["route"]["origin"]
        more = leg | {"input": leg["input"] | {"amount": str(ONE)}}
        return block | {"route": block["route"] | {"origin": more, "destination": more}}

    trader.venue.order_lies = OrderLies(price=of_all)
    with pytest.raises(UnsafeTransaction, match="route, the SELL amount"):
        await trader.place(a_twap(trader))


async def test_parts_add_up_and_an_order_taken_as_another_kind_is_told(trader: OrderTrader) -> None:
    wish = trader.wish(type=OrderType.LIMIT, limit_amount=2_400 * USDC, is_partial=True, life_s=24 * HOUR_S)
    trader.venue.at_look = None
    offer, placed = await trader.place(wish)
    assert placed.record is not None, placed.fault
    assert placed.record.on_chain_order_type is OnChainOrderType.FILLABLE_ORDER
    await trader.venue.settle(trader.venue.only, ONE // 4)
    part = await trader.client.order(placed.record.id)
    so_far = await trader.proven(offer, placed, part)
    assert so_far == SettledOnChain(spent=ONE // 4, received=625 * USDC, is_closed=False)
    await trader.venue.settle(trader.venue.only)
    whole = await trader.client.order(placed.record.id)
    assert await trader.proven(offer, placed, whole) == SettledOnChain(
        spent=ONE, received=2_500 * USDC, is_closed=True
    )
    trader.venue.order_lies = OrderLies(record=lambda record: record | {"onChainOrderType": "Order"})
    _, other = await trader.place(wish)
    assert other.record is None
    assert "onChainOrderType is Order, not FillableOrder" in other.fault
