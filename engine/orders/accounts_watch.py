"""Which accounts of live orders are to be read on one chain, and when: for whoever follows their funds.

    an order is followed -> its account: (token, owner), and what else tells it from others
        logs about it, what the follower marks, a slow round of all -> to be read
            -> some accounts at a time, once the chain is read to its head -> `_look`

Nothing is polled for each order: what is read are accounts that the chain's logs name (`engine.chain.watch`),
each once, however many orders it has.

An account that could not be read is read again. One that fails although others are read rests for itself, and
keeps nobody waiting (`apart`): which one that is, is found by halving.

Every account is read again within a minute, for tokens that move balances without events; at most 50 a
second, so that beyond 3,000 accounts a round takes longer. An account with over 50 orders that change at once
rests up to 10 s, so that moving funds back and forth does not make the venue write without end.

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

from ...config.errors import BlockGone, ChainError, NodeContradiction, NodeUnavailable, StoreUnavailable
from ...config.limits import VENUE_FUNDS_ACCOUNTS_MAX, VENUE_FUNDS_STEPS_FREE
from ...config.timeouts import (
    FUNDS_PAUSE_S,
    FUNDS_PAUSE_S_MAX,
    FUNDS_RECHECK_S,
    FUNDS_SLICE_S,
    FUNDS_STEP_REST_S,
    FUNDS_STEPS_REST_S_MAX,
)
from ...crypto.hexadecimal import to_hex
from ..chain.index.ring import Mark
from ..chain.index.watch import Watch, WatchedAccount
from ..chain.port import Chain
from .apart import Account, Apart

_log = structlog.get_logger("cambist.venue")

YIELD_ORDERS = 256
"""Orders are compared, or accounts are sorted in, before other tasks have their turn."""
OF_ALL = (NodeUnavailable, BlockGone, NodeContradiction)
"""Errors that no account is the cause of."""


class FundsStatistics(Struct, frozen=True):
    """What is followed on one chain.

    Attributes:
        orders, accounts: now.
        waiting: accounts that are to be read.
        read: accounts that were read, each time counted.
        failed: reads that came to nothing, since the node or the store was away, or for an account's sake.
        suspended, restored: steps.
        apart: accounts that rest, since they cannot be read or had many orders change.
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
    """One order, with its account."""

    account: Account


FollowedOrder = TypeVar("FollowedOrder", bound=Followed[Any])


class AccountsWatch(ABC, Generic[Account, FollowedOrder]):
    """See the module. `run` is its task.

    Args:
        watch: of the chain's indexer.
        read_to: the block that the chain is read to; None until that is its head.
    """

    def __init__(self, chain: Chain, watch: Watch, read_to: Callable[[], Mark | None]) -> None:
        self._chain = chain
        self._watch = watch
        self._read_to = read_to
        self._followed: dict[bytes, FollowedOrder] = {}
        self._of_account: dict[Account, dict[bytes, None]] = {}
        self._waiting: dict[Account, None] = {}
        self._told: deque[Collection[WatchedAccount]] = deque()  # are to be sorted in
        self._apart: Apart[Account] = Apart()
        self._rested: Account | None = None  # is looked at alone just now
        self._rests: dict[Account, float] = {}  # seconds, of what was looked at just now
        self._asleep = trio.lowlevel.ParkingLot()
        self._count = VENUE_FUNDS_ACCOUNTS_MAX  # of the next look
        self._reads = self._failed = self._suspended = self._restored = 0

    def statistics(self) -> FundsStatistics:
        """Counters and present sizes."""
        return FundsStatistics(
            len(self._followed),
            len(self._of_account),
            len(self._waiting) + sum(map(len, self._told)),
            self._reads,
            self._failed,
            self._suspended,
            self._restored,
            len(self._apart),
        )

    # --- What a kind of orders fills in -----------------------------------------------------------------

    @abstractmethod
    async def _look(self, accounts: Sequence[Account], top: Mark) -> None:
        """Read accounts, count them as read, and do what follows from it.

        Args:
            top: the block that the chain is read to; what is read is of it, or of a later one.

        Raises:
            ChainError: it cannot be read: one of `OF_ALL` where no account is the cause.
            StoreUnavailable: what follows was not written.
        """

    @abstractmethod
    def _pair(self, account: Account) -> WatchedAccount:
        """What the chain's logs know an account by."""

    @abstractmethod
    def _account(self, pair: WatchedAccount) -> Account:
        """The account that logs are about."""

    # --- What is to be read -----------------------------------------------------------------------------

    def touched(self, _chain_id: int, pairs: Collection[WatchedAccount]) -> None:
        """Funds of these (token, owner) may have moved, or what an owner has deposited. There may be very
        many, so that `run` sorts them in."""
        self._told.append(pairs)
        self._asleep.unpark()

    def _follow(self, order_hash: bytes, followed: FollowedOrder) -> None:
        """Follow the account of an order that is not followed yet."""
        others = self._of_account.get(followed.account)
        if others is None:
            others = self._of_account[followed.account] = {}
            pair = self._pair(followed.account)
            if not self._watch.follow(*pair):
                self._watch.refresh({pair})  # orders of another kind have it followed: it is to be told anew
        else:  # they have one tuple among them
            followed.account = self._followed[next(iter(others))].account
        others[order_hash] = None
        self._followed[order_hash] = followed

    def _forget(self, order_hash: bytes) -> None:
        """Follow an order not any more, and its account where it was the last."""
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
        """Have an account read, unless it rests."""
        if self._note(account):
            self._asleep.unpark()

    def _note(self, account: Account) -> bool:
        """Have an account read, unless it rests. Returns whether it is to be."""
        rests = account in self._apart and account != self._rested
        is_wanted = account in self._of_account and not rests
        if is_wanted:
            self._waiting[account] = None
        return is_wanted

    async def _sort_in(self) -> None:
        """Have the accounts read that `touched` was told of, with turns for others."""
        while self._told:
            for count, pair in enumerate(self._told[0], start=1):
                self._note(self._account(pair))
                if count % YIELD_ORDERS == 0:
                    await trio.lowlevel.checkpoint()
            self._told.popleft()

    # --- Reading ----------------------------------------------------------------------------------------

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Read what is to be read, until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._go_round)
            task_status.started()
            await self._look_on()

    async def _go_round(self) -> None:
        """Have every account read again, a few at a time."""
        while True:
            accounts = list(self._of_account)
            parts = max(round(FUNDS_RECHECK_S / FUNDS_SLICE_S), -(-len(accounts) // VENUE_FUNDS_ACCOUNTS_MAX))
            for part in range(parts):
                await trio.sleep(FUNDS_SLICE_S)
                first, last = (len(accounts) * at // parts for at in (part, part + 1))
                for account in accounts[first:last]:
                    self._mark(account)

    async def _look_on(self) -> None:
        """Look at what waits once the chain is read to its head, whatever is away meanwhile. What cannot be
        read goes behind the others, and is read with fewer beside it. After each look one account that has
        rested is looked at alone."""
        pause_s = FUNDS_PAUSE_S
        while True:
            await self._sort_in()
            if not self._waiting and self._apart.next_s() > trio.current_time():
                with trio.move_on_at(self._apart.next_s()):
                    await self._asleep.park()
                continue
            top = self._read_to()
            if top is None:
                await trio.sleep(FUNDS_PAUSE_S)
                continue
            accounts = list(islice(self._waiting, self._count))
            for account in accounts:
                del self._waiting[account]
            rested = self._rested = self._apart.take(trio.current_time())
            try:
                await self._look_at(accounts, top)
                await self._look_at([] if rested is None else [rested], top)
            except (ChainError, StoreUnavailable) as error:
                if pause_s == FUNDS_PAUSE_S:
                    _log.warning("funds are not read", chain_id=self._chain.chain_id, detail=str(error))
                self._failed += 1
                self._set_apart(rested)
                for account in accounts:
                    self._mark(account)
                self._count = (self._count + 1) // 2
                await trio.sleep(pause_s)
                pause_s = min(2 * pause_s, FUNDS_PAUSE_S_MAX)
            except Exception as error:  # noqa: BLE001  one account's bug is not the others' end
                _log.error(
                    "funds are not followed", chain_id=self._chain.chain_id, detail=repr(error), exc_info=True
                )
                for one in (*accounts, rested):  # by itself: without the bug it is soon followed again
                    self._set_apart(one)
                await trio.sleep(FUNDS_PAUSE_S)
            else:
                pause_s = FUNDS_PAUSE_S
                self._count = min(2 * self._count, VENUE_FUNDS_ACCOUNTS_MAX)

    async def _look_at(self, accounts: Sequence[Account], top: Mark) -> None:
        """Look at accounts. Where one of them cannot be read, the others are all the same, and it rests.

        Raises:
            ChainError, StoreUnavailable: no account is the cause.
        """
        if not accounts:
            return
        try:
            await self._look(accounts, top)
        except OF_ALL:
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
                token, owner = to_hex(account[0]), to_hex(account[1])
                _log.warning("an account cannot be read", token=token, owner=owner, detail=str(error))
            self._set_apart(account)
        else:
            for account in accounts:
                self._apart.drop(account)
                if account in self._rests:
                    self._set_apart(account, self._rests.pop(account))

    def _changes(self, account: Account, count: int) -> None:
        """To be told of an account that is looked at, how many of its orders change: it rests, where they are
        many."""
        if count > VENUE_FUNDS_STEPS_FREE:
            self._rests[account] = min(count * FUNDS_STEP_REST_S, FUNDS_STEPS_REST_S_MAX)

    def _set_apart(self, account: Account | None, rest_s: float = 0.0) -> None:
        """Let an account rest that is still followed: for some seconds, or since it cannot be read."""
        if account == self._rested:
            self._rested = None
        if account is not None and account in self._of_account:
            self._waiting.pop(account, None)
            self._apart.add(account, trio.current_time(), rest_s)
