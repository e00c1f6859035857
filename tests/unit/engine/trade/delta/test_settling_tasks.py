"""Tasks of settlements: when they begin, repeat and end, and how they wait."""

from pathlib import Path

import pytest
from trio.testing import MockClock

from cambist.codecs.messages.agent_messages import Notice
from cambist.codecs.messages.vocabulary import OrderStatus
from cambist.config.errors import ChainError, NodeUnavailable, StoreUnavailable
from cambist.config.timeouts import SETTLING_LOOK_S, SETTLING_PAUSE_S
from cambist.engine.chain.port import EthCall
from cambist.engine.store.rows import EffectState
from cambist.engine.trade.delta.settlement.settling import SettlingStatistics
from support.delta.bidding import ONE, a_round_order
from support.delta.settling_stage import (
    DELTA,
    FAILURES_MAX,
    NOW_S,
    a_settlement,
    a_stage,
    mined,
    reverted,
    unmined,
)
from support.store.stores import effect_of

SALE, OTHER = a_round_order(1, partially_fillable=True), a_round_order(2)
_S = OrderStatus


async def test_a_settlement_is_relayed_as_it_is_stored_and_its_agent_is_told(
    tmp_path: Path, mock_clock: MockClock
) -> None:
    async with a_stage(tmp_path, mock_clock) as stage:
        await stage.submit(SALE)
        assert stage.settling.statistics() == SettlingStatistics(0, 0, 0)
        await stage.begin(SALE, a_settlement(SALE, "key"))
        await stage.until(lambda: bool(stage.told))
        assert stage.relayer.sent == [("key", EthCall(DELTA, b"settle", gas_max=300_000), NOW_S + 60)]
        assert stage.notices() == [Notice.SETTLING]
        assert stage.settling.statistics() == SettlingStatistics(1, 0, 0)
        stage.relayer.ends["key"] = unmined()
        await stage.until(lambda: stage.settling.statistics() == SettlingStatistics(0, 0, 1))
        assert stage.live(SALE).settling is None
        assert stage.unspent == [SALE.order_hash]


@pytest.mark.parametrize("error", [ChainError("no"), StoreUnavailable("no")])
async def test_a_settlement_waits_twice_as_long_each_time_while_chain_or_store_is_away(
    tmp_path: Path, mock_clock: MockClock, error: Exception
) -> None:
    async with a_stage(tmp_path, mock_clock) as stage:
        await stage.submit(SALE)
        stage.relayer.errors = [error] * 5
        await stage.begin(SALE, a_settlement(SALE, "key"))
        await stage.quiet()
        counts = [len(stage.relayer.sent)]
        for _ in range(16):
            await stage.passed(0.5)
            counts.append(len(stage.relayer.sent))
        assert counts == [1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 6, 6]


async def test_a_settlement_that_meets_a_bug_is_tried_again_after_ten_seconds(
    tmp_path: Path, mock_clock: MockClock
) -> None:
    async with a_stage(tmp_path, mock_clock) as stage:
        await stage.submit(SALE)
        stage.relayer.errors = [ZeroDivisionError()]
        await stage.begin(SALE, a_settlement(SALE, "key"))
        await stage.passed(9.75)
        assert len(stage.relayer.sent) == 1
        await stage.passed(0.25)
        assert len(stage.relayer.sent) == 2


async def test_a_settlement_has_one_task_however_often_its_order_changes(
    tmp_path: Path, mock_clock: MockClock
) -> None:
    async with a_stage(tmp_path, mock_clock) as stage:
        await stage.submit(SALE, OTHER)
        await stage.begin(SALE, a_settlement(SALE, "key"))
        for _ in range(3):
            stage.settling.carry_on(stage.live(SALE))
        await stage.quiet()
        assert [key for key, _, _ in stage.relayer.sent] == ["key"]
        await stage.begin(OTHER, a_settlement(OTHER, "another"))
        await stage.until(lambda: stage.relayer.keys() == ["key", "another"])
        assert stage.settling.statistics().under_way == 2


@pytest.mark.parametrize("status", [_S.COMPLETED, _S.BRIDGING])
async def test_an_order_that_is_settled_has_no_task_and_its_runners_up_are_forgotten(
    tmp_path: Path, mock_clock: MockClock, status: OrderStatus
) -> None:
    async with a_stage(tmp_path, mock_clock) as stage:
        await stage.submit(SALE)
        runner_up = a_settlement(SALE, "second")
        stage.settling.line_up(SALE.order_hash, [runner_up])
        live = stage.live(SALE)
        stage.orders._watchers.clear()
        await stage.becomes(SALE, status)
        live.settling = "key"
        stage.settling.carry_on(live)
        await stage.quiet()
        assert stage.settling.statistics().under_way == 0
        assert (SALE.order_hash in stage.settling._runners_up) is (status is _S.BRIDGING)


async def test_an_order_whose_end_is_final_has_no_task(tmp_path: Path, mock_clock: MockClock) -> None:
    async with a_stage(tmp_path, mock_clock) as stage:
        await stage.submit(SALE)
        live = stage.live(SALE)
        stage.orders._watchers.clear()
        await stage.becomes(SALE, _S.CANCELLED, is_final=True)
        live.settling = "key"
        stage.settling.carry_on(live)
        await stage.quiet()
        assert stage.settling.statistics().under_way == 0


async def test_an_effect_that_has_ended_is_settled_no_more(tmp_path: Path, mock_clock: MockClock) -> None:
    async with a_stage(tmp_path, mock_clock) as stage:
        await stage.submit(SALE)
        stage.relayer.ends["key"] = unmined()
        await stage.begin(SALE, a_settlement(SALE, "key"))
        live = stage.live(SALE)
        key = live.settling
        assert key is not None
        await stage.until(lambda: stage.settling.statistics() == SettlingStatistics(0, 0, 1))
        assert (await effect_of(stage.store, key)).state is EffectState.FAILED
        for again in (key, "none"):
            live.settling = again
            stage.settling.carry_on(live)
            await stage.passed(10 * SETTLING_PAUSE_S)
        assert (len(stage.relayer.sent), stage.settling.statistics().failed) == (1, 1)
        assert stage.settling.statistics().under_way == 1, "memory does not show it yet"
        live.settling = None
        await stage.until(lambda: stage.settling.statistics().under_way == 0)


async def test_the_runners_up_of_shards_that_others_hold_now_are_forgotten(
    tmp_path: Path, mock_clock: MockClock
) -> None:
    async with a_stage(tmp_path, mock_clock) as stage:
        await stage.submit(SALE, OTHER)
        for asked in (SALE, OTHER):
            stage.settling.line_up(asked.order_hash, [a_settlement(asked, f"second {asked.order_hash[0]}")])
        assert SALE.order_hash[0] != OTHER.order_hash[0]
        stage.settling.leave({OTHER.order_hash[0]})
        assert stage.settling._runners_up.keys() == {OTHER.order_hash}


# --- Waits for an outcome -------------------------------------------------------------------------------


async def test_a_mined_settlement_is_over_once_its_fill_is_indexed(
    tmp_path: Path, mock_clock: MockClock
) -> None:
    async with a_stage(tmp_path, mock_clock) as stage:
        await stage.submit(SALE)
        live = stage.live(SALE)
        stage.relayer.ends["key"] = mined()
        await stage.begin(SALE, a_settlement(SALE, "key"))
        live.in_vain = 4
        await stage.passed(20 * SETTLING_LOOK_S)
        assert live.settling is not None
        assert 10 <= len(stage.relayer.waits) <= 30
        assert set(stage.relayer.waits) == {("key", False)}
        await stage.fill(SALE, spent=1, received=1, tx_hash=b"\x01" * 32)
        await stage.becomes(SALE, _S.ACTIVE)
        await stage.passed(20 * SETTLING_LOOK_S)
        assert live.settling is not None, "the fill is another transaction's"
        await stage.fill(SALE, spent=ONE // 2, received=10_000)
        await stage.passed(20 * SETTLING_LOOK_S)
        assert live.settling is not None, "the order has not changed"
        await stage.becomes(SALE, _S.ACTIVE)
        await stage.until(lambda: stage.settling.statistics() == SettlingStatistics(0, 1, 0))
        assert (stage.live(SALE).settling, live.row.status, live.in_vain) == (None, _S.ACTIVE, 0)
        assert stage.notices() == [Notice.SETTLING, Notice.SETTLED]


@pytest.mark.parametrize("status", [_S.COMPLETED, _S.BRIDGING])
async def test_a_mined_settlement_is_over_once_its_order_is_settled_whole(
    tmp_path: Path, mock_clock: MockClock, status: OrderStatus
) -> None:
    async with a_stage(tmp_path, mock_clock) as stage:
        await stage.submit(SALE)
        live = stage.live(SALE)
        stage.relayer.ends["key"] = mined()
        await stage.begin(SALE, a_settlement(SALE, "key"))
        await stage.passed(SETTLING_LOOK_S)
        await stage.becomes(SALE, status)
        version = live.row.version
        await stage.until(lambda: stage.settling.statistics().under_way == 0)
        assert (live.row.status, live.row.version) == (status, version)
        assert stage.settling.statistics() == SettlingStatistics(0, 1, 0)
        assert stage.notices() == [Notice.SETTLING, Notice.SETTLED]


@pytest.mark.parametrize("is_cancelling", [False, True])
async def test_the_failed_settlement_of_a_cancelled_order_has_to_be_final(
    tmp_path: Path, mock_clock: MockClock, is_cancelling: bool
) -> None:
    async with a_stage(tmp_path, mock_clock) as stage:
        await stage.submit(SALE)
        await stage.begin(SALE, a_settlement(SALE, "key"))
        await stage.until(lambda: bool(stage.relayer.waits))
        if is_cancelling:
            await stage.becomes(SALE, _S.CANCELLING)
        stage.relayer.ends["key"] = reverted()
        await stage.until(lambda: stage.live(SALE).settling is None)
        assert stage.relayer.waits == [("key", False), ("key", True)][: 1 + is_cancelling]
        status = _S.CANCELLED if is_cancelling else _S.ACTIVE
        assert stage.live(SALE).row.status is status


async def test_a_chain_that_is_away_leaves_a_failure_unexplained_and_the_order_goes_on(
    tmp_path: Path,
    mock_clock: MockClock,
) -> None:
    async with a_stage(tmp_path, mock_clock) as stage:
        await stage.submit(SALE)
        stage.codes[SALE.terms.owner] = frozenset({b"wallet"})
        stage.chain.error = NodeUnavailable("nobody answers")
        stage.relayer.ends["key"] = reverted("BelowMinimum(uint256,uint256)")
        await stage.begin(SALE, a_settlement(SALE, "key"))
        await stage.until(lambda: stage.live(SALE).settling is None)
        assert stage.live(SALE).row.failures == 1


async def test_an_order_fails_with_the_last_of_its_counted_failures(
    tmp_path: Path, mock_clock: MockClock
) -> None:
    async with a_stage(tmp_path, mock_clock) as stage:
        await stage.submit(SALE)
        for number in range(1, FAILURES_MAX + 1):
            stage.relayer.ends[f"key {number}"] = reverted()
            await stage.begin(SALE, a_settlement(SALE, f"key {number}"))
            await stage.until(lambda: stage.live(SALE).settling is None)
            row = stage.live(SALE).row
            expected = _S.FAILED if number == FAILURES_MAX else _S.ACTIVE
            assert (row.failures, row.status) == (number, expected)
            assert stage.live(SALE).in_vain == number
