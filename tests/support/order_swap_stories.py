"""Signed orders that users of a venue have filled through the Router, over HTTP to a mined transaction.

async with an_order_table(world, tmp_path) as table:
    moved = await table.fill(table.offer(world.an_rfq_order()), srcAmount=str(ONE))

The world's maker and its taker, here called `other`, sell what is ordered: each has a thousand WETH and a
million of the other tokens, and has allowed them to the RFQ contract.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from cambist.codecs.eip712_orders.rfq import RfqOrder
from cambist.crypto.addresses import to_checksum
from cambist.crypto.secp256k1 import SigningKey
from support.swap_orders import sent
from support.venue_role import CHAIN_ID
from support.venue_stories import Moved, Story, a_venue_story
from support.world import ONE, USDC, World

SLIPPAGE_BPS = 100


class OrderTable:
    """See the module."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self.world = story.world
        story.people |= {"maker": self.world.maker.address, "other": self.world.taker.address}

    def offer(self, order: RfqOrder, key: SigningKey | None = None, **more: Any) -> dict[str, Any]:
        """An item of `orders`: the maker's, unless it is of `other`."""
        signers = {self.world.maker.address: self.world.maker, self.world.taker.address: self.world.taker}
        return sent(order, key or signers[order.maker], self.world.at.rfq, **more)

    async def ask(
        self, *items: dict[str, Any], query: Mapping[str, Any] | None = None, **changed: Any
    ) -> tuple[int, Any]:
        """POST /transactions: WETH for USDC, a per cent of slippage allowed; None leaves a member out."""
        text = self.story.web.devnet.text
        body = {
            "orders": list(items),
            "srcToken": text("WETH"),
            "destToken": text("USDC"),
            "userAddress": to_checksum(self.world.user.address),
            "slippage": SLIPPAGE_BPS,
            **changed,
        }
        told = {name: value for name, value in body.items() if value is not None}
        return await self.story.web.post(f"/transactions/{CHAIN_ID}", told, **(query or {}))

    async def build(self, *items: dict[str, Any], **changed: Any) -> Any:
        """An envelope."""
        status, told = await self.ask(*items, **changed)
        assert status == 200, told
        return told

    async def refused(self, *items: dict[str, Any], **changed: Any) -> tuple[int, str, str]:
        """Status, errorType and details."""
        status, told = await self.ask(*items, **changed)
        assert status >= 400, told
        return status, told["errorType"], told["details"]

    async def send(self, envelope: Any) -> Moved:
        """What an envelope has moved, gas apart; nothing is left on the way."""
        before = await self.story.balances()
        receipt = await self.story.submit(envelope)
        assert receipt.succeeded
        after = await self.story.balances()
        after["user", "ETH"] += receipt.gas_used * receipt.gas_price_wei
        moved = {key: after[key] - before[key] for key in before if after[key] != before[key]}
        assert not {key for key in moved if key[0] in ("router", "executor")}
        return moved

    async def fill(self, *items: dict[str, Any], **changed: Any) -> Moved:
        """Build, sign and send."""
        return await self.send(await self.build(*items, **changed))


@asynccontextmanager
async def an_order_table(world: World, folder: Path) -> AsyncIterator[OrderTable]:
    """A venue without makers of its own, and everybody's funds."""
    for key in (world.maker, world.taker):
        await world.chain.set_balance(key.address, 2_000 * ONE)
        for token, amount in (
            (world.weth, 1_000 * ONE),
            (world.usdc, 10**6 * USDC),
            (world.dai, 10**6 * ONE),
        ):
            await world.give(key, token, amount, world.at.rfq)
    async with a_venue_story(world, folder, {}) as story:
        yield OrderTable(story)
