"""Owners that pay for a failed settlement, by their acts, their code or their missing funds."""

from pathlib import Path
from typing import Any

import pytest
from trio.testing import MockClock

from cambist.codecs.contracts.abi import address_word, uint_word
from cambist.codecs.contracts.contract_events import APPROVAL, TRANSFER
from cambist.codecs.messages.agent_messages import Notice
from cambist.codecs.messages.vocabulary import OrderStatus
from cambist.codecs.trading_token import NATIVE_TOKEN
from cambist.config.errors import NodeUnavailable
from cambist.engine.chain.port import Log
from cambist.engine.chain.relay.relayer import IntentOutcome
from cambist.engine.host.admission.budgets import GAS_OF_DOUBTS
from cambist.engine.store.rows import IntentCause
from cambist.engine.trade.delta.bids.agent_rest import AgentFault
from support.delta.bidding import (
    ALICE,
    USDC,
    WETH,
    a_delta_order,
    a_productive_order,
    a_round_order,
    asked_for,
)
from support.delta.settling_stage import (
    BEFORE,
    DELTA,
    HEIGHT,
    OWN,
    TX,
    Stage,
    a_settlement,
    a_stage,
    crossed,
    ended,
    mined,
    reverted,
    unmined,
)
from support.store.stores import BOB, CAROL

SALE = a_round_order(1)
BOBS = a_round_order(3, a_delta_order(nonce=3, owner=BOB))
NATIVE = a_round_order(6, a_delta_order(nonce=6, dest_token=NATIVE_TOKEN, beneficiary=CAROL))
TO_BOB = a_round_order(7, a_delta_order(nonce=7, dest_token=NATIVE_TOKEN, beneficiary=BOB))
TO_CAROL = a_round_order(8, a_delta_order(nonce=8, beneficiary=CAROL))
SHARES = asked_for(a_productive_order(), 4)
WALLET = frozenset({b"wallet"})
OF_BID, DOUBTFUL = "BelowMinimum(uint256,uint256)", "NativeTransferFailed(address)"
LACKS, UNSIGNED = "PullFailed(address)", "InvalidSignature()"
ACTED, CODE = "an owner acted in its block: no", "code of an owner's ran in it: no"


def a_log(name: bytes, owner: bytes, other: bytes, amount: int = 1, token: bytes = WETH) -> Log:
    topics = name, address_word(owner), address_word(other)
    return Log(token, topics, uint_word(amount), HEIGHT, OWN, TX, 0, 0)


def refused(stage: Stage, error: str) -> None:
    """Have a settlement refused without the agent's calls too, as when an owner is the cause."""
    stage.chain.refuses = lambda call, at: error
    stage.relayer.ends["key"] = reverted(error)


def resting(stage: Stage) -> set[bytes]:
    """Owners that rest."""
    return {owner for owner in (ALICE, BOB, CAROL) if stage.costs.rests_until_ms(owner)}


@pytest.mark.parametrize(
    ("orders", "logs", "nonces", "actors"),
    [
        ((SALE,), [], {}, set()),
        ((SALE,), [a_log(TRANSFER, ALICE, BOB)], {}, {ALICE}),
        ((SALE,), [a_log(TRANSFER, ALICE, BOB, 0)], {}, set()),
        ((SALE,), [a_log(TRANSFER, ALICE, BOB, token=USDC)], {}, set()),
        ((SALE,), [a_log(TRANSFER, BOB, ALICE)], {}, set()),
        ((SALE,), [a_log(APPROVAL, ALICE, DELTA, 0)], {}, {ALICE}),
        ((SALE,), [a_log(APPROVAL, ALICE, BOB)], {}, set()),
        ((SALE,), [], {ALICE: (4, 5)}, {ALICE}),
        ((SALE,), [], {ALICE: (4, 4)}, set()),
        ((SALE,), [], {BOB: (4, 5)}, set()),
        ((SALE, BOBS), [a_log(TRANSFER, BOB, CAROL)], {}, {BOB}),
        ((SALE, BOBS), [a_log(TRANSFER, BOB, CAROL)], {ALICE: (0, 1)}, {ALICE, BOB}),
        ((NATIVE,), [], {CAROL: (0, 1)}, {ALICE}),
        ((NATIVE,), [], {CAROL: (1, 1)}, set()),
        ((TO_CAROL,), [], {CAROL: (0, 1)}, set()),
        ((TO_BOB, BOBS), [], {BOB: (0, 1)}, {BOB}),
    ],
)
async def test_owners_that_acted_in_the_block_pay_and_no_others(
    tmp_path: Path,
    mock_clock: MockClock,
    orders: tuple[Any, ...],
    logs: list[Log],
    nonces: dict[bytes, tuple[int, int]],
    actors: set[bytes],
) -> None:
    """A receiver of native tokens acts for the owner that names it, unless it is an owner itself."""
    async with a_stage(tmp_path, mock_clock) as stage:
        await stage.submit(*orders)
        stage.chain.logs = logs
        for account, (before, own) in nonces.items():
            stage.chain.nonces |= {(account, BEFORE): before, (account, OWN): own}
        refused(stage, DOUBTFUL)
        await ended(stage, orders[0], crossed(*orders)[0])
        assert resting(stage) == actors
        assert stage.told[-1][2].detail == (ACTED if actors else "no")
        assert stage.faults() == ([] if actors else [AgentFault.REVERTED])


@pytest.mark.parametrize("is_away", [False, True])
async def test_nobody_acted_in_a_block_that_cannot_be_read(
    tmp_path: Path, mock_clock: MockClock, is_away: bool
) -> None:
    async with a_stage(tmp_path, mock_clock) as stage:
        await stage.submit(SALE)
        stage.chain.logs = [a_log(TRANSFER, ALICE, BOB)]
        refused(stage, DOUBTFUL)
        stage.chain.has_block = is_away
        stage.chain.error = NodeUnavailable("nobody answers") if is_away else None
        await ended(stage, SALE, a_settlement(SALE, "key"))
        assert (resting(stage), stage.faults()) == (set(), [AgentFault.REVERTED])


async def test_nobody_acted_in_a_settlement_that_was_never_mined(
    tmp_path: Path, mock_clock: MockClock
) -> None:
    async with a_stage(tmp_path, mock_clock) as stage:
        await stage.submit(SALE)
        stage.chain.logs = [a_log(TRANSFER, ALICE, BOB)]
        stage.codes[BOB] = WALLET
        stage.relayer.ends["key"] = unmined(IntentCause.UNKNOWN)
        await ended(stage, SALE, a_settlement(SALE, "key"))
        assert (resting(stage), stage.faults()) == (set(), [AgentFault.REVERTED])


@pytest.mark.parametrize(
    ("asked", "error", "acts", "lacking", "payers"),
    [
        (SALE, LACKS, False, (), set()),
        (SALE, LACKS, False, (SALE,), {ALICE}),
        (SALE, LACKS, False, (BOBS,), {BOB}),
        (SALE, LACKS, False, (SALE, BOBS), {ALICE, BOB}),
        (SALE, LACKS, True, (BOBS,), {ALICE}),
        (SALE, "NonceUsed(uint256)", True, (), {ALICE}),
        (SALE, "NonceUsed(uint256)", False, (BOBS,), set()),
        (SALE, "Overfilled(uint256)", True, (BOBS,), set()),
        (SALE, OF_BID, True, (BOBS,), set()),
        (SHARES, "RedemptionFailed(address)", True, (SHARES, BOBS), set()),
        (SHARES, "TooManyShares(uint256,uint256)", True, (SHARES, BOBS), set()),
    ],
)
async def test_an_owner_pays_for_its_acts_else_for_its_missing_funds(
    tmp_path: Path,
    mock_clock: MockClock,
    asked: Any,
    error: str,
    acts: bool,
    lacking: tuple[Any, ...],
    payers: set[bytes],
) -> None:
    async with a_stage(tmp_path, mock_clock) as stage:
        await stage.submit(asked, BOBS)
        stage.chain.nonces[ALICE, OWN] = int(acts)
        await stage.begin(asked, crossed(asked, BOBS)[0])
        await stage.until(lambda: bool(stage.relayer.waits))
        stage.lacking = {one.order_hash for one in lacking}
        refused(stage, error)
        await stage.until(lambda: stage.settling.statistics().under_way == 0)
        assert resting(stage) == payers
        assert {*stage.heights[:2]} == {(asked.order_hash, 0), (BOBS.order_hash, 0)}
        assert {height for _, height in stage.heights[2:]} == {HEIGHT}


@pytest.mark.parametrize(
    ("outcome", "acts", "payers"),
    [
        (reverted(DOUBTFUL), False, {ALICE}),
        (reverted("", cause=IntentCause.UNEXPLAINED), False, {ALICE}),
        (reverted("", cause=IntentCause.UNEXPLAINED), True, {BOB}),
        (reverted("", cause=IntentCause.OUT_OF_GAS), False, set()),
        (reverted("", cause=IntentCause.OUT_OF_GAS), True, {BOB}),
        (reverted(UNSIGNED), True, {BOB}),
        (reverted(UNSIGNED), False, {ALICE}),
    ],
)
async def test_code_pays_where_it_may_have_refused_and_no_owner_acted(
    tmp_path: Path, mock_clock: MockClock, outcome: IntentOutcome, acts: bool, payers: set[bytes]
) -> None:
    """Alice is a wallet; Bob, whose order is crossed with hers, is none."""
    async with a_stage(tmp_path, mock_clock) as stage:
        await stage.submit(SALE, BOBS)
        stage.codes[ALICE] = WALLET
        stage.chain.nonces[BOB, OWN] = int(acts)
        refused(stage, DOUBTFUL if outcome == reverted(DOUBTFUL) else UNSIGNED)
        stage.relayer.ends["key"] = outcome
        await ended(stage, SALE, crossed(SALE, BOBS)[0])
        assert resting(stage) == payers


@pytest.mark.parametrize(("actor", "tried"), [(ALICE, ["key"]), (BOB, ["key", "second"])])
async def test_an_order_whose_owner_pays_has_no_runner_up(
    tmp_path: Path, mock_clock: MockClock, actor: bytes, tried: list[str]
) -> None:
    async with a_stage(tmp_path, mock_clock) as stage:
        await stage.submit(SALE, BOBS)
        stage.chain.nonces[actor, OWN] = 1
        refused(stage, DOUBTFUL)
        stage.relayer.ends["second"] = unmined()
        await ended(stage, SALE, crossed(SALE, BOBS)[0], a_settlement(SALE, "second"))
        assert stage.relayer.keys() == tried
        assert stage.notices() == [Notice.SETTLING, Notice.REVERTED] * len(tried)
        assert (SALE.order_hash in stage.settling._runners_up) is (actor is BOB)


# --- Agents that waste gas ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "acts", "code", "gas_used", "is_wasted"),
    [
        (DOUBTFUL, True, False, 100_000, False),
        (DOUBTFUL, True, False, 100_001, True),
        (DOUBTFUL, False, False, 100_001, False),
        (DOUBTFUL, False, True, 100_001, False),
        (LACKS, True, False, 100_001, False),
    ],
)
async def test_an_agent_wastes_the_gas_of_its_calls_above_half_if_an_owner_acted(
    tmp_path: Path, mock_clock: MockClock, error: str, acts: bool, code: bool, gas_used: int, is_wasted: bool
) -> None:
    """The owner's part of a settlement comes first."""
    async with a_stage(tmp_path, mock_clock) as stage:
        await stage.submit(SALE)
        stage.costs.wasted("ann", GAS_OF_DOUBTS.most)
        stage.chain.nonces[ALICE, OWN] = int(acts)
        stage.codes[ALICE] = WALLET if code else frozenset()
        refused(stage, error)
        stage.relayer.ends["key"] = reverted(error, gas_used=gas_used)
        await ended(stage, SALE, a_settlement(SALE, "key"))
        assert stage.costs.is_barred("ann", CAROL) is is_wasted


async def test_the_gas_of_a_crossing_is_wasted_once(tmp_path: Path, mock_clock: MockClock) -> None:
    async with a_stage(tmp_path, mock_clock) as stage:
        await stage.submit(SALE, BOBS)
        stage.chain.nonces |= {(ALICE, OWN): 1, (BOB, OWN): 1}
        for asked, settlement in zip((SALE, BOBS), crossed(SALE, BOBS), strict=True):
            await stage.begin(asked, settlement)
        await stage.until(lambda: len(stage.relayer.waits) >= 2)
        refused(stage, DOUBTFUL)
        stage.relayer.ends["key"] = reverted(DOUBTFUL, gas_used=GAS_OF_DOUBTS.most)
        await stage.until(lambda: stage.settling.statistics().under_way == 0)
        assert stage.settling.statistics().failed == 2
        assert not stage.costs.is_barred("ann", CAROL)
        stage.costs.wasted("ann", 10_000)
        assert stage.costs.is_barred("ann", CAROL)


# --- Doubts ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcome", "is_lacking", "detail", "faults"),
    [
        (reverted("", cause=IntentCause.OUT_OF_GAS), False, CODE, [AgentFault.IN_DOUBT]),
        (reverted("", cause=IntentCause.OUT_OF_GAS), True, "the owner's funds are not there: no", []),
        (reverted(OF_BID), False, "no", [AgentFault.REVERTED]),
    ],
)
async def test_only_a_failure_in_doubt_counts_once_another_agent_settles(
    tmp_path: Path,
    mock_clock: MockClock,
    outcome: IntentOutcome,
    is_lacking: bool,
    detail: str,
    faults: list[AgentFault],
) -> None:
    """Alice is a wallet, and her funds may be missing as well."""
    async with a_stage(tmp_path, mock_clock) as stage:
        await stage.submit(SALE)
        stage.codes[ALICE] = WALLET
        stage.chain.refuses = lambda call, at: OF_BID
        await stage.begin(SALE, a_settlement(SALE, "key"))
        await stage.until(lambda: bool(stage.relayer.waits))
        stage.lacking = {SALE.order_hash} if is_lacking else set()
        stage.relayer.ends["key"] = outcome
        await stage.until(lambda: stage.settling.statistics().under_way == 0)
        assert stage.told[-1][2].detail == detail
        stage.lacking.clear()
        await stage.becomes(SALE, OrderStatus.ACTIVE)
        await stage.fill(SALE, spent=1, received=10_000)
        stage.relayer.ends["second"] = mined()
        await ended(stage, SALE, a_settlement(SALE, "second", agent="bob"))
        assert stage.faults() == faults


@pytest.mark.parametrize(("is_crossed", "failures"), [(False, 1), (True, 0)])
async def test_missing_funds_count_against_a_single_order_and_not_against_a_crossed_one(
    tmp_path: Path, mock_clock: MockClock, is_crossed: bool, failures: int
) -> None:
    async with a_stage(tmp_path, mock_clock) as stage:
        await stage.submit(SALE, BOBS)
        refused(stage, LACKS)
        await ended(stage, SALE, crossed(SALE, BOBS)[0] if is_crossed else a_settlement(SALE, "key"))
        assert (stage.live(SALE).row.failures, stage.live(SALE).in_vain) == (failures, 1)
