"""Whatever the chain does, what the indexer keeps is what a fresh scan of the chain as it is now finds."""

import tempfile
from functools import partial
from pathlib import Path

import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from cambist.engine.chain.index.applied import read_events, rows_of
from cambist.engine.store.tables import CHAIN_LOGS
from support.chain.indexing import (
    CONTRACTS,
    DELTA,
    RFQ,
    an_indexer,
    any_event,
    kept_by,
    run_dry,
    scanned,
    sqlite_engine,
)
from support.chain.log_emitter import record
from support.chain.scripted_chain import Block, ScriptedChain, Sent, tx
from support.examples import examples

_EVENTS = st.lists(st.integers(0, 60), max_size=4)
_BLOCK = st.lists(_EVENTS, max_size=2)
_FORK = st.tuples(st.integers(0, 12), st.lists(_BLOCK, min_size=1, max_size=14), st.integers(0, 4))
"""(how many blocks are taken back, those that come instead, how many steps an indexer takes then)."""


def sent(name: int, numbers: list[int]) -> Sent:
    """A transaction whose hash is that of another one with the same events, in whatever fork."""
    whose = {"rfq": RFQ, "delta": DELTA}
    made = [any_event(number) for number in numbers]
    return tx(b"%d" % name + bytes(numbers), *((whose[contract], record(event)) for contract, event in made))


def grow(chain: ScriptedChain, back: int, blocks: list[list[list[int]]]) -> None:
    chain.cut(max(0, chain.head.number - back))
    for block in blocks:
        chain.grow([sent(100 * chain.head.number + at, numbers) for at, numbers in enumerate(block)])


@given(st.lists(_FORK, max_size=6))
@settings(max_examples=examples(20))
def test_applying_and_undoing_forks_equals_a_fresh_scan(
    forks: list[tuple[int, list[list[list[int]]], int]],
) -> None:
    trio.run(partial(_follow_forks, forks))


async def _follow_forks(forks: list[tuple[int, list[list[list[int]]], int]]) -> None:
    chain = ScriptedChain()
    with tempfile.TemporaryDirectory() as folder:
        async with sqlite_engine(Path(folder)).open() as store:
            indexers = [an_indexer(chain, store), an_indexer(chain, store)]
            for number, (back, blocks, steps) in enumerate(forks):
                grow(chain, back, blocks)
                for _ in range(steps):
                    await indexers[number % 2].step()
            for indexer in indexers:
                await run_dry(indexer)
            assert await kept_by(store, chain.chain_id) == await scanned(chain)


@given(st.lists(_FORK, max_size=8))
def test_rows_are_undone_by_height_alone(forks: list[tuple[int, list[list[list[int]]], int]]) -> None:
    """Without store and driver: rows above the last common block go, those of the new blocks come."""
    chain = ScriptedChain()
    kept: dict[str, dict[tuple[object, ...], object]] = {table.name: {} for table in CHAIN_LOGS}
    read = list(chain.line)
    for back, blocks, _ in forks:
        grow(chain, back, blocks)
        common = max(n for n, block in enumerate(read) if n < len(chain.line) and chain.line[n] == block)
        for name, rows in kept.items():
            kept[name] = {key: row for key, row in rows.items() if row.block_number <= common}  # type: ignore[attr-defined]
        for block in chain.line[common + 1 :]:
            _apply(kept, chain, [block])
        read = list(chain.line)
    fresh: dict[str, dict[tuple[object, ...], object]] = {table.name: {} for table in CHAIN_LOGS}
    _apply(fresh, chain, chain.line)
    assert kept == fresh


def _apply(
    kept: dict[str, dict[tuple[object, ...], object]], chain: ScriptedChain, blocks: list[Block]
) -> None:
    logs = [log for block in blocks for log in block.logs]
    times = {block.header.number: block.header.time_s for block in blocks}
    for table, row in rows_of(chain.chain_id, read_events(CONTRACTS, logs), times):
        kept[table.name].setdefault(tuple(getattr(row, name) for name in table.key), row)
