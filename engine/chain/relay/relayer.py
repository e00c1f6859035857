"""Relayer: get each submitted call mined once (sign, store, broadcast, watch); one per chain and key.

    relay -> the store -> pass: unfinished rows, state of the chain -> `relay_plan.plan`
                            |-> one write: mined and signed transactions, durable before a broadcast
                            '-> broadcast, by nonce

Every pass (`_look`) begins with the rows of the store, so that a crash between two passes loses nothing. A
new head, a submitted intent, or a pause of RELAY_LOOK_S starts the next pass. Without unfinished rows the
relayer does not ask the chain. While the node or the store is unreachable, the next pass follows after at
most RELAY_PAUSE_S_MAX.

Of several engines, the engine with the lease of the relayer's shard sends. The store refuses late writes of
another engine (fencing), and accepts only one first transaction of a nonce. Any engine may submit and wait.

Source: ARCHITECTURE.md, "Relayer", "Several engines".
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

import structlog
import trio
from msgspec import Struct
from msgspec.structs import replace

from ....codecs.contracts.abi import SELECTOR_BYTES
from ....codecs.transactions import Transaction, decode_transaction, sign_transaction
from ....config.errors import (
    BlockGone,
    ChainError,
    PolicyError,
    RefusalKind,
    Reverted,
    StoreUnavailable,
    TransactionRefused,
)
from ....config.limits import (
    RELAY_DATA_BYTES_MAX,
    RELAY_IN_FLIGHT_MAX,
    RELAY_QUESTIONS_MAX,
    RELAY_REASON_CHARS_MAX,
    RELAY_RECEIPTS_KEPT_MAX,
)
from ....config.timeouts import (
    RELAY_HEAD_S,
    RELAY_LOOK_S,
    RELAY_NODE_S,
    RELAY_PAUSE_S,
    RELAY_PAUSE_S_MAX,
    RELAY_REASON_S,
)
from ....crypto.custody.transaction_policy import PolicedRelayKey
from ....crypto.keccak import keccak256
from ...store.leases import FencedOff, Leases
from ...store.queries import (
    among,
    by,
    open_intents_count,
    open_transactions,
    settled_transactions,
    signed_intents,
    waiting_intents,
)
from ...store.rows import (
    NEVER_S,
    ChainIntent,
    ChainTx,
    IntentCause,
    IntentState,
    TxStatus,
    amount32,
    amount_of,
)
from ...store.store import Store
from ...store.tables import CHAIN_INTENT, CHAIN_TX
from ...store.units import Change, Done, Duplicate, Fence, Fenced, New, Unit, new, row_of
from ..port import Chain, EthCall, GasFees, Header, Receipt
from ..together import all_of, both
from .relay_acts import Seen, Send, Sign, Write, forbidden, revived, seen, signed
from .relay_plan import RelayPlan, is_due, plan, remember
from .relay_state import (
    ENDED,
    FILLER_GAS,
    OUT_OF_GAS,
    UNEXPLAINED,
    Facts,
    NonceSlot,
    Reason,
    Refusal,
    RelayMemory,
    RelayPolicy,
    slots_of,
)

_Rows = Sequence[tuple[Any, ...]]

_COUNTED = ("mined", "settled", "reorganised", "taken", "failed", "cancelled", "bumped", "handed", "refused")

_MINED = (IntentState.MINED, IntentState.REVERTED)
_IDLE = RelayPlan((), 0, 0, 0, 0, starved=False)

_log = structlog.get_logger("cambist.relayer")


class IntentOutcome(Struct, frozen=True):
    """State of a relay intent (a call to get mined), with the result of its transaction.

    Attributes:
        state: state of the intent.
        reason: `cause` as text, for people; empty without a cause.
        tx_hash: hash of the mined transaction; None while none is mined.
        receipt: receipt of that transaction, as the chain has it now; None if it was not read.
        cause: cause of a failure, revert or cancellation; a given-up intent has a cause already while its
            call may still be mined. None without a cause.
        error4: selector of the error that the contract returned, 4 bytes; None without one.
    """

    effect_key: str
    state: IntentState
    reason: str
    tx_hash: bytes | None
    receipt: Receipt | None = None
    cause: IntentCause | None = None
    error4: bytes | None = None

    @property
    def is_final(self) -> bool:
        """Whether the intent has ended: mined with the chain's confirmations, or never to be mined."""
        return self.state in ENDED


class RelayerStatistics(Struct, frozen=True):
    """State and counters of one relayer.

    Attributes:
        holds: whether this engine has the lease of the relayer's shard, i.e. is the engine that relays.
        waiting: number of intents without a signed transaction.
        pending: number of nonces with a transaction waiting to be mined.
        undone: number of pending nonces whose final transaction a deep re-organisation undid; no new intent
            is signed until a transaction of each of these nonces is mined again.
        stuck: number of pending nonces whose transaction has to be replaced by a dearer one.
        at_cap: number of replacements, fillers (transactions without a call, which only use up a nonce) and
            waiting intents whose price would exceed the cap.
        starved: whether the account's balance is below its floor, or too small for an open transaction.
        oldest_age_ms: age of the oldest unfinished intent; 0 without one.
        away: reason for which the chain or the store cannot be used now; empty while both can.
        balance_wei: balance of the account at the last pass.
        counts: event -> count: transactions mined, settled, reorganised, handed in (broadcast), bumped
            (replaced), refused by a node; nonces taken by a foreign transaction; intents that the key may not
            sign (failed), or that were late before they were signed (cancelled).
    """

    holds: bool
    waiting: int
    pending: int
    undone: int
    stuck: int
    at_cap: int
    starved: bool
    oldest_age_ms: int
    away: str
    balance_wei: int
    counts: dict[str, int]


def relay_shard(chain_id: int, sender: bytes) -> int:
    """Shard, 0 to 255, whose lease decides which engine relays for a chain and a sender's address."""
    return keccak256(chain_id.to_bytes(8, "big") + sender)[0]


class Relayer:
    """Relayer: gets each submitted call mined once, on one chain, from one account. `run` is its task.

    Args:
        key: signing key; its policy has to allow transactions to its own address, which use up nonces.
        leases: the engine's leases of shards; they have to stay open while the relayer runs.
        now_ms: wall clock, Unix milliseconds.

    Raises:
        ValueError: the key's policy forbids transactions to its own address, or fees up to the cap.
    """

    def __init__(
        self,
        chain: Chain,
        store: Store,
        key: PolicedRelayKey,
        leases: Leases,
        policy: RelayPolicy,
        now_ms: Callable[[], int],
    ) -> None:
        try:
            key.policy.check(chain.chain_id, key.address, 0, FILLER_GAS, policy.fees.cap_wei)
        except PolicyError as error:
            raise ValueError(f"the relayer's key has to be able to send to itself: {error}") from None
        self._chain, self._store, self._key, self._leases = chain, store, key, leases
        self._policy = policy
        self._now_ms = now_ms
        self._shard = relay_shard(chain.chain_id, key.address)
        self._memory = RelayMemory()
        self._head_hash = b""
        self._wake = trio.Event()
        self._watched: WeakValueDictionary[str, trio.Event] = WeakValueDictionary()
        self._plan = _IDLE
        self._counts: dict[str, int] = dict.fromkeys(_COUNTED, 0)
        self._waiting = self._balance_wei = 0
        self._oldest_ms: int | None = None
        self._holds = False
        self._away = ""
        self._barred: set[str] = set()  # transactions that the last pass could not replace
        self._seen: OrderedDict[bytes, Receipt] = OrderedDict()  # receipts of mined transactions, the last

    @property
    def address(self) -> bytes:
        """Address that sends the relayer's transactions, 20 bytes."""
        return self._key.address

    async def relay(self, effect_key: str, call: EthCall, deadline_s: int | None = None) -> IntentOutcome:
        """Store a call as an intent to be mined once, and return its state, without a receipt.

        A repeated submission of the same call under the same key changes nothing.

        Args:
            effect_key: the intent's unique name; its call is mined at most once.
            call: the call with its gas limit; the relayer is the sender.
            deadline_s: Unix seconds; from then on the intent is cancelled unless it is mined.

        Raises:
            StoreUnavailable: the intent was not stored, or may have been: submit again.
            ChainError: the store refused the intent.
            ValueError: `effect_key` is empty or was submitted with another call, or the call names no
                contract, or has too little gas or too much data.

        Guarantees: the intent is durable when this method returns.
        """
        if not effect_key or len(call.to) != 20 or call.gas_max < _gas_min(call.data):
            raise ValueError(f"an intent has a key, a contract, and gas: at least {_gas_min(call.data)} here")
        if len(call.data) > RELAY_DATA_BYTES_MAX:
            raise ValueError(f"calldata of a transaction is at most {RELAY_DATA_BYTES_MAX} bytes")
        now_ms = self._now_ms()
        row = ChainIntent(
            effect_key=effect_key,
            chain_id=self._chain.chain_id,
            sender=self._key.address,
            target=call.to,
            data=call.data,
            value_wei=amount32(call.value_wei),
            gas=call.gas_max,
            deadline_s=NEVER_S if deadline_s is None else deadline_s,
            created_ms=now_ms,
            version=1,
            state=IntentState.WAITING,
            reason="",
            mined_hash=None,
            block_number=None,
            block_hash=None,
            updated_ms=now_ms,
            cause=None,
            error4=None,
        )
        outcome = await self._store.write(Unit((new(CHAIN_INTENT, row),)))
        if isinstance(outcome, Duplicate):
            # The deadline is not compared: that of the first submission counts.
            there: ChainIntent = row_of(CHAIN_INTENT, outcome.row)
            if _sent_by(there) != _sent_by(row) or _call_of(there) != _call_of(row):
                raise ValueError(f"effect {effect_key} was submitted with another call")
            row = there
        elif not isinstance(outcome, Done):
            raise ChainError(f"an intent was not kept: {outcome}")
        self._wake.set()
        return _outcome(row)

    async def outcome(self, effect_key: str) -> IntentOutcome | None:
        """Read the state of an intent from the store, without a receipt; None for an unknown key.

        Raises:
            StoreUnavailable: the store cannot be reached.
        """
        (rows,) = await self._store.read(by(CHAIN_INTENT, effect_key))
        return _outcome(row_of(CHAIN_INTENT, rows[0])) if rows else None

    async def wait(self, effect_key: str, *, final: bool = True) -> IntentOutcome:
        """Wait until an intent is mined, or will never be mined; the caller sets a time limit.

        Args:
            final: wait for the chain's confirmations too; False returns once the intent is mined.

        Raises:
            KeyError: no intent was submitted under that key.
            StoreUnavailable: the store cannot be reached.
            NodeUnavailable: no node answers the request for the receipt.
        """
        while True:
            # The event is registered before the state is read: a state stored after that read sets the event.
            # `_keep` removes an event that it sets, so that each pass of the loop registers a new one.
            event = self._watched.get(effect_key)
            if event is None:
                event = self._watched[effect_key] = trio.Event()
            found = await self.outcome(effect_key)
            if found is None:
                raise KeyError(effect_key)
            if found.is_final or (found.state in _MINED and not final):
                receipt = await self._receipt(found) if found.tx_hash else None
                # Mined by the row, but without a receipt: a re-organisation undid the block since. Wait on.
                if found.is_final or receipt is not None:
                    return replace(found, receipt=receipt)
            # At most for a time: if another engine relays, its writes set no event in this process.
            with trio.move_on_after(RELAY_LOOK_S):
                await event.wait()

    async def _receipt(self, mined: IntentOutcome) -> Receipt | None:
        """Return the receipt of a mined call, as a pass of this process has read it, else read it now.

        The pass that finds a block undone forgets its receipts; until then the row says mined as well, and
        who waits for a success looks for its log, too. A revert has no log: its receipt is read again, since
        a settlement whose block was undone meanwhile may still be mined.
        """
        found = self._seen.get(mined.tx_hash or b"") if mined.state is IntentState.MINED else None
        return await self._chain.receipt(mined.tx_hash or b"") if found is None else found

    def statistics(self) -> RelayerStatistics:
        """Return the relayer's counters, and its state as of the last pass over store and chain."""
        return RelayerStatistics(
            holds=self._holds,
            waiting=self._waiting,
            pending=self._plan.pending,
            undone=self._plan.undone,
            stuck=self._plan.stuck,
            at_cap=self._plan.at_cap,
            starved=self._plan.starved,
            oldest_age_ms=0 if self._oldest_ms is None else max(0, self._now_ms() - self._oldest_ms),
            away=self._away,
            balance_wei=self._balance_wei,
            counts=dict(self._counts),
        )

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Sign, broadcast and follow transactions while this engine holds the shard's lease."""
        task_status.started()
        pause_s = RELAY_PAUSE_S
        while True:
            # The event is taken before the fence: a lease that comes or goes after this line sets the event.
            changed = self._leases.changed()
            fence = self._leases.fence(self._shard)
            self._holds = fence is not None
            if fence is None:
                # Another engine may broadcast meanwhile: this memory would be out of date at the next lease.
                self._forget()
                with trio.move_on_after(RELAY_LOOK_S):
                    await changed.wait()
                continue
            # A new event before the rows are read: an intent that is stored after that read sets it, and the
            # next pass follows at once.
            self._wake = trio.Event()
            try:
                is_idle = await self._look(fence)
            except FencedOff:
                # The lease has ended: as above.
                self._forget()
                await trio.sleep(RELAY_PAUSE_S)
            except (ChainError, StoreUnavailable, trio.TooSlowError) as error:
                self._lose(str(error) or "no answer in time")
                await trio.sleep(pause_s)
                pause_s = min(2 * pause_s, RELAY_PAUSE_S_MAX)
            else:
                self._away = ""
                pause_s = RELAY_PAUSE_S
                await self._rest(is_idle=is_idle)

    def _forget(self) -> None:
        self._memory = RelayMemory()
        self._seen.clear()

    def _lose(self, why: str) -> None:
        if self._away != why:
            _log.warning("the relayer waits", chain_id=self._chain.chain_id, detail=why)
        self._away = why

    async def _rest(self, *, is_idle: bool) -> None:
        """Wait for a submitted intent or (unless `is_idle`) a new block, at most RELAY_LOOK_S seconds."""
        with trio.move_on_after(RELAY_LOOK_S):
            if is_idle:
                await self._wake.wait()
                return
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._wait_head, nursery.cancel_scope)
                await self._wake.wait()
                nursery.cancel_scope.cancel()

    async def _wait_head(self, scope: trio.CancelScope) -> None:
        try:
            await self._chain.wait_head(self._head_hash)
        except ChainError:
            return  # the next look finds out
        scope.cancel()

    # --- One look ---------------------------------------------------------------------------------------

    async def _look(self, fence: Fence) -> bool:
        """Read store and chain, plan the next actions and execute them; True if nothing is unfinished.

        Unfinished are intents without a signed transaction, and transactions that are not final.
        """
        chain_id, sender = self._chain.chain_id, self._key.address
        transactions, intents, waits, counts = await self._store.read(
            open_transactions(chain_id, sender),
            signed_intents(chain_id, sender),
            waiting_intents(chain_id, sender, self._policy.in_flight_max),
            open_intents_count(chain_id, sender),
        )
        ((self._waiting, self._oldest_ms),) = counts
        if not transactions and not waits:
            self._plan = _IDLE
            return True
        open_rows = [row_of(CHAIN_TX, row) for row in transactions]
        with trio.fail_after(RELAY_NODE_S):
            head = await self._chain.recent_block(RELAY_HEAD_S)  # `wait_head` may have read it a moment ago
            self._head_hash = head.hash
            # Of all, before the nonce tells which are mined: the answers come in one round trip.
            receipts, (nonce, fees) = await both(
                lambda: self._receipts([tx for tx in open_rows if tx.status is not TxStatus.MINED]),
                lambda: self._account(head),
            )
        slots = await self._slots(nonce, open_rows, intents)
        with trio.fail_after(RELAY_NODE_S):
            facts = await self._facts(head, nonce, fees, slots, receipts)
        now_ms = self._now_ms()
        # Before the plan, which reads in the memory for how long a transaction waits or a nonce is taken.
        remember(self._memory, slots, facts, now_ms)
        waiting = [row_of(CHAIN_INTENT, row) for row in waits]
        self._plan = plan(slots, waiting, facts, self._memory, self._policy, now_ms)
        await self._do(self._plan, facts, fence)
        return False

    async def _account(self, head: Header) -> tuple[int, GasFees]:
        """Read the account's nonce at a block, its balance, and the present fees."""
        chain, address = self._chain, self._key.address
        fees, (nonce, self._balance_wei) = await both(
            chain.fees, lambda: both(lambda: chain.nonce(address, head.hash), lambda: chain.balance(address))
        )
        return nonce, fees

    async def _slots(
        self, nonce: int, transactions: Sequence[ChainTx], intents: _Rows
    ) -> dict[int, NonceSlot]:
        """Group by nonce the open transactions, and the final ones that a re-organisation undid.

        Args:
            nonce: the account's next nonce on the chain; a final transaction of this or a higher nonce is
                undone.
        """
        chain_id, sender = self._chain.chain_id, self._key.address
        (settled,) = await self._store.read(
            settled_transactions(chain_id, sender, nonce, RELAY_IN_FLIGHT_MAX)
        )
        undone = [row_of(CHAIN_TX, row) for row in settled]
        if undone:
            keys = [tx.effect_key for tx in undone if tx.effect_key]
            (more,) = await self._store.read(among(CHAIN_INTENT, "effect_key", keys))
            intents = [*intents, *more]
        return slots_of(
            [*transactions, *undone],
            [row_of(CHAIN_INTENT, row) for row in intents],
        )

    async def _facts(
        self,
        head: Header,
        nonce: int,
        fees: GasFees,
        slots: dict[int, NonceSlot],
        receipts: dict[bytes, Receipt],
    ) -> Facts:
        """Read the blocks that the facts depend on; the node is asked at once what it can be.

        Args:
            receipts: transaction hash -> receipt, of the open transactions that are not stored as mined.
        """
        blocks = _Blocks(self._chain, head)
        taken = [taken.block for taken in self._memory.taken.values()]
        # Below the account's nonce at the head, so that a transaction of the nonce is mined there.
        used = [slot for slot in slots.values() if slot.nonce < nonce]
        kept = {slot.nonce: tx for slot in slots.values() if (tx := slot.mined) is not None}
        found = {tx.tx_hash for slot in used for tx in slot.transactions} & receipts.keys()
        heights = {block.number for block in taken} | {tx.block_number for tx in kept.values()}
        # A receipt counts only in a block of the head's branch: a node may have switched branches since the
        # head was read. The head is read again beside these blocks, and after the receipts: a node that shows
        # the head and these blocks has shown one branch.
        _, is_same = await both(
            lambda: blocks.read(heights | {receipts[key].block_number for key in found}),
            lambda: self._is_head(head),
        )
        undone = [slot for slot in used if slot.nonce in kept and not blocks.has_mined(kept[slot.nonce])]
        if undone:  # mined again, if at all
            again = await self._receipts([tx for slot in undone for tx in slot.transactions])
            await blocks.read({receipt.block_number for receipt in again.values()})
            receipts, found, is_same = receipts | again, found | again.keys(), await self._is_head(head)
        return Facts(
            head,
            nonce,
            self._balance_wei,
            fees,
            {
                key: receipts[key]
                for key in found
                if blocks.has(receipts[key].block_number, receipts[key].block_hash)
            },
            frozenset(block.hash for block in taken if blocks.has(block.number, block.hash))
            | frozenset(tx.block_hash or b"" for tx in kept.values() if blocks.has_mined(tx)),
            is_one_branch=is_same,
        )

    async def _receipts(self, transactions: Sequence[ChainTx]) -> dict[bytes, Receipt]:
        found = await self._chain.receipts([tx.tx_hash for tx in transactions])
        return {receipt.tx_hash: receipt for receipt in found if receipt is not None}

    async def _is_head(self, head: Header) -> bool:
        with trio.fail_after(RELAY_NODE_S):
            again = await self._chain.block(head.number)
        return again is not None and again.hash == head.hash

    async def _changes(self, todo: RelayPlan) -> tuple[list[Write], list[ChainTx]]:
        """Return what a plan stores, and the transactions that it broadcasts, by nonce; sign new ones."""
        writes: list[Write] = []
        sends: list[ChainTx] = []
        before, self._barred = self._barred, set()
        for action in todo.actions:
            match action:
                case Write():
                    writes.append(action)
                case Seen():
                    reason = None if action.receipt.succeeded else await self._reason(action)
                    writes.append(seen(action, reason, self._now_ms()))
                case Send():
                    sends.append(action.transaction)
                case Sign():
                    signs, rows = self._signed(action)
                    writes += signs
                    sends += rows
        for detail in self._barred - before:
            _log.warning("a transaction waits", chain_id=self._chain.chain_id, detail=detail)
        return writes, sorted(sends, key=lambda tx: tx.nonce)

    async def _do(self, todo: RelayPlan, facts: Facts, fence: Fence) -> None:
        """Execute a plan: store mined and newly signed transactions in one write, then broadcast."""
        writes, sends = await self._changes(todo)
        # These two end an intent for good: all facts behind them have to be of one branch of the chain.
        if any(write.what in ("settled", "taken") for write in writes):
            was_slow = any(isinstance(one, Seen) and not one.receipt.succeeded for one in todo.actions)
            # The reason of a revert may have taken seconds since the head was read again.
            if not facts.is_one_branch or (was_slow and not await self._is_head(facts.head)):
                raise BlockGone("the chain was re-organised during the look")
        if any(write.what == "reorganised" for write in writes):
            self._seen.clear()
        # Stored before broadcast: after a crash in between, the next pass finds the bytes and sends them. In
        # the other order a transaction could be mined that no row knows, and its call be signed once more.
        await self._keep(writes, fence)
        self._seen.update((one.receipt.tx_hash, one.receipt) for one in todo.actions if isinstance(one, Seen))
        while len(self._seen) > RELAY_RECEIPTS_KEPT_MAX:
            self._seen.popitem(last=False)
        with trio.fail_after(RELAY_NODE_S):
            # At once, for a node may be far. One that overtakes another leaves a gap for a moment: nodes keep
            # it until the gap is closed, or refuse it as too high, and the next pass sends it again.
            faults = await all_of(partial(self._hand_in, fence=fence), sends, RELAY_QUESTIONS_MAX)
        if self._leases.fence(self._shard) != fence:
            raise FencedOff
        for fault in faults:
            if fault is not None:
                raise fault
        if any(write.what in ("failed", "taken", "reorganised") for write in writes):
            self._wake.set()  # a nonce may be free, or a broadcast due

    def _signed(self, action: Sign) -> tuple[list[Write], list[ChainTx]]:
        """Sign a transaction; return (changes to store, the transaction), each empty or of length 1.

        If the key's policy forbids the transaction, a waiting intent ends as forbidden. Of a pending intent
        an earlier transaction may still be mined: nothing is stored, and that transaction is broadcast on.
        """
        intent, now_ms = action.intent, self._now_ms()
        target, data, value_wei, gas = (
            (self._key.address, b"", 0, FILLER_GAS) if intent is None else _call_of(intent)
        )
        price = action.price
        transaction = Transaction(
            chain_id=self._chain.chain_id,
            nonce=action.nonce,
            tip_wei=price.tip_wei,
            fee_max_wei=price.fee_max_wei,
            gas=gas,
            to=target,
            value_wei=value_wei,
            data=data,
        )
        try:
            made = sign_transaction(transaction, self._key)
        except PolicyError as error:
            if intent is None or intent.state is not IntentState.WAITING:
                self._barred.add(f"the key may not replace transaction {action.nonce}: {error}")
                old = action.replaced
                return [], [old] if old is not None and is_due(self._memory, old, now_ms) else []
            return [forbidden(intent, str(error), now_ms)], []
        self._counts["bumped"] += action.replaced is not None
        row = ChainTx(
            tx_hash=made.tx_hash,
            chain_id=self._chain.chain_id,
            sender=self._key.address,
            nonce=action.nonce,
            raw=made.raw,
            fee_max_wei=amount32(price.fee_max_wei),
            effect_key=intent.effect_key if intent else "",
            replaces=None if action.replaced is None else action.replaced.tx_hash,
            created_ms=now_ms,
            version=1,
            status=TxStatus.SIGNED,
            updated_ms=now_ms,
            block_number=None,
            block_hash=None,
        )
        change = None if intent is None else signed(action, now_ms)
        changes = (new(CHAIN_TX, row), *(() if change is None else (change,)))
        return [Write("signed", row.effect_key, changes)], [row]

    async def _keep(self, writes: Sequence[Write], fence: Fence) -> None:
        """Write all changes of the planned writes in one unit, fenced by the shard's lease."""
        if not writes:
            return
        changes = tuple(change for write in writes for change in write.changes)
        outcome = await self._store.write(Unit(changes, fence))
        while isinstance(outcome, Duplicate) and (outcome.table, outcome.unique) == (CHAIN_TX.name, 0):
            # A re-organisation undid the transaction of this nonce: a replaced transaction is signed again.
            again: ChainTx = row_of(CHAIN_TX, outcome.row)
            changes = tuple(
                revived(again, self._now_ms()) if _is_new(change, again) else change for change in changes
            )
            outcome = await self._store.write(Unit(changes, fence))
        if isinstance(outcome, Fenced):
            raise FencedOff
        if not isinstance(outcome, Done):
            raise ChainError(f"the rows changed since they were read: {outcome}")
        for write in writes:
            if write.what in self._counts:
                self._counts[write.what] += 1
            event = self._watched.pop(write.effect_key, None)
            if event is not None:
                event.set()

    async def _hand_in(self, tx: ChainTx, fence: Fence) -> ChainError | None:
        """Broadcast a transaction; return the error if the node may or may not have it."""
        # The lease may end while a node answers; its next holder may have replaced this one since.
        if self._leases.fence(self._shard) != fence:
            return None
        memory, now_ms = self._memory, self._now_ms()
        # Noted before the answer: if the answer is late, the node may have the transaction all the same.
        memory.handed_ms[tx.tx_hash] = now_ms
        try:
            await self._chain.send_raw(tx.raw)
        except TransactionRefused as error:
            before = memory.refused.get(tx.tx_hash)
            is_new = before is None or before.kind is not error.kind
            since_ms = now_ms if before is None or is_new else before.since_ms
            memory.refused[tx.tx_hash] = Refusal(error.kind, str(error)[:RELAY_REASON_CHARS_MAX], since_ms)
            self._counts["refused"] += 1
            if is_new:
                _log.warning("transaction refused", tx=tx.tx_hash.hex(), nonce=tx.nonce, detail=str(error))
                if error.kind is not RefusalKind.FUNDS:
                    self._wake.set()
            return None
        except ChainError as error:
            # The next pass sends it again, which is harmless.
            memory.handed_ms.pop(tx.tx_hash, None)
            return error
        memory.refused.pop(tx.tx_hash, None)
        self._counts["handed"] += 1
        return None

    async def _reason(self, action: Seen) -> Reason:
        """Find why a mined transaction reverted, by an `eth_call` of its call at its block's parent block."""
        receipt = action.receipt
        transaction = decode_transaction(action.transaction.raw).transaction
        if receipt.gas_used >= transaction.gas:
            return OUT_OF_GAS
        call = EthCall(
            transaction.to, transaction.data, self._key.address, transaction.value_wei, transaction.gas
        )
        try:
            with trio.fail_after(RELAY_REASON_S):
                header = await self._chain.block(receipt.block_hash)
                if header is not None:
                    await self._chain.call(call, header.parent_hash)
        except Reverted as error:
            words = (error.reason or str(error))[:RELAY_REASON_CHARS_MAX]
            return Reason(IntentCause.REVERTED, words, error.data[:SELECTOR_BYTES] or None)
        except (ChainError, trio.TooSlowError) as error:
            said = str(error) or "no answer in time"
            words = f"reverted; asking why failed: {said}"[:RELAY_REASON_CHARS_MAX]
            return Reason(IntentCause.UNKNOWN, words)
        return UNEXPLAINED


class _Blocks:
    """Hashes of the chain's blocks up to a head, by height."""

    def __init__(self, chain: Chain, head: Header) -> None:
        self._chain = chain
        self._hashes = {head.number: head.hash}

    async def read(self, numbers: Iterable[int | None]) -> None:
        """Read the blocks of these heights that were not read yet."""
        new = sorted({number for number in numbers if number is not None} - self._hashes.keys())
        headers = await all_of(self._chain.block, new, RELAY_QUESTIONS_MAX)
        self._hashes |= {
            number: b"" if header is None else header.hash
            for number, header in zip(new, headers, strict=True)
        }

    def has(self, number: int | None, block_hash: bytes | None) -> bool:
        """Whether the block read at height `number` has hash `block_hash`; False if `number` is None."""
        return number is not None and self._hashes[number] == block_hash

    def has_mined(self, tx: ChainTx) -> bool:
        """Whether the block in which a transaction is stored as mined was read."""
        return self.has(tx.block_number, tx.block_hash)


def _is_new(change: Change, tx: ChainTx) -> bool:
    return isinstance(change, New) and change.table == CHAIN_TX.name and change.row.tx_hash == tx.tx_hash


def _gas_min(data: bytes) -> int:
    """Least gas, in units, that a chain accepts for a transaction with this data (EIP-2028, EIP-7623)."""
    zeros = data.count(0)
    tokens = zeros + 4 * (len(data) - zeros)
    return FILLER_GAS + 10 * tokens


def _sent_by(intent: ChainIntent) -> tuple[int, bytes]:
    return intent.chain_id, intent.sender


def _call_of(intent: ChainIntent) -> tuple[bytes, bytes, int, int]:
    return intent.target, intent.data, amount_of(intent.value_wei), intent.gas


def _outcome(intent: ChainIntent) -> IntentOutcome:
    return IntentOutcome(
        intent.effect_key,
        intent.state,
        intent.reason,
        intent.mined_hash,
        cause=intent.cause,
        error4=intent.error4,
    )
