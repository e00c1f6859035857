"""Searches one origin for the refunds of failed transfers, and follows refunds until they are final.

    FAILED -> the pool's refund logs from the transfer's block on, in bounded ranges, each with its receipt
           -> entries that paid owners: allocated to the oldest transfers (`refund_entries`)
    refund -> its block left the chain: owed again
           -> its block is confirmed: final

Engines that share the store allocate the same entries: the store takes each unit of an entry once.
"""

from collections.abc import Callable, Mapping, Sequence

import structlog
from msgspec import Struct
from msgspec.structs import replace

from .....codecs.bridges.across import EXECUTED_REFUND_ROOT
from .....config.errors import StoreUnavailable
from .....config.limits import BRIDGE_RANGES_PER_ROUND
from .....crypto.hexadecimal import to_hex
from ....chain.port import Header, LogFilter
from ....store.queries import IDS_MAX, among
from ....store.rows import DeltaRefund
from ....store.store import Store
from ....store.tables import DELTA_REFUND
from ....store.units import Change, cas, drop, new, row_of
from ..orders.transfers import OrderTransfer, TransferKey, TransferState, key_of, refunded_key
from .bridge_places import BridgePlace
from .bridge_rounds import BridgeRounds
from .bridged_orders import BridgedOrder, BridgedOrders
from .log_windows import window
from .refund_entries import OwedTransfer, RefundEntry, allocated, entries_in, used_up

_log = structlog.get_logger("cambist.venue")


class RefundStatistics(Struct, frozen=True):
    """State and counters of the watch of one origin.

    Attributes:
        owed: number of failed transfers that wait for their refunds.
        oldest_ms: age of the oldest failure whose refund is owed; 0 if nothing is owed.
        late: number of owed transfers that wait longer than the bound.
        refunded: number of transfers that were refunded in full.
        gone: number of refunds that a re-organisation undid.
        fault: reason why the last look failed; empty after a complete look.
    """

    owed: int
    oldest_ms: int
    late: int
    refunded: int
    gone: int
    fault: str


class RefundWatch(BridgeRounds):
    """Watch of the refunds on one origin; `run` is its task.

    Args:
        place: the origin.
        late_ms: age of a failure at which a missing refund is alarmed, milliseconds.
    """

    def __init__(
        self,
        place: BridgePlace,
        orders: BridgedOrders,
        wall_ms: Callable[[], int],
        *,
        store: Store,
        late_ms: int,
    ) -> None:
        super().__init__(place, orders, wall_ms)
        self._stored = store
        self._late_ms = late_ms
        self._late: set[TransferKey] = set()
        self._owed = self._oldest_ms = self._refunded = self._gone = 0

    def statistics(self) -> RefundStatistics:
        """Return the owed transfers as of the last look, and the counters since the start."""
        return RefundStatistics(
            self._owed, self._oldest_ms, len(self._late), self._refunded, self._gone, self.fault
        )

    def is_late(self, key: TransferKey) -> bool:
        """Whether the refund of a failed transfer is later than the bound."""
        return key in self._late

    # --- One round --------------------------------------------------------------------------------------

    def _followed(self) -> list[bytes]:
        return self._orders.from_(self._chain.chain_id)

    async def _round(self, hashes: Sequence[bytes]) -> None:
        orders = await self._orders.read(hashes)
        owed = [
            OwedTransfer(transfer, order.parties.owner, order.parties.token)
            for order in orders
            for transfer in order.transfers
            if transfer.state is TransferState.FAILED
        ]
        self._note(owed)
        head = await self._begin()
        changes: dict[bytes, list[Change]] = {}
        states: dict[TransferKey, OrderTransfer] = {}
        # Before the search, which adds refunds to `states`: `_checked_refunds` would replace what was added.
        for order in orders:
            mine = changes.setdefault(order.row.order_hash, [])
            for transfer in order.transfers:
                mine += await self._checked_refunds(transfer, head, states)
        reached = await self._search(owed, head, changes, states) if owed else {}
        failure: StoreUnavailable | None = None
        for order in orders:
            try:
                await self._write(order, changes[order.row.order_hash], states, reached)
            except StoreUnavailable as error:
                failure = error  # raised after the loop: one order must not keep others from being written
        if failure is not None:
            raise failure  # before `_rest_of`: all orders are looked at again
        self._rest_of(orders, lambda order: all(_is_quiet(transfer) for transfer in order.transfers))

    def _note(self, owed: Sequence[OwedTransfer]) -> None:
        """Count the owed transfers, warn once of each that is late, and forget transfers that are not owed.

        A transfer is late if it failed more than `late_ms` milliseconds ago.
        """
        now_ms = self._wall_ms()
        keys = {key_of(due.transfer.sent) for due in owed}
        self._after = {key: height for key, height in self._after.items() if key in keys}
        self._late &= keys
        ages = {
            key_of(due.transfer.sent): max(0, now_ms - due.transfer.end.at_ms)
            for due in owed
            if due.transfer.end is not None
        }
        self._owed, self._oldest_ms = len(owed), max(ages.values(), default=0)
        for due in owed:
            key, sent = key_of(due.transfer.sent), due.transfer.sent
            if ages[key] > self._late_ms and key not in self._late:
                self._late.add(key)
                _log.warning(
                    "a refund of a bridge is late",
                    order=to_hex(sent.order_hash),
                    origin=sent.chain_id,
                    transaction=to_hex(sent.tx_hash),
                    age_s=ages[key] // 1_000,
                )

    async def _checked_refunds(
        self, transfer: OrderTransfer, head: Header, states: dict[TransferKey, OrderTransfer]
    ) -> list[Change]:
        """Return changes of refunds that were undone or have become final, as far as one look has time.

        Args:
            states: key -> state of a transfer after the changes; entries are added.
        """
        changes: list[Change] = []
        kept: list[DeltaRefund] = []
        for refund in transfer.refunds:
            # A refund stays as it is if it is final, if this look has no time left, or if the node does not
            # show its block yet (None).
            is_left = refund.is_final or not self._goes_on()
            is_there = is_left or await self._still_there(refund.block_number, refund.block_hash, head)
            if is_there is False:
                self._gone += 1
                changes.append(drop(DELTA_REFUND, refund))
                continue
            is_deep = refund.block_number <= self._place.final_height(head.number)
            if is_there and is_deep and not is_left:
                final = replace(refund, is_final=True)
                changes.append(cas(DELTA_REFUND, final))
                kept.append(final)
            else:
                kept.append(refund)
        if changes:
            states[key_of(transfer.sent)] = replace(transfer, refunds=tuple(kept))
        return changes

    async def _write(
        self,
        order: BridgedOrder,
        changes: Sequence[Change],
        states: Mapping[TransferKey, OrderTransfer],
        reached: Mapping[TransferKey, int],
    ) -> None:
        keys = [key_of(transfer.sent) for transfer in order.transfers]
        changed = [states[key] for key in keys if key in states]
        is_written = not changes or await self._orders.write(order, changed, changes)
        if is_written:
            self._is_again |= bool(changes)
            self._after |= {key: reached[key] for key in keys if key in reached}
            before = {key_of(transfer.sent): transfer.state for transfer in order.transfers}
            self._refunded += sum(
                transfer.state is TransferState.REFUNDED is not before[key_of(transfer.sent)]
                for transfer in changed
            )

    # --- Searching --------------------------------------------------------------------------------------

    async def _search(
        self,
        owed: Sequence[OwedTransfer],
        head: Header,
        changes: Mapping[bytes, list[Change]],
        states: dict[TransferKey, OrderTransfer],
    ) -> dict[TransferKey, int]:
        """Search for refunds of owed transfers, as far as one round has time, and add the refunds' changes.

        Returns:
            Key -> height up to which the transfer's refunds are read for good.
        """
        if self._place.spoke_pool is None:
            return {}
        after = min(
            self._after.get(key_of(due.transfer.sent), due.transfer.sent.block_number - 1) for due in owed
        )
        entries: list[RefundEntry] = []
        for _ in range(BRIDGE_RANGES_PER_ROUND):
            blocks = window(after, head.number, self._span)
            if blocks is None or not self._goes_on():
                break
            found = await self._entries(owed, *blocks)
            if found is None:
                break
            entries += found
            after = blocks[1]
        self._is_again |= after < head.number
        # One call for all ranges: `owed` stays as it was read, and a second call would pay its debts again.
        for refund in await self._allocated(entries, owed):
            key = refunded_key(refund)
            before = states.get(key) or next(due.transfer for due in owed if key_of(due.transfer.sent) == key)
            states[key] = replace(before, refunds=(*before.refunds, refund))
            changes[refund.order_hash].append(new(DELTA_REFUND, refund))
        # `_write` notes these heights, and only once an order's changes are stored.
        read_to = min(after, self._place.final_height(head.number))
        return {key_of(due.transfer.sent): read_to for due in owed}

    async def _entries(self, owed: Sequence[OwedTransfer], first: int, last: int) -> list[RefundEntry] | None:
        """Read entries that paid owners of owed transfers in a range of blocks; None if the node refuses."""
        pool = self._place.spoke_pool or b""
        payees = {(due.owner, due.token) for due in owed}
        found: list[RefundEntry] = []
        done: set[bytes] = set()
        logs = await self._logs(LogFilter((pool,), ((EXECUTED_REFUND_ROOT.topic,),)), first, last)
        if logs is None:
            return None
        for log in logs:
            if log.tx_hash in done:
                continue
            done.add(log.tx_hash)
            paid = entries_in((await self._receipt_of(log)).logs, pool)
            found += [entry for entry in paid if (entry.account, entry.token) in payees]
        return found

    async def _allocated(
        self, entries: Sequence[RefundEntry], owed: Sequence[OwedTransfer]
    ) -> list[DeltaRefund]:
        if not entries:
            return []
        transactions = list(dict.fromkeys(entry.log.tx_hash for entry in entries))
        stored: list[DeltaRefund] = []
        for at in range(0, len(transactions), IDS_MAX):
            (rows,) = await self._stored.read(among(DELTA_REFUND, "tx_hash", transactions[at : at + IDS_MAX]))
            stored += [row_of(DELTA_REFUND, values) for values in rows]
        times = {entry.log.block_number: (await self._header_of(entry.log)).time_s for entry in entries}
        return allocated(entries, owed, used_up(stored), times)


def _is_quiet(transfer: OrderTransfer) -> bool:
    """Whether no log of the origin can change a transfer's refunds until the next change of its order."""
    return transfer.state is not TransferState.FAILED and all(refund.is_final for refund in transfer.refunds)
