"""A maker's signed order is filled, whole."""

from typing import Any

from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.contract_events import Transfer, decode_event
from cambist.engine.chain.artifacts import artifact
from cambist.engine.chain.port import EthCall
from support.chain.world import MOST, ONE, USDC, World
from support.contracts.rfq_stories import (
    ALREADY_FILLED,
    FILLED_OR_CANCELLED,
    filled,
    funded,
    order_hash_question,
    refusal,
    remaining,
    rfq_events,
    try_fill,
)

# Between two who hold both tokens; 21,000 of it are any transaction's.
FILL_GAS_MAX, PART_GAS_MAX, LATER_PART_GAS_MAX = 112_000, 112_000, 88_000


async def test_a_fill_moves_both_tokens_and_closes_the_order(world: World) -> None:
    await funded(world)
    order = world.an_rfq_order()
    assert await remaining(world, order) == 0
    receipt = await world.send(world.taker, world.at.rfq, calldata.fill_order(order, world.signed(order)))
    assert [decode_event(log.topics, log.data) for log in receipt.logs] == [
        Transfer(world.taker.address, world.maker.address, ONE),
        Transfer(world.maker.address, world.taker.address, 2_500 * USDC),
        filled(world, order),
    ]
    assert [log.address for log in receipt.logs] == [world.weth, world.usdc, world.at.rfq]
    assert await world.balance(world.weth, world.maker) == ONE
    assert await world.balance(world.weth, world.taker) == 9 * ONE
    assert await world.balance(world.usdc, world.maker) == 7_500 * USDC
    assert await world.balance(world.usdc, world.taker) == 2_500 * USDC
    assert await remaining(world, order) == FILLED_OR_CANCELLED


async def test_a_fill_is_not_replayed(world: World) -> None:
    await funded(world)
    order = world.an_rfq_order()
    signature = world.signed(order)
    await world.send(world.taker, world.at.rfq, calldata.fill_order(order, signature))
    for again in (
        calldata.fill_order(order, signature),
        calldata.fill_order_with_target(order, signature, world.user.address),
        calldata.partial_fill_order(order, signature, 1),
        calldata.batch_fill_order_with_target([world.info(order)], world.taker.address),
    ):
        assert await refusal(world, world.taker, again, order) == ALREADY_FILLED


async def test_another_may_receive_what_the_taker_paid_for(world: World) -> None:
    await funded(world)
    order = world.an_rfq_order()
    data = calldata.fill_order_with_target(order, world.signed(order), world.user.address)
    receipt = await world.send(world.taker, world.at.rfq, data)
    assert rfq_events(world, receipt) == [filled(world, order, target=world.user.address)]
    assert await world.balance(world.usdc, world.user) == 2_500 * USDC
    assert await world.balance(world.usdc, world.taker) == 0
    assert await world.balance(world.weth, world.taker) == 9 * ONE
    assert await world.balance(world.weth, world.user) == 0


async def test_only_the_named_taker_fills(world: World) -> None:
    await funded(world)
    await world.give(world.stranger, world.weth, ONE, world.at.rfq)
    order = world.an_rfq_order(taker=world.taker.address)
    signature = world.signed(order)
    for strangers in (
        calldata.fill_order(order, signature),
        calldata.fill_order_with_target(order, signature, world.taker.address),
        calldata.partial_fill_order(order, signature, 1),
        calldata.batch_fill_order_with_target([world.info(order)], world.taker.address),
    ):
        assert await refusal(world, world.stranger, strangers, order) == "Access denied"
    receipt = await world.send(world.taker, world.at.rfq, calldata.fill_order(order, signature))
    assert rfq_events(world, receipt) == [filled(world, order)]


async def test_an_order_with_several_faults_is_refused_for_the_first(world: World) -> None:
    """Its time, its taker, that it is closed, its signature, the amount."""
    await funded(world)
    others: dict[str, Any] = {"taker": world.user.address}
    late, foreign, closed = (
        world.an_rfq_order(expiry=1, **others), world.an_rfq_order(**others), world.an_rfq_order()
    )  # fmt: skip
    hashes = [world.rfq_hash(order) for order in (late, foreign, closed)]
    await world.send(world.maker, world.at.rfq, calldata.cancel_orders(hashes))
    fresh = world.an_rfq_order()
    for order, signature, reason in (
        (late, b"", "Order expired"),
        (foreign, b"", "Access denied"),
        (closed, b"", ALREADY_FILLED),
        (fresh, b"", "Invalid Signature"),
        (fresh, world.signed(fresh), "Invalid Taker amount"),
    ):
        data = calldata.partial_fill_order(order, signature, 0)
        assert await refusal(world, world.taker, data, order) == reason


async def test_a_maker_who_takes_the_own_order_only_closes_it(world: World) -> None:
    await funded(world)
    await world.give(world.maker, world.weth, ONE, world.at.rfq)
    order = world.an_rfq_order()
    receipt = await world.send(world.maker, world.at.rfq, calldata.fill_order(order, world.signed(order)))
    assert rfq_events(world, receipt) == [filled(world, order, target=world.maker.address)]
    assert await world.balance(world.weth, world.maker) == ONE
    assert await world.balance(world.usdc, world.maker) == 10_000 * USDC
    assert await remaining(world, order) == FILLED_OR_CANCELLED


async def test_an_order_may_give_and_take_one_token(world: World) -> None:
    await funded(world)
    await world.give(world.taker, world.usdc, 10 * USDC, world.at.rfq)
    order = world.an_rfq_order(taker_asset=world.usdc, maker_amount=7 * USDC, taker_amount=5 * USDC)
    receipt = await world.send(world.taker, world.at.rfq, calldata.fill_order(order, world.signed(order)))
    assert rfq_events(world, receipt) == [filled(world, order)]
    assert await world.balance(world.usdc, world.taker) == 12 * USDC
    assert await world.balance(world.usdc, world.maker) == 9_998 * USDC


async def test_native_tokens_are_not_taken(world: World) -> None:
    await funded(world)
    order = world.an_rfq_order()
    data = calldata.fill_order(order, world.signed(order))
    assert await refusal(world, world.taker, data, order, value_wei=1) == ""
    assert await world.chain.balance(world.at.rfq) == 0


async def test_what_fills_cost(world: World) -> None:
    await funded(world)
    await world.mint(world.weth, world.maker, 1)
    await world.mint(world.usdc, world.taker, 1)
    whole, part = world.an_rfq_order(), world.an_rfq_order()
    data = calldata.fill_order(whole, world.signed(whole))
    assert (await world.send(world.taker, world.at.rfq, data)).gas_used < FILL_GAS_MAX
    data = calldata.partial_fill_order(part, world.signed(part), ONE // 4)
    assert (await world.send(world.taker, world.at.rfq, data)).gas_used < PART_GAS_MAX
    assert (await world.send(world.taker, world.at.rfq, data)).gas_used < LATER_PART_GAS_MAX


async def test_the_order_hash_is_the_one_that_makers_sign(world: World) -> None:
    for order in (
        world.an_rfq_order(),
        world.a_firm_quote(),
        world.an_rfq_order(expiry=(1 << 128) - 1, maker_amount=MOST, taker_amount=0, nonce_and_meta=MOST),
    ):
        assert await world.chain.call(EthCall(world.at.rfq, order_hash_question(order))) == world.rfq_hash(
            order
        )


async def test_the_step_of_a_batch_is_the_contracts_own(world: World) -> None:
    await funded(world)
    order = world.an_rfq_order()
    for taker in (world.taker, world.stranger):
        step = try_fill(world.info(order), world.taker.address, world.stranger.address, MOST, MOST)
        assert await refusal(world, taker, step, order) == "Access denied"


def test_calldata_is_written_for_every_function_that_clients_call() -> None:
    ours = {
        calldata.FILL_ORDER,
        calldata.FILL_ORDER_WITH_TARGET,
        calldata.PARTIAL_FILL_ORDER,
        calldata.PARTIAL_FILL_ORDER_WITH_TARGET,
        calldata.PARTIAL_FILL_ORDER_WITH_TARGET_PERMIT,
        calldata.BATCH_FILL_ORDER_WITH_TARGET,
        calldata.TRY_BATCH_FILL_TAKER_AMOUNT,
        calldata.TRY_BATCH_FILL_MAKER_AMOUNT,
        calldata.CANCEL_ORDER,
        calldata.CANCEL_ORDERS,
        calldata.CANCEL_ORDERS_UNTIL,
        calldata.CANCELLED_UNTIL,
        calldata.REMAINING,
        calldata.REMAINING_BALANCES,
    }
    selectors = artifact("Rfq").selectors()
    others = {signature.partition("(")[0] for signature, found in selectors.items() if found not in ours}
    assert others == {"DOMAIN_SEPARATOR", "RFQ_ORDER_TYPEHASH", "getOrderHash", "tryFill"}
    assert ours <= set(selectors.values())
