"""Orders of handlers, over HTTP: the venue settles them without an agent; a bad handler costs nobody else."""

from pathlib import Path
from typing import Any

import pytest

from cambist.codecs.contracts.abi import selector, uint_word
from cambist.codecs.contracts.delta_calldata import withdraw_native
from cambist.codecs.eip712_orders.delta import KIND_BUY
from cambist.crypto.addresses import to_checksum
from support.chain.world import NATIVE, ONE, USDC, World
from support.contracts.handlers import (
    BOMB,
    CALL,
    DELIVER,
    REFUSE,
    WASTE,
    a_handler,
    a_vault_handler,
    acts,
)
from support.delta.delta_stories import DeltaStory, a_delta_story, stocked
from support.delta.resting_stories import a_built_story, prices
from support.venue.venue_role import CHAIN_ID

pytestmark = pytest.mark.one_chain  # the venue looks at it all the while

FAIR = 2_500 * USDC
SET_BLOCKED = selector("setBlocked(address,bool)")
SHARE_TOKEN = """
[[tokens]]
chain_id = {chain_id}
address = "{address}"
symbol = "yvUSDC"
decimals = 18
"""


async def an_order(story: DeltaStory, handler: bytes, data: bytes, **changed: Any) -> Any:
    """The user sells one WETH by way of a handler."""
    return await story.market.an_external_order(handler=handler, data=data, **changed)


async def test_a_handler_settles_an_order_without_any_agent(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path) as story:
        handler = await a_handler(world, 10 * FAIR)
        before = await story.balances()
        record = await story.submitted(await an_order(story, handler, acts(DELIVER, FAIR)))
        assert record["onChainOrderType"] == "ExternalOrder"
        record = await story.becomes(record, "COMPLETED")
        moved = await story.moved_since(before)
        assert moved == {("user", "WETH"): -ONE, ("user", "USDC"): FAIR}
        assert record["output"]["executedAmount"] == str(FAIR)
        (order,) = (await story.last_auction(record))["orders"]
        assert order["winner"] == to_checksum(handler)
        assert order["bids"][0]["promisedAmount"] == str(2_400 * USDC)
        assert order["bids"][0]["simulatedAmount"] == str(FAIR)
        proof = await story.proof(record)
        assert (proof.fault, proof.received, proof.is_closed) == ("", FAIR, True)


async def test_a_limit_order_of_a_handler_waits_for_the_handler_and_not_for_books(
    world: World, tmp_path: Path
) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        handler = await a_handler(world, 0)
        order = await an_order(story, handler, acts(DELIVER, FAIR))
        record = await story.submitted(order, type="LIMIT")
        await story.becomes(record, "ACTIVE")
        await story.says(record, "reverted")
        await world.mint(world.usdc, handler, FAIR)
        record = await story.becomes(record, "COMPLETED")
        assert (record["type"], record["onChainOrderType"]) == ("LIMIT", "ExternalOrder")
        assert story.agents["ann"].requests == []


async def test_a_settlement_by_a_handler_that_is_taken_back_is_mined_again_once(
    world: World, tmp_path: Path
) -> None:
    async with a_delta_story(world, tmp_path) as story:
        handler = await a_handler(world, FAIR)
        before = await story.balances()
        order = await an_order(story, handler, acts(DELIVER, FAIR))
        record = await story.becomes(await story.submitted(order), "COMPLETED")
        await world.chain.set_automine(on=False)
        await world.chain.reorganise(1)
        await story.undone(record)
        await story.mine()
        await story.becomes(record, "COMPLETED")
        await story.is_final(record)
        moved = await story.moved_since(before)
        assert moved == {("user", "WETH"): -ONE, ("user", "USDC"): FAIR}


async def test_an_order_of_a_handler_outlives_a_restart(world: World, tmp_path: Path) -> None:
    market = await stocked(world)
    handler = await a_handler(world, 0)
    async with a_delta_story(world, tmp_path, market=market) as story:
        order = await an_order(story, handler, acts(DELIVER, FAIR))
        record = await story.submitted(order)
        await story.says(record, "reverted")
    await world.mint(world.usdc, handler, FAIR)
    async with a_delta_story(world, tmp_path, market=market) as story:
        await story.becomes(record, "COMPLETED")


async def test_weth_becomes_yield_by_the_example_in_one_signature(world: World, tmp_path: Path) -> None:
    market = await stocked(world)
    deposits = await a_vault_handler(world)
    more = SHARE_TOKEN.format(chain_id=CHAIN_ID, address=to_checksum(deposits.vault))
    async with a_delta_story(world, tmp_path, "ann", more=more, market=market) as story:
        quote = world.an_rfq_order()
        data = deposits.fills(quote)
        order = await an_order(story, deposits.handler, data, dest_token=deposits.vault)
        record = await story.becomes(await story.submitted(order), "COMPLETED")
        assert record["output"]["token"] == to_checksum(deposits.vault)
        assert record["transactions"][0]["receivedAmount"] == str(quote.maker_amount)
        assert await world.balance(deposits.vault, world.user) == quote.maker_amount
        assert story.agents["ann"].requests == [], "no agent is asked about an order of a handler"


async def test_a_purchase_gives_the_expected_cost_first_and_gets_the_rest_back(
    world: World, tmp_path: Path
) -> None:
    async with a_delta_story(world, tmp_path) as story:
        handler = await a_handler(world, 10 * FAIR)
        terms = {"kind": KIND_BUY, "src_amount": 11 * ONE // 10, "dest_amount": FAIR, "expected_amount": ONE}
        order = await an_order(story, handler, acts(DELIVER, FAIR, back=7), **terms)
        before = await story.balances()
        record = await story.becomes(await story.submitted(order), "COMPLETED")
        assert await story.moved_since(before) == {("user", "WETH"): 7 - ONE, ("user", "USDC"): FAIR}
        assert record["input"]["executedAmount"] == str(ONE - 7)
        assert (await story.proof(record)).fault == ""


async def test_native_tokens_of_the_deposit_go_to_the_handler_wrapped(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path) as story:
        handler = await a_handler(world, 10 * FAIR)
        order = await an_order(story, handler, acts(DELIVER, FAIR), src_token=NATIVE)
        await story.market.deposit(order, ONE)
        await story.becomes(await story.submitted(order), "COMPLETED")
        assert await world.balance(world.weth, handler) == ONE


@pytest.mark.parametrize(
    ("data", "notice"),
    [
        (acts(REFUSE), "reverted"),
        (acts(WASTE), "reverted"),
        (acts(BOMB, 1_000_000), "reverted"),
        (b"", "reverted"),
        (acts(DELIVER, 2_400 * USDC - 1), "belowLimit"),
    ],
    ids=["refuses", "wastes", "bombs", "cannot read", "under-delivers"],
)
async def test_a_handler_that_fails_is_named_as_the_reason_and_gets_nothing(
    world: World, tmp_path: Path, data: bytes, notice: str
) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        handler = await a_handler(world, 10 * FAIR)
        bad = await story.submitted(await an_order(story, handler, data))
        before = await story.balances()
        told = await story.says(bad, notice)
        if notice == "belowLimit":
            limit, given = 2_400 * USDC, 2_400 * USDC - 1
            assert (
                told == f"no bid meets the limit, at least {limit}; the best gave {given} in the simulation"
            )
        else:
            assert to_checksum(handler) in told
        assert "noAgents" not in await story.reasons(bad)
        good = await an_order(story, handler, acts(DELIVER, FAIR))
        await story.becomes(await story.submitted(good), "COMPLETED")
        moved = await story.moved_since(before)
        assert moved == {("user", "WETH"): -ONE, ("user", "USDC"): FAIR}
        assert (await story.record(bad["id"]))["status"] == "PENDING"


@pytest.mark.parametrize("what", ["settles", "withdraws", "takes"])
async def test_a_handler_that_calls_back_gets_what_its_order_gives_alone(
    world: World, tmp_path: Path, what: str
) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        handler = await a_handler(world, 10 * FAIR)
        other = await world.a_delta_order()
        take = selector("transferFrom(address,address,uint256)")
        words = bytes(12) + world.user.address + bytes(12) + handler + uint_word(ONE)
        target, call = {
            "settles": (world.at.delta, story.market.settlement(other, *story.market.agent_steps(FAIR))),
            "withdraws": (world.at.delta, withdraw_native(1)),
            "takes": (world.weth, take + words),
        }[what]
        before = await story.balances()
        order = await an_order(story, handler, acts(CALL, FAIR, target=target, data=call))
        await story.becomes(await story.submitted(order), "COMPLETED")
        moved = await story.moved_since(before)
        assert moved == {("user", "WETH"): -ONE, ("user", "USDC"): FAIR}
        assert await story.market.filled(other) == 0


async def test_a_handler_that_fails_in_its_block_has_its_order_fail_after_all_its_failures(
    world: World, tmp_path: Path
) -> None:
    """The handler's tokens are blocked right before each settlement."""

    async def blocked(*, is_so: bool) -> None:
        data = SET_BLOCKED + bytes(12) + handler + uint_word(is_so)
        await story.first_in_block(world.stranger, world.usdc, data)

    async with a_delta_story(world, tmp_path, "ann", delta="failures_max = 2\nrest_s = 600") as story:
        handler = await a_handler(world, FAIR)
        before = await story.balances()
        await story.hold()
        record = await story.submitted(await an_order(story, handler, acts(DELIVER, FAIR)))
        await story.under_way(record)
        await blocked(is_so=True)
        await world.chain.mine()
        await story.says(record, "settlementsFailed")
        told = await story.says(record, "handlerRests")
        assert told.startswith("the order's handler failed in a settlement and rests until ")
        story.clock.passes(601)
        story.web.app.delta.scheduler.at(0, "time has passed", lambda: None)
        await blocked(is_so=False)
        await world.chain.mine()
        await story.under_way(record)
        await blocked(is_so=True)
        await story.mine()
        record = await story.becomes(record, "FAILED")
        assert record["transactions"] == []
        assert not [key for key in await story.moved_since(before) if key[0] == "user"]
        (report,) = await story.web.get(f"/v2/delta/agents/scores/{CHAIN_ID}")
        assert report["faults"] == {}, "no agent is to blame"


async def test_an_operator_may_admit_named_handlers_alone(world: World, tmp_path: Path) -> None:
    handler = await a_handler(world, FAIR)
    admitted = f'handlers = ["{to_checksum(handler)}"]\n'
    async with a_delta_story(world, tmp_path, chain=admitted) as story:
        order = await an_order(story, story.market.agent, acts(DELIVER, FAIR))
        status, told = await story.submit(order)
        assert (status, told["errorType"]) == (400, "InvalidExternalOrderParams")
        assert "order.handler: expected a handler that this venue admits" in told["details"]
        await story.completed(await an_order(story, handler, acts(DELIVER, FAIR)))


async def test_funds_suspend_an_order_of_a_handler_as_any_other(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path) as story:
        handler = await a_handler(world, FAIR)
        record = await story.submitted(await an_order(story, handler, acts(REFUSE)))
        await story.disallow(world.user, "WETH")
        await story.becomes(record, "SUSPENDED")
        assert list(await story.reasons(record)) == ["suspended", "allowanceLacks"]
        await world.approve(world.user, world.weth, world.at.delta)
        await story.becomes(record, "PENDING")
        assert (await story.cancel(record))[0] == 200
        await story.becomes(record, "CANCELLED")


async def test_an_order_of_a_handler_that_never_delivers_expires(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path) as story:
        handler = await a_handler(world, FAIR)
        order = await an_order(story, handler, acts(REFUSE), deadline=await world.now_s() + 600)
        record = await story.submitted(order)
        await story.says(record, "reverted")
        await story.pass_time(700)
        await story.becomes(record, "EXPIRED")


async def test_a_built_order_of_a_handler_is_signed_submitted_and_settled(
    world: World, tmp_path: Path
) -> None:
    async with a_built_story(world, tmp_path, {"WETH/USDC": prices("2500", "2510")}) as built:
        handler = await a_handler(world, FAIR)
        body = {"orderType": "ExternalOrder", "handler": to_checksum(handler)}
        status, told = await built.build(**body, data=f"0x{acts(DELIVER, FAIR).hex()}", slippage=100)
        assert status == 200, told
        before = await built.story.balances()
        record = await built.story.becomes(await built.placed(told), "COMPLETED")
        moved = await built.story.moved_since(before)
        assert (moved["user", "WETH"], moved["user", "USDC"]) == (
            -ONE,
            int(record["output"]["executedAmount"]),
        )
        assert record["order"] == told["toSign"]["value"]
