"""What a relayer does next, from what the store has and what the chain shows. Pure.

    intent       WAITING -> PENDING -> MINED | REVERTED -> FINAL | FAILED
                    ^          |  ^-------' re-organised
                    |          |-> FAILED, a node refused it for good
                    |          |-> CANCELLED, what only fills its nonce was mined
                    '----------' its nonce was used by somebody else, for good
                 WAITING -> CANCELLED (deadline) | FAILED (the key's policy)
    transaction  SIGNED -> SENT -> MINED -> FINAL | FAILED (reverted)
                 MINED -> SENT, re-organised
                 SIGNED, SENT -> REPLACED (another of its nonce is final) | DROPPED

All that must survive is in the rows: each plan is made from them anew, as after a crash. The transactions of
one nonce stand for one another: the chain takes at most one, and whichever it takes decides. So an intent
gets another nonce only after its own was used by none of them, as deep as the chain's confirmations.

`Memory` is what one run remembers besides: when it handed what in, what it was told. Losing it costs time.

Source: chain.md, "Relayer"; EIP-1559.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from ...codecs import rlp
from ...config.errors import RefusalKind
from ...config.relayer import RelayerSettings
from ...config.timeouts import RELAY_AGAIN_S, RELAY_TAKEN_S
from ..store.rows import ChainIntent, ChainTx, amount_of
from ..store.tables import CHAIN_INTENT, CHAIN_TX
from ..store.units import Change, cas
from .fee_policy import FeePolicy, GasPrice, first_price, replacement_price
from .port import Fees, Header, Receipt

WAITING, PENDING, MINED, REVERTED = "WAITING", "PENDING", "MINED", "REVERTED"
FINAL, FAILED, CANCELLED = "FINAL", "FAILED", "CANCELLED"
SIGNED, SENT, REPLACED, DROPPED = "SIGNED", "SENT", "REPLACED", "DROPPED"
ENDED = frozenset({FINAL, FAILED, CANCELLED})

FILLER_GAS = 21_000
TOO_LATE = "its deadline passed before it was mined"

_AGAIN_MS = round(RELAY_AGAIN_S * 1_000)
_TAKEN_MS = round(RELAY_TAKEN_S * 1_000)
_REFUSED_FOR_GOOD = (RefusalKind.INVALID, RefusalKind.GAS)
_TOO_CHEAP = (RefusalKind.UNDERPRICED, RefusalKind.FEE_TOO_LOW)


class RelayPolicy(Struct, frozen=True):
    """Bounds of one relayer.

    Attributes:
        confirmations: blocks, its own included, after which a transaction is final.
        in_flight_max: transactions that may wait to be mined.
        gas_floor_wei: nothing new is signed with less on the account.
    """

    fees: FeePolicy
    confirmations: int
    stuck_ms: int
    in_flight_max: int
    gas_floor_wei: int


def relay_policy(settings: RelayerSettings, confirmations: int) -> RelayPolicy:
    """The bounds that settings mean."""
    fees = FeePolicy(settings.fee_cap_wei, settings.tip_min_wei, settings.tip_max_wei, settings.bump_bps)
    stuck_ms = round(settings.stuck_s * 1_000)
    return RelayPolicy(fees, confirmations, stuck_ms, settings.in_flight_max, settings.gas_floor_wei)


class Facts(Struct, frozen=True):
    """What the chain shows, all as of one block.

    Attributes:
        head: the block.
        nonce: of the account: how many of its transactions are mined.
        receipts: transaction hash -> receipt, of those asked that are mined on this chain.
        on_chain: hashes of blocks that are on this chain, of those asked.
    """

    head: Header
    nonce: int
    balance_wei: int
    fees: Fees
    receipts: Mapping[bytes, Receipt]
    on_chain: frozenset[bytes]


class Taken(Struct, frozen=True):
    """A nonce was seen to be used by none of ours: in which block at the latest, and since when."""

    block: Header
    since_ms: int


class Memory(Struct):
    """What one run of a relayer remembers; see the module.

    Attributes:
        front: (nonce, since when) that the chain wants next.
        handed_ms: transaction hash -> when it was last handed in.
        refused: transaction hash -> why it was not taken then.
        taken: nonces that somebody else used.
    """

    front: tuple[int, int] = (-1, 0)
    handed_ms: dict[bytes, int] = field(default_factory=dict)
    refused: dict[bytes, tuple[RefusalKind, str]] = field(default_factory=dict)
    taken: dict[int, Taken] = field(default_factory=dict)


class Slot(Struct, frozen=True):
    """A nonce and the transactions that were signed with it, the cheapest first.

    Attributes:
        intent: what it is for; None where it is only filled.
    """

    nonce: int
    transactions: tuple[ChainTx, ...]
    intent: ChainIntent | None

    @property
    def best(self) -> ChainTx:
        """The one that offers most."""
        return self.transactions[-1]

    @property
    def mined(self) -> ChainTx | None:
        """The one that was seen to be mined."""
        return next((tx for tx in self.transactions if tx.status == MINED), None)

    @property
    def is_settled(self) -> bool:
        """Whether one was mined for good: seen here only when the chain went back further than that."""
        return any(tx.status in (FINAL, FAILED) for tx in self.transactions)


def slots_of(transactions: Sequence[ChainTx], intents: Sequence[ChainIntent]) -> dict[int, Slot]:
    """nonce -> slot, in their order."""
    by_key = {intent.effect_key: intent for intent in intents}
    by_nonce: dict[int, list[ChainTx]] = {}
    for tx in sorted(transactions, key=lambda tx: (tx.nonce, tx.fee_max_wei, tx.created_ms)):
        by_nonce.setdefault(tx.nonce, []).append(tx)
    return {
        nonce: Slot(
            nonce, tuple(some), next((by_key[tx.effect_key] for tx in some if tx.effect_key in by_key), None)
        )
        for nonce, some in by_nonce.items()
    }


# --- What is to be done -----------------------------------------------------------------------------------


class Sign(Struct, frozen=True):
    """Sign a transaction and keep it.

    Attributes:
        intent: what it does; None only fills the nonce.
        replaces: hash of the one of the same nonce that it is to replace.
    """

    nonce: int
    intent: ChainIntent | None
    price: GasPrice
    replaces: bytes | None = None


class Send(Struct, frozen=True):
    """Hand a signed transaction in."""

    transaction: ChainTx


class Seen(Struct, frozen=True):
    """A transaction of a slot is mined, and `is_final` if it is deep enough already."""

    slot: Slot
    transaction: ChainTx
    receipt: Receipt
    is_final: bool


class Write(Struct, frozen=True):
    """Keep what changed. `what` counts it."""

    what: str
    effect_key: str
    changes: tuple[Change, ...]


Action = Sign | Send | Seen | Write


class Plan(Struct, frozen=True):
    """What is to be done, in order, and how things stand.

    Attributes:
        pending: nonces that wait to be mined.
        stuck: those of them that are to be, or would have to be, replaced.
        at_cap: those, and intents, that wait because they would have to cost more than the cap.
        starved: the account has too little for what is wanted.
    """

    actions: tuple[Action, ...]
    pending: int
    stuck: int
    at_cap: int
    starved: bool


class _Draft:
    """A plan that is being made."""

    def __init__(self, facts: Facts, memory: Memory, policy: RelayPolicy, now_ms: int) -> None:
        self.facts, self.memory, self.policy, self.now_ms = facts, memory, policy, now_ms
        self.actions: list[Action] = []
        self.stuck = self.at_cap = 0
        self.starved = facts.balance_wei < policy.gas_floor_wei

    def write(self, what: str, intent: ChainIntent | None, *changes: Change) -> None:
        """Keep changes of a slot, of its intent, or of both."""
        self.actions.append(Write(what, _key_of(intent), changes))


def remember(memory: Memory, slots: Mapping[int, Slot], facts: Facts, now_ms: int) -> None:
    """Take in what the chain shows; forget what is over."""
    if memory.front[0] != facts.nonce:
        memory.front = (facts.nonce, now_ms)
    known = {tx.tx_hash for slot in slots.values() for tx in slot.transactions}
    memory.handed_ms = {key: at_ms for key, at_ms in memory.handed_ms.items() if key in known}
    memory.refused = {key: why for key, why in memory.refused.items() if key in known}
    taken = {}
    for slot in slots.values():
        if slot.mined is not None and _on_chain(slot, facts) is None:
            for tx in slot.transactions:  # re-organised: nobody may have it any more
                memory.handed_ms.pop(tx.tx_hash, None)
        if slot.nonce < facts.nonce and not slot.is_settled and _on_chain(slot, facts) is None:
            before = memory.taken.get(slot.nonce)
            is_kept = before is not None and before.block.hash in facts.on_chain
            taken[slot.nonce] = before if before is not None and is_kept else Taken(facts.head, now_ms)
    memory.taken = taken


def plan(
    slots: Mapping[int, Slot],
    waiting: Sequence[ChainIntent],
    facts: Facts,
    memory: Memory,
    policy: RelayPolicy,
    now_ms: int,
) -> Plan:
    """Decide.

    Args:
        slots: of every nonce with a transaction whose end is not known, and those that were settled though
            the chain's nonce is not past them.
        waiting: intents without a transaction, in the order in which they get one.
        memory: after `remember`.

    Guarantees: an intent has transactions of one nonce at a time; no price is above the cap; nonces are given
    out without a gap, and a gap is filled.
    """
    draft = _Draft(facts, memory, policy, now_ms)
    pending = 0
    for slot in slots.values():
        mined = _on_chain(slot, facts)
        if mined is not None:
            _plan_mined(draft, slot, mined)
        elif slot.mined is not None:
            draft.write("reorganised", slot.intent, *_back_to_sent(slot, now_ms))
        elif slot.nonce >= facts.nonce:
            pending += 1
            _plan_pending(draft, slot)
        elif not slot.is_settled:
            _plan_taken(draft, slot)
    _plan_new(draft, slots, waiting, pending)
    return Plan(tuple(draft.actions), pending, draft.stuck, draft.at_cap, draft.starved)


def _on_chain(slot: Slot, facts: Facts) -> ChainTx | None:
    """The slot's transaction that is mined on this chain."""
    for tx in slot.transactions:
        if tx.tx_hash in facts.receipts or (tx.status == MINED and tx.block_hash in facts.on_chain):
            return tx
    return None


def _plan_mined(draft: _Draft, slot: Slot, tx: ChainTx) -> None:
    if slot.is_settled:
        return
    receipt = draft.facts.receipts.get(tx.tx_hash)
    number = tx.block_number if receipt is None else receipt.block_number
    is_final = number is not None and _depth(draft, number) >= draft.policy.confirmations
    if receipt is not None:
        draft.actions.append(Seen(slot, tx, receipt, is_final))
    elif is_final:
        draft.write("settled", slot.intent, *_settled(slot, tx, draft.now_ms))


def _depth(draft: _Draft, block_number: int) -> int:
    return draft.facts.head.number - block_number + 1


def _plan_taken(draft: _Draft, slot: Slot) -> None:
    """None of ours has the nonce. Once that is deep enough, the intent gets another."""
    taken = draft.memory.taken.get(slot.nonce)
    if taken is None or draft.now_ms - taken.since_ms < _TAKEN_MS:
        return
    if _depth(draft, taken.block.number) < draft.policy.confirmations:
        return
    changes = [cas(CHAIN_TX, _tx(tx, draft.now_ms, status=REPLACED)) for tx in slot.transactions]
    if slot.intent is not None:
        changes.append(cas(CHAIN_INTENT, _intent(slot.intent, draft.now_ms, state=WAITING)))
    draft.write("taken", slot.intent, *changes)


def _plan_pending(draft: _Draft, slot: Slot) -> None:
    best, now_ms = slot.best, draft.now_ms
    kind, detail = draft.memory.refused.get(best.tx_hash, (None, ""))
    if slot.is_settled:
        _send_if_due(draft, best)
        return
    if kind in _REFUSED_FOR_GOOD and kind is not None and best.effect_key and best.status == SIGNED:
        _plan_refused(draft, slot, f"{kind.value}: {detail}" if detail else kind.value)
        return
    is_late = slot.intent is not None and _is_late(slot.intent, now_ms) and bool(best.effect_key)
    is_stuck = kind is not RefusalKind.FUNDS and (
        kind in _TOO_CHEAP
        or amount_of(best.fee_max_wei) < draft.facts.fees.base_fee_wei
        or (slot.nonce == draft.facts.nonce and _waits_since_ms(draft, best) >= draft.policy.stuck_ms)
    )
    draft.stuck += is_stuck
    if is_late or is_stuck:
        price = replacement_price(price_of(best), draft.facts.fees, draft.policy.fees)
        if price is not None:
            wanted = slot.intent if best.effect_key and not is_late else None
            draft.actions.append(Sign(slot.nonce, wanted, price, best.tx_hash))
            return
        draft.at_cap += 1
    draft.starved = draft.starved or kind is RefusalKind.FUNDS
    _send_if_due(draft, best)


def _waits_since_ms(draft: _Draft, tx: ChainTx) -> int:
    return draft.now_ms - max(draft.memory.front[1], tx.created_ms)


def _plan_refused(draft: _Draft, slot: Slot, reason: str) -> None:
    """A node refuses for good what none has taken before; what one has taken may still be mined."""
    taken = [tx for tx in slot.transactions if tx.status != SIGNED]
    if taken:
        _send_if_due(draft, taken[-1])
        _send_if_due(draft, slot.best)
        return
    changes = [cas(CHAIN_TX, _tx(tx, draft.now_ms, status=DROPPED)) for tx in slot.transactions]
    if slot.intent is not None:
        ended = _intent(slot.intent, draft.now_ms, state=FAILED, reason=reason)
        changes.append(cas(CHAIN_INTENT, ended))
    draft.write("failed", slot.intent, *changes)


def _send_if_due(draft: _Draft, tx: ChainTx) -> None:
    handed_ms = draft.memory.handed_ms.get(tx.tx_hash)
    kind, _ = draft.memory.refused.get(tx.tx_hash, (None, ""))
    if (
        handed_ms is None
        or kind is RefusalKind.NONCE_TOO_HIGH
        or draft.now_ms - handed_ms >= _AGAIN_MS
        or draft.now_ms < handed_ms
    ):
        draft.actions.append(Send(tx))


def _plan_new(draft: _Draft, slots: Mapping[int, Slot], waiting: Sequence[ChainIntent], pending: int) -> None:
    """Give nonces to what waits, the gaps first, and fill the gaps that are left."""
    first = draft.facts.nonce
    next_nonce = max([first, *(nonce + 1 for nonce in slots)])
    free = [nonce for nonce in range(first, next_nonce) if nonce not in slots]
    price = first_price(draft.facts.fees, draft.policy.fees)
    left_wei = draft.facts.balance_wei - sum(
        cost_of(slot.best) for slot in slots.values() if slot.nonce >= first
    )
    room = draft.policy.in_flight_max - pending
    may_sign = not draft.starved
    for intent in waiting:
        if _is_late(intent, draft.now_ms):
            ended = _intent(intent, draft.now_ms, state=CANCELLED, reason=TOO_LATE)
            draft.write("cancelled", intent, cas(CHAIN_INTENT, ended))
        elif price is None:
            draft.at_cap += 1
        elif room > 0 and may_sign:
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


# --- What changes -----------------------------------------------------------------------------------------


def seen(action: Seen, reason: str, now_ms: int) -> Write:
    """What is kept of a transaction that is mined.

    Args:
        reason: why it was reverted.
    """
    slot, receipt, mined = action.slot, action.receipt, action.transaction
    place = {"block_number": receipt.block_number, "block_hash": receipt.block_hash}
    intent = slot.intent
    if intent is not None and mined.effect_key:
        state = MINED if receipt.succeeded else REVERTED
        intent = replace(intent, state=state, reason=reason, mined_hash=mined.tx_hash, **place)
    elif intent is not None:
        intent = _pending_again(intent, now_ms)
    now_mined = _tx(mined, now_ms, status=MINED, **place)
    others = tuple(tx for tx in slot.transactions if tx is not mined)
    if action.is_final:
        after = Slot(slot.nonce, (*others, now_mined), intent)
        return Write("settled", _key_of(intent), tuple(_settled(after, now_mined, now_ms)))
    changes: list[Change] = [cas(CHAIN_TX, now_mined)]
    changes += [cas(CHAIN_TX, _unmined(tx, now_ms)) for tx in others if tx.status == MINED]
    if intent is not None and (mined.effect_key or slot.intent is None or slot.intent.state != PENDING):
        changes.append(cas(CHAIN_INTENT, _intent(intent, now_ms)))
    return Write("mined", _key_of(intent), tuple(changes))


def _key_of(intent: ChainIntent | None) -> str:
    return intent.effect_key if intent is not None else ""


def signed(action: Sign, now_ms: int) -> Change | None:
    """What changes of the intent that a transaction is signed for."""
    intent = action.intent
    if intent is None or intent.state != WAITING:
        return None
    return cas(CHAIN_INTENT, _intent(intent, now_ms, state=PENDING))


def forbidden(intent: ChainIntent, reason: str, now_ms: int) -> Write:
    """What is kept of an intent that the key's policy does not let us sign."""
    change = cas(CHAIN_INTENT, _intent(intent, now_ms, state=FAILED, reason=reason))
    return Write("failed", intent.effect_key, (change,))


def sent(tx: ChainTx, now_ms: int) -> Change:
    """A node has taken a transaction."""
    return cas(CHAIN_TX, _tx(tx, now_ms, status=SENT))


def revived(tx: ChainTx, now_ms: int) -> Change:
    """A transaction that was given up is wanted again."""
    return cas(CHAIN_TX, _tx(tx, now_ms, status=SIGNED))


def _settled(slot: Slot, mined: ChainTx, now_ms: int) -> list[Change]:
    intent = slot.intent
    is_filler = not mined.effect_key
    has_failed = intent is not None and not is_filler and intent.state == REVERTED
    changes: list[Change] = [
        cas(CHAIN_TX, _tx(tx, now_ms, status=(FAILED if has_failed else FINAL) if tx is mined else REPLACED))
        for tx in slot.transactions
    ]
    if intent is not None:
        state = CANCELLED if is_filler else FAILED if has_failed else FINAL
        reason = TOO_LATE if is_filler else intent.reason
        changes.append(cas(CHAIN_INTENT, _intent(intent, now_ms, state=state, reason=reason)))
    return changes


def _back_to_sent(slot: Slot, now_ms: int) -> list[Change]:
    changes: list[Change] = [
        cas(CHAIN_TX, _unmined(tx, now_ms)) for tx in slot.transactions if tx.status == MINED
    ]
    if slot.intent is not None and slot.intent.state != PENDING:
        changes.append(cas(CHAIN_INTENT, _pending_again(slot.intent, now_ms)))
    return changes


def _unmined(tx: ChainTx, now_ms: int) -> ChainTx:
    return replace(tx, status=SENT, block_number=None, block_hash=None, updated_ms=now_ms)


def _pending_again(intent: ChainIntent, now_ms: int) -> ChainIntent:
    return replace(
        intent,
        state=PENDING,
        reason="",
        mined_hash=None,
        block_number=None,
        block_hash=None,
        updated_ms=now_ms,
    )


def _tx(tx: ChainTx, now_ms: int, **changed: object) -> ChainTx:
    return replace(tx, updated_ms=now_ms, **changed)


def _intent(intent: ChainIntent, now_ms: int, **changed: object) -> ChainIntent:
    return replace(intent, updated_ms=now_ms, **changed)


# --- What a signed transaction says -----------------------------------------------------------------------


def price_of(tx: ChainTx) -> GasPrice:
    """What it offers for a unit of gas."""
    members = _members(tx)
    return GasPrice(rlp.as_uint(members[3], "maxFeePerGas"), rlp.as_uint(members[2], "maxPriorityFeePerGas"))


def cost_of(tx: ChainTx) -> int:
    """The most that it can cost, in wei."""
    members = _members(tx)
    gas, value_wei = rlp.as_uint(members[4], "gas"), rlp.as_uint(members[6], "value")
    return gas * amount_of(tx.fee_max_wei) + value_wei


def _members(tx: ChainTx) -> list[rlp.Item]:
    return rlp.as_list(rlp.decode(tx.raw[1:]), "transaction", 12)
