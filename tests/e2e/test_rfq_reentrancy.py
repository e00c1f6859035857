"""A hostile token calls back in the middle of a transfer, and gains nothing by it."""

import pytest

from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.abi import address_word, bytes_tail, encode, selector, tuples_tail, uint_word
from cambist.codecs.contracts.contract_events import OrderCancelled, OrdersCancelledUntil
from cambist.codecs.eip712_orders.rfq import RfqOrder
from cambist.engine.chain.deploy.deploy import create
from support.chain.evm_programs import TRIES_AND_TELLS, assembled, deploys
from support.chain.world import MOST, ONE, USDC, World
from support.contracts.rfq_stories import (
    FILLED_OR_CANCELLED,
    TRANSFER_FAILED,
    UNFILLED,
    a_wallet,
    execute,
    filled,
    funded,
    refusal,
    remaining,
    rfq_events,
    try_fill,
)


def aggregate(*calls: tuple[bytes, bytes], may_fail: bool) -> bytes:
    """Calldata of DevMulticall."""
    encoded = [encode(address_word(to), uint_word(may_fail), bytes_tail(data)) for to, data in calls]
    return selector("aggregate3((address,bool,bytes)[])") + encode(tuples_tail(encoded))


async def a_caller(world: World) -> bytes:
    """A contract through which a token calls: the contract has 10 WETH, which the RFQ contract may take."""
    caller = await create(world.chain, world.owner, "DevMulticall")
    await world.mint(world.weth, world.stranger, 10 * ONE)
    await world.send(world.stranger, world.weth, calldata.transfer(caller, 10 * ONE))
    approve = aggregate((world.weth, calldata.approve(world.at.rfq, MOST)), may_fail=False)
    await world.send(world.stranger, caller, approve)
    return caller


async def a_hostile_token(world: World) -> bytes:
    """The taker has 100 of it, which the Rfq may take; the maker too."""
    token = await world.new_token(symbol="HOSTILE")
    for owner in (world.maker, world.taker):
        await world.give(owner, token, 100 * ONE, world.at.rfq)
    return token


async def set_hook(world: World, token: bytes, target: bytes, data: bytes) -> None:
    """Set the call that the token makes in each transfer."""
    call = selector("setHook(address,bytes)") + encode(address_word(target), bytes_tail(data))
    await world.send(world.stranger, token, call)


def fills(world: World, order: RfqOrder, caller: bytes) -> list[bytes]:
    """Every way to fill an order."""
    signature, info = world.signed(order), world.info(order)
    return [
        calldata.fill_order(order, signature),
        calldata.fill_order_with_target(order, signature, caller),
        calldata.partial_fill_order(order, signature, ONE),
        calldata.partial_fill_order_with_target(order, signature, ONE, caller),
        calldata.partial_fill_order_with_target_permit(info, caller),
        calldata.batch_fill_order_with_target([info], caller),
        calldata.try_batch_fill_taker_amount([info], ONE, caller),
        calldata.try_batch_fill_maker_amount([info], 2_500 * USDC, caller),
    ]


async def test_nothing_is_filled_within_a_fill(world: World) -> None:
    await funded(world)
    caller, token = await a_caller(world), await a_hostile_token(world)
    inner = world.an_rfq_order()
    for inner_fill in fills(world, inner, caller):
        quiet = await world.chain.snapshot()
        outside = aggregate((world.at.rfq, inner_fill), may_fail=False)
        receipt = await world.send(world.stranger, caller, outside)  # the same call succeeds outside a fill
        assert rfq_events(world, receipt) == [filled(world, inner, target=caller)]
        await world.chain.restore(quiet)
        await set_hook(world, token, caller, aggregate((world.at.rfq, inner_fill), may_fail=True))
        outer = world.an_rfq_order(taker_asset=token, maker_amount=4 * USDC)
        data = calldata.partial_fill_order(outer, world.signed(outer), ONE // 2)
        receipt = await world.send(world.taker, world.at.rfq, data)
        assert rfq_events(world, receipt) == [filled(world, outer, 2 * USDC, ONE // 2)]
        assert await remaining(world, inner) == 0
        assert await world.balance(world.weth, caller) == 10 * ONE
        await set_hook(world, token, caller, aggregate((world.at.rfq, inner_fill), may_fail=False))
        assert await refusal(world, world.taker, data, outer, inner) == TRANSFER_FAILED
        tries = calldata.try_batch_fill_taker_amount([world.info(outer)], ONE // 4, world.taker.address)
        assert await refusal(world, world.taker, tries, outer, inner) == UNFILLED


async def test_an_order_is_not_filled_twice_by_its_own_token(world: World) -> None:
    await funded(world)
    caller, token = await a_caller(world), await a_hostile_token(world)
    order = world.an_rfq_order(maker_asset=token, maker_amount=10 * ONE)
    info = world.info(order)
    within = [
        *fills(world, order, caller),
        try_fill(info, world.taker.address, caller, MOST, MOST),
        try_fill(info, caller, caller, ONE, MOST),
    ]
    again = aggregate(*((world.at.rfq, data) for data in within), may_fail=True)
    await set_hook(world, token, caller, again)
    data = calldata.partial_fill_order(order, world.signed(order), ONE // 2)
    receipt = await world.send(world.taker, world.at.rfq, data)
    assert rfq_events(world, receipt) == [filled(world, order, 5 * ONE, ONE // 2)]
    assert await remaining(world, order) == 5 * ONE + 1
    assert await world.balance(token, world.maker) == 95 * ONE
    assert await world.balance(token, caller) == 0


async def test_a_fill_is_counted_before_its_tokens_move(world: World) -> None:
    """A contract that the token calls reads that the order has no unfilled amount."""
    await funded(world)
    token = await a_hostile_token(world)
    probe = (await world.send(world.stranger, b"", deploys(assembled(TRIES_AND_TELLS)))).contract
    assert probe is not None
    order = world.an_rfq_order(taker_asset=token)
    question = calldata.remaining(order.maker, world.rfq_hash(order))
    await set_hook(world, token, probe, address_word(world.at.rfq) + question)
    for fill in fills(world, order, world.user.address):
        before = await world.chain.snapshot()
        receipt = await world.send(world.taker, world.at.rfq, fill)
        read = [log.data for log in receipt.logs if log.address == probe]
        assert read == [uint_word(FILLED_OR_CANCELLED)]
        await world.chain.restore(before)


async def test_an_attempt_in_a_batch_passes_over_the_hostile_order(world: World) -> None:
    await funded(world)
    caller, token = await a_caller(world), await a_hostile_token(world)
    hostile, good = world.an_rfq_order(maker_asset=token), world.an_rfq_order()
    inner = aggregate((world.at.rfq, fills(world, good, caller)[0]), may_fail=False)
    await set_hook(world, token, caller, inner)
    infos = [world.info(hostile), world.info(good)]
    data = calldata.try_batch_fill_taker_amount(infos, ONE, world.taker.address)
    receipt = await world.send(world.taker, world.at.rfq, data)
    assert rfq_events(world, receipt) == [filled(world, good)]
    assert await remaining(world, hostile) == 0
    assert await world.balance(token, world.taker) == 100 * ONE


@pytest.mark.parametrize(
    ("is_tried", "way"), [(False, "cancelOrder"), (True, "cancelOrders"), (True, "cancelOrdersUntil")]
)
async def test_an_order_that_its_maker_cancels_within_a_fill_stays_cancelled(
    world: World, is_tried: bool, way: str
) -> None:
    await funded(world)
    token = await a_hostile_token(world)
    wallet = await a_wallet(world, world.partner)
    order = world.an_rfq_order(maker=wallet, taker_asset=token)
    part = calldata.partial_fill_order(order, world.signed(order, world.partner), ONE // 4)
    await world.send(world.taker, world.at.rfq, part)
    hand_over = selector("setKey(address)") + address_word(token)
    await world.send(world.partner, wallet, hand_over)
    order_hash = world.rfq_hash(order)
    cancelled = OrderCancelled(order_hash, wallet)
    cancel, told, kept = {
        "cancelOrder": (calldata.cancel_order(order_hash), cancelled, FILLED_OR_CANCELLED),
        "cancelOrders": (calldata.cancel_orders([order_hash]), cancelled, FILLED_OR_CANCELLED),
        "cancelOrdersUntil": (
            calldata.cancel_orders_until(1),
            OrdersCancelledUntil(wallet, 1),
            1_250 * USDC + 1,
        ),
    }[way]
    await set_hook(world, token, wallet, execute(world.at.rfq, cancel))
    fill = part
    if is_tried:
        infos = [world.info(order, key=world.partner)]
        fill = calldata.try_batch_fill_taker_amount(infos, ONE // 4, world.taker.address)
    receipt = await world.send(world.taker, world.at.rfq, fill)
    assert rfq_events(world, receipt) == [
        told,
        filled(world, order, 625 * USDC, ONE // 4),
    ]
    assert await remaining(world, order) == kept
    assert await refusal(world, world.taker, part, order) == "Order already filled or expired"
