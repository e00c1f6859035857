"""The bridges of a venue: the watches and couriers of all chains, run together.

    an order is loaded, or has changed -> look_at_transfers: the tasks of its destination and its origin look

Source: ARCHITECTURE.md, "Orders".
"""

from collections.abc import Callable, Container, Mapping

import structlog
import trio
from msgspec import Struct

from ....crypto.hexadecimal import to_hex
from ...store.store import Store
from .arriving.arrival_place import ArrivalPlace
from .arriving.arrival_swaps import ArrivalStatistics, ArrivalSwaps
from .arriving.arrival_watch import ArrivalWatch
from .bridging.attester_client import AttesterClient
from .bridging.bridge_places import BridgeBounds, BridgePlace
from .bridging.bridged_orders import BridgedOrders
from .bridging.courier import Courier, CourierStatistics
from .bridging.delivery_watch import DeliveryStatistics, DeliveryWatch
from .bridging.refund_watch import RefundStatistics, RefundWatch
from .orders.live_orders import LiveOrder, LiveOrders
from .orders.transfers import OrderTransfer, TransferState, bridge_of, key_of

_log = structlog.get_logger("cambist.venue")
_WAITING = (TransferState.UNDER_WAY, TransferState.ARRIVED, TransferState.FAILED)
_UNSERVED = "the venue's settings have no bridge of that chain any more"


class BridgeChainStatistics(Struct, frozen=True):
    """Counters of one chain as destination and as origin.

    Attributes:
        courier: counters of the courier; None without CCTP.
        swapper: counters of the swapper; None without an Arrivals contract.
    """

    deliveries: DeliveryStatistics
    refunds: RefundStatistics
    courier: CourierStatistics | None
    swapper: ArrivalStatistics | None


class TransferWait(Struct, frozen=True):
    """The reason why a transfer of an order waits, as people read it.

    Attributes:
        hint: cause other than the bridge itself; empty without such a cause.
    """

    transfer: OrderTransfer
    is_late: bool
    hint: str


class BridgeDesk:
    """Follows the bridge transfers of all orders of this process; `run` is its task.

    Args:
        places: chains on which bridges begin or end, with the bridges' contracts, by chain id.
        attester: client of the attestation service; None without CCTP.
        bounds: ages at which waiting transfers raise an alarm.
        wall_ms: returns the time, Unix milliseconds.
        arrivals: chains on which swaps after a bridge are made, by chain id; each is in `places`.
    """

    def __init__(
        self,
        store: Store,
        orders: LiveOrders,
        places: Mapping[int, BridgePlace],
        *,
        attester: AttesterClient | None,
        bounds: BridgeBounds,
        wall_ms: Callable[[], int],
        arrivals: Mapping[int, ArrivalPlace] | None = None,
    ) -> None:
        self._orders = BridgedOrders(store, orders, wall_ms)
        self._couriers = {
            chain_id: Courier(place, attester)
            for chain_id, place in places.items()
            if attester is not None and place.transmitter is not None
        }
        self._deliveries = {
            chain_id: DeliveryWatch(
                place,
                self._orders,
                wall_ms,
                places=places,
                courier=self._couriers.get(chain_id),
                bounds=bounds,
            )
            for chain_id, place in places.items()
        }
        self._refunds = {
            chain_id: RefundWatch(place, self._orders, wall_ms, store=store, late_ms=bounds.refund_ms)
            for chain_id, place in places.items()
        }
        swapped = arrivals or {}
        self._swappers = {chain_id: ArrivalSwaps(place) for chain_id, place in swapped.items()}
        self._arrivals = {
            chain_id: ArrivalWatch(
                places[chain_id],
                self._orders,
                wall_ms,
                arrivals=place.served.arrivals,
                swapper=self._swappers[chain_id],
            )
            for chain_id, place in swapped.items()
        }
        self._unserved: set[int] = set()

    def statistics(self) -> Mapping[int, BridgeChainStatistics]:
        """Return the counters of each chain with bridges, by chain id."""
        return {
            chain_id: BridgeChainStatistics(
                watch.statistics(),
                self._refunds[chain_id].statistics(),
                courier.statistics() if (courier := self._couriers.get(chain_id)) else None,
                swapper.statistics() if (swapper := self._swappers.get(chain_id)) else None,
            )
            for chain_id, watch in self._deliveries.items()
        }

    def look_at_transfers(self, live: LiveOrder) -> None:
        """Have the tasks of both chains look at the transfers of a changed order."""
        if not self._orders.follow(live):
            return
        destination, origin = bridge_of(live.order).destination_chain_id, live.row.chain_id
        if destination in self._arrivals:
            self._arrivals[destination].wake()
        for chain_id, watches in ((destination, self._deliveries), (origin, self._refunds)):
            watch = watches.get(chain_id)
            if watch is not None:
                watch.wake()
            elif chain_id not in self._unserved:
                self._unserved.add(chain_id)
                order = to_hex(live.order_hash)
                _log.error(
                    "bridge transfers are not followed: no bridge is set", chain_id=chain_id, order=order
                )

    def leave(self, held: Container[int]) -> None:
        """Forget the orders of shards that this process does not hold any more.

        Args:
            held: numbers of the shards that the process holds.
        """
        self._orders.leave(held)

    async def waits(self, order_hash: bytes) -> tuple[TransferWait, ...]:
        """Read an order's transfers that wait for a delivery or refund; empty if the order is not in memory.

        Raises:
            StoreUnavailable: the store does not answer.
        """
        return tuple(
            self._wait(transfer, order.parties.beneficiary)
            for order in await self._orders.read([order_hash])
            for transfer in order.transfers
            if transfer.state in _WAITING
        )

    def _wait(self, transfer: OrderTransfer, account: bytes) -> TransferWait:
        key, sent = key_of(transfer.sent), transfer.sent
        if transfer.state is TransferState.ARRIVED:
            watch = self._arrivals.get(sent.destination_chain_id)
            if watch is None:
                return TransferWait(transfer, is_late=True, hint=_UNSERVED)
            hint = self._swappers[sent.destination_chain_id].hint(account)
            return TransferWait(transfer, watch.is_late(key), hint or watch.fault)
        delivery, refund = self._deliveries.get(sent.destination_chain_id), self._refunds.get(sent.chain_id)
        if transfer.state is TransferState.FAILED:
            if refund is None:
                return TransferWait(transfer, is_late=True, hint=_UNSERVED)
            return TransferWait(transfer, refund.is_late(key), refund.fault)
        if delivery is None:
            return TransferWait(transfer, is_late=True, hint=_UNSERVED)
        return TransferWait(transfer, delivery.is_late(key), delivery.hint(key))

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run the watches and couriers of all chains until cancelled."""
        async with trio.open_nursery() as nursery:
            for courier in self._couriers.values():
                await nursery.start(courier.run)
            for swapper in self._swappers.values():
                await nursery.start(swapper.run)
            for watch in (*self._deliveries.values(), *self._arrivals.values(), *self._refunds.values()):
                await nursery.start(watch.run)
            task_status.started()
