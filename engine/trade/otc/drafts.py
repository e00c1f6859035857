"""Polls makers' contracts (EIP-1271) until they accept the signatures of DRAFT orders.

    a DRAFT is queued -> EIP-1271 at the last indexed block
        -> accepted: PENDING, or SUSPENDED where the maker's funds do not cover it
        -> not yet: to the end of the queue

No standard log reports that a contract accepts a signature, so the contracts are polled: some of the drafts
each second, the least recently polled first, and no draft twice at the same block. A contract that makes a
batched call fail is polled alone and delays no other.

Source: EIP-1271.
Choice: A DRAFT is the order of a contract that does not accept its signature yet. A key's wrong signature is
    `InvalidSignature`.
"""

from collections.abc import Callable, Container, Sequence
from itertools import islice

import structlog
import trio
from msgspec import Struct

from ....codecs.messages.vocabulary import OtcState
from ....config.errors import (
    BlockGone,
    ChainError,
    NodeContradiction,
    NodeUnavailable,
    OrderNotFound,
    StoreUnavailable,
)
from ....config.limits import VENUE_DRAFTS_MAX, VENUE_SIGNATURE_GAS_MAX
from ....config.timeouts import DRAFT_LOOK_S
from ....crypto.eip1271 import is_magic_answer, is_valid_signature_calldata
from ....crypto.hexadecimal import to_hex
from ...chain.index.ring import Mark
from ...chain.port import Chain, EthCall
from ...store.rows import OtcOrderRow
from .life import signed
from .live_orders import LiveOtc, OtcOrders

_log = structlog.get_logger("cambist.venue")


class DraftsStatistics(Struct, frozen=True):
    """Counters of the calls that ask makers' contracts whether they accept the signatures of DRAFT orders.

    Attributes:
        waiting: DRAFT orders of the chain that wait for such a call now.
        asked: calls to makers' contracts so far.
        signed: orders whose signatures were accepted so far.
        failed: attempts that failed because the node or the store was unavailable, or because one contract
            made the whole batch of calls fail.
    """

    waiting: int
    asked: int
    signed: int
    failed: int


class Drafts:
    """Asks makers' contracts (EIP-1271) again and again whether they accept the signatures of DRAFT orders.

    The method `run` does this for the orders of one chain until cancelled.

    Args:
        rfq: the RFQ contract, 20 bytes; the calls to makers' contracts name it as their sender.
        read_to: returns the last indexed block; None while the chain has blocks that are not indexed yet.
        is_short: returns whether a maker's last known funds do not cover an order.
        wall_ms: returns the time, Unix milliseconds.
    """

    def __init__(
        self,
        chain: Chain,
        orders: OtcOrders,
        *,
        rfq: bytes,
        read_to: Callable[[], Mark | None],
        is_short: Callable[[OtcOrderRow], bool],
        wall_ms: Callable[[], int],
    ) -> None:
        self._chain = chain
        self._orders = orders
        self._rfq = rfq
        self._read_to = read_to
        self._is_short = is_short
        self._wall_ms = wall_ms
        self._waiting: dict[bytes, bytes] = {}  # hash -> block of the last answer; least recently asked first
        self._calls = self._signed = self._failed = 0

    def statistics(self) -> DraftsStatistics:
        """Return the number of queued DRAFT orders, and the counts of calls and failures so far."""
        return DraftsStatistics(len(self._waiting), self._calls, self._signed, self._failed)

    def queue_or_drop(self, live: LiveOtc) -> None:
        """Queue a DRAFT order for calls to its maker's contract; remove any other order from the queue.

        Every change of an order has to be passed to this method.
        """
        if live.row.status is OtcState.DRAFT:
            self._waiting.setdefault(live.order_hash, b"")
        else:
            self._waiting.pop(live.order_hash, None)

    def leave(self, held: Container[int]) -> None:
        """Remove from the queue the DRAFT orders of shards that this process does not hold any more.

        Args:
            held: numbers of the shards that the process holds.
        """
        for order_hash in [key for key in self._waiting if key[0] not in held]:
            del self._waiting[order_hash]

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Poll the makers' contracts of some DRAFT orders each second, until cancelled."""
        task_status.started()
        is_held_up = False
        while True:
            await trio.sleep(DRAFT_LOOK_S)
            top = self._read_to()
            if top is None or not self._waiting:
                continue
            try:
                await self._look(self._next(top), top)
            except (ChainError, StoreUnavailable) as error:
                self._failed += 1
                if not is_held_up:
                    _log.warning("drafts wait", chain_id=self._chain.chain_id, detail=str(error))
                is_held_up = True
            except Exception as error:  # noqa: BLE001  one order's bug is not the others' end
                self._failed += 1
                _log.error("drafts are stuck", detail=repr(error), exc_info=True)
            else:
                is_held_up = False

    def _next(self, top: Mark) -> list[LiveOtc]:
        """Take the next DRAFT orders from the queue, and put them at its end.

        Args:
            top: last indexed block; orders whose makers' contracts answered at this block are skipped.
        """
        found = []
        for order_hash, answered_at in list(islice(self._waiting.items(), VENUE_DRAFTS_MAX)):
            if answered_at == top.hash:
                continue
            del self._waiting[order_hash]
            live = self._orders.get(order_hash)
            if live is not None and live.row.status is OtcState.DRAFT:
                self._waiting[order_hash] = answered_at
                found.append(live)
        return found

    async def _look(self, drafts: Sequence[LiveOtc], top: Mark) -> None:
        """Poll the makers' contracts of DRAFT orders, and change the status of each accepted order.

        Raises:
            ChainError: the chain's node fails; no single order is the cause.
            StoreUnavailable: a step was not written.
        """
        if not drafts:
            return
        try:
            answers = await self._chain.call_many([self._question(live) for live in drafts], top.hash)
        except (NodeUnavailable, BlockGone, NodeContradiction):  # halves of the batch would fail as well
            raise
        except ChainError as error:
            self._failed += 1
            if len(drafts) == 1:
                _log.warning("a maker cannot be asked", maker=to_hex(drafts[0].row.maker), detail=str(error))
                return
            middle = len(drafts) // 2
            await self._look(drafts[:middle], top)
            await self._look(drafts[middle:], top)
            return
        self._calls += len(drafts)
        for live, answer in zip(drafts, answers, strict=True):
            if isinstance(answer, bytes) and is_magic_answer(answer):
                await self._sign(live.order_hash)
            elif live.order_hash in self._waiting:  # it may have left the queue during the calls
                self._waiting[live.order_hash] = top.hash

    def _question(self, live: LiveOtc) -> EthCall:
        data = is_valid_signature_calldata(live.order_hash, live.document.signature)
        return EthCall(live.row.maker, data, self._rfq, gas_max=VENUE_SIGNATURE_GAS_MAX)

    async def _sign(self, order_hash: bytes) -> None:
        try:
            row = await self._orders.step(
                order_hash, lambda row: signed(row, self._wall_ms(), is_backed=not self._is_short(row))
            )
        except OrderNotFound:
            return
        self._signed += row.status is not OtcState.DRAFT
