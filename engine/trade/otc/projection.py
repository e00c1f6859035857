"""Derives changes of OTC orders from the chain's logs, for the unit that indexes the logs.

    Advance -> hashes of its orders -> their rows, documents and logs as of the step
            -> `life.step_from_logs` -> changes

A step concerns an order if it adds or undoes a fill or a cancellation of the order, or if the order's end may
have become final. The RFQ contract also logs fills of firm quotes and of orders posted elsewhere, which are
skipped. The orders are read from the store, and the store refuses the step if they have changed since;
therefore it does not matter which process runs them.

Source: ARCHITECTURE.md, "Indexer", "Transitions"; choices.md#otc-orders.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from ...chain.index.indexer import Advance
from ...store.queries import among, live_otc, unfinished_otc
from ...store.rows import OrderDocument, OtcCancel, OtcCancelUntil, OtcFill, OtcOrderRow
from ...store.store import Store
from ...store.tables import OTC_DOCUMENT, OTC_ORDER
from ...store.units import Change, row_of
from ..orders.order_units import OTC
from .document import decode_document, facts_of
from .life import step_from_logs
from .live_orders import OtcLogs, OtcOrders, cancel_by, log_queries, logs_of

_SLICE = 64
"""Number of orders in one read of the store; other tasks run between two reads."""


class _StepLogs(Struct, frozen=True):
    """Logs of OTC orders that one step of the indexer adds or undoes.

    Attributes:
        undone: rows of fills and cancellations that a re-organisation undoes in the step.
        logs: new fills and cancellations by order hash.
        untils: new bulk cancellations, each of all of a maker's orders that expire at or before a given time.
        undone_untils: bulk cancellations that a re-organisation undoes in the step.
    """

    undone: frozenset[Any]
    logs: Mapping[bytes, OtcLogs]
    untils: Sequence[OtcCancelUntil]
    undone_untils: Sequence[OtcCancelUntil]

    def on(self, row: OtcOrderRow, kept: OtcLogs) -> OtcLogs:
        """Apply the step's logs to an order: return the order's fills and cancellations after the step.

        Args:
            kept: the order's fills and cancellations in the store before the step.
        """
        new = self.logs.get(row.order_hash, OtcLogs([], []))
        undone = {*self.undone, *(cancel_by(until, row) for until in self.undone_untils)}
        cancels = [cancel for until in self.untils if (cancel := cancel_by(until, row)) is not None]
        return OtcLogs(
            [fill for fill in kept.fills if fill not in undone] + new.fills,
            [cancel for cancel in kept.cancels if cancel not in undone] + new.cancels + cancels,
        )


class OtcProjection:
    """Derives the changes of OTC orders from one chain's logs; an `engine.chain.index.indexer.Projection`.

    Args:
        orders: orders in memory that may still change.
        confirmations: number of blocks, the log's own included, after which a log is final.
        is_short: returns whether a maker's last known funds do not cover an order.
        now_ms: returns the time, Unix milliseconds.
    """

    def __init__(
        self,
        store: Store,
        orders: OtcOrders,
        *,
        confirmations: int,
        is_short: Callable[[OtcOrderRow], bool],
        now_ms: Callable[[], int],
    ) -> None:
        self._store = store
        self._orders = orders
        self._confirmations = confirmations
        self._is_short = is_short
        self._now_ms = now_ms

    async def changes(self, advance: Advance) -> Sequence[Change]:
        """Compute the changes of OTC orders that follow from the logs of an indexer step.

        The changes belong to the step's unit; see `Projection.changes`.
        """
        final_height = advance.top.number - self._confirmations + 1
        step_logs = _logs_in(advance)
        about = self._about(advance, final_height) | await self._cancelled(step_logs)
        ordered = sorted(about)  # any number of hashes, of our orders or of others
        changes: list[Change] = []
        for at in range(0, len(ordered), _SLICE):
            changes += await self._decided(
                ordered[at : at + _SLICE], step_logs, advance.chain_id, final_height
            )
        return changes

    def _about(self, advance: Advance, final_height: int) -> set[bytes]:
        """Collect the hashes of the orders to recompute after a step of the indexer.

        An order counts if a new or undone fill or cancellation names the order, or if the order has ended and
        no re-organisation can undo the end any more.

        Args:
            final_height: height up to which blocks are final.
        """
        hashes = {
            row.order_hash
            for _, row in (*advance.rows, *advance.undone)
            if isinstance(row, OtcFill | OtcCancel)
        }
        return hashes.union(self._orders.settled(advance.chain_id, advance.top.number, final_height))

    async def _cancelled(self, step_logs: _StepLogs) -> set[bytes]:
        """Find the hashes of the orders that new or undone bulk cancellations cover.

        A bulk cancellation cancels all of a maker's orders that expire at or before a given time.

        Args:
            step_logs: logs that the indexer's step adds or undoes.
        """
        questions = [live_otc(until.chain_id, until.maker) for until in step_logs.untils]
        questions += [unfinished_otc(until.chain_id, until.maker) for until in step_logs.undone_untils]
        if not questions:
            return set()
        found = await self._store.read(*questions)
        rows = [OTC.found(values) for some in found for values in some]
        every = (*step_logs.untils, *step_logs.undone_untils)
        return {row.order_hash for row in rows if any(cancel_by(until, row) for until in every)}

    async def _decided(
        self, hashes: Sequence[bytes], step_logs: _StepLogs, chain_id: int, final_height: int
    ) -> list[Change]:
        """Compute the changes of orders from their stored logs and from the logs of the indexer's step.

        Args:
            step_logs: logs that the step adds or undoes.
            final_height: height up to which blocks are final.
        """
        rows, documents = await self._store.read(
            *(among(table, "order_hash", hashes) for table in (OTC_ORDER, OTC_DOCUMENT))
        )
        # Of this chain only: a maker can cancel here a hash that is of its order on another chain.
        orders = [order for values in rows if (order := OTC.found(values)).chain_id == chain_id]
        if not orders:
            return []
        # The second read may see a later state: a row that changed fails the unit's version check, and logs
        # change only in a unit that replaces the chain's cursor, as this step's unit does.
        some = await self._store.read(*log_queries(hashes, {order.maker for order in orders}))
        bodies = {kept.order_hash: kept.body for values in documents if (kept := _document(values))}
        logs = logs_of(orders, some)
        changes: list[Change] = []
        for row in orders:
            live = self._orders.get(row.order_hash)
            of_order = step_logs.on(row, logs.get(row.order_hash, OtcLogs([], [])))
            facts = facts_of(
                row,
                decode_document(bodies[row.order_hash]),
                of_order.fills,
                of_order.cancels,
                final_height=final_height,
                ended_at=None if live is None else live.ended_at,
                is_short=self._is_short(row),
            )
            step = step_from_logs(row, facts, self._now_ms())
            if step is not None:
                changes += OTC.advanced(row, step.after).changes
        return changes


def _logs_in(advance: Advance) -> _StepLogs:
    logs: dict[bytes, OtcLogs] = {}
    for _, row in advance.rows:
        match row:
            case OtcFill():
                logs.setdefault(row.order_hash, OtcLogs([], [])).fills.append(row)
            case OtcCancel():
                logs.setdefault(row.order_hash, OtcLogs([], [])).cancels.append(row)
    untils = [row for _, row in advance.rows if isinstance(row, OtcCancelUntil)]
    undone = frozenset(row for _, row in advance.undone)
    return _StepLogs(undone, logs, untils, [row for row in undone if isinstance(row, OtcCancelUntil)])


def _document(values: Sequence[object]) -> OrderDocument:
    document: OrderDocument = row_of(OTC_DOCUMENT, values)
    return document
