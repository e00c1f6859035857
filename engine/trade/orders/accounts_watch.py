"""Schedules the reads of balances and allowances that fund open orders on one chain.

    an order is followed -> its account is followed: (token, owner), possibly with further parts of a key
        a log names the account, the subclass marks it, or its regular re-read is due
            -> queued -> read in batches while the chain is indexed up to its head -> `_look`

Orders are not polled: an account that a log names (`engine.chain.index.watch`) is read once, however many
orders the account funds.

A failed read is repeated. An account that fails when it is read alone is paused and retried by itself, so
that it delays no other account (`apart`); halving the batch finds such an account.

Every account is read again within a minute, for tokens that move balances without events; at most 50 a
second, so that beyond 3,000 accounts all re-reads take longer. An account with over 50 orders that change at
once is paused up to 10 s, so that moving funds back and forth does not make the venue write without end.

Source: ARCHITECTURE.md, "Funds"; choices.md#delta-orders.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Sequence
from itertools import islice
from typing import Any, Generic, TypeVar

import structlog
import trio
from msgspec import Struct

from ....config.errors import BlockGone, ChainError, NodeContradiction, NodeUnavailable, StoreUnavailable
from ....config.limits import VENUE_FUNDS_ACCOUNTS_MAX, VENUE_FUNDS_STEPS_FREE
from ....config.timeouts import (
    FUNDS_PAUSE_S,
    FUNDS_PAUSE_S_MAX,
    FUNDS_RECHECK_S,
    FUNDS_SLICE_S,
    FUNDS_STEP_REST_S,
    FUNDS_STEPS_REST_S_MAX,
)
from ....crypto.hexadecimal import to_hex
from ...chain.index.ring import Mark
from ...chain.index.watch import Watch, WatchedAccount
from ...chain.port import Chain
from .apart import Account, Apart

_log = structlog.get_logger("cambist.venue")

YIELD_ORDERS = 256
"""Number of orders or accounts to process before yielding to other tasks."""
OF_ALL = (NodeUnavailable, BlockGone, NodeContradiction)
"""Errors of a chain read that have their cause in the node, not in a single account that is read."""


class FundsStatistics(Struct, frozen=True):
    """Counters of the task that reads the balances and allowances of order owners on one chain.

    Attributes:
        orders, accounts: numbers of orders and of accounts whose funds are watched now.
        waiting: accounts queued for a read.
        read: account reads so far.
        failed: reads that failed because the node or the store was unavailable or an account unreadable.
        suspended, restored: orders suspended for lack of funds so far, and orders restored.
        apart: accounts whose reads are paused, because they are unreadable or many of their orders changed.
    """

    orders: int
    accounts: int
    waiting: int
    read: int
    failed: int
    suspended: int
    restored: int
    apart: int


class Followed(Struct, Generic[Account], gc=False):
    """An order whose funds are watched, with the account (token, owner, ...) that funds the order."""

    account: Account


FollowedOrder = TypeVar("FollowedOrder", bound=Followed[Any])


class AccountsWatch(ABC, Generic[Account, FollowedOrder]):
    """Reads the accounts (token, owner) that fund open orders, whenever an account's funds may have moved.

    The method `run` does this until cancelled. Each kind of orders has a subclass, which does the reads and
    changes the orders.

    Args:
        watch: set of accounts whose logs the chain's indexer reports.
        read_to: returns the last indexed block; None while the chain has blocks that are not indexed yet.
    """

    def __init__(self, chain: Chain, watch: Watch, read_to: Callable[[], Mark | None]) -> None:
        self._chain = chain
        self._watch = watch
        self._read_to = read_to
        self._followed: dict[bytes, FollowedOrder] = {}
        self._of_account: dict[Account, dict[bytes, None]] = {}
        self._waiting: dict[Account, None] = {}
        self._touched: deque[Collection[WatchedAccount]] = deque()  # batches for `_sort_in`
        self._apart: Apart[Account] = Apart()
        self._rested: Account | None = None  # the rested account that is being read alone
        self._rests: dict[Account, float] = {}  # seconds, of the accounts of the present read
        self._asleep = trio.lowlevel.ParkingLot()
        self._count = VENUE_FUNDS_ACCOUNTS_MAX  # accounts of the next read
        self._reads = self._failed = self._suspended = self._restored = 0

    def statistics(self) -> FundsStatistics:
        """Return the counters since the start, and the numbers of followed orders and accounts now."""
        return FundsStatistics(
            orders=len(self._followed),
            accounts=len(self._of_account),
            waiting=len(self._waiting) + sum(map(len, self._touched)),
            read=self._reads,
            failed=self._failed,
            suspended=self._suspended,
            restored=self._restored,
            apart=len(self._apart),
        )

    # --- Hooks of a kind of orders ----------------------------------------------------------------------

    @abstractmethod
    async def _look(self, accounts: Sequence[Account], top: Mark) -> None:
        """Read the funds of accounts, count the reads, and suspend, restore or update the accounts' orders.

        Args:
            top: last indexed block; the accounts are read at this block or a later one.

        Raises:
            ChainError: the chain cannot be read. The error is of a type in `OF_ALL` if the cause is the node,
                not a single account.
            StoreUnavailable: the changes of the orders were not written.
        """

    @abstractmethod
    def _pair(self, account: Account) -> WatchedAccount:
        """Return the (token, owner) pair by which the chain's logs name an account."""

    @abstractmethod
    def _account(self, pair: WatchedAccount) -> Account:
        """Return the subclass's key of the account that the chain's logs name by a (token, owner) pair."""

    # --- Marking accounts -------------------------------------------------------------------------------

    def touched(self, _chain_id: int, pairs: Collection[WatchedAccount]) -> None:
        """Note accounts whose balances, allowances or deposits may have changed according to the logs.

        Since the accounts may be very many, the method only stores them; task `run` queues them for a read.

        Args:
            pairs: the accounts, each as (token, owner).
        """
        self._touched.append(pairs)
        self._asleep.unpark()

    def _follow(self, order_hash: bytes, followed: FollowedOrder) -> None:
        """Begin to watch an order's funds; the indexer begins to report the logs of the order's account."""
        others = self._of_account.get(followed.account)
        if others is None:
            others = self._of_account[followed.account] = {}
            self._watch.follow(*self._pair(followed.account))
        else:  # the orders of an account share one tuple
            followed.account = self._followed[next(iter(others))].account
        others[order_hash] = None
        self._followed[order_hash] = followed

    def _forget(self, order_hash: bytes) -> None:
        """Stop watching an order's funds, and the logs of its account if the account funds no other order."""
        known = self._followed.pop(order_hash, None)
        if known is None:
            return
        account: Account = known.account
        of_account = self._of_account[account]
        del of_account[order_hash]
        if not of_account:
            del self._of_account[account]
            self._waiting.pop(account, None)
            self._rests.pop(account, None)
            self._apart.drop(account)
            self._watch.unfollow(*self._pair(account))

    def _mark(self, account: Account) -> None:
        """Queue an account for a read of its funds, unless it is paused, and wake the reading task."""
        if self._note(account):
            self._asleep.unpark()

    def _note(self, account: Account) -> bool:
        """Queue an account for a read, unless it is paused or unwatched. Returns whether it is queued."""
        rests = account in self._apart and account != self._rested
        is_wanted = account in self._of_account and not rests
        if is_wanted:
            self._waiting[account] = None
        return is_wanted

    async def _sort_in(self) -> None:
        """Queue the accounts stored by `touched` for a read, yielding to other tasks in between."""
        while self._touched:
            for count, pair in enumerate(self._touched[0]):
                self._note(self._account(pair))
                if count % YIELD_ORDERS == 0:
                    await trio.lowlevel.checkpoint()
            self._touched.popleft()

    # --- Reading ----------------------------------------------------------------------------------------

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Read the funds of queued accounts until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._go_round)
            task_status.started()
            await self._look_on()

    async def _go_round(self) -> None:
        """Queue every followed account for another read about once a minute, a few accounts at a time."""
        while True:
            accounts = list(self._of_account)
            parts = max(round(FUNDS_RECHECK_S / FUNDS_SLICE_S), -(-len(accounts) // VENUE_FUNDS_ACCOUNTS_MAX))
            for part in range(parts):
                await trio.sleep(FUNDS_SLICE_S)
                first, last = (len(accounts) * at // parts for at in (part, part + 1))
                for account in accounts[first:last]:
                    self._mark(account)

    async def _look_on(self) -> None:
        """Read queued accounts in batches until cancelled, whenever the indexer has reached the chain's head.

        The accounts of a failed batch go to the end of the queue, and the next batch has half the size. After
        each batch, an account whose pause is over is read alone.
        """
        pause_s = FUNDS_PAUSE_S
        while True:
            await self._sort_in()
            if not self._waiting and self._apart.next_s() > trio.current_time():
                with trio.move_on_at(self._apart.next_s()):
                    await self._asleep.park()
                continue
            # After `_sort_in`: `top` is then no older than the logs that queued the accounts.
            top = self._read_to()
            if top is None:
                await trio.sleep(FUNDS_PAUSE_S)
                continue
            accounts = list(islice(self._waiting, self._count))
            # Before the read: a log that names one of them meanwhile queues it again.
            for account in accounts:
                del self._waiting[account]
            # Set before the reads: `_note` queues this paused account for a log that comes meanwhile.
            rested = self._rested = self._apart.take(trio.current_time())
            try:
                await self._look_at(accounts, top)
                await self._look_at([] if rested is None else [rested], top)
            except (ChainError, StoreUnavailable) as error:
                if pause_s == FUNDS_PAUSE_S:
                    _log.warning("funds are not read", chain_id=self._chain.chain_id, detail=str(error))
                self._failed += 1
                self._set_apart(rested, pause_s)  # not longer for an account that is not the cause
                for account in accounts:  # also accounts read before the error: a second read does no harm
                    self._mark(account)
                self._count = (self._count + 1) // 2
                await trio.sleep(pause_s)
                pause_s = min(2 * pause_s, FUNDS_PAUSE_S_MAX)
            except Exception as error:  # noqa: BLE001  one account's bug is not the others' end
                _log.error(
                    "funds are not followed", chain_id=self._chain.chain_id, detail=repr(error), exc_info=True
                )
                for suspect in (*accounts, rested):  # each alone: an account without the bug soon returns
                    self._set_apart(suspect)
                await trio.sleep(FUNDS_PAUSE_S)
            else:
                pause_s = FUNDS_PAUSE_S
                self._count = min(2 * self._count, VENUE_FUNDS_ACCOUNTS_MAX)

    async def _look_at(self, accounts: Sequence[Account], top: Mark) -> None:
        """Read accounts; pause an account that cannot be read, and read the others all the same.

        Raises:
            ChainError, StoreUnavailable: the read failed, and no single account is the cause.
        """
        if not accounts:
            return
        try:
            await self._look(accounts, top)
        except OF_ALL:  # no account is the cause, so that none may be paused
            raise
        except ChainError as error:
            self._failed += 1
            if len(accounts) > 1:
                middle = len(accounts) // 2
                await self._look_at(accounts[:middle], top)
                await self._look_at(accounts[middle:], top)
                return
            (account,) = accounts
            if account not in self._apart:
                _log.warning(
                    "an account cannot be read",
                    token=to_hex(account[0]),
                    owner=to_hex(account[1]),
                    detail=str(error),
                )
            self._set_apart(account)
        else:
            for account in accounts:
                self._apart.drop(account)
                if account in self._rests:
                    self._set_apart(account, self._rests.pop(account))

    def _changes(self, account: Account, count: int) -> None:
        """Schedule a pause for an account if more than VENUE_FUNDS_STEPS_FREE of its orders change at once.

        The pause begins when the current read of the account ends.

        Args:
            count: number of the account's orders that change; the pause grows with this number.
        """
        if count > VENUE_FUNDS_STEPS_FREE:
            self._rests[account] = min(count * FUNDS_STEP_REST_S, FUNDS_STEPS_REST_S_MAX)

    def _set_apart(self, account: Account | None, rest_s: float = 0.0) -> None:
        """Pause the reads of an account.

        Args:
            account: account to pause; the call has no effect if `account` is None or funds no watched order.
            rest_s: length of the pause, seconds; 0 for an account that cannot be read, whose pause doubles
                with each failure.
        """
        if account == self._rested:
            self._rested = None
        if account is not None and account in self._of_account:
            self._waiting.pop(account, None)
            self._apart.add(account, trio.current_time(), rest_s)
