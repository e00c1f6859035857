"""The arithmetic of signed orders is the contract's, to the unit, on random orders: amounts of every size."""

import random

import pytest

from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.contract_events import OrderFilled
from cambist.codecs.eip712_orders.rfq import RfqOrder
from cambist.config.errors import Reverted
from cambist.engine.chain.port import Receipt
from cambist.engine.trade.routing.firm.legs import bought, sold
from support.chain.world import World
from support.contracts.rfq_stories import UNFILLED, rfq_events

STORIES = 30
_TOP = 1 << 250


async def stocked(world: World) -> None:
    await world.give(world.maker, world.usdc, _TOP, world.at.rfq)
    await world.give(world.taker, world.dai, _TOP, world.at.rfq)


def random_orders(world: World, source: random.Random) -> list[RfqOrder]:
    """From one to four orders, from one unit to the largest amounts that the contract can multiply."""
    bits = source.choice((3, 8, 40, 90, 127))
    return [
        world.an_rfq_order(
            taker_asset=world.dai,
            maker_amount=source.randint(1, 1 << bits),
            taker_amount=source.randint(1, 1 << source.choice((3, bits))),
        )
        for _ in range(source.randint(1, 4))
    ]


def filled(world: World, receipt: Receipt) -> tuple[int, int]:
    """Taker and maker amounts of the receipt's fills."""
    events = [event for event in rfq_events(world, receipt) if isinstance(event, OrderFilled)]
    return sum(event.taker_amount for event in events), sum(event.maker_amount for event in events)


@pytest.mark.parametrize("seed", range(STORIES))
async def test_a_batch_sells_what_the_arithmetic_says(world: World, seed: int) -> None:
    await stocked(world)
    source = random.Random(seed)
    orders = random_orders(world, source)
    amount = source.randint(1, sum(order.taker_amount for order in orders) + 1)
    expected = sold(orders, amount)
    infos = [world.info(order) for order in orders]
    if expected.src < amount:
        with pytest.raises(Reverted, match=UNFILLED):
            await send(world, calldata.try_batch_fill_taker_amount(infos, amount, world.taker.address))
    if expected.src:
        data = calldata.try_batch_fill_taker_amount(infos, expected.src, world.taker.address)
        assert filled(world, await send(world, data)) == (expected.src, expected.dest)
        assert sold(orders, expected.src) == expected


@pytest.mark.parametrize("seed", range(STORIES))
async def test_a_batch_buys_what_the_arithmetic_says(world: World, seed: int) -> None:
    await stocked(world)
    source = random.Random(1_000 + seed)
    orders = random_orders(world, source)
    amount = source.randint(1, sum(order.maker_amount for order in orders) + 1)
    expected = bought(orders, amount)
    infos = [world.info(order) for order in orders]
    if expected.dest < amount:
        with pytest.raises(Reverted, match=UNFILLED):
            await send(world, calldata.try_batch_fill_maker_amount(infos, amount, world.taker.address))
    if expected.dest:
        data = calldata.try_batch_fill_maker_amount(infos, expected.dest, world.taker.address)
        assert filled(world, await send(world, data)) == (expected.src, expected.dest)


async def send(world: World, data: bytes) -> Receipt:
    return await world.send(world.taker, world.at.rfq, data)
