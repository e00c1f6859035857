"""Orders that are signed well and can never be filled: filled or cancelled before, signed twice for one swap,
or by a contract that says yes to the venue and no to the RFQ contract; or for tokens that cannot be taken.

A maker loses nothing by signing them, so it must not get a user as far as a transaction that reverts.
"""

import pytest

from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.abi import address_word, selector, uint_word
from cambist.codecs.eip712_orders.rfq import RfqOrder
from cambist.codecs.messages.vocabulary import Side
from cambist.codecs.transactions import contract_address
from support.chain.world import ONE, USDC, World
from support.makers.firm_makers import Stage, a_stage, execute, makers_of

BETTER = (("2505", "50"),)
WORSE = (("2500", "50"),)
ASKS = (("2600", "50"),)
POOR = (("2400", "50"),)
YES = "631626ba7e60e01b60005260206000f3"  # return the magic answer of EIP-1271
TWO_FACED = {
    "with more gas than it gets": f"63001e84805a11600f5760006000fd5b{YES}",
    "to anybody but the RFQ contract": f"3373{{rfq}}14602a57{YES}5b60006000fd",
}
"""Code of contracts: `if gas > 2000000` and `if caller != rfq`."""


async def two_makers(stage: Stage, world: World) -> None:
    """The better one says the same to the same question."""
    stage.quote_weth("alpha", bids=BETTER, asks=ASKS)
    stage.quote_weth("beta", bids=WORSE, asks=ASKS)
    for name in ("alpha", "beta"):
        await stage.stock(name, world.usdc)
    stage.makers["alpha"].nonce = 7


async def cancel(stage: Stage, world: World, order: RfqOrder) -> None:
    order_hash = stage.desk.digest_of(order)
    await world.send(stage.makers["alpha"].key, world.at.rfq, calldata.cancel_order(order_hash))


@pytest.mark.parametrize("side", list(Side))
async def test_an_order_that_was_filled_before_is_not_taken_again(world: World, side: Side) -> None:
    async with a_stage(world) as stage:
        await two_makers(stage, world)
        swap, amount = (stage.sell, ONE) if side is Side.SELL else (stage.buy, 2_500 * USDC)
        first = await swap(world.weth, world.usdc, amount)
        assert makers_of(first) == [{"alpha"}]
        assert await execute(world, first) == (first.src_amount, first.dest_amount)
        again = await swap(world.weth, world.usdc, amount)
        assert makers_of(again) == [{"beta"}]
        assert stage.reasons("alpha") == {"invalid": 1}
        assert await execute(world, again) == (again.src_amount, again.dest_amount)


async def test_an_order_that_its_maker_has_cancelled_is_not_taken(world: World) -> None:
    async with a_stage(world) as stage:
        await two_makers(stage, world)
        first = await stage.sell(world.weth, world.usdc, ONE)
        await cancel(stage, world, first.hops[0].fills[0].order)
        again = await stage.sell(world.weth, world.usdc, ONE)
        assert makers_of(again) == [{"beta"}]
        assert stage.reasons("alpha") == {"invalid": 1}
        assert stage.shows("alpha", world.weth, world.usdc), "one fault rests nothing"
        assert await execute(world, again) == (ONE, again.dest_amount)


async def test_one_order_does_not_stand_for_two_parts_of_a_swap(world: World) -> None:
    """Half each; where one of two refuses, the other is asked for the same once more."""
    async with a_stage(world) as stage:
        level = (("2505", "1"), ("2504", "1"))
        for name in ("alpha", "beta"):
            stage.quote_weth(name, bids=level, asks=ASKS)
            await stage.stock(name, world.usdc)
        stage.quote_weth("gamma", bids=POOR, asks=ASKS)
        await stage.stock("gamma", world.usdc)
        stage.makers["alpha"].nonce = 7
        stage.makers["beta"].habit = "refuses"
        route = await stage.sell(world.weth, world.usdc, 2 * ONE)
        orders = [stage.desk.digest_of(fill.order) for hop in route.hops for fill in hop.fills]
        assert len(set(orders)) == len(orders)
        assert makers_of(route) == [{"alpha", "gamma"}]
        assert stage.reasons("alpha") == {"invalid": 1}
        assert await execute(world, route) == (2 * ONE, route.dest_amount)


@pytest.mark.parametrize("habit", TWO_FACED)
async def test_a_contract_is_asked_as_the_rfq_contract_will_ask_it(world: World, habit: str) -> None:
    async with a_stage(world) as stage:
        await two_makers(stage, world)
        alpha = stage.makers["alpha"]
        runtime = bytes.fromhex(TWO_FACED[habit].format(rfq=world.at.rfq.hex()))
        nonce = await world.chain.nonce(world.owner.address)
        await world.send(world.owner, b"", bytes.fromhex(f"60{len(runtime):02x}80600b6000396000f3") + runtime)
        alpha.account = contract_address(world.owner.address, nonce)
        route = await stage.sell(world.weth, world.usdc, ONE)
        assert makers_of(route) == [{"beta"}]
        assert stage.reasons("alpha") == {"invalid": 1}


async def test_tokens_that_are_there_and_allowed_but_frozen_are_not_counted_on(world: World) -> None:
    async with a_stage(world) as stage:
        await two_makers(stage, world)
        words = address_word(stage.makers["alpha"].key.address) + uint_word(1)
        await world.send(world.owner, world.usdc, selector("setBlocked(address,bool)") + words)
        route = await stage.sell(world.weth, world.usdc, ONE)
        assert makers_of(route) == [{"beta"}]
        assert stage.reasons("alpha") == {"unfunded": 1}
        assert await execute(world, route) == (ONE, route.dest_amount)
