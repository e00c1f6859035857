"""Follows the funds of live orders on one chain: SUSPENDED while they are not there, and back.

    order taken in -> its account is followed: (token, owner); of the native token, the owner's deposit
    logs about it, a fill, a settlement that came to nothing, a slow round of all -> to be read
        -> balance and allowance of some accounts, at one block -> held against what their orders need
        -> orders that should change -> what is settled of them, at the same block -> the step

Which accounts are read, and when, is `accounts_watch`. What is known here of an order's fills may be older
than the block that an account was read at; so whatever would change an order is settled by what the chain
says of its fills then.

An account that could not be read changes nothing: no order is suspended for a node that is away. A token
whose contract answers nonsense has nothing. An order whose settlement is under way keeps its status, and is
looked at again when that has ended.

An order that awaits its owner's signature on chain is not suspended. A token that reveals no balance counts
as sufficient until a settlement fails.

Source: spec 1.11; ARCHITECTURE.md, "Funds"; choices.md#delta-orders.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

import structlog
import trio
from msgspec import Struct

from ....codecs.contracts.abi import WORD_BYTES
from ....codecs.contracts.delta_calldata import deposits, order_state
from ....codecs.contracts.delta_results import decode_order_state
from ....codecs.eip712_orders.delta import DeltaOrder
from ....codecs.messages.vocabulary import OrderStatus
from ....codecs.trading_token import NATIVE_TOKEN
from ....config.errors import (
    ChainError,
    InvalidInput,
    NodeContradiction,
    NodeFault,
    OrderNotFound,
    StoreUnavailable,
)
from ....config.limits import VENUE_FUNDS_ORDERS_MAX
from ....crypto.hexadecimal import to_hex
from ...chain.holdings import Holding, HoldingQuestion, holdings
from ...chain.index.ring import Mark
from ...chain.index.watch import Watch, WatchedAccount
from ...chain.port import Chain, EthCall
from ...orders.accounts_watch import OF_ALL, YIELD_ORDERS, AccountsWatch, Followed
from ...store.rows import DeltaOrderRow
from ..orders.funds import Needs, lacks_of, needs_of
from ..orders.life import CANCELLABLE, OPEN, DeltaStep, restored, suspended
from ..orders.live_orders import LiveOrder, LiveOrders
from ..orders.terms import whole_of
from .claims import Claims

_MUTE = "the Delta contract does not answer"
_log = structlog.get_logger("cambist.venue")

DeltaAccount = tuple[bytes, bytes]
"""(token, owner); of the native token what the owner has deposited."""

AreLacking = Callable[[LiveOrder, int], Awaitable[bool]]
"""(order, height) -> whether its funds lack, by a block that is not below that height."""


class _FollowedDelta(Followed[DeltaAccount]):
    """One order, as it was when its account was last marked.

    Attributes:
        filled: what `needs` are of.
        may_change: its status follows its funds now.
    """

    filled: int
    needs: Needs
    may_change: bool


class _FundsAtBlock(Struct, frozen=True):
    """What accounts had at one block."""

    block_hash: bytes
    found: dict[DeltaAccount, Holding | None]


class FundsWatch(AccountsWatch[DeltaAccount, _FollowedDelta]):
    """See the module. `run` is its task.

    Args:
        watch: of the chain's indexer.
        delta: the contract, 20 bytes.
        read_to: the block that the chain is read to; None until that is its head.
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
        read_to: Callable[[], Mark | None],
        wall_ms: Callable[[], int],
    ) -> None:
        super().__init__(chain, watch, read_to)
        self._orders = orders
        self._delta = delta
        self._wall_ms = wall_ms
        self._found: dict[DeltaAccount, Holding | None] = {}  # when they were read last
        self.claims = Claims(lambda token, owner: self._found.get((token, owner)))

    # --- What is followed -------------------------------------------------------------------------------

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
            needs = needs_of(live.order, live.filled)
            known = _FollowedDelta(_account_of(live), live.filled, needs, may_change)
            self._follow(row.order_hash, known)
            if known.account[0] == NATIVE_TOKEN:
                self._mark(known.account)
            return
        if known.filled != live.filled:
            known.filled, known.needs = live.filled, needs_of(live.order, live.filled)
            self._mark(known.account)
        elif may_change and not known.may_change:
            self._mark(known.account)
        known.may_change = may_change

    def _forget(self, order_hash: bytes) -> None:
        known = self._followed.get(order_hash)
        super()._forget(order_hash)
        if known is not None and known.account not in self._of_account:
            self._found.pop(known.account, None)

    def _pair(self, account: DeltaAccount) -> WatchedAccount:
        token, owner = account
        return (self._delta if token == NATIVE_TOKEN else token, owner)

    def _account(self, pair: WatchedAccount) -> DeltaAccount:
        contract, owner = pair
        return (NATIVE_TOKEN if contract == self._delta else contract, owner)

    # --- Reading ----------------------------------------------------------------------------------------

    async def _look(self, accounts: Sequence[DeltaAccount], top: Mark) -> None:
        """Read accounts, and hold them against their orders."""
        read = await self._read(accounts, top.number)
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
                if compared % YIELD_ORDERS == 0:
                    await trio.lowlevel.checkpoint()
        for account, count in Counter(map(_account_of, doubtful)).items():
            self._changes(account, count)
        for at in range(0, len(doubtful), VENUE_FUNDS_ORDERS_MAX):
            await self._settle_doubts(doubtful[at : at + VENUE_FUNDS_ORDERS_MAX], read)

    def _should_change(self, order_hash: bytes, read: _FundsAtBlock) -> bool:
        """Note what an order lacks by what is known of its fills. Whether its status is another's then."""
        live, known = self._orders.get(order_hash), self._followed.get(order_hash)
        if live is None:  # another engine runs it now
            self._forget(order_hash)
        if live is None or known is None:
            return False
        live.lacks = lacks_of(known.needs, read.found[known.account])
        return _is_due(live)

    async def _settle_doubts(self, doubtful: Sequence[LiveOrder], read: _FundsAtBlock) -> None:
        """Change the orders that lack something, or nothing any more, by their fills at the same block."""
        fills = await self._fills(doubtful, read.block_hash)
        problems: list[StoreUnavailable] = []
        async with trio.open_nursery() as nursery:
            for live, settled in zip(doubtful, fills, strict=True):
                live.lacks = lacks_of(needs_of(live.order, settled), read.found[_account_of(live)])
                if _is_due(live):
                    nursery.start_soon(self._step, live, problems)
        if problems:
            raise problems[0]

    async def _step(self, live: LiveOrder, problems: list[StoreUnavailable]) -> None:
        order_hash, is_lacking = live.order_hash, bool(live.lacks)
        before = live.row.version

        def decide(row: DeltaOrderRow) -> DeltaStep | None:
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
        account = _account_of(live)
        try:
            read = await self._read([account], height)
        except OF_ALL:
            raise
        except ChainError:
            return False
        (settled,) = await self._fills([live], read.block_hash)
        live.lacks = lacks_of(needs_of(live.order, settled), read.found[account])
        return bool(live.lacks)

    async def _read(self, accounts: Sequence[DeltaAccount], height: int) -> _FundsAtBlock:
        """What accounts have, all at the latest block, which is at least that high."""
        tokens = [account for account in accounts if account[0] != NATIVE_TOKEN]
        natives = [account for account in accounts if account[0] == NATIVE_TOKEN]
        told = await holdings(
            self._chain, [HoldingQuestion(token, owner, self._delta) for token, owner in tokens]
        )
        if told.block_number < height:
            raise NodeContradiction(
                NodeFault.LAGGING, f"the node is at block {told.block_number}, below {height}"
            )
        found = dict(zip(tokens, told.found, strict=True))
        left = await self._answers([deposits(owner) for _, owner in natives], told.block_hash)
        found |= {
            account: Holding(int.from_bytes(answer[:WORD_BYTES], "big"), 0)
            for account, answer in zip(natives, left, strict=True)
        }
        return _FundsAtBlock(told.block_hash, found)

    async def _fills(self, orders: Sequence[LiveOrder], block_hash: bytes) -> list[int]:
        """What the contract has settled of orders: of the fixed side, or slices; all where no more can be."""
        questions = [order_state(live.terms.owner, live.terms.nonce, live.order_hash) for live in orders]
        answers = await self._answers(questions, block_hash)
        return [_filled(live, answer) for live, answer in zip(orders, answers, strict=True)]

    async def _answers(self, questions: Sequence[bytes], block_hash: bytes) -> list[bytes]:
        """What the Delta contract answers to each, a word at least."""
        calls = [EthCall(self._delta, question) for question in questions]
        answers = await self._chain.call_many(calls, block_hash) if calls else []
        told = [answer for answer in answers if isinstance(answer, bytes) and len(answer) >= WORD_BYTES]
        if len(told) < len(calls):
            raise ChainError(_MUTE)
        return told


def _account_of(live: LiveOrder) -> DeltaAccount:
    terms = live.terms
    return terms.src_token, terms.owner


def _filled(live: LiveOrder, answer: bytes) -> int:
    is_scheduled = not isinstance(live.order, DeltaOrder)
    try:
        state = decode_order_state(answer, live.order_hash, is_scheduled=is_scheduled)
    except InvalidInput:
        raise ChainError(_MUTE) from None
    return whole_of(live.order) if state.is_used or state.is_others else state.done


def _is_due(live: LiveOrder) -> bool:
    """Whether the status of an order is not that of its funds."""
    if live.settling is not None:
        return False
    status = live.row.status
    return status in OPEN if live.lacks else status is OrderStatus.SUSPENDED
