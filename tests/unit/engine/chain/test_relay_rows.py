"""The tables of relay intents and transactions drive the plan: each row is taken by it."""

from itertools import product
from typing import Any

import pytest
from msgspec.structs import replace

from cambist.codecs.transactions import Transaction, sign_transaction
from cambist.config.errors import TransitionError
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.chain.port import GasFees, Header, Receipt
from cambist.engine.chain.relay import relay_acts, relay_plan
from cambist.engine.chain.relay.fee_policy import FeePolicy, GasPrice
from cambist.engine.chain.relay.relay_acts import Seen, Sign
from cambist.engine.chain.relay.relay_lifecycles import (
    RELAY_INTENT_LIFECYCLE,
    RELAY_TRANSACTION_LIFECYCLE,
    IntentReason,
    TxReason,
)
from cambist.engine.chain.relay.relay_state import (
    TOO_LATE,
    Facts,
    NonceSlot,
    RelayMemory,
    RelayPolicy,
    TakenNonce,
)
from cambist.engine.lifecycle import Lifecycle
from cambist.engine.store.rows import ChainIntent, ChainTx, IntentCause, IntentState, TxStatus, amount32
from support.store.stores import NOW_MS, a_relay_intent, a_transaction, hash_of

_I, _T = IntentState, TxStatus
KEY = SigningKey(b"\x07" * 32)
POLICY = RelayPolicy(FeePolicy(10**12, 0, 10**9, 1_250), 3, 12_000, 4, 0)
HEAD = Header(90, hash_of(90), hash_of(89), NOW_MS // 1_000, 10**9)
LONG_AGO_MS = NOW_MS - 3_600_000


def rows_taken(lifecycle: Lifecycle[Any, Any], monkeypatch: pytest.MonkeyPatch) -> set[tuple[Any, Any]]:
    """Rows that the plan has taken since, as (before, reason)."""
    taken: set[tuple[Any, Any]] = set()
    after = lifecycle.after

    def noted(before: Any, reason: Any) -> Any:
        found = after(before, reason)
        if found is not None:
            taken.add((before, reason))
        return found

    monkeypatch.setattr(lifecycle, "after", noted)
    return taken


def an_intent(state: IntentState, *, is_late: bool = False) -> ChainIntent:
    intent = a_relay_intent("a call", state=state)
    return replace(intent, deadline_s=0) if is_late else intent


def a_tx(status: TxStatus, *, is_filler: bool = False) -> ChainTx:
    raw = sign_transaction(Transaction(1, 5, 1, 2, 21_000, b"\x0c" * 20, 0, b""), KEY).raw
    tx = a_transaction("" if is_filler else "a call", nonce=5, status=status)
    place: dict[str, Any] = {"block_number": 80, "block_hash": hash_of(80)} if status is _T.MINED else {}
    return replace(tx, raw=raw, fee_max_wei=amount32(2), **place)


def facts(*, nonce: int, on_chain: bool = False) -> Facts:
    blocks = frozenset({hash_of(80)} if on_chain else ())
    return Facts(HEAD, nonce, 10**18, GasFees(10**9, 1), {}, blocks)


def planned(slot: NonceSlot | None, seen: Facts, *waiting: ChainIntent) -> None:
    memory = RelayMemory(taken={5: TakenNonce(replace(HEAD, number=1), LONG_AGO_MS)})
    slots = {} if slot is None else {slot.nonce: slot}
    relay_plan.plan(slots, waiting, seen, memory, POLICY, NOW_MS)


def take_all() -> None:
    """Each step of the plan in each state that it may find."""
    waiting = an_intent(_I.WAITING)
    relay_acts.signed(Sign(5, waiting, GasPrice(2, 1)), NOW_MS)
    relay_acts.forbidden(waiting, "no", NOW_MS)
    relay_acts.revived(a_tx(_T.REPLACED), NOW_MS)
    planned(None, facts(nonce=5), an_intent(_I.WAITING, is_late=True))
    planned(NonceSlot(5, (a_tx(_T.SIGNED),), an_intent(_I.PENDING)), facts(nonce=6))
    states = product((_I.PENDING, _I.MINED, _I.REVERTED), (_T.SIGNED, _T.MINED), (False, True), (False, True))
    for state, status, is_filler, is_late in states:
        tx, intent = a_tx(status, is_filler=is_filler), an_intent(state, is_late=is_late)
        slot = NonceSlot(5, (tx,), intent)
        for succeeded, is_final in product((False, True), (False, True)):
            receipt = Receipt(tx.tx_hash, succeeded, 80, hash_of(80), 0, 21_000, 1, None, ())
            relay_acts.seen(Seen(slot, tx, receipt, is_final), None, NOW_MS)
        if status is _T.MINED:
            planned(slot, facts(nonce=6))


def test_each_row_is_taken_by_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    of_intents = rows_taken(RELAY_INTENT_LIFECYCLE, monkeypatch)
    of_transactions = rows_taken(RELAY_TRANSACTION_LIFECYCLE, monkeypatch)
    take_all()
    assert of_intents == RELAY_INTENT_LIFECYCLE.table.keys()
    assert of_transactions == RELAY_TRANSACTION_LIFECYCLE.table.keys()
    assert {reason for _, reason in RELAY_INTENT_LIFECYCLE.table} == set(IntentReason)
    assert {reason for _, reason in RELAY_TRANSACTION_LIFECYCLE.table} == set(TxReason)


def test_a_step_that_the_table_lacks_is_refused() -> None:
    with pytest.raises(TransitionError, match=r"MINED: 'mined'.* leads nowhere from WAITING"):
        RELAY_INTENT_LIFECYCLE.step(_I.WAITING, IntentReason.MINED)
    assert RELAY_INTENT_LIFECYCLE.step(_I.MINED, IntentReason.MINED) is _I.MINED


@pytest.mark.parametrize("words", [TOO_LATE.words, "other words"])
@pytest.mark.parametrize("cause", IntentCause)
def test_a_given_up_intent_ends_by_its_cause_and_not_by_its_words(cause: IntentCause, words: str) -> None:
    intent = replace(an_intent(_I.PENDING), cause=cause, reason=words)
    filler = a_tx(_T.SIGNED, is_filler=True)
    receipt = Receipt(filler.tx_hash, True, 80, hash_of(80), 0, 21_000, 1, None, ())
    write = relay_acts.seen(
        Seen(NonceSlot(5, (filler,), intent), filler, receipt, is_final=True), None, NOW_MS
    )
    (change,) = [one for one in write.changes if one.table == "chain_intent"]
    end = _I.CANCELLED if cause is IntentCause.DEADLINE else _I.FAILED
    assert change.values[:2] == (end, words)  # type: ignore[union-attr]
    assert change.values[6:] == (cause, None)  # type: ignore[union-attr]
