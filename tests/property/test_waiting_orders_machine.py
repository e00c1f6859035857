"""Random lives of orders that wait, with the whole venue, the real contracts and the real SQL in one process.

Makers' books and the agent's prices come and go, owners submit, cancel, give up nonces, move their funds and
bring them back, others settle parts, time passes and jumps, blocks are held and replaced, and the venue dies
between any two things that it does. Whatever happens: every step is one of the life cycle's table, and nobody
gives more or gets less than was signed. Whenever nothing moves, statuses, fills, who rests, who is suspended
and who is auctioned are what a plain model says; and once the trouble ends everything that still can is
filled, and nothing is left in memory.
"""

import itertools
import sqlite3
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from cambist.codecs.eip712_orders.delta import (
    KIND_BUY,
    KIND_SELL,
    SAME_CHAIN,
    DeltaOrder,
    TwapBuyOrder,
    TwapOrder,
)
from cambist.codecs.messages.agent_messages import AuctionOrder
from cambist.codecs.messages.vocabulary import OrderStatus, Side
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import to_hex
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.trade.orders.lifecycles import DELTA_LIFECYCLE
from support.chain.world import MOST, NATIVE, ONE, USDC
from support.delta.waiting_chain import (
    INTERVAL_S,
    OWNERS,
    STOCK,
    Known,
    MarketNow,
    ModelledOrder,
    OnChain,
    Settlement,
    a_market_of_owners,
    is_asked_for,
    is_fillable,
    is_lacking,
    left_of,
    statuses,
)
from support.delta.waiting_venue import (
    AGAIN_S,
    CONFIRMATIONS,
    STORE,
    SimulatedClock,
    WaitingVenue,
    a_waiting_venue,
)
from support.examples import IS_LONG, examples
from support.order_of_tests import IS_WHOLE


class EventLog:
    """The events that a venue has written, as they are in the file of its store.

    Attributes:
        last: order hash -> (version, status) that its last event says.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = 0
        self.last: dict[bytes, tuple[int, str]] = {}

    def check(self) -> None:
        with closing(sqlite3.connect(f"file:{self._path}?mode=ro", uri=True)) as connection:
            rows = connection.execute(
                "SELECT n, order_hash, version, status FROM order_event WHERE n > ? ORDER BY n", (self._seen,)
            ).fetchall()
        for self._seen, order_hash, version, status in rows:
            name = order_hash.hex()[:8]
            if order_hash not in self.last:
                assert version == 1, f"{name} begins with version {version}"
                DELTA_LIFECYCLE.check_new(OrderStatus(status))
            else:
                before_version, before = self.last[order_hash]
                assert version == before_version + 1, f"{name}: {before_version} -> {version}"
                DELTA_LIFECYCLE.check(OrderStatus(before), OrderStatus(status), is_final=False)
            self.last[order_hash] = version, status


def check_settled(known: Known, settled: list[Settlement]) -> None:
    order, filled, last_s = known.order, 0, 0
    for one in settled:
        pieces = left_of(order, filled)
        assert pieces, f"{known} is overfilled"
        src, dest = pieces[0]
        if known.is_scheduled:
            assert one.filled == filled + 1, f"{known}: slice {one.filled} after {filled}"
            assert not last_s or one.time_s >= last_s + INTERVAL_S, f"{known} is early"
            assert (one.received == dest) if known.buys else (one.spent == src), f"{known}: a slice"
        else:
            amount = one.received if known.buys else one.spent
            assert one.filled == filled + amount, f"{known}: {filled} and {amount} are {one.filled}"
        assert one.spent <= src, f"{known} gave too much"
        if known.buys:
            most = Fraction(src * one.received, dest)
            assert one.spent <= most, f"{known} paid {one.spent}, more than {most}"
        else:
            least = Fraction(dest * one.spent, src)
            assert one.received >= least - 1, f"{known} got {one.received}, less than {least}"
        filled, last_s = one.filled, one.time_s
        assert filled <= known.whole, f"{known} is overfilled"
        assert one.is_closed == (filled == known.whole), f"{known}: closed"


def differences(known: Known, record: dict[str, Any], settled: list[Settlement]) -> list[str]:
    """Differences between the record's fills and the chain's settlements."""
    shown = [
        (one["originTx"], int(one["spentAmount"]), int(one["receivedAmount"]))
        for one in record["transactions"]
    ]
    there = [(to_hex(one.tx_hash), one.spent, one.received) for one in settled]
    if shown != there:
        return [f"{known} shows {shown}, the chain has {there}"]
    end = record["input" if known.buys else "output"]["executedAmount"]
    total = sum(one.spent if known.buys else one.received for one in settled)
    if (int(end) if end is not None else 0) != total:
        return [f"{known} has executed {end}, the chain {total}"]
    percent = sum(Fraction(str(one["filledPercent"])) for one in record["transactions"])
    filled = settled[-1].filled if settled else 0
    if abs(percent - Fraction(100 * filled, known.whole)) > Fraction(1, 10**5):
        return [f"{known} says {percent} % are filled, the chain {filled} of {known.whole}"]
    return []


START_S = 1_795_000_000
OPEN = ("PENDING", "ACTIVE")
ENDED = ("COMPLETED", "EXPIRED", "CANCELLED", "FAILED")
REST_S = 300
QUIET_S = 4
USUAL_PRICE = 2_500 * USDC


class LifeOfOrders:
    """See the module.

    Attributes:
        known: the orders that the venue took, as they came.
        market_now: what the agent and the makers trade for.
    """

    def __init__(self, venue: WaitingVenue, at_chain: OnChain) -> None:
        self.venue = venue
        self.at_chain = at_chain
        self.world = venue.world
        self.log = EventLog(venue.folder / STORE)
        self.known: list[Known] = []
        self.market_now = MarketNow(None, None, 0)
        self.done: Counter[str] = Counter()
        self._asked: list[bytes] = []
        self._nonces = itertools.count(1)
        self._cap = 0
        venue.agent.gives = self._gives
        venue.agent.takes = self._takes
        venue.agent.settles = self._settles

    # --- The market -------------------------------------------------------------------------------------

    def _gives(self, order: AuctionOrder) -> int | None:
        self._asked.append(bytes.fromhex(order.order_hash[2:]))
        price = self.market_now.agent
        if price is None:
            return None
        offer = int(order.src_amount) * price // ONE
        return offer if offer >= int(order.dest_amount) else None

    def _takes(self, order: AuctionOrder) -> int | None:
        self._asked.append(bytes.fromhex(order.order_hash[2:]))
        price = self.market_now.agent
        if price is None:
            return None
        offer = -(-int(order.dest_amount) * ONE // price)
        return offer if offer <= int(order.src_amount) else None

    def _settles(self, order: AuctionOrder) -> int | None:
        """At most its cap of an order that may be filled in parts, and what the venue takes of that."""
        if not order.part_min or not self._cap:
            return None
        left, least = (
            int(order.src_amount if order.side is Side.SELL else order.dest_amount),
            int(order.part_min),
        )
        cap = self._cap if order.side is Side.SELL else self._cap * USUAL_PRICE // ONE
        amount = min(left, max(cap, least))
        return left if 0 < left - amount < least else amount

    # --- Steps ------------------------------------------------------------------------------------------

    async def do(self, step: tuple[Any, ...]) -> None:
        """Take one step of a simulation."""
        self.done[step[0]] += 1
        match step:
            case ("submit", owner, kind, size, price, life_s, is_partial):
                await self._submit(OWNERS[owner], kind, size, price, life_s, is_partial=is_partial)
            case ("cancel", which):
                await self._cancel(which)
            case ("pass", seconds):
                await trio.sleep(seconds)
            case ("jump", seconds):
                self._jump(seconds)
            case ("rest",):
                await self.rest()
            case ("book", price, depth):
                self._quote(price, depth)
            case ("agent", price, cap):
                now = self.market_now
                self._cap = cap * ONE // 100
                self.market_now = MarketNow(None if price is None else price * USDC, now.book, now.depth)
            case ("hold" | "go on" | "reorganise" | "crash" | "node away", *_):
                await self._trouble(step)
            case _:
                await self._on_chain(step)

    async def _trouble(self, step: tuple[Any, ...]) -> None:
        """Have the chain or the machine trouble the venue."""
        match step:
            case ("hold",):
                self.at_chain.has_blocks = False
            case ("go on",):
                self.at_chain.has_blocks = True
            case ("reorganise", depth):
                await self.at_chain.reorganise(depth)
            case ("crash", after):
                self.venue.life.dies_in = after
            case ("node away", seconds):
                self.venue.life.is_node_away = True
                await trio.sleep(seconds)
                self.venue.life.is_node_away = False

    async def _on_chain(self, step: tuple[Any, ...]) -> None:
        """Have an owner or another account act on the chain."""
        at_chain = self.at_chain
        match step:
            case ("allow", owner, amount):
                await at_chain.allow(OWNERS[owner], amount)
            case ("move", owner, keeps):
                await at_chain.move(OWNERS[owner], keeps)
            case ("give back", owner, amount):
                await at_chain.give_back(OWNERS[owner], amount)
            case ("deposit", which):
                if known := self._pick(which, lambda one: one.is_native):
                    await at_chain.deposit(known.key, known.order_hash, known.order)
            case ("withdraw", which):
                if known := self._pick(which, lambda one: one.is_native):
                    await at_chain.withdraw(known)
            case ("give up", which):
                if known := self._pick(which):
                    await at_chain.give_up(known)
            case ("foreign", which, share):
                if known := self._pick(which, lambda one: one.is_partial):
                    await at_chain.settle_elsewhere(known, share)
            case _:
                raise AssertionError(step)

    def _pick(self, which: int, wanted: Any = lambda one: True) -> Known | None:
        """An order that has not ended, sometimes an ended order; None if there is neither."""
        found = [one for one in self.known if wanted(one) and (not one.ended or which % 5 == 4)]
        return found[which % len(found)] if found else None

    def _quote(self, price: int | None, depth: int) -> None:
        world = self.world
        bids = "" if price is None else f"{price} {depth / 100}"
        self.venue.quotes("alpha", world.weth, world.usdc, bids)
        book = None if price is None else price * USDC
        self.market_now = MarketNow(self.market_now.agent, book, depth * ONE // 100)

    def _jump(self, seconds: int) -> None:
        self.venue.clock.jumped_s += seconds
        if self.venue.is_serving:
            self.venue.app.delta.scheduler.at(0, "time has passed", lambda: None)

    # --- Orders -----------------------------------------------------------------------------------------

    async def _submit(
        self, key: SigningKey, kind: str, size: int, price: int, life_s: int, *, is_partial: bool
    ) -> None:
        order = self._order(key, kind, size * ONE // 10, price * USDC, life_s)
        order_hash = self.world.delta_hash(order)
        is_partial = is_partial and isinstance(order, DeltaOrder)
        if order.src_token == NATIVE:
            await self.at_chain.deposit(key, order_hash, order)
        order_type = "LIMIT" if "limit" in kind else "MARKET"
        body = self.world.delta_body(order, key, type=order_type, partiallyFillable=is_partial)
        status, told = await self.venue.ask("POST", "/v2/delta/orders", body)
        if status == 200:
            self.known.append(
                Known(len(self.known), order, order_hash, told["id"], key, "limit" in kind, is_partial)
            )
            return
        self.done["refused"] += 1
        assert told["errorType"] in ("InsufficientAllowance", "InsufficientBalance", "OrderExpired"), told

    def _order(self, key: SigningKey, kind: str, amount: int, price: int, life_s: int) -> ModelledOrder:
        """Sells or buys for `amount` WETH at the price, in raw units of USDC."""
        world, owner = self.world, key.address
        src = NATIVE if "native" in kind else world.weth
        until_s, worth, nonce = self.venue.clock.now_s() + life_s, amount * price // ONE, next(self._nonces)
        match kind.rpartition(" ")[2], "twap" in kind:
            case ("sale", False):
                return DeltaOrder(
                    owner, owner, src, world.usdc, amount, worth, 0, until_s, KIND_SELL, nonce, 0, b"", b"",
                    SAME_CHAIN,
                )  # fmt: skip
            case ("purchase", False):
                return DeltaOrder(
                    owner, owner, src, world.usdc, amount, worth, 0, until_s, KIND_BUY, nonce, 0, b"", b"",
                    SAME_CHAIN,
                )  # fmt: skip
            case ("sale", True):
                return TwapOrder(
                    owner, owner, src, world.usdc, nonce, 0, until_s + 3 * INTERVAL_S, INTERVAL_S, 3,
                    (amount // 3) * price // ONE, amount, b"", b"", SAME_CHAIN,
                )  # fmt: skip
            case _:
                return TwapBuyOrder(
                    owner, owner, src, world.usdc, nonce, 0, until_s + 3 * INTERVAL_S, INTERVAL_S, 3,
                    worth, amount, b"", b"", SAME_CHAIN,
                )  # fmt: skip

    async def _cancel(self, which: int) -> None:
        known = self._pick(which)
        if known is None:
            return
        deaths = self.venue.deaths
        body = self.world.cancel_body([known.order_id], known.key)
        status, told = await self.venue.ask("POST", "/v2/delta/orders/cancel", body)
        if status == 200:
            known.cancelled = True
        else:
            assert told["errorType"] == "OrderAlreadySettled", told
            known.maybe_cancelled |= self.venue.deaths > deaths

    # --- Records ----------------------------------------------------------------------------------------

    async def records(self) -> dict[bytes, dict[str, Any]]:
        """Order hash -> the venue's record."""
        found: dict[bytes, dict[str, Any]] = {}
        for key in OWNERS:
            for page in itertools.count(1):
                status, told = await self.venue.ask(
                    "GET", f"/v2/delta/orders?userAddress={to_checksum(key.address)}&page={page}"
                )
                assert status == 200, told
                found |= {bytes.fromhex(one["orderHash"][2:]): one for one in told["data"]}
                if not told["hasMore"]:
                    break
        return found

    # --- Properties of every moment ---------------------------------------------------------------------

    async def check(self) -> None:
        """Assert that every step is in the table, and that no owner gave more or got less than signed."""
        self.log.check()
        settled = await self.at_chain.settlements()
        for known in self.known:
            mine = settled.get(known.order_hash, [])
            check_settled(known, mine)
            known.filled_at_s |= {one.time_s for one in mine}

    # --- Properties at rest -----------------------------------------------------------------------------

    async def rest(self) -> None:
        """Let the venue have its time, until all is as the model says; and it stays so."""
        self.at_chain.has_blocks = True
        self.venue.life.dies_in = -1
        until = trio.current_time() + REST_S
        while True:
            before = await self._settled_down(until)
            await trio.sleep(AGAIN_S + 1)  # who is auctioned already is asked for once more
            asked_from, started_s = len(self._asked), self.venue.clock.now_s()
            for _ in range(QUIET_S):
                await trio.sleep(1)
            await self.check()
            records, problems = await self._compare()
            if not problems and _states(records) == before:
                asked = set(self._asked[asked_from:])
                problems = await self._compare_asked(records, asked, started_s)
                if not problems:
                    break
            assert trio.current_time() < until, "\n".join(problems)
        for known in self.known:
            status = records[known.order_hash]["status"]
            known.ended = status if status in ENDED else ""
            if known.maybe_cancelled:
                known.cancelled |= status == "CANCELLED"
                known.maybe_cancelled = False

    async def _settled_down(self, until: float) -> dict[bytes, tuple[str, int]]:
        """The states of all orders once they are as the model says."""
        while True:
            await trio.sleep(1)
            await self.check()
            records, problems = await self._compare()
            if not problems:
                return _states(records)
            assert trio.current_time() < until, "\n".join(problems)

    async def _compare(self) -> tuple[dict[bytes, dict[str, Any]], list[str]]:
        """The venue's records, and the differences between them and the model."""
        settled = await self.at_chain.settlements()
        facts = await self.at_chain.facts(self.known, settled)
        records = await self.records()
        live = (await self.venue.is_up()).delta.orders
        problems: list[str] = []
        for known in self.known:
            record, fact = records[known.order_hash], facts[known.order_hash]
            status, now_s = record["status"], self.venue.clock.now_s()
            expected = statuses(known, fact, now_s)
            if status not in expected:
                problems.append(f"{known} is {status}, expected {sorted(expected)}: {fact}, {now_s}")
            if status in OPEN and is_fillable(known, fact, self.market_now, now_s):
                problems.append(f"{known} is {status} and could be filled: {fact}, {self.market_now}")
            problems += differences(known, record, settled.get(known.order_hash, []))
            inside = live.get(known.order_hash)
            if inside is not None and inside.row.status.value != status:
                problems.append(f"{known} is {inside.row.status} in memory, and {status}")
            if inside is not None and inside.filled != fact.filled:
                problems.append(f"{known} has {inside.filled} filled in memory, {fact.filled} on chain")
        return records, problems

    async def _compare_asked(
        self, records: dict[bytes, dict[str, Any]], asked: set[bytes], started_s: int
    ) -> list[str]:
        """Faults of a quiet time: fillable orders without a round, resting orders not explained as resting.

        Raises:
            AssertionError: a round took another order.
        """
        facts = await self.at_chain.facts(self.known, await self.at_chain.settlements())
        problems: list[str] = []
        for known in self.known:
            fact, status = facts[known.order_hash], records[known.order_hash]["status"]
            is_asked = known.order_hash in asked
            wanted = (
                status in OPEN
                and not is_lacking(known, fact)
                and is_asked_for(known, fact, self.market_now, started_s)
            )
            now_s = self.venue.clock.now_s()
            is_due = any(started_s <= at_s + INTERVAL_S <= now_s for at_s in known.filled_at_s)
            told = f"{known}, {status}: {fact}, {self.market_now}"
            assert wanted or is_due or not is_asked, f"it is auctioned: {told}"
            if wanted and not is_asked:
                problems.append(f"it is not auctioned: {told}")
            if status in OPEN and known.is_limit and not known.is_scheduled:
                target = f"/v2/delta/orders/{known.order_id}/explain"
                _, explained = await self.venue.ask("GET", target)
                is_resting = any(reason["code"] == "resting" for reason in explained["reasons"])
                if not wanted and not is_resting:
                    problems.append(f"it does not say that it rests: {told}, {explained['reasons']}")
        return problems

    async def end_well(self) -> None:
        """The trouble ends: what still can be filled is filled, and then nothing is left in memory."""
        self.at_chain.has_blocks = True
        self.venue.life.dies_in = -1
        for key in OWNERS:
            await self.at_chain.allow(key, MOST)
            await self.at_chain.give_back(key, 2 * STOCK)
        for known in self.known:
            if known.is_native:
                await self.at_chain.deposit(known.key, known.order_hash, known.order)
        self._quote(4_000, 10_000)
        await self.do(("agent", 4_000, 70))
        await self.rest()
        for _ in range(3):
            self._jump(INTERVAL_S)
            await self.rest()
        self._jump(1_000_000)
        await self.rest()
        assert all(known.ended for known in self.known)
        for _ in range(2 * CONFIRMATIONS):
            await self.at_chain.chain.mine()
            await trio.sleep(2)
        app = await self.venue.is_up()
        statistics = app.delta.statistics()
        assert len(app.delta.orders) == 0, statistics.orders
        (chain,) = statistics.chains.values()
        assert chain.resting.orders == chain.funds.orders == chain.funds.accounts == 0, chain
        assert chain.settling.under_way == chain.auctions.waiting == chain.auctions.ready == 0, chain


def _states(records: dict[bytes, dict[str, Any]]) -> dict[bytes, tuple[str, int]]:
    return {key: (record["status"], len(record["transactions"])) for key, record in records.items()}


@asynccontextmanager
async def a_life_of_orders(folder: Path) -> AsyncGenerator[LifeOfOrders]:
    """A new world, and a venue that serves it."""
    clock = SimulatedClock(START_S)
    at_chain = await a_market_of_owners(clock)
    async with a_waiting_venue(at_chain.market, clock, folder) as venue, trio.open_nursery() as nursery:
        nursery.start_soon(at_chain.make_blocks)
        yield LifeOfOrders(venue, at_chain)
        nursery.cancel_scope.cancel()


pytestmark = [pytest.mark.needs("pyrevm"), pytest.mark.seldom]

EXAMPLES = 200 if IS_LONG else examples(8 if IS_WHOLE else 4)
PHASES = tuple(Phase) if IS_LONG else (Phase.explicit, Phase.reuse, Phase.generate)
"""A life takes seconds: to make a failing one short takes minutes."""

WHICH, OWNER = st.integers(0, 30), st.integers(0, len(OWNERS) - 1)
LIMITS = st.sampled_from([2_200, 2_400, 2_600])
KINDS = st.sampled_from(
    [
        *("limit sale", "limit sale", "limit purchase", "limit native sale"),
        *("market sale", "market purchase", "twap sale", "twap purchase"),
    ]
)
SIZES = st.sampled_from([5, 10, 20, 60])
LIVES_S = st.sampled_from([30, 600, 600, 3_000])
SUBMIT = st.tuples(st.just("submit"), OWNER, KINDS, SIZES, LIMITS, LIVES_S, st.booleans())
BOOK = st.tuples(
    st.just("book"), st.sampled_from([2_700, 2_500, 2_300, 2_100, None]), st.sampled_from([5_000, 40])
)
AGENT = st.tuples(
    st.just("agent"), st.sampled_from([2_700, 2_700, 2_500, 2_300, None]), st.sampled_from([0, 70])
)
FUNDS = st.one_of(
    st.tuples(st.just("allow"), OWNER, st.sampled_from([MOST, 4 * ONE, 2 * ONE, ONE, 0])),
    st.tuples(st.just("move"), OWNER, st.sampled_from([4 * ONE, ONE, 0])),
    st.tuples(st.just("give back"), OWNER, st.sampled_from([10 * ONE, ONE])),
    st.tuples(st.sampled_from(["deposit", "withdraw"]), WHICH),
)
OWNERS_DO = st.one_of(
    st.tuples(st.just("cancel"), WHICH),
    st.tuples(st.just("foreign"), WHICH, st.sampled_from([1, 50, 100])),
    st.tuples(st.just("foreign"), WHICH, st.sampled_from([1, 50, 100])),
    st.tuples(st.just("give up"), WHICH),
)
TIME = st.one_of(
    st.tuples(st.just("pass"), st.sampled_from([0.1, 0.6, 1, 5])),
    st.tuples(st.just("jump"), st.sampled_from([61, 61, 5, 200])),
)
CRASH = st.tuples(st.just("crash"), st.integers(0, 80))
REORGANISE = st.tuples(st.just("reorganise"), st.integers(1, CONFIRMATIONS - 1))
NODE_AWAY = st.tuples(st.just("node away"), st.sampled_from([0.5, 3, 15]))
TROUBLES = st.one_of(st.tuples(st.sampled_from(["go on", "go on", "hold"])), CRASH, REORGANISE, NODE_AWAY)
REST = st.just(("rest",))
# Steps that combine rare events: a change happens while a settlement is under way, or once it
# was taken back, or an owner comes short of something while nobody fills the order.
UNDER_WAY = st.tuples(
    st.just(("hold",)),
    SUBMIT,
    st.just(("book", 2_700, 5_000)),
    st.tuples(st.just("agent"), st.just(2_700), st.sampled_from([0, 70])),
    st.tuples(st.just("pass"), st.sampled_from([0.7, 2, 4])),
    st.one_of(FUNDS, OWNERS_DO, TROUBLES, st.just(("jump", 200))),
    st.sampled_from([("go on",), ("go on",), ("pass", 1)]),
)
TAKEN_BACK = st.tuples(
    st.tuples(st.just("agent"), st.just(2_700), st.sampled_from([0, 70])),
    SUBMIT,
    st.tuples(st.just("pass"), st.sampled_from([1, 2, 4])),
    REORGANISE,
    st.one_of(FUNDS, OWNERS_DO, TROUBLES, TIME),
    REST,
)
SHORT = st.tuples(st.tuples(st.just("agent"), st.none(), st.just(0)), SUBMIT, FUNDS, REST)
ONE_STEP = st.one_of(SUBMIT, SUBMIT, SUBMIT, BOOK, AGENT, FUNDS, FUNDS, OWNERS_DO, TIME, TIME, TROUBLES, REST)
STEPS = st.one_of(st.tuples(ONE_STEP), st.tuples(ONE_STEP), st.tuples(ONE_STEP), UNDER_WAY, TAKEN_BACK, SHORT)


async def simulate(steps: list[tuple[Any, ...]], folder: Path) -> None:
    async with a_life_of_orders(folder) as life:
        for step in itertools.chain.from_iterable(steps):
            await life.do(step)
            await life.check()
        await life.rest()
        await life.end_well()


@settings(max_examples=EXAMPLES, phases=PHASES)
@given(st.lists(STEPS, min_size=15, max_size=40))
def test_whatever_happens_orders_end_as_the_model_says(steps: list[tuple[Any, ...]]) -> None:
    with TemporaryDirectory() as folder:
        trio.run(simulate, steps, Path(folder), clock=trio.testing.MockClock(autojump_threshold=0))
