"""What a relayer does when one thing goes wrong, on a modelled chain: each case by name."""

import inspect
from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from cambist.engine.chain.port import Call
from cambist.engine.chain.relay_plan import CANCELLED, FAILED, FINAL, MINED, PENDING, REVERTED, WAITING
from support.chain_model import GWEI
from support.relayer_life import CAP_WEI, CONFIRMATIONS, KEY, RICH_WEI, TARGET, Life, a_life, check_always


def simulated(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run a test with a life of its own, under a clock that jumps."""

    async def live(folder: Path, more: dict[str, Any]) -> None:
        async with a_life(folder) as life:
            await test(life, **more)
            check_always(life)

    def run(tmp_path: Path, **more: Any) -> None:
        trio.run(live, tmp_path, more, clock=trio.testing.MockClock(autojump_threshold=0))

    _, *others = inspect.signature(test).parameters.values()
    folder = inspect.Parameter("tmp_path", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    run.__signature__ = inspect.Signature([folder, *others])  # type: ignore[attr-defined]
    run.__name__ = test.__name__
    return run


async def state_of(life: Life, key: str) -> str:
    outcome = await life.relayer.outcome(key)
    assert outcome is not None
    return outcome.state


@simulated
async def test_mined_then_final(life: Life) -> None:
    key = await life.submit("E")
    await trio.sleep(1)
    assert await state_of(life, key) == PENDING
    life.chain.mine()
    outcome = await life.ended(key, final=False)
    assert (outcome.state, outcome.is_final) == (MINED, False)
    assert outcome.receipt is not None
    assert outcome.receipt.succeeded
    life.chain.mine()
    await trio.sleep(2)
    assert await state_of(life, key) == MINED
    life.chain.mine()
    outcome = await life.ended(key)
    assert (outcome.state, outcome.is_final, outcome.reason) == (FINAL, True, "")
    assert CONFIRMATIONS == 3


@simulated
async def test_submitting_again_changes_nothing(life: Life) -> None:
    call = Call(TARGET, b"twice", gas_max=100_000)
    assert (await life.relayer.submit("twice", call)).state == WAITING
    await trio.sleep(1)
    assert (await life.relayer.submit("twice", call)).state == PENDING
    with pytest.raises(ValueError, match="effect twice was submitted with another call"):
        await life.relayer.submit("twice", Call(TARGET, b"other", gas_max=100_000))
    await life.do(("blocks", 5, 100))
    assert (await life.relayer.submit("twice", call)).state == FINAL
    assert [tx.transaction.data for tx in life.chain.mined if tx] == [b"twice"]


@simulated
async def test_a_revert_is_a_failure_with_its_reason(life: Life) -> None:
    key = await life.submit("R")
    await life.do(("blocks", 2, 100))
    assert await state_of(life, key) == REVERTED
    await life.do(("blocks", 3, 100))
    outcome = await life.ended(key)
    assert (outcome.state, outcome.reason) == (FAILED, "the model says no")


@simulated
async def test_a_gap_is_filled(life: Life) -> None:
    life.chain.is_away = True  # so that all get their nonces at once
    await life.do(("submit", "EIE", None))
    life.chain.is_away = False
    await life.do(("blocks", 6, 100))
    mined = [tx.transaction for tx in life.chain.mined if tx]
    assert [(tx.data, tx.to) for tx in mined] == [(b"E 0", TARGET), (b"", KEY.address), (b"E 2", TARGET)]
    outcome = await life.ended("001 I")
    assert (outcome.state, outcome.reason) == (
        FAILED, "invalid transaction: invalid transaction: the model does not like it",
    )  # fmt: skip


@simulated
async def test_a_dropped_transaction_is_handed_in_again_as_it_was(life: Life) -> None:
    key = await life.submit("E")
    await trio.sleep(1)
    life.chain.drop(0)
    await life.do(("blocks", 11, 100))
    await life.do(("blocks", 5, 100))
    assert (await life.ended(key)).state == FINAL
    assert len({tx.tx_hash for tx in life.chain.handed_in}) == 1
    assert len(life.chain.handed_in) == 2


@simulated
async def test_a_stuck_one_is_replaced_until_the_cap_and_then_waits(life: Life) -> None:
    key = await life.submit("E")
    await trio.sleep(1)
    for gwei in (2, 4, 8, 16, 30, 60):
        life.chain.base_fee_wei = gwei * GWEI
        await trio.sleep(15)
    prices = [tx.transaction.fee_max_wei for tx in life.chain.handed_in]
    assert max(prices) <= CAP_WEI
    standing = life.relayer.statistics()
    assert (standing.stuck, standing.at_cap, standing.pending) == (1, 1, 1)
    assert await state_of(life, key) == PENDING
    life.chain.base_fee_wei = GWEI
    await life.do(("blocks", 5, 100))
    assert (await life.ended(key)).state == FINAL
    assert life.relayer.statistics().at_cap == 0


@simulated
async def test_both_fees_of_a_replacement_rise(life: Life) -> None:
    await life.submit("E")
    await trio.sleep(60)
    offers = [(tx.transaction.fee_max_wei, tx.transaction.tip_wei) for tx in life.chain.handed_in]
    distinct = sorted(set(offers))
    assert len(distinct) >= 4
    for before, after in pairwise(distinct):
        assert after[0] * 8 >= before[0] * 9
        assert after[1] * 8 >= before[1] * 9


@simulated
async def test_a_reorganisation_takes_it_back_and_it_is_mined_again(life: Life) -> None:
    key = await life.submit("E")
    await life.do(("blocks", 2, 100))
    before = await life.ended(key, final=False)
    life.chain.reorganise(2, keep=False)
    await trio.sleep(1.5)
    assert await state_of(life, key) == PENDING
    await life.do(("blocks", 6, 100))
    outcome = await life.ended(key)
    assert (outcome.state, outcome.tx_hash) == (FINAL, before.tx_hash)
    assert life.relayer.statistics().counts["reorganised"] == 1


@simulated
async def test_a_nonce_that_somebody_else_used_is_replaced_only_once_that_is_final(life: Life) -> None:
    key = await life.submit("E")
    await trio.sleep(1)
    life.chain.foreign()
    await trio.sleep(30)
    assert [tx.transaction.nonce for tx in life.chain.handed_in] == [0]
    await life.do(("blocks", 8, 100))
    assert (await life.ended(key)).state == FINAL
    assert [tx and tx.transaction.nonce for tx in life.chain.mined] == [None, 1]


@simulated
async def test_a_foreign_transaction_that_is_taken_back_leaves_one_of_ours(life: Life) -> None:
    key = await life.submit("E")
    await trio.sleep(1)
    life.chain.foreign()
    await trio.sleep(10)
    life.chain.reorganise(1, keep=False)
    await life.do(("blocks", 20, 100))
    assert (await life.ended(key)).state == FINAL
    assert [tx and tx.transaction.nonce for tx in life.chain.mined] == [0]


@simulated
async def test_what_is_late_is_cancelled_unless_it_is_mined(life: Life) -> None:
    waiting_key = await life.submit("E", within_s=5)
    await trio.sleep(1)
    mined_key = await life.submit("E", within_s=60)
    await trio.sleep(10)
    await life.do(("blocks", 6, 100))
    waiting, mined = await life.ended(waiting_key), await life.ended(mined_key)
    assert (waiting.state, waiting.reason) == (CANCELLED, "its deadline passed before it was mined")
    assert mined.state == FINAL
    assert [tx.transaction.data for tx in life.chain.mined if tx] == [b"", b"E 1"]


@simulated
async def test_too_little_gas_money_is_a_state(life: Life) -> None:
    life.chain.balance_wei = 10**13
    key = await life.submit("E")
    await trio.sleep(60)
    standing = life.relayer.statistics()
    assert (standing.starved, standing.waiting, standing.pending) == (True, 1, 0)
    assert standing.balance_wei == 10**13
    assert 60_000 <= standing.oldest_age_ms <= 61_000
    assert life.chain.handed_in == []
    life.chain.balance_wei = RICH_WEI
    await life.do(("blocks", 6, 100))
    assert (await life.ended(key)).state == FINAL
    assert not life.relayer.statistics().starved


@simulated
async def test_an_account_that_runs_dry_is_not_asked_in_a_loop(life: Life) -> None:
    await life.submit("E")
    await trio.sleep(1)
    life.chain.drop(0)
    life.chain.balance_wei = 0
    await trio.sleep(100)
    assert life.relayer.statistics().starved
    assert len(life.chain.handed_in) <= 2 + 100 // 10


@simulated
async def test_a_node_that_is_away_is_asked_less_and_less(life: Life) -> None:
    life.chain.is_away = True
    key = await life.submit("E")
    asked_before = life.chain.asked
    await trio.sleep(120)
    assert life.relayer.statistics().away == "the model is away"
    assert life.chain.asked - asked_before <= 12
    life.chain.is_away = False
    await trio.sleep(31)
    await life.do(("blocks", 6, 100))
    assert (await life.ended(key)).state == FINAL
    assert life.relayer.statistics().away == ""


@pytest.mark.parametrize("after", range(12))
@simulated
async def test_dying_between_any_two_things_signs_nothing_twice(life: Life, after: int) -> None:
    await life.do(("crash", after))
    key = await life.submit("E")
    await life.do(("blocks", 8, 100))
    assert (await life.ended(key)).state == FINAL
    assert len({tx.tx_hash for tx in life.chain.handed_in}) == 1


@simulated
async def test_what_the_key_may_not_sign_fails(life: Life) -> None:
    await life.relayer.submit("elsewhere", Call(b"\x0e" * 20, b"", gas_max=100_000))
    outcome = await life.ended("elsewhere")
    assert outcome.state == FAILED
    assert "is not on this key's list" in outcome.reason
    assert life.chain.handed_in == []


@simulated
async def test_waiting_for_nothing_is_an_error(life: Life) -> None:
    assert await life.relayer.outcome("nothing") is None
    with pytest.raises(KeyError):
        await life.relayer.wait("nothing")


@pytest.mark.parametrize(
    "call",
    [
        Call(b"", b"", gas_max=100_000),
        Call(TARGET, b""),
        Call(TARGET, b"\1" * 200, gas_max=28_999),
        Call(TARGET, bytes(200_000), gas_max=100_000),
    ],
)
@simulated
async def test_what_is_no_call_is_refused_at_once(life: Life, call: Call) -> None:
    with pytest.raises(ValueError, match=r"an intent has|calldata of"):
        await life.relayer.submit("key", call)
    assert await life.relayer.outcome("key") is None
