"""Each guarded contract refuses to be entered again, by name.

Tokens' own calls only say whether they succeeded, so that no refusal within one is seen from outside. Here a
token calls a contract that tries the entry, and logs in which words it was refused.
"""

from collections.abc import Awaitable, Callable

import msgspec
import pytest

from cambist.codecs.contracts import calldata, delta_calldata, owner_calldata, router_calldata
from cambist.codecs.contracts.abi import address_word, bytes_tail, encode, selector, uint_word
from cambist.codecs.contracts.router_calldata import Hop, RouterSwap, swap_exact_in, swap_exact_out
from cambist.codecs.eip712_orders.partner_and_fee import PartnerAndFee, pack_partner_and_fee
from cambist.codecs.transactions import create2_address
from cambist.engine.chain.deploy.create2_factory import FACTORY
from cambist.engine.chain.port import Receipt
from support.chain.evm_programs import TRIES_AND_TELLS, assembled, deploys
from support.chain.world import HOUR_S, NOBODY, ONE, USDC, World
from support.contracts.settling import Market

REENTERED = selector("Reentered()")
SET_HOOK = selector("setHook(address,bytes)")
CREDIT = selector("credit(address,address,uint256)")
FILL = selector("fill(address,uint256,bytes)")


async def a_swap(world: World) -> RouterSwap:
    order = world.info(world.a_firm_quote(user=world.taker))
    return RouterSwap(
        world.weth, world.usdc, ONE, 2_500 * USDC, 0, NOBODY, await world.now_s() + HOUR_S, 0, b"",
        (Hop(orders=(order,)),),
    )  # fmt: skip


async def swap(world: World, market: Market) -> Receipt:
    """The Router, its executor and Rfq are all entered while USDC moves."""
    await world.give(world.taker, world.weth, ONE, world.at.router)
    return await world.send(world.taker, world.at.router, swap_exact_in(await a_swap(world)))


async def settle(world: World, market: Market) -> Receipt:
    order = await world.a_delta_order()
    steps = [msgspec.structs.replace(step, gas=1_000_000) for step in market.agent_steps(2_500 * USDC)]
    return await world.send(world.relayer, world.at.delta, market.settlement(order, *steps))


async def cross(world: World, market: Market) -> Receipt:
    sale, counter = await world.a_delta_order(), await market.a_counter_order()
    crossings = market.crossing(sale, 2_500 * USDC), market.crossing(counter, ONE)
    return (await market.cross(*crossings)).receipt


async def claim(world: World, market: Market) -> Receipt:
    terms = PartnerAndFee(world.partner.address, 100, partner_takes_surplus=False, cap_surplus=True)
    order = await world.a_delta_order(partner_and_fee=pack_partner_and_fee(terms))
    await market.settle(order, *market.agent_steps(2_500 * USDC))
    mine = router_calldata.claim([world.usdc], world.partner.address)
    return await world.send(world.partner, world.at.fee_vault, mine)


Act = Callable[[World, Market], Awaitable[Receipt]]


@pytest.mark.parametrize(
    ("contract", "act"),
    [
        ("rfq", swap),
        ("executor", swap),
        ("router", swap),
        ("router, to buy", swap),
        ("delta", settle),
        ("delta", cross),
        ("fee_vault", claim),
        ("fee_vault, to credit", claim),
    ],
)
async def test_a_contract_is_not_entered_twice(world: World, market: Market, contract: str, act: Act) -> None:
    order, words = world.an_rfq_order(), address_word(world.usdc) + uint_word(1)
    entries = {
        "rfq": calldata.fill_order(order, world.signed(order)),
        "executor": FILL + encode(address_word(world.user.address) + bytes(32), bytes_tail(b"")),
        "router": swap_exact_in(await a_swap(world)),
        "router, to buy": swap_exact_out(await a_swap(world)),
        "delta": delta_calldata.withdraw_native(0),
        "fee_vault": router_calldata.claim([world.usdc], world.partner.address),
        "fee_vault, to credit": CREDIT + address_word(world.partner.address) + words,
    }
    init_code = deploys(assembled(TRIES_AND_TELLS))
    await world.send(world.stranger, FACTORY, bytes(32) + init_code)
    probe = create2_address(FACTORY, bytes(32), init_code)
    await world.send(world.owner, world.at.executor, owner_calldata.set_caller(probe, allowed=True))
    await world.send(world.owner, world.at.fee_vault, owner_calldata.set_collector(probe, allowed=True))
    tried = address_word(getattr(world.at, contract.partition(",")[0])) + entries[contract]
    await world.send(world.stranger, world.usdc, SET_HOOK + encode(address_word(probe), bytes_tail(tried)))
    receipt = await act(world, market)
    told = [log.data for log in receipt.logs if log.address == probe]
    assert REENTERED in told
