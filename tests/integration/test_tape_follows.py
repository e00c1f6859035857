"""A tape follows the store's logs by its indexer: new trades, re-organisations, restarts, two engines."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio
from trio.testing import MockClock

from cambist.codecs.contracts import contract_events as events
from cambist.config.errors import StoreUnavailable
from cambist.config.timeouts import TAPE_PAUSE_S, TAPE_WORTH_S
from cambist.engine.store.store import Store
from cambist.engine.store.units import Done, Unit
from cambist.engine.trade.tape.tape_follower import FollowedTape
from cambist.engine.trade.tape.trades import TradeAccounts, Worth
from support.chain.indexing import RFQ, an_indexer, one, run_dry, sqlite_engine
from support.chain.scripted_chain import ScriptedChain, Sent
from support.patience import until
from support.store.stores import NOW_MS, USDC, WETH, Engine, hash_of
from support.tape.tape_rows import ALPHA, EXECUTOR, ONE, ROUTER, STRANGER, USD, an_otc_fill, filled_rows

CHAIN_ID = ScriptedChain.chain_id
ACCOUNTS = TradeAccounts(ROUTER, EXECUTOR, {ALPHA: "alpha"})


def a_swap(name: bytes, taker: bytes = ROUTER, weth: int = ONE) -> Sent:
    """A transaction in which alpha gives USDC for WETH to the Router."""
    order_hash = hash_of(int.from_bytes(name, "big"))
    return one(RFQ, events.OrderFilled(order_hash, ALPHA, USDC, 2_500 * USD, taker, WETH, weth), name)


def worth(token: bytes, amount: int) -> int | None:
    return {USDC: amount * 100 // USD, WETH: amount * 249_000 // ONE}.get(token)


def a_tape(store: Store, *, worth: Worth = worth) -> FollowedTape:
    return FollowedTape(store, CHAIN_ID, ACCOUNTS, worth, lambda: NOW_MS)


@asynccontextmanager
async def following(*tapes: FollowedTape) -> AsyncIterator[None]:
    async with trio.open_nursery() as nursery:
        for tape in tapes:
            nursery.start_soon(tape.run)
            await tape.loaded.wait()
        yield
        nursery.cancel_scope.cancel()


def blocks(tape: FollowedTape) -> list[tuple[int, int]]:
    """(height, WETH given) of each trade, the latest first."""
    return [(entry.trade.place[0], entry.trade.src_amount // ONE) for entry in tape.tape.listed(None, 99)]


async def is_so(tape: FollowedTape, *expected: tuple[int, int]) -> None:
    await until(lambda: blocks(tape) == [*expected])


async def test_new_trades_come_by_the_indexer_and_undone_ones_go(store: Store) -> None:
    chain, tape = ScriptedChain(), a_tape(store)
    indexer = an_indexer(chain, store, logged=tape.note)
    async with following(tape):
        chain.grow([a_swap(b"a")], [a_swap(b"b", weth=2 * ONE)], [a_swap(b"c", STRANGER)])
        await run_dry(indexer)
        await is_so(tape, (2, 2), (1, 1))
        chain.cut(1)
        chain.grow([a_swap(b"d", weth=4 * ONE)], [], [a_swap(b"b", weth=2 * ONE)], [])
        await run_dry(indexer)
        await is_so(tape, (4, 2), (2, 4), (1, 1))
        chain.cut(0)
        chain.grow([], [], [], [], [])
        await run_dry(indexer)
        await is_so(tape)
        assert tape.statistics().arrived == 4


async def test_a_restart_tells_the_same(store: Store) -> None:
    chain, tape = ScriptedChain(), a_tape(store)
    chain.grow(*([a_swap(b"%d" % number)] for number in range(1, 9)))
    indexer = an_indexer(chain, store, logged=tape.note)
    async with following(tape):
        await run_dry(indexer)
        await until(lambda: len(tape.tape) == 8)
        before = [entry.message for entry in tape.tape.listed(None, 99)], tape.tape.statistics(NOW_MS)
    again = a_tape(store)
    async with following(again):
        after = [entry.message for entry in again.tape.listed(None, 99)], again.tape.statistics(NOW_MS)
        assert again.statistics().arrived == 0
    assert after == before
    assert before[1].volume_usd == "19920.00"


async def test_blocks_without_fills_wake_no_tape(store: Store) -> None:
    chain, tape = ScriptedChain(), a_tape(store)
    indexer = an_indexer(chain, store, logged=tape.note)
    async with following(tape):
        chain.grow([a_swap(b"a")])
        await run_dry(indexer)
        await is_so(tape, (1, 1))
        reads = tape.statistics().reads
        for _ in range(5):
            chain.grow([], [])
            await run_dry(indexer)
        chain.grow([a_swap(b"b")])
        await run_dry(indexer)
        await is_so(tape, (8 + 4, 1), (1, 1))
        assert tape.statistics().reads == reads + 1


async def test_changes_that_are_reported_together_are_all_read(store: Store) -> None:
    tape = a_tape(store)
    async with following(tape):
        fills = [an_otc_fill(number, chain_id=CHAIN_ID) for number in (1, 2)]
        assert await store.write(Unit(filled_rows(*fills))) == Done()
        tape.note(0)
        tape.note(1)
        await is_so(tape, (2, 1), (1, 1))


async def test_two_engines_on_one_database_have_the_same_tape(tmp_path: Path, postgres_url: str) -> None:
    """Only one of the two indexers stores a block; the other one's tape hears of it all the same."""
    chain = ScriptedChain()
    engine = Engine(postgres_url, tmp_path, in_process=True)
    async with engine.open() as store_a, engine.open() as store_b:
        tape_a, tape_b = a_tape(store_a), a_tape(store_b)
        indexer_a = an_indexer(chain, store_a, logged=tape_a.note)
        indexer_b = an_indexer(chain, store_b, logged=tape_b.note)
        async with following(tape_a, tape_b):
            chain.grow([a_swap(b"a")], [a_swap(b"b", weth=2 * ONE)])
            await run_dry(indexer_a)
            await run_dry(indexer_b)
            for tape in (tape_a, tape_b):
                await is_so(tape, (2, 2), (1, 1))
            chain.cut(1)
            chain.grow([], [a_swap(b"c", weth=3 * ONE)], [])
            await run_dry(indexer_b)
            await run_dry(indexer_a)
            for tape in (tape_a, tape_b):
                await is_so(tape, (3, 3), (1, 1))
            chain.grow([a_swap(b"d", weth=4 * ONE)])
            async with trio.open_nursery() as nursery:
                nursery.start_soon(run_dry, indexer_a)
                nursery.start_soon(run_dry, indexer_b)
            for tape in (tape_a, tape_b):
                await is_so(tape, (5, 4), (3, 3), (1, 1))


async def test_a_start_reads_page_after_page_back_to_a_day_ago(tmp_path: Path) -> None:
    async with sqlite_engine(tmp_path).open() as store:
        fills = [an_otc_fill(number, chain_id=CHAIN_ID) for number in range(1, 31)]
        assert await store.write(Unit(filled_rows(*fills))) == Done()
        now_ms = NOW_MS + 86_400_000 + 20_500
        tape = FollowedTape(store, CHAIN_ID, ACCOUNTS, worth, lambda: now_ms, page_rows=3)
        async with following(tape):
            assert blocks(tape) == [(number, 1) for number in range(30, 20, -1)]
            assert 4 < tape.statistics().reads < 8


async def test_while_the_store_is_away_trades_wait(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with sqlite_engine(tmp_path).open() as store:
        chain, tape = ScriptedChain(), a_tape(store)
        indexer = an_indexer(chain, store, logged=tape.note)
        async with following(tape):
            chain.grow([a_swap(b"a")])
            await run_dry(indexer)
            read, store.read = store.read, away  # type: ignore[method-assign]
            await trio.sleep(2.5 * TAPE_PAUSE_S)
            assert (blocks(tape), tape.statistics().failed) == ([], 3)
            store.read = read  # type: ignore[method-assign]
            await trio.sleep(TAPE_PAUSE_S)
            assert blocks(tape) == [(1, 1)]


async def away(*_: object) -> list[list[tuple[object, ...]]]:
    raise StoreUnavailable("away")


async def test_trades_of_before_the_start_are_valued_once_prices_come(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with sqlite_engine(tmp_path).open() as store:
        assert await store.write(Unit(filled_rows(an_otc_fill(1, chain_id=CHAIN_ID)))) == Done()
        prices = {"known": False}
        late = a_tape(store, worth=lambda token, amount: worth(token, amount) if prices["known"] else None)
        never = a_tape(store, worth=lambda *_: None)
        async with following(late, never):
            await trio.sleep(TAPE_WORTH_S / 2)
            assert late.tape.statistics(NOW_MS).volume_usd == "0.00"
            prices["known"] = True
            await trio.sleep(TAPE_WORTH_S)
            assert late.tape.statistics(NOW_MS).volume_usd == "2490.00"
            assert never.tape.statistics(NOW_MS).volume_usd == "0.00"
