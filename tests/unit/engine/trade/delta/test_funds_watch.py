"""Readings of owners' funds: accounts, times and consequences, on a chain that counts its requests.

The chain knows balances, settlements and deposits.

chain = FundsChain()
chain.balances[WETH, ALICE] = 5
chain.grow()
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
import trio

from cambist.codecs.contracts.abi import uint_word
from cambist.codecs.contracts.calldata import ALLOWANCE, BALANCE_OF
from cambist.codecs.contracts.delta_calldata import DEPOSITS, ORDER_STATE
from cambist.codecs.messages.vocabulary import OrderStatus, OrderType
from cambist.codecs.trading_token import NATIVE_TOKEN
from cambist.config.errors import BlockGone, ChainError, NodeContradiction, NodeUnavailable, Reverted
from cambist.config.limits import VENUE_FUNDS_ACCOUNTS_MAX, VENUE_FUNDS_STEPS_FREE
from cambist.config.settings import parse_settings
from cambist.config.timeouts import FUNDS_STEP_REST_S
from cambist.engine.chain.index.ring import Mark
from cambist.engine.chain.index.watch import Watch
from cambist.engine.chain.port import At, EthCall, Header
from cambist.engine.store.leases import Leases
from cambist.engine.store.process.open_store import open_store
from cambist.engine.store.rows import DeltaOrderRow
from cambist.engine.store.store import Store
from cambist.engine.store.units import Done
from cambist.engine.trade.delta.orders.document import DeltaDocument
from cambist.engine.trade.delta.orders.funds import Fund, MissingFund
from cambist.engine.trade.delta.orders.life import SETTLE, cancel_asked
from cambist.engine.trade.delta.orders.live_orders import LiveOrder, LiveOrders
from cambist.engine.trade.delta.orders.terms import SettledOrder, terms_of
from cambist.engine.trade.delta.settlement.funds_watch import FundsWatch
from cambist.engine.trade.delta.settlement.vault_reads import VaultReads
from cambist.engine.trade.orders import accounts_watch, apart
from cambist.engine.trade.orders.order_units import DELTA, Intent, step
from cambist.engine.trade.orders.step import OrderStep
from support.delta.bidding import ALICE, ONE, SIGNATURE, WETH, a_delta_order, a_twap
from support.patience import until
from support.store.store_work import now_ms
from support.store.stores import BOB, NOW_MS
from support.store.stores import a_delta_order as a_row

CONTRACT = b"\xde" * 20
PLENTY = 10**30


class FundsChain:
    """A chain on which every account has and allows PLENTY of every token by default.

    Attributes:
        balances, allowances: (token, owner) -> raw units.
        deposits: owner -> wei; 0 by default.
        fills: order hash -> settled amount, or slices.
        garbage: tokens that answer nothing; refusing: those that revert.
        unreadable: owners; the node answers no batch with a balance of theirs.
        is_away: the node does not answer.
        questions: (token, owner) of each balance that was asked for, in order.
        batches: calls of each batch.
    """

    chain_id = 1

    def __init__(self) -> None:
        self.number = 1
        self.balances: dict[tuple[bytes, bytes], int] = {}
        self.allowances: dict[tuple[bytes, bytes], int] = {}
        self.deposits: dict[bytes, int] = {}
        self.fills: dict[bytes, int] = {}
        self.garbage: set[bytes] = set()
        self.refusing: set[bytes] = set()
        self.unreadable: set[bytes] = set()
        self.is_away = False
        self.questions: list[tuple[bytes, bytes]] = []
        self.batches: list[int] = []

    def grow(self, blocks: int = 1) -> None:
        """Make blocks."""
        self.number += blocks

    async def block(self, at: At = None) -> Header | None:
        """The latest one."""
        if self.is_away:
            raise NodeUnavailable("nobody answers")
        assert at is None or at == self._hash()
        return Header(self.number, self._hash(), bytes(32), self.number, 7)

    async def call_many(
        self, calls: Sequence[EthCall], at: At = None, time_s: int | None = None
    ) -> list[bytes | Exception]:
        """At the latest block alone."""
        if self.is_away:
            raise NodeUnavailable("nobody answers")
        if at != self._hash():
            raise BlockGone("only the latest block is known")
        self.batches.append(len(calls))
        if any(call.data[:4] == BALANCE_OF and call.data[16:36] in self.unreadable for call in calls):
            raise ChainError("out of gas")
        return [self._answer(call) for call in calls]

    def _answer(self, call: EthCall) -> bytes | Exception:
        if call.to in self.garbage:
            return b"\x01"
        if call.to in self.refusing:
            return Reverted("no")
        name, words = call.data[:4], [call.data[at : at + 32] for at in range(4, len(call.data), 32)]
        if name == BALANCE_OF:
            self.questions.append((call.to, words[0][12:]))
            return uint_word(self.balances.get((call.to, words[0][12:]), PLENTY))
        if name == ALLOWANCE:
            assert words[1][12:] == CONTRACT
            return uint_word(self.allowances.get((call.to, words[0][12:]), PLENTY))
        assert call.to == CONTRACT
        if name == DEPOSITS:
            return uint_word(self.deposits.get(words[0][12:], 0))
        assert name == ORDER_STATE
        return bytes(64) + uint_word(self.fills.get(words[2], 0))

    def _hash(self) -> bytes:
        return self.number.to_bytes(32, "big")


OWNERS, EACH = 2_500, 2
_S = OrderStatus


class Followed:
    """The chain, the orders of a store, what is followed, and the watch over their funds."""

    def __init__(
        self, store: Store, chain: FundsChain, orders: LiveOrders, watch: Watch, funds: FundsWatch
    ) -> None:
        self.store = store
        self.chain = chain
        self.orders = orders
        self.watch = watch
        self.funds = funds

    async def submit(
        self, number: int, order: SettledOrder | None = None, status: OrderStatus = _S.PENDING, **row: Any
    ) -> DeltaOrderRow:
        """Keep an order, by default a sale of one WETH by Alice."""
        order = a_delta_order(nonce=number) if order is None else order
        kept = a_row(number, owner=order.owner, status=status, **row)
        return await self.orders.add(kept, DeltaDocument("Order", b"", SIGNATURE), order, terms_of(order))

    def lacks(self, row: DeltaOrderRow) -> tuple[MissingFund, ...]:
        """As it was read last."""
        return self.funds.lacks(row.order_hash)

    def live(self, row: DeltaOrderRow) -> LiveOrder:
        """The order in memory."""
        found = self.orders.get(row.order_hash)
        assert found is not None
        return found

    async def becomes(self, row: DeltaOrderRow, status: OrderStatus) -> LiveOrder:
        """The order once it has that status."""
        await until(lambda: self.live(row).row.status is status)
        return self.live(row)

    def tell(self, *more: tuple[bytes, bytes]) -> None:
        """Report changed accounts, as an indexer does after its next block."""
        self.watch.begin_step()
        self.funds.touched(1, self.watch.fresh() | set(more))

    async def is_read(self) -> None:
        """Wait until nothing is left to be read."""
        await until(lambda: self.funds.statistics().waiting == 0)
        before = self.funds.statistics().read
        await self.settled()
        assert self.funds.statistics().read >= before

    async def settled(self) -> None:
        """Let every task run that can."""
        for _ in range(50):
            await trio.lowlevel.checkpoint()


@asynccontextmanager
async def following(folder: Path, *, height: Sequence[int | None] = (1,)) -> AsyncIterator[Followed]:
    """A running watch of funds.

    Args:
        height: the last number is the block that the chain is read to; None before the first block.
    """
    settings = parse_settings('state_dir = "."', {}, folder)
    async with (
        open_store(settings, {}, folder, now_ms, in_process=True) as store,
        trio.open_nursery() as nursery,
    ):
        yield await opened(store, nursery, height)
        nursery.cancel_scope.cancel()


async def opened(store: Store, nursery: trio.Nursery, height: Sequence[int | None] = (1,)) -> Followed:
    leases = Leases(store, "one", life_s=60, now_ms=now_ms)
    orders, watch, chain = LiveOrders(store, leases), Watch(), FundsChain()

    def read_to() -> Mark | None:
        return None if height[-1] is None else Mark(height[-1], bytes(32))

    await nursery.start(leases.run)
    reads = VaultReads(cast("Any", chain), delta=CONTRACT, relayer=bytes(20), gas_max=1)
    funds = FundsWatch(
        cast("Any", chain),
        orders,
        watch,
        delta=CONTRACT,
        vaults=reads,
        revalued=lambda _: None,
        read_to=read_to,
        wall_ms=lambda: NOW_MS,
    )
    orders.watch(funds.watch_owner)
    await nursery.start(funds.run)
    return Followed(store, chain, orders, watch, funds)


async def test_orders_of_thousands_of_owners_cost_a_read_for_each_account_that_is_touched(
    tmp_path: Path,
) -> None:
    owners = [number.to_bytes(20, "big") for number in range(1, OWNERS + 1)]
    async with following(tmp_path) as one:
        async with trio.open_nursery() as nursery:
            for number in range(EACH * OWNERS):
                order = a_delta_order(nonce=number, owner=owners[number % OWNERS])
                nursery.start_soon(one.submit, number, order)
        one.tell()
        await until(lambda: one.funds.statistics().read == OWNERS)
        assert len(one.chain.questions) == len(set(one.chain.questions)) == OWNERS
        assert max(one.chain.batches) == 2 * VENUE_FUNDS_ACCOUNTS_MAX
        assert len(one.chain.batches) <= 2 * OWNERS / VENUE_FUNDS_ACCOUNTS_MAX
        told = one.funds.statistics()
        assert (told.orders, told.accounts, told.waiting) == (EACH * OWNERS, OWNERS, 0)
        one.chain.questions.clear()
        one.chain.grow(20)
        one.tell()
        await one.settled()
        assert one.chain.questions == [], "blocks that touch nobody are no cause to ask"
        touched = {(WETH, owner) for owner in owners[:2]}
        for pair in touched:
            one.chain.balances[pair] = 0
        one.tell(*touched, (WETH, b"\xee" * 20))
        await until(lambda: one.funds.statistics().suspended == 2 * EACH)
        assert set(one.chain.questions) == touched
        assert one.orders.statistics().orders == {
            _S.PENDING: EACH * (OWNERS - 2),
            _S.SUSPENDED: 2 * EACH,
        }
        for pair in touched:
            one.chain.balances[pair] = ONE
        one.tell(*touched)
        await until(lambda: one.orders.statistics().orders == {_S.PENDING: EACH * OWNERS})
        assert one.funds.statistics().restored == 2 * EACH


async def test_an_order_is_held_against_what_is_settled_of_it_at_that_block(tmp_path: Path) -> None:
    async with following(tmp_path) as one:
        row = await one.submit(1)
        one.tell()
        await one.is_read()
        one.chain.fills[row.order_hash] = ONE // 2
        one.chain.balances[WETH, ALICE] = ONE // 2
        one.tell((WETH, ALICE))
        await one.is_read()
        assert one.live(row).filled == 0, "the fill is not read yet"
        assert one.live(row).row == row
        one.chain.balances[WETH, ALICE] -= 1
        one.tell((WETH, ALICE))
        await one.becomes(row, _S.SUSPENDED)
        assert one.lacks(row) == (MissingFund(Fund.BALANCE, ONE // 2, ONE // 2 - 1),)


async def test_a_twap_goes_by_the_slices_that_are_settled(tmp_path: Path) -> None:
    async with following(tmp_path) as one:
        twap = msgspec.structs.replace(a_twap(), total_src_amount=10)
        row = await one.submit(1, twap, _S.PENDING, type=OrderType.LIMIT)
        one.chain.balances[WETH, ALICE] = 3
        one.chain.allowances[WETH, ALICE] = 9
        one.tell()
        live = await one.becomes(row, _S.SUSPENDED)
        assert one.lacks(row) == (MissingFund(Fund.ALLOWANCE, 10, 9),)
        one.chain.fills[row.order_hash] = 1
        live.filled = 1
        one.funds.watch_owner(live)
        await one.becomes(row, _S.ACTIVE)
        live.filled = one.chain.fills[row.order_hash] = 2
        one.funds.watch_owner(live)
        await one.becomes(row, _S.SUSPENDED)
        assert one.lacks(row) == (MissingFund(Fund.BALANCE, 4, 3),)


async def test_nobody_is_suspended_for_a_node_that_is_away_or_behind(tmp_path: Path) -> None:
    height: list[int | None] = [None]
    async with following(tmp_path, height=height) as one:
        row = await one.submit(1)
        one.chain.balances[WETH, ALICE] = 0
        one.tell()
        await one.settled()
        assert one.funds.statistics().waiting == 1
        assert one.chain.batches == [], "the chain is not read to its head yet"
        height.append(2)
        failed = one.funds.statistics().failed
        await until(lambda: one.funds.statistics().failed > failed)
        assert one.live(row).row.status is _S.PENDING
        one.chain.is_away = True
        one.chain.grow()
        failed = one.funds.statistics().failed
        await until(lambda: one.funds.statistics().failed > failed)
        assert one.live(row).row.status is _S.PENDING
        one.chain.is_away = False
        await one.becomes(row, _S.SUSPENDED)


async def test_a_settlement_under_way_keeps_an_order_as_it_is_and_its_end_has_it_looked_at(
    tmp_path: Path,
) -> None:
    async with following(tmp_path) as one:
        row = await one.submit(1)
        one.tell()
        await one.is_read()
        won = OrderStep(step(row, NOW_MS, status=_S.ACTIVE), (Intent(SETTLE, b""),))
        await one.orders.step(row.order_hash, lambda _: won)
        one.chain.balances[WETH, ALICE] = 0
        one.tell((WETH, ALICE))
        await one.is_read()
        live = one.live(row)
        assert (live.row.status, bool(one.lacks(row))) == (_S.ACTIVE, True)
        live.settling = None
        one.funds.watch_owner(live)
        await one.becomes(row, _S.SUSPENDED)


async def test_a_settlement_that_begins_after_the_read_comes_before_a_suspension(tmp_path: Path) -> None:
    async with following(tmp_path) as one:
        row = await one.submit(1)
        won = step(row, NOW_MS, status=_S.ACTIVE)
        unseen = DELTA.advanced(row, won, effects=(Intent(SETTLE, b""),))
        assert await one.store.write(unseen) == Done()
        one.chain.balances[WETH, ALICE] = 0
        one.tell()
        await until(lambda: one.live(row).settling is not None)
        await one.settled()
        assert one.live(row).row == won
        assert one.funds.statistics().suspended == 0


async def test_each_deposit_is_of_one_order(tmp_path: Path) -> None:
    async with following(tmp_path) as one:
        rows = [
            await one.submit(number, a_delta_order(src_token=NATIVE_TOKEN, nonce=number)) for number in (1, 2)
        ]
        for row in rows:
            await one.becomes(row, _S.SUSPENDED)
            assert one.lacks(row) == (MissingFund(Fund.DEPOSIT, ONE, 0),)
        one.watch.begin_step()
        assert one.watch.fresh() == {(CONTRACT, ALICE)}
        one.chain.deposits[ALICE] = ONE
        one.tell((CONTRACT, ALICE), (CONTRACT, b"\xee" * 20))
        for row in rows:
            await one.becomes(row, _S.PENDING)


@pytest.mark.parametrize("fault", ["garbage", "refusing"])
async def test_a_token_that_does_not_tell_has_nothing(tmp_path: Path, fault: str) -> None:
    async with following(tmp_path) as one:
        getattr(one.chain, fault).add(WETH)
        row = await one.submit(1)
        one.tell()
        await one.becomes(row, _S.SUSPENDED)
        assert one.lacks(row) == (MissingFund(Fund.BALANCE, ONE, None),)


async def test_an_order_that_waits_for_its_signature_is_read_and_keeps_its_status(tmp_path: Path) -> None:
    async with following(tmp_path) as one:
        row = await one.submit(1, status=_S.AWAITING_SIGNATURE)
        one.chain.balances[WETH, ALICE] = 0
        one.tell()
        await until(lambda: bool(one.lacks(row)))
        assert one.live(row).row == row
        await one.orders.step(row.order_hash, lambda row: OrderStep(step(row, NOW_MS, status=_S.PENDING)))
        await one.becomes(row, _S.SUSPENDED)


async def test_whose_order_has_ended_is_not_followed_any_more(tmp_path: Path) -> None:
    async with following(tmp_path) as one:
        rows = [await one.submit(number) for number in (1, 2)]
        await one.submit(3, a_delta_order(owner=BOB))
        assert (len(one.watch), one.funds.statistics().accounts) == (2, 2)
        for left, row in zip((2, 1), rows, strict=True):
            await one.orders.step(row.order_hash, lambda row: cancel_asked(row, NOW_MS))
            assert (len(one.watch), one.funds.statistics().accounts) == (left, left)


async def test_whose_funds_cannot_be_read_keeps_nobody_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (accounts_watch, apart):
        monkeypatch.setattr(module, "FUNDS_PAUSE_S", 600.0)
    async with following(tmp_path) as one:
        strangers = [bytes([0xBB, number]) * 10 for number in range(20)]
        for number, owner in enumerate(strangers):
            await one.submit(100 + number, a_delta_order(nonce=100 + number, owner=owner))
        row = await one.submit(1)
        one.chain.unreadable.update(strangers)
        one.chain.balances[WETH, ALICE] = 0
        one.tell()
        await one.becomes(row, _S.SUSPENDED)
        await until(lambda: one.funds.statistics().apart == len(strangers))
        asked = len(one.chain.batches)
        one.chain.balances[WETH, ALICE] = ONE
        one.tell((WETH, ALICE), *((WETH, owner) for owner in strangers))
        await one.becomes(row, _S.PENDING)
        assert len(one.chain.batches) == asked + 2, "who rests is not asked about with others"
        assert one.orders.statistics().orders == {_S.PENDING: 21}


async def test_an_account_that_cannot_be_read_is_read_again_by_and_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apart, "FUNDS_PAUSE_S", 0.02)
    async with following(tmp_path) as one:
        row = await one.submit(1)
        one.chain.unreadable.add(ALICE)
        one.chain.balances[WETH, ALICE] = 0
        one.tell()
        await until(lambda: one.funds.statistics().failed >= 3)
        assert one.live(row).row.status is _S.PENDING
        one.chain.unreadable.clear()
        await one.becomes(row, _S.SUSPENDED)
        await until(lambda: one.funds.statistics().apart == 0)
        one.chain.unreadable.add(ALICE)
        one.tell((WETH, ALICE))
        await until(lambda: one.funds.statistics().apart == 1)
        await one.orders.step(row.order_hash, lambda row: cancel_asked(row, NOW_MS))
        assert one.funds.statistics().apart == 0


async def test_a_settlement_that_failed_does_not_wait_for_what_nobody_can_read(tmp_path: Path) -> None:
    async with following(tmp_path) as one:
        live = one.live(await one.submit(1))
        one.chain.unreadable.add(ALICE)
        assert not await one.funds.are_lacking(live, 1)
        one.chain.is_away = True
        with pytest.raises(NodeUnavailable):
            await one.funds.are_lacking(live, 1)
        one.chain.is_away = False
        one.chain.unreadable.clear()
        one.chain.balances[WETH, ALICE] = 0
        assert await one.funds.are_lacking(live, 1)
        assert one.lacks(live.row) == (MissingFund(Fund.BALANCE, ONE, 0),)
        with pytest.raises(NodeContradiction, match="at block 1, below 2"):
            await one.funds.are_lacking(live, 2)


class Counted(frozenset[tuple[bytes, bytes]]):
    """Pairs that note how many of them are looked at between two turns of others.

    Attributes:
        most: of them, so far.
        lately: since the last turn.
    """

    most = lately = 0

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        for pair in super().__iter__():
            self.lately += 1
            self.most = max(self.most, self.lately)
            yield pair


async def test_others_have_their_turn_while_very_many_accounts_are_touched(tmp_path: Path) -> None:
    async with following(tmp_path) as one:
        row = await one.submit(1)
        one.chain.balances[WETH, ALICE] = 0
        owners = [number.to_bytes(20, "big") for number in range(1, 10_001)]
        pairs = Counted((WETH, owner) for owner in (*owners, ALICE))
        one.funds.touched(1, pairs)
        assert pairs.most == 0
        while one.live(row).row.status is not _S.SUSPENDED:
            await trio.lowlevel.checkpoint()
            pairs.lately = 0
        assert 0 < pairs.most <= 1_000


async def test_a_token_without_events_is_found_by_the_slow_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accounts_watch, "FUNDS_SLICE_S", 0.01)
    monkeypatch.setattr(accounts_watch, "FUNDS_RECHECK_S", 0.03)
    async with following(tmp_path) as one:
        rows = [
            await one.submit(number, a_delta_order(nonce=number, owner=bytes([number]) * 20))
            for number in range(1, 11)
        ]
        for row in rows:
            one.chain.balances[WETH, row.owner] = 0
        for row in rows:
            await one.becomes(row, _S.SUSPENDED)


async def test_an_owner_of_many_orders_who_moves_funds_has_them_read_again_after_a_rest(
    tmp_path: Path, autojump_clock: object
) -> None:
    many, owner, other = VENUE_FUNDS_STEPS_FREE + 10, b"\x01" * 20, b"\x02" * 20
    async with following(tmp_path) as one:
        rows = [
            await one.submit(number, a_delta_order(nonce=number, owner=owner))
            for number in range(1, many + 1)
        ]
        last = await one.submit(many + 1, a_delta_order(nonce=many + 1, owner=other))
        one.tell()
        await one.is_read()
        pairs = {(WETH, owner), (WETH, other)}
        began = trio.current_time()
        one.chain.balances |= dict.fromkeys(pairs, 0)
        one.tell(*pairs)
        await until(lambda: one.funds.statistics().suspended == many + 1)
        one.chain.balances |= dict.fromkeys(pairs, ONE)
        one.tell(*pairs)
        await one.becomes(last, _S.PENDING)
        told = one.funds.statistics()
        assert (told.restored, told.apart) == (1, 1), "who has few orders does not wait"
        await one.becomes(rows[0], _S.PENDING)
        assert trio.current_time() >= began + many * FUNDS_STEP_REST_S
        await until(lambda: one.funds.statistics().restored == many + 1)
