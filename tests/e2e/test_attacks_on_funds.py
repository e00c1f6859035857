"""Attacks on funds of the executor and the vault, and on the allowances that others gave them."""

import secrets

from cambist.codecs.contracts import calldata, owner_calldata
from cambist.codecs.contracts.abi import address_word, selector, uint_word
from cambist.codecs.contracts.contract_events import Credited, FeeAccrued
from cambist.codecs.contracts.router_calldata import claim
from cambist.codecs.transactions import create2_address
from cambist.engine.chain.deploy.create2_factory import FACTORY
from support.chain.evm_programs import assembled, deploys
from support.chain.world import MOST, ONE, USDC, World
from support.contracts.settling import Market, events

FAIR = 2_500 * USDC
CREDIT = selector("credit(address,address,uint256)")
SET_TRANSFER_FEE = selector("setTransferFee(uint256)")
SET_BALANCE = bytes.fromhex("00000001")
REBASING = assembled(
    "0 CALLDATALOAD 224 SHR DUP1 0x70a08231 EQ @balance JUMPI 1 EQ @set JUMPI 1 0 MSTORE 32 0 RETURN "
    "balance: 0 SLOAD 0 MSTORE 32 0 RETURN set: 4 CALLDATALOAD 0 SSTORE STOP"
)
"""A token of which everybody has as much as was said last, and whose transfers succeed."""


async def _rebasing_token(world: World) -> bytes:
    init_code = deploys(REBASING)
    salt32 = secrets.token_bytes(32)
    await world.send(world.stranger, FACTORY, salt32 + init_code)
    return create2_address(FACTORY, salt32, init_code)


async def _credit(world: World, account: bytes, token: bytes, amount: int) -> int:
    data = CREDIT + address_word(account) + address_word(token) + uint_word(amount)
    (event,) = events(await world.send(world.taker, world.at.fee_vault, data), Credited)
    return event.amount


# --- The vault ---------------------------------------------------------------------------------------------


async def test_a_token_that_takes_back_what_is_owed_stops_no_trade_that_pays_fees(world: World) -> None:
    allow = owner_calldata.set_collector(world.taker.address, allowed=True)
    await world.send(world.owner, world.at.fee_vault, allow)
    token = await _rebasing_token(world)
    await world.send(world.stranger, token, SET_BALANCE + uint_word(10))
    assert await _credit(world, world.partner.address, token, 10) == 10
    await world.send(world.stranger, token, SET_BALANCE + uint_word(9))
    assert await _credit(world, world.user.address, token, 5) == 0  # the vault holds less than it owes
    await world.send(world.stranger, token, SET_BALANCE + uint_word(12))
    assert await _credit(world, world.user.address, token, 5) == 2
    await world.send(world.partner, world.at.fee_vault, claim([token], world.partner.address))


async def test_an_accrued_fee_is_told_as_it_is_credited(world: World, market: Market) -> None:
    """Also of a token that takes one itself."""
    odd = await world.new_token()
    await world.mint(odd, market.agent, 100_000)
    await world.send(world.stranger, odd, SET_TRANSFER_FEE + uint_word(100))
    terms = int.from_bytes(world.partner.address, "big") << 96 | 100
    order = await world.a_delta_order(dest_token=odd, dest_amount=1, expected_amount=0, partner_and_fee=terms)
    settled = await market.settle(order, market.to_agent(ONE), market.from_agent(100_000, odd))
    (accrued,) = events(settled.receipt, FeeAccrued)
    (credited,) = events(settled.receipt, Credited)
    owed = await market.owed(world.partner.address, odd)
    assert accrued.amount == credited.amount == owed
    assert 0 < owed <= await world.balance(odd, world.at.fee_vault)


# --- The executor ------------------------------------------------------------------------------------------


async def test_the_executors_allowance_to_the_rfq_serves_nobody_else(world: World, market: Market) -> None:
    """The allowance outlives a settlement; no order with the executor as maker or taker spends it."""
    await market.settle(await world.a_delta_order(), market.fill_step(world.a_firm_quote()))
    allowed = calldata.allowance(world.at.executor, world.at.rfq)
    assert await world.ask(world.weth, allowed) > 0
    await world.mint(world.weth, world.stranger, ONE)
    await world.send(world.stranger, world.weth, calldata.transfer(world.at.executor, ONE))
    await world.give(world.stranger, world.usdc, USDC, world.at.rfq)
    order = world.an_rfq_order(
        maker=world.at.executor,
        maker_asset=world.weth,
        taker_asset=world.usdc,
        maker_amount=ONE,
        taker_amount=USDC,
    )
    for signature in (world.signed(order, world.stranger), b"", bytes(65)):
        data = calldata.fill_order(order, signature)
        assert await world.refused(world.stranger, world.at.rfq, data) == "Invalid Signature"
    offered = world.an_rfq_order(maker=world.stranger.address, taker=world.at.executor, maker_amount=1)
    data = calldata.try_batch_fill_taker_amount(
        [world.info(offered, world.stranger)], ONE, MOST.to_bytes(32)[:20]
    )
    assert (
        await world.refused(world.stranger, world.at.rfq, data) == "Couldn't swap the requested fill amount"
    )
    assert await world.balance(world.weth, world.at.executor) == ONE
