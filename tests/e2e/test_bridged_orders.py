"""Orders across two chains, settled by the contract: delivered, refunded, re-organised, over crashes."""

from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from cambist.codecs.bridges.bridge_terms import output_of
from cambist.codecs.bridges.cctp import FINALITY_CONFIRMED
from cambist.codecs.messages.vocabulary import OrderStatus
from support.bridge.bridged_orders import COURIER, FAIR, FEE, FollowedOrders, bridged_orders
from support.bridge.two_chains import RECIPIENT
from support.chain.world import ONE
from support.patience import until_told
from support.store.stores import events_of

_S = OrderStatus
ARRIVES = output_of(FEE, 0, FAIR)
TO: dict[str, Any] = {"beneficiary": RECIPIENT.address}


async def arrived(story: FollowedOrders) -> int:
    return await story.two.balance(story.two.second, "USDC", RECIPIENT)


async def is_delivered(story: FollowedOrders, order: bytes) -> bool:
    return (await story.record(order)).output.executed_amount is not None


async def is_final(story: FollowedOrders) -> None:
    """Wait until the venue has nothing more to do."""
    with trio.fail_after(300):
        while len(story.orders):
            for chain_id in (story.two.first, story.two.second):
                await story.mines(chain_id, 1)
            await trio.sleep(1)


async def test_a_swap_by_across_is_paid_by_a_relayer_on_the_other_chain(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with bridged_orders(tmp_path) as (story, _):
        order = await story.placed(story.by_across(), **TO)
        settled = await story.settles(order)
        bridging = await story.until(order, _S.BRIDGING)
        assert (bridging.transactions[0].destination_tx, bridging.output.executed_amount) == (None, None)
        done = await story.until(order, _S.COMPLETED)
        (part,) = done.transactions
        assert (part.received_amount, done.output.executed_amount) == (str(ARRIVES), str(ARRIVES))
        assert (done.input.chain_id, done.output.chain_id) == (story.two.first, story.two.second)
        receipt = await story.two.chains[story.two.second].receipt(
            bytes.fromhex((part.destination_tx or "")[2:])
        )
        assert receipt is not None
        assert bytes.fromhex(part.origin_tx[2:]) == settled.receipt.tx_hash
        assert await arrived(story) == ARRIVES
        await is_final(story)


async def test_a_relayer_that_never_fills_leads_to_the_owners_refund(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with bridged_orders(tmp_path) as (story, _):
        story.two.relayer.order(is_silent=True)
        order = await story.placed(story.by_across(600), **TO)
        await story.settles(order)
        await story.until(order, _S.BRIDGING)
        before = await story.two.balance(story.two.first, "USDC", story.two.user)
        await trio.sleep(700)
        await story.mines(story.two.second)
        done = await story.until(order, _S.REFUNDED)
        (refund,) = done.refunds
        assert (refund.chain_id, refund.amount) == (story.two.first, str(FAIR))
        assert await story.two.balance(story.two.first, "USDC", story.two.user) == before + FAIR
        assert await arrived(story) == 0
        await is_final(story)


async def test_a_burn_is_attested_and_handed_in_by_the_venue(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with bridged_orders(tmp_path) as (story, _):
        order = await story.placed(story.by_cctp(), **TO)
        await story.settles(order)
        await story.until(order, _S.BRIDGING)
        done = await story.until(order, _S.COMPLETED)
        assert done.output.executed_amount == str(FAIR)
        assert await arrived(story) == FAIR
        assert await story.two.chains[story.two.second].nonce(COURIER.address) == 1
        await is_final(story)


async def test_a_fast_burn_costs_its_fee_and_an_expired_message_is_attested_anew(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with bridged_orders(tmp_path) as (story, _):
        story.two.attester.order(expires_after_blocks=2)
        chain = story.two.chains[story.two.second]
        await chain.set_balance(COURIER.address, 0)
        order = await story.placed(story.by_cctp(FINALITY_CONFIRMED), **TO)
        await story.settles(order)
        await story.until(order, _S.BRIDGING)
        await trio.sleep(20)
        await story.mines(story.two.second, 5)
        await trio.sleep(20)
        await chain.set_balance(COURIER.address, 10 * ONE)
        done = await story.until(order, _S.COMPLETED)
        assert done.output.executed_amount == str(await arrived(story))
        assert ARRIVES <= await arrived(story) < FAIR


async def test_anybody_may_hand_the_message_in_first(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with bridged_orders(tmp_path) as (story, _):
        await story.two.chains[story.two.second].set_balance(COURIER.address, 0)
        order = await story.placed(story.by_cctp(), **TO)
        settled = await story.settles(order)
        message, attestation = await story.two.attested(story.two.first, settled.receipt.tx_hash)
        await story.two.receive(story.two.second, message, attestation)
        done = await story.until(order, _S.COMPLETED)
        assert done.output.executed_amount == str(FAIR)
        assert await story.two.chains[story.two.second].nonce(COURIER.address) == 0


@pytest.mark.parametrize("is_cctp", [False, True], ids=["across", "cctp"])
async def test_slices_with_equal_terms_are_delivered_each_once_over_crashes(
    tmp_path: Path, autojump_clock: MockClock, *, is_cctp: bool
) -> None:
    async with bridged_orders(tmp_path) as (story, nursery):
        order = await story.placed(story.by_cctp() if is_cctp else story.by_across(), slices=2, **TO)
        half, given = FAIR // 2, ONE // 2
        await story.settles(order, half, given)
        story.dies()
        await trio.sleep(30)
        await story.lives(nursery)
        await until_told(lambda: is_delivered(story, order))
        assert (await story.record(order)).status is _S.ACTIVE
        await trio.sleep(60)
        await story.settles(order, half, given)
        await story.until(order, _S.BRIDGING)
        story.dies()
        await story.lives(nursery)
        await story.until(order, _S.COMPLETED)
        each = half if is_cctp else output_of(FEE, 0, half)
        record = await story.record(order)
        assert [one.received_amount for one in record.transactions] == [str(each)] * 2
        assert len({one.destination_tx for one in record.transactions}) == 2
        assert await arrived(story) == 2 * each
        await is_final(story)


async def test_a_destination_that_loses_the_delivery_gets_it_again(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """The message of CCTP is handed in again; nobody but the venue does it here."""
    async with bridged_orders(tmp_path) as (story, _):
        order = await story.placed(story.by_cctp(), **TO)
        await story.settles(order)
        await story.until(order, _S.COMPLETED)
        await story.two.chains[story.two.second].reorganise(1)
        assert await arrived(story) == 0
        await story.mines(story.two.second, 1)
        await is_final(story)
        assert await arrived(story) == FAIR
        statuses = [event.status for event in await events_of(story.store)]
        assert list(dict.fromkeys(statuses)) == [_S.PENDING, _S.BRIDGING, _S.COMPLETED]
        assert "".join(status[0] for status in statuses).startswith("PBCBC")


async def test_a_settlement_that_leaves_the_origin_takes_its_transfer_with_it(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with bridged_orders(tmp_path) as (story, _):
        story.two.relayer.order(is_silent=True)
        order = await story.placed(story.by_across(), **TO)
        await story.settles(order)
        await story.until(order, _S.BRIDGING)
        await story.two.chains[story.two.first].reorganise(1)
        await story.mines(story.two.first, 1)
        back = await story.until(order, _S.ACTIVE)
        assert back.transactions == ()
        story.two.relayer.order(is_silent=False)
        await story.settles(order)
        await story.until(order, _S.COMPLETED)
        assert await arrived(story) == ARRIVES
