"""Refused crossings: one refusal undoes the whole transaction, and no balance changes."""

import msgspec
import pytest

from cambist.codecs.contracts import calldata, delta_calldata
from cambist.codecs.contracts.abi import address_word, bytes_tail, encode, selector
from cambist.codecs.contracts.delta_calldata import (
    cancel_and_withdraw,
    deposit_native_and_pre_sign,
    withdraw_native,
    withdraw_to,
)
from cambist.codecs.contracts.owner_calldata import set_cap, set_paused, set_relayer
from cambist.codecs.eip712_orders.delta import DeltaBridge
from cambist.codecs.eip712_orders.partner_and_fee import PartnerAndFee, pack_partner_and_fee
from cambist.codecs.transactions import create2_address
from cambist.engine.chain.deploy.create2_factory import FACTORY
from support.chain.evm_programs import TRIES_AND_TELLS, assembled, deploys
from support.chain.world import NATIVE, NOBODY, ONE, USDC, World
from support.contracts.settling import Market

PRICE = 2_500 * USDC
SET_HOOK = selector("setHook(address,bytes)")
REENTERED = selector("Reentered()")


async def test_one_below_its_minimum_undoes_all(world: World, market: Market) -> None:
    sale, counter = await world.a_delta_order(), await market.a_counter_order()
    least = counter.dest_amount
    low, enough = market.crossing(counter, least - 1), market.crossing(counter, least)
    full = market.crossing(sale, PRICE)
    short = market.crossing(sale, PRICE, amount=least - 1)
    for crossings in ((short, low), (low, short)):
        refused = await market.refused_crossing(*crossings)
        assert refused == f"BelowMinimum(received {least - 1}, minimum {least})"
    assert (await market.cross(full, enough)).outcome.received == (PRICE, ONE)


async def test_a_fee_counts_against_the_minimum(world: World, market: Market) -> None:
    fee = pack_partner_and_fee(PartnerAndFee(world.partner.address, 100, False, False))
    sale = await world.a_delta_order(dest_amount=PRICE, partner_and_fee=fee)
    counter = await market.a_counter_order()
    refused = await market.refused_crossing(market.crossing(sale, PRICE), market.crossing(counter, ONE))
    assert refused == f"BelowMinimum(received {PRICE * 99 // 100}, minimum {PRICE})"


async def test_a_purchase_is_paid_all_it_buys_and_gives_no_more_than_its_most(
    world: World, market: Market
) -> None:
    fee = pack_partner_and_fee(PartnerAndFee(world.partner.address, 100, False, False))
    purchase = await market.a_purchase(partner_and_fee=fee)
    counter = await market.a_counter_order()
    most = purchase.src_amount
    sold = market.crossing(counter, ONE)
    short = market.crossing(counter, ONE, amount=PRICE - 1)
    refused = await market.refused_crossing(market.crossing(purchase, PRICE - 1, src_given=ONE), short)
    assert refused == f"BelowMinimum(received {PRICE - 1}, minimum {PRICE})"
    refused = await market.refused_crossing(market.crossing(purchase, PRICE, src_given=most + 1), sold)
    assert refused == f"AboveMaximum(spent {(most + 1) * 101 // 100}, maximum {most})"
    refused = await market.refused_crossing(market.crossing(purchase, PRICE, src_given=most), sold)
    assert refused == f"AboveMaximum(spent {most * 101 // 100}, maximum {most})"


async def test_nobody_is_paid_what_was_not_given(world: World, market: Market) -> None:
    """Not from what lies in Delta either, nor from what a purchase keeps back."""
    sale, counter = await world.a_delta_order(), await market.a_counter_order()
    weth = f"token 0x{world.weth.hex()}"
    await world.send(world.maker, world.weth, selector("deposit()"), value_wei=ONE)
    await world.send(world.maker, world.weth, calldata.transfer(world.at.delta, ONE))
    refused = await market.refused_crossing(market.crossing(sale, PRICE), market.crossing(counter, ONE + 1))
    assert refused == f"Overdrawn({weth}, paid {ONE + 1}, left {ONE})"
    second = await market.a_counter_order()
    refused = await market.refused_crossing(
        market.crossing(sale, PRICE), market.crossing(counter, ONE), market.crossing(second, ONE)
    )
    assert refused == f"Overdrawn({weth}, paid {ONE}, left 0)"
    purchase = await market.a_purchase()
    bought = market.crossing(purchase, PRICE, src_given=ONE)
    refused = await market.refused_crossing(bought, market.crossing(counter, ONE + 1))
    assert refused == f"Overdrawn({weth}, paid {ONE + 1}, left {ONE})"
    short = (market.to_agent(ONE // 2),)
    refused = await market.refused_crossing(
        market.crossing(sale, PRICE, *short, traded=ONE // 2), market.crossing(counter, ONE)
    )
    assert refused == f"Overdrawn({weth}, paid {ONE}, left {ONE // 2})"
    refused = await market.refused_crossing(
        market.crossing(sale, PRICE, *short, traded=ONE + 1), market.crossing(counter, ONE)
    )
    assert refused == f"Overdrawn({weth}, paid {ONE + 1}, left {ONE})"


async def test_only_a_relayer(world: World, market: Market) -> None:
    sale, counter = await world.a_delta_order(), await market.a_counter_order()
    crossings = market.crossing(sale, PRICE), market.crossing(counter, ONE)
    for nobody in (world.stranger, world.owner):
        assert await market.refused_crossing(*crossings, key=nobody) == "NotRelayer()"


@pytest.mark.parametrize("count", [0, 1, 9])
async def test_two_to_eight_orders(world: World, market: Market, count: int) -> None:
    crossings = [market.crossing(await market.a_counter_order(dest_amount=0), 0) for _ in range(count)]
    assert await market.refused_crossing(*crossings) == f"InvalidCrossings(count {count})"


async def test_the_same_order_twice(world: World, market: Market) -> None:
    sale, counter = await world.a_delta_order(), await market.a_counter_order()
    whole, half = market.crossing(sale, PRICE), market.crossing(sale, PRICE // 2, amount=ONE // 2)
    sold = market.crossing(counter, ONE)
    assert await market.refused_crossing(whole, sold, whole) == f"NonceUsed(nonce {sale.nonce})"
    assert await market.refused_crossing(half, sold, whole) == f"Overfilled(left {ONE // 2})"
    other = await world.a_delta_order(nonce=sale.nonce, dest_amount=0)
    refused = await market.refused_crossing(whole, sold, market.crossing(other, 0))
    assert refused == f"NonceUsed(nonce {sale.nonce})"
    refused = await market.refused_crossing(half, sold, market.crossing(other, 0))
    assert refused == f"NonceUsed(nonce {sale.nonce})"
    await market.cross(whole, sold)
    assert await market.refused_crossing(whole, sold) == f"NonceUsed(nonce {sale.nonce})"


async def test_terms_of_each_order_hold(world: World, market: Market) -> None:
    """As they do in a settlement of its own, whichever place it has."""
    fine = market.crossing(await market.a_counter_order(), ONE)
    late = await world.a_delta_order(deadline=await world.now_s() - 1)
    foreign = await world.a_delta_order()
    forged = world.delta_signed(foreign, world.stranger)
    changed = msgspec.structs.replace(foreign, dest_amount=1)
    bridge = DeltaBridge(b"\1\2\3\4", 10, NOBODY, 0, b"")
    cases = [
        (market.crossing(late, PRICE), "OrderExpired()"),
        (market.crossing(foreign, PRICE, signature=forged), "InvalidSignature()"),
        (
            market.crossing(changed, PRICE, signature=world.delta_signed(foreign)),
            "InvalidSignature()",
        ),
        (market.crossing(await world.a_delta_order(kind=2), PRICE), "InvalidKind(kind 2)"),
        (market.crossing(await world.a_delta_order(bridge=bridge), PRICE), "BridgeNotEnabled()"),
        (market.crossing(await world.a_delta_order(dest_token=NATIVE), PRICE), "SameToken()"),
        (market.crossing(foreign, PRICE, amount=0), "InvalidAmount()"),
        (market.crossing(foreign, PRICE, amount=ONE + 1), f"Overfilled(left {ONE})"),
        (
            market.crossing(await world.a_delta_order(src_amount=11 * ONE, dest_amount=0), PRICE),
            f"PullFailed(token 0x{world.weth.hex()})",
        ),
    ]
    for crossing, reason in cases:
        assert await market.refused_crossing(crossing, fine) == reason
        assert await market.refused_crossing(fine, crossing) == reason


async def test_the_rails_are_for_all_that_a_crossing_gives(world: World, market: Market) -> None:
    crossings = [
        market.crossing(await world.a_delta_order(), PRICE),
        market.crossing(await market.a_counter_order(src_amount=2 * PRICE), 2 * ONE),
        market.crossing(await world.a_delta_order(), PRICE),
    ]
    await world.send(world.owner, world.at.delta, set_cap(world.weth, 2 * ONE - 1))
    refused = await market.refused_crossing(*crossings)
    assert refused == f"CapExceeded(token 0x{world.weth.hex()}, amount {ONE}, left {ONE - 1})"
    await world.send(world.owner, world.at.delta, set_cap(world.weth, 2 * ONE))
    await world.send(world.owner, world.at.delta, set_paused(paused=True))
    assert await market.refused_crossing(*crossings) == "Paused()"
    await world.send(world.owner, world.at.delta, set_paused(paused=False))
    assert (await market.cross(*crossings)).outcome.received == (PRICE, 2 * ONE, PRICE)


async def test_no_order_is_paid_from_anothers_deposit(world: World, market: Market) -> None:
    """Neither out of what another owner has deposited, nor out of what its own owner has left there."""
    sale, second = [await world.a_delta_order(src_token=NATIVE) for _ in "ab"]
    counter = await market.a_counter_order(src_amount=2 * PRICE, dest_token=NATIVE, dest_amount=2 * ONE)
    await market.deposit(sale, ONE)
    await market.deposit(second, 5 * ONE, world.stranger)
    first, last = market.crossing(sale, PRICE), market.crossing(counter, 2 * ONE)
    refused = await market.refused_crossing(first, market.crossing(second, PRICE), last)
    assert refused == "InsufficientDeposit(deposited 0)"
    await market.deposit(sale, 5 * ONE)
    refused = await market.refused_crossing(first, last)
    assert refused == f"Overdrawn(token 0x{world.weth.hex()}, paid {2 * ONE}, left {ONE})"
    assert await market.deposited(sale) == 6 * ONE


async def test_a_step_that_fails_undoes_all(world: World, market: Market) -> None:
    sale, counter = await world.a_delta_order(), await market.a_counter_order()
    refused = await market.refused_crossing(
        market.crossing(sale, PRICE, *market.agent_steps(1_000_000 * USDC), traded=ONE),
        market.crossing(counter, ONE),
    )
    assert refused == "StepFailed(step 1, reason TransferFailed())"


async def a_probe(world: World, contract: bytes, data: bytes) -> bytes:
    """Called in the middle of each transfer of USDC, it calls a contract, and logs what that returns."""
    init_code = deploys(assembled(TRIES_AND_TELLS))
    await world.send(world.stranger, FACTORY, bytes(32) + init_code)
    probe = create2_address(FACTORY, bytes(32), init_code)
    tried = address_word(contract) + data
    await world.send(world.stranger, world.usdc, SET_HOOK + encode(address_word(probe), bytes_tail(tried)))
    return probe


@pytest.mark.parametrize(
    "entered",
    [
        "settle_crossed", "settle", "settle_twap", "settle_twap_buy", "deposit", "withdraw", "withdraw_to",
        "give_up", "give_up_twap", "give_up_twap_buy",
    ],
)  # fmt: skip
async def test_whoever_enters_again_is_refused(world: World, market: Market, entered: str) -> None:
    """Even a relayer, at each transfer: as the tokens are given, and as they are paid."""
    crossings = [
        market.crossing(await world.a_delta_order(), PRICE),
        market.crossing(await market.a_counter_order(), ONE),
    ]
    others = [
        market.crossing(await world.a_delta_order(), PRICE),
        market.crossing(await market.a_counter_order(), ONE),
    ]
    twap, purchase = await market.a_twap(), await market.a_twap_purchase()
    data = {
        "settle_crossed": delta_calldata.settle_crossed(others),
        "settle": market.settlement(others[0].order, *market.agent_steps(PRICE)),
        "settle_twap": market.settlement(twap, *market.agent_steps(PRICE)),
        "settle_twap_buy": market.settlement(purchase, *market.agent_steps(PRICE)),
        "deposit": deposit_native_and_pre_sign(bytes(32)),
        "withdraw": withdraw_native(0),
        "withdraw_to": withdraw_to(0, NOBODY),
        "give_up": cancel_and_withdraw(others[0].order),
        "give_up_twap": cancel_and_withdraw(twap),
        "give_up_twap_buy": cancel_and_withdraw(purchase),
    }[entered]
    probe = await a_probe(world, world.at.delta, data)
    await world.send(world.owner, world.at.delta, set_relayer(probe, allowed=True))
    settled = await market.cross(*crossings)
    told = [log.data for log in settled.receipt.logs if log.address == probe]
    assert told == [REENTERED, REENTERED]


async def test_whoever_is_called_while_orders_give_or_are_paid_finds_nothing_with_the_executor(
    world: World, market: Market
) -> None:
    """Sources wait in Delta, which refuses re-entry; from the executor any Router caller could take them."""
    sale, counter = await world.a_delta_order(), await market.a_counter_order()
    probe = await a_probe(world, world.weth, calldata.balance_of(world.at.executor))
    quote = world.a_firm_quote(maker_amount=PRICE // 2, taker_amount=ONE // 2)
    settled = await market.cross(
        market.crossing(sale, PRICE, world.fill_step(quote, taker_amount=ONE // 2), traded=ONE // 2),
        market.crossing(counter, ONE // 2, amount=PRICE // 2),
    )
    told = [int.from_bytes(log.data) for log in settled.receipt.logs if log.address == probe]
    assert told == [0, 0, 0]
