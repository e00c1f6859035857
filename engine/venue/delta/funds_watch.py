"""Follows the funds of live orders on one chain: SUSPENDED while they are not there, and back.

    order taken in -> its account is followed: (token, owner); of the native token, its deposit
    logs about it, a fill, a settlement that came to nothing, a slow round of all -> to be read
        -> balance and allowance of some accounts, at one block -> held against what their orders need
        -> orders that should change -> what is settled of them, at the same block -> the step

Nothing is polled for each order: what is read are accounts that the chain's logs name (`engine.chain.watch`),
each once, however many orders it has. What is known here of an order's fills may be older than the block that
an account was read at; so whatever would change an order is settled by what the chain says of its fills then.

An account that could not be read is read again, and changes nothing: no order is suspended for a node that is
away. One that fails although others are read rests for itself, and keeps nobody waiting (`apart`). A token
whose contract answers nonsense has nothing. An order whose settlement is under way keeps its status, and is
looked at again when that has ended.

Source: document 1, "States and transitions"; chain.md, "Indexer"; choices.md 27.
Choice: all accounts are read again within a minute, for tokens that move balances without events; at most 50
    a second, so that of more than 3,000 a round takes longer.
Choice: an order that waits for its owner's signature on chain is followed, and not suspended.
Choice: what a token does not let anybody read is not known to lack: a settlement of it that failed counts as
    one.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Collection, Sequence
from itertools import islice

import structlog
import trio
from msgspec import Struct

from ....codecs.abi import WORD_BYTES
from ....codecs.delta_calldata import deposits, filled, slices
from ....codecs.eip712_orders.delta import DeltaOrder as SwapOrder
from ....codecs.trading_token import NATIVE_TOKEN
from ....codecs.vocabulary import OrderStatus
from ....config.errors import (
    BlockGone,
    ChainError,
    NodeContradiction,
    NodeFault,
    NodeUnavailable,
    OrderNotFound,
    StoreUnavailable,
)
from ....config.limits import VENUE_FUNDS_ACCOUNTS_MAX, VENUE_FUNDS_ORDERS_MAX
from ....config.timeouts import FUNDS_PAUSE_S, FUNDS_PAUSE_S_MAX, FUNDS_RECHECK_S, FUNDS_SLICE_S
from ....crypto.hexadecimal import to_hex
from ...chain.holdings import Holding, Question, holdings
from ...chain.port import Call, Chain
from ...chain.watch import Pair, Watch
from ...store.rows import DeltaOrder
from .apart import Account, Apart
from .claims import Claims
from .funds import Needs, lacks_of, needs_of
from .life import CANCELLABLE, OPEN, Step, restored, suspended
from .live_orders import LiveOrder, LiveOrders

_log = structlog.get_logger("cambist.venue")

_YIELD_ORDERS = 256  # are compared, or accounts are sorted in, before other tasks have their turn
_OF_ALL = (NodeUnavailable, BlockGone, NodeContradiction)
"""Errors that no account is the cause of."""

AreLacking = Callable[[LiveOrder, int], Awaitable[bool]]
"""(order, height) -> whether its funds lack, by a block that is not below that height."""


class FundsStatistics(Struct, frozen=True):
    """What is followed on one chain.

    Attributes:
        orders, accounts: now.
        waiting: accounts that are to be read.
        read: accounts that were read, each time counted.
        failed: reads that came to nothing, since the node or the store was away, or for an account's sake.
        suspended, restored: steps.
        apart: accounts that cannot be read, each with a rest of its own.
    """

    orders: int
    accounts: int
    waiting: int
    read: int
    failed: int
    suspended: int
    restored: int
    apart: int


class _Followed(Struct):
    """One order, as it was when its account was last marked.

    Attributes:
        filled: what `needs` are of.
        may_change: its status follows its funds now.
    """

    account: Account
    filled: int
    needs: Needs
    may_change: bool


class _Read(Struct, frozen=True):
    """What accounts had at one block."""

    block_hash: bytes
    found: dict[Account, Holding | None]


class FundsWatch:
    """See the module. `run` is its task.

    Args:
        watch: of the chain's indexer.
        delta: the contract, 20 bytes.
        read_to: height that the chain is read to; None until that is its head.
        wall_ms: Unix milliseconds.

    Attributes:
        claims: what settlements under way take of the accounts.
    """

    def __init__(
        self,
        chain: Chain,
        orders: LiveOrders,
        watch: Watch,
        *,
        delta: bytes,
        read_to: Callable[[], int | None],
        wall_ms: Callable[[], int],
    ) -> None:
        self._chain = chain
        self._orders = orders
        self._watch = watch
        self._delta = delta
        self._read_to = read_to
        self._wall_ms = wall_ms
        self._followed: dict[bytes, _Followed] = {}
        self._of_account: dict[Account, dict[bytes, None]] = {}
        self._waiting: dict[Account, None] = {}
        self._told: deque[Collection[Pair]] = deque()  # are to be sorted in
        self._apart = Apart()
        self._found: dict[Account, Holding | None] = {}  # when they were read last
        self.claims = Claims(lambda token, owner: self._found.get((token, owner, b"")))
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

    # --- What is to be read -----------------------------------------------------------------------------

    def tend(self, live: LiveOrder) -> None:
        """Follow what an order needs, as long as its funds matter. To be told of every change."""
        self.claims.tend(live)
        row = live.row
        if row.is_final or row.status not in CANCELLABLE:
            self._forget(row.order_hash)
            return
        may_change = row.status is not OrderStatus.AWAITING_SIGNATURE and live.settling is None
        known = self._followed.get(row.order_hash)
        if known is None:
            self._follow(live, may_change=may_change)
            return
        if known.filled != live.filled:
            known.filled, known.needs = live.filled, needs_of(live.order, live.filled)
            self._mark(known.account)
        elif may_change and not known.may_change:
            self._mark(known.account)
        known.may_change = may_change

    def touched(self, _chain_id: int, pairs: Collection[Pair]) -> None:
        """Funds of these (token, owner) may have moved, or what is deposited for an order. There may be very
        many, so that `run` sorts them in."""
        self._told.append(pairs)
        self._asleep.unpark()

    def _follow(self, live: LiveOrder, *, may_change: bool) -> None:
        account = _account(live)
        others = self._of_account.setdefault(account, {})
        if others:  # they have one tuple among them
            account = self._followed[next(iter(others))].account
        others[live.order_hash] = None
        needs = needs_of(live.order, live.filled)
        self._followed[live.order_hash] = _Followed(account, live.filled, needs, may_change)
        if account[2]:
            self._mark(account)
        self._watch.follow(*self._pair(account))

    def _forget(self, order_hash: bytes) -> None:
        known = self._followed.pop(order_hash, None)
        if known is None:
            return
        of_account = self._of_account[known.account]
        del of_account[order_hash]
        if not of_account:
            del self._of_account[known.account]
            self._found.pop(known.account, None)
            self._waiting.pop(known.account, None)
            self._apart.drop(known.account)
        self._watch.unfollow(*self._pair(known.account))

    def _pair(self, account: Account) -> Pair:
        """What the chain's logs know an account by."""
        token, owner, deposited_for = account
        return (self._delta, deposited_for) if deposited_for else (token, owner)

    def _mark(self, account: Account) -> None:
        if self._note(account):
            self._asleep.unpark()

    def _note(self, account: Account) -> bool:
        """Have an account read, unless it rests. Returns whether it is to be."""
        is_wanted = account in self._of_account and account not in self._apart
        if is_wanted:
            self._waiting[account] = None
        return is_wanted

    async def _sort_in(self) -> None:
        """Have the accounts read that `touched` was told of, with turns for others."""
        while self._told:
            for count, (contract, whose) in enumerate(self._told[0], start=1):
                known = self._followed.get(whose) if contract == self._delta else None
                self._note((contract, whose, b"") if known is None else known.account)
                if count % _YIELD_ORDERS == 0:
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
            height = self._read_to()
            if height is None:
                await trio.sleep(FUNDS_PAUSE_S)
                continue
            accounts = list(islice(self._waiting, self._count))
            for account in accounts:
                del self._waiting[account]
            rested = self._apart.take(trio.current_time())
            try:
                await self._look_at(accounts, height)
                await self._look_at([] if rested is None else [rested], height)
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
                self._set_apart(rested)
                await trio.sleep(FUNDS_PAUSE_S)
            else:
                pause_s = FUNDS_PAUSE_S
                self._count = min(2 * self._count, VENUE_FUNDS_ACCOUNTS_MAX)

    async def _look_at(self, accounts: Sequence[Account], height: int) -> None:
        """Look at accounts. Where one of them cannot be read, the others are all the same, and it rests.

        Raises:
            ChainError, StoreUnavailable: no account is the cause.
        """
        if not accounts:
            return
        try:
            await self._look(accounts, height)
        except _OF_ALL:
            raise
        except ChainError as error:
            self._failed += 1
            if len(accounts) > 1:
                middle = len(accounts) // 2
                await self._look_at(accounts[:middle], height)
                await self._look_at(accounts[middle:], height)
                return
            (account,) = accounts
            if account not in self._apart:
                token, owner = to_hex(account[0]), to_hex(account[1])
                _log.warning("an account cannot be read", token=token, owner=owner, detail=str(error))
            self._set_apart(account)
        else:
            for account in accounts:
                self._apart.drop(account)

    def _set_apart(self, account: Account | None) -> None:
        """Let an account rest that is still followed."""
        if account in self._of_account:
            self._waiting.pop(account, None)
            self._apart.add(account, trio.current_time())

    async def _look(self, accounts: Sequence[Account], height: int) -> None:
        """Read accounts, and hold them against their orders."""
        read = await self._read(accounts, height)
        self._reads += len(accounts)
        doubtful: list[LiveOrder] = []
        compared = 0
        for account in accounts:
            if account in self._of_account:
                self._found[account] = read.found[account]
            for order_hash in tuple(self._of_account.get(account, ())):
                if self._should_change(order_hash, read):
                    doubtful += filter(None, [self._orders.get(order_hash)])
                compared += 1
                if compared % _YIELD_ORDERS == 0:
                    await trio.lowlevel.checkpoint()
        for at in range(0, len(doubtful), VENUE_FUNDS_ORDERS_MAX):
            await self._settle_doubts(doubtful[at : at + VENUE_FUNDS_ORDERS_MAX], read)

    def _should_change(self, order_hash: bytes, read: _Read) -> bool:
        """Note what an order lacks by what is known of its fills. Whether its status is another's then."""
        live, known = self._orders.get(order_hash), self._followed.get(order_hash)
        if live is None:  # another engine runs it now
            self._forget(order_hash)
        if live is None or known is None:
            return False
        live.lacks = lacks_of(known.needs, read.found[known.account])
        return _is_due(live)

    async def _settle_doubts(self, doubtful: Sequence[LiveOrder], read: _Read) -> None:
        """Change the orders that lack something, or nothing any more, by their fills at the same block."""
        fills = await self._fills(doubtful, read.block_hash)
        problems: list[StoreUnavailable] = []
        async with trio.open_nursery() as nursery:
            for live, settled in zip(doubtful, fills, strict=True):
                live.lacks = lacks_of(needs_of(live.order, settled), read.found[_account(live)])
                if _is_due(live):
                    nursery.start_soon(self._step, live, problems)
        if problems:
            raise problems[0]

    async def _step(self, live: LiveOrder, problems: list[StoreUnavailable]) -> None:
        order_hash, is_lacking = live.order_hash, bool(live.lacks)
        before = live.row.version

        def decide(row: DeltaOrder) -> Step | None:
            now = self._orders.get(order_hash)
            if now is None or now.settling is not None:
                return None
            return suspended(row, self._wall_ms()) if is_lacking else restored(row, self._wall_ms())

        try:
            row = await self._orders.step(order_hash, decide)
        except StoreUnavailable as error:
            problems.append(error)
        except OrderNotFound:
            return
        except Exception as error:  # noqa: BLE001  one order's bug is not the others' end
            _log.error("an order is stuck", order=to_hex(order_hash), detail=repr(error), exc_info=True)
        else:
            if row.version > before and (row.status is OrderStatus.SUSPENDED) == is_lacking:
                self._suspended += is_lacking
                self._restored += not is_lacking

    async def are_lacking(self, live: LiveOrder, height: int) -> bool:
        """Whether what an order needs is not there. See AreLacking. Not where that account alone cannot be
        read: nothing is waited for without end.

        Raises:
            ChainError: nobody can say, whatever the account.
        """
        account = _account(live)
        try:
            read = await self._read([account], height)
        except _OF_ALL:
            raise
        except ChainError:
            return False
        (settled,) = await self._fills([live], read.block_hash)
        live.lacks = lacks_of(needs_of(live.order, settled), read.found[account])
        return bool(live.lacks)

    async def _read(self, accounts: Sequence[Account], height: int) -> _Read:
        """What accounts have, all at the latest block, which is at least that high."""
        tokens = [account for account in accounts if not account[2]]
        natives = [account for account in accounts if account[2]]
        told = await holdings(
            self._chain, [Question(token, owner, self._delta) for token, owner, _ in tokens]
        )
        if told.block_number < height:
            raise NodeContradiction(
                NodeFault.LAGGING, f"the node is at block {told.block_number}, below {height}"
            )
        found = dict(zip(tokens, told.found, strict=True))
        left = await self._numbers(
            [deposits(order_hash, owner) for _, owner, order_hash in natives], told.block_hash
        )
        found |= {account: Holding(amount, 0) for account, amount in zip(natives, left, strict=True)}
        return _Read(told.block_hash, found)

    async def _fills(self, orders: Sequence[LiveOrder], block_hash: bytes) -> list[int]:
        """What the contract has settled of orders: of the fixed side, or slices."""
        questions = [
            filled(live.order_hash) if isinstance(live.order, SwapOrder) else slices(live.order_hash)
            for live in orders
        ]
        return await self._numbers(questions, block_hash)

    async def _numbers(self, questions: Sequence[bytes], block_hash: bytes) -> list[int]:
        """The first word of what the Delta contract answers to each."""
        calls = [Call(self._delta, question) for question in questions]
        answers = await self._chain.call_many(calls, block_hash) if calls else []
        numbers = []
        for answer in answers:
            if isinstance(answer, Exception) or len(answer) < WORD_BYTES:
                raise ChainError("the Delta contract does not answer")
            numbers.append(int.from_bytes(answer[:WORD_BYTES], "big"))
        return numbers


def _account(live: LiveOrder) -> Account:
    terms = live.terms
    is_native = terms.src_token == NATIVE_TOKEN
    return terms.src_token, terms.owner, live.order_hash if is_native else b""


def _is_due(live: LiveOrder) -> bool:
    """Whether the status of an order is not that of its funds."""
    if live.settling is not None:
        return False
    status = live.row.status
    return status in OPEN if live.lacks else status is OrderStatus.SUSPENDED
