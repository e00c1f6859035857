"""Follows makers' funds on one chain: suspends OTC orders without funds, and sets each order's balances.

    an order is added, signed, filled or ended; a log names its (makerAsset, maker); the regular re-read of
        all accounts reaches it -> the account (makerAsset, maker) is queued
        -> at the last indexed block: balance, allowance, and the contract's unfilled amounts of its orders
        -> a row has another unfilled amount: the row is computed from the order's logs (`OtcOrders.catch_up`)
        -> the account's live orders, from the store -> permits that are needed, tried at the same block
        -> `balances.standings` -> steps of the orders that this process runs

`accounts_watch` schedules the reads. An account's orders are read from the store, since other processes may
run some of these orders, which share the funds. The account is read again after a write of another process.

An order may change and change back before its events arrive, so that `watch_maker` sees no change of the
order. Before `_look` compares rows with funds, it therefore refreshes the orders in memory that are older.

The account of a new order is read after the first step of the indexer that begins after the order was added:
the order may have been checked at a later block than the last indexed block.

An account that could not be read changes no order: no order is suspended because a node is unavailable. A
token whose contract returns no numbers counts as a balance and an allowance of 0.

Permits of one account are tried in one batch, up to a bound, the oldest orders' first; the token accepts them
one by one, in the sequence of their nonces.

Source: spec 2.5; ARCHITECTURE.md, "Funds"; choices.md#otc-orders.
"""

from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import suppress

import structlog
import trio
from msgspec import Struct

from ....codecs.contracts.abi import WORD_BYTES
from ....codecs.contracts.calldata import remaining_balances
from ....codecs.messages.vocabulary import OtcState
from ....config.errors import ChainError, OrderNotFound, StoreUnavailable
from ....config.limits import VENUE_FUNDS_ACCOUNTS_MAX, VENUE_FUNDS_ORDERS_MAX
from ....crypto.hexadecimal import to_hex
from ...chain.holdings import Holding, HoldingQuestion, holdings
from ...chain.index.ring import Mark
from ...chain.index.watch import Watch, WatchedAccount
from ...chain.port import Chain, EthCall
from ...chain.together import all_of, both
from ...store.queries import IDS_MAX, among, live_otc
from ...store.rows import OrderDocument, OtcOrderRow, amount_of
from ...store.store import Store
from ...store.tables import OTC_DOCUMENT
from ...store.units import row_of
from ..orders.accounts_watch import AccountsWatch, Followed
from ..orders.order_units import OTC
from ..orders.step import OrderStep
from .balances import OrderBacking, backed, is_wanted, standings, trial_calls, trial_results
from .document import decode_document
from .life import BACKED, LIVE, stood
from .live_orders import LiveOtc, OtcOrders

_log = structlog.get_logger("cambist.venue")

_READS_MAX = 4  # simultaneous batches of such calls
_CALLS_MAX = 20  # simultaneous calls for unfilled amounts, of VENUE_FUNDS_ORDERS_MAX orders each

OtcAccount = tuple[bytes, bytes]
"""Key of a maker's account: (address of the token that the maker sells, address of the maker)."""


class _FollowedOtc(Followed[OtcAccount]):
    """An OTC order whose maker's funds are watched, with the order's claim on these funds.

    Attributes:
        share: pair of a flag, true for a PENDING or SUSPENDED order, which may get a part of the funds, and
            the order's unfilled raw units as 32 bytes. Each change of the pair requires a new read of the
            funds.
    """

    share: tuple[bool, bytes]


class _MakerFunds(Struct, frozen=True):
    """A maker's balance and allowance, and its orders' unfilled amounts as the RFQ contract reports them.

    Attributes:
        holding: balance and allowance; None if the token's contract returns no numbers.
        left: unfilled raw units by order hash; None for an order that the contract has not seen.
    """

    holding: Holding | None
    left: Mapping[bytes, int | None]


class _Due(Struct, frozen=True):
    """Orders of one maker and one sold token whose rows change in one unit of the store.

    Attributes:
        rows: rows of the orders as read, by order hash.
        found: status and balances that follow from the maker's funds, by order hash.
    """

    rows: Mapping[bytes, OtcOrderRow]
    found: Mapping[bytes, OrderBacking]


class OtcFundsWatch(AccountsWatch[OtcAccount, _FollowedOtc]):
    """Reads the funds of makers on one chain, and writes the status and balances of their OTC orders.

    The method `run` does this until cancelled.

    Args:
        watch: set of accounts (token, maker) whose logs the chain's indexer reports.
        rfq: the RFQ contract, 20 bytes.
        read_to: returns the last indexed block; None while the chain has blocks that are not indexed yet.
        wall_ms: returns the time, Unix milliseconds.
    """

    def __init__(
        self,
        chain: Chain,
        store: Store,
        orders: OtcOrders,
        watch: Watch,
        *,
        rfq: bytes,
        read_to: Callable[[], Mark | None],
        wall_ms: Callable[[], int],
    ) -> None:
        super().__init__(chain, watch, read_to)
        self._store = store
        self._orders = orders
        self._rfq = rfq
        self._wall_ms = wall_ms
        self._found: dict[OtcAccount, Holding | None] = {}  # funds at the last read
        self._of_maker: dict[bytes, dict[OtcAccount, None]] = {}

    # --- Marking accounts -------------------------------------------------------------------------------

    def watch_maker(self, live: LiveOtc) -> None:
        """Watch the funds of an order's maker until the order has ended and no re-organisation can reopen it.

        A read of the funds is queued if the order is new to the watch, or its unfilled amount or its claim on
        the funds has changed. Every change of an order has to be passed to this method.
        """
        row = live.row
        if row.is_final:
            self._forget(row.order_hash)
            return
        share = row.status in BACKED, row.remaining
        known = self._followed.get(row.order_hash)
        if known is None:
            account = row.maker_asset, row.maker
            is_alone = account not in self._of_account
            self._follow(row.order_hash, _FollowedOtc(account, share))
            self._of_maker.setdefault(row.maker, {})[account] = None
            if not is_alone:  # a first order's account is reported anyway
                self._watch.report(*account)
        elif known.share != share:
            known.share = share
            self._mark(known.account)

    def read_again(self, live: LiveOtc) -> None:
        """Queue a read of a maker's funds, because the deadline of an order's permit has passed.

        The permit counts towards the order's funds only until its deadline, whose passing no log reports.
        """
        known = self._followed.get(live.order_hash)
        if known is not None:
            self._mark(known.account)

    def others_changed(self, maker: bytes) -> None:
        """Queue reads of all of a maker's funds after another process has changed an order of the maker."""
        for account in self._of_maker.get(maker, ()):
            self._mark(account)

    def leave(self, held: Container[int]) -> None:
        """Stop following the funds of orders in shards that this process does not hold any more.

        Args:
            held: numbers of the shards that the process holds.
        """
        for order_hash in [key for key in self._followed if key[0] not in held]:
            self._forget(order_hash)

    def is_short(self, row: OtcOrderRow) -> bool:
        """Whether the maker's last known funds do not cover the unfilled amount of an order.

        The result is False if the funds are not read yet, or if the order has a permit, which may suffice.
        """
        account = row.maker_asset, row.maker
        live = self._orders.get(row.order_hash)
        if account not in self._found or (live is not None and live.document.permit):
            return False
        holding = self._found[account]
        return holding is None or holding.usable < amount_of(row.remaining)

    def _forget(self, order_hash: bytes) -> None:
        """Stop watching the maker's funds for an order, and queue a read of these funds.

        The read lets the maker's other orders that sell the same token share the funds that become free.
        """
        known = self._followed.get(order_hash)
        super()._forget(order_hash)
        if known is None:
            return
        account = known.account
        if account in self._of_account:
            self._mark(account)
            return
        self._found.pop(account, None)
        of_maker = self._of_maker[account[1]]
        del of_maker[account]
        if not of_maker:
            del self._of_maker[account[1]]

    def _pair(self, account: OtcAccount) -> WatchedAccount:
        return account

    def _account(self, pair: WatchedAccount) -> OtcAccount:
        return pair

    # --- Reading ----------------------------------------------------------------------------------------

    async def _look(self, accounts: Sequence[OtcAccount], top: Mark) -> None:
        """Read makers' funds, and change the orders whose status or balances do not match the funds."""
        followed = [account for account in accounts if account in self._of_account]
        if not followed:
            return
        read = await self._read(followed, top)
        self._reads += len(followed)
        for funds in read.values():
            await self._catch_up(funds.left)
        chain_id = self._chain.chain_id
        found = await self._store.read(*(live_otc(chain_id, maker, asset) for asset, maker in followed))
        dues: list[_Due] = []
        for account, values in zip(followed, found, strict=True):
            rows, holding = [OTC.found(row) for row in values], read[account].holding
            await self._orders.notice(rows)
            if account in self._of_account:
                self._found[account] = holding
            permitted = await self._permitted(account, rows, holding, top)
            of_account = self._due(account, rows, holding, permitted)
            dues += of_account
            self._changes(account, sum(len(due.rows) for due in of_account))
            await trio.lowlevel.checkpoint()
        await self._take_steps(dues)

    async def _read(self, accounts: Sequence[OtcAccount], top: Mark) -> dict[OtcAccount, _MakerFunds]:
        """Read makers' funds at block `top`, and the unfilled amounts of their orders that this process runs.

        Args:
            accounts: (token, maker) pairs.
        """
        questions = [HoldingQuestion(asset, maker, self._rfq) for asset, maker in accounts]
        held, left = await both(
            lambda: holdings(self._chain, questions, top), lambda: self._left(accounts, top)
        )
        return {
            account: _MakerFunds(holding, left[account])
            for account, holding in zip(accounts, held.found, strict=True)
        }

    async def _left(
        self, accounts: Sequence[OtcAccount], top: Mark
    ) -> dict[OtcAccount, dict[bytes, int | None]]:
        """Read what is left of the orders of accounts: (token, maker) -> order hash -> raw units."""
        parts = [
            (account, hashes)
            for account in accounts
            for hashes in _sliced(list(self._of_account.get(account, ())))
        ]
        left: dict[OtcAccount, dict[bytes, int | None]] = {account: {} for account in accounts}

        async def read(some: Sequence[tuple[OtcAccount, Sequence[bytes]]]) -> None:
            calls = [EthCall(self._rfq, remaining_balances(account[1], hashes)) for account, hashes in some]
            answers = await self._chain.call_many(calls, top.hash)
            for (account, hashes), answer in zip(some, answers, strict=True):
                left[account] |= zip(hashes, _left_of(answer, len(hashes)), strict=True)

        slices = [parts[at : at + _CALLS_MAX] for at in range(0, len(parts), _CALLS_MAX)]
        await all_of(read, slices, _READS_MAX)
        return left

    async def _catch_up(self, left: Mapping[bytes, int | None]) -> None:
        """Recompute the row of each order whose unfilled amount differs from the RFQ contract's.

        The row is computed from the order's stored logs. The amounts also differ if the indexer has read a
        further block since the contract's answer; recomputing the row is harmless then.

        Args:
            left: order hash -> unfilled raw units that the contract reports; None if the contract has never
                seen the order.
        """
        for order_hash, amount in left.items():
            live = self._orders.get(order_hash)
            if live is None or live.row.status not in LIVE:
                continue
            row = live.row
            wanted = row.maker_amount if amount is None else amount.to_bytes(WORD_BYTES, "big")
            if wanted == row.remaining:
                continue
            with suppress(OrderNotFound):
                await self._orders.catch_up(order_hash, self._wall_ms(), self.is_short)

    async def _permitted(
        self, account: OtcAccount, rows: Sequence[OtcOrderRow], holding: Holding | None, top: Mark
    ) -> dict[bytes, int]:
        """Find the amounts that orders' permits grant, by calls to the token's contract at block `top`.

        Args:
            account: (token, maker).
            rows: open orders of the account; only permits of orders whose unfilled amount exceeds the
                allowance are tried.
            holding: the maker's balance and allowance; None if the token's contract returns no numbers.

        Returns:
            Order hash -> raw units that the order's permit grants, for the orders whose permits were needed.
        """
        if holding is None:
            return {}
        short = [row for row in rows if holding.allowance < amount_of(row.remaining)]
        now_s = self._wall_ms() // 1_000
        wanted: dict[bytes, bytes] = {}
        came_with = await self._permits(short)
        # The oldest first, as `standings` serves the orders: the bound below leaves out the newest permits,
        # which then count as 0.
        for row in sorted(short, key=lambda row: (row.created_ms, row.order_hash)):
            permit = came_with.get(row.order_hash)
            if permit and is_wanted(permit, amount_of(row.remaining), holding, now_s):
                wanted[row.order_hash] = permit
        permits = list(dict.fromkeys(wanted.values()))[:VENUE_FUNDS_ORDERS_MAX]
        if not permits:
            return {}
        answers = await self._chain.call_many(trial_calls(permits, account[0], self._rfq), top.hash)
        amounts = trial_results(permits, answers)
        return {order_hash: amounts.get(permit, 0) for order_hash, permit in wanted.items()}

    async def _permits(self, rows: Sequence[OtcOrderRow]) -> dict[bytes, bytes | None]:
        """Return orders' permits by order hash; permits of other processes' orders come from the store."""
        found: dict[bytes, bytes | None] = {}
        others: list[bytes] = []
        for row in rows:
            live = self._orders.get(row.order_hash)
            if live is None:
                others.append(row.order_hash)
            else:
                found[row.order_hash] = live.document.permit
        for at in range(0, len(others), IDS_MAX):
            (read,) = await self._store.read(among(OTC_DOCUMENT, "order_hash", others[at : at + IDS_MAX]))
            for values in read:
                document: OrderDocument = row_of(OTC_DOCUMENT, values)
                found[document.order_hash] = decode_document(document.body).permit
        return found

    # --- Steps ------------------------------------------------------------------------------------------

    def _due(
        self,
        account: OtcAccount,
        rows: Sequence[OtcOrderRow],
        holding: Holding | None,
        permitted: Mapping[bytes, int],
    ) -> list[_Due]:
        """Select the orders of this process whose status or balances do not match the maker's funds.

        Args:
            rows: all open orders of the account (token, maker), also those of other processes.
            permitted: order hash -> raw units that the order's permit grants.

        Returns:
            The orders in groups, each for one unit.
        """
        found = standings([backed(row, permitted.get(row.order_hash, 0)) for row in rows], holding)
        own = self._of_account.get(account, {})
        due = [
            row for row in rows if row.order_hash in own and stood(row, found[row.order_hash], 0) is not None
        ]
        return [
            _Due({row.order_hash: row for row in due[at : at + VENUE_FUNDS_ORDERS_MAX]}, found)
            for at in range(0, len(due), VENUE_FUNDS_ORDERS_MAX)
        ]

    async def _take_steps(self, dues: Sequence[_Due]) -> None:
        """Write the changes of accounts' orders, one unit for each item of `dues`.

        Raises:
            StoreUnavailable: some writes failed, or their outcome is unknown.
        """
        problems: list[StoreUnavailable] = []
        for at in range(0, len(dues), VENUE_FUNDS_ACCOUNTS_MAX):
            async with trio.open_nursery() as nursery:
                for due in dues[at : at + VENUE_FUNDS_ACCOUNTS_MAX]:
                    nursery.start_soon(self._step, due, problems)
        if problems:
            raise problems[0]

    async def _step(self, due: _Due, problems: list[StoreUnavailable]) -> None:
        """Write the changes of one account's orders in one unit; add a failed write to `problems`.

        An order that has changed meanwhile is skipped, since its change queues a new read.
        """

        def decide(row: OtcOrderRow) -> OrderStep[OtcOrderRow] | None:
            was = due.rows[row.order_hash]
            if (row.status, row.remaining) != (was.status, was.remaining):
                return None
            return stood(row, due.found[row.order_hash], self._wall_ms())

        try:
            rows = await self._orders.step_all(list(due.rows), decide)
        except StoreUnavailable as error:
            problems.append(error)
        except Exception as error:  # noqa: BLE001  one account's bug is not the others' end
            some = ", ".join(to_hex(order_hash) for order_hash in list(due.rows)[:3])
            _log.error("orders are stuck", orders=some, detail=repr(error), exc_info=True)
        else:
            for row in rows:
                was = due.rows[row.order_hash].status
                self._suspended += (was, row.status) == (OtcState.PENDING, OtcState.SUSPENDED)
                self._restored += (was, row.status) == (OtcState.SUSPENDED, OtcState.PENDING)


def _sliced(hashes: Sequence[bytes]) -> list[Sequence[bytes]]:
    return [hashes[at : at + VENUE_FUNDS_ORDERS_MAX] for at in range(0, len(hashes), VENUE_FUNDS_ORDERS_MAX)]


def _left_of(answer: bytes | Exception, count: int) -> list[int | None]:
    """Decode the RFQ contract's answer to a call of `getRemainingOrderBalance` for several orders.

    Args:
        count: number of orders named by the call.

    Returns:
        Unfilled raw units of each order, in the sequence of the call; None for an order that the contract has
            never seen.

    Raises:
        ChainError: the answer is an error or too short.
    """
    head = 2 * WORD_BYTES
    if isinstance(answer, Exception) or len(answer) < head + count * WORD_BYTES:
        raise ChainError("the RFQ contract has no unfilled amounts of orders")
    words = [
        int.from_bytes(answer[at : at + WORD_BYTES], "big") for at in range(head, len(answer), WORD_BYTES)
    ]
    return [word - 1 if word else None for word in words[:count]]
