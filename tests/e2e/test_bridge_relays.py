"""Deposits at a dev pool: filled, left alone, refunded, to the unit; over stops and re-organisations."""

from typing import Any, cast

import msgspec
import pytest
import trio
from trio.testing import MockClock

from cambist.codecs.bridges import across
from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.abi import address_word
from cambist.engine.dev.bridge.relayer import RelayEnd
from support.bridge.two_chains import RECIPIENT, RELAYER, STOCK, AwayChain, TwoChains, two_chains
from support.chain.world import ONE, USDC
from support.patience import until_told

HOUR_S = 3_600


async def refunded(two: TwoChains, deposit: across.FundsDeposited) -> None:
    """Wait for the payout of the first chain's only deposit, and check that the depositor got it."""
    await two.paid_out(two.first)
    (payout,) = await two.payouts(two.first)
    assert payout.refund_addresses == (deposit.depositor[12:],)
    assert payout.refund_amounts == (deposit.input_amount,)
    assert (payout.root_bundle_id, payout.has_deferred) == (deposit.deposit_id, False)
    assert await two.balance(two.first, "USDC", two.places[two.first].spoke_pool) == 0
    assert await two.balance(two.second, "USDC", RECIPIENT) == 0
    assert await two.fills(deposit) == []


async def test_a_deposit_is_filled_and_the_relayer_repaid(autojump_clock: MockClock) -> None:
    async with two_chains() as two:
        deposit = await two.deposit(two.first, 1_000 * USDC)
        await until_told(lambda: two.fills(deposit))
        (fill,) = await two.fills(deposit)
        assert fill.updated_output_amount == deposit.output_amount == 1_000 * USDC - 420_000
        assert (fill.relayer, fill.repayment_chain_id) == (address_word(RELAYER.address), two.first)
        assert await two.balance(two.second, "USDC", RECIPIENT) == deposit.output_amount
        assert await two.balance(two.second, "USDC", RELAYER) == STOCK * USDC - deposit.output_amount
        assert await two.payouts(two.first) == []
        await two.paid_out(two.first)
        (payout,) = await two.payouts(two.first)
        assert payout.refund_addresses == (RELAYER.address,)
        assert await two.balance(two.first, "USDC", RELAYER) == (STOCK + 1_000) * USDC
        assert two.relayer.open_deposits() == []


@pytest.mark.parametrize(
    ("is_back", "symbol", "amount", "arrives"),
    [
        (False, "USDT", 1_000 * 10**6, 999_580_000 * 10**12),
        (True, "USDT", 1_000 * 10**18, 999_580_000),
        (True, "USDC", 1_000 * USDC, 999_580_000),
    ],
)
async def test_both_ways_and_over_different_decimals(
    autojump_clock: MockClock, symbol: str, amount: int, arrives: int, *, is_back: bool
) -> None:
    async with two_chains() as two:
        origin = two.second if is_back else two.first
        deposit = await two.deposit(origin, amount, symbol)
        await until_told(lambda: two.fills(deposit))
        assert await two.balance(two.other(origin), symbol, RECIPIENT) == arrives == deposit.output_amount


async def test_an_account_gets_wrapped_tokens_unwrapped(autojump_clock: MockClock) -> None:
    async with two_chains() as two:
        deposit = await two.deposit(two.first, ONE, "WETH")
        await until_told(lambda: two.fills(deposit))
        assert await two.balance(two.second, "ETH", RECIPIENT) == deposit.output_amount == ONE - 41 * 10**13


async def test_a_silent_relayer_leads_to_a_refund(autojump_clock: MockClock) -> None:
    async with two_chains() as two:
        two.relayer.order(is_silent=True)
        began_s = trio.current_time()
        await refunded(two, await two.deposit(two.first, 1_000 * USDC))
        assert HOUR_S <= trio.current_time() - began_s <= HOUR_S + 5
        assert await two.balance(two.first, "USDC", two.user) == STOCK * USDC


async def test_an_insolvent_relayer_leads_to_a_refund(autojump_clock: MockClock) -> None:
    async with two_chains() as two:
        two.relayer.order(is_insolvent=True)
        await refunded(two, await two.deposit(two.first, 1_000 * USDC))


async def test_a_relayer_fills_once_it_has_the_funds(autojump_clock: MockClock) -> None:
    async with two_chains() as two:
        token = two.tokens["USDC"][two.second]
        away = calldata.transfer(two.stranger.address, (STOCK - 999) * USDC)
        await two.send(two.second, RELAYER, token, away)
        deposit = await two.deposit(two.first, 1_000 * USDC)
        await trio.sleep(60)
        assert await two.fills(deposit) == []
        await two.send(two.second, two.stranger, token, calldata.transfer(RELAYER.address, 580_000))
        await until_told(lambda: two.fills(deposit))
        assert await two.balance(two.second, "USDC", RELAYER) == 0


async def test_a_deposit_that_loses_money_is_refunded(autojump_clock: MockClock) -> None:
    async with two_chains() as two:
        await refunded(two, await two.deposit(two.first, 1_000 * USDC, output=1_000 * USDC + 1))


async def test_a_token_of_no_lane_is_refunded(autojump_clock: MockClock) -> None:
    async with two_chains() as two:
        other = two.tokens["USDT"][two.second]
        await refunded(two, await two.deposit(two.first, 1_000 * USDC, output_token=other))


async def test_a_relayer_waits_as_ordered(autojump_clock: MockClock) -> None:
    async with two_chains() as two:
        two.relayer.order(fill_after_s=90)
        deposit = await two.deposit(two.first, 1_000 * USDC)
        await trio.sleep(89)
        assert await two.fills(deposit) == []
        await trio.sleep(3)
        assert await two.fills(deposit)


async def test_another_relayers_right_comes_first(autojump_clock: MockClock) -> None:
    async with two_chains() as two:
        rights: dict[str, Any] = {"exclusive_relayer": two.stranger.address, "exclusivity": 120}
        deposit = await two.deposit(two.first, 1_000 * USDC, **rights)
        await trio.sleep(119)
        assert await two.fills(deposit) == []
        await trio.sleep(4)
        assert await two.fills(deposit)


async def test_who_else_fills_is_repaid(autojump_clock: MockClock) -> None:
    async with two_chains() as two:
        two.relayer.order(is_silent=True)
        deposit = await two.deposit(two.first, 1_000 * USDC)
        await two.fill(deposit, two.stranger)
        two.relayer.order(is_silent=False)
        await two.paid_out(two.first)
        assert len(await two.fills(deposit)) == 1
        assert await two.balance(two.first, "USDC", two.stranger) == 1_000 * USDC


async def test_payouts_can_be_held_back(autojump_clock: MockClock) -> None:
    async with two_chains() as two:
        two.relayer.order(is_silent=True, pays_out=False)
        deposit = await two.deposit(two.first, 1_000 * USDC)
        await trio.sleep(2 * HOUR_S)
        assert await two.payouts(two.first) == []
        assert two.relayer.open_deposits() == [deposit]
        two.relayer.order(pays_out=True)
        await refunded(two, deposit)


async def test_a_relayer_goes_on_after_a_stop(autojump_clock: MockClock) -> None:
    async with two_chains() as two:
        filled = await two.deposit(two.first, 1_000 * USDC)
        await until_told(lambda: two.fills(filled))
        two.stop()
        missed = await two.deposit(two.first, 500 * USDC)
        late = await two.deposit(two.first, 250 * USDC, fill_deadline=await two.now_s(two.first) + 60)
        await trio.sleep(120)
        assert await two.fills(missed) == []
        await two.start()
        await until_told(lambda: two.fills(missed))
        await two.paid_out(two.first)
        two.stop()
        await two.start()
        await trio.sleep(2 * HOUR_S)
        two.stop()
        assert [len(await two.fills(one)) for one in (filled, missed, late)] == [1, 1, 0]
        paid = {one.root_bundle_id: one.refund_addresses for one in await two.payouts(two.first)}
        assert len(await two.payouts(two.first)) == 3
        assert paid == {0: (RELAYER.address,), 1: (RELAYER.address,), 2: (two.user.address,)}
        outputs = filled.output_amount + missed.output_amount
        assert await two.balance(two.second, "USDC", RECIPIENT) == outputs
        assert await two.balance(two.second, "USDC", RELAYER) == STOCK * USDC - outputs


async def test_a_deposit_that_a_reorganisation_removes_is_not_filled(autojump_clock: MockClock) -> None:
    async with two_chains() as two:
        two.relayer.order(fill_after_s=60)
        gone = await two.deposit(two.first, 1_000 * USDC)
        await trio.sleep(10)
        assert two.relayer.open_deposits() == [gone]
        await two.chains[two.first].reorganise(1)
        await trio.sleep(2)
        assert two.relayer.open_deposits() == []
        deposit = await two.deposit(two.first, 500 * USDC)
        assert deposit.deposit_id == gone.deposit_id
        await trio.sleep(55)
        assert await two.fills(deposit) == []  # its time began with it
        await until_told(lambda: two.fills(deposit))
        assert await two.fills(gone) == []


async def test_a_fill_that_a_reorganisation_removes_is_made_again(autojump_clock: MockClock) -> None:
    async with two_chains() as two:
        deposit = await two.deposit(two.first, 1_000 * USDC)
        await until_told(lambda: two.fills(deposit))
        await two.chains[two.second].reorganise(1)
        assert await two.fills(deposit) == []
        await until_told(lambda: two.fills(deposit))
        assert await two.balance(two.second, "USDC", RECIPIENT) == deposit.output_amount


async def test_a_relayer_waits_for_a_node_that_is_away(autojump_clock: MockClock) -> None:
    async with two_chains() as two:
        two.stop()
        away = AwayChain(two.chains[two.second], is_away=True)
        end = RelayEnd(cast("Any", away), two.places[two.second].spoke_pool)
        two.relayer.ends = {**two.relayer.ends, two.second: end}
        await two.start()
        deposit = await two.deposit(two.first, 1_000 * USDC)
        await trio.sleep(100)
        assert 50 < away.asked < 150
        away.is_away = False
        await until_told(lambda: two.fills(deposit))


async def test_orders_are_checked(autojump_clock: MockClock) -> None:
    async with two_chains() as two:
        with pytest.raises(ValueError, match="fill_after_s is 0 to 86400, got -1"):
            two.relayer.order(fill_after_s=-1)
        with pytest.raises(TypeError):
            two.relayer.order(is_asleep=True)
        assert msgspec.to_builtins(two.relayer.orders)["fill_after_s"] == 1.0
