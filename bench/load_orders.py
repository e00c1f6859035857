"""Load test of a venue's memory: thousands of limit and market orders leave nothing behind in its process.

    warm     a few swaps                                      growth counts from here on
    rest     limit orders come in over HTTP, and rest         half have a limit that the books will reach
    swaps    market orders, wave after wave, are filled on the embedded chain beside them
    crossed  the books reach half of the resting orders:      an agent fills them
    ended    owners cancel the other orders                   all orders become final

RATE books change per second throughout. After each part, and after each wave, the bench samples memory,
tasks, timers, and entries of the price index and of the followed funds. Venue, agent, chain and submitter
share a process and a trio loop; the store has its own process.
`python -m bench.load_orders [count]` prints the table.
"""

import gc
import itertools
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

import msgspec
import trio
from rich.console import Console
from rich.table import Table

from bench.delta_ground import Deployed
from bench.delta_work import CHAIN_ID, OWNERS, Orders, Signed, owner_key
from bench.load_swaps import PATIENCE_S, opened, submit_all
from bench.loop_passes import LoopPasses, Spread
from cambist.codecs.contracts.abi import decode_uint
from cambist.codecs.contracts.calldata import balance_of
from cambist.codecs.http1 import Http1Limits
from cambist.codecs.messages.maker_messages import PriceGrid
from cambist.crypto.eip712 import signing_digest
from cambist.crypto.hexadecimal import to_hex
from cambist.crypto.signatures import to_compact64
from cambist.engine.chain.port import EthCall
from cambist.engine.dev.embedded.embedded import EmbeddedChain
from cambist.engine.roles.venue.app import VenueApp
from cambist.engine.store.follower import START, EventFollower
from cambist.engine.trade.delta.building.build import delta_domains
from cambist.engine.trade.delta.intake.cancellation import cancellation_hash
from cambist.engine.trade.orders.order_units import order_id
from cambist.feeds.books.book import build_book
from cambist.feeds.books.pair_index import LiveBook
from cambist.feeds.transport.http_client import HttpClient

COUNT = 10_000
WAVES = 10
RATE = 100  # books a second
MAKERS, LEVELS = 5, 20
WARM_PARTS = 50  # a warm-up has such a part of all orders
LIMIT, FAR_LIMIT = 25 * 10**6, 40 * 10**6  # USDC for the hundredth of a WETH that is sold
PRICE, CROSSED_PRICE = 2_300, 3_000
PATIENCE_EACH_S = 0.2
_LOOK_S = 0.02
_WIDTH = 130
_TASKS_MORE = 3  # than after the warm-up
_JSON = (b"content-type", b"application/json")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """Memory, tasks and orders of the venue's process at one moment.

    Attributes:
        filled: number of orders settled so far.
        orders: number of orders in memory, with ended ones that a reorganisation may reopen.
        entries: entries of the timers' heaps, dead ones included.
        resting, pairs: orders and pairs of the price index.
        funds, accounts: orders and accounts whose funds are followed.
        busy: sum of settlements under way, open rounds, and due orders.
        lag_ms: 99.9th percentile of the CPU of the loop's passes since the previous sample, without the EVM.
    """

    part: str
    at_s: float
    filled: int
    rss_mb: float
    tasks: int
    orders: int
    timers: int
    entries: int
    resting: int
    pairs: int
    funds: int
    accounts: int
    busy: int
    lag_ms: float
    lag_ms_max: float


class OrderLoad:
    """A run of thousands of limit and market orders through a venue, with samples of its memory.

    Args:
        app, world, port: see `load_swaps.opened`.
        count: number of orders, including the warm-up's.

    Attributes:
        samples: one per part and wave, in order.
        passes: the loop's passes since the warm-up.
        tasks_max: maximum number of tasks alive at once.
    """

    def __init__(self, app: VenueApp, world: Deployed, port: int, count: int) -> None:
        self.app, self.world, self.port = app, world, port
        self.samples: list[Sample] = []
        self.tasks_max = 0
        self.passes = LoopPasses()
        self._chain = app.delta.chains[CHAIN_ID]
        self._completed: set[bytes] = set()
        self._price = PRICE
        self._began = time.perf_counter()
        orders = Orders(world.ground)
        self._warm = [orders.signed(number) for number in range(max(count // WARM_PARTS, 10))]
        numbers = range(len(self._warm), count)
        half = len(numbers) // 2
        self._limits = [
            orders.signed(number, least=FAR_LIMIT if number % 2 else LIMIT) for number in numbers[:half]
        ]
        self._swaps = [orders.signed(number) for number in numbers[half:]]
        self._bodies = {
            **{signed.order_hash: orders.body(signed) for signed in (*self._warm, *self._swaps)},
            **{signed.order_hash: orders.body(signed, type="LIMIT") for signed in self._limits},
        }

    async def run(self, waves: int) -> None:
        """Run all parts of the test; raise AssertionError if an order does not reach its expected state.

        Args:
            waves: number of waves of market orders.
        """
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._follow)
            nursery.start_soon(self._watch_tasks)
            nursery.start_soon(self._change_books)
            await self._fill(self._warm)
            await self._is_still()
            gc.collect()
            gc.freeze()
            with self.passes.counted():
                self._look("warm")
                await self._rest()
                for at in range(waves):
                    await self._fill(self._swaps[at::waves])
                    await self._is_still()
                    self._look(f"swaps {at + 1}")
                await self._cross()
                await self._end()
            nursery.cancel_scope.cancel()

    # --- Parts ------------------------------------------------------------------------------------------

    async def _fill(self, swaps: Sequence[Signed]) -> None:
        await self._submit(swaps)
        hashes = {signed.order_hash for signed in swaps}
        await self._until(lambda: hashes <= self._completed)

    async def _rest(self) -> None:
        await self._submit(self._limits)
        await self._until(lambda: self._chain.prices.statistics().orders == len(self._limits))
        await self._is_still()
        looks = self._chain.prices.statistics().looks
        self._look("rest")
        await self._until(lambda: self._chain.prices.statistics().looks > looks + 20)

    async def _cross(self) -> None:
        """Change the books so that they reach every second limit order, and wait until these are filled."""
        assert self._chain.prices.statistics().offered == 0, "an order out of reach was auctioned"
        self._price = CROSSED_PRICE
        reached = {signed.order_hash for signed in self._limits if signed.order.dest_amount == LIMIT}
        await self._until(lambda: reached <= self._completed)
        await self._is_still()
        self._look("crossed")
        assert self._chain.prices.statistics().orders == len(self._limits) - len(reached)

    async def _end(self) -> None:
        """Cancel the limit orders that are not filled; mine blocks until all orders are final."""
        rest = sorted((signed for signed in self._limits if signed.order.dest_amount != LIMIT), key=_owner)
        served = self.app.chains[CHAIN_ID]
        domain = delta_domains(self.app.chains)[CHAIN_ID]
        async with HttpClient("127.0.0.1", self.port, connections_max=1, limits=Http1Limits()) as client:
            for _, of_owner in itertools.groupby(rest, _owner):
                orders = list(of_owner)
                ids = [str(order_id(signed.order_hash)) for signed in orders]
                key = owner_key(orders[0].order.nonce % OWNERS)
                digest32 = signing_digest(domain.separator, cancellation_hash(ids))
                signature = to_hex(to_compact64(*key.sign(digest32)))
                body = msgspec.json.encode({"orderIds": ids, "signature": signature})
                answer = await client.request(
                    b"POST", b"/v2/delta/orders/cancel", [_JSON], body, deadline_s=PATIENCE_S
                )
                assert answer.status == 200, answer.body
        chain = served.chain
        assert isinstance(chain, EmbeddedChain)
        with trio.fail_after(PATIENCE_S):
            while len(self.app.delta.orders):
                await chain.mine()
                await trio.sleep(_LOOK_S)
        await self._is_still()
        await self._check(chain)
        gc.collect()
        self._look("ended")

    async def _check(self, chain: EmbeddedChain) -> None:
        """Check that each owner has received exactly what its filled orders promise."""
        filled = [
            *self._warm,
            *self._swaps,
            *(signed for signed in self._limits if signed.order.dest_amount == LIMIT),
        ]
        assert self._completed == {signed.order_hash for signed in filled}
        bought = Counter(signed.order.owner for signed in filled)
        answers = await chain.call_many([EthCall(self.world.usdc, balance_of(owner)) for owner in bought])
        for (owner, count), answer in zip(bought.items(), answers, strict=True):
            assert isinstance(answer, bytes), answer
            assert decode_uint(answer) == count * LIMIT, to_hex(owner)

    # --- Beside them ------------------------------------------------------------------------------------

    async def _follow(self) -> None:
        async for _, event in EventFollower(self.app.delta.store, START):
            if event.status == "COMPLETED":
                self._completed.add(event.order_hash)

    async def _change_books(self) -> None:
        """Replace one maker's book after another, RATE per second, without end."""
        numbers, index = random.Random(7), self.app.chains[CHAIN_ID].index
        for at in itertools.count():
            best = self._price - numbers.random()
            bids = [(f"{best - level:.2f}", f"{numbers.random() + 1:.3f}") for level in range(LEVELS)]
            asks = [(f"{best + 5 + level:.2f}", "1") for level in range(LEVELS)]
            book = build_book(PriceGrid(tuple(bids), tuple(asks)), 18, 6)
            index.put(
                LiveBook(f"maker{at % MAKERS}", self.world.weth, self.world.usdc, book, Decimal(1_000_000))
            )
            await trio.sleep(1 / RATE)

    async def _watch_tasks(self) -> None:
        while True:
            await trio.sleep(_LOOK_S)
            self.tasks_max = max(self.tasks_max, trio.lowlevel.current_statistics().tasks_living)

    async def _submit(self, orders: Sequence[Signed]) -> None:
        waiting = [(signed.order_hash, self._bodies[signed.order_hash]) for signed in orders]
        await submit_all(self.port, waiting, {})

    async def _until(self, holds: Callable[[], bool]) -> None:
        with trio.fail_after(PATIENCE_S + PATIENCE_EACH_S * len(self._bodies)):
            while not holds():  # noqa: ASYNC110 - of many things, none of which tells
                await trio.sleep(_LOOK_S)

    async def _is_still(self) -> None:
        """Wait until all orders but resting limit orders have ended, and all connections are closed."""

        def is_still() -> bool:
            now = self._sample("")
            callers = self.app.server.statistics().connections
            return not now.busy and not callers and now.orders == now.resting

        await self._until(is_still)
        with suppress(trio.TooSlowError):  # `check_flat` judges the tasks that stay
            await self._until(lambda: not self._has_more_tasks())

    def _has_more_tasks(self) -> bool:
        """Whether more tasks are alive than `check_flat` accepts; False during the warm-up."""
        tasks = trio.lowlevel.current_statistics().tasks_living
        return bool(self.samples) and tasks > self.samples[0].tasks + _TASKS_MORE

    # --- Looks ------------------------------------------------------------------------------------------

    def _look(self, part: str) -> None:
        self.samples.append(self._sample(part))
        self.passes.lately = Spread()

    def _sample(self, part: str) -> Sample:
        timers, prices = self.app.delta.scheduler.statistics(), self._chain.prices.statistics()
        funds, auctions = self._chain.funds.statistics(), self._chain.auctioneer.statistics()
        return Sample(
            part=part,
            at_s=time.perf_counter() - self._began,
            filled=len(self._completed),
            rss_mb=_rss_mb(),
            tasks=trio.lowlevel.current_statistics().tasks_living,
            orders=len(self.app.delta.orders),
            timers=timers.waiting,
            entries=timers.entries,
            resting=prices.orders,
            pairs=prices.pairs,
            funds=funds.orders,
            accounts=funds.accounts,
            lag_ms=self.passes.lately.at_ms(0.999),
            lag_ms_max=self.passes.lately.at_ms(1.0),
            busy=self._chain.settling.statistics().under_way + auctions.open_rounds + auctions.ready,
        )


def _owner(signed: Signed) -> bytes:
    return signed.order.owner


def _rss_mb() -> float:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE_BYTES / 1e6


async def orders(count: int, waves: int = WAVES) -> OrderLoad:
    """Run the load test of thousands of orders on a chain and a store of its own.

    Raises:
        AssertionError: an order did not reach its expected state, or a sampled number grew.
    """
    with tempfile.TemporaryDirectory(prefix="cambist-bench-") as folder:
        async with opened(Path(folder), count) as (app, world, port):
            load = OrderLoad(app, world, port, count)
            try:
                await load.run(waves)
            finally:
                gc.unfreeze()
    check_flat(load.samples)
    return load


def check_flat(samples: Sequence[Sample]) -> None:
    """Check that no sampled number has grown since the parts `warm` and `rest`; else raise AssertionError."""
    warm, rest, *waves, crossed, ended = samples
    assert rest.resting == rest.orders == rest.funds > 0, rest
    assert rest.timers == warm.timers + rest.resting, (warm, rest)
    for wave in waves:
        assert (wave.orders, wave.resting, wave.funds, wave.pairs) == (
            rest.orders, rest.resting, rest.funds, rest.pairs,
        ), wave  # fmt: skip
        assert (wave.timers, wave.accounts) == (rest.timers, rest.accounts), wave
    assert crossed.timers == warm.timers + crossed.resting, crossed
    assert 0 < crossed.resting < rest.resting, crossed
    for sample in (rest, *waves, crossed, ended):
        assert sample.tasks <= warm.tasks + _TASKS_MORE, (warm, sample)
        assert sample.entries <= 3 * max(each.timers for each in samples) + 2 * rest.resting + 100, sample
    assert (ended.orders, ended.resting, ended.pairs, ended.funds, ended.accounts) == (0, 0, 0, 0, 0), ended
    assert ended.timers == warm.timers, ended


def table(samples: Sequence[Sample]) -> Table:
    """Make a table of the samples of the venue's memory, tasks and orders."""
    shown = Table(
        "after",
        "s",
        "filled",
        "RSS MB",
        "tasks",
        "orders",
        "timers",
        "entries",
        "resting",
        "funds",
        "lag ms",
        "most",
        box=None,
    )
    for sample in samples:
        shown.add_row(
            sample.part, f"{sample.at_s:.0f}", f"{sample.filled:,}", f"{sample.rss_mb:.0f}",
            f"{sample.tasks}", f"{sample.orders:,}", f"{sample.timers:,}", f"{sample.entries:,}",
            f"{sample.resting:,}", f"{sample.funds:,}", f"{sample.lag_ms:.1f}", f"{sample.lag_ms_max:.1f}",
        )  # fmt: skip
    return shown


def passes_table(passes: LoopPasses) -> Table:
    """Make a table of the durations of the event loop's passes, by the wall clock and by CPU time."""
    shown = Table("a pass of the loop", "passes", "p50 ms", "p99 ms", "p99.9 ms", "most ms", box=None)
    for name, spread in (("wall clock", passes.wall), ("CPU", passes.cpu), ("CPU without EVM", passes.own)):
        at = [f"{spread.at_ms(share):.1f}" for share in (0.5, 0.99, 0.999, 1.0)]
        shown.add_row(name, f"{spread.count:,}", *at)
    return shown


def totals_table(load: OrderLoad) -> Table:
    """Make a table of the most tasks at once, the growth of memory and the EVM's share of the CPU."""
    _, rest, *waves, _, _ = load.samples
    fills = waves[-1].filled - rest.filled
    shown = Table("tasks at most", "MB more for 1,000 swaps", "CPU s", "of it the EVM", box=None)
    shown.add_row(
        f"{load.tasks_max}",
        f"{1e3 * (waves[-1].rss_mb - rest.rss_mb) / fills:.1f}",
        f"{load.passes.cpu_s:.0f}",
        f"{load.passes.evm_s / load.passes.cpu_s:.0%}",
    )
    return shown


def tables(count: int) -> dict[str, Table]:
    """Run the load test of thousands of orders; return its tables by title."""
    load = trio.run(orders, count)
    return {
        f"{count:,} orders in one process": table(load.samples),
        "Passes of that process's loop": passes_table(load.passes),
        "Tasks, memory and CPU of that process": totals_table(load),
    }


def main() -> None:
    """Run the load test of thousands of orders, and print its tables."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else COUNT
    for title, shown in tables(count).items():
        Console(width=_WIDTH).print(title, shown, "", sep="\n")


if __name__ == "__main__":
    main()
