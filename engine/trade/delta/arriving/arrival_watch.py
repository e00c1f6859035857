"""Searches one destination for swaps and pay-outs of the tokens that bridges delivered there.

    ARRIVED -> passed to the swapper, and searched for in the logs of Arrivals: exact topics, bounded ranges
        ArrivalSwapped   SWAPPED, with the amount of the wanted token
        ArrivalPaidOut   PAID_OUT, with the amount of the bridge's token

A transfer has one stored end: first the delivery (ARRIVED), then in its place the swap or pay-out. The watch
of deliveries checks the stored end until it is final. If the end's block leaves the chain, that watch drops
the end: the delivery is searched for again, and then the swap.

Choice: A swap or pay-out counts whoever sent it: the contract gives all to the beneficiary in every case.
"""

from collections.abc import Callable, Sequence

import structlog
from msgspec.structs import replace

from .....codecs.bridges.arrivals import ARRIVAL_PAID_OUT, ARRIVAL_SWAPPED
from .....codecs.contracts.abi import address_word
from .....config.limits import BRIDGE_IDS_PER_FILTER, BRIDGE_RANGES_PER_ROUND
from .....config.timeouts import ARRIVAL_LATE_S
from .....crypto.hexadecimal import to_hex
from ....chain.port import Header, LogFilter
from ....store.rows import BridgeEnd
from ....store.tables import BRIDGE_END
from ....store.units import cas
from ..bridging.bridge_places import BridgePlace
from ..bridging.bridge_rounds import BridgeRounds
from ..bridging.bridged_orders import BridgedOrders
from ..bridging.log_windows import window
from ..orders.transfers import TransferKey, key_of
from .arrival_ends import ArrivedTransfer, arrived_in, ended_by
from .arrival_swaps import ArrivalSwaps, WantedSwap

_log = structlog.get_logger("cambist.venue")
_EVENTS = (ARRIVAL_SWAPPED, ARRIVAL_PAID_OUT)


class ArrivalWatch(BridgeRounds):
    """Watch of the swaps on one destination; `run` is its task.

    Args:
        place: the destination.
        arrivals: the destination's Arrivals contract, 20 bytes.
        swapper: has makers swap the arrivals.
    """

    def __init__(
        self,
        place: BridgePlace,
        orders: BridgedOrders,
        wall_ms: Callable[[], int],
        *,
        arrivals: bytes,
        swapper: ArrivalSwaps,
    ) -> None:
        super().__init__(place, orders, wall_ms)
        self._arrivals = arrivals
        self._swapper = swapper
        self._late: set[TransferKey] = set()

    def is_late(self, key: TransferKey) -> bool:
        """Whether an arrival still waits after its signed time and the time for a pay-out are over."""
        return key in self._late

    def _followed(self) -> list[bytes]:
        return self._orders.arriving_at(self._chain.chain_id)

    async def _round(self, hashes: Sequence[bytes]) -> None:
        orders = await self._orders.read(hashes)
        waiting = [arrived for order in orders for arrived in arrived_in(order)]
        self._note(waiting)
        head = await self._begin()
        found: list[tuple[ArrivedTransfer, BridgeEnd]] = []
        for at in range(0, len(waiting), BRIDGE_IDS_PER_FILTER):
            found += await self._search(waiting[at : at + BRIDGE_IDS_PER_FILTER], head)
        for arrived, end in found:
            # Another round may have written the end meanwhile: the row's version refuses this write then.
            after = replace(arrived.transfer, end=end)
            self._is_again |= await self._orders.write(arrived.order, [after], [cas(BRIDGE_END, end)])
        self._rest_of(orders, lambda order: not arrived_in(order))

    def _note(self, waiting: Sequence[ArrivedTransfer]) -> None:
        """Pass the waiting arrivals to the swapper, raise alarms for late arrivals, and forget all others."""
        self._swapper.want(
            {arrived.account: WantedSwap(arrived.terms, arrived.order.row.owner) for arrived in waiting}
        )
        keys = {key_of(arrived.end) for arrived in waiting}
        self._after = {key: height for key, height in self._after.items() if key in keys}
        self._late &= keys
        for arrived in waiting:
            key = key_of(arrived.end)
            due_ms = max(arrived.terms.until * 1_000, arrived.end.at_ms)  # a wrap is due as it arrives
            if self._wall_ms() > due_ms + ARRIVAL_LATE_S * 1_000 and key not in self._late:
                self._late.add(key)
                _log.warning(
                    "an arrival is late",
                    order=to_hex(arrived.end.order_hash),
                    destination=self._chain.chain_id,
                    arrival=to_hex(arrived.account),
                    waits=self._swapper.hint(arrived.account),
                )

    async def _search(
        self, wanted: Sequence[ArrivedTransfer], head: Header
    ) -> list[tuple[ArrivedTransfer, BridgeEnd]]:
        """Search the blocks since the deliveries for swaps and pay-outs, as far as one round has time."""
        # One range of blocks serves all arrivals: it begins where the least searched arrival needs it.
        after = min(self._after.get(key_of(arrived.end), arrived.end.end_number - 1) for arrived in wanted)
        accounts = tuple({address_word(arrived.account): None for arrived in wanted})
        log_filter = LogFilter((self._arrivals,), (_EVENTS, accounts))
        ends: dict[TransferKey, tuple[ArrivedTransfer, BridgeEnd]] = {}
        for _ in range(BRIDGE_RANGES_PER_ROUND):
            blocks = window(after, head.number, self._span)
            if blocks is None or not self._goes_on():
                break
            logs = await self._logs(log_filter, *blocks)
            if logs is None:
                break
            for log in logs:
                await self._receipt_of(log)  # raises unless the receipt has the log too
                header = await self._header_of(log)
                for arrived in wanted:
                    end = ended_by(arrived, log, self._arrivals, header)
                    if end is not None:
                        ends.setdefault(key_of(end), (arrived, end))
            after = blocks[1]
        self._is_again |= after < head.number
        # Blocks that may still be replaced are searched again by each round.
        read_to = min(after, self._place.final_height(head.number))
        # Not for an arrival with an end: if the order's write is refused, the next round finds the log again.
        self._after |= {
            key_of(arrived.end): read_to
            for arrived in wanted
            if read_to >= arrived.end.end_number and key_of(arrived.end) not in ends
        }
        return list(ends.values())
