"""Benchmarks of reading the funds of 20 OTC makers again, beside 5,000 orders of 500 makers or 500 of 50.

Each maker has ten orders. A measurement covers all that follows from transfer logs except the writing: read
balance, allowance and the orders' unfilled amounts from a chain that answers at once, read the makers' orders
from the store, and compare funds with orders. "Moved" writes too: each time, the fundable share of one order
of each maker has changed.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import trio

from bench.trio_thread import Visited, living_in_trio
from cambist.codecs.contracts.abi import WORD_BYTES, encode, uint_word, words_tail
from cambist.codecs.contracts.calldata import ALLOWANCE, BALANCE_OF
from cambist.codecs.messages.vocabulary import OtcState, OtcType
from cambist.config.settings import parse_settings
from cambist.crypto.keccak import keccak256
from cambist.engine.chain.index.ring import Mark
from cambist.engine.chain.index.watch import Watch
from cambist.engine.chain.port import At, EthCall, Header
from cambist.engine.host.process.clock import WallClock
from cambist.engine.store.leases import Leases
from cambist.engine.store.process.open_store import open_store
from cambist.engine.store.rows import NEVER_S, OtcOrderRow, amount32
from cambist.engine.trade.otc.document import OtcDocument
from cambist.engine.trade.otc.funds_watch import OtcAccount, OtcFundsWatch
from cambist.engine.trade.otc.live_orders import OtcOrders

FEW, MANY = 50, 500
EACH, TOUCHED, AMOUNT = 10, 20, 10**18
NOW_MS = 1_795_000_000_000
TOKEN, OTHER_TOKEN, RFQ, ANYBODY = b"\x70" * 20, b"\x71" * 20, b"\x0f" * 20, bytes(20)
TOP = Mark(100, b"\x99" * 32)
_DOCUMENT = OtcDocument(bytes(32), 0, b"\x51" * 65, None, amount32(0))


class _Chain:
    """Stand-in for a chain, which answers calls at once with the makers' balances and full allowances.

    Attributes:
        balance: balance of every maker, raw units; enough for all ten orders of the maker, or one unit less.
    """

    chain_id = 1

    def __init__(self) -> None:
        self.balance = EACH * AMOUNT

    async def block(self, at: At = None) -> Header:
        await trio.lowlevel.checkpoint()
        assert at == TOP.hash
        return Header(TOP.number, TOP.hash, bytes(32), NOW_MS // 1_000, 7)

    async def call_many(self, calls: Sequence[EthCall], _at: At = None) -> list[bytes]:
        await trio.lowlevel.checkpoint()
        return [self._answer(call.data) for call in calls]

    def _answer(self, data: bytes) -> bytes:
        if data[:4] == BALANCE_OF:
            return uint_word(self.balance)
        if data[:4] == ALLOWANCE:
            return uint_word(1 << 255)
        count = len(data[4:]) // WORD_BYTES - 3
        return encode(words_tail([bytes(WORD_BYTES)] * count))


class Ground:
    """Stored OTC orders of many makers, and the `OtcFundsWatch` over the makers' funds."""

    def __init__(self, chain: _Chain, orders: OtcOrders, funds: OtcFundsWatch) -> None:
        self.chain = chain
        self.orders = orders
        self._funds = funds
        self._accounts: list[OtcAccount] = [(TOKEN, _maker(number)) for number in range(TOUCHED)]

    async def look(self) -> int:
        """Read the funds of 20 makers and compare their orders; return the number of changed orders."""
        before = self.orders.statistics().steps
        await self._funds._look(self._accounts, TOP)
        return self.orders.statistics().steps - before

    async def move(self) -> int:
        """Change the makers' balances by a unit, then call `look`; return the number of changed orders."""
        self.chain.balance = EACH * AMOUNT - (self.chain.balance == EACH * AMOUNT)
        return await self.look()


def _maker(number: int) -> bytes:
    return (10_000 + number).to_bytes(20, "big")


def _order(number: int, maker: bytes) -> OtcOrderRow:
    order_hash, amount = keccak256(number.to_bytes(8, "big")), amount32(AMOUNT)
    return OtcOrderRow(
        order_hash, order_hash[0], 1, maker, ANYBODY, ANYBODY, TOKEN, OTHER_TOKEN, amount, amount,
        OtcType.LIMIT, NOW_MS + number, NEVER_S, 1, OtcState.PENDING, NOW_MS + number,
        amount, amount, amount, amount, None, False,
    )  # fmt: skip


@asynccontextmanager
async def _opened(makers: int) -> AsyncIterator[Ground]:
    now_ms = WallClock().now_ms
    with TemporaryDirectory() as folder:
        async with open_store(
            parse_settings('state_dir = "."', {}, Path(folder)), {}, Path(folder), now_ms, in_process=True
        ) as store:
            leases, chain, watch = Leases(store, "bench", life_s=60, now_ms=now_ms), _Chain(), Watch()
            orders = OtcOrders(store, leases)
            given: Any = chain
            funds = OtcFundsWatch(
                given, store, orders, watch, rfq=RFQ, read_to=lambda: TOP, wall_ms=lambda: NOW_MS
            )
            orders.watch(funds.watch_maker)
            async with trio.open_nursery() as nursery:
                await nursery.start(leases.run)
                for at in range(0, makers * EACH, 250):
                    async with trio.open_nursery() as submitting:
                        for number in range(at, at + 250):
                            submitting.start_soon(
                                orders.add, _order(number, _maker(number % makers)), _DOCUMENT
                            )
                yield Ground(chain, orders, funds)
                nursery.cancel_scope.cancel()


@pytest.fixture(scope="module")
def beside_few() -> Iterator[Visited[Ground]]:
    with living_in_trio(lambda: _opened(FEW)) as visited:
        yield visited


@pytest.fixture(scope="module")
def beside_many() -> Iterator[Visited[Ground]]:
    with living_in_trio(lambda: _opened(MANY)) as visited:
        yield visited


def bench_otc_funds_beside_5000(benchmark: Any, beside_many: Visited[Ground]) -> None:
    """Measure reading the funds of 20 of 500 makers when no order changes."""
    assert benchmark(beside_many.visit, Ground.look) == 0


def bench_otc_funds_beside_500(benchmark: Any, beside_few: Visited[Ground]) -> None:
    """Measure reading the funds of 20 of 50 makers when no order changes."""
    assert benchmark(beside_few.visit, Ground.look) == 0


def bench_otc_funds_moved_beside_5000(benchmark: Any, beside_many: Visited[Ground]) -> None:
    """Measure reading the funds of 20 of 500 makers when one order of each changes and is written."""
    assert benchmark(beside_many.visit, Ground.move) == TOUCHED


def bench_otc_funds_moved_beside_500(benchmark: Any, beside_few: Visited[Ground]) -> None:
    """Measure reading the funds of 20 of 50 makers when one order of each changes and is written."""
    assert benchmark(beside_few.visit, Ground.move) == TOUCHED
