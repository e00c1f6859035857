"""Orders given up on chain: by their owner, or by anybody who shows the owner's signed cancellation."""

from collections.abc import Sequence

import msgspec

from cambist.codecs.contracts.abi import address_word, uint_word
from cambist.codecs.contracts.contract_events import NATIVE_WITHDRAWN, NonceInvalidated
from cambist.codecs.contracts.delta_calldata import cancel_and_withdraw, show_cancellation
from cambist.codecs.eip712_orders.delta import (
    AnyDeltaOrder,
    DeltaBridge,
    DeltaOrder,
    ExternalOrder,
    TwapBuyOrder,
    TwapOrder,
)
from cambist.engine.trade.orders.order_units import order_id
from support.chain.world import NATIVE, ONE, USDC, World
from support.contracts.settling import Market, events

FAIR = 2_500 * USDC


async def test_a_cancellation_that_anybody_shows_binds_relayers(world: World, market: Market) -> None:
    """Of each kind of order, some of those that are signed; the others can be settled still."""
    orders: list[AnyDeltaOrder] = [
        await world.a_delta_order(),
        await world.a_delta_order(),
        await market.a_twap(),
        await market.a_twap(),
        await market.a_twap_purchase(),
        await market.a_twap_purchase(),
        await market.a_productive_order(),
        await market.a_productive_order(),
        await market.an_external_order(),
        await market.an_external_order(),
    ]
    other = await world.a_delta_order()
    ids = ids_of(world, *orders, other)
    data = show_cancellation(world.user.address, ids, world.cancellation(ids), orders)
    receipt = await world.send(world.stranger, world.at.delta, data)
    gone = [NonceInvalidated(world.user.address, order.nonce) for order in orders]
    assert events(receipt, NonceInvalidated) == gone
    for order in orders:
        steps = () if isinstance(order, ExternalOrder) else market.agent_steps(FAIR)
        refused = await market.refused_settlement(order, *steps, src_given=ONE // 3)
        assert refused == f"NonceUsed(nonce {order.nonce})"
    again = await world.send(world.stranger, world.at.delta, data)
    assert again.logs == ()
    await market.settle(other, *market.agent_steps(FAIR))


async def test_the_rest_of_a_begun_order_is_cancelled(world: World, market: Market) -> None:
    order = await world.a_delta_order()
    half = market.agent_steps(FAIR // 2, given=ONE // 2)
    await market.settle(order, *half, amount=ONE // 2)
    ids = ids_of(world, order)
    data = show_cancellation(world.user.address, ids, world.cancellation(ids), [order])
    await world.send(world.stranger, world.at.delta, data)
    refused = await market.refused_settlement(order, *half, amount=ONE // 2)
    assert refused == f"NonceUsed(nonce {order.nonce})"
    state = await market.order_state(order)
    assert (state.is_used, state.is_closed, state.done) == (True, False, ONE // 2)


async def test_a_cancellation_is_of_its_signers_orders_and_of_those_that_it_names(
    world: World, market: Market
) -> None:
    order, other = await world.a_delta_order(), await world.a_delta_order()
    theirs = msgspec.structs.replace(order, owner=world.stranger.address)
    user, ids = world.user.address, ids_of(world, order, theirs)
    by_user = world.cancellation(ids)

    async def refused(owner: bytes, names: Sequence[str], signature: bytes, *some: AnyDeltaOrder) -> str:
        data = show_cancellation(owner, names, signature, some)
        return await world.refused(world.stranger, world.at.delta, data)

    assert await refused(user, ids, world.cancellation(ids, world.stranger), order) == "InvalidSignature()"
    assert await refused(user, ids[:1], by_user, order) == "InvalidSignature()"
    assert await refused(user, ids[::-1], by_user, order) == "InvalidSignature()"
    assert (
        await refused(user, ids, by_user, other)
        == f"NotCancelled(orderHash 0x{world.delta_hash(other).hex()})"
    )
    owner = f"0x{world.stranger.address.hex()}"
    assert await refused(user, ids, by_user, order, theirs) == f"NotTheOwners(owner {owner})"
    for make in (market.a_twap, market.a_twap_purchase):
        foreign, unnamed = await make(owner=world.stranger.address), await make()
        assert await refused(user, ids, by_user, foreign) == f"NotTheOwners(owner {owner})"
        missing = f"NotCancelled(orderHash 0x{world.delta_hash(unnamed).hex()})"
        assert await refused(user, ids, by_user, order, unnamed) == missing
    assert not await market.is_nonce_used(order)


async def test_a_cancellation_is_of_every_member_that_an_order_has(world: World, market: Market) -> None:
    """Bridge, permit and metadata too: the contract hashes the order as its owner signs it."""
    parts = {
        "bridge": DeltaBridge(b"\1\2\3\4", 10, b"\5" * 20, -6, b"\7\10"),
        "permit": b"\11",
        "metadata": b"\12\13",
    }
    orders: list[AnyDeltaOrder] = [
        await world.a_delta_order(**parts),
        await market.a_twap(**parts),
        await market.a_twap_purchase(**parts),
    ]
    ids = ids_of(world, *orders)
    data = show_cancellation(world.user.address, ids, world.cancellation(ids), orders)
    receipt = await world.send(world.stranger, world.at.delta, data)
    gone = [NonceInvalidated(world.user.address, order.nonce) for order in orders]
    assert events(receipt, NonceInvalidated) == gone


async def test_an_owner_gives_up_an_order_and_has_the_rest_of_its_deposit(
    world: World, market: Market
) -> None:
    """Deposits for other orders, and the part that this order has spent, stay."""
    half = ONE // 2
    sale = await world.a_delta_order(src_token=NATIVE)
    purchase = await market.a_purchase(src_token=NATIVE)
    twap = await market.a_twap(
        src_token=NATIVE, interval=0, num_slices=4, dest_amount_per_slice=1, total_src_amount=ONE + 3
    )
    twap_purchase = await market.a_twap_purchase(
        src_token=NATIVE, interval=0, num_slices=4, max_src_amount=11 * ONE // 10 + 1
    )
    await market.deposit(sale, 10 * ONE)
    await market.settle(sale, *market.agent_steps(FAIR // 2, given=half), amount=half)
    await market.settle(twap, *market.agent_steps(FAIR // 4, given=ONE // 4))
    bought = market.agent_steps(twap_purchase.total_dest_amount // 4, given=7)
    await market.settle(twap_purchase, *bought, src_given=7)
    most = twap_purchase.max_src_amount
    left = 10 * ONE - half - ONE // 4 - most // 4
    for order, rest in (
        (sale, half),
        (twap, ONE + 3 - (ONE + 3) // 4),
        (twap_purchase, most - most // 4),
        (purchase, purchase.src_amount),
    ):
        before = await world.chain.balance(world.user.address)
        receipt = await world.send(world.user, world.at.delta, cancel_and_withdraw(order))
        assert events(receipt, NonceInvalidated) == [NonceInvalidated(world.user.address, order.nonce)]
        (withdrawn,) = [log for log in receipt.logs if log.topics[0] == NATIVE_WITHDRAWN]
        assert withdrawn.topics[1:] == (address_word(world.user.address),)
        assert withdrawn.data == address_word(world.user.address) + uint_word(rest)
        gas_wei = receipt.gas_used * receipt.gas_price_wei
        assert await world.chain.balance(world.user.address) == before + rest - gas_wei
        left -= rest
        assert await market.deposited(order) == left
        refused = await market.refused_settlement(order, *market.agent_steps(FAIR), amount=1, src_given=1)
        assert refused == f"NonceUsed(nonce {order.nonce})"


async def test_a_begun_purchase_takes_back_what_its_rest_may_cost(world: World, market: Market) -> None:
    """The contract counts the rest in what is bought: a fifth of it takes back a fifth of the maximum,
    rounded up."""
    order = await market.a_purchase(src_token=NATIVE, src_amount=11 * ONE // 10 + 2)
    await market.deposit(order, 10 * ONE)
    bought, given = order.dest_amount * 4 // 5, ONE * 4 // 5
    await market.settle(order, *market.agent_steps(bought, given=given), amount=bought, src_given=given)
    before = await market.deposited(order)
    await world.send(world.user, world.at.delta, cancel_and_withdraw(order))
    assert await market.deposited(order) == before - (order.src_amount // 5 + 1)


async def test_no_more_comes_back_than_is_there(world: World, market: Market) -> None:
    native, plain = await world.a_delta_order(src_token=NATIVE), await world.a_delta_order()
    await market.deposit(native, ONE // 8)
    await world.send(world.user, world.at.delta, cancel_and_withdraw(plain))
    assert await market.deposited(native) == ONE // 8
    await world.send(world.user, world.at.delta, cancel_and_withdraw(native))
    assert await market.deposited(native) == 0
    last = await world.a_delta_order(src_token=NATIVE)
    await market.deposit(last, 1)
    await world.send(world.user, world.at.delta, cancel_and_withdraw(last))
    assert await market.deposited(last) == 0
    receipt = await world.send(
        world.user, world.at.delta, cancel_and_withdraw(await world.a_delta_order(src_token=NATIVE))
    )
    assert len(receipt.logs) == 1, "no withdrawal of nothing"


async def test_an_order_of_nothing_is_given_up_and_takes_nothing_back(world: World, market: Market) -> None:
    native = {"src_token": NATIVE}
    orders: list[DeltaOrder | TwapOrder | TwapBuyOrder] = [
        await world.a_delta_order(**native, src_amount=0),
        await market.a_purchase(**native, dest_amount=0),
        await market.a_twap(**native, num_slices=0),
        await market.a_twap_purchase(**native, num_slices=0),
    ]
    await market.deposit(orders[0], ONE)
    for order in orders:
        receipt = await world.send(world.user, world.at.delta, cancel_and_withdraw(order))
        assert events(receipt, NonceInvalidated) == [NonceInvalidated(world.user.address, order.nonce)]
        assert await market.deposited(order) == ONE


async def test_nobody_gives_up_anothers_order(world: World, market: Market) -> None:
    orders: list[DeltaOrder | TwapOrder | TwapBuyOrder] = [
        await world.a_delta_order(),
        await market.a_twap(),
        await market.a_twap_purchase(),
    ]
    for order in orders:
        for nobody in (world.stranger, world.relayer, world.owner):
            refused = await world.refused(nobody, world.at.delta, cancel_and_withdraw(order))
            assert refused == f"NotTheOwners(owner 0x{world.user.address.hex()})"
        assert not await market.is_nonce_used(order)


async def test_a_settled_order_is_not_given_up(world: World, market: Market) -> None:
    order = await world.a_delta_order(src_token=NATIVE)
    await market.deposit(order, 2 * ONE)
    await market.settle(order, *market.agent_steps(FAIR))
    refused = await world.refused(world.user, world.at.delta, cancel_and_withdraw(order))
    assert refused == f"NonceUsed(nonce {order.nonce})"
    assert await market.deposited(order) == ONE


def ids_of(world: World, *orders: AnyDeltaOrder) -> list[str]:
    """As a venue calls them."""
    return [str(order_id(world.delta_hash(order))) for order in orders]
