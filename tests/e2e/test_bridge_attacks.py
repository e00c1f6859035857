"""A bridge's relayer that waits for the last second, and orders whose delivery costs the venue."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cambist.codecs.bridges import across
from cambist.codecs.bridges.bridge_terms import BridgeKind
from cambist.codecs.contracts.abi import address_word
from cambist.crypto.addresses import to_checksum
from support.bridge.bridged_stories import (
    ACROSS,
    CCTP,
    FAIR,
    a_bridged_story,
    a_swapped_story,
    arriving,
    far_place,
    quoted_dai,
)
from support.bridge.two_chains import TwoChains
from support.chain.world import ONE, USDC
from support.delta.delta_stories import Record
from support.patience import until, until_told

pytestmark = pytest.mark.one_of(2)


async def test_a_fill_in_the_last_second_and_a_refund_beside_it_count_once_each(
    two: TwoChains, tmp_path: Path
) -> None:
    """Two equal deposits of one owner: a relayer fills one in its last second, the other comes back.

    The bundle pays the owner exactly what either deposit holds, so that only the logs tell whose it is.
    """
    async with a_bridged_story(two, tmp_path) as story:
        two.relayer.order(is_silent=True)
        before, far = await story.balances(), story.far.chain
        records = [await story.bridging(ACROSS) for _ in range(2)]
        await until(lambda: len(two.relayer.open_deposits()) == 2)
        late, lost = sorted(two.relayer.open_deposits(), key=lambda deposit: deposit.deposit_id)
        sent = await far.nonce(story.world.relayer.address)
        pool, stranger = story.far.spoke_pool, two.stranger
        await story.far.give(stranger, story.far.usdc, late.output_amount, pool)
        fill = across.fill_relay(late.relay(two.first), two.first, address_word(stranger.address))
        await far.set_time(late.fill_deadline)  # of the next block alone
        receipt = await two.send(two.second, stranger, pool, fill)
        mined = await far.block(receipt.block_hash)
        assert mined is not None
        assert mined.time_s == late.fill_deadline, "the last second"
        await story.world.chain.set_time(lost.fill_deadline + 60)
        await far.set_time(lost.fill_deadline + 60)
        await far.mine(3)
        await story.world.chain.mine(3)
        two.relayer.order(pays_out=True)
        arrived, refunded = [await story.becomes(record, "COMPLETED", "REFUNDED") for record in records]
        assert (arrived["status"], refunded["status"]) == ("COMPLETED", "REFUNDED")
        assert arrived["transactions"][0]["destinationTx"] == f"0x{receipt.tx_hash.hex()}"
        assert (arrived["output"]["executedAmount"], arrived["refunds"]) == (str(arriving()), [])
        assert [one["amount"] for one in refunded["refunds"]] == [str(FAIR)]
        assert (refunded["output"]["executedAmount"], refunded["transactions"][0]["destinationTx"]) == (
            None,
            None,
        )
        for record in (arrived, refunded):
            await story.becomes_final(record)
        moved = await story.moved_since(before)
        assert (moved["user", "USDC"], moved["user", "far USDC"]) == (FAIR, arriving())
        assert moved["user", "WETH"] == -2 * ONE
        assert await far.nonce(story.world.relayer.address) == sent, "the venue has paid no gas there"
        told = story.deliveries()
        assert (told.delivered, told.failed, told.odd) == (1, 1, 0)


async def test_dust_whose_message_costs_the_venue_more_than_it_is_worth_is_refused(
    two: TwoChains, tmp_path: Path
) -> None:
    """Ten USDC to a chain where handing in the message costs a hundred: before, the venue paid for it."""
    async with a_swapped_story(two, tmp_path) as (story, _):
        there = far_place(story)
        await story.far.chain.set_base_fee(300 * 10**9)
        await story.far.chain.mine()
        await until(lambda: there.gas.gas_price_wei >= 200 * 10**9)
        terms = {"src_amount": ONE // 250, "dest_amount": 9 * USDC, "expected_amount": 10 * USDC}
        status, told = await story.submit(await story.an_order(CCTP, **terms))
        assert (status, told.get("errorType")) == (400, "GasCostExceedsTradeAmount"), told
        _, told = await story.submit(await story.an_order(ACROSS, **terms))
        assert told.get("errorType") != "GasCostExceedsTradeAmount", "the bridge's relayer pays"
        dear = await story.quoted("cctp", "SELL", ONE)
        await story.far.chain.set_base_fee(10**9)
        await story.far.chain.mine()
        await until(lambda: there.gas.gas_price_wei < 10**10)
        cheap = await story.quoted("cctp", "SELL", ONE)
        assert int(cheap["fees"]["gas"]["amount"]) + 50 * USDC < int(dear["fees"]["gas"]["amount"])
        status, told = await story.submit(await story.an_order(CCTP, **terms))
        assert status in (200, 201), told


async def test_a_swap_there_that_costs_the_venue_more_than_it_is_worth_is_refused(
    two: TwoChains, tmp_path: Path
) -> None:
    """Quote and intake take one gas for the venue's call after a bridge has delivered: a swap, or a wrap."""
    async with a_swapped_story(two, tmp_path) as (story, _):
        dai = {"destToken": to_checksum(story.far.dai), "destDecimals": "18"}
        wrapped = {"destToken": to_checksum(story.far.weth), "destDecimals": "18"}
        routes = [await story.quoted("across", "SELL", ONE // 25, **dest) for dest in (dai, wrapped)]
        there = far_place(story)
        await story.far.chain.set_base_fee(300 * 10**9)
        await story.far.chain.mine()
        await until(lambda: there.gas.gas_price_wei >= 200 * 10**9)
        for route, dest in zip(routes, (dai, wrapped), strict=True):
            with pytest.raises(AssertionError, match="GasCostExceedsTradeAmount"):
                await story.ordered(route)
            with pytest.raises(AssertionError, match="as cost exceeds trade amount"):
                await story.quoted("across", "SELL", ONE // 25, **dest)


async def test_transfers_at_a_low_limit_pay_for_their_gas_on_both_chains(
    two: TwoChains, tmp_path: Path
) -> None:
    """Their owner gives up nothing else: CCTP's standard transfer is free, Across's relayer may be it."""
    async with a_swapped_story(two, tmp_path) as (story, _):
        world, far, payee = story.world, story.far, story.world.relayer
        await world.give(world.user, world.usdc, 2_000 * USDC, world.at.delta)
        for chain in (world.chain, far.chain):
            await chain.set_base_fee(30 * 10**9)
            await chain.mine()
        await until(lambda: far_place(story).gas.gas_price_wei >= 20 * 10**9)
        await until(lambda: story.web.app.chains[two.first].gas.gas_price_wei >= 20 * 10**9)

        async def native() -> int:
            held = [await chain.balance(payee.address) for chain in (world.chain, far.chain)]
            return sum(held)

        async def swapped_there() -> Record:
            src = {"srcToken": to_checksum(world.usdc), "srcDecimals": "6"}
            return await story.ordered(await quoted_dai(story, "across", 500 * USDC, **src))

        async def transferred(kind: BridgeKind) -> Record:
            terms: dict[str, Any] = {"src_token": world.usdc, "src_amount": 500 * USDC, "dest_amount": 1}
            return await story.submitted(await story.an_order(kind, **terms, expected_amount=0))

        for placed in (partial(transferred, CCTP), partial(transferred, ACROSS), swapped_there):
            before, had = await world.balance(world.usdc, payee), await native()
            await story.becomes(await placed(), "COMPLETED")
            paid, spent = await world.balance(world.usdc, payee) - before, had - await native()
            assert paid * 10**12 >= spent * 2_500 > 0, "at 2,500 USDC for a native token"


async def test_transfers_whose_limit_leaves_no_gas_have_the_subsidy_alone(
    two: TwoChains, tmp_path: Path
) -> None:
    async with a_bridged_story(two, tmp_path) as story:
        world = story.world
        await world.give(world.user, world.usdc, 5_000 * USDC, world.at.delta)
        terms: dict[str, Any] = {"src_token": world.usdc, "expected_amount": 0}
        records = []
        for number in range(6):
            sent = 500 * USDC + number
            order = await story.an_order(CCTP, **terms, src_amount=sent, dest_amount=sent)
            records.append(await story.submitted(order))

        async def states() -> list[str]:
            return [
                "waits" if "gasNotCarried" in await story.reasons(record) else "goes"
                for record in records
                if (await story.record(record["id"]))["status"] == "PENDING"
            ]

        async def all_wait() -> bool:
            found = await states()
            return bool(found) and set(found) == {"waits"}

        await until_told(all_wait)
        assert 2 <= len(await states()) <= 5, "a million units of gas a day settle others"
