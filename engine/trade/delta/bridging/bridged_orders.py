"""Orders with bridge transfers: the list of followed orders, their reads from the store, and their changes.

A step is decided on rows that were read together. The step is written only if the order's row has not changed
since: after a step of the indexer in between, the writer reads the order again.

Source: ARCHITECTURE.md, "Orders", "Transitions".
Choice: An order across chains is not auctioned while its bridge asks more than the signed fee and the
    settings' margin on the fee: no relayer would fill the transfer, and the refund would come late.
"""

from collections.abc import Callable, Container, Iterable, Sequence

from msgspec import Struct

from .....codecs.bridges.arrivals import ArrivalTerms
from .....config.errors import OrderNotFound
from .....config.limits import BRIDGE_ORDERS_READ
from ....store.queries import among
from ....store.rows import DeltaFill, DeltaOrderRow, amount_of
from ....store.store import Store
from ....store.tables import BRIDGE_END, BRIDGE_TRANSFER, DELTA_FILL, DELTA_ORDER, DELTA_REFUND
from ....store.units import Change, row_of
from ...orders.order_units import DELTA
from ...served.bridge_lanes import BridgeLanes
from ..orders.arriving import arrival_of
from ..orders.life import DeltaStep, told_by_bridge
from ..orders.live_orders import LiveOrder, LiveOrders
from ..orders.transfers import OrderTransfer, bridge_of, followed, key_of
from .origins import TransferParties


def is_carried(lanes: BridgeLanes, live: LiveOrder, now_ms: int, entering: int | None) -> bool:
    """Whether a bridge carries an order's next settlement at the fee that its owner signed.

    True for an order on one chain or a fully settled order; False also while no present fee is known.

    Args:
        entering: raw units that enter the bridge, as of a bridge-only order; None if makers' prices decide
            it, so that it counts as the order's minimum.
    """
    bridge = bridge_of(live.order)
    part = live.part() if bridge.destination_chain_id else None
    if part is None:
        return True
    chain_id, token = live.row.chain_id, live.terms.dest_token
    amount = part.dest_amount if entering is None else entering
    return lanes.carries_at_fee(bridge, chain_id, token, amount, now_ms)


class BridgedOrder(Struct, frozen=True):
    """An order and its transfers, which were read from the store together.

    Attributes:
        fills: settlements of the order, in any sequence.
        transfers: bridge transfers of the order, oldest first.
        arrival: terms of the swap on the destination, from the account to which the bridge delivers; None
            without a swap.
    """

    row: DeltaOrderRow
    parties: TransferParties
    fills: tuple[DeltaFill, ...]
    transfers: tuple[OrderTransfer, ...]
    arrival: ArrivalTerms | None = None


class BridgedOrders:
    """The orders of this process whose transfers are followed, of all chains.

    Args:
        orders: live orders in memory.
        wall_ms: returns the time, Unix milliseconds.
    """

    def __init__(self, store: Store, orders: LiveOrders, wall_ms: Callable[[], int]) -> None:
        self._store = store
        self._orders = orders
        self._wall_ms = wall_ms
        self._ends: dict[bytes, tuple[int, int]] = {}  # hash -> origin, destination

    def follow(self, live: LiveOrder) -> bool:
        """Note an order that may have transfers, and forget any other; True if the order is followed."""
        destination = bridge_of(live.order).destination_chain_id
        is_followed = destination != 0 and amount_of(live.row.spent) > 0 and not live.row.is_final
        if is_followed:
            self._ends[live.order_hash] = live.row.chain_id, destination
        else:
            self._ends.pop(live.order_hash, None)
        return is_followed

    def leave(self, held: Container[int]) -> None:
        """Forget the orders of shards that this process does not hold any more.

        Args:
            held: numbers of the shards that the process holds.
        """
        for order_hash in [key for key in self._ends if key[0] not in held]:
            del self._ends[order_hash]

    def to(self, chain_id: int) -> list[bytes]:
        """List the hashes of the followed orders whose destination is a chain."""
        return [key for key, (_, destination) in self._ends.items() if destination == chain_id]

    def arriving_at(self, chain_id: int) -> list[bytes]:
        """List the hashes of the followed orders whose destination is a chain and that need a swap there."""
        found = ((key, self._orders.get(key)) for key in self.to(chain_id))
        return [key for key, live in found if live is not None and live.document.arrivals]

    def from_(self, chain_id: int) -> list[bytes]:
        """List the hashes of the followed orders whose origin is a chain."""
        return [key for key, (origin, _) in self._ends.items() if origin == chain_id]

    def version(self, order_hash: bytes) -> int:
        """Return the version of an order in memory; 0 for an order that is not in memory."""
        live = self._orders.get(order_hash)
        return 0 if live is None else live.row.version

    async def read(self, hashes: Sequence[bytes]) -> list[BridgedOrder]:
        """Read orders with their transfers from the store, some at a time; orders not in memory are left out.

        Raises:
            StoreUnavailable: the store does not answer.
        """
        found: list[BridgedOrder] = []
        for at in range(0, len(hashes), BRIDGE_ORDERS_READ):
            found += await self._read(hashes[at : at + BRIDGE_ORDERS_READ])
        return found

    async def _read(self, hashes: Sequence[bytes]) -> list[BridgedOrder]:
        tables = (DELTA_ORDER, DELTA_FILL, BRIDGE_TRANSFER, BRIDGE_END, DELTA_REFUND)
        rows, fills, sent, ends, refunds = await self._store.read(
            *(among(table, "order_hash", hashes) for table in tables)
        )
        transfers = followed(
            (row_of(BRIDGE_TRANSFER, values) for values in sent),
            (row_of(BRIDGE_END, values) for values in ends),
            (row_of(DELTA_REFUND, values) for values in refunds),
        )
        settled: list[DeltaFill] = [row_of(DELTA_FILL, values) for values in fills]
        found = []
        for row in map(DELTA.found, rows):
            live = self._orders.get(row.order_hash)
            if live is None:  # final, or of a shard that another engine runs by now
                continue
            terms = live.terms
            found.append(
                BridgedOrder(
                    row,
                    TransferParties(terms.owner, terms.beneficiary, terms.dest_token),
                    tuple(fill for fill in settled if fill.order_hash == row.order_hash),
                    tuple(transfer for transfer in transfers if transfer.sent.order_hash == row.order_hash),
                    arrival_of(live.order, live.document.arrivals),
                )
            )
        return found

    async def write(
        self, order: BridgedOrder, changed: Iterable[OrderTransfer], more: Sequence[Change] = ()
    ) -> bool:
        """Store a change of an order's transfers with the order's step; False if nothing was written.

        Nothing is written if the order has changed since it was read, is final, or is no longer stored, or if
        the order in memory is still older than the one that was read.

        Args:
            order: the order as it was read.
            changed: the transfers that change, in their new state.
            more: store changes that write the new state of the transfers.

        Raises:
            StoreUnavailable: the change was not written, or may have been written; read the order again.
        """
        new = {key_of(transfer.sent): transfer for transfer in changed}
        transfers = [new.get(key_of(transfer.sent), transfer) for transfer in order.transfers]
        written: list[DeltaStep] = []

        def decide(row: DeltaOrderRow) -> DeltaStep | None:
            # A write conflict calls `decide` again: the step of the refused write must not make the result
            # True, since the caller then takes the logs for stored and does not search them again.
            written.clear()
            if row.version != order.row.version:
                return None
            step = told_by_bridge(row, order.fills, transfers, tuple(more), self._wall_ms())
            written.extend([] if step is None else [step])
            return step

        try:
            await self._orders.step(order.row.order_hash, decide)
        except OrderNotFound:
            self._ends.pop(order.row.order_hash, None)
            return False
        return bool(written)
