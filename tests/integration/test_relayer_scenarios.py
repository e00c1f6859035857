"""A relayer's reaction to single faults on a modelled chain: each case by name."""

import inspect
from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from msgspec.structs import replace

from cambist.config.timeouts import RELAY_PAUSE_S_MAX
from cambist.crypto.custody.transaction_policy import PolicedRelayKey, TransactionPolicy
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.chain.port import EthCall
from cambist.engine.chain.relay.relay_state import TOO_LATE
from cambist.engine.chain.relay.relayer import Relayer
from cambist.engine.store.leases import Leases
from cambist.engine.store.rows import IntentCause, IntentState, TxStatus
from cambist.engine.store.tables import CHAIN_TX
from cambist.engine.store.units import Done, Duplicate, Unit, new
from support.chain.relayer_life import (
    CAP_WEI,
    CHAIN_ID,
    CONFIRMATIONS,
    GWEI,
    KEY,
    POLICY,
    REFUSAL_DATA,
    RICH_WEI,
    TARGET,
    Life,
    a_life,
    check_always,
)

OTHER = SigningKey(b"\x08" * 32)


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


async def state_of(life: Life, key: str) -> IntentState:
    outcome = await life.relayer.outcome(key)
    assert outcome is not None
    return outcome.state


@simulated
async def test_mined_then_final(life: Life) -> None:
    key = await life.submit("E")
    await trio.sleep(1)
    assert await state_of(life, key) == IntentState.PENDING
    life.chain.mine()
    outcome = await life.ended(key, final=False)
    assert (outcome.state, outcome.is_final) == (IntentState.MINED, False)
    assert outcome.receipt is not None
    assert outcome.receipt.succeeded
    life.chain.mine()
    await trio.sleep(2)
    assert await state_of(life, key) == IntentState.MINED
    life.chain.mine()
    outcome = await life.ended(key)
    assert (outcome.state, outcome.is_final, outcome.reason) == (IntentState.FINAL, True, "")
    assert CONFIRMATIONS == 3


@simulated
async def test_submitting_again_changes_nothing(life: Life) -> None:
    call = EthCall(TARGET, b"twice", gas_max=100_000)
    assert (await life.relayer.relay("twice", call)).state == IntentState.WAITING
    await trio.sleep(1)
    assert (await life.relayer.relay("twice", call)).state == IntentState.PENDING
    with pytest.raises(ValueError, match="effect twice was submitted with another call"):
        await life.relayer.relay("twice", EthCall(TARGET, b"other", gas_max=100_000))
    await life.do(("blocks", 5, 100))
    assert (await life.relayer.relay("twice", call)).state == IntentState.FINAL
    assert [tx.transaction.data for tx in life.chain.mined if tx] == [b"twice"]


@simulated
async def test_a_revert_is_a_failure_with_its_reason(life: Life) -> None:
    key = await life.submit("R")
    await life.do(("blocks", 2, 100))
    assert await state_of(life, key) == IntentState.REVERTED
    await life.do(("blocks", 3, 100))
    outcome = await life.ended(key)
    assert (outcome.state, outcome.reason) == (IntentState.FAILED, "the model says no")
    assert (outcome.cause, outcome.error4) == (IntentCause.REVERTED, REFUSAL_DATA[:4])


@simulated
async def test_a_gap_is_filled(life: Life) -> None:
    life.chain.is_away = True  # so that all get their nonces at once
    await life.do(("submit", "EIE", None))
    life.chain.is_away = False
    await life.do(("blocks", 20, 100))
    mined = [tx.transaction for tx in life.chain.mined if tx]
    assert [(tx.data, tx.to) for tx in mined] == [(b"E 0", TARGET), (b"", KEY.address), (b"E 2", TARGET)]
    outcome = await life.ended("001 I")
    assert (outcome.state, outcome.reason) == (
        IntentState.FAILED, "invalid transaction: the model does not like it",
    )  # fmt: skip


@simulated
async def test_a_gap_that_the_keys_policy_leaves_is_filled(life: Life) -> None:
    life.chain.is_away = True  # so that all get their nonces at once
    await life.do(("submit", "FE", None))
    life.chain.is_away = False
    await life.do(("blocks", 8, 100))
    assert [tx.transaction.data for tx in life.chain.mined if tx] == [b"", b"E 1"]
    assert (await life.ended("000 F")).state == IntentState.FAILED
    assert (await life.ended("001 E")).state == IntentState.FINAL


@simulated
async def test_a_replacement_that_the_keys_policy_forbids_holds_up_no_other_transaction(life: Life) -> None:
    mined = await life.submit("E")
    await trio.sleep(1)
    life.chain.mine()
    await life.submit("E")
    await trio.sleep(1)
    allowed = frozenset({(CHAIN_ID, TARGET), (CHAIN_ID, KEY.address)})
    life.relayer._key = PolicedRelayKey(KEY, TransactionPolicy(allowed, CAP_WEI, 50_000))
    life.chain.base_fee_wei *= 20
    await life.do(("blocks", 8, 100))
    assert (await life.ended(mined)).state == IntentState.FINAL
    before = len(life.chain.handed_in)
    await trio.sleep(300)
    again = [tx.transaction.nonce for tx in life.chain.handed_in[before:]]
    assert set(again) == {1}, "a node may have dropped it"


@simulated
async def test_a_node_that_shows_receipts_late_has_nothing_sent_twice(life: Life) -> None:
    key = await life.submit("E")
    await trio.sleep(1)
    life.chain.is_blind = True
    life.chain.mine()
    await trio.sleep(1.2)
    for _ in range(5):
        life.chain.mine()
    await trio.sleep(1.2)
    life.chain.is_blind = False
    await life.do(("blocks", 8, 100))
    assert (await life.ended(key)).state == IntentState.FINAL
    assert len({tx.tx_hash for tx in life.chain.handed_in}) == 1


@simulated
async def test_a_receipt_of_a_block_that_is_gone_counts_for_nothing(life: Life) -> None:
    key = await life.submit("E")
    await life.do(("blocks", 2, 100))
    assert await state_of(life, key) == IntentState.MINED
    life.chain.shows_gone = True
    life.chain.reorganise(2, keep=False)
    life.chain.foreign()
    await trio.sleep(2)
    assert await state_of(life, key) == IntentState.PENDING
    await life.do(("blocks", 12, 100))
    assert (await life.ended(key)).state == IntentState.FINAL
    assert [tx and tx.transaction.nonce for tx in life.chain.mined] == [None, 1]


@simulated
async def test_nothing_is_final_by_a_head_that_is_gone(life: Life) -> None:
    key = await life.submit("E")
    await life.do(("blocks", 2, 100))
    await life.ended(key, final=False)
    life.chain.held = ("fees", trio.Event())
    life.chain.mine()
    await trio.sleep(1.5)
    life.chain.reorganise(1, keep=False)
    life.chain.held[1].set()
    life.chain.held = None
    await trio.sleep(0.1)
    assert life.relayer.statistics().away == "the chain was re-organised during the look"
    assert await state_of(life, key) == IntentState.MINED
    await life.do(("blocks", 2, 100))
    assert (await life.ended(key)).state == IntentState.FINAL


@simulated
async def test_a_dropped_transaction_is_handed_in_again_as_it_was(life: Life) -> None:
    key = await life.submit("E")
    await trio.sleep(1)
    life.chain.drop(0)
    await life.do(("blocks", 11, 100))
    await life.do(("blocks", 5, 100))
    assert (await life.ended(key)).state == IntentState.FINAL
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
    assert await state_of(life, key) == IntentState.PENDING
    life.chain.base_fee_wei = GWEI
    await life.do(("blocks", 5, 100))
    assert (await life.ended(key)).state == IntentState.FINAL
    assert life.relayer.statistics().at_cap == 0


@simulated
async def test_both_fees_of_a_replacement_rise(life: Life) -> None:
    await life.submit("E")
    await life.do(("blocks", 60, 0))
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
    assert await state_of(life, key) == IntentState.PENDING
    await life.do(("blocks", 6, 100))
    outcome = await life.ended(key)
    assert (outcome.state, outcome.tx_hash) == (IntentState.FINAL, before.tx_hash)
    assert life.relayer.statistics().counts["reorganised"] == 1


@simulated
async def test_a_nonce_that_somebody_else_used_is_replaced_only_once_that_is_final(life: Life) -> None:
    key = await life.submit("E")
    await trio.sleep(1)
    life.chain.foreign()
    await trio.sleep(30)
    assert [tx.transaction.nonce for tx in life.chain.handed_in] == [0]
    await life.do(("blocks", 8, 100))
    assert (await life.ended(key)).state == IntentState.FINAL
    assert [tx and tx.transaction.nonce for tx in life.chain.mined] == [None, 1]


@simulated
async def test_a_foreign_transaction_that_is_taken_back_leaves_one_of_ours(life: Life) -> None:
    key = await life.submit("E")
    await trio.sleep(1)
    life.chain.foreign()
    await trio.sleep(10)
    life.chain.reorganise(1, keep=False)
    await life.do(("blocks", 20, 100))
    assert (await life.ended(key)).state == IntentState.FINAL
    assert [tx and tx.transaction.nonce for tx in life.chain.mined] == [0]


@simulated
async def test_a_chain_without_blocks_makes_nothing_dearer(life: Life) -> None:
    key = await life.submit("E")
    await trio.sleep(300)
    assert len({tx.tx_hash for tx in life.chain.handed_in}) == 1
    assert life.relayer.statistics().stuck == 0
    await life.do(("blocks", 5, 100))
    assert (await life.ended(key)).state == IntentState.FINAL


@pytest.mark.parametrize("which", ["the first", "what fills its nonce"])
@simulated
async def test_what_one_node_took_and_another_refuses_has_not_failed_before_its_nonce_is_used(
    life: Life, which: str
) -> None:
    key = await life.submit("E")
    await trio.sleep(1)
    first = life.chain.pool[0]
    await life.do(("crash", 0))
    life.chain.is_hostile = True
    await trio.sleep(120)
    assert await state_of(life, key) == IntentState.PENDING
    assert [tx.transaction.data for tx in life.chain.handed_in][-1] == b""
    if which == "the first":
        life.chain.pool[0] = first
    life.chain.mine()
    await trio.sleep(2)
    expected = IntentState.MINED if which == "the first" else IntentState.PENDING
    assert await state_of(life, key) == expected
    await life.do(("blocks", 4, 100))
    outcome = await life.ended(key)
    if which == "the first":
        assert (outcome.state, outcome.tx_hash) == (IntentState.FINAL, first[0])
    else:
        assert outcome.state == IntentState.FAILED
        assert outcome.reason == "invalid transaction: the model takes none of these now"
        assert outcome.cause is IntentCause.REFUSED


@simulated
async def test_a_refusal_that_passes_is_no_failure(life: Life) -> None:
    life.chain.is_hostile = True
    key = await life.submit("E")
    await trio.sleep(5)
    life.chain.is_hostile = False
    await life.do(("blocks", 20, 100))
    assert (await life.ended(key)).state == IntentState.FINAL
    assert len({tx.tx_hash for tx in life.chain.handed_in}) == 1


@pytest.mark.parametrize(("kind", "within_s"), [("I", None), ("E", 5)])
@simulated
async def test_what_is_given_up_at_the_cap_stands_in_nobodys_way(
    life: Life, kind: str, within_s: int | None
) -> None:
    life.chain.base_fee_wei = CAP_WEI * 3 // 4
    key = await life.submit(kind, within_s)
    await trio.sleep(1)
    life.chain.drop(0)
    after = await life.submit("E")
    life.chain.base_fee_wei = GWEI
    await trio.sleep(10)
    await life.do(("blocks", 20, 100))
    assert (await life.ended(key)).state in (IntentState.FAILED, IntentState.CANCELLED)
    assert (await life.ended(after)).state == IntentState.FINAL


@simulated
async def test_the_chain_goes_back_behind_what_was_final(life: Life) -> None:
    keys = [await life.submit(kind) for kind in "EE"]
    await life.do(("blocks", 6, 100))
    assert [await state_of(life, key) for key in keys] == [IntentState.FINAL] * 2
    life.chain.reorganise(6, keep=False)
    keys.append(await life.submit("E"))
    await trio.sleep(2)
    standing = life.relayer.statistics()
    assert (standing.undone, standing.pending, standing.waiting) == (2, 2, 1)
    life.chain.base_fee_wei = 9 * GWEI
    await life.do(("blocks", 20, 100))
    assert [await state_of(life, key) for key in keys] == [IntentState.FINAL] * 3
    assert [tx.transaction.data for tx in life.chain.mined if tx] == [b"E 0", b"E 1", b"E 2"]
    assert life.relayer.statistics().undone == 0
    assert not life.chain.pool


@simulated
async def test_what_failed_for_good_does_not_come_true_when_the_chain_goes_back(life: Life) -> None:
    key = await life.submit("R")
    await life.do(("blocks", 6, 100))
    assert await state_of(life, key) == IntentState.FAILED
    life.chain.reorganise(6, keep=False)
    await life.submit("E")
    await life.do(("blocks", 12, 100))
    assert await state_of(life, key) == IntentState.FAILED
    assert [tx.transaction.data for tx in life.chain.mined if tx] == [b"", b"E 1"]


@pytest.mark.parametrize("dies", [False, True])
@simulated
async def test_bytes_that_were_given_up_are_wanted_again(life: Life, dies: bool) -> None:
    key = await life.submit("E")
    await trio.sleep(1)
    life.chain.foreign()
    life.chain.balance_wei = 0
    await life.do(("blocks", 8, 0))
    assert await state_of(life, key) == IntentState.WAITING
    assert [tx.status for tx in await life.kept()] == [TxStatus.REPLACED]
    life.chain.reorganise(9, keep=False)
    await trio.sleep(2)
    if dies:
        await life.do(("crash", 6))
    life.chain.balance_wei = RICH_WEI
    await life.do(("blocks", 8, 100))
    assert (await life.ended(key)).state == IntentState.FINAL
    assert [(tx.nonce, tx.status) for tx in await life.kept()] == [(0, TxStatus.FINAL)]


@simulated
async def test_who_lost_the_shard_while_it_looked_signs_nothing(life: Life) -> None:
    life.chain.held = ("fees", trio.Event())
    key = await life.submit("E")
    await trio.sleep(1)
    await life.lose_shard()
    life.chain.held[1].set()
    life.chain.held = None
    await trio.sleep(30)
    assert await life.kept() == []
    assert life.chain.handed_in == []
    assert not life.relayer.statistics().holds
    await life.give_back()
    await life.do(("blocks", 10, 100))
    assert (await life.ended(key)).state == IntentState.FINAL


@simulated
async def test_who_lost_the_shard_while_it_hands_in_stops(life: Life) -> None:
    life.chain.is_away = True  # so that all are signed at once
    await life.do(("submit", "EEE", None))
    life.chain.held = ("send", trio.Event())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cambist.engine.chain.relay.relayer.RELAY_QUESTIONS_MAX", 2)
        life.chain.is_away = False
        await trio.sleep(3)
        assert len(await life.kept()) == 3
        await life.lose_shard()
        await trio.sleep(5)
        life.chain.held[1].set()
        life.chain.held = None
        await trio.sleep(30)
        assert len(life.chain.handed_in) == 2, "those that the node had when the shard was lost"
    await life.give_back()
    await life.do(("blocks", 10, 100))
    assert [tx.transaction.data for tx in life.chain.mined if tx] == [b"E 0", b"E 1", b"E 2"]
    assert len({tx.tx_hash for tx in life.chain.handed_in}) == 3


@simulated
async def test_one_nonce_has_one_first_transaction(life: Life) -> None:
    await life.submit("E")
    await trio.sleep(1)
    (first,) = await life.kept()
    second = replace(first, tx_hash=b"\2" * 32, effect_key="another")
    outcome = await life.store.write(Unit((new(CHAIN_TX, second),)))
    assert isinstance(outcome, Duplicate)
    assert outcome.unique == 1
    third = replace(second, replaces=first.tx_hash)
    assert await life.store.write(Unit((new(CHAIN_TX, third),))) == Done()


@simulated
async def test_a_key_is_known_to_one_sender_only(life: Life) -> None:
    await life.submit("E")
    chain: Any = life.chain
    policy = TransactionPolicy(frozenset({(CHAIN_ID, OTHER.address)}), CAP_WEI, 100_000)
    leases = Leases(life.store, "nobody", life_s=10, now_ms=life.now_ms)
    other = Relayer(chain, life.store, PolicedRelayKey(OTHER, policy), leases, POLICY, life.now_ms)
    with pytest.raises(ValueError, match="effect 000 E was submitted with another call"):
        await other.relay("000 E", EthCall(TARGET, b"E 0", gas_max=100_000))


@simulated
async def test_a_node_that_does_not_say_why_stops_nothing(life: Life) -> None:
    key = await life.submit("R")
    life.chain.is_mute = True
    await life.do(("blocks", 4, 100))
    outcome = await life.ended(key)
    assert outcome.state == IntentState.FAILED
    assert outcome.reason == "reverted; asking why failed: the model has no such state"
    assert outcome.cause is IntentCause.UNKNOWN


@simulated
async def test_a_revert_that_the_block_before_would_not_have_seen_is_unexplained(life: Life) -> None:
    key = await life.submit("R")
    life.chain.says_yes = True
    await life.do(("blocks", 4, 100))
    assert (await life.ended(key)).cause is IntentCause.UNEXPLAINED


@simulated
async def test_a_revert_that_used_all_its_gas_ran_out_of_it(life: Life) -> None:
    key = await life.submit("R")
    life.chain.gas_used = 100_000
    await life.do(("blocks", 4, 100))
    assert (await life.ended(key)).cause is IntentCause.OUT_OF_GAS


@simulated
async def test_what_is_late_is_cancelled_unless_it_is_mined(life: Life) -> None:
    waiting_key = await life.submit("E", within_s=5)
    await trio.sleep(1)
    mined_key = await life.submit("E", within_s=60)
    await trio.sleep(10)
    await life.do(("blocks", 6, 100))
    waiting, mined = await life.ended(waiting_key), await life.ended(mined_key)
    assert (waiting.state, waiting.cause) == (IntentState.CANCELLED, IntentCause.DEADLINE)
    assert waiting.reason == TOO_LATE.words
    assert mined.state == IntentState.FINAL
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
    assert (await life.ended(key)).state == IntentState.FINAL
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
async def test_a_node_that_is_away_is_asked_once_a_second_and_used_as_soon_as_it_is_back(
    life: Life,
) -> None:
    life.chain.is_away = True
    key = await life.submit("E")
    asked_before = life.chain.asked
    await trio.sleep(120)
    assert life.relayer.statistics().away == "the model is away"
    assert life.chain.asked - asked_before <= 122
    assert not life.chain.handed_in
    life.chain.is_away = False
    await trio.sleep(RELAY_PAUSE_S_MAX)
    assert life.chain.handed_in
    await life.do(("blocks", 6, 100))
    assert (await life.ended(key)).state == IntentState.FINAL
    assert life.relayer.statistics().away == ""


@pytest.mark.parametrize("after", range(12))
@simulated
async def test_dying_between_any_two_things_signs_nothing_twice(life: Life, after: int) -> None:
    await life.do(("crash", after))
    key = await life.submit("E")
    await life.do(("blocks", 8, 100))
    assert (await life.ended(key)).state == IntentState.FINAL
    assert len({tx.tx_hash for tx in life.chain.handed_in}) == 1


@simulated
async def test_what_the_key_may_not_sign_fails(life: Life) -> None:
    await life.relayer.relay("elsewhere", EthCall(b"\x0e" * 20, b"", gas_max=100_000))
    outcome = await life.ended("elsewhere")
    assert outcome.state == IntentState.FAILED
    assert "is not on this key's list" in outcome.reason
    assert outcome.cause is IntentCause.FORBIDDEN
    assert life.chain.handed_in == []


@simulated
async def test_waiting_for_nothing_is_an_error(life: Life) -> None:
    assert await life.relayer.outcome("nothing") is None
    with pytest.raises(KeyError):
        await life.relayer.wait("nothing")


@pytest.mark.parametrize(
    "call",
    [
        EthCall(b"", b"", gas_max=100_000),
        EthCall(TARGET, b""),
        EthCall(TARGET, b"\1" * 200, gas_max=28_999),
        EthCall(TARGET, bytes(200_000), gas_max=100_000),
    ],
)
@simulated
async def test_what_is_no_call_is_refused_at_once(life: Life, call: EthCall) -> None:
    with pytest.raises(ValueError, match=r"an intent has|calldata of"):
        await life.relayer.relay("key", call)
    assert await life.relayer.outcome("key") is None
