"""Accounts whose moved funds an indexer reports, if several read one chain for different orders."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio

from cambist.codecs.contracts import contract_events as events
from cambist.codecs.contracts.abi import address_word, uint_word
from cambist.config.errors import ChainError, NodeContradiction, NodeUnavailable, StoreUnavailable
from cambist.config.limits import INDEX_STEP_BLOCKS_MAX
from cambist.engine.chain.index.watch import Watch, WatchedAccount
from cambist.engine.chain.port import Log, LogFilter
from cambist.engine.store.store import Store
from support.chain.indexing import DELTA, TOKEN, Told, an_indexer, one, run_dry, sqlite_engine
from support.chain.scripted_chain import ScriptedChain, Sent, tx
from support.store.stores import ALICE, BOB, CAROL

NATIVE_IN = (events.NATIVE_DEPOSITED, address_word(ALICE)), uint_word(5)
NATIVE_OUT = (events.NATIVE_WITHDRAWN, address_word(ALICE)), address_word(BOB) + uint_word(5)
BOTH = {(TOKEN, ALICE), (TOKEN, BOB)}


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    """A store in this process."""
    async with sqlite_engine(tmp_path).open() as store:
        yield store


class Failing(ScriptedChain):
    """A chain that may answer no question about logs."""

    failure: ChainError | None = None

    async def logs_of(self, wanted: LogFilter, block_hash: bytes) -> list[Log]:
        if self.failure is not None:
            raise self.failure
        return await super().logs_of(wanted, block_hash)


class Side:
    """An indexer that follows ALICE and BOB and has told of both, on a chain that others may read too."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.chain = Failing()
        self.told = Told()
        self.watch = Watch()
        for token, owner in BOTH:
            self.watch.follow(token, owner)
        self.indexer = an_indexer(self.chain, store, watch=self.watch, told=self.told)

    async def other_reads(self) -> None:
        """Another indexer reads to the head."""
        await run_dry(an_indexer(self.chain, self.store))

    async def tells(self) -> set[WatchedAccount]:
        """Accounts that this indexer reports after reading to the head."""
        await run_dry(self.indexer)
        return self.told.taken()


@pytest.fixture
async def side(store: Store) -> Side:
    side = Side(store)
    assert await side.tells() == BOTH
    return side


def a_move(owner: bytes) -> Sent:
    return one(TOKEN, events.Transfer(owner, CAROL, 1), b"of " + owner)


async def test_what_another_indexer_read_is_told_of_those_that_it_touched(side: Side) -> None:
    side.chain.grow([], [a_move(ALICE)], [])
    await side.other_reads()
    assert await side.tells() == {(TOKEN, ALICE)}
    side.chain.grow([], [])
    await side.other_reads()
    assert await side.tells() == set()
    side.chain.grow([])
    await side.other_reads()
    side.chain.grow([a_move(BOB)])
    assert await side.tells() == {(TOKEN, BOB)}


async def test_of_two_that_read_at_the_same_time_none_tells_of_everybody(store: Store) -> None:
    chain, watches, told = ScriptedChain(), [Watch(), Watch()], [Told(), Told()]
    for number, watch in enumerate(watches):
        for owner in range(50):
            watch.follow(TOKEN, bytes([number]) * 4 + owner.to_bytes(16, "big"))
        watch.follow(TOKEN, ALICE)
    indexers = [an_indexer(chain, store, watch=watches[side], told=told[side]) for side in (0, 1)]
    for indexer in indexers:
        await run_dry(indexer)
    assert [len(some.taken()) for some in told] == [51, 51]
    for number in range(12):
        chain.grow([a_move(ALICE)] if number % 3 == 0 else [])
        asked = chain.asked["logs_of"]
        async with trio.open_nursery() as nursery:
            for indexer in indexers:
                nursery.start_soon(run_dry, indexer)
        expected = {(TOKEN, ALICE)} if number % 3 == 0 else set()
        assert [some.taken() for some in told] == [expected, expected]
        assert chain.asked["logs_of"] - asked <= 4, "what the slower one read in vain is not read again"
    assert sum(indexer.statistics().lost for indexer in indexers) > 0


@pytest.mark.parametrize("by", ["depth", "fork", "answer"])
async def test_everybody_is_told_of_where_nobody_can_say_whom_it_touched(side: Side, by: str) -> None:
    side.chain.grow([], [])
    assert await side.tells() == set()
    if by == "fork":
        side.chain.cut(1)
    side.chain.grow(*([] for _ in range(INDEX_STEP_BLOCKS_MAX + 1 if by == "depth" else 2)))
    await side.other_reads()
    side.chain.failure = ChainError("no such question") if by == "answer" else None
    assert await side.tells() == BOTH


async def test_a_node_that_is_away_or_behind_is_no_reason_to_tell_of_everybody(side: Side) -> None:
    side.chain.grow([a_move(ALICE)], [])
    await side.other_reads()
    side.chain.failure = NodeUnavailable("nobody answers")
    with pytest.raises(NodeUnavailable):
        await side.tells()
    side.chain.failure = None
    line = side.chain.line
    side.chain.line = line[:-1]
    with pytest.raises(NodeContradiction, match="lagging"):
        await side.tells()
    side.chain.line = line
    assert await side.tells() == {(TOKEN, ALICE)}


async def test_a_deposit_is_told_of_once_its_step_is_durable_whoever_wrote_that(
    side: Side, monkeypatch: pytest.MonkeyPatch
) -> None:
    deposit = DELTA, ALICE
    side.watch.follow(*deposit)
    assert await side.tells() == {deposit}
    side.chain.grow([tx(b"in", (DELTA, NATIVE_IN))])

    async def away(_: Any) -> Any:
        raise StoreUnavailable("the store process died")

    with monkeypatch.context() as patch:
        patch.setattr(side.store, "write", away)
        with pytest.raises(StoreUnavailable):
            await side.tells()
        assert side.told.pairs == []
    assert await side.tells() == {deposit}
    side.chain.grow([tx(b"out", (DELTA, NATIVE_OUT))])
    await side.other_reads()
    assert await side.tells() == {deposit}
