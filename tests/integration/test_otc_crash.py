"""A venue that dies between any two things that it does, while OTC orders are posted, filled and cancelled.

The whole venue with the real contracts and the real SQL in one process, on a clock of the test's.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from cambist.codecs.contracts import calldata
from cambist.codecs.eip712_orders.nonce_and_meta import pack_otc
from cambist.codecs.eip712_orders.rfq import RFQ_ORDER, RfqOrder
from cambist.crypto.hexadecimal import to_hex
from support.chain.world import ONE, USDC
from support.contracts.rfq_stories import funded
from support.delta.waiting_chain import OnChain, a_market_of_owners
from support.delta.waiting_venue import CONFIRMATIONS, SimulatedClock, WaitingVenue, a_waiting_venue
from support.venue.venue_role import CHAIN_ID

pytestmark = pytest.mark.seldom

START_S = 1_700_000_000
WHOLE, PART = 2_000 * USDC, 500 * USDC


class Story:
    """A venue over several restarts, and its chain."""

    def __init__(self, venue: WaitingVenue, chain: OnChain) -> None:
        self.venue = venue
        self.world = venue.world
        self.chain = chain
        self.count = 0

    def an_order(self) -> RfqOrder:
        """The maker sells 2,000 USDC for one WETH to the taker."""
        self.count += 1
        world = self.world
        return world.an_rfq_order(
            nonce_and_meta=pack_otc(world.maker.address, self.count),
            taker=world.taker.address,
            maker_amount=WHOLE,
            taker_amount=ONE,
        )

    async def post(self, order: RfqOrder) -> dict[str, Any]:
        body = RFQ_ORDER.to_wire(order) | {"signature": to_hex(self.world.signed(order))}
        status, told = await self.venue.ask("POST", f"/ft/p2p/{CHAIN_ID}", body)
        assert (status, told["orderHash"]) == (200, to_hex(self.world.rfq_hash(order)))
        stored: dict[str, Any] = told
        return stored

    async def fill(self, order: RfqOrder, taker_amount: int) -> None:
        data = calldata.partial_fill_order(order, self.world.signed(order), taker_amount)
        await self.chain.send(self.world.taker, self.world.at.rfq, data)

    async def cancel(self, order: RfqOrder) -> None:
        await self.chain.send(
            self.world.maker, self.world.at.rfq, calldata.cancel_order(self.world.rfq_hash(order))
        )

    async def keeps(self, usdc: int) -> None:
        """The maker has so much from the next block on."""
        has = await self.world.balance(self.world.usdc, self.world.maker)
        if has > usdc:
            data = calldata.transfer(self.world.stranger.address, has - usdc)
            await self.chain.send(self.world.maker, self.world.usdc, data)
        else:
            await self.chain.send(
                self.world.stranger, self.world.usdc, calldata.transfer(self.world.maker.address, usdc - has)
            )

    async def until(self, order: RfqOrder, **expected: Any) -> dict[str, Any]:
        """Stored order, once it has the expected members."""
        found: dict[str, Any] = {}
        with trio.move_on_after(120):
            while not found or any(found[name] != value for name, value in expected.items()):
                await trio.sleep(0.2)
                status, found = await self.venue.ask("GET", f"/ft/order/{to_hex(self.world.rfq_hash(order))}")
                assert status == 200
        assert {name: found[name] for name in expected} == expected
        return found

    def dies_in(self, things: int) -> None:
        self.venue.life.dies_in = things


@asynccontextmanager
async def a_story(folder: Path) -> AsyncIterator[Story]:
    clock = SimulatedClock(START_S)
    chain = await a_market_of_owners(clock)
    world = chain.world
    await chain.chain.set_automine(on=True)
    await funded(world)
    await world.mint(world.weth, world.taker, 400 * ONE)
    await world.mint(world.usdc, world.stranger, 10**6 * USDC)
    await chain.chain.set_automine(on=False)
    async with a_waiting_venue(chain.market, clock, folder) as venue, trio.open_nursery() as nursery:
        nursery.start_soon(chain.make_blocks)
        yield Story(venue, chain)
        nursery.cancel_scope.cancel()


async def test_an_order_is_posted_filled_in_parts_and_done(tmp_path: Path, autojump_clock: object) -> None:
    async with a_story(tmp_path) as story:
        await story.keeps(10_000 * USDC)
        order = story.an_order()
        assert (await story.post(order))["state"] == "PENDING"
        await story.fill(order, ONE // 4)
        part = await story.until(order, fillableBalance=str(WHOLE - PART))
        assert (part["state"], part["swappableBalance"]) == ("PENDING", str(WHOLE - PART))
        assert part["transactionHash"] is not None
        await story.fill(order, ONE - ONE // 4)
        whole = await story.until(order, state="FULFILLED")
        assert (whole["fillableBalance"], whole["swappableBalance"]) == ("0", "0")
        assert whole["transactionHash"] not in (None, part["transactionHash"])


@pytest.mark.parametrize("act", ["fill", "cancel", "funds"])
async def test_whenever_it_dies_it_knows_in_the_end(tmp_path: Path, autojump_clock: object, act: str) -> None:
    async with a_story(tmp_path) as story:
        for things in range(1, 60, 2):
            await story.keeps(10_000 * USDC)
            order = story.an_order()
            if things % 4 == 1:
                story.dies_in(things)
                assert (await story.post(order))["state"] in ("PENDING", "SUSPENDED")
            else:
                await story.post(order)
                story.dies_in(things)
            match act:
                case "fill":
                    await story.fill(order, ONE // 4)
                    await story.until(order, state="PENDING", swappableBalance=str(WHOLE - PART))
                    await story.fill(order, ONE - ONE // 4)
                    await story.until(order, state="FULFILLED", fillableBalance="0")
                case "cancel":
                    await story.cancel(order)
                    await story.until(order, state="CANCELLED", fillableBalance=str(WHOLE))
                case _:
                    await story.keeps(WHOLE - 1)
                    await story.until(order, state="SUSPENDED", makerBalance=str(WHOLE - 1))
                    await story.keeps(WHOLE)
                    await story.until(order, state="PENDING", swappableBalance=str(WHOLE))
                    await story.cancel(order)
                    await story.until(order, state="CANCELLED")
        assert story.venue.deaths >= 20


async def test_a_fill_that_is_taken_back_and_mined_again_counts_once(
    tmp_path: Path, autojump_clock: object
) -> None:
    async with a_story(tmp_path) as story:
        await story.keeps(10_000 * USDC)
        order = story.an_order()
        await story.post(order)
        await story.until(order, state="PENDING", swappableBalance=str(WHOLE))
        await trio.sleep(CONFIRMATIONS)  # blocks that the venue has read, so that it knows where they part
        story.chain.has_blocks = False
        await story.fill(order, ONE)
        await story.chain.chain.mine()
        done = await story.until(order, state="FULFILLED")
        await story.chain.reorganise(CONFIRMATIONS - 1)
        open_again = await story.until(order, state="PENDING", swappableBalance=str(WHOLE))
        assert (open_again["transactionHash"], done["fillableBalance"]) == (None, "0")
        await story.fill(order, ONE // 4)
        await story.chain.chain.mine()
        await story.until(order, fillableBalance=str(WHOLE - PART))
