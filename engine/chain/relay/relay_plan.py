"""Plan a relayer's next actions from the rows of the store and the state of the chain. Pure.

An intent is a call to get mined once. `RELAY_INTENT_LIFECYCLE` and `RELAY_TRANSACTION_LIFECYCLE`
(lifecycles.md) have the states; a plan names the reason of each change, and takes the new state from
these tables.

The rows hold all state that must survive: each plan is made from them anew, as after a crash. The
transactions of one nonce are alternatives, of which the chain mines at most one. An intent gets another nonce
only after a foreign transaction used its own nonce and has the chain's confirmations.

A signed transaction may still be in any node's pool, even if the asked nodes do not have it. A late intent,
or an intent refused for good, is therefore given up by a filler: a transaction of the same nonce without the
call. The intent has ended only once another transaction of that nonce is final.

`RelayMemory` holds state that is not stored: times of broadcasts, and refusals. Losing that state costs time
alone.

Source: ARCHITECTURE.md, "Relayer"; EIP-1559.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from ....codecs import rlp
from ....config.errors import RefusalKind
from ....config.sections.relayer import RelayerSettings
from ....config.timeouts import RELAY_AGAIN_S, RELAY_TAKEN_S
from ...store.rows import ChainIntent, ChainTx, IntentCause, IntentState, TxStatus, amount_of
from ...store.tables import CHAIN_INTENT, CHAIN_TX
from ...store.units import Change, cas
from ..port import GasFees, Header, Receipt
from .fee_policy import FeePolicy, GasPrice, first_price, replacement_price
from .relay_lifecycles import RELAY_INTENT_LIFECYCLE, RELAY_TRANSACTION_LIFECYCLE, IntentReason, TxReason

ENDED = RELAY_INTENT_LIFECYCLE.terminal()

FILLER_GAS = 21_000
_AGAIN_MS = round(RELAY_AGAIN_S * 1_000)
_TAKEN_MS = round(RELAY_TAKEN_S * 1_000)
_REFUSED_FOR_GOOD = (RefusalKind.INVALID, RefusalKind.GAS)
_TOO_CHEAP = (RefusalKind.UNDERPRICED, RefusalKind.FEE_TOO_LOW)


class RelayPolicy(Struct, frozen=True):
    """Limits of one relayer, from its settings and its chain's.

    Attributes:
        confirmations: blocks, the transaction's own included, after which a transaction is final.
        stuck_ms: milliseconds until an unmined transaction is replaced, or a call refused by nodes given up.
        in_flight_max: most nonces with a transaction waiting to be mined.
        gas_floor_wei: balance of the account below which no new intent is signed.
    """

    fees: FeePolicy
    confirmations: int
    stuck_ms: int
    in_flight_max: int
    gas_floor_wei: int


def relay_policy(settings: RelayerSettings, confirmations: int) -> RelayPolicy:
    """Build a relayer's limits from its settings and the confirmations that make its chain's blocks final."""
    fees = FeePolicy(settings.fee_cap_wei, settings.tip_min_wei, settings.tip_max_wei, settings.bump_bps)
    stuck_ms = round(settings.stuck_s * 1_000)
    return RelayPolicy(fees, confirmations, stuck_ms, settings.in_flight_max, settings.gas_floor_wei)


class Facts(Struct, frozen=True):
    """State of the chain and of the relayer's account and transactions, as of one block.

    Attributes:
        head: header of that block.
        nonce: number of the account's mined transactions, i.e. the nonce of its next one.
        receipts: transaction hash -> receipt, for transactions of the relayer that are newly found in a block
            of this chain.
        on_chain: hashes of blocks that are still part of this chain; the candidates are the blocks of
            transactions stored as mined, and the blocks of `TakenNonce`.
    """

    head: Header
    nonce: int
    balance_wei: int
    fees: GasFees
    receipts: Mapping[bytes, Receipt]
    on_chain: frozenset[bytes]


class TakenNonce(Struct, frozen=True):
    """Block and time at which the relayer first saw a nonce used by a transaction that is not its own."""

    block: Header
    since_ms: int


class Refusal(Struct, frozen=True):
    """A node's refusal of a transaction: kind, text, and time (Unix milliseconds) of the first one."""

    kind: RefusalKind
    detail: str
    since_ms: int


class Reason(Struct, frozen=True):
    """Cause for which an intent (a call to get mined) failed or is given up, as a code and as text.

    Attributes:
        words: description of the cause as text, for people.
        error4: selector of the error that the contract returned, 4 bytes; None if there is none.
    """

    cause: IntentCause
    words: str
    error4: bytes | None = None


TOO_LATE = Reason(IntentCause.DEADLINE, "its deadline passed before it was mined")
GIVEN_UP = Reason(IntentCause.GIVEN_UP, "it was given up before it was mined")
OUT_OF_GAS = Reason(IntentCause.OUT_OF_GAS, "out of gas")
UNEXPLAINED = Reason(IntentCause.UNEXPLAINED, "reverted; the block before it would have taken it")
"""Reason for a call that reverted when mined, though it succeeds when executed on the block before."""


class Front(Struct, frozen=True):
    """Transaction that is next to be mined, and the time (Unix ms) and height at which it became next."""

    tx_hash: bytes
    since_ms: int
    since_block: int


class RelayMemory(Struct):
    """State of a relayer that is kept in memory alone; a restart begins with an empty one.

    Attributes:
        front: the transaction to be mined next; None if the account's next nonce has no transaction.
        handed_ms: transaction hash -> time of its last broadcast, Unix milliseconds.
        refused: transaction hash -> nodes' refusal of its last broadcast.
        taken: nonce -> first observation that a foreign transaction used it.
    """

    front: Front | None = None
    handed_ms: dict[bytes, int] = field(default_factory=dict)
    refused: dict[bytes, Refusal] = field(default_factory=dict)
    taken: dict[int, TakenNonce] = field(default_factory=dict)


class NonceSlot(Struct, frozen=True):
    """A nonce of the relayer's account, and the transactions signed for that nonce; the last is `best`.

    Attributes:
        intent: the intent (call to get mined) that the nonce is for; None if all transactions are fillers.
    """

    nonce: int
    transactions: tuple[ChainTx, ...]
    intent: ChainIntent | None

    @property
    def best(self) -> ChainTx:
        """Transaction to get mined: the highest-fee filler, or the highest-fee call if there is no filler."""
        return self.transactions[-1]

    @property
    def mined(self) -> ChainTx | None:
        """Transaction of the nonce that is stored as mined but not yet final; None if none is."""
        return next((tx for tx in self.transactions if tx.status is TxStatus.MINED), None)

    @property
    def is_settled(self) -> bool:
        """Whether a transaction of the nonce is stored as final; only a re-organisation reopens it."""
        return any(tx.status in (TxStatus.FINAL, TxStatus.FAILED) for tx in self.transactions)


def slots_of(transactions: Sequence[ChainTx], intents: Sequence[ChainIntent]) -> dict[int, NonceSlot]:
    """Group a relayer's transactions by nonce: nonce -> slot, in ascending order of nonces."""
    by_key = {intent.effect_key: intent for intent in intents}
    by_nonce: dict[int, list[ChainTx]] = {}
    for tx in sorted(transactions, key=_place):
        by_nonce.setdefault(tx.nonce, []).append(tx)
    return {
        nonce: NonceSlot(
            nonce, tuple(some), next((by_key[tx.effect_key] for tx in some if tx.effect_key in by_key), None)
        )
        for nonce, some in by_nonce.items()
    }


def _place(tx: ChainTx) -> tuple[int, bool, bytes, int]:
    return tx.nonce, not tx.effect_key, tx.fee_max_wei, tx.created_ms


# --- Actions ----------------------------------------------------------------------------------------------


class Sign(Struct, frozen=True):
    """Planned action: sign a transaction and store it.

    Attributes:
        intent: the intent whose call is signed; None for a filler, a transaction that only uses the nonce.
        replaces: hash of the transaction of the same nonce to replace; None for the first of a nonce.
    """

    nonce: int
    intent: ChainIntent | None
    price: GasPrice
    replaces: bytes | None = None


class Send(Struct, frozen=True):
    """Planned action: broadcast a signed transaction to the chain's nodes."""

    transaction: ChainTx


class Seen(Struct, frozen=True):
    """Planned action: store that a transaction is mined; `is_final`: whether it is confirmed already."""

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


class RelayPlan(Struct, frozen=True):
    """Actions that a relayer takes next, in order, and a summary of its state.

    Attributes:
        pending: number of nonces with a transaction waiting to be mined.
        undone: number of pending nonces whose final transaction a deep re-organisation undid.
        stuck: number of pending nonces that need a replacement.
        at_cap: number of replacements, fillers and waiting intents whose price would exceed the cap.
        starved: whether the account's balance is below its floor, or too small for a pending or waiting
            transaction.
    """

    actions: tuple[Action, ...]
    pending: int
    undone: int
    stuck: int
    at_cap: int
    starved: bool


class _Draft:
    def __init__(self, facts: Facts, memory: RelayMemory, policy: RelayPolicy, now_ms: int) -> None:
        self.facts, self.memory, self.policy, self.now_ms = facts, memory, policy, now_ms
        self.actions: list[Action] = []
        self.stuck = self.at_cap = 0
        self.starved = facts.balance_wei < policy.gas_floor_wei

    def write(self, what: str, intent: ChainIntent | None, *changes: Change) -> None:
        """Add a planned write of changed rows: of a nonce's transactions, of their intent, or of both."""
        self.actions.append(Write(what, _key_of(intent), changes))


def remember(memory: RelayMemory, slots: Mapping[int, NonceSlot], facts: Facts, now_ms: int) -> None:
    """Update a relayer's memory from the chain's state, and delete entries of finished transactions."""
    front = slots.get(facts.nonce)
    if front is None:
        memory.front = None
    elif memory.front is None or memory.front.tx_hash != front.best.tx_hash:
        memory.front = Front(front.best.tx_hash, now_ms, facts.head.number)
    known = {tx.tx_hash for slot in slots.values() for tx in slot.transactions}
    memory.handed_ms = {key: at_ms for key, at_ms in memory.handed_ms.items() if key in known}
    memory.refused = {key: why for key, why in memory.refused.items() if key in known}
    taken = {}
    for slot in slots.values():
        if _on_chain(slot, facts) is not None:
            continue
        if slot.mined is not None:
            for tx in slot.transactions:  # re-organised: perhaps no node has it any more
                memory.handed_ms.pop(tx.tx_hash, None)
        if slot.nonce < facts.nonce:
            before = memory.taken.get(slot.nonce)
            is_kept = before is not None and before.block.hash in facts.on_chain
            taken[slot.nonce] = before if before is not None and is_kept else TakenNonce(facts.head, now_ms)
    memory.taken = taken


def plan(
    slots: Mapping[int, NonceSlot],
    waiting: Sequence[ChainIntent],
    facts: Facts,
    memory: RelayMemory,
    policy: RelayPolicy,
    now_ms: int,
) -> RelayPlan:
    """Decide what a relayer signs, stores and broadcasts next.

    Args:
        slots: nonce -> its transactions, for every nonce with an open transaction (signed, or mined but not
            final), and for every nonce with a final transaction that a re-organisation undid.
        waiting: intents without a signed transaction, in the order in which they get nonces.
        memory: the memory as updated by `remember` with the same slots and facts.

    Guarantees: an intent has transactions of one nonce at a time; no price is above the cap; new nonces
    leave no gap, and an existing gap is filled.
    """
    draft = _Draft(facts, memory, policy, now_ms)
    pending = [slot for slot in slots.values() if slot.nonce >= facts.nonce and slot.mined is None]
    for slot in slots.values():
        mined = _on_chain(slot, facts)
        if mined is not None:
            _plan_mined(draft, slot, mined)
        elif slot.mined is not None:
            draft.write("reorganised", slot.intent, *_back_to_signed(slot, now_ms))
        elif slot.nonce >= facts.nonce:
            _plan_pending(draft, slot)
        else:
            _plan_taken(draft, slot)
    undone = sum(slot.is_settled for slot in pending)
    room = 0 if draft.starved or undone else policy.in_flight_max - len(pending)
    _plan_new(draft, slots, waiting, room)
    return RelayPlan(tuple(draft.actions), len(pending), undone, draft.stuck, draft.at_cap, draft.starved)


def _on_chain(slot: NonceSlot, facts: Facts) -> ChainTx | None:
    """Transaction of the nonce that is mined in a block of this chain; None if none is."""
    for tx in slot.transactions:
        if tx.tx_hash in facts.receipts or (tx.status is TxStatus.MINED and tx.block_hash in facts.on_chain):
            return tx
    return None


def _plan_mined(draft: _Draft, slot: NonceSlot, tx: ChainTx) -> None:
    receipt = draft.facts.receipts.get(tx.tx_hash)
    number = tx.block_number if receipt is None else receipt.block_number
    is_final = number is not None and _depth(draft, number) >= draft.policy.confirmations
    if receipt is not None:
        draft.actions.append(Seen(slot, tx, receipt, is_final))
    elif is_final:
        draft.write("settled", slot.intent, *_settled(slot, tx, draft.now_ms))


def _depth(draft: _Draft, block_number: int) -> int:
    return draft.facts.head.number - block_number + 1


def _plan_taken(draft: _Draft, slot: NonceSlot) -> None:
    """Once a foreign transaction with the nonce is final, plan that the intent ends or gets a new nonce."""
    taken = draft.memory.taken.get(slot.nonce)
    if taken is None or draft.now_ms - taken.since_ms < _TAKEN_MS:
        return
    if _depth(draft, taken.block.number) < draft.policy.confirmations:
        return
    changes = [cas(CHAIN_TX, _tx(tx, draft.now_ms, TxReason.REPLACED)) for tx in slot.transactions]
    if slot.intent is not None:
        intent = slot.intent
        ended = None if intent.cause is None else _given_up(intent, draft.now_ms)
        changes.append(cas(CHAIN_INTENT, ended or _intent(intent, draft.now_ms, IntentReason.NONCE_TAKEN)))
    draft.write("taken", slot.intent, *changes)


def _plan_pending(draft: _Draft, slot: NonceSlot) -> None:
    best, intent = slot.best, slot.intent if slot.best.effect_key else None
    refusal = draft.memory.refused.get(best.tx_hash)
    kind = refusal.kind if refusal is not None else None
    why = None if intent is None else _no_more(draft, intent, refusal)
    is_stuck = kind is not RefusalKind.FUNDS and (
        kind in _TOO_CHEAP
        or amount_of(best.fee_max_wei) < draft.facts.fees.base_fee_wei
        or _is_passed_by(draft, best)
    )
    draft.stuck += is_stuck
    if why is not None or is_stuck:
        price = replacement_price(price_of(best), draft.facts.fees, draft.policy.fees)
        if price is None and why is not None:  # nodes without the transaction take a cheaper one
            price = first_price(draft.facts.fees, draft.policy.fees)
        if price is not None:
            draft.actions.append(Sign(slot.nonce, None if why is not None else intent, price, best.tx_hash))
            if intent is not None and why is not None and intent.state is IntentState.PENDING:
                draft.write("given up", intent, cas(CHAIN_INTENT, _with(intent, draft.now_ms, why)))
            return
        draft.at_cap += 1
    draft.starved = draft.starved or kind is RefusalKind.FUNDS
    _send_if_due(draft, best)


def _no_more(draft: _Draft, intent: ChainIntent, refusal: Refusal | None) -> Reason | None:
    """Reason to give up an intent that has a signed transaction; None if the intent is still pursued."""
    if intent.state is IntentState.FAILED:  # a re-organisation undid its failure: no mining now
        return _reason_of(intent)
    if intent.state is not IntentState.PENDING:
        return None
    if _is_late(intent, draft.now_ms):
        return TOO_LATE
    if refusal is None or refusal.kind not in _REFUSED_FOR_GOOD:
        return None
    is_over = draft.now_ms - refusal.since_ms >= draft.policy.stuck_ms
    return Reason(IntentCause.REFUSED, refusal.detail) if is_over else None


def _is_passed_by(draft: _Draft, tx: ChainTx) -> bool:
    """Whether `tx`, with the account's next nonce, is still unmined after `stuck_ms` and a new block."""
    front = draft.memory.front
    return (
        front is not None
        and front.tx_hash == tx.tx_hash
        and draft.now_ms - front.since_ms >= draft.policy.stuck_ms
        and draft.facts.head.number > front.since_block
    )


def _send_if_due(draft: _Draft, tx: ChainTx) -> None:
    handed_ms = draft.memory.handed_ms.get(tx.tx_hash)
    refusal = draft.memory.refused.get(tx.tx_hash)
    if (
        handed_ms is None
        or (refusal is not None and refusal.kind is RefusalKind.NONCE_TOO_HIGH)
        or draft.now_ms - handed_ms >= _AGAIN_MS
        or draft.now_ms < handed_ms
    ):
        draft.actions.append(Send(tx))


def _plan_new(
    draft: _Draft, slots: Mapping[int, NonceSlot], waiting: Sequence[ChainIntent], room: int
) -> None:
    """Give at most `room` intents the lowest unused nonces; plan fillers for nonces left below used ones."""
    first = draft.facts.nonce
    next_nonce = max([first, *(nonce + 1 for nonce in slots)])
    free = [nonce for nonce in range(first, next_nonce) if nonce not in slots]
    price = first_price(draft.facts.fees, draft.policy.fees)
    left_wei = draft.facts.balance_wei - sum(
        cost_of(slot.best) for slot in slots.values() if slot.nonce >= first
    )
    for intent in waiting:
        if _is_late(intent, draft.now_ms):
            ended = _intent(intent, draft.now_ms, IntentReason.DEADLINE, TOO_LATE)
            draft.write("cancelled", intent, cas(CHAIN_INTENT, ended))
        elif price is None:
            draft.at_cap += 1
        elif room > 0:
            cost_wei = intent.gas * price.fee_max_wei + amount_of(intent.value_wei)
            if cost_wei > left_wei:
                draft.starved = True
                continue
            nonce = free.pop(0) if free else next_nonce
            next_nonce = max(next_nonce, nonce + 1)
            left_wei -= cost_wei
            room -= 1
            draft.actions.append(Sign(nonce, intent, price))
    if price is None:
        draft.at_cap += len(free)
    else:
        draft.actions += [Sign(nonce, None, price) for nonce in free]


def _is_late(intent: ChainIntent, now_ms: int) -> bool:
    return intent.deadline_s <= now_ms // 1_000


# --- Changes of rows --------------------------------------------------------------------------------------


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
        return Write("settled", _key_of(intent), tuple(_settled(after, mined, now_ms)))
    changes: list[Change] = [cas(CHAIN_TX, tx) for tx in (mined, *others) if tx not in slot.transactions]
    if intent is not None and intent is not slot.intent:
        changes.append(cas(CHAIN_INTENT, intent))
    return Write("mined", _key_of(intent), tuple(changes))


def _key_of(intent: ChainIntent | None) -> str:
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


def revived(tx: ChainTx, now_ms: int) -> Change:
    """Build the change of a transaction from REPLACED to SIGNED, since the same bytes were signed again."""
    return cas(CHAIN_TX, _tx(tx, now_ms, TxReason.REVIVED))


def _settled(slot: NonceSlot, mined: ChainTx, now_ms: int) -> list[Change]:
    intent = slot.intent
    is_filler = not mined.effect_key
    has_failed = intent is not None and not is_filler and intent.state is IntentState.REVERTED
    end = TxReason.CONFIRMED_REVERT if has_failed else TxReason.CONFIRMED
    changes: list[Change] = [
        cas(CHAIN_TX, _tx(tx, now_ms, end if tx is mined else TxReason.REPLACED)) for tx in slot.transactions
    ]
    if intent is not None:
        ended = (
            _given_up(intent, now_ms)
            if is_filler
            else _intent(intent, now_ms, IntentReason.CONFIRMED, _reason_of(intent))
        )
        changes.append(cas(CHAIN_INTENT, ended))
    return changes


def _given_up(intent: ChainIntent, now_ms: int) -> ChainIntent:
    """Return the intent in an end state: a final transaction without the intent's call used the nonce."""
    reason = _reason_of(intent) or (TOO_LATE if _is_late(intent, now_ms) else GIVEN_UP)
    is_late = reason.cause is IntentCause.DEADLINE
    return _intent(intent, now_ms, IntentReason.LATE if is_late else IntentReason.GIVEN_UP, reason)


def _reason_of(intent: ChainIntent) -> Reason | None:
    return None if intent.cause is None else Reason(intent.cause, intent.reason, intent.error4)


def _back_to_signed(slot: NonceSlot, now_ms: int) -> list[Change]:
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
    return replace(_with(intent, now_ms, why), state=state, **changed)


def _with(intent: ChainIntent, now_ms: int, why: Reason | None) -> ChainIntent:
    cause, words, error4 = (None, "", None) if why is None else (why.cause, why.words, why.error4)
    return replace(intent, reason=words, cause=cause, error4=error4, updated_ms=now_ms)


# --- Members of a signed transaction ----------------------------------------------------------------------


def price_of(tx: ChainTx) -> GasPrice:
    """Gas price that a signed transaction offers, decoded from its raw bytes."""
    members = _members(tx)
    return GasPrice(rlp.as_uint(members[3], "maxFeePerGas"), rlp.as_uint(members[2], "maxPriorityFeePerGas"))


def cost_of(tx: ChainTx) -> int:
    """Most that a signed transaction can cost, in wei: gas limit times maximum fee, and the value sent."""
    members = _members(tx)
    gas, value_wei = rlp.as_uint(members[4], "gas"), rlp.as_uint(members[6], "value")
    return gas * amount_of(tx.fee_max_wei) + value_wei


def _members(tx: ChainTx) -> list[rlp.Item]:
    return rlp.as_list(rlp.decode(tx.raw[1:]), "transaction", 12)
