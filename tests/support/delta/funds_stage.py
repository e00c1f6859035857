"""Readings of owners' funds, on a chain that counts its requests, with vaults that are played.

The chain knows balances, settlements and deposits.

chain = FundsChain()
chain.balances[WETH, ALICE] = 5
chain.grow()
"""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import trio

from cambist.codecs.contracts.abi import uint_word
from cambist.codecs.contracts.calldata import ALLOWANCE, BALANCE_OF
from cambist.codecs.contracts.delta_calldata import DEPOSITS, ORDER_STATE
from cambist.codecs.messages.vocabulary import OrderStatus
from cambist.config.errors import BlockGone, ChainError, NodeUnavailable, Reverted
from cambist.config.settings import parse_settings
from cambist.engine.chain.index.ring import Mark
from cambist.engine.chain.index.watch import Watch
from cambist.engine.chain.port import At, EthCall, Header
from cambist.engine.store.leases import Leases
from cambist.engine.store.process.open_store import open_store
from cambist.engine.store.rows import DeltaOrderRow
from cambist.engine.store.store import Store
from cambist.engine.trade.delta.orders.document import DeltaDocument
from cambist.engine.trade.delta.orders.funds import MissingFund
from cambist.engine.trade.delta.orders.live_orders import LiveOrder, LiveOrders
from cambist.engine.trade.delta.orders.terms import SettledOrder, terms_of
from cambist.engine.trade.delta.orders.vault import VaultWorth
from cambist.engine.trade.delta.settlement.funds_watch import FundsWatch
from support.delta.bidding import SIGNATURE, a_delta_order
from support.patience import until
from support.store.store_work import now_ms
from support.store.stores import NOW_MS
from support.store.stores import a_delta_order as a_row

CONTRACT = b"\xde" * 20
PLENTY = 10**30


class FundsChain:
    """A chain on which every account has and allows PLENTY of every token by default.

    Attributes:
        balances, allowances: (token, owner) -> raw units.
        deposits: owner -> wei; 0 by default.
        fills: order hash -> settled amount, or slices; used: orders whose nonce is used; others: orders whose
            nonce another order has begun to use.
        states: answer of the Delta contract to every question about an order or deposit, if it is set.
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
        self.used: set[bytes] = set()
        self.others: set[bytes] = set()
        self.states: bytes | Exception | None = None
        self.garbage: set[bytes] = set()
        self.refusing: set[bytes] = set()
        self.unreadable: set[bytes] = set()
        self.is_away = False
        self.questions: list[tuple[bytes, bytes]] = []
        self.batches: list[int] = []

    def grow(self, blocks: int = 1) -> None:
        """Make blocks."""
        self.number += blocks

    async def recent_block(self, age_s: float) -> Header:
        """The latest one."""
        header = await self.block()
        assert header is not None
        return header

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
        if self.states is not None:
            return self.states
        if name == DEPOSITS:
            return uint_word(self.deposits.get(words[0][12:], 0))
        assert name == ORDER_STATE
        order_hash = words[2]
        owner_of_nonce = uint_word(1) if order_hash in self.others else bytes(32)
        is_used = uint_word(int(order_hash in self.used))
        return owner_of_nonce + is_used + uint_word(self.fills.get(order_hash, 0))

    def _hash(self) -> bytes:
        return self.number.to_bytes(32, "big")


_S = OrderStatus


class PlayedVaults:
    """Reads of vaults that state what a test says.

    Attributes:
        worth: order hash -> statement of its vault; an order without one is missing in the answer.
        asked: hashes of the orders of each read.
    """

    def __init__(self) -> None:
        self.worth: dict[bytes, VaultWorth] = {}
        self.asked: list[list[bytes]] = []

    async def worths(self, orders: Iterable[LiveOrder], block_hash: bytes) -> dict[bytes, VaultWorth]:
        """As `VaultReads.worths`."""
        await trio.lowlevel.checkpoint()
        self.asked.append([live.order_hash for live in orders])
        return {key: self.worth[key] for key in self.asked[-1] if key in self.worth}


class Followed:
    """The chain, its vaults, the orders of a store, what is followed, and the watch over their funds.

    Attributes:
        revalued: orders whose vault has stated a first or another worth.
    """

    def __init__(self, store: Store, orders: LiveOrders, read_to: Callable[[], Mark | None]) -> None:
        self.chain, self.vaults, self.watch = FundsChain(), PlayedVaults(), Watch()
        self.revalued: list[LiveOrder] = []
        self.funds = FundsWatch(
            cast("Any", self.chain),
            orders,
            self.watch,
            delta=CONTRACT,
            vaults=cast("Any", self.vaults),
            revalued=self.revalued.append,
            read_to=read_to,
            wall_ms=lambda: NOW_MS,
        )
        self.store = store
        self.orders = orders

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
    """A watch of the funds of a store's orders that runs in a nursery; `height` as of `following`."""
    leases = Leases(store, "one", life_s=60, now_ms=now_ms)
    orders = LiveOrders(store, leases)

    def read_to() -> Mark | None:
        return None if height[-1] is None else Mark(height[-1], bytes(32))

    await nursery.start(leases.run)
    one = Followed(store, orders, read_to)
    orders.watch(one.funds.watch_owner)
    await nursery.start(one.funds.run)
    return one
