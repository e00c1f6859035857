"""Random lives of OTC orders with the real engine, indexer and SQL, on a chain that is a dictionary.

Makers post, fill and cancel, move their funds and allow others; contracts sign; blocks come, are held and are
replaced; the node is away; the engine is begun anew. At rest every order follows from the chain's state: its
rest, its end and the cause of it, its share of the funds.
"""

from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import trio
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from cambist.codecs.messages.vocabulary import OtcState
from cambist.engine.chain.holdings import Holding
from cambist.engine.store.queries import Query
from cambist.engine.store.rows import NEVER_S, OtcOrderRow, amount_of
from cambist.engine.store.store import Store
from cambist.engine.trade.orders.lifecycles import OTC_LIFECYCLE
from cambist.engine.trade.otc.balances import Backed, standings
from cambist.engine.trade.otc.life import ENDED, LIVE
from support.examples import IS_LONG, examples
from support.otc.otc_chain import MOST, OtcChain
from support.otc.otc_engine import CONFIRMATIONS, MAKER, OtcVenue, an_order, funds_of, otc_store, running
from support.store.stores import BOB, WETH

pytestmark = pytest.mark.seldom

_S = OtcState
EXAMPLES = 400 if IS_LONG else examples(25)
PHASES = tuple(Phase) if IS_LONG else (Phase.explicit, Phase.reuse, Phase.generate)
WALLET = b"\x3a" * 20
MAKERS = (MAKER, WALLET)

WHICH = st.integers(0, 9)
AMOUNT = st.integers(1, 60)
FUNDS = st.sampled_from([0, 30, 60, 100, 1_000])
ACTS = st.one_of(
    st.tuples(st.just("post"), st.sampled_from(MAKERS), AMOUNT, st.sampled_from([0, 0, 5, 40])),
    st.tuples(st.just("post"), st.sampled_from(MAKERS), AMOUNT, st.sampled_from([0, 0, 5, 40])),
    st.tuples(st.just("fill"), WHICH, AMOUNT),
    st.tuples(st.just("fill"), WHICH, AMOUNT),
    st.tuples(st.just("fill"), WHICH, AMOUNT),
    st.tuples(st.just("cancel"), WHICH, st.booleans()),
    st.tuples(st.just("has"), st.sampled_from(MAKERS), FUNDS),
    st.tuples(st.just("allows"), st.sampled_from(MAKERS), FUNDS),
    st.tuples(st.just("accept"), WHICH),
    st.tuples(st.just("mine"), st.integers(1, 4)),
    st.tuples(st.just("mine"), st.integers(1, 4)),
    st.tuples(st.just("fork"), st.integers(1, CONFIRMATIONS - 1), st.integers(0, 2)),
    st.tuples(st.just("away"), st.integers(1, 20)),
    st.tuples(st.just("pass"), st.sampled_from([0.01, 0.5, 3, 20])),
    st.just(("rest",)),
    st.just(("restart",)),
)


class Life:
    """A venue and what is done to it."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.chain = OtcChain()
        self.posted: list[OtcOrderRow] = []
        self.lives = 0
        self._stack = AsyncExitStack()
        self._venue: OtcVenue | None = None

    @property
    def venue(self) -> OtcVenue:
        assert self._venue is not None
        return self._venue

    async def begin(self) -> None:
        """A new engine on the same store and chain."""
        self.lives += 1
        await self._stack.aclose()
        self._stack = AsyncExitStack()
        self._venue = await self._stack.enter_async_context(
            running(self.store, self.chain, name=f"life {self.lives}")
        )

    async def end(self) -> None:
        await self._stack.aclose()

    async def do(self, act: tuple[Any, ...]) -> None:
        """Do one of `ACTS`."""
        match act:
            case ("post", maker, amount, lives_s):
                await self._post(maker, amount, lives_s)
            case ("fill" | "cancel" | "accept", which, *_) if self.posted:
                self._settle(act, self.posted[which % len(self.posted)])
            case ("has", maker, amount):
                self.chain.has(maker, amount)
            case ("allows", maker, amount):
                self.chain.allows(maker, amount)
            case ("mine", blocks):
                self.chain.mine(blocks)
            case ("fork", depth, more):
                self.chain.cut(max(self.chain.head.number - depth, CONFIRMATIONS))
                self.chain.mine(depth + more)
            case ("away", seconds):
                self.chain.is_away = True
                await trio.sleep(seconds)
                self.chain.is_away = False
            case ("pass", seconds):
                await trio.sleep(seconds)
            case ("rest",):
                await self.rest()
            case ("restart",):
                await self.begin()

    async def _post(self, maker: bytes, amount: int, lives_s: int) -> None:
        """An order as it was checked; of every third one a part is filled before it is kept."""
        number = len(self.posted) + 1
        row = an_order(
            number,
            amount,
            maker=maker,
            status=_S.DRAFT if maker == WALLET else _S.SUSPENDED,
            created_ms=self.venue.clock(),
            expires_s=self.venue.clock() // 1_000 + lives_s if lives_s else NEVER_S,
        )
        if number % 3 == 0 and self.holding(maker).usable:
            self.chain.state.signed.add(row.order_hash)
            self.chain.fills(row, 1)
            self.chain.mine()
            await self.venue.is_told()
        await self.venue.submit(row)
        self.posted.append(row)

    def _settle(self, act: tuple[Any, ...], row: OtcOrderRow) -> None:
        left = self.left(row)
        match act:
            case ("fill", _, amount) if left and self.venue.clock() // 1_000 <= row.expires_s:
                usable = self.holding(row.maker).usable
                if not usable:
                    return
                if row.maker == WALLET and left == amount_of(row.maker_amount):
                    self.chain.accepts(row)
                self.chain.fills(row, min(amount, left, usable))
            case ("cancel", _, is_maker) if left:
                self.chain.cancels(row, None if is_maker else BOB)
            case ("accept", _) if row.maker == WALLET:
                self.chain.accepts(row)

    def left(self, row: OtcOrderRow) -> int:
        """Unfilled maker amount by the contract."""
        kept = self.chain.state.left.get((row.maker, row.order_hash), 0)
        return kept - 1 if kept else amount_of(row.maker_amount)

    def holding(self, maker: bytes) -> Holding:
        """A maker's balance and allowance."""
        account, state = (WETH, maker), self.chain.state
        return Holding(state.balances.get(account, 0), state.allowances.get(account, MOST))

    # --- What has to be -----------------------------------------------------------------------------------

    async def rest(self) -> None:
        """Let the venue come to rest and compare all orders with the chain."""
        self.chain.mine()
        await self.venue.is_told()
        await trio.sleep(5)  # drafts are asked about, and what is overdue has expired
        await self.venue.is_told()
        rows = [await self.venue.row(row) for row in self.posted]
        for row in rows:
            self._is_right(row)
            live = self.venue.orders.get(row.order_hash)
            assert live is None if row.is_final else live is not None and live.row == row
        for maker in MAKERS:
            self._are_backed([row for row in rows if row.maker == maker and row.status in LIVE], maker)

    def _is_right(self, row: OtcOrderRow) -> None:
        logs = [log for block in self.chain.line for log in block.logs if row.order_hash in log.topics]
        fills = [log for log in logs if len(log.topics) == 4]
        cancels = [log for log in logs if len(log.topics) == 3 and log.topics[2][12:] == row.maker]
        given = sum(int.from_bytes(log.data[32:64], "big") for log in fills)
        left = amount_of(row.maker_amount) - given
        assert amount_of(row.remaining) == left >= 0
        if not left:
            assert row.status is _S.FULFILLED
        elif cancels and row.status is not _S.EXPIRED:
            assert (row.status, row.transaction_hash) == (_S.CANCELLED, cancels[0].tx_hash)
            return
        else:
            is_over = self.venue.clock() // 1_000 > row.expires_s + 5
            assert row.status in LIVE | {_S.EXPIRED}
            assert row.status is _S.EXPIRED or not is_over
        assert row.transaction_hash == (fills[-1].tx_hash if fills else None)
        if row.status is _S.DRAFT:
            assert row.maker == WALLET
            assert row.order_hash not in self.chain.state.signed
            assert not fills
        if row.status in ENDED:
            assert funds_of(row) == (0, 0, 0)

    def _are_backed(self, live: list[OtcOrderRow], maker: bytes) -> None:
        found = standings(
            [Backed(row.order_hash, row.status, amount_of(row.remaining), row.created_ms) for row in live],
            self.holding(maker),
        )
        for row in live:
            stands = found[row.order_hash]
            expected = stands.maker_balance, stands.reserved, stands.swappable
            assert (row.status, funds_of(row)) == (stands.status, expected)

    async def steps_are_in_the_table(self) -> None:
        """Every event of every order follows from the one before it."""
        query = "SELECT order_hash, version, status FROM order_event ORDER BY n"
        (events,) = await self.store.read(Query(query, ()))
        last: dict[bytes, tuple[int, OtcState]] = {}
        for order_hash, version, status in events:
            before = last.get(order_hash)
            if before is None:
                assert (version, OtcState(status) in OTC_LIFECYCLE.initial) == (1, True)
            else:
                assert version == before[0] + 1
                OTC_LIFECYCLE.check(before[1], OtcState(status), is_final=False)
            last[order_hash] = version, OtcState(status)


async def lived(acts: list[tuple[Any, ...]], folder: Path) -> None:
    async with otc_store(folder) as store:
        life = Life(store)
        for maker in MAKERS:
            life.chain.state.balances[WETH, maker] = 100
        life.chain.mine(CONFIRMATIONS)
        try:
            await life.begin()
            await life.venue.is_told()  # from here on blocks are followed
            for act in acts:
                await life.do(act)
            await life.rest()
            await life.steps_are_in_the_table()
        finally:
            await life.end()


@given(acts=st.lists(ACTS, min_size=25, max_size=60))
@settings(max_examples=EXAMPLES, phases=PHASES, deadline=None)
def test_whatever_happens_orders_are_what_the_chain_has(acts: list[tuple[Any, ...]]) -> None:
    with TemporaryDirectory() as folder:
        trio.run(lived, acts, Path(folder), clock=MockClock(autojump_threshold=0))
