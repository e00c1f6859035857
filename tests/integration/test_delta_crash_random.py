"""kill -9 at random moments while several owners submit and cancel, and of the store process alone: whatever
was acknowledged comes to its end, no order is settled twice, and every unit is accounted for.

CRASH_SEED repeats a run; without it each run has a seed of its own, which is printed."""

import os
import secrets
import signal
from pathlib import Path
from random import Random

import pytest
import trio
from msgspec import Struct

from cambist.codecs.eip712_orders.delta import DeltaOrder
from cambist.codecs.messages.agent_messages import AuctionOrder
from cambist.crypto.secp256k1 import SigningKey
from support.chain.world import ONE, USDC, person
from support.delta.delta_process import CrashStory, Record, a_crash_story
from support.patience import until
from support.store.store_work import store_processes

pytestmark = pytest.mark.seldom

OWNERS, ORDERS_EACH, KILLS = 5, 4, 5
SALES = 8
STOCK = 10 * ONE


def paid(order: AuctionOrder) -> int:
    """The agent's amount: 2,500 USDC for one WETH, and units that identify the order."""
    return due(int(order.src_amount), order.order_hash)


def due(sold: int, order_hash: str) -> int:
    """Proceeds of a sale, raw USDC."""
    return sold * 2_500 * USDC // ONE + int(order_hash.removeprefix("0x")[:4], 16)


class Life(Struct):
    """Owner's knowledge of an order.

    Attributes:
        record: as it was acknowledged.
        is_cancel_wanted: a cancellation was sent, and answered in the end.
    """

    order: DeltaOrder
    key: SigningKey
    record: Record
    is_cancel_wanted: bool = False


class Traders:
    """Owners who submit and cancel, and try again until they are answered."""

    def __init__(self, story: CrashStory, random: Random) -> None:
        self.story = story
        self.random = random
        self.owners = [person(70 + number) for number in range(OWNERS)]
        self.lives: list[Life] = []

    async def equip(self) -> None:
        """Give each owner WETH with an allowance to the Delta contract."""
        world = self.story.world
        for owner in self.owners:
            await world.chain.set_balance(owner.address, 100 * ONE)
            await world.give(owner, world.weth, STOCK, world.at.delta)

    async def trade(self, owner: SigningKey) -> None:
        """Place one owner's orders one after the other, and cancel some after a while."""
        story, random = self.story, self.random
        for _ in range(ORDERS_EACH):
            await story.node.answers(random.randint(1, 15))
            sold = random.randint(ONE // 2, 2 * ONE)
            order = await story.world.a_delta_order(
                owner=owner.address,
                beneficiary=owner.address,
                src_amount=sold,
                dest_amount=sold * 2_400 * USDC // ONE,
                expected_amount=sold * 2_500 * USDC // ONE,
                nonce=random.getrandbits(64),
            )
            status, told = await story.answered(
                "POST", "/v2/delta/orders", story.world.delta_body(order, owner)
            )
            assert status == 200, told
            life = Life(order, owner, told)
            self.lives.append(life)
            if random.random() < 0.4:
                await story.node.answers(random.randint(1, 8))
                life.is_cancel_wanted = True
                body = story.world.cancel_body([life.record["id"]], owner)
                status, told = await story.answered("POST", "/v2/delta/orders/cancel", body)
                assert status == 200 or told["errorType"] == "OrderAlreadySettled", told

    async def kill(self) -> None:
        """The venue, again and again."""
        for _ in range(KILLS):
            await self.story.node.answers(self.random.randint(20, 200))
            await self.story.killed_and_started()

    async def mine(self) -> None:
        """A block now and then, whether the venue lives or not, until cancelled."""
        await self.story.chain.set_automine(on=False)
        while True:
            with trio.move_on_after(0.2):
                await self.story.node.answers(self.random.randint(1, 30))
            await self.story.chain.mine()

    async def are_accounted_for(self) -> None:
        """Every order has its right end, and every unit is where it should be."""
        story, world = self.story, self.story.world
        settled = await story.settlements()
        sold = dict.fromkeys((owner.address for owner in self.owners), 0)
        bought = dict.fromkeys(sold, 0)
        sales: list[int] = []
        for life in self.lives:
            end = (await story.record(life.record))["status"]
            found = settled.pop(life.record["orderHash"], [])
            if end == "CANCELLED":
                assert life.is_cancel_wanted, life
                assert found == [], "it was cancelled"
                continue
            assert end == "COMPLETED", (end, life)
            brought = due(life.order.src_amount, life.record["orderHash"])
            assert [(one.spent, one.received) for one in found] == [(life.order.src_amount, brought)]
            sales.append(brought)
            sold[life.key.address] += life.order.src_amount
            bought[life.key.address] += brought
        assert settled == {}, "of orders that nobody submitted"
        for owner in self.owners:
            assert await world.balance(world.weth, owner) == STOCK - sold[owner.address]
            assert await world.balance(world.usdc, owner) == bought[owner.address]
        assert await world.balance(world.weth, story.market.agent) == sum(sold.values())
        assert await story.relayed() == len(sales), "nothing was handed in in vain"


async def test_whatever_was_acknowledged_comes_to_its_end(tmp_path: Path) -> None:
    seed = int(os.environ.get("CRASH_SEED") or secrets.randbits(32))
    print(f"CRASH_SEED={seed}")  # noqa: T201  whoever sees it fail repeats it
    async with a_crash_story(tmp_path, "ann") as story:
        story.agents["ann"].gives = paid
        traders = Traders(story, Random(seed))
        await traders.equip()
        async with trio.open_nursery() as blocks:
            blocks.start_soon(traders.mine)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(traders.kill)
                for owner in traders.owners:
                    nursery.start_soon(traders.trade, owner)
            blocks.cancel_scope.cancel()
        await story.mine()
        assert len(traders.lives) == OWNERS * ORDERS_EACH
        for life in traders.lives:
            await story.becomes(life.record, "COMPLETED", "CANCELLED")
        await story.confirm()
        await traders.are_accounted_for()


async def test_the_venue_goes_on_while_its_store_is_killed(tmp_path: Path) -> None:
    async with a_crash_story(tmp_path, "ann") as story:
        story.agents["ann"].gives = paid
        process = story.process.pid
        records: list[Record] = []
        refused = 0
        while len(records) < SALES or not refused:
            if len(records) % 2 == 0:
                (store,) = await the_store_of(process)
                os.kill(store, signal.SIGKILL)
            body = story.world.delta_body(
                await story.world.a_delta_order(src_amount=ONE // 4, dest_amount=500 * USDC)
            )
            status, told = await story.ask("POST", "/v2/delta/orders", body)
            if status == 503:
                refused += 1
                assert told["errorType"] == "ServiceUnavailable"
                status, told = await story.answered("POST", "/v2/delta/orders", body)
            assert status == 200, told
            records.append(told)
        for record in records:
            await story.becomes(record, "COMPLETED")
            assert await story.times_settled(record) == 1
        assert await story.relayed() == len(records)
        brought = sum(due(ONE // 4, record["orderHash"]) for record in records)
        assert await story.world.balance(story.world.usdc, story.world.user) == brought
        assert (story.process.pid, story.process.returncode, story.starts) == (process, None, 1)


async def the_store_of(process: int) -> list[int]:
    """The store process of a venue, once it has one."""
    await until(lambda: store_processes(process))
    return store_processes(process)
