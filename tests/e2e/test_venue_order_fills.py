"""Signed orders filled through the Router: moved balances, refusals, and changes between build and execution.

Signed orders that users of a venue have filled through the Router, over HTTP to a mined transaction.

async with an_order_table(world, tmp_path) as table:
    moved = await table.fill(table.offer(world.an_rfq_order()), srcAmount=str(ONE))

The world's maker and its taker, here called `other`, sell what is ordered: each has a thousand WETH and a
million of the other tokens, and has allowed them to the RFQ contract.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.router_calldata import swap_exact_in
from cambist.codecs.contracts.router_decoding import decode_swap
from cambist.codecs.eip712_orders.nonce_and_meta import pack_otc
from cambist.codecs.eip712_orders.rfq import RfqOrder
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import parse_hex, to_hex
from cambist.crypto.secp256k1 import SigningKey
from support.chain.world import HOUR_S, ONE, USDC, Moved, World
from support.contracts.permits import eip2612_permit, token_domain
from support.otc.swap_orders import sent
from support.venue.venue_role import CHAIN_ID
from support.venue.venue_stories import PARTNER, RECEIVER, Story, a_venue_story

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
        """Balances that an envelope moves, gas apart; Router and executor keep no tokens."""
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


pytestmark = pytest.mark.one_chain  # the venue looks at it all the while

GROSS = 2_500 * USDC
FEE = GROSS // 10_000
SOLD = {"srcAmount": str(ONE)}
BOUGHT = {"destAmount": str(GROSS)}


@pytest.fixture
async def table(world: World, tmp_path: Path) -> AsyncIterator[OrderTable]:
    async with an_order_table(world, tmp_path) as table:
        yield table


def a_sale(src: int, dest: int, fee: int, **makers: tuple[int, int]) -> dict[tuple[str, str], int]:
    """Balances that a sale of WETH moves; `makers` have (received, given) amounts."""
    moved = {("user", "WETH"): -src, ("user", "USDC"): dest - fee, ("vault", "USDC"): fee}
    for maker, (got, gave) in makers.items():
        moved |= {(maker, "WETH"): got, (maker, "USDC"): -gave}
    return moved


async def test_one_order_whole(table: OrderTable) -> None:
    order = table.world.an_rfq_order()
    moved = await table.fill(table.offer(order), **SOLD, slippage=None)
    assert moved == a_sale(ONE, GROSS, FEE, maker=(ONE, GROSS))
    status, kind, details = await table.refused(table.offer(order), **SOLD)
    assert (status, kind) == (400, "OrderClosed")
    assert details.startswith(
        "Order closed on the chain: orders[0] is filled or cancelled; what is left of all takes 0"
    )


async def test_three_orders_of_which_one_is_filled(table: OrderTable) -> None:
    world = table.world
    orders = [
        world.an_rfq_order(),
        world.an_rfq_order(maker_amount=1_240 * USDC, taker_amount=ONE // 2),
        world.an_rfq_order(maker=world.taker.address, maker_amount=2_400 * USDC),
    ]
    await world.give(world.stranger, world.weth, ONE, world.at.rfq)
    await world.send(world.stranger, world.at.rfq, calldata.fill_order(orders[0], world.signed(orders[0])))
    moved = await table.fill(*map(table.offer, orders), **SOLD, slippage=None)
    gave = 1_240 * USDC + 1_200 * USDC
    expected = {"maker": (ONE // 2, 1_240 * USDC), "other": (ONE // 2, 1_200 * USDC)}
    assert moved == a_sale(ONE, gave, gave // 10_000, **expected)


async def test_a_cancelled_order_among_others(table: OrderTable) -> None:
    world = table.world
    cancelled, other = world.an_rfq_order(), world.an_rfq_order(maker=world.taker.address)
    await world.send(world.maker, world.at.rfq, calldata.cancel_order(world.rfq_hash(cancelled)))
    assert await table.fill(table.offer(cancelled), table.offer(other), **SOLD) == a_sale(
        ONE, GROSS, FEE, other=(ONE, GROSS)
    )
    again = await table.refused(table.offer(cancelled), **SOLD)
    assert again[:2] == (400, "OrderClosed")


async def test_an_order_that_is_cancelled_in_between_is_backed_up(table: OrderTable) -> None:
    world = table.world
    first, second = (
        world.an_rfq_order(),
        world.an_rfq_order(maker=world.taker.address, maker_amount=2_490 * USDC),
    )
    envelope = await table.build(table.offer(first), table.offer(second), **SOLD, slippage=50)
    strict = await table.build(table.offer(first), table.offer(second), **SOLD, slippage=None)
    alone = await table.build(table.offer(first), **SOLD)
    await world.send(world.maker, world.at.rfq, calldata.cancel_order(world.rfq_hash(first)))
    assert await table.story.reverted(strict) == "INSUFFICIENT_OUTPUT"
    assert "Couldn't swap the requested fill amount" in await table.story.reverted(alone)
    gave = 2_490 * USDC
    assert await table.send(envelope) == a_sale(ONE, gave, gave // 10_000, other=(ONE, gave))


async def test_a_part_of_an_order_and_then_the_rest_of_it(table: OrderTable) -> None:
    order = table.world.an_rfq_order(maker_amount=2_500 * USDC + 1, taker_amount=ONE + 1)
    third = ONE // 3
    part = third * order.maker_amount // order.taker_amount
    moved = await table.fill(table.offer(order, takerTokenFillAmount=str(third)), srcAmount=str(third))
    assert moved == a_sale(third, part, part // 10_000, maker=(third, part))
    left = order.maker_amount - part
    rest = left * order.taker_amount // order.maker_amount
    status, kind, details = await table.refused(table.offer(order), srcAmount=str(rest + 1))
    assert (status, kind) == (400, "InvalidInput")
    assert f"orders that take srcAmount, {rest + 1}, together, got {rest}" in details
    moved = await table.fill(table.offer(order), srcAmount=str(rest), slippage=0)
    gave = rest * order.maker_amount // order.taker_amount
    assert moved == a_sale(rest, gave, gave // 10_000, maker=(rest, gave))


async def test_an_exact_amount_is_bought(table: OrderTable) -> None:
    world = table.world
    first = world.an_rfq_order(maker_amount=1_000 * USDC + 3, taker_amount=ONE // 3)
    second = world.an_rfq_order(maker=world.taker.address)
    cost = ONE // 3 + -(-(GROSS - 1_000 * USDC - 3) * ONE // GROSS)
    fee = cost // 10_000
    moved = await table.fill(table.offer(first), table.offer(second), **BOUGHT | {"slippage": None})
    assert moved == {
        ("user", "WETH"): -cost - fee,
        ("user", "USDC"): GROSS,
        ("vault", "WETH"): fee,
        ("maker", "WETH"): ONE // 3,
        ("maker", "USDC"): -1_000 * USDC - 3,
        ("other", "WETH"): cost - ONE // 3,
        ("other", "USDC"): -GROSS + 1_000 * USDC + 3,
    }
    at_most = {**BOUGHT, "side": "BUY", "slippage": None}
    short = await table.refused(table.offer(world.an_rfq_order()), **at_most, srcAmount=str(ONE))
    assert f"srcAmount: expected at least the cost, {ONE + ONE // 10_000}" in short[2]
    moved = await table.fill(table.offer(world.an_rfq_order()), **at_most, srcAmount=str(2 * ONE))
    assert moved["user", "WETH"] == -ONE - ONE // 10_000


async def test_native_tokens_in_and_out(table: OrderTable) -> None:
    world, text = table.world, table.story.web.devnet.text
    envelope = await table.build(table.offer(world.an_rfq_order()), **SOLD, srcToken=text("ETH"))
    assert envelope["value"] == str(ONE)
    assert await table.send(envelope) == {
        ("user", "ETH"): -ONE,
        ("user", "USDC"): GROSS - FEE,
        ("vault", "USDC"): FEE,
        ("maker", "WETH"): ONE,
        ("maker", "USDC"): -GROSS,
    }
    order = world.an_rfq_order(
        maker_asset=world.weth, taker_asset=world.usdc, maker_amount=ONE, taker_amount=GROSS
    )
    moved = await table.fill(
        table.offer(order), srcToken="USDC", destToken=text("ETH"), srcAmount=str(GROSS),
        receiver=to_checksum(RECEIVER),
    )  # fmt: skip
    assert moved == {
        ("user", "USDC"): -GROSS,
        ("receiver", "ETH"): ONE - ONE // 10_000,
        ("vault", "WETH"): ONE // 10_000,
        ("maker", "USDC"): GROSS,
        ("maker", "WETH"): -ONE,
    }


async def test_a_purchase_with_native_tokens_gives_back_what_it_does_not_need(table: OrderTable) -> None:
    text = table.story.web.devnet.text
    cost = ONE + ONE // 10_000
    envelope = await table.build(table.offer(table.world.an_rfq_order()), **BOUGHT, srcToken=text("ETH"))
    assert envelope["value"] == str(cost * 101 // 100)
    moved = await table.send(envelope)
    assert (moved["user", "ETH"], moved["user", "USDC"]) == (-cost, GROSS)


async def test_an_order_that_was_made_out_to_the_executor_for_this_user(table: OrderTable) -> None:
    world = table.world
    order = world.a_firm_quote()
    stranger = to_checksum(world.stranger.address)
    status, kind, details = await table.refused(table.offer(order), **SOLD, userAddress=stranger)
    assert (status, kind) == (400, "InvalidInput")
    assert f"orders[0].nonceAndMeta: expected userAddress {stranger} in its lower 160 bits" in details
    envelope = await table.build(table.offer(order), **SOLD)
    await world.give(world.stranger, world.weth, ONE, world.at.router)
    assert "NotTheUsers" in await table.story.reverted(envelope, world.stranger)
    assert await table.send(envelope) == a_sale(ONE, GROSS, FEE, maker=(ONE, GROSS))


@pytest.mark.parametrize("for_user", [True, False])
async def test_an_order_for_one_taker_is_filled_at_the_contract_itself(
    table: OrderTable, for_user: bool
) -> None:
    world = table.world
    taker = world.user if for_user else world.stranger
    order = world.an_rfq_order(taker=taker.address, nonce_and_meta=pack_otc(world.maker.address, 9))
    status, kind, details = await table.refused(table.offer(order), **SOLD)
    assert (status, kind) == (400, "InvalidInput")
    assert "orders[0].taker: expected zero, or the Router's executor" in details
    assert f"filled by that account itself, at the RFQ contract {to_checksum(world.at.rfq)}" in details
    unchecked = await table.build(table.offer(world.an_rfq_order()), **SOLD, query={"ignoreChecks": "true"})
    swap = decode_swap(parse_hex(unchecked["data"], "data"))[1]
    hop = structs.replace(swap.hops[0], orders=(world.info(order),))
    forced = swap_exact_in(structs.replace(swap, hops=(hop,)))
    assert "Couldn't swap the requested fill amount" in await table.story.reverted(
        unchecked | {"data": to_hex(forced)}
    )  # the refusal is right: it could not be filled
    await world.give(taker, world.weth, ONE, world.at.rfq)
    await world.send(taker, world.at.rfq, calldata.fill_order(order, world.signed(order)))


async def test_more_than_the_orders_take_is_not_built(table: OrderTable) -> None:
    items = [table.offer(table.world.an_rfq_order()) for _ in range(2)]
    status, kind, details = await table.refused(*items, srcAmount=str(2 * ONE + 1))
    assert (status, kind) == (400, "InvalidInput")
    assert f"orders: expected orders that take srcAmount, {2 * ONE + 1}, together, got {2 * ONE}" in details
    buying = await table.refused(*items, destAmount=str(2 * GROSS + 1))
    assert f"orders that give destAmount, {2 * GROSS + 1}, together, got {2 * GROSS}" in buying[2]
    assert (await table.fill(*items, srcAmount=str(2 * ONE)))["maker", "WETH"] == 2 * ONE


async def test_a_partner_is_paid_its_fee(table: OrderTable) -> None:
    order = table.world.an_rfq_order
    fee = GROSS * 50 // 10_000
    moved = await table.fill(table.offer(order()), **SOLD, partner="wallet", slippage=0)
    assert moved == a_sale(ONE, GROSS, fee, maker=(ONE, GROSS))
    assert await table.story.owed("partner", "USDC") == fee
    named = {
        "partnerAddress": to_checksum(PARTNER.address),
        "partnerFeeBps": "25",
        "isDirectFeeTransfer": True,
    }
    moved = await table.fill(table.offer(order()), **BOUGHT, **named)
    assert moved["partner", "WETH"] == ONE * 25 // 10_000
    assert moved["user", "WETH"] == -ONE - ONE * 25 // 10_000


async def test_surplus_is_shared_as_the_flags_say(table: OrderTable) -> None:
    """A better order that was unfillable at build time brings a surplus when it is filled."""
    world = table.world
    better = world.an_rfq_order(maker=world.taker.address, maker_amount=GROSS * 102 // 100)
    await world.approve(world.taker, world.usdc, world.at.rfq, 0)
    envelope = await table.build(
        table.offer(better), table.offer(world.an_rfq_order()), **SOLD, takeSurplus=True,
        partnerAddress=to_checksum(PARTNER.address),
    )  # fmt: skip
    await world.approve(world.taker, world.usdc, world.at.rfq)
    moved = await table.send(envelope | {"gas": "3000000"})
    gave = GROSS * 102 // 100
    share = (GROSS - FEE) // 100 // 2
    assert moved == a_sale(ONE, gave, gave // 10_000 + 2 * share, other=(ONE, gave))


async def test_a_makers_permit_takes_the_place_of_its_approval(table: OrderTable) -> None:
    world = table.world
    await world.approve(world.maker, world.usdc, world.at.rfq, 0)
    order = world.an_rfq_order()
    status, kind, details = await table.refused(table.offer(order), **SOLD)
    assert (status, kind) == (400, "InsufficientAllowance")
    assert "lets the RFQ contract take 0" in details
    domain = token_domain("USDC", CHAIN_ID, world.usdc)
    deadline = await world.now_s() + HOUR_S
    permit = eip2612_permit(domain, world.maker, world.at.rfq, GROSS, nonce=0, deadline=deadline)
    item = table.offer(order, permitMakerAsset=to_hex(permit))
    assert await table.fill(item, **SOLD) == a_sale(ONE, GROSS, FEE, maker=(ONE, GROSS))


async def test_a_users_permit_takes_the_place_of_its_approval(table: OrderTable) -> None:
    world = table.world
    await table.story.allow("USDC", 0)
    order = world.an_rfq_order(
        maker_asset=world.weth, taker_asset=world.usdc, maker_amount=ONE, taker_amount=GROSS
    )
    pair = {"srcToken": "USDC", "destToken": "WETH", "srcAmount": str(GROSS)}
    assert (await table.refused(table.offer(order), **pair))[1] == "InsufficientAllowance"
    deadline = await world.now_s() + HOUR_S
    domain = token_domain("USDC", CHAIN_ID, world.usdc)
    permit = eip2612_permit(domain, world.user, world.at.router, GROSS, nonce=0, deadline=deadline)
    moved = await table.fill(table.offer(order), **pair, permit=to_hex(permit))
    assert moved["user", "WETH"] == ONE - ONE // 10_000


async def test_an_order_that_has_expired_on_the_chain(table: OrderTable) -> None:
    world = table.world
    expiry = await world.now_s() + 30
    order = world.an_rfq_order(expiry=expiry)
    envelope = await table.build(table.offer(order), **SOLD)
    assert decode_swap(parse_hex(envelope["data"], "data"))[1].deadline == expiry
    await world.pass_time(31)
    assert (await table.refused(table.offer(order), **SOLD))[1] == "OrderExpired"
    assert await table.story.reverted(envelope) == "DEADLINE_PASSED"


async def test_a_signature_of_somebody_else(table: OrderTable) -> None:
    world = table.world
    items = [table.offer(world.an_rfq_order()), table.offer(world.an_rfq_order(), world.stranger)]
    status, kind, details = await table.refused(*items, **SOLD)
    assert (status, kind) == (400, "InvalidSignature")
    assert details.startswith("Invalid signature: orders[1].signature: ")
