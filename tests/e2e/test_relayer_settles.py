"""The relayer settles a user's order through a maker's firm quote; the chain takes it back, and it is settled
again, once. A settlement that the contract refuses has failed in the contract's own words."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from cambist.config.settings import parse_settings
from cambist.crypto.addresses import to_checksum
from cambist.engine.chain.port import EthCall
from cambist.engine.chain.relay.relayer import IntentOutcome, Relayer
from cambist.engine.store.leases import Leases
from cambist.engine.store.rows import IntentState
from cambist.engine.trade.delta.open_delta import relayer_of
from support.chain.anvil import KEYS
from support.chain.world import ONE, USDC, World
from support.contracts.settling import SETTLEMENT_GAS, Market
from support.patience import PATIENCE_S, until_told
from support.store.store_work import now_ms, store_at

pytestmark = pytest.mark.one_chain  # the relayer looks at it all the while

CONFIRMATIONS = 3
RELAYER = 1  # among the world's people


@pytest.fixture
async def relayer(world: World, tmp_path: Path) -> AsyncIterator[Relayer]:
    """A relayer of the world's, as settings have it, running."""
    chain_id = world.chain.chain_id
    text = f"""
        [chains.{chain_id}]
        name = "a devnet"
        confirmations = {CONFIRMATIONS}
        delta_contract = "{to_checksum(world.at.delta)}"
        [keys.relayer]
        source = "env:RELAYER"
        [relayers.{chain_id}]
        key = "relayer"
    """
    settings = parse_settings(text, {"RELAYER": KEYS[RELAYER]}, tmp_path)
    async with store_at(f"sqlite:{tmp_path / 'relayer.sqlite3'}") as store, trio.open_nursery() as nursery:
        leases = Leases(store, "the venue", life_s=5, now_ms=now_ms)
        await nursery.start(leases.run)
        made = relayer_of(settings, world.chain, store, leases, now_ms)
        await nursery.start(made.run)
        yield made
        nursery.cancel_scope.cancel()


async def told(relayer: Relayer, key: str, *, final: bool) -> IntentOutcome:
    """Outcome of the intent `key`, within PATIENCE_S."""
    with trio.fail_after(PATIENCE_S):
        return await relayer.wait(key, final=final)


async def test_an_order_is_settled_once_though_the_chain_takes_it_back(
    world: World, market: Market, relayer: Relayer
) -> None:
    people = (world.user, world.maker)
    before = await world.balances(*people)
    nonce = await world.chain.nonce(world.relayer.address)
    order, quote = await world.a_delta_order(), world.a_firm_quote()
    data = market.settlement(order, market.fill_step(quote))
    call = EthCall(world.at.delta, data, gas_max=SETTLEMENT_GAS)

    await relayer.relay("settle", call)
    mined = await told(relayer, "settle", final=False)
    assert mined.state == IntentState.MINED
    assert await market.filled(order) == ONE
    await world.chain.reorganise(1)
    assert await market.filled(order) == 0
    await until_told(lambda: market.filled(order))
    again = await told(relayer, "settle", final=False)
    assert again.receipt is not None
    assert again.tx_hash == mined.tx_hash
    await world.chain.mine(CONFIRMATIONS)
    outcome = await told(relayer, "settle", final=True)
    assert (outcome.state, outcome.reason) == (IntentState.FINAL, "")

    assert (await relayer.relay("settle", call)).state == IntentState.FINAL
    assert await world.chain.nonce(world.relayer.address) == nonce + 1
    after = await world.balances(*people)
    changed = {
        (world.weth, world.user.address): -ONE,
        (world.usdc, world.user.address): 2_500 * USDC,
        (world.weth, world.maker.address): ONE,
        (world.usdc, world.maker.address): -2_500 * USDC,
    }
    assert {what: after[what] - before[what] for what in after if after[what] != before[what]} == changed


async def test_a_settlement_that_is_refused_has_failed_in_the_contracts_words(
    world: World, market: Market, relayer: Relayer
) -> None:
    order = await world.a_delta_order()
    quote = world.a_firm_quote(maker_amount=2_399 * USDC)
    before = await market.state(order, world.relayer)
    data = market.settlement(order, market.fill_step(quote))
    await relayer.relay("settle", EthCall(world.at.delta, data, gas_max=SETTLEMENT_GAS))
    reverted = await told(relayer, "settle", final=False)
    assert reverted.state == IntentState.REVERTED
    await world.chain.mine(CONFIRMATIONS)
    outcome = await told(relayer, "settle", final=True)
    assert outcome.state == IntentState.FAILED
    assert outcome.reason.startswith("BelowMinimum(")
    assert str(2_399 * USDC) in outcome.reason
    assert await market.state(order, world.relayer) == before
