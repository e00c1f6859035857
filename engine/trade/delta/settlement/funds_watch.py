"""Suspends one chain's live orders while their owners' funds are missing, and restores them.

    an order is added -> its account is followed: (token, owner); for the native token, the owner's deposit
    logs about the account, a fill, a failed settlement, a slow cycle through all accounts -> to be read
        -> balance and allowance of some accounts, at one block -> compared with their orders' needs
        -> orders that should change -> their fills, at the same block -> suspended or restored

`accounts_watch` schedules the reads. The fills in memory may be older than the block at which an account was
read; whether an order changes is therefore decided by the order's fills at that block.

An account that could not be read changes nothing: no order is suspended because a node is unavailable. A
token whose contract returns no readable number counts as a balance of 0. An order with a settlement under way
keeps its status, and is checked again when the settlement has ended.

The account of an order from a vault is (vault, owner), and its vault is read with the account, at the same
block: the vault's statement is kept with the order, and a vault that does not give the source token counts as
missing funds. No log shows that a vault's shares are worth more or less: such accounts are read again at new
blocks, a second apart, at most VENUE_VAULTS_LOOKED_MAX accounts at a time. A read asks the vaults of at most
VENUE_VAULT_ORDERS_MAX orders, first the orders that were never read, then the orders that were read longest
ago: an owner with many orders mainly delays the owner's own orders.

An order that awaits its owner's signature on chain is followed and not suspended. If only a single account
cannot be read, its orders' settlements are sent nonetheless, and a failed settlement counts as any other.

Source: spec 1.11; ARCHITECTURE.md, "Funds"; choices.md#delta-orders.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence

import structlog
import trio
from msgspec import Struct

from .....codecs.contracts.abi import WORD_BYTES
from .....codecs.contracts.delta_calldata import deposits, order_state
from .....codecs.contracts.delta_results import decode_order_state
from .....codecs.eip712_orders.delta import ProductiveOrder
from .....codecs.messages.vocabulary import OrderStatus
from .....codecs.trading_token import NATIVE_TOKEN
from .....config.errors import (
    ChainError,
    InvalidInput,
    NodeContradiction,
    NodeFault,
    OrderNotFound,
    StoreUnavailable,
)
from .....config.limits import VENUE_FUNDS_ORDERS_MAX, VENUE_VAULT_ORDERS_MAX, VENUE_VAULTS_LOOKED_MAX
from .....config.timeouts import RECENT_BLOCK_S, VAULT_LOOK_S
from .....crypto.hexadecimal import to_hex
from ....chain.holdings import Holding, HoldingQuestion, holdings
from ....chain.index.ring import Mark
from ....chain.index.watch import Watch, WatchedAccount
from ....chain.port import Chain, EthCall, Header
from ....chain.together import both
from ....store.rows import DeltaOrderRow
from ...orders.accounts_watch import OF_ALL, YIELD_ORDERS, AccountsWatch, Followed
from ..orders.funds import MissingFund, Needs, lacks_of, needs_of
from ..orders.life import CANCELLABLE, OPEN, DeltaStep, restored, suspended
from ..orders.live_orders import LiveOrder, LiveOrders
from ..orders.terms import is_scheduled, whole_of
from ..orders.vault import VaultWorth
from .claims import Claims
from .vault_reads import VaultReads

_MUTE = "the Delta contract does not answer"
_log = structlog.get_logger("cambist.venue")

DeltaAccount = tuple[bytes, bytes]
"""Account of an order's owner as (token, owner), 20 bytes each.

With the native token, the account is the owner's deposit at the Delta contract; with a vault, the owner's
shares.
"""

AreLacking = Callable[[LiveOrder, int], Awaitable[bool]]
"""Function of (order, block height) that returns whether the owner lacks funds for the order.

The funds are read at the block of that height or at a later one.
"""


class _FollowedDelta(Followed[DeltaAccount]):
    """An order whose owner's funds are followed, and the funds that the order needs.

    Attributes:
        filled: settled amount of the order from which `needs` was computed; a later fill changes the needs.
        may_change: whether funds may change the order's status now: the order is signed, and no settlement of
            it is under way.
        lacks: funds that the owner lacked when they were last read.
        looked: number of the look that asked the order's vault last; 0 before the first.
    """

    filled: int
    needs: Needs
    may_change: bool
    lacks: tuple[MissingFund, ...] = ()
    looked: int = 0


class _FundsAtBlock(Struct, frozen=True):
    """Funds of the accounts of orders' owners, all read at one block.

    Attributes:
        found: funds by account; None for an account whose token contract returns no readable number.
    """

    block_hash: bytes
    found: dict[DeltaAccount, Holding | None]


class FundsWatch(AccountsWatch[DeltaAccount, _FollowedDelta]):
    """Reads the funds of one chain's order owners, and suspends or restores orders. `run` is its task.

    Args:
        watch: set of accounts whose logs the chain's indexer reports.
        delta: the Delta contract, 20 bytes.
        vaults: reads the vaults from which orders sell.
        revalued: called with an order whose vault has stated a first or a changed worth.
        read_to: returns the last indexed block; None while the indexer is behind the chain's head.
        wall_ms: returns the time, Unix milliseconds.

    Attributes:
        claims: reservations of the owners' funds for settlements under way.
    """

    def __init__(
        self,
        chain: Chain,
        orders: LiveOrders,
        watch: Watch,
        *,
        delta: bytes,
        vaults: VaultReads,
        revalued: Callable[[LiveOrder], None],
        read_to: Callable[[], Mark | None],
        wall_ms: Callable[[], int],
    ) -> None:
        super().__init__(chain, watch, read_to)
        self._orders = orders
        self._delta = delta
        self._vaults = vaults
        self._revalued = revalued
        self._wall_ms = wall_ms
        self._of_vault: dict[DeltaAccount, None] = {}  # accounts of orders from vaults
        self._looks = 0
        self._found: dict[DeltaAccount, Holding | None] = {}  # as read last
        self.claims = Claims(lambda token, owner: self._found.get((token, owner)))

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Read the funds of queued accounts, and of accounts with shares of vaults, until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._follow_vaults)
            await super().run(task_status=task_status)

    # --- Followed accounts ------------------------------------------------------------------------------

    def watch_owner(self, live: LiveOrder) -> None:
        """Follow the funds of an order's owner as long as missing funds can suspend the order.

        Call this after every change of the order.
        """
        self.claims.hold_while_settling(live)  # before the returns: it frees the claim of an ended order
        row = live.row
        if row.status not in CANCELLABLE:
            self._forget(row.order_hash)
            return
        may_change = row.status is not OrderStatus.AWAITING_SIGNATURE and live.settling is None
        known = self._followed.get(row.order_hash)
        if known is None:
            needs = needs_of(live.order, live.filled, live.worth)
            known = _FollowedDelta(_account_of(live), live.filled, needs, may_change)
            self._follow(row.order_hash, known)
            # Other accounts are read once the watch reports them, after the next block. An order from a vault
            # waits for its vault's first statement, and settlements lower a deposit without a watched log.
            is_of_vault = isinstance(live.order, ProductiveOrder)
            if is_of_vault:
                self._of_vault[known.account] = None
            if is_of_vault or known.account[0] == NATIVE_TOKEN:
                self._mark(known.account)
            return
        if known.filled != live.filled:
            known.filled, known.needs = live.filled, needs_of(live.order, live.filled, live.worth)
            self._mark(known.account)
        elif may_change and not known.may_change:
            self._mark(known.account)  # reads during the settlement did not change the order
        known.may_change = may_change

    def lacks(self, order_hash: bytes) -> tuple[MissingFund, ...]:
        """Return the funds that an order's owner lacked when they were last read.

        The result is empty if the owner's funds are not followed for this order.
        """
        known = self._followed.get(order_hash)
        return () if known is None else known.lacks

    def _note_lacks(self, order_hash: bytes, lacks: tuple[MissingFund, ...]) -> None:
        known = self._followed.get(order_hash)
        if known is not None:
            known.lacks = lacks

    def _forget(self, order_hash: bytes) -> None:
        known = self._followed.get(order_hash)
        super()._forget(order_hash)
        if known is not None and known.account not in self._of_account:
            self._found.pop(known.account, None)
            self._of_vault.pop(known.account, None)

    def _pair(self, account: DeltaAccount) -> WatchedAccount:
        token, owner = account
        return (self._delta if token == NATIVE_TOKEN else token, owner)

    def _account(self, pair: WatchedAccount) -> DeltaAccount:
        contract, owner = pair
        return (NATIVE_TOKEN if contract == self._delta else contract, owner)

    async def _follow_vaults(self) -> None:
        """Queue the accounts of orders from vaults for another read after each new block, some at a time."""
        read_at, left = 0, list[DeltaAccount]()
        while True:
            await trio.sleep(VAULT_LOOK_S)
            top = self._read_to()
            if not left and self._of_vault and top is not None and top.number > read_at:
                read_at, left = top.number, list(self._of_vault)
            for account in left[:VENUE_VAULTS_LOOKED_MAX]:
                self._mark(account)
            del left[:VENUE_VAULTS_LOOKED_MAX]

    # --- Reading ----------------------------------------------------------------------------------------

    async def _look(self, accounts: Sequence[DeltaAccount], top: Mark) -> None:
        """Read accounts' funds; suspend orders whose owner lacks funds, and restore orders with funds again.

        Args:
            top: last indexed block; the funds are read at this block or a later one.
        """
        # At the latest block: a deposit's log may have been read by another engine, beyond what this one has.
        read = await self._read(accounts, top.number)
        chosen, later = self._orders_of_vaults(accounts)
        worths = await self._vaults.worths(chosen, read.block_hash)
        self._reads += len(accounts)
        doubtful: list[LiveOrder] = []
        compared = 0
        for account in accounts:
            # Not if it was forgotten during the reads: only `_forget` would remove the entry.
            if account in self._of_account:
                self._found[account] = read.found[account]
            for order_hash in tuple(self._of_account.get(account, ())):
                self._revalue(order_hash, worths)
                live = self._changing(order_hash, read)
                if live is not None:
                    doubtful.append(live)
                compared += 1
                if compared % YIELD_ORDERS == 0:
                    await trio.lowlevel.checkpoint()
        for account, count in Counter(map(_account_of, doubtful)).items():
            self._changes(account, count)
        for at in range(0, len(doubtful), VENUE_FUNDS_ORDERS_MAX):
            await self._settle_doubts(doubtful[at : at + VENUE_FUNDS_ORDERS_MAX], read)
        # Orders beyond the bound are not auctioned before their vault's first statement: read again at once.
        for account in later:
            self._mark(account)

    def _orders_of_vaults(
        self, accounts: Sequence[DeltaAccount]
    ) -> tuple[list[LiveOrder], frozenset[DeltaAccount]]:
        """Select the orders whose vaults to ask now.

        Returns:
            (the orders, accounts of orders that have to wait for their first read).
        """
        hashes = [
            key
            for account in accounts
            if account in self._of_vault
            for key in self._of_account.get(account, ())
        ]
        found = [live for key in hashes if (live := self._orders.get(key)) is not None]
        found.sort(key=lambda live: (live.worth is not None, self._followed[live.order_hash].looked))
        self._looks += 1
        chosen, others = found[:VENUE_VAULT_ORDERS_MAX], found[VENUE_VAULT_ORDERS_MAX:]
        for live in chosen:
            self._followed[live.order_hash].looked = self._looks
        return chosen, frozenset(_account_of(live) for live in others if live.worth is None)

    def _revalue(self, order_hash: bytes, worths: Mapping[bytes, VaultWorth]) -> None:
        """Keep a vault's new statement about an order, and compute the order's needs anew."""
        live, known = self._orders.get(order_hash), self._followed.get(order_hash)
        worth = worths.get(order_hash)
        if live is None or known is None or worth is None or live.worth == worth:
            return
        live.worth = worth
        known.needs = needs_of(live.order, known.filled, worth)
        self._revalued(live)

    def _changing(self, order_hash: bytes, read: _FundsAtBlock) -> LiveOrder | None:
        """Compare the funds that an order needs with its owner's funds, and record the missing funds.

        The needs are computed from the order's settled amount in memory.

        Returns:
            The order, if it has to be suspended or restored.
        """
        live, known = self._orders.get(order_hash), self._followed.get(order_hash)
        if live is None:  # another engine runs the order now
            self._forget(order_hash)
        if live is None or known is None:
            return None
        known.lacks = lacks_of(known.needs, read.found[known.account])
        return live if _is_due(live, is_lacking=bool(known.lacks)) else None

    async def _settle_doubts(self, doubtful: Sequence[LiveOrder], read: _FundsAtBlock) -> None:
        """Suspend orders whose funds are missing and restore orders whose funds are sufficient again.

        The needs are computed anew from the orders' settled amounts on chain, at the block at which the funds
        were read, as the settled amounts in memory may be older.

        Args:
            doubtful: orders to suspend or restore according to the amounts in memory.
        """
        fills = await self._fills(doubtful, read.block_hash)
        problems: list[StoreUnavailable] = []
        async with trio.open_nursery() as nursery:
            for live, settled in zip(doubtful, fills, strict=True):
                needs = needs_of(live.order, settled, live.worth)
                lacks = lacks_of(needs, read.found[_account_of(live)])
                self._note_lacks(live.order_hash, lacks)
                if _is_due(live, is_lacking=bool(lacks)):
                    nursery.start_soon(self._step, live, bool(lacks), problems)
        if problems:
            raise problems[0]

    async def _step(self, live: LiveOrder, is_lacking: bool, problems: list[StoreUnavailable]) -> None:  # noqa: FBT001
        order_hash, before = live.order_hash, live.row.version

        def decide(row: DeltaOrderRow) -> DeltaStep | None:
            now = self._orders.get(order_hash)
            # A settlement may have begun since the funds were read: the order keeps its status, and
            # `watch_owner` queues another read when the settlement has ended.
            if now is None or now.settling is not None:
                return None
            return suspended(row, self._wall_ms()) if is_lacking else restored(row, self._wall_ms())

        try:
            row = await self._orders.step(order_hash, decide)
        except StoreUnavailable as error:
            problems.append(error)
        except OrderNotFound:
            return
        except Exception as error:  # noqa: BLE001  a bug in one order stops no other
            _log.error("an order is stuck", order=to_hex(order_hash), detail=repr(error), exc_info=True)
        else:
            if row.version != before and (row.status is OrderStatus.SUSPENDED) == is_lacking:
                self._suspended += is_lacking
                self._restored += not is_lacking

    async def are_lacking(self, live: LiveOrder, height: int) -> bool:
        """Whether an order's owner lacks funds for the order at a recent block, or at the latest.

        The result is False if only this account cannot be read, so that no settlement waits without end. An
        unreadable answer of the token's contract counts as a balance of 0.

        Args:
            height: least height of that block.

        Raises:
            ChainError: no account of the chain can be read.
        """
        recent = await self._chain.recent_block(RECENT_BLOCK_S)
        if recent.number >= height:
            found, fills = await both(
                lambda: self._funds(live, height, recent), lambda: self._fills([live], recent.hash)
            )
            if found is None:
                return False
        else:
            found = await self._funds(live, height, None)
            if found is None:
                return False
            fills = await self._fills([live], found[0].block_hash)
        read, worths = found
        self._revalue(live.order_hash, worths)
        lacks = lacks_of(needs_of(live.order, fills[0], live.worth), read.found[_account_of(live)])
        self._note_lacks(live.order_hash, lacks)
        return bool(lacks)

    async def _funds(
        self, live: LiveOrder, height: int, at: Header | None
    ) -> tuple[_FundsAtBlock, dict[bytes, VaultWorth]] | None:
        """Read the funds of an order's owner and the worth of its shares; None if only these are unreadable.

        Args:
            height, at: as in `_read`.
        """
        try:
            read = await self._read([_account_of(live)], height, at)
            return read, await self._vaults.worths([live], read.block_hash)
        except OF_ALL:
            raise
        except ChainError:
            return None

    async def _read(
        self, accounts: Sequence[DeltaAccount], height: int, at: Header | None = None
    ) -> _FundsAtBlock:
        """Read the balances and allowances of accounts, all at one block.

        Args:
            height: least height of that block.
            at: header of the block; None for the latest.

        Raises:
            NodeContradiction: the block is below `height`.
        """
        tokens = [account for account in accounts if account[0] != NATIVE_TOKEN]
        natives = [account for account in accounts if account[0] == NATIVE_TOKEN]
        held = await holdings(
            self._chain,
            [HoldingQuestion(token, owner, self._delta) for token, owner in tokens],
            at,
        )
        if held.block_number < height:
            raise NodeContradiction(
                NodeFault.LAGGING, f"the node is at block {held.block_number}, below {height}"
            )
        found = dict(zip(tokens, held.found, strict=True))
        left = await self._answers([deposits(owner) for _, owner in natives], held.block_hash)
        found |= {
            account: Holding(int.from_bytes(answer[:WORD_BYTES], "big"), 0)
            for account, answer in zip(natives, left, strict=True)
        }
        return _FundsAtBlock(held.block_hash, found)

    async def _fills(self, orders: Sequence[LiveOrder], block_hash: bytes) -> list[int]:
        """Read from the Delta contract how much of each order is settled, at one block.

        Each amount is in raw units of the source token (SELL) or the destination token (BUY), or the number
        of a TWAP's settled slices; an order whose nonce is used counts as settled completely.
        """
        questions = [order_state(live.terms.owner, live.terms.nonce, live.order_hash) for live in orders]
        answers = await self._answers(questions, block_hash)
        return [_filled(live, answer) for live, answer in zip(orders, answers, strict=True)]

    async def _answers(self, questions: Sequence[bytes], block_hash: bytes) -> list[bytes]:
        """Call the Delta contract with each calldata at one block; return the answers.

        Raises:
            ChainError: an answer is an error, or shorter than a word of 32 bytes.
        """
        calls = [EthCall(self._delta, question) for question in questions]
        answers = await self._chain.call_many(calls, block_hash) if calls else []
        readable = [answer for answer in answers if isinstance(answer, bytes) and len(answer) >= WORD_BYTES]
        if len(readable) < len(calls):
            raise ChainError(_MUTE)
        return readable


def _account_of(live: LiveOrder) -> DeltaAccount:
    terms = live.terms
    return terms.held_token, terms.owner


def _filled(live: LiveOrder, answer: bytes) -> int:
    try:
        state = decode_order_state(answer, live.order_hash, is_scheduled=is_scheduled(live.order))
    except InvalidInput:
        raise ChainError(_MUTE) from None
    return whole_of(live.order) if state.is_used or state.is_others else state.done


def _is_due(live: LiveOrder, *, is_lacking: bool) -> bool:
    """Whether an order must change its status now: be suspended without funds, or restored with funds."""
    if live.settling is not None:
        return False
    status = live.row.status
    return status in OPEN if is_lacking else status is OrderStatus.SUSPENDED
