"""Results of a settlement for its order, its runners-up, its agent and its owners."""

from pathlib import Path
from typing import Any

import pytest
from trio.testing import MockClock

from cambist.codecs.bridges.bridge_terms import SELECTORS, BridgeKind
from cambist.codecs.eip712_orders.delta import DeltaBridge
from cambist.codecs.messages.agent_messages import Notice, NoticeEntry
from cambist.codecs.messages.vocabulary import OrderStatus
from cambist.codecs.trading_token import NATIVE_TOKEN
from cambist.crypto.hexadecimal import to_hex
from cambist.engine.chain.port import EthCall
from cambist.engine.chain.relay.relayer import IntentOutcome
from cambist.engine.store.rows import IntentCause
from cambist.engine.trade.delta.bids.agent_rest import AgentFault
from support.delta.bidding import (
    ALICE,
    ONE,
    a_delta_order,
    a_productive_order,
    a_round_order,
    asked_for,
)
from support.delta.settling_stage import (
    BEFORE,
    DELTA,
    GAS_MAX,
    HEIGHT,
    NOW_S,
    OWN,
    RELAYER,
    TX,
    a_settlement,
    a_stage,
    crossed,
    ended,
    mined,
    reverted,
    unmined,
)
from support.store.stores import BOB

SALE = a_round_order(1, partially_fillable=True)
PURCHASE = a_round_order(2, a_delta_order(buys=True, nonce=2))
BOBS = a_round_order(3, a_delta_order(nonce=3, owner=BOB))
SHARES = asked_for(a_productive_order(), 4)
_ACROSS = DeltaBridge(SELECTORS[BridgeKind.ACROSS], 10, SALE.terms.dest_token, 0, bytes(5 * 32))
BRIDGED = a_round_order(5, a_delta_order(nonce=5, bridge=_ACROSS))
NATIVE = a_round_order(6, a_delta_order(nonce=6, dest_token=NATIVE_TOKEN, beneficiary=BOB))
_S = OrderStatus
WALLET = frozenset({b"wallet"})
REFUSED, LACKS = "NativeTransferFailed(address)", "PullFailed(address)"


# --- Mined ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "spent", "received", "gas_used", "amount", "why"),
    [
        (SALE, 1, 9_990, 245_000, "9990", ""),
        (SALE, 1, 9_989, 0, "9989", "simulated 10000, settled 9989"),
        (SALE, 1, 10_000, 245_001, "10000", "gas: simulated 200000, used 245001"),
        (PURCHASE, 10_010, 1, 245_000, "10010", ""),
        (PURCHASE, 10_011, 1, 0, "10011", "simulated 10000, settled 10011"),
        (SHARES, 1, 10_000, 245_001, "10000", ""),
        (SHARES, 1, 9_989, 0, "9989", "simulated 10000, settled 9989"),
    ],
)
async def test_an_agent_is_told_what_its_settlement_brought_and_whether_that_is_a_fault(
    tmp_path: Path,
    mock_clock: MockClock,
    asked: Any,
    spent: int,
    received: int,
    gas_used: int,
    amount: str,
    why: str,
) -> None:
    async with a_stage(tmp_path, mock_clock) as stage:
        await stage.submit(asked)
        await stage.fill(asked, spent=spent, received=received)
        stage.relayer.ends["key"] = mined(gas_used=gas_used)
        await ended(stage, asked, a_settlement(asked, "key", is_purchase=asked is PURCHASE))
        notice = Notice.SETTLED_BELOW if why else Notice.SETTLED
        order, tx = to_hex(asked.order_hash), to_hex(TX)
        entry = NoticeEntry(notice, order, why, simulated_amount="10000", settled_amount=amount, tx_hash=tx)
        begun = NoticeEntry(Notice.SETTLING, order, simulated_amount="10000")
        fault = AgentFault.SETTLED_BELOW if why else None
        assert stage.told == [("ann", 5, begun, None), ("ann", 5, entry, fault)]


async def test_a_mined_settlement_whose_fill_is_gone_is_told_without_an_amount(
    tmp_path: Path, mock_clock: MockClock
) -> None:
    """The order is settled whole by then, and the fill's block was undone or is long final."""
    async with a_stage(tmp_path, mock_clock) as stage:
        await stage.submit(SALE)
        await stage.begin(SALE, a_settlement(SALE, "key"))
        await stage.becomes(SALE, _S.COMPLETED)
        stage.relayer.ends["key"] = mined()
        await stage.until(lambda: stage.settling.statistics().under_way == 0)
        entry = NoticeEntry(
            Notice.SETTLED, to_hex(SALE.order_hash), "", simulated_amount="10000", tx_hash=to_hex(TX)
        )
        assert stage.told[1:] == [("ann", 5, entry, None)]


async def test_a_doubted_agent_is_told_once_another_agent_settles_for_the_owner(
    tmp_path: Path, mock_clock: MockClock
) -> None:
    async with a_stage(tmp_path, mock_clock) as stage:
        await stage.submit(SALE, BOBS)
        stage.codes[ALICE] = WALLET
        stage.chain.refuses = lambda call, at: ""
        stage.relayer.ends["first"] = reverted("", cause=IntentCause.OUT_OF_GAS)
        await ended(stage, SALE, a_settlement(SALE, "first"))
        assert (stage.notices(), stage.faults()) == ([Notice.SETTLING, Notice.REVERTED], [])
        await stage.fill(SALE, spent=1, received=10_000)
        stage.relayer.ends["second"] = mined()
        await ended(stage, SALE, a_settlement(SALE, "second", agent="bob", auction_id=6))
        detail = "another agent has since settled an order of the owner for which its settlement failed"
        entry = NoticeEntry(Notice.REVERTED, to_hex(SALE.order_hash), detail)
        assert [one for one in stage.told if one[0] == "ann"][2:] == [("ann", 6, entry, AgentFault.IN_DOUBT)]
        assert stage.notices("bob") == [Notice.SETTLING, Notice.SETTLED]


# --- Not sent -------------------------------------------------------------------------------------------


async def test_a_settlement_without_funds_is_told_as_not_sent(tmp_path: Path, mock_clock: MockClock) -> None:
    async with a_stage(tmp_path, mock_clock) as stage:
        await stage.submit(SALE)
        stage.lacking.add(SALE.order_hash)
        await ended(stage, SALE, a_settlement(SALE, "key"), a_settlement(SALE, "second"))
        assert (stage.relayer.sent, stage.heights) == ([], [(SALE.order_hash, 0)])
        detail = "the owner's funds are not there: it was not sent"
        entry = NoticeEntry(Notice.REVERTED, to_hex(SALE.order_hash), detail, simulated_amount="10000")
        assert stage.told == [("ann", 5, entry, None)]
        row = stage.live(SALE).row
        assert (row.status, row.failures, stage.unspent) == (_S.SUSPENDED, 0, [SALE.order_hash])
        assert stage.settling._runners_up[SALE.order_hash] == [], "they lack the same funds"


async def test_a_settlement_whose_partner_lacks_funds_is_told_so_and_counts_for_neither(
    tmp_path: Path, mock_clock: MockClock
) -> None:
    async with a_stage(tmp_path, mock_clock) as stage:
        await stage.submit(SALE, BOBS)
        stage.lacking.add(BOBS.order_hash)
        sale, bobs = crossed(SALE, BOBS)
        await ended(stage, SALE, sale)
        await ended(stage, BOBS, bobs)
        assert stage.relayer.sent == []
        assert [entry.detail for _, _, entry, _ in stage.told] == [
            "the funds of an order that is crossed with it are not there",
            "the owner's funds are not there: it was not sent",
        ]
        rows = [stage.live(asked).row for asked in (SALE, BOBS)]
        assert [(row.status, row.failures) for row in rows] == [(_S.ACTIVE, 0), (_S.SUSPENDED, 0)]


async def test_a_settlement_that_its_partners_task_has_sent_meanwhile_is_not_held_back(
    tmp_path: Path, mock_clock: MockClock
) -> None:
    async with a_stage(tmp_path, mock_clock) as stage:
        await stage.submit(SALE)
        stage.lacking.add(SALE.order_hash)
        are_lacking = stage.settling._are_lacking

        async def sends(live: Any, height: int) -> bool:
            await stage.relayer.relay("key", EthCall(DELTA, b""), 0)
            return await are_lacking(live, height)

        stage.settling._are_lacking = sends
        await stage.begin(SALE, a_settlement(SALE, "key"))
        await stage.until(lambda: bool(stage.told))
        assert stage.notices() == [Notice.SETTLING]


async def test_a_settlement_of_an_owner_that_rests_is_not_sent_and_has_no_runner_up(
    tmp_path: Path, mock_clock: MockClock
) -> None:
    async with a_stage(tmp_path, mock_clock) as stage:
        await stage.submit(SALE)
        stage.codes[ALICE] = WALLET
        stage.relayer.ends["first"] = reverted("", cause=IntentCause.UNEXPLAINED)
        await ended(stage, SALE, a_settlement(SALE, "first"))
        assert stage.costs.rests_until_ms(ALICE) > 0
        stage.told.clear()
        await ended(stage, SALE, a_settlement(SALE, "second"))
        assert stage.relayer.keys() == ["first"]
        entry = NoticeEntry(
            Notice.REVERTED,
            to_hex(SALE.order_hash),
            "the owner rests after failed settlements",
            simulated_amount="10000",
        )
        assert stage.told == [("ann", 5, entry, None)]
        row = stage.live(SALE).row
        assert (row.status, row.failures, stage.live(SALE).in_vain) == (_S.ACTIVE, 1, 2)


# --- Runners-up -----------------------------------------------------------------------------------------


async def test_runners_up_follow_in_their_order_while_they_have_time_left(
    tmp_path: Path, mock_clock: MockClock
) -> None:
    async with a_stage(tmp_path, mock_clock) as stage:
        await stage.submit(SALE)
        bids = [
            a_settlement(SALE, key, deadline_s=NOW_S + left_s)
            for key, left_s in (("late", 0), ("second", 1), ("last", -1), ("third", 60))
        ]
        for key in ("first", "second"):
            stage.relayer.ends[key] = reverted()
        stage.relayer.ends["third"] = unmined()
        await ended(stage, SALE, a_settlement(SALE, "first"), *bids)
        assert stage.relayer.keys() == ["first", "second", "third"]


@pytest.mark.parametrize(("left", "tried"), [(5, [5, 1]), (4, [1]), (1, [1]), (0, [])])
async def test_a_runner_up_larger_than_the_rest_is_passed_over(
    tmp_path: Path, mock_clock: MockClock, left: int, tried: list[int]
) -> None:
    async with a_stage(tmp_path, mock_clock) as stage:
        await stage.submit(SALE)
        bids = [a_settlement(SALE, f"of {size}", part_amount=f"{size}") for size in (5, 1)]
        for key in ("first", "of 5", "of 1"):
            stage.relayer.ends[key] = reverted()
        await stage.begin(SALE, a_settlement(SALE, "first"), *bids)
        stage.live(SALE).filled = ONE - left
        await stage.until(lambda: stage.settling.statistics().under_way == 0)
        assert stage.relayer.keys() == ["first", *(f"of {size}" for size in tried)]


@pytest.mark.parametrize("is_crossed", [False, True])
@pytest.mark.parametrize("status", [_S.ACTIVE, _S.CANCELLING])
async def test_an_order_that_is_done_has_no_runner_up_unless_another_of_its_crossing_is_done(
    tmp_path: Path, mock_clock: MockClock, is_crossed: bool, status: OrderStatus
) -> None:
    async with a_stage(tmp_path, mock_clock) as stage:
        await stage.submit(SALE, BOBS)
        settlement = crossed(SALE, BOBS)[0] if is_crossed else a_settlement(SALE, "key")
        stage.chain.refuses = lambda call, at: "NonceUsed(uint256)"
        await stage.begin(SALE, settlement, a_settlement(SALE, "second"))
        await stage.until(lambda: bool(stage.relayer.waits))
        if status is not _S.ACTIVE:
            await stage.becomes(SALE, status)
        stage.relayer.ends["key"] = reverted("NonceUsed(uint256)")
        stage.relayer.ends["second"] = unmined()
        await stage.until(lambda: stage.settling.statistics().under_way == 0)
        is_tried = is_crossed and status is _S.ACTIVE
        assert stage.relayer.keys() == ["key", "second"][: 1 + is_tried]
        assert stage.live(SALE).row.failures == is_tried
        assert (SALE.order_hash in stage.settling._runners_up) == is_tried


async def test_an_open_order_that_is_done_waits_for_the_index_up_to_its_settlements_block(
    tmp_path: Path, mock_clock: MockClock
) -> None:
    async with a_stage(tmp_path, mock_clock) as stage:
        await stage.submit(SALE, BOBS)
        stage.read_to = HEIGHT - 1
        stage.chain.refuses = lambda call, at: "NonceUsed(uint256)"
        stage.relayer.ends["one"] = stage.relayer.ends["two"] = reverted("NonceUsed(uint256)")
        await stage.begin(SALE, a_settlement(SALE, "one"))
        await stage.begin(BOBS, a_settlement(BOBS, "two"))
        await stage.passed(5)
        assert stage.settling.statistics().under_way == 2
        await stage.becomes(BOBS, _S.COMPLETED)
        await stage.until(lambda: stage.settling.statistics().failed == 1)
        await stage.passed(5)
        assert stage.live(SALE).settling is not None
        stage.read_to = HEIGHT
        await stage.until(lambda: stage.live(SALE).settling is None)


async def test_the_wait_for_the_index_ends_after_two_minutes(tmp_path: Path, mock_clock: MockClock) -> None:
    async with a_stage(tmp_path, mock_clock) as stage:
        await stage.submit(SALE)
        stage.read_to = HEIGHT - 1
        stage.chain.refuses = lambda call, at: "NonceUsed(uint256)"
        stage.relayer.ends["key"] = reverted("NonceUsed(uint256)")
        await stage.begin(SALE, a_settlement(SALE, "key"))
        await stage.quiet()
        mock_clock.jump(119)
        await stage.quiet()
        assert stage.live(SALE).settling is not None
        mock_clock.jump(2)
        await stage.until(lambda: stage.live(SALE).settling is None)


async def test_the_funds_of_a_failed_settlement_are_read_at_its_block(
    tmp_path: Path, mock_clock: MockClock
) -> None:
    async with a_stage(tmp_path, mock_clock) as stage:
        await stage.submit(SALE)
        for number, (outcome, height) in enumerate(((reverted(), HEIGHT), (unmined(), 0))):
            stage.heights.clear()
            stage.relayer.ends[f"{number}"] = outcome
            await ended(stage, SALE, a_settlement(SALE, f"{number}"))
            assert stage.heights == [(SALE.order_hash, 0), (SALE.order_hash, height)]
        assert stage.unspent == [SALE.order_hash], "the unmined one's subsidy alone"


async def test_a_cancelled_order_without_funds_is_cancelled_once_its_settlement_fails(
    tmp_path: Path, mock_clock: MockClock
) -> None:
    async with a_stage(tmp_path, mock_clock) as stage:
        await stage.submit(SALE)
        await stage.begin(SALE, a_settlement(SALE, "key"), a_settlement(SALE, "second"))
        await stage.until(lambda: bool(stage.relayer.waits))
        await stage.becomes(SALE, _S.CANCELLING)
        stage.lacking.add(SALE.order_hash)
        stage.relayer.ends["key"] = reverted(LACKS)
        await stage.until(lambda: stage.settling.statistics().under_way == 0)
        assert (stage.live(SALE).row.status, stage.relayer.keys()) == (_S.CANCELLED, ["key"])


# --- Causes ---------------------------------------------------------------------------------------------


async def test_a_failure_is_explained_by_calls_of_the_settlement_without_the_agents_calls(
    tmp_path: Path, mock_clock: MockClock
) -> None:
    async with a_stage(tmp_path, mock_clock) as stage:
        await stage.submit(SALE)
        stage.relayer.ends["key"] = reverted(LACKS)
        await ended(stage, SALE, a_settlement(SALE, "key"))
        call = EthCall(DELTA, b"bare", RELAYER, gas_max=300_000)
        assert len(stage.chain.asked) == 2
        assert {*stage.chain.asked} == {(call, BEFORE), (call, OWN)}
        assert stage.faults() == [AgentFault.REVERTED], "neither call lacks funds"


@pytest.mark.parametrize(
    ("outcome", "members", "has_block"),
    [
        (unmined(), {}, True),
        (reverted("", cause=IntentCause.OUT_OF_GAS), {}, True),
        (reverted(LACKS), {"owners_data": b""}, True),
        (reverted(LACKS), {}, False),
    ],
    ids=["unmined", "no error", "of an earlier version", "its block is gone"],
)
async def test_a_failure_that_cannot_be_repeated_is_explained_by_its_own_error(
    tmp_path: Path, mock_clock: MockClock, outcome: IntentOutcome, members: dict[str, Any], has_block: bool
) -> None:
    async with a_stage(tmp_path, mock_clock) as stage:
        await stage.submit(SALE)
        stage.chain.has_block = has_block
        stage.relayer.ends["key"] = outcome
        await ended(stage, SALE, a_settlement(SALE, "key", **members))
        assert stage.chain.asked == []
        is_agents = outcome.cause is IntentCause.OUT_OF_GAS
        assert stage.faults() == ([AgentFault.REVERTED] if is_agents else [])


@pytest.mark.parametrize(
    ("refuses", "rests", "fault", "detail"),
    [
        ((False, False), False, None, "code of an owner's ran in it: no"),
        ((False, True), True, None, "code of an owner's ran in it: no"),
        ((True, True), False, AgentFault.REVERTED, "no"),
    ],
    ids=["neither", "as sent", "in any case"],
)
async def test_a_failure_in_any_case_is_the_agents_and_one_for_lack_of_gas_the_wallets(
    tmp_path: Path,
    mock_clock: MockClock,
    refuses: tuple[bool, bool],
    rests: bool,
    fault: AgentFault | None,
    detail: str,
) -> None:
    """The settlement is called at the block before, with a simulation's gas and with its own."""
    async with a_stage(tmp_path, mock_clock) as stage:
        await stage.submit(SALE)
        stage.codes[ALICE] = WALLET
        error = "BelowMinimum(uint256,uint256)"
        tried = [EthCall(DELTA, b"settle", RELAYER, gas_max=gas) for gas in (GAS_MAX, 300_000)]
        fails = {call for call, is_refused in zip(tried, refuses, strict=True) if is_refused}
        stage.chain.refuses = lambda call, at: error if call.data == b"bare" or call in fails else ""
        stage.relayer.ends["key"] = reverted(error)
        await ended(stage, SALE, a_settlement(SALE, "key"))
        assert {(call, BEFORE) for call in tried} <= {*stage.chain.asked}
        assert bool(stage.costs.rests_until_ms(ALICE)) is rests
        assert stage.faults() == ([] if fault is None else [fault])
        assert stage.told[-1][2].detail == detail


@pytest.mark.parametrize("has_block", [False, True])
async def test_a_failure_without_code_of_an_owner_or_without_its_block_is_the_agents(
    tmp_path: Path, mock_clock: MockClock, has_block: bool
) -> None:
    async with a_stage(tmp_path, mock_clock) as stage:
        await stage.submit(SALE)
        stage.codes[ALICE] = frozenset() if has_block else WALLET
        stage.chain.has_block = has_block
        stage.relayer.ends["key"] = reverted()
        await ended(stage, SALE, a_settlement(SALE, "key"))
        assert stage.faults() == [AgentFault.REVERTED]
        assert all(call.data == b"bare" for call, _ in stage.chain.asked)


@pytest.mark.parametrize("wallet", [ALICE, BOB])
async def test_the_code_of_any_owner_of_a_crossing_puts_its_failure_in_doubt(
    tmp_path: Path, mock_clock: MockClock, wallet: bytes
) -> None:
    async with a_stage(tmp_path, mock_clock) as stage:
        await stage.submit(SALE, BOBS)
        stage.codes[wallet] = WALLET
        stage.relayer.ends["key"] = reverted("", cause=IntentCause.OUT_OF_GAS)
        await ended(stage, SALE, crossed(SALE, BOBS)[0])
        assert stage.faults() == []
        assert stage.told[-1][2].detail == "code of an owner's ran in it: no"


@pytest.mark.parametrize(
    ("partner", "error", "is_doubted"),
    [
        (BRIDGED, "DepositsArePaused()", True),
        (BOBS, "DepositsArePaused()", False),
        (BRIDGED, "StepFailed(uint256,bytes)", False),
    ],
)
async def test_the_bridge_of_any_order_of_a_crossing_may_be_the_cause_of_an_unknown_error(
    tmp_path: Path, mock_clock: MockClock, partner: Any, error: str, is_doubted: bool
) -> None:
    async with a_stage(tmp_path, mock_clock) as stage:
        await stage.submit(SALE, partner)
        stage.relayer.ends["key"] = reverted(error)
        await ended(stage, partner, crossed(partner, SALE)[0])
        assert stage.faults() == ([] if is_doubted else [AgentFault.REVERTED])
        assert stage.told[-1][2].detail == ("the order's bridge failed: no" if is_doubted else "no")


# --- A node far away --------------------------------------------------------------------------------------


async def test_before_it_is_sent_a_settlement_of_two_orders_waits_for_the_node_once(
    tmp_path: Path, mock_clock: MockClock
) -> None:
    """Funds and code of both owners are read together."""
    async with a_stage(tmp_path, mock_clock) as stage:
        await stage.submit(SALE, BOBS)
        stage.codes = {ALICE: WALLET, BOB: WALLET}
        await stage.begin(SALE, crossed(SALE, BOBS)[0])
        await stage.until(lambda: bool(stage.relayer.waits))
        assert stage.chain.round_trips == 1
        assert len(stage.heights) == 2


@pytest.mark.parametrize("has_code", [False, True])
async def test_a_failure_is_explained_after_a_few_waits_for_the_node(
    tmp_path: Path, mock_clock: MockClock, has_code: bool
) -> None:
    """The block and the owners' code; calls of the settlement; the owner's funds; its acts; who pays."""
    async with a_stage(tmp_path, mock_clock) as stage:
        await stage.submit(SALE, BOBS)
        if has_code:
            stage.codes = {ALICE: WALLET, BOB: WALLET}
        await stage.begin(SALE, crossed(SALE, BOBS)[0])
        await stage.until(lambda: bool(stage.relayer.waits))
        before = stage.chain.round_trips
        stage.relayer.ends["key"] = reverted("InvalidSignature()" if has_code else LACKS)
        await stage.until(lambda: stage.settling.statistics().under_way == 0)
        assert 3 <= stage.chain.round_trips - before <= 5
