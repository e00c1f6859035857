"""contracts.md tells what the contracts' calls cost; the table is what the embedded chain measures."""

import re
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest

from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.abi import address_word, bytes_tail, encode, selector, uint_word
from cambist.codecs.eip712_orders.delta import DeltaBridge
from cambist.engine.chain.deploy.deploy import create
from support.chain.world import ONE, USDC, World
from support.contracts.bridging import Bridging, a_bridging
from support.contracts.settling import Market
from support.contracts.swapping import a_venue

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "contracts.md").read_text(encoding="utf-8")
_, _, GAS = PAGE.partition("\n## Gas\n")
ROW = re.compile(r"^\| ([^|]+?) \| ([\d,]* ?)\| ([\d,]+) \|$", re.MULTILINE)
TABLE = {what: int(now.replace(",", "")) for what, _, now in ROW.findall(GAS)}
BEFORE = {what: int(gas.replace(",", "")) for what, gas, _ in ROW.findall(GAS) if gas.strip()}
FAIR = 2_500 * USDC
APART = 500
"""Units: hashes and signatures with more zero bytes cost less."""


async def _quote(world: World, market: Market) -> int:
    settled = await market.settle(await world.a_delta_order(), market.fill_step(world.a_firm_quote()))
    return settled.receipt.gas_used


async def _purchase(world: World, market: Market) -> int:
    fill = market.fill_step(world.a_firm_quote(), maker_amount=FAIR)
    return (await market.settle(await market.a_purchase(), fill, src_given=ONE)).receipt.gas_used


async def _caller(world: World, market: Market) -> int:
    return (await market.settle(await world.a_delta_order(), *market.agent_steps(FAIR))).receipt.gas_used


async def _contract(world: World, market: Market) -> int:
    order = await world.a_delta_order()
    settled = await market.settle(order, market.from_agent(FAIR), receiver=market.agent)
    return settled.receipt.gas_used


async def _crossing(world: World, market: Market) -> int:
    """Of each of eight orders."""
    size, price = ONE // 8, FAIR // 8
    crossings = []
    for _ in range(4):
        sale = await world.a_delta_order(src_amount=size, dest_amount=price, expected_amount=0)
        terms = {"src_amount": price, "dest_amount": size, "expected_amount": 0}
        crossings.append(market.crossing(sale, price))
        crossings.append(market.crossing(await market.a_counter_order(**terms), size))
    return (await market.cross(*crossings)).receipt.gas_used // 8


async def _fill(world: World, _: Market) -> int:
    order = world.an_rfq_order(maker_amount=25 * USDC, taker_amount=ONE // 100)
    data = calldata.fill_order(order, world.signed(order))
    return (await world.send(world.taker, world.at.rfq, data)).gas_used


async def _part(world: World, _: Market) -> int:
    """Of the second part of an order."""
    order = world.an_rfq_order()
    data = calldata.partial_fill_order(order, world.signed(order), order.taker_amount // 10)
    await world.send(world.taker, world.at.rfq, data)
    return (await world.send(world.taker, world.at.rfq, data)).gas_used


async def _swap(world: World, _: Market) -> int:
    venue = await a_venue(world)
    return (await venue.sell(venue.swap(venue.hop(venue.quote())))).receipt.gas_used


async def _two_hops(world: World, _: Market) -> int:
    venue = await a_venue(world)
    hops = venue.hop(venue.quote()), venue.hop(venue.second_quote())
    swap = venue.swap(*hops, dest_token=world.dai, dest_amount=2_400 * ONE)
    return (await venue.sell(swap)).receipt.gas_used


async def _bought(world: World, _: Market) -> int:
    venue = await a_venue(world)
    hop = venue.hop(venue.quote(), maker_amount=FAIR)
    return (await venue.buy(venue.swap(hop, dest_amount=FAIR))).receipt.gas_used


async def _from_vault(world: World, market: Market) -> int:
    vault = await create(world.chain, world.owner, "DevFickleVault", address_word(world.weth))
    for spender in (vault, world.at.delta):
        await world.approve(world.user, world.weth if spender == vault else vault, spender)
    deposit = selector("deposit(uint256,address)") + uint_word(2 * ONE) + address_word(world.user.address)
    await world.send(world.user, vault, deposit)
    order = await market.a_productive_order(strategy=vault)
    settled = await market.settle(order, market.from_agent(FAIR), receiver=market.agent)
    return settled.receipt.gas_used


async def _leaves(bridge: Callable[[Bridging], DeltaBridge], world: World, market: Market) -> int:
    bridging = await a_bridging(market)
    order = await world.a_delta_order(bridge=bridge(bridging))
    settled = await market.settle(order, market.from_agent(FAIR), receiver=market.agent)
    return settled.receipt.gas_used


async def _handled(world: World, market: Market) -> int:
    handler = await create(world.chain, world.owner, "DevHandler")
    await world.mint(world.usdc, handler, 2 * FAIR)
    words = uint_word(0) + uint_word(FAIR) + uint_word(0) + bytes(32)
    data = uint_word(32) + encode(words, bytes_tail(b""))
    orders = [await market.an_external_order(handler=handler, data=data) for _ in range(2)]
    await market.settle(orders[0])  # creates the handlers' caller
    return (await market.settle(orders[1])).receipt.gas_used


MEASURED: dict[str, Callable[[World, Market], Awaitable[int]]] = {
    "`settle`: a sale to a firm quote": _quote,
    "`settle`: a purchase of a firm quote": _purchase,
    "`settle`: an agent's contract, by its caller": _caller,
    "`settle`: an agent's contract, which is the receiver": _contract,
    "`settleCrossed`: each of eight orders": _crossing,
    "`settleProductive`: a sale from a vault to an agent's contract": _from_vault,
    "`settle`: an agent's contract, and what it brings leaves by Across": partial(
        _leaves, Bridging.by_across
    ),
    "`settle`: an agent's contract, and what it brings leaves by CCTP": partial(_leaves, Bridging.by_cctp),
    "`settleExternal`: a sale by a handler's contract": _handled,
    "`fillOrder`": _fill,
    "`partialFillOrder`: a later part": _part,
    "`swapExactIn`: one firm quote": _swap,
    "`swapExactIn`: two hops": _two_hops,
    "`swapExactOut`: one firm quote": _bought,
}


def test_every_row_is_measured() -> None:
    assert TABLE.keys() == MEASURED.keys()


def test_no_call_costs_more_than_before() -> None:
    assert {what: (gas, TABLE[what]) for what, gas in BEFORE.items() if TABLE[what] > gas} == {}
    assert BEFORE


@pytest.mark.parametrize("what", MEASURED)
async def test_a_call_costs_what_the_table_says(world: World, market: Market, what: str) -> None:
    """Between accounts that hold both tokens, and with allowances that have been used before."""
    for key, amount in ((world.user, 20), (world.maker, 1), (world.taker, 5), (world.stranger, 1)):
        await world.mint(world.weth, key, amount * ONE)
    for key in (world.user, world.taker):
        await world.mint(world.usdc, key, 10_000 * USDC)
    await world.send(world.stranger, world.weth, calldata.transfer(market.agent, ONE))
    await world.approve(world.taker, world.weth, world.at.rfq)
    *_, used = [await MEASURED[what](world, market) for _ in range(3)]
    assert abs(used - TABLE[what]) <= APART, used
