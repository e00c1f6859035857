"""A task that looks at the bridged orders of one chain in rounds, until cancelled.

    orders followed -> a round -> wait for a new head, a new order or BRIDGE_LOOK_S -> the next round
                          \\-- chain or store away, or too slow -> a pause that doubles -> the next round

A round reads everything anew from the store: a crash between two rounds loses nothing.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import structlog
import trio

from .....config.errors import ChainError, LogsRefused, StoreUnavailable
from .....config.limits import BRIDGE_RANGE_BLOCKS_MAX
from .....config.timeouts import (
    BRIDGE_LOOK_S,
    BRIDGE_PAUSE_S,
    BRIDGE_PAUSE_S_MAX,
    BRIDGE_ROUND_S,
    BRIDGE_SEARCH_S,
)
from ....chain.port import Header, Log, LogFilter, Receipt
from ..orders.transfers import TransferKey
from .bridge_places import BridgePlace
from .bridged_orders import BridgedOrder, BridgedOrders

_log = structlog.get_logger("cambist.venue")


class BridgeRounds(ABC):
    """Base of the tasks that follow transfers at one end of bridges; `run` is the task.

    Args:
        place: the end of the bridges that the task reads.
        orders: the orders whose transfers are followed.
        wall_ms: returns the time, Unix milliseconds.

    Attributes:
        fault: reason why the last round failed; empty after a whole round.
    """

    def __init__(self, place: BridgePlace, orders: BridgedOrders, wall_ms: Callable[[], int]) -> None:
        self._place = place
        self._chain = place.chain
        self._orders = orders
        self._wall_ms = wall_ms
        self._after: dict[TransferKey, int] = {}  # height up to which logs were read for good
        self._span = BRIDGE_RANGE_BLOCKS_MAX
        self._quiet: dict[bytes, int] = {}  # hash -> version at which an order needs no further look
        self._is_again = self._had_orders = False
        self._stops_s = 0.0
        self._head_hash = b""
        self._wake = trio.Event()
        self._heights: dict[int, Header | None] = {}
        self.fault = ""

    @abstractmethod
    def _followed(self) -> list[bytes]:
        """Return the hashes of the orders that are followed at this end."""

    @abstractmethod
    async def _round(self, hashes: Sequence[bytes]) -> None:
        """Look at orders once.

        Args:
            hashes: followed orders that have changed, or that the last round did not find quiet; the list may
                be empty.

        Raises:
            ChainError, StoreUnavailable: the chain or the store does not answer; a later round looks at the
                remaining orders.
        """

    async def look(self) -> bool:
        """Look at the followed orders once; return whether the next may have work without a new head.

        Raises:
            ChainError, StoreUnavailable: the chain or the store is away; look again later.
        """
        self._is_again = False
        self._stops_s = trio.current_time() + BRIDGE_SEARCH_S
        if self._has_work():
            hashes = self._restless()
            await self._round(hashes)
            self._had_orders = bool(hashes)
        return self._is_again

    def _has_work(self) -> bool:
        """Whether orders need a look, or the task still has to forget the orders of its last look."""
        return self._had_orders or bool(self._restless())

    def _goes_on(self) -> bool:
        """Whether a look has time for another request; if not, the next look follows at once."""
        has_time = trio.current_time() < self._stops_s
        self._is_again |= not has_time
        return has_time

    def wake(self) -> None:
        """Have the next round begin at once, or right after a round that runs now."""
        self._wake.set()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Look at the followed orders again and again, until cancelled."""
        task_status.started()
        pause_s = BRIDGE_PAUSE_S
        while True:
            # The event is replaced before the check and the look: a `wake` during the look sets the event
            # for which `_rest` then waits.
            self._wake = trio.Event()
            if not self._has_work():  # no timer: `look_at_transfers` wakes this task for each order to follow
                await self._wake.wait()
                continue
            try:
                with trio.fail_after(BRIDGE_ROUND_S):
                    is_again = await self.look()
            except (ChainError, StoreUnavailable, trio.TooSlowError) as error:
                self._held_up(str(error) or "a round took too long")
            except Exception as error:  # noqa: BLE001  one order's bug is not the others' end
                _log.error("bridged orders are stuck", detail=repr(error), exc_info=True)
                self._held_up(repr(error))
            else:
                self.fault, pause_s = "", BRIDGE_PAUSE_S
                if not is_again:
                    await self._rest()
                continue
            await trio.sleep(pause_s)
            pause_s = min(2 * pause_s, BRIDGE_PAUSE_S_MAX)

    def _restless(self) -> list[bytes]:
        followed = self._followed()
        self._quiet = {key: self._quiet[key] for key in followed if key in self._quiet}
        return [key for key in followed if self._quiet.get(key) != self._orders.version(key)]

    def _rest_of(self, orders: Sequence[BridgedOrder], is_quiet: Callable[[BridgedOrder], bool]) -> None:
        """Note the orders that need no further look until their next change."""
        self._quiet |= {order.row.order_hash: order.row.version for order in orders if is_quiet(order)}

    def _held_up(self, why: str) -> None:
        if not self.fault:
            chain_id = self._chain.chain_id
            _log.warning("bridged orders wait", chain_id=chain_id, task=type(self).__name__, detail=why)
        self.fault = why

    async def _rest(self) -> None:
        """Wait for a new head or for `wake`, at most BRIDGE_LOOK_S seconds."""
        with trio.move_on_after(BRIDGE_LOOK_S):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._wait_head, nursery.cancel_scope)
                await self._wake.wait()
                nursery.cancel_scope.cancel()

    async def _wait_head(self, scope: trio.CancelScope) -> None:
        try:
            await self._chain.wait_head(self._head_hash)
        except ChainError:
            return  # the next round finds out
        scope.cancel()

    # --- Logs -------------------------------------------------------------------------------------------

    async def _logs(self, wanted: LogFilter, first: int, last: int) -> list[Log] | None:
        """Read logs in a range of blocks; None if the node refuses, which halves the next range.

        Raises:
            LogsRefused: the node refuses a single block.
        """
        try:
            found = await self._chain.logs(wanted, first, last)
        except LogsRefused:
            if first == last:
                raise
            self._span = (last - first + 1) // 2
            self._is_again = True
            return None
        self._span = min(BRIDGE_RANGE_BLOCKS_MAX, 2 * self._span)
        return found

    async def _let_others_run(self) -> None:
        await trio.lowlevel.checkpoint()

    async def _receipt_of(self, log: Log) -> Receipt:
        """Read the receipt of a log's transaction.

        Raises:
            ChainError: the answers about the log differ, as those of two nodes may. The caller has to read
                the range of blocks again, because the log would be lost otherwise.
        """
        receipt = await self._chain.receipt(log.tx_hash)
        if receipt is None or log not in receipt.logs:  # a log has its block's hash
            raise ChainError(f"there is no receipt of the log {log.log_index} in block {log.block_number}")
        await self._header_of(log)
        return receipt

    async def _header_of(self, log: Log) -> Header:
        """Read the header of a log's block.

        Raises:
            ChainError: the node shows no such block now; the caller has to read the range again, as for
                `_receipt_of`.
        """
        header = await self._at(log.block_number)
        if header is None or header.hash != log.block_hash:
            raise ChainError(f"block {log.block_number}, which has the log {log.log_index}, is not shown now")
        return header

    async def _still_there(self, number: int, block_hash: bytes, head: Header) -> bool | None:
        """Whether a block is in the chain; None if the block is above the latest block of the node."""
        return await self._has(number, block_hash) if number <= head.number else None

    # --- Blocks -----------------------------------------------------------------------------------------

    async def _begin(self) -> Header:
        """Read the latest block, and forget the blocks of the round before."""
        head = await self._chain.block()
        if head is None:
            raise ChainError("the node has no latest block")
        self._head_hash = head.hash
        self._heights = {head.number: head}
        return head

    async def _at(self, number: int) -> Header | None:
        """Read the block at a height, at most once in a round; None if the chain has no such block."""
        if number not in self._heights:
            self._heights[number] = await self._chain.block(number)
        return self._heights[number]

    async def _has(self, number: int, block_hash: bytes) -> bool:
        header = await self._at(number)
        return header is not None and header.hash == block_hash
