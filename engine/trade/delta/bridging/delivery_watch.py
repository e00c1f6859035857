"""Searches one destination for deliveries of transfers, and follows each delivery until it is final.

    under way -> deposit or burned message from the origin's receipt, once
              -> logs by exact topics, in bounded ranges of blocks, up to the latest block
                    a log fits     DELIVERED, with the amount that came; UNWRAPPED if native tokens came
                    no log fits    FAILED for Across, once a confirmed block is past the fill deadline and
                                   the pool's state at that block shows the deposit as not filled
    DELIVERED -> its block left the chain: under way again
              -> its block is confirmed: final
    ARRIVED in place of DELIVERED where a swap follows: `delta.arriving` looks for the swap

An origin whose nodes do not answer delays only its own transfers, and only while their deposits are unknown.

Choice: A transfer counts as failed only once a confirmed block of the destination is past its fill deadline,
    without a fill in any log or in the pool's own state: the contract takes no later fill.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import structlog
from msgspec import Struct
from msgspec.structs import replace

from .....codecs.bridges.across import (
    FILL_STATUS_FILLED,
    FILLED_RELAY,
    RelayData,
    fill_status,
    relay_hash,
)
from .....codecs.bridges.bridge_terms import BridgeKind
from .....codecs.bridges.cctp import MESSAGE_RECEIVED
from .....codecs.contracts.abi import decode_uint, uint_word
from .....codecs.iso_time import iso_ms
from .....config.errors import ChainError, InvalidInput, StoreUnavailable
from .....config.limits import BRIDGE_CLOCK_SLACK_S, BRIDGE_IDS_PER_FILTER, BRIDGE_RANGES_PER_ROUND
from .....crypto.hexadecimal import to_hex
from ....chain.port import EthCall, Header, Log, LogFilter, Receipt
from ....store.rows import BridgeEnd, BridgeEndState, amount32
from ....store.tables import BRIDGE_END
from ....store.units import Change, cas, drop, new
from ..orders.transfers import OrderTransfer, TransferKey, TransferState, key_of
from .arrivals import Arrival, fill_of, is_unwrapped, mint_of
from .attestations import AttestedMessage
from .bridge_places import BridgeBounds, BridgePlace
from .bridge_rounds import BridgeRounds
from .bridged_orders import BridgedOrder, BridgedOrders
from .courier import Courier, WantedAttestation
from .log_windows import first_block, window
from .origins import BurnedMessage, burn_in, deposit_in, kind_of_transfer

_log = structlog.get_logger("cambist.venue")

_ID_TOPIC = 2  # index of the topic that has the deposit id of FilledRelay, or the nonce of MessageReceived
Sent = RelayData | BurnedMessage
"""Deposit or burned message of the origin, which the destination's logs have to show."""
_EndChanges = list[tuple[OrderTransfer, Change]]


class WaitingTransfer(Struct, frozen=True):
    """A transfer under way to the watch's chain.

    Attributes:
        kind: protocol of the transfer; None for an unknown protocol, whose deliveries the venue cannot
            verify.
    """

    order: BridgedOrder
    transfer: OrderTransfer
    kind: BridgeKind | None

    @property
    def key(self) -> TransferKey:
        """Key of the transfer."""
        return key_of(self.transfer.sent)


class DeliveryStatistics(Struct, frozen=True):
    """State and counters of the watch of one destination.

    Attributes:
        under_way: protocol -> (number of transfers under way, age of the oldest in milliseconds).
        late: number of transfers under way that wait longer than their bridge's bound.
        delivered, failed: numbers of deliveries, and of transfers that cannot arrive any more.
        gone, odd: numbers of deliveries undone by a re-organisation, and of deliveries unlike their deposits.
        fault: reason why the last look failed; empty after a complete look.
    """

    under_way: Mapping[str, tuple[int, int]]
    late: int
    delivered: int
    failed: int
    gone: int
    odd: int
    fault: str


class DeliveryWatch(BridgeRounds):
    """Watch of the deliveries on one destination; `run` is its task.

    Args:
        place: the destination.
        places: all ends of bridges by chain id, the origins among them.
        courier: brings attested messages of CCTP; None without CCTP.
        bounds: ages at which transfers are late.
    """

    def __init__(
        self,
        place: BridgePlace,
        orders: BridgedOrders,
        wall_ms: Callable[[], int],
        *,
        places: Mapping[int, BridgePlace],
        courier: Courier | None,
        bounds: BridgeBounds,
    ) -> None:
        super().__init__(place, orders, wall_ms)
        self._places = places
        self._courier = courier
        self._bounds = bounds
        self._sent: dict[TransferKey, Sent] = {}
        self._nonces: dict[TransferKey, bytes] = {}  # nonces whose logs were read up to `_after`
        self._hints: dict[TransferKey, str] = {}
        self._late: set[TransferKey] = set()
        self._under_way: dict[str, tuple[int, int]] = {}
        self._delivered = self._failed = self._gone = self._odd = 0

    def statistics(self) -> DeliveryStatistics:
        """Return the transfers under way as of the last look, and the counters since the start."""
        return DeliveryStatistics(
            under_way=dict(self._under_way),
            late=len(self._late),
            delivered=self._delivered,
            failed=self._failed,
            gone=self._gone,
            odd=self._odd,
            fault=self.fault,
        )

    def hint(self, key: TransferKey) -> str:
        """Return a text that says why a transfer under way waits; empty if it waits for the bridge alone."""
        courier = "" if self._courier is None else self._courier.hint(key)
        return self._hints.get(key) or courier or self.fault or self._overdue_hint(key)

    def is_late(self, key: TransferKey) -> bool:
        """Whether a transfer under way waits longer than its bridge's bound."""
        return key in self._late

    # --- One round --------------------------------------------------------------------------------------

    def _followed(self) -> list[bytes]:
        return self._orders.to(self._chain.chain_id)

    async def _round(self, hashes: Sequence[bytes]) -> None:
        orders = await self._orders.read(hashes)
        waiting = [
            WaitingTransfer(order, transfer, kind_of_transfer(transfer.sent))
            for order in orders
            for transfer in order.transfers
            if transfer.state is TransferState.UNDER_WAY
        ]
        late = self._note(waiting)
        try:
            await self._follow(orders, waiting)
        finally:
            for awaited, age_ms in late:  # after the look, which finds the text of `hint`
                self._late.add(awaited.key)
                self._alarm(
                    "a bridge transfer is late", awaited, age_s=age_ms // 1_000, waits=self.hint(awaited.key)
                )

    async def _follow(self, orders: Sequence[BridgedOrder], waiting: Sequence[WaitingTransfer]) -> None:
        """Search for the ends of the waiting transfers, check the ends of all others, and store changes."""
        head = await self._begin()
        changes: dict[bytes, _EndChanges] = {order.row.order_hash: [] for order in orders}
        for order in orders:
            changes[order.row.order_hash] += await self._checked_ends(order, head)
        await self._learn(waiting)
        reached: dict[TransferKey, int] = {}
        for kind, wanted in self._searchable(waiting).items():
            for at in range(0, len(wanted), BRIDGE_IDS_PER_FILTER):
                found = await self._search(kind, wanted[at : at + BRIDGE_IDS_PER_FILTER], head, reached)
                for awaited, end in found:
                    change = replace(awaited.transfer, end=end), new(BRIDGE_END, end)
                    changes[awaited.order.row.order_hash].append(change)
        await self._store(orders, changes, reached)
        self._rest_of(orders, lambda order: all(_is_quiet(transfer) for transfer in order.transfers))

    def _note(self, waiting: Sequence[WaitingTransfer]) -> list[tuple[WaitingTransfer, int]]:
        """Count the transfers under way, and forget all others; return new late transfers and their ages."""
        now_ms = self._wall_ms()
        keys = {awaited.key for awaited in waiting}
        for memory in (self._sent, self._hints, self._after, self._nonces):
            for key in [key for key in memory if key not in keys]:
                del memory[key]
        self._late &= keys
        counted: dict[str, tuple[int, int]] = {}
        late: list[tuple[WaitingTransfer, int]] = []
        for awaited in waiting:
            age_ms = max(0, now_ms - awaited.transfer.sent.at_ms)
            name = "unknown" if awaited.kind is None else awaited.kind.value
            count, oldest_ms = counted.get(name, (0, 0))
            counted[name] = count + 1, max(oldest_ms, age_ms)
            bound_ms = 0 if awaited.kind is None else self._bounds.delivery_ms[awaited.kind]
            if age_ms > bound_ms and awaited.key not in self._late:
                late.append((awaited, age_ms))
        self._under_way = counted
        return late

    async def _checked_ends(self, order: BridgedOrder, head: Header) -> _EndChanges:
        """Return changes of deliveries that were undone or have become final, as far as one look has time."""
        changes: _EndChanges = []
        for transfer in order.transfers:
            end = transfer.end
            if end is None or end.is_final or not self._goes_on():
                continue
            is_there = await self._still_there(end.end_number, end.end_block, head)
            if is_there is False:
                self._gone += 1
                changes.append((replace(transfer, end=None), drop(BRIDGE_END, end)))
            elif is_there and end.end_number <= self._place.final_height(head.number):
                final = replace(end, is_final=True)
                changes.append((replace(transfer, end=final), cas(BRIDGE_END, final)))
        return changes

    async def _store(
        self,
        orders: Sequence[BridgedOrder],
        changes: Mapping[bytes, _EndChanges],
        reached: Mapping[TransferKey, int],
    ) -> None:
        """Write the changes of each order; an order whose row has changed meanwhile gets another look.

        Raises:
            StoreUnavailable: the change of at least one order was not written; the other changes were.
        """
        failure: StoreUnavailable | None = None
        for order in orders:
            mine = changes[order.row.order_hash]
            transfers, rows = [transfer for transfer, _ in mine], [change for _, change in mine]
            try:
                is_written = not mine or await self._orders.write(order, transfers, rows)
            except StoreUnavailable as error:
                failure = error  # raised at the end: one order must not keep the others from being written
                continue
            if is_written:
                self._is_again |= bool(mine)
                keys = [key_of(transfer.sent) for transfer in order.transfers]
                # Not after a refused write: the logs that were found would not be searched again.
                self._after |= {key: reached[key] for key in keys if key in reached}
                self._count(order, transfers)
        if failure is not None:
            raise failure

    def _count(self, order: BridgedOrder, changed: Iterable[OrderTransfer]) -> None:
        before = {key_of(transfer.sent): transfer.state for transfer in order.transfers}
        for transfer in changed:
            if transfer.state is not before[key_of(transfer.sent)]:
                self._delivered += transfer.state in (TransferState.DELIVERED, TransferState.ARRIVED)
                self._failed += transfer.state is TransferState.FAILED

    # --- Deposits and burned messages -------------------------------------------------------------------

    async def _learn(self, waiting: Sequence[WaitingTransfer]) -> None:
        """Find deposits and burned messages in the origins' receipts, and have burned messages attested."""
        away: set[int] = set()
        for awaited in waiting:
            origin_id = awaited.transfer.sent.chain_id
            if awaited.key in self._sent or origin_id in away or not self._goes_on():
                continue
            try:
                self._hints[awaited.key] = await self._look_up(awaited)
            except ChainError as error:
                away.add(origin_id)
                self._hints[awaited.key] = f"the origin's node is away: {error.detail}"
        if self._courier is not None:
            self._courier.want(
                {
                    awaited.key: WantedAttestation(awaited.transfer.sent, burned)
                    for awaited in waiting
                    if isinstance(burned := self._sent.get(awaited.key), BurnedMessage)
                }
            )

    async def _look_up(self, awaited: WaitingTransfer) -> str:
        """Find a transfer's deposit or burned message; return why the search failed, or an empty text."""
        sent, parties = awaited.transfer.sent, awaited.order.parties
        origin = self._places.get(sent.chain_id)
        if origin is None or awaited.kind is None:
            return "the bridge is not served any more"
        receipt = await origin.chain.receipt(sent.tx_hash)
        if receipt is None or receipt.block_hash != sent.block_hash:
            return "the origin's node does not show the settlement"
        found: Sent | None = None
        if awaited.kind is BridgeKind.ACROSS:
            found = deposit_in(receipt.logs, sent, parties, origin.spoke_pool)
        else:
            domains = origin.domain, self._place.domain
            found = burn_in(receipt.logs, sent, parties, origin.transmitter, domains)
        if found is None:
            return "the configured contracts of the bridge show no such transfer on the origin"
        self._sent[awaited.key] = found
        return ""

    # --- Searching --------------------------------------------------------------------------------------

    def _searchable(self, waiting: Sequence[WaitingTransfer]) -> dict[BridgeKind, list[WaitingTransfer]]:
        """Group by protocol the transfers whose logs can be searched now, the least searched first."""
        found: dict[BridgeKind, list[WaitingTransfer]] = {}
        for awaited in waiting:
            attested = self._attested(awaited)
            is_ready = isinstance(self._sent.get(awaited.key), RelayData) or attested is not None
            if attested is not None and self._nonces.get(awaited.key) != attested.nonce:
                self._after.pop(awaited.key, None)  # an earlier, false attestation named another nonce
                self._nonces[awaited.key] = attested.nonce
            if awaited.kind is None or not is_ready:
                continue
            if self._contract(awaited.kind) is None:
                self._hints[awaited.key] = "the destination's settings name no contract of its bridge"
            else:
                found.setdefault(awaited.kind, []).append(awaited)
        for wanted in found.values():
            wanted.sort(key=lambda awaited: self._after.get(awaited.key, 0))
        return found

    def _attested(self, awaited: WaitingTransfer) -> AttestedMessage | None:
        return None if self._courier is None else self._courier.attested(awaited.key)

    async def _search(
        self,
        kind: BridgeKind,
        wanted: Sequence[WaitingTransfer],
        head: Header,
        reached: dict[TransferKey, int],
    ) -> list[tuple[WaitingTransfer, BridgeEnd]]:
        """Search for the ends of transfers of one protocol, as far as one round has time.

        Args:
            reached: key -> height up to which the transfer's logs are read for good; entries are added.
        """
        final = self._place.final_height(head.number)
        # One range of blocks serves all transfers: it begins where the least searched transfer needs it.
        after = min([await self._start(awaited, head) for awaited in wanted])
        ends: dict[TransferKey, tuple[WaitingTransfer, BridgeEnd]] = {}
        log_filter = self._filter(kind, wanted)
        of_id: dict[bytes, list[WaitingTransfer]] = {}
        for awaited in wanted:
            of_id.setdefault(self._id_topic(awaited), []).append(awaited)
        for _ in range(BRIDGE_RANGES_PER_ROUND):
            blocks = window(after, head.number, self._span)
            if blocks is None or not self._goes_on():
                break
            logs = await self._logs(log_filter, *blocks)
            if logs is None:
                break
            for log in logs:
                await self._let_others_run()  # logs may be many: anybody can fill deposits that nobody made
                for awaited in of_id.get(log.topics[_ID_TOPIC], ()):
                    if awaited.key not in ends and (end := await self._end_by(awaited, log)) is not None:
                        ends[awaited.key] = awaited, end
            after = blocks[1]
        self._is_again |= after < head.number
        read_to = min(after, final)
        # The courier may change an attestation at each await above. It drops one only while the nonce is
        # unused, so that no log is missed; for another nonce, `_searchable` begins the search anew.
        reached |= {awaited.key: max(read_to, self._after[awaited.key]) for awaited in wanted}
        if read_to == final >= 0 and (confirmed := await self._at(final)) is not None:
            for awaited in wanted:
                deposit = self._overdue(awaited, confirmed)
                if awaited.key in ends or deposit is None:
                    continue
                if await self._is_filled(deposit, confirmed):  # the node has not shown the log of the fill
                    self._hints[awaited.key] = "the bridge says that it delivered, and the node shows no log"
                    self._after.pop(awaited.key, None)
                    reached.pop(awaited.key, None)
                else:
                    ends[awaited.key] = awaited, _failure(awaited.transfer, confirmed)
        return list(ends.values())

    async def _start(self, awaited: WaitingTransfer, head: Header) -> int:
        """Return the height after which to search a transfer's logs; blocks up to it are read, or too old.

        The first search begins at the transfer's time, or at the head's time if the head is older, as on a
        chain that stood still; in both cases less BRIDGE_CLOCK_SLACK_S.
        """
        if awaited.key not in self._after:
            since_s = min(awaited.transfer.sent.at_ms // 1_000, head.time_s) - BRIDGE_CLOCK_SLACK_S
            search = first_block(head.number, since_s)
            try:
                height = next(search)
                while True:
                    header = await self._at(height)
                    if header is None:
                        raise ChainError(f"the node shows no block {height}")
                    height = search.send(header.time_s)
            except StopIteration as found:
                self._after[awaited.key] = found.value - 1
        return self._after[awaited.key]

    def _contract(self, kind: BridgeKind) -> bytes | None:
        """Return the contract whose logs show deliveries of a protocol; None if the settings name none."""
        return self._place.spoke_pool if kind is BridgeKind.ACROSS else self._place.transmitter

    def _filter(self, kind: BridgeKind, wanted: Sequence[WaitingTransfer]) -> LogFilter:
        contract = self._contract(kind) or b""
        if kind is BridgeKind.ACROSS:
            deposits = [
                sent for sent in map(self._sent.get, (w.key for w in wanted)) if isinstance(sent, RelayData)
            ]
            chains = {uint_word(deposit.origin_chain_id): None for deposit in deposits}
            ids = {uint_word(deposit.deposit_id): None for deposit in deposits}
            return LogFilter((contract,), ((FILLED_RELAY.topic,), tuple(chains), tuple(ids)))
        nonces = {found.nonce: None for awaited in wanted if (found := self._attested(awaited)) is not None}
        return LogFilter((contract,), ((MESSAGE_RECEIVED.topic,), (), tuple(nonces)))

    def _id_topic(self, awaited: WaitingTransfer) -> bytes:
        """Return the topic that distinguishes a transfer's logs from the logs of other transfers."""
        sent, attested = self._sent[awaited.key], self._attested(awaited)
        if isinstance(sent, RelayData):
            return uint_word(sent.deposit_id)
        return b"" if attested is None else attested.nonce

    async def _end_by(self, awaited: WaitingTransfer, log: Log) -> BridgeEnd | None:
        """Read a log as the delivery of a transfer; None for any other log.

        Raises:
            ChainError: the receipt or the block that the node shows contradicts the log.
        """
        sent, token = self._sent[awaited.key], awaited.transfer.sent.output_token
        arrival: Arrival | None = None
        receipt: Receipt | None = None
        if isinstance(sent, RelayData):
            arrival = fill_of(log, sent, self._place.spoke_pool or b"")
            receipt = await self._receipt_of(log) if arrival is not None else None
        elif (attested := self._attested(awaited)) is not None:
            receipt = await self._receipt_of(log)
            transmitter = self._place.transmitter or b""
            arrival = mint_of(log, receipt.logs, sent, attested.nonce, transmitter, token)
        if arrival is None or receipt is None:
            return None
        header = await self._header_of(log)
        if arrival.oddity:
            self._odd += 1
            self._alarm("a bridge delivered otherwise than promised", awaited, detail=arrival.oddity)
        # Tokens that came to another account than the Arrival cannot be swapped: the delivery is the end.
        has_swap = awaited.order.arrival is not None and not arrival.is_elsewhere
        is_fill = isinstance(sent, RelayData) and token == self._place.wrapped_native
        native = is_fill and is_unwrapped(arrival, receipt.logs, token)
        state = BridgeEndState.UNWRAPPED if native else BridgeEndState.DELIVERED
        if has_swap:  # the account wraps what it swaps or pays out
            state = BridgeEndState.ARRIVED
        return _delivery(awaited.transfer, arrival, header, state)

    def _overdue(self, awaited: WaitingTransfer, confirmed: Header) -> RelayData | None:
        """Return a transfer's deposit whose fill deadline is over at a block; None for any other transfer."""
        sent = self._sent[awaited.key]
        return sent if isinstance(sent, RelayData) and confirmed.time_s > sent.fill_deadline else None

    def _overdue_hint(self, key: TransferKey) -> str:
        """Say for what a transfer waits whose fill deadline is over by the clock alone."""
        sent = self._sent.get(key)
        if not isinstance(sent, RelayData) or self._wall_ms() <= 1_000 * sent.fill_deadline:
            return ""
        return (
            f"its deadline passed at {iso_ms(1_000 * sent.fill_deadline)}: a confirmed block of chain "
            f"{self._chain.chain_id} after that shows whether a refund is due"
        )

    async def _is_filled(self, deposit: RelayData, confirmed: Header) -> bool:
        """Whether the destination's pool reports a deposit as filled at a block."""
        calldata = fill_status(relay_hash(deposit, self._chain.chain_id))
        returned = await self._chain.call(EthCall(self._place.spoke_pool or b"", calldata), confirmed.hash)
        try:
            return decode_uint(returned) == FILL_STATUS_FILLED
        except InvalidInput as error:
            raise ChainError(error.detail) from None

    def _alarm(self, what: str, awaited: WaitingTransfer, **facts: object) -> None:
        sent = awaited.transfer.sent
        _log.warning(
            what,
            order=to_hex(sent.order_hash),
            origin=sent.chain_id,
            destination=sent.destination_chain_id,
            transaction=to_hex(sent.tx_hash),
            protocol=None if awaited.kind is None else awaited.kind.value,
            **facts,
        )


def _is_quiet(transfer: OrderTransfer) -> bool:
    """Whether the transfer's end is final, so that this watch has nothing left to check."""
    return transfer.end is not None and transfer.end.is_final


def _delivery(transfer: OrderTransfer, arrival: Arrival, header: Header, state: BridgeEndState) -> BridgeEnd:
    sent, log = transfer.sent, arrival.log
    return BridgeEnd(
        *key_of(sent),
        sent.order_hash,
        sent.destination_chain_id,
        1,
        state,
        log.block_hash,
        log.block_number,
        log.tx_hash,
        log.log_index,
        amount32(arrival.amount),
        header.time_s * 1_000,
        is_final=False,
    )


def _failure(transfer: OrderTransfer, confirmed: Header) -> BridgeEnd:
    sent = transfer.sent
    return BridgeEnd(
        *key_of(sent),
        sent.order_hash,
        sent.destination_chain_id,
        1,
        BridgeEndState.FAILED,
        confirmed.hash,
        confirmed.number,
        None,
        None,
        amount32(0),
        confirmed.time_s * 1_000,
        is_final=True,
    )
