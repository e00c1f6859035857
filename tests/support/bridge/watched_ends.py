"""Short words for the watches of deliveries and refunds of a world with two chains."""

from typing import Any

from cambist.codecs.messages.vocabulary import OrderStatus
from cambist.engine.trade.delta.bridging.delivery_watch import DeliveryWatch
from cambist.engine.trade.delta.bridging.refund_watch import RefundWatch
from cambist.engine.trade.delta.orders.transfers import TransferKey, key_of
from support.delta.bridged_world import BridgedWorld, SentDeposit

OVERDUE = 20
"""Blocks after which an unfilled deposit has failed, with room."""


def deliveries(world: BridgedWorld) -> DeliveryWatch:
    return world.desk._deliveries[world.destination.chain_id]


def refunds(world: BridgedWorld) -> RefundWatch:
    return world.desk._refunds[world.origin.chain_id]


async def status(world: BridgedWorld, order: bytes) -> OrderStatus:
    return (await world.row(order)).status


async def key(world: BridgedWorld, order: bytes) -> TransferKey:
    (transfer,) = await world.transfers(order)
    return key_of(transfer.sent)


async def a_sent_one(world: BridgedWorld, **given: Any) -> tuple[bytes, SentDeposit]:
    order = await world.placed(**given)
    return order, world.settles(order)


async def failed_ones(world: BridgedWorld, count: int = 1) -> list[bytes]:
    """Orders whose deposits nobody filled in time."""
    orders = [(await a_sent_one(world))[0] for _ in range(count)]
    world.passes(world.destination, OVERDUE + count)
    await world.looks()
    assert [await status(world, order) for order in orders] == [OrderStatus.REFUNDING] * count
    return orders
