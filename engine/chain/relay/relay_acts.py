"""A relayer's planned actions, and the changes of rows that they store. Pure.

Each change names its reason, and takes the new state from the life cycles of intents and transactions.

Source: ARCHITECTURE.md, "Relayer"; lifecycles.md.
"""

from msgspec import Struct
from msgspec.structs import replace

from ...store.rows import ChainIntent, ChainTx, IntentCause, IntentState, TxStatus
from ...store.tables import CHAIN_INTENT, CHAIN_TX
from ...store.units import Change, cas
from ..port import Receipt
from .fee_policy import GasPrice
from .relay_lifecycles import RELAY_INTENT_LIFECYCLE, RELAY_TRANSACTION_LIFECYCLE, IntentReason, TxReason
from .relay_state import GIVEN_UP, TOO_LATE, NonceSlot, Reason, is_late


class Sign(Struct, frozen=True):
    """Planned action: sign a transaction and store it.

    Attributes:
        intent: the intent whose call is signed; None for a filler, a transaction that only uses the nonce.
        replaced: transaction of the same nonce to replace; None for the first of a nonce.
    """

    nonce: int
    intent: ChainIntent | None
    price: GasPrice
    replaced: ChainTx | None = None


class Send(Struct, frozen=True):
    """Planned action: broadcast a signed transaction to the chain's nodes."""

    transaction: ChainTx


class Seen(Struct, frozen=True):
    """Planned action: store that a transaction is mined.

    Attributes:
        slot: the nonce with all transactions that were signed for it.
        is_final: whether the transaction has the chain's confirmations already.
    """

    slot: NonceSlot
    transaction: ChainTx
    receipt: Receipt
    is_final: bool


class Write(Struct, frozen=True):
    """Planned action: store changed rows; `what` names the kind of change, for the statistics."""

    what: str
    effect_key: str
    changes: tuple[Change, ...]


Action = Sign | Send | Seen | Write


def seen(action: Seen, reason: Reason | None, now_ms: int) -> Write:
    """Build the changes to store for a mined transaction, its intent and the nonce's other transactions.

    Args:
        reason: reason of the transaction's revert; None if it succeeded.
    """
    slot, receipt = action.slot, action.receipt
    place = {"block_number": receipt.block_number, "block_hash": receipt.block_hash}
    mined = _tx(action.transaction, now_ms, TxReason.MINED, **place)
    others = tuple(tx for tx in slot.transactions if tx is not action.transaction)
    others = tuple(_unmined(tx, now_ms) if tx.status is TxStatus.MINED else tx for tx in others)
    intent = slot.intent
    if intent is not None and mined.effect_key:
        why = IntentReason.MINED if receipt.succeeded else IntentReason.REVERTED
        intent = _intent(intent, now_ms, why, reason, mined_hash=mined.tx_hash, **place)
    elif intent is not None and intent.state is not IntentState.PENDING:
        intent = _pending_again(intent, now_ms)
    if action.is_final:
        after = NonceSlot(slot.nonce, (*others, mined), intent)
        return Write("settled", key_of(intent), tuple(settled(after, mined, now_ms)))
    changes: list[Change] = [cas(CHAIN_TX, tx) for tx in (mined, *others) if tx not in slot.transactions]
    if intent is not None and intent is not slot.intent:
        changes.append(cas(CHAIN_INTENT, intent))
    return Write("mined", key_of(intent), tuple(changes))


def key_of(intent: ChainIntent | None) -> str:
    """Key (`effect_key`) of an intent; empty if `intent` is None."""
    return intent.effect_key if intent is not None else ""


def signed(action: Sign, now_ms: int) -> Change | None:
    """Build the change of a waiting intent to pending; None for a pending intent, or for a filler."""
    intent = action.intent
    if intent is None or intent.state is not IntentState.WAITING:
        return None
    return cas(CHAIN_INTENT, _intent(intent, now_ms, IntentReason.SIGNED))


def forbidden(intent: ChainIntent, reason: str, now_ms: int) -> Write:
    """Build the write by which an intent fails, because the key's policy forbids its transaction."""
    why = Reason(IntentCause.FORBIDDEN, reason)
    change = cas(CHAIN_INTENT, _intent(intent, now_ms, IntentReason.FORBIDDEN, why))
    return Write("failed", intent.effect_key, (change,))


def nonce_taken(slot: NonceSlot, now_ms: int) -> list[Change]:
    """Build the changes to store once a foreign transaction with the nonce is final.

    The relayer's transactions of the nonce become REPLACED. An intent that was given up ends; any other
    intent waits for a new nonce.
    """
    changes: list[Change] = [cas(CHAIN_TX, _tx(tx, now_ms, TxReason.REPLACED)) for tx in slot.transactions]
    if slot.intent is not None:
        intent = slot.intent
        ended = None if intent.cause is None else _ended_without(intent, now_ms)
        changes.append(cas(CHAIN_INTENT, ended or _intent(intent, now_ms, IntentReason.NONCE_TAKEN)))
    return changes


def given_up(intent: ChainIntent, why: Reason, now_ms: int) -> Change:
    """Build the change that stores why a pending intent is given up.

    The intent ends later, once a transaction of its nonce is final: the filler, or the intent's own call.
    """
    return cas(CHAIN_INTENT, _because(intent, now_ms, why))


def too_late(intent: ChainIntent, now_ms: int) -> Change:
    """Build the change of a waiting intent that ends because its deadline has passed."""
    return cas(CHAIN_INTENT, _intent(intent, now_ms, IntentReason.DEADLINE, TOO_LATE))


def revived(tx: ChainTx, now_ms: int) -> Change:
    """Build the change of a transaction from REPLACED to SIGNED, since the same bytes were signed again."""
    return cas(CHAIN_TX, _tx(tx, now_ms, TxReason.REVIVED))


def settled(slot: NonceSlot, mined: ChainTx, now_ms: int) -> list[Change]:
    """Build the changes that end a nonce's transactions and intent, once the transaction `mined` is final."""
    intent = slot.intent
    is_filler = not mined.effect_key
    has_failed = intent is not None and not is_filler and intent.state is IntentState.REVERTED
    end = TxReason.CONFIRMED_REVERT if has_failed else TxReason.CONFIRMED
    changes: list[Change] = [
        cas(CHAIN_TX, _tx(tx, now_ms, end if tx is mined else TxReason.REPLACED)) for tx in slot.transactions
    ]
    if intent is not None:
        ended = (
            _ended_without(intent, now_ms)
            if is_filler
            else _intent(intent, now_ms, IntentReason.CONFIRMED, reason_of(intent))
        )
        changes.append(cas(CHAIN_INTENT, ended))
    return changes


def _ended_without(intent: ChainIntent, now_ms: int) -> ChainIntent:
    """Return the intent in an end state: a final transaction without the intent's call used the nonce."""
    reason = reason_of(intent) or (TOO_LATE if is_late(intent, now_ms) else GIVEN_UP)
    why = IntentReason.LATE if reason.cause is IntentCause.DEADLINE else IntentReason.GIVEN_UP
    return _intent(intent, now_ms, why, reason)


def reason_of(intent: ChainIntent) -> Reason | None:
    """Reason for which an intent failed or is given up; None if the intent has no cause."""
    return None if intent.cause is None else Reason(intent.cause, intent.reason, intent.error4)


def back_to_signed(slot: NonceSlot, now_ms: int) -> list[Change]:
    """Build the changes by which an undone mined transaction is SIGNED again, and its intent PENDING."""
    changes: list[Change] = [
        cas(CHAIN_TX, _unmined(tx, now_ms)) for tx in slot.transactions if tx.status is TxStatus.MINED
    ]
    if slot.intent is not None and slot.intent.state is not IntentState.PENDING:
        changes.append(cas(CHAIN_INTENT, _pending_again(slot.intent, now_ms)))
    return changes


def _unmined(tx: ChainTx, now_ms: int) -> ChainTx:
    return _tx(tx, now_ms, TxReason.BLOCK_GONE, block_number=None, block_hash=None)


def _pending_again(intent: ChainIntent, now_ms: int) -> ChainIntent:
    nowhere = {"mined_hash": None, "block_number": None, "block_hash": None}
    return _intent(intent, now_ms, IntentReason.BLOCK_GONE, **nowhere)


def _tx(tx: ChainTx, now_ms: int, reason: TxReason, **changed: object) -> ChainTx:
    status = RELAY_TRANSACTION_LIFECYCLE.step(tx.status, reason)
    return replace(tx, status=status, updated_ms=now_ms, **changed)


def _intent(
    intent: ChainIntent, now_ms: int, reason: IntentReason, why: Reason | None = None, **changed: object
) -> ChainIntent:
    state = RELAY_INTENT_LIFECYCLE.step(intent.state, reason)
    return replace(_because(intent, now_ms, why), state=state, **changed)


def _because(intent: ChainIntent, now_ms: int, why: Reason | None) -> ChainIntent:
    cause, words, error4 = (None, "", None) if why is None else (why.cause, why.words, why.error4)
    return replace(intent, reason=words, cause=cause, error4=error4, updated_ms=now_ms)
