"""Plan a relayer's next actions from the rows of the store and the state of the chain. Pure.

An intent is a call to get mined once. `RELAY_INTENT_LIFECYCLE` and `RELAY_TRANSACTION_LIFECYCLE`
(lifecycles.md) have the states; a plan names the reason of each change, and takes the new state from
these tables.

The rows hold all state that must survive: each plan is made from them anew, as after a crash. The
transactions of one nonce are alternatives, of which the chain mines at most one. An intent gets another nonce
only after a foreign transaction used its own nonce and has the chain's confirmations.

A signed transaction may still be in any node's pool, even if the asked nodes do not have it. A signed
intent that is late or refused for good is therefore given up by a filler: a transaction of the same nonce
without the call. The intent ends once any transaction of that nonce is final.

Source: ARCHITECTURE.md, "Relayer"; EIP-1559.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from ....config.errors import RefusalKind
from ....config.timeouts import RELAY_AGAIN_S, RELAY_TAKEN_S
from ...store.rows import ChainIntent, ChainTx, IntentCause, IntentState, TxStatus, amount_of
from ...store.units import Change
from .fee_policy import first_price, replacement_price
from .relay_acts import (
    Action,
    Seen,
    Send,
    Sign,
    Write,
    back_to_signed,
    given_up,
    key_of,
    nonce_taken,
    reason_of,
    settled,
    too_late,
)
from .relay_state import (
    TOO_LATE,
    Facts,
    Front,
    NonceSlot,
    Reason,
    Refusal,
    RelayMemory,
    RelayPolicy,
    TakenNonce,
    cost_of,
    is_late,
    price_of,
)

_AGAIN_MS = round(RELAY_AGAIN_S * 1_000)
_TAKEN_MS = round(RELAY_TAKEN_S * 1_000)
_REFUSED_FOR_GOOD = (RefusalKind.INVALID, RefusalKind.GAS)
_TOO_CHEAP = (RefusalKind.UNDERPRICED, RefusalKind.FEE_TOO_LOW)


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
        self.actions.append(Write(what, key_of(intent), changes))


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
    # A slot whose mined transaction has left the chain is written back to signed, whatever its nonce: the
    # next pass sees whether the nonce is free again or taken. Else its row would still name the lost block.
    for slot in slots.values():
        mined = _on_chain(slot, facts)
        if mined is not None:
            _plan_mined(draft, slot, mined)
        elif slot.mined is not None:
            draft.write("reorganised", slot.intent, *back_to_signed(slot, now_ms))
        elif slot.nonce >= facts.nonce:
            _plan_pending(draft, slot)
        else:
            _plan_taken(draft, slot)
    # After the loop, which finds the account starved: its balance is then left for replacements. While a
    # final transaction is undone, no call is signed that may build on its effect.
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
        draft.write("settled", slot.intent, *settled(slot, tx, draft.now_ms))


def _depth(draft: _Draft, block_number: int) -> int:
    return draft.facts.head.number - block_number + 1


def _plan_taken(draft: _Draft, slot: NonceSlot) -> None:
    """Once a foreign transaction with the nonce is final, plan that the intent ends or gets a new nonce."""
    taken = draft.memory.taken.get(slot.nonce)
    if taken is None or draft.now_ms - taken.since_ms < _TAKEN_MS:
        return
    if _depth(draft, taken.block.number) < draft.policy.confirmations:
        return
    draft.write("taken", slot.intent, *nonce_taken(slot, draft.now_ms))


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
            draft.actions.append(Sign(slot.nonce, None if why is not None else intent, price, best))
            if intent is not None and why is not None and intent.state is IntentState.PENDING:
                draft.write("given up", intent, given_up(intent, why, draft.now_ms))
            return
        draft.at_cap += 1
    draft.starved = draft.starved or kind is RefusalKind.FUNDS
    _send_if_due(draft, best)


def _no_more(draft: _Draft, intent: ChainIntent, refusal: Refusal | None) -> Reason | None:
    """Reason to give up an intent that has a signed transaction; None if the intent is still pursued."""
    if intent.state is IntentState.FAILED:  # a re-organisation undid its failure: no mining now
        return reason_of(intent)
    if intent.state is not IntentState.PENDING:
        return None
    if is_late(intent, draft.now_ms):
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
    if is_due(draft.memory, tx, draft.now_ms):
        draft.actions.append(Send(tx))


def is_due(memory: RelayMemory, tx: ChainTx, now_ms: int) -> bool:
    """Whether to broadcast a transaction: never, or _AGAIN_MS ago, or it was refused for a gap of nonces."""
    handed_ms, refusal = memory.handed_ms.get(tx.tx_hash), memory.refused.get(tx.tx_hash)
    return (
        handed_ms is None
        or (refusal is not None and refusal.kind is RefusalKind.NONCE_TOO_HIGH)
        or now_ms - handed_ms >= _AGAIN_MS
        or now_ms < handed_ms
    )


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
        if is_late(intent, draft.now_ms):
            draft.write("cancelled", intent, too_late(intent, draft.now_ms))
        elif price is None:
            draft.at_cap += 1
        elif room > 0:
            cost_wei = intent.gas * price.fee_max_wei + amount_of(intent.value_wei)
            if cost_wei > left_wei:
                draft.starved = True
                continue  # a later intent may cost less
            nonce = free.pop(0) if free else next_nonce
            next_nonce = max(next_nonce, nonce + 1)
            left_wei -= cost_wei
            room -= 1
            draft.actions.append(Sign(nonce, intent, price))
    # Not bounded by `room`: a nonce left out blocks every transaction of a later nonce.
    if price is None:
        draft.at_cap += len(free)
    else:
        draft.actions += [Sign(nonce, None, price) for nonce in free]
