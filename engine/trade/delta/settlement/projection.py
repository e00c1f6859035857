"""Derives changes of Delta orders from the chain's logs, for the unit that indexes the logs.

    Advance -> orders concerned -> their rows, logs, transfers and effects as of the step
            -> `life.step_from_logs` -> changes

An indexer's step adds or undoes blocks. The step concerns an order if it adds or undoes a fill or a
pre-signature of the order, if the order's nonce was used or is free again, or if the order's end may have
become final. Orders are found by nonce and by finality among the orders in memory; their state is read from
the store, since the step is written only if that state is unchanged.

Ends and refunds of bridge transfers come from the watches of deliveries and refunds, not from the step. If
the step undoes a transfer, the step also deletes the transfer's end and refunds.

Source: ARCHITECTURE.md, "Indexer", "Transitions"; choices.md#delta-orders.
"""

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from ....chain.index.indexer import Advance
from ....store.queries import Query, among, by, of_nonce
from ....store.rows import (
    BridgeEnd,
    BridgeTransfer,
    DeltaFill,
    DeltaOrderRow,
    DeltaRefund,
    Effect,
    PreSignature,
    UsedNonce,
)
from ....store.store import Store
from ....store.tables import (
    BRIDGE_END,
    BRIDGE_TRANSFER,
    DELTA_FILL,
    DELTA_ORDER,
    DELTA_REFUND,
    EFFECT,
    NONCE_USED,
    PRE_SIGNATURE,
)
from ....store.units import Change, drop, row_of
from ...orders.order_units import DELTA
from ..orders.life import DeltaFacts, step_from_logs
from ..orders.live_orders import LiveOrders
from ..orders.transfers import OrderTransfer, followed, key_of, refunded_key

_SLICE = 64
"""Number of orders per read of the store; other tasks run between two reads."""
_OF_ORDER = (DELTA_FILL, PRE_SIGNATURE, BRIDGE_TRANSFER, BRIDGE_END, DELTA_REFUND, EFFECT)


class DeltaProjection:
    """Derives changes of Delta orders from one chain's logs; an `engine.chain.index.indexer.Projection`.

    Args:
        orders: the live orders in memory, searched for the orders of a used nonce and for ended orders whose
            end has become final.
        confirmations: number of blocks, the log's own included, after which a log is final.
        failures_max: number of counted failures (`life.failed`) that makes an order FAILED.
    """

    def __init__(
        self,
        store: Store,
        orders: LiveOrders,
        *,
        confirmations: int,
        failures_max: int,
        now_ms: Callable[[], int],
    ) -> None:
        self._store = store
        self._orders = orders
        self._confirmations = confirmations
        self._failures_max = failures_max
        self._now_ms = now_ms

    async def changes(self, advance: Advance) -> Sequence[Change]:
        """Compute the changes to stored orders after an indexer's step (blocks added or undone)."""
        final_height = advance.top.number - self._confirmations + 1
        hashes = self._about(advance, final_height) | await self._of_nonces(advance)
        if not hashes:
            return ()
        changes: list[Change] = []
        ordered = sorted(hashes)  # logs of one step may concern any number of orders, also of other venues
        for at in range(0, len(ordered), _SLICE):
            changes += self._decided(await self._read(ordered[at : at + _SLICE], advance), final_height)
        return changes

    def _decided(self, orders: Sequence["_Found"], final_height: int) -> list[Change]:
        changes: list[Change] = []
        for found in orders:
            live = self._orders.get(found.row.order_hash)
            facts = DeltaFacts(
                found.fills,
                found.nonce_used,
                found.is_pre_signed,
                final_height,
                None if live is None else live.ended_at,
                found.transfers,
            )
            now_ms = self._now_ms()
            step = step_from_logs(found.row, facts, found.effects, self._failures_max, now_ms, found.orphans)
            if step is not None:
                changes += DELTA.advanced(found.row, step.after, effects=step.effects, more=step.more).changes
        return changes

    def _about(self, advance: Advance, final_height: int) -> set[bytes]:
        """Collect the hashes of the orders that an indexer's step (blocks added or undone) may change.

        Args:
            final_height: height up to which the step makes logs final.
        """
        hashes: set[bytes] = set()
        for _, row in (*advance.rows, *advance.undone):
            if isinstance(row, DeltaFill | BridgeTransfer | PreSignature):
                hashes.add(row.order_hash)
        return hashes.union(self._orders.settled(advance.chain_id, advance.top.number, final_height))

    async def _of_nonces(self, advance: Advance) -> set[bytes]:
        """Find the orders whose nonces become used by an indexer's step, or become free again.

        Orders in memory are found there, ended orders too. For any other nonce the store is read, since
        another engine may run the order, or this engine may not have loaded it yet. A newly used nonce has at
        most one order that it may end, by a unique index of live and filled orders. For a nonce that is free
        again all its orders are read, since an order that the nonce has ended is not in that index.
        """
        hashes: set[bytes] = set()
        questions: list[Query] = []
        for is_undone, rows in ((False, advance.rows), (True, advance.undone)):
            for _, row in rows:
                if isinstance(row, UsedNonce):
                    nonce = row.chain_id, row.owner, row.nonce
                    hashes |= (known := self._orders.of_nonce(*nonce))
                    if not known:
                        questions.append(of_nonce(*nonce) if is_undone else by(DELTA_ORDER, *nonce, unique=1))
        for at in range(0, len(questions), _SLICE):
            found = await self._store.read(*questions[at : at + _SLICE])
            hashes.update(DELTA.found(values).order_hash for some in found for values in some)
        return hashes

    async def _read(self, hashes: Sequence[bytes], advance: Advance) -> list["_Found"]:
        """Read the state of orders as it is after an indexer's step (blocks added or undone).

        The state consists of the stored rows, plus the rows that the step adds, minus those that it undoes.
        """
        # The rows first: a row that changes before the second read fails the unit's version check, and logs
        # change only in a unit that replaces the chain's cursor, as this step's unit does.
        (rows,) = await self._store.read(among(DELTA_ORDER, "order_hash", hashes))
        orders = [order for values in rows if (order := DELTA.found(values)).chain_id == advance.chain_id]
        fills, signed, sent, ends, refunds, effects, *used = await self._store.read(
            *(among(table, "order_hash", hashes) for table in _OF_ORDER),
            *(by(NONCE_USED, order.chain_id, order.owner, order.nonce) for order in orders),
        )
        kept: list[Any] = [
            *(row_of(DELTA_FILL, values) for values in fills),
            *(row_of(PRE_SIGNATURE, values) for values in signed),
            *(row_of(BRIDGE_TRANSFER, values) for values in sent),
            *(row_of(BRIDGE_END, values) for values in ends),
            *(row_of(DELTA_REFUND, values) for values in refunds),
            *(row_of(NONCE_USED, values) for some in used for values in some),
        ]
        undone = {row for _, row in advance.undone}
        of_key: dict[object, dict[Any, None]] = {}  # subject of a row -> rows, each once
        for row in (*(row for row in kept if row not in undone), *(row for _, row in advance.rows)):
            of_key.setdefault(_about(row), {})[row] = None
        of_order: dict[bytes, list[Effect]] = {}
        for values in effects:
            effect: Effect = row_of(EFFECT, values)
            of_order.setdefault(effect.order_hash, []).append(effect)
        return [
            _found(
                order,
                (*of_key.get(order.order_hash, ()), *of_key.get(_nonce(order), ())),
                of_order.get(order.order_hash, []),
            )
            for order in orders
        ]


class _Found(Struct, frozen=True):
    """State of one order after an indexer's step.

    Attributes:
        transfers: bridge transfers, oldest first.
        orphans: changes that delete ends and refunds of transfers that are not in the chain any more.
    """

    row: DeltaOrderRow
    fills: tuple[DeltaFill, ...]
    nonce_used: UsedNonce | None
    is_pre_signed: bool
    effects: Sequence[Effect]
    transfers: tuple[OrderTransfer, ...]
    orphans: tuple[Change, ...]


def _about(row: Any) -> object:
    """Return the key by which an indexed row is matched with an order.

    The key is the order's hash, or (chain id, owner, nonce) for a used nonce.
    """
    return _nonce(row) if isinstance(row, UsedNonce) else getattr(row, "order_hash", None)


def _nonce(row: UsedNonce | DeltaOrderRow) -> tuple[int, bytes, bytes]:
    return row.chain_id, row.owner, row.nonce


def _found(order: DeltaOrderRow, kept: Sequence[Any], effects: Sequence[Effect]) -> _Found:
    """Assemble the state of an order from the indexed rows about the order and about its owner's nonce."""
    fills: dict[tuple[bytes, bytes, int], DeltaFill] = {}
    nonce_used: UsedNonce | None = None
    signed: PreSignature | None = None
    sent: list[BridgeTransfer] = []
    ends: list[BridgeEnd] = []
    refunds: list[DeltaRefund] = []
    for row in kept:
        match row:
            case BridgeTransfer():
                sent.append(row)
            case BridgeEnd():
                ends.append(row)
            case DeltaRefund():
                refunds.append(row)
            case DeltaFill():
                fills[row.block_hash, row.tx_hash, row.log_index] = row
            case UsedNonce():
                # The first log of a nonce counts, as in the store: stored rows come before those of the step.
                nonce_used = row if nonce_used is None else nonce_used
            # Anybody can log a pre-signature of any hash: only the owner's count, and the latest decides.
            case PreSignature() if row.owner == order.owner:
                if signed is None or _place(row) > _place(signed):
                    signed = row
    in_order = sorted(fills.values(), key=_place)
    there = {key_of(row) for row in sent}
    orphans = (
        *(drop(BRIDGE_END, end) for end in ends if key_of(end) not in there),
        *(drop(DELTA_REFUND, refund) for refund in refunds if refunded_key(refund) not in there),
    )
    is_signed = signed is not None and signed.is_signed
    transfers = followed(sent, ends, refunds)
    return _Found(
        row=order,
        fills=tuple(in_order),
        nonce_used=nonce_used,
        is_pre_signed=is_signed,
        effects=effects,
        transfers=transfers,
        orphans=orphans,
    )


def _place(row: DeltaFill | PreSignature) -> tuple[int, int]:
    return row.block_number, row.log_index
