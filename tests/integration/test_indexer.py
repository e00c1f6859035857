"""The indexer on a store: stored rows, undone rows, and continuation."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from cambist.codecs.contracts import contract_events as events
from cambist.config.errors import (
    LogsRefused,
    NodeContradiction,
    StoreUnavailable,
)
from cambist.config.limits import INDEX_RING_BLOCKS
from cambist.engine.chain.index.indexer import IndexerState, rescan
from cambist.engine.store.queries import by, of_order
from cambist.engine.store.rows import amount32
from cambist.engine.store.store import Store
from cambist.engine.store.tables import (
    NONCE_USED,
    OTC_FILL,
)
from support.chain.indexing import (
    DELTA as DELTA_CONTRACT,
)
from support.chain.indexing import (
    RFQ,
    a_fill_event,
    a_settlement,
    an_indexer,
    cursor_of,
    kept_by,
    logs_of,
    one,
    run_dry,
    scanned,
    sqlite_engine,
)
from support.chain.scripted_chain import ScriptedChain
from support.patience import PATIENCE_S
from support.store.stores import (
    ALICE,
    NOW_MS,
    Engine,
    hash_of,
    structs_of,
)


@pytest.fixture
async def quick(tmp_path: Path) -> AsyncIterator[Store]:
    """A store in this process: for what does not depend on the database."""
    async with sqlite_engine(tmp_path).open() as store:
        yield store


# --- Reading on, and taking back ------------------------------------------------------------------------


async def test_events_become_rows_and_a_reorganisation_takes_them_back(store: Store) -> None:
    chain = ScriptedChain()
    indexer = an_indexer(chain, store)
    for block in range(12):
        chain.grow([logs_of(block, *range(block * 6, block * 6 + 6))])
    await run_dry(indexer)
    before = await kept_by(store, chain.chain_id)
    assert before == await scanned(chain)
    assert all(before.values())

    chain.cut(5)
    for block in range(100, 110):
        chain.grow([logs_of(block, *range(block, block + 6))], [logs_of(block - 93, block - 93)])
    await run_dry(indexer)
    assert await kept_by(store, chain.chain_id) == await scanned(chain) != before
    cursor = await cursor_of(store)
    assert (cursor.block_number, cursor.block_hash) == (chain.head.number, chain.head.hash)
    now = indexer.statistics()
    assert (now.state, now.reorganisations, now.deepest) == (IndexerState.FOLLOWING, 1, 7)
    assert now.undone_rows > 0


async def test_a_transaction_that_is_mined_again_elsewhere_stays_with_its_new_place(quick: Store) -> None:
    chain = ScriptedChain()
    indexer = an_indexer(chain, quick)
    chain.grow([one(RFQ, a_fill_event())], [])
    await run_dry(indexer)
    chain.cut(0)
    chain.grow([], [], [one(RFQ, a_fill_event())])
    await run_dry(indexer)
    (fill,) = await structs_of(quick, OTC_FILL, of_order(OTC_FILL, hash_of(1)))
    assert (fill.block_number, fill.block_hash) == (3, chain.head.hash)


async def test_a_nonce_stays_used_while_one_of_its_logs_is_in_the_chain(store: Store) -> None:
    chain = ScriptedChain()
    indexer = an_indexer(chain, store)
    chain.grow([one(DELTA_CONTRACT, a_settlement(), b"a")])
    chain.grow([one(DELTA_CONTRACT, events.NonceInvalidated(ALICE, 1), b"b")])
    await run_dry(indexer)
    chain.cut(1)
    chain.grow([], [])
    await run_dry(indexer)
    (used,) = await structs_of(store, NONCE_USED, by(NONCE_USED, chain.chain_id, ALICE, amount32(1)))
    assert used.block_number == 1
    chain.cut(0)
    chain.grow([], [], [one(DELTA_CONTRACT, events.NonceInvalidated(ALICE, 1), b"b")], [])
    await run_dry(indexer)
    (used,) = await structs_of(store, NONCE_USED, by(NONCE_USED, chain.chain_id, ALICE, amount32(1)))
    assert used.block_number == 3


async def test_two_chains_of_one_store_do_not_touch_each_other(quick: Store) -> None:
    chains = [ScriptedChain(), ScriptedChain()]
    chains[1].chain_id = 31338
    for chain in chains:
        chain.grow([one(RFQ, a_fill_event())])
        await run_dry(an_indexer(chain, quick))
    chains[0].cut(0)
    chains[0].grow([], [])
    await run_dry(an_indexer(chains[0], quick))
    assert [len((await kept_by(quick, chain.chain_id))["otc_fill"]) for chain in chains] == [0, 1]


# --- Where it begins ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("first_block", "expected"), [(0, [0, 2, 4]), (2, [2, 4]), (3, [4]), (None, [])])
async def test_a_new_chain_begins_at_its_first_block_or_at_the_head(
    quick: Store, first_block: int | None, expected: list[int]
) -> None:
    chain = ScriptedChain()
    chain.line.clear()
    for number in range(5):
        chain.grow([one(RFQ, a_fill_event(number), b"%d" % number)] if number % 2 == 0 else [])
    indexer = an_indexer(chain, quick, first_block=first_block)
    await run_dry(indexer)
    kept_fills = (await kept_by(quick, chain.chain_id))["otc_fill"]
    assert sorted(fill.block_number for fill in kept_fills) == expected
    chain.grow([one(RFQ, a_fill_event(9))])
    await run_dry(indexer)
    assert len((await kept_by(quick, chain.chain_id))["otc_fill"]) == len(expected) + 1


async def test_a_chain_that_has_not_come_to_its_first_block_is_waited_for(quick: Store) -> None:
    chain = ScriptedChain()
    indexer = an_indexer(chain, quick, first_block=3)
    with pytest.raises(NodeContradiction, match="no block: the node shows no block 2"):
        await indexer.step()
    chain.grow([], [], [one(RFQ, a_fill_event())])
    await run_dry(indexer)
    assert len((await kept_by(quick, chain.chain_id))["otc_fill"]) == 1


async def test_a_restart_goes_on_from_the_cursor(engine: Engine) -> None:
    chain = ScriptedChain()
    async with engine.open() as store:
        chain.grow(*([logs_of(n, n)] for n in range(20)))
        await run_dry(an_indexer(chain, store))
    chain.cut(15)
    chain.grow(*([logs_of(n, n)] for n in range(40, 60)))
    async with engine.open() as store:
        asked = chain.asked["logs_of"]
        indexer = an_indexer(chain, store, first_block=None)
        await run_dry(indexer)
        assert chain.asked["logs_of"] - asked == 20
        assert await kept_by(store, chain.chain_id) == await scanned(chain)


# --- History --------------------------------------------------------------------------------------------


async def test_history_is_read_in_ranges_that_fit_the_node(quick: Store) -> None:
    chain = ScriptedChain(range_blocks_max=150)
    for number in range(3_000):
        chain.grow([logs_of(number, number)] if number % 7 == 0 else [])
    chain.asked.clear()
    indexer = an_indexer(chain, quick)
    await run_dry(indexer)
    now = indexer.statistics()
    assert now.refused >= 4
    assert now.range_blocks <= 200
    assert chain.asked["logs"] < 120
    assert chain.asked["logs_of"] <= INDEX_RING_BLOCKS + chain.asked["logs"] // 2
    chain.range_blocks_max = 1 << 60
    assert await kept_by(quick, chain.chain_id) == await scanned(chain)
    cursor = await cursor_of(quick)
    assert (cursor.block_number, cursor.block_hash) == (3_000, chain.head.hash)
    chain.grow(*([] for _ in range(12_000)))
    await run_dry(indexer)
    assert indexer.statistics().range_blocks >= 2 * now.range_blocks, "as wide as the node answers"


async def test_no_more_ranges_are_read_than_a_step_can_hold(
    quick: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in ("indexer", "reading"):
        monkeypatch.setattr(f"cambist.engine.chain.index.{place}.INDEX_STEP_ROWS_MAX", 3_000)
    chain = ScriptedChain()
    chain.grow(*([logs_of(number, number)] for number in range(8_000)))
    indexer = an_indexer(chain, quick)
    await indexer.step()
    asked = []
    while await indexer.step():
        asked.append(chain.asked["logs"])
        chain.asked["logs"] = 0
    assert asked[:3] == [8, 2, 2]  # four ranges, whose logs are asked for twice; then one, as a step can hold
    assert await kept_by(quick, chain.chain_id) == await scanned(chain)


async def test_a_history_shorter_than_a_range_does_not_widen_it(quick: Store) -> None:
    chain = ScriptedChain(range_blocks_max=150)
    chain.grow(*([] for _ in range(3_000)))
    indexer = an_indexer(chain, quick)
    await run_dry(indexer)
    for _ in range(5):
        chain.grow(*([] for _ in range(INDEX_RING_BLOCKS + 20)))
        await run_dry(indexer)
    assert indexer.statistics().range_blocks <= 150 + 150 // 8 + 1


async def test_a_range_with_too_much_for_one_step_is_read_in_parts(
    quick: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cambist.engine.chain.index.reading.INDEX_STEP_ROWS_MAX", 30)
    chain = ScriptedChain()
    chain.grow(*([logs_of(n, n)] for n in range(200)), *([] for _ in range(INDEX_RING_BLOCKS)))
    indexer = an_indexer(chain, quick)
    await run_dry(indexer)
    assert indexer.statistics().refused > 0
    assert indexer.statistics().steps >= 200 // 30
    assert await kept_by(quick, chain.chain_id) == await scanned(chain)


async def test_a_node_that_refuses_one_block_is_the_nodes_fault(quick: Store) -> None:
    chain = ScriptedChain(range_blocks_max=0)
    chain.grow(*([] for _ in range(INDEX_RING_BLOCKS + 5)))
    indexer = an_indexer(chain, quick)
    with pytest.raises(LogsRefused):
        await run_dry(indexer)
    chain.range_blocks_max = 1_000
    await run_dry(indexer)
    assert (await cursor_of(quick)).block_hash == chain.head.hash


async def test_a_reorganisation_at_the_seam_of_history_is_followed(quick: Store) -> None:
    chain = ScriptedChain()
    chain.grow(*([logs_of(n, n)] for n in range(INDEX_RING_BLOCKS + 50)))
    indexer = an_indexer(chain, quick)
    await indexer.step()  # the cursor
    await indexer.step()  # history
    seam = indexer.statistics().block_number
    assert seam == chain.head.number - INDEX_RING_BLOCKS
    chain.cut(seam)
    chain.grow(*([logs_of(n, n)] for n in range(1_000, 1_010)))
    await run_dry(indexer)
    assert await kept_by(quick, chain.chain_id) == await scanned(chain)


# --- Deeper than the ring -------------------------------------------------------------------------------


async def test_a_reorganisation_as_deep_as_the_ring_is_followed_and_a_deeper_one_halts(quick: Store) -> None:
    chain = ScriptedChain()
    indexer = an_indexer(chain, quick)
    await run_dry(indexer)
    chain.grow(*([logs_of(n, n)] for n in range(300)))
    await run_dry(indexer)
    chain.cut(chain.head.number - (INDEX_RING_BLOCKS - 1))
    chain.grow(*([logs_of(n, n)] for n in range(1_000, 1_300)))
    await run_dry(indexer)
    assert indexer.statistics().deepest == INDEX_RING_BLOCKS - 1

    before = await kept_by(quick, chain.chain_id), await cursor_of(quick)
    was = list(chain.line)
    chain.cut(chain.head.number - INDEX_RING_BLOCKS)
    chain.grow(*([logs_of(n, n)] for n in range(2_000, 2_300)))
    assert not await indexer.step()
    halted = indexer.statistics()
    assert halted.state is IndexerState.HALTED
    assert "re-organised deeper" in halted.reason
    assert (await kept_by(quick, chain.chain_id), await cursor_of(quick)) == before

    now, chain.line = chain.line, was
    await run_dry(indexer)
    assert indexer.statistics().state is IndexerState.FOLLOWING, "the node was wrong, and is right again"
    chain.line = now
    await indexer.step()
    assert indexer.statistics().state is IndexerState.HALTED
    await rescan(chain, quick, 10, NOW_MS)
    await run_dry(indexer)
    assert indexer.statistics().state is IndexerState.FOLLOWING
    assert await kept_by(quick, chain.chain_id) == await scanned(chain)


async def test_a_chain_is_not_read_anew_from_where_nothing_was_read(quick: Store) -> None:
    """A rescan from beyond the last read block would skip blocks."""
    chain = ScriptedChain()
    chain.grow([], [], [])
    indexer = an_indexer(chain, quick)
    with pytest.raises(ValueError, match="up to block -1, not up to 0"):
        await rescan(chain, quick, 1, NOW_MS)
    await run_dry(indexer)
    for first in (-1, 5):
        with pytest.raises(ValueError, match="up to block 3"):
            await rescan(chain, quick, first, NOW_MS)
    await rescan(chain, quick, 4, NOW_MS)
    assert (await cursor_of(quick)).block_hash == chain.head.hash
    await rescan(chain, quick, 0, NOW_MS)
    await indexer.step()
    assert indexer.statistics().deepest == 4
    await run_dry(indexer)
    chain.cut(1)
    await rescan(chain, quick, 1, NOW_MS)  # of a chain that is shorter than what was read
    await run_dry(indexer)
    assert (await cursor_of(quick)).block_hash == chain.head.hash
    chain.grow([one(RFQ, a_fill_event())])
    await run_dry(indexer)
    assert await kept_by(quick, chain.chain_id) == await scanned(chain)


async def test_much_is_taken_back_step_by_step(quick: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cambist.engine.chain.index.indexer.INDEX_STEP_ROWS_MAX", 20)
    chain = ScriptedChain()
    chain.grow(*([logs_of(n, *range(7 * n, 7 * n + 7))] for n in range(60)))
    indexer = an_indexer(chain, quick)
    await run_dry(indexer)
    assert indexer.statistics().steps >= 60 * 6 // 20
    chain.cut(3)
    chain.grow([logs_of(1_000, 3)])
    await indexer.step()
    assert 3 < (await cursor_of(quick)).block_number < 60
    await run_dry(indexer)
    assert await kept_by(quick, chain.chain_id) == await scanned(chain)

    chain.grow(*([logs_of(n, *range(7 * n, 7 * n + 7))] for n in range(100, 130)))
    await run_dry(indexer)
    await rescan(chain, quick, 2, NOW_MS)
    tops = []
    with trio.fail_after(PATIENCE_S):
        while await indexer.step():
            tops.append((await cursor_of(quick)).block_number)
            rows = [row for rows in (await kept_by(quick, chain.chain_id)).values() for row in rows]
            assert max(row.block_number for row in rows) <= tops[-1]
    down = tops[: tops.index(min(tops))]
    assert len(down) > 5
    assert down == sorted(down, reverse=True)
    assert await kept_by(quick, chain.chain_id) == await scanned(chain)


async def test_a_block_with_more_than_a_step_takes_is_taken_back_whole(
    quick: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cambist.engine.chain.index.indexer.INDEX_STEP_ROWS_MAX", 5)
    chain = ScriptedChain()
    chain.grow(*([logs_of(n, *range(50 * n, 50 * n + 50))] for n in range(4)))
    indexer = an_indexer(chain, quick)
    await run_dry(indexer)
    chain.cut(1)
    chain.grow([logs_of(1_000, 3)])
    with trio.fail_after(PATIENCE_S):
        await run_dry(indexer)
        assert await kept_by(quick, chain.chain_id) == await scanned(chain)
        await rescan(chain, quick, 1, NOW_MS)
        await run_dry(indexer)
    assert await kept_by(quick, chain.chain_id) == await scanned(chain)


# --- Two indexers, and a store that is away -------------------------------------------------------------


async def test_two_indexers_of_one_chain_apply_everything_once(store: Store) -> None:
    chain = ScriptedChain()
    indexers = [an_indexer(chain, store), an_indexer(chain, store)]
    for round_ in range(6):
        chain.grow(*([logs_of(100 * round_ + n, 100 * round_ + n)] for n in range(20)))
        async with trio.open_nursery() as nursery:
            for indexer in indexers:
                nursery.start_soon(run_dry, indexer)
        assert await kept_by(store, chain.chain_id) == await scanned(chain)
        chain.cut(chain.head.number - 7)
    assert sum(indexer.statistics().lost for indexer in indexers) > 0
    assert (await cursor_of(store)).version > 6


async def test_a_store_that_is_away_is_tried_again(quick: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    chain = ScriptedChain()
    chain.grow([one(RFQ, a_fill_event())])
    indexer = an_indexer(chain, quick)
    await indexer.step()
    write, calls = quick.write, []

    async def lost(unit: Any) -> Any:
        """Write the unit and lose the acknowledgement."""
        calls.append(await write(unit))
        raise StoreUnavailable("the store process died")

    monkeypatch.setattr(quick, "write", lost)
    with pytest.raises(StoreUnavailable):
        await indexer.step()
    monkeypatch.setattr(quick, "write", write)
    await run_dry(indexer)
    assert await kept_by(quick, chain.chain_id) == await scanned(chain)
    assert len(calls) == 1
