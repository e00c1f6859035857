"""incidents.md, step by step: a maker's key that leaked, a bad agent, an executor that a token blocks.

The other pages' steps are commands: integration/test_contract_acts.py.
"""

from pathlib import Path

import pytest
from msgspec.structs import replace

from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.abi import address_word, selector, uint_word
from cambist.codecs.contracts.calldata import approve
from cambist.codecs.contracts.owner_calldata import set_cap
from support.chain.world import ONE, USDC, World
from support.contracts.settling import Market
from support.delta.delta_stories import a_delta_story
from support.patience import until

BLOCK = selector("setBlocked(address,bool)")
FAIR = 2_500 * USDC


async def test_a_makers_key_has_leaked(world: World) -> None:
    """The maker's own calls end what the thief signs, and nobody else's can."""
    await world.give(world.maker, world.usdc, 3 * FAIR, world.at.rfq)
    await world.give(world.stranger, world.weth, 3, world.at.rfq)
    thief = world.stranger
    stolen = world.an_rfq_order(maker_amount=FAIR, taker_amount=1)
    await world.send(thief, world.at.rfq, calldata.fill_order(stolen, world.signed(stolen)))
    assert await world.balance(world.usdc, thief) == FAIR
    await world.send(world.maker, world.usdc, approve(world.at.rfq, 0))
    second = replace(stolen, nonce_and_meta=stolen.nonce_and_meta + (1 << 200))
    data = calldata.fill_order(second, world.signed(second))
    assert await world.refused(thief, world.at.rfq, data) == "TRANSFER_FROM_FAILED"


@pytest.mark.one_chain
async def test_an_agent_is_bad(world: World, tmp_path: Path) -> None:
    """The bad agent is banned automatically; a restarted venue without its settings table never asks it."""
    async with a_delta_story(world, tmp_path, "ann", "bob") as story:
        ann, bob = story.agents["ann"], story.agents["bob"]
        ann.gives, ann.lies_by = (lambda _: 2_490 * USDC), FAIR - 2_490 * USDC
        bob.gives = lambda _: 2_490 * USDC
        await story.completed(await world.a_delta_order())
        await until(lambda: bool(ann.told("banned")))
        market, asked = story.market, len(ann.requests)
    async with a_delta_story(world, tmp_path, "bob", market=market) as story:
        assert await story.web.get("/v2/delta/agents/list/31337") == ["bob"]
        story.agents["bob"].gives = lambda _: FAIR
        _, moved = await story.completed(await world.a_delta_order())
        assert moved["user", "USDC"] == FAIR
        assert len(ann.requests) == asked


async def test_a_token_blocks_the_executor(world: World, market: Market) -> None:
    """Firm quotes that take the token fail and agents' own fills go on, until its cap is 0."""
    await world.send(world.stranger, world.usdc, BLOCK + address_word(world.at.executor) + uint_word(1))
    counter = {
        "src_token": world.usdc,
        "dest_token": world.weth,
        "src_amount": FAIR,
        "dest_amount": ONE // 2,
        "expected_amount": 0,
    }
    await world.give(world.user, world.usdc, 3 * FAIR, world.at.delta)
    await world.mint(world.weth, world.stranger, ONE)
    await world.send(world.stranger, world.weth, calldata.transfer(market.agent, ONE))
    quote = world.a_firm_quote(
        maker_asset=world.weth, taker_asset=world.usdc, maker_amount=ONE, taker_amount=FAIR
    )
    order = await world.a_delta_order(**counter)
    blocked = f"PullFailed(token 0x{world.usdc.hex()})"
    assert await market.refused_settlement(order, world.fill_step(quote)) == blocked
    steps = (market.from_agent(ONE // 2, world.weth),)
    receiver = market.agent
    assert (await market.settle(order, *steps, receiver=receiver)).event.is_closed
    for contract in (world.at.delta, world.at.router):
        await world.send(world.owner, contract, set_cap(world.usdc, 0))
    another = await world.a_delta_order(**counter)
    capped = f"CapExceeded(token 0x{world.usdc.hex()}, amount {FAIR}, left 0)"
    assert await market.refused_settlement(another, *steps, receiver=receiver) == capped
    assert (await market.settle(await world.a_delta_order(), *market.agent_steps(FAIR))).event.is_closed
