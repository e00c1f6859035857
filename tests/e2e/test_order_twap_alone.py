"""Two slices a minute apart on a chain on which nobody else trades: the chain's clock goes on, alone.

On a chain that mines on demand no block is made between the two slices: the time of its latest block stays
that of the first slice, and the block of the second one is the next. On a chain that makes a block every so
often the blocks between are empty. No story sets the time of a block: both clocks go on by as much.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from cambist.codecs.eip712_orders.delta import delta_domain
from cambist.codecs.messages.agent_messages import AuctionOrder
from cambist.crypto.eip712 import domain_members
from cambist.engine.chain.port import Receipt
from cambist.engine.dev.devnet.anvil import AnvilChain
from cambist.engine.dev.embedded.embedded import EmbeddedChain
from support.chain.world import DELTA_NAME, DELTA_TYPES, DELTA_VERSION, ONE, USDC, World
from support.delta.delta_stories import DeltaStory, Record, a_delta_story
from support.oracles import Oracle
from support.patience import PATIENCE_S

pytestmark = pytest.mark.one_chain  # the venue looks at it all the while

INTERVAL_S = 60
BLOCK_S = 12
Order = Callable[[DeltaStory], Any]


async def a_sale(story: DeltaStory) -> Any:
    return await story.market.a_twap(num_slices=2, interval=INTERVAL_S)


async def a_purchase(story: DeltaStory) -> Any:
    return await story.market.a_twap_purchase(num_slices=2, interval=INTERVAL_S)


def at_price(order: AuctionOrder) -> int:
    """USDC that a sale of WETH brings."""
    return 2_500 * USDC * int(order.src_amount) // ONE


async def clocks_go_on(story: DeltaStory, seconds: int) -> None:
    """Of venue and chain; no block is made, and none has its time set."""
    story.clock.passes(seconds)
    chain = story.world.chain
    if isinstance(chain, AnvilChain):
        await chain._do("evm_increaseTime", seconds)
    else:
        assert isinstance(chain, EmbeddedChain)
        await chain.pass_time(seconds)
    story.web.app.delta.scheduler.at(0, "time has passed", lambda: None)


async def sent_by_others(story: DeltaStory, eth_account: Oracle, order: Any) -> Record:
    """The record of an order that eth-account signed and httpx posted."""
    world, kind = story.world, DELTA_TYPES[type(order)]
    domain = delta_domain(DELTA_NAME, DELTA_VERSION, world.chain.chain_id, world.at.delta)
    of_domain = [{"name": member, "type": type_name} for member, type_name in domain_members(domain)]
    types = {**kind.wire_types, "EIP712Domain": of_domain}
    wire = kind.to_wire(order)
    document = {"types": types, "primaryType": kind.name, "domain": domain, "message": wire}
    key = f"0x{world.user.secret32().hex()}"
    signed = eth_account.ask(ask="typed_data", document=document, key=key)
    body = {"chainId": world.chain.chain_id, "order": wire, "signature": f"0x{signed['signature']}"}
    url = f"http://127.0.0.1:{story.web.port}/v2/delta/orders"
    answer = await trio.to_thread.run_sync(lambda: httpx.post(url, json=body, timeout=PATIENCE_S))
    assert answer.status_code == 200, answer.text
    record: Record = answer.json()
    return record


async def height(world: World) -> int:
    header = await world.chain.block()
    assert header is not None
    return header.number


async def placed(story: DeltaStory, record: Record) -> list[tuple[Receipt, int]]:
    """The receipt of each slice, and the time of its block."""
    receipts = [await story.receipt(record, at) for at in range(len(record["transactions"]))]
    headers = [await story.world.chain.block(receipt.block_hash) for receipt in receipts]
    return [(receipt, header.time_s) for receipt, header in zip(receipts, headers, strict=True) if header]


@pytest.mark.oracle
@pytest.mark.parametrize("order", [a_sale, a_purchase], ids=["a sale", "a purchase"])
async def test_a_chain_that_mines_on_demand_makes_a_block_for_each_slice_alone(
    world: World, tmp_path: Path, eth_account: Oracle, order: Order
) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        ann = story.agents["ann"]
        ann.gives, ann.takes = at_price, lambda asked: int(asked.src_amount) * 9 // 10
        record = await story.with_fills(await sent_by_others(story, eth_account, await order(story)), 1)
        first = await height(world)
        rounds = len(ann.requests)
        await clocks_go_on(story, INTERVAL_S - 20)
        await story.says(record, "sliceNotDue")
        await clocks_go_on(story, 21)
        record = await story.becomes(record, "COMPLETED")
        (one, one_s), (two, two_s) = await placed(story, record)
        assert (one.block_number, two.block_number) == (first, first + 1)
        assert INTERVAL_S <= two_s - one_s < 2 * INTERVAL_S
        assert len(ann.requests) == rounds + 1, "the first round that the slice is in settles it"


@asynccontextmanager
async def making_blocks(story: DeltaStory) -> AsyncIterator[None]:
    """The clocks go on by BLOCK_S, and a block of what waits then is made, over and over."""

    async def make() -> None:
        while True:
            await clocks_go_on(story, BLOCK_S)
            await story.world.chain.mine()
            await trio.sleep(0.2)  # as a chain makes its blocks, sixty times faster

    await story.world.chain.set_automine(on=False)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(make)
        yield
        nursery.cancel_scope.cancel()
    await story.world.chain.set_automine(on=True)


@pytest.mark.parametrize("order", [a_sale, a_purchase], ids=["a sale", "a purchase"])
async def test_a_chain_with_a_block_interval_settles_both_slices(
    world: World, tmp_path: Path, order: Order
) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        ann = story.agents["ann"]
        ann.gives, ann.takes = at_price, lambda asked: int(asked.src_amount) * 9 // 10
        async with making_blocks(story):
            record = await story.becomes(await story.submitted(await order(story)), "COMPLETED")
        (_, one_s), (_, two_s) = await placed(story, record)
        assert two_s - one_s >= INTERVAL_S


async def test_the_clock_of_the_chain_alone_decides_whatever_the_venues_says(
    world: World, tmp_path: Path
) -> None:
    """The chain is an hour ahead when the first slice is settled; then its clock alone goes on."""
    async with a_delta_story(world, tmp_path, "ann") as story:
        ann = story.agents["ann"]
        ann.gives = at_price
        await world.pass_time(1_800)
        record = await story.with_fills(await story.submitted(await a_sale(story)), 1)
        rounds = len(ann.requests)
        story.clock.passes(INTERVAL_S + 1)
        story.web.app.delta.scheduler.at(0, "time has passed", lambda: None)
        await story.says(record, "sliceNotDue")
        assert len(ann.requests) == rounds, "no round is held in vain"
        await clocks_go_on(story, INTERVAL_S + 1)
        record = await story.becomes(record, "COMPLETED")
        assert len(ann.requests) == rounds + 1


@pytest.mark.long
@pytest.mark.parametrize("has_interval", [False, True], ids=["on demand", "a block every 2 s"])
async def test_a_minute_of_real_time(world: World, tmp_path: Path, *, has_interval: bool) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story, trio.open_nursery() as nursery:
        story.agents["ann"].gives = at_price

        async def make() -> None:
            while True:
                await trio.sleep(2)
                await world.chain.mine()

        if has_interval:
            await world.chain.set_automine(on=False)
            nursery.start_soon(make)
        record = await story.submitted(await a_sale(story))
        record = await story.becomes(record, "COMPLETED", seconds=INTERVAL_S + PATIENCE_S)
        (_, one_s), (_, two_s) = await placed(story, record)
        assert INTERVAL_S <= two_s - one_s < INTERVAL_S + 10
        nursery.cancel_scope.cancel()
    await world.chain.set_automine(on=True)
