"""The indexer names a node's wrong answer, stores no row of it, and its task goes on."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
import trio
import trio.testing
from msgspec.structs import replace

from cambist.config.errors import (
    BlockGone,
    NodeContradiction,
    NodeFault,
    NodeUnavailable,
)
from cambist.config.limits import INDEX_RING_BLOCKS
from cambist.config.timeouts import INDEX_LOOK_S
from cambist.engine.chain.index.indexer import IndexerState
from cambist.engine.chain.port import At, Header, Log, LogFilter, Receipt
from cambist.engine.store.store import Store
from support.chain.indexing import (
    RFQ,
    TOKEN,
    a_fill_event,
    an_indexer,
    cursor_of,
    kept_by,
    logs_of,
    one,
    run_dry,
    scanned,
    scanned_of,
    sqlite_engine,
)
from support.chain.scripted_chain import ScriptedChain


@pytest.fixture
async def quick(tmp_path: Path) -> AsyncIterator[Store]:
    """A store in this process: for what does not depend on the database."""
    async with sqlite_engine(tmp_path).open() as store:
        yield store


# --- Nodes that are wrong -------------------------------------------------------------------------------


class Behind(ScriptedChain):
    """Says that its head is some blocks lower, and has no others."""

    blocks = 0

    async def block(self, at: At = None) -> Header | None:
        seen = self.line[: len(self.line) - self.blocks]
        if at is None:
            return seen[-1].header
        return None if isinstance(at, int) and at >= len(seen) else await super().block(at)


class Boasting(ScriptedChain):
    """Says that its head is higher than it is."""

    async def block(self, at: At = None) -> Header | None:
        return replace(self.head, number=self.head.number + 5) if at is None else await super().block(at)


class Mixed(ScriptedChain):
    """Shows a block of another fork at one height."""

    async def block(self, at: At = None) -> Header | None:
        header = await super().block(at)
        if header and at == 3:
            return replace(header, hash=b"\x03" * 32)
        return header


class Confused(ScriptedChain):
    """Shows the block of another height."""

    async def block(self, at: At = None) -> Header | None:
        return await super().block(at - 1 if isinstance(at, int) and at > 2 else at)


class Changing(ScriptedChain):
    """Answers for logs with something done to them."""

    def changed(self, logs: list[Log]) -> list[Log]:
        raise NotImplementedError

    async def logs_of(self, wanted: LogFilter, block_hash: bytes) -> list[Log]:
        return self.changed(await super().logs_of(wanted, block_hash))

    async def logs(self, wanted: LogFilter, first: int, last: int) -> list[Log]:
        return self.changed(await super().logs(wanted, first, last))


class Foreign(Changing):
    def changed(self, logs: list[Log]) -> list[Log]:
        return [replace(log, block_hash=b"\x66" * 32) for log in logs]


class Unasked(Changing):
    def changed(self, logs: list[Log]) -> list[Log]:
        return [replace(log, address=TOKEN) for log in logs]


class Disordered(Changing):
    def changed(self, logs: list[Log]) -> list[Log]:
        return logs[::-1]


class Partial(Changing):
    def changed(self, logs: list[Log]) -> list[Log]:
        return [log for log in logs if log.log_index != 1]


class Garbled(Changing):
    """The receipts too: a contract of ours that is none."""

    def changed(self, logs: list[Log]) -> list[Log]:
        return [replace(log, data=b"") for log in logs]

    async def receipt(self, tx_hash: bytes) -> Receipt | None:
        there = await super().receipt(tx_hash)
        return there and replace(there, logs=tuple(self.changed(list(there.logs))))


class Forgetful(ScriptedChain):
    async def receipt(self, tx_hash: bytes) -> Receipt | None:
        return None


class Elsewhere(ScriptedChain):
    """Its receipts are of another fork."""

    async def receipt(self, tx_hash: bytes) -> Receipt | None:
        there = await super().receipt(tx_hash)
        return there and replace(there, block_hash=b"\x66" * 32)


class Hiding(ScriptedChain):
    """Hides a whole transaction from every second answer."""

    def __init__(self) -> None:
        super().__init__()
        self.answers = 0

    async def logs(self, wanted: LogFilter, first: int, last: int) -> list[Log]:
        self.answers += 1
        logs = await super().logs(wanted, first, last)
        return logs if self.answers % 2 else logs[3:]


class Moving(ScriptedChain):
    """The block at a height becomes another one while logs are read."""

    height = 0

    async def block(self, at: At = None) -> Header | None:
        header = await super().block(at)
        moved = header is not None and at == self.height and "logs" in self.asked
        return replace(header, hash=b"\x03" * 32) if header and moved else header


class Turning(ScriptedChain):
    """Changes to another branch between the answers for the first and the last block of a range.

    The fork is below all blocks that were read, and no block of the range has logs.
    """

    first = 0

    async def headers(self, numbers: Sequence[int]) -> list[Header]:
        headers = await super().headers(numbers)
        if "logs" not in self.asked:
            return headers
        return [
            replace(header, hash=bytes((7,)) * 32) if header.number == self.first else header
            for header in headers
        ]


class Pruned(ScriptedChain):
    """Node without logs of its first 300 blocks: ranges come back empty, and single blocks are refused."""

    async def logs(self, wanted: LogFilter, first: int, last: int) -> list[Log]:
        return [log for log in await super().logs(wanted, first, last) if log.block_number > 300]

    async def logs_of(self, wanted: LogFilter, block_hash: bytes) -> list[Log]:
        if block_hash in {block.header.hash for block in self.line[:301]}:
            raise BlockGone("block not found")
        return await super().logs_of(wanted, block_hash)


class Away(ScriptedChain):
    async def logs_of(self, wanted: LogFilter, block_hash: bytes) -> list[Log]:
        raise NodeUnavailable("nobody answers")


class Gone(ScriptedChain):
    """The block is re-organised away between its header and its logs."""

    async def logs_of(self, wanted: LogFilter, block_hash: bytes) -> list[Log]:
        raise BlockGone("no such block")


WRONG: list[tuple[type[ScriptedChain], NodeFault | type[Exception], int]] = [
    (Boasting, NodeFault.NO_BLOCK, 6),
    (Mixed, NodeFault.WRONG_PARENT, 6),
    (Confused, NodeFault.WRONG_BLOCK, 6),
    (Foreign, NodeFault.FOREIGN_LOG, 6),
    (Unasked, NodeFault.FOREIGN_LOG, 6),
    (Disordered, NodeFault.FOREIGN_LOG, 6),
    (Partial, NodeFault.LOGS_MISSING, 6),
    (Garbled, NodeFault.FOREIGN_LOG, 6),
    (Forgetful, NodeFault.NO_RECEIPT, 6),
    (Elsewhere, NodeFault.NO_RECEIPT, 6),
    (Away, NodeUnavailable, 6),
    (Gone, BlockGone, 6),
    (Mixed, NodeFault.FOREIGN_LOG, 400),
    (Foreign, NodeFault.FOREIGN_LOG, 400),
    (Unasked, NodeFault.FOREIGN_LOG, 400),
    (Disordered, NodeFault.FOREIGN_LOG, 400),
    (Partial, NodeFault.LOGS_MISSING, 400),
    (Forgetful, NodeFault.NO_RECEIPT, 400),
    (Hiding, NodeFault.LOGS_DIFFER, 400),
    (Pruned, NodeFault.LOGS_MISSING, 600),
]


@pytest.mark.parametrize(("lying", "fault", "blocks"), WRONG)
async def test_what_a_node_says_wrong_is_named_and_nothing_of_it_is_kept(
    quick: Store, lying: type[ScriptedChain], fault: NodeFault | type[Exception], blocks: int
) -> None:
    chain = lying()
    chain.grow(*([logs_of(n, 1, 2, 3)] for n in range(blocks)))
    indexer = an_indexer(chain, quick)
    await indexer.step()
    before = await cursor_of(quick)
    for _ in range(2):
        with pytest.raises((NodeContradiction, NodeUnavailable, BlockGone)) as caught:
            await indexer.step()
        if isinstance(caught.value, NodeContradiction):
            assert caught.value.fault is fault
        else:
            assert type(caught.value) is fault
    assert await cursor_of(quick) == before
    assert not any((await kept_by(quick, chain.chain_id)).values())

    right = ScriptedChain()
    right.line = chain.line
    await run_dry(an_indexer(right, quick))
    assert await kept_by(quick, chain.chain_id) == await scanned_of(chain)


async def test_a_range_whose_blocks_are_of_two_branches_is_not_kept(quick: Store) -> None:
    chain = Turning()
    chain.grow(*([] for _ in range(400)))
    indexer = an_indexer(chain, quick)
    await indexer.step()
    cursor = await cursor_of(quick)
    chain.first = cursor.block_number + 1
    with pytest.raises(NodeContradiction, match="was replaced during the read"):
        await indexer.step()
    assert await cursor_of(quick) == cursor


async def test_a_range_whose_end_is_re_organised_away_meanwhile_is_not_kept(quick: Store) -> None:
    chain = Moving()
    chain.grow([logs_of(1, 1)], *([] for _ in range(400)))
    chain.height = chain.head.number - INDEX_RING_BLOCKS
    indexer = an_indexer(chain, quick)
    await indexer.step()
    with pytest.raises(NodeContradiction, match="was replaced during the read"):
        await indexer.step()
    assert not any((await kept_by(quick, chain.chain_id)).values())


async def test_a_node_that_lags_takes_nothing_back(quick: Store) -> None:
    chain = Behind()
    chain.grow(*([logs_of(n, n)] for n in range(10)))
    indexer = an_indexer(chain, quick)
    await run_dry(indexer)
    before = await kept_by(quick, chain.chain_id)
    for chain.blocks in (1, 4, 11 - 1):
        with pytest.raises(NodeContradiction, match=f"lagging: .* {chain.blocks} behind the last read"):
            await indexer.step()
    chain.blocks = 0
    await run_dry(indexer)
    assert await kept_by(quick, chain.chain_id) == before
    assert indexer.statistics().reorganisations == 0


async def test_a_shorter_chain_with_other_blocks_is_no_lag(quick: Store) -> None:
    chain = ScriptedChain()
    chain.grow(*([logs_of(n, n)] for n in range(10)))
    indexer = an_indexer(chain, quick)
    await run_dry(indexer)
    chain.cut(4)
    chain.grow([logs_of(50, 50)])
    await run_dry(indexer)
    assert await kept_by(quick, chain.chain_id) == await scanned(chain)
    assert (await cursor_of(quick)).block_number == 5


class Shaky(ScriptedChain):
    """Gives no answer to every tenth question for logs."""

    async def logs_of(self, wanted: LogFilter, block_hash: bytes) -> list[Log]:
        logs = await super().logs_of(wanted, block_hash)
        if self.asked["logs_of"] % 10 == 0:
            raise NodeUnavailable("no answer")
        return logs

    async def logs(self, wanted: LogFilter, first: int, last: int) -> list[Log]:
        logs = await super().logs(wanted, first, last)
        if last - first >= 100:
            raise NodeUnavailable("too slow")
        return logs


async def test_where_much_at_once_always_fails_less_is_read_at_once(quick: Store) -> None:
    chain = Shaky()
    chain.grow(*([logs_of(n, n)] for n in range(900)))
    indexer = an_indexer(chain, quick)
    failed = 0
    while indexer.statistics().block_number < chain.head.number:
        try:
            await indexer.step()
        except NodeUnavailable:
            failed += 1
            assert failed < 100
    assert await kept_by(quick, chain.chain_id) == await scanned_of(chain)


async def test_after_a_failure_more_is_read_at_once_again(quick: Store) -> None:
    chain = Behind()
    indexer = an_indexer(chain, quick)
    await run_dry(indexer)
    chain.grow(*([logs_of(n, n)] for n in range(120)))
    good = chain.line
    chain.line = [good[0], replace(good[1], header=good[0].header), *good[2:]]
    for _ in range(8):
        with pytest.raises(NodeContradiction):
            await indexer.step()
    chain.line = good
    before = indexer.statistics().steps
    await run_dry(indexer)
    assert indexer.statistics().block_number == 120
    assert 4 < indexer.statistics().steps - before < 15, "one block, two, four"


# --- The task -------------------------------------------------------------------------------------------


async def test_the_task_wakes_with_a_head_and_goes_on_after_faults(
    quick: Store, autojump_clock: trio.testing.MockClock
) -> None:
    chain = Behind()
    indexer = an_indexer(chain, quick)
    async with trio.open_nursery() as nursery:
        await nursery.start(indexer.run)
        await trio.sleep(0.01)
        chain.grow([one(RFQ, a_fill_event())])
        await trio.sleep(0.01)
        assert indexer.statistics().block_hash == chain.head.hash, "woken, and not by looking"

        chain.blocks = 1
        await trio.sleep(10)
        lagging = indexer.statistics()
        assert (lagging.state, lagging.reason) == (
            IndexerState.FAILING,
            "lagging: the node is at block 0, 1 behind the last read",
        )
        assert lagging.faults.keys() == {"lagging"}
        assert 5 <= lagging.faults["lagging"] <= 25
        chain.blocks = 0
        await trio.sleep(10)
        assert (indexer.statistics().state, indexer.statistics().reason) == (IndexerState.FOLLOWING, "")
        nursery.cancel_scope.cancel()


class Silent(ScriptedChain):
    """Never announces a head."""

    async def wait_head(self, known: bytes) -> None:
        raise NodeUnavailable("no subscription")


class Endless(ScriptedChain):
    async def logs_of(self, wanted: LogFilter, block_hash: bytes) -> list[Log]:
        await trio.sleep_forever()
        raise AssertionError


async def test_a_head_that_nobody_announces_is_found_by_looking(
    quick: Store, autojump_clock: trio.testing.MockClock
) -> None:
    chain = Silent()
    indexer = an_indexer(chain, quick)
    async with trio.open_nursery() as nursery:
        await nursery.start(indexer.run)
        await trio.sleep(1)
        chain.grow([one(RFQ, a_fill_event())])
        await trio.sleep(2 * INDEX_LOOK_S)
        assert indexer.statistics().block_hash == chain.head.hash
        assert chain.asked["block"] < 20
        nursery.cancel_scope.cancel()


class Slow(ScriptedChain):
    async def logs_of(self, wanted: LogFilter, block_hash: bytes) -> list[Log]:
        await trio.sleep(20)
        return await super().logs_of(wanted, block_hash)


async def test_where_a_step_takes_too_long_less_is_read_at_once(
    quick: Store, autojump_clock: trio.testing.MockClock
) -> None:
    chain = Slow()
    chain.grow(*([] for _ in range(40)))
    indexer = an_indexer(chain, quick)
    async with trio.open_nursery() as nursery:
        await nursery.start(indexer.run)
        await trio.sleep(5_000)
        assert indexer.statistics().faults.keys() == {"slow"}
        assert indexer.statistics().block_hash == chain.head.hash
        nursery.cancel_scope.cancel()


async def test_a_step_that_never_ends_is_ended(quick: Store, autojump_clock: trio.testing.MockClock) -> None:
    chain = Endless()
    chain.grow([])
    indexer = an_indexer(chain, quick)
    async with trio.open_nursery() as nursery:
        await nursery.start(indexer.run)
        await trio.sleep(150)
        now = indexer.statistics()
        assert (now.state, now.faults) == (IndexerState.FAILING, {"slow": 2})
        nursery.cancel_scope.cancel()


class TwoMachines(ScriptedChain):
    """One URL with two machines: the one that tells the head is behind, the other shows every block."""

    is_split = False

    async def block(self, at: At = None) -> Header | None:
        if at is None and self.is_split:
            return self.line[1].header
        return await super().block(at)


async def test_a_head_below_the_last_block_read_is_no_end_of_catching_up(quick: Store) -> None:
    chain = TwoMachines()
    chain.grow(*([] for _ in range(400)))
    indexer = an_indexer(chain, quick)
    await indexer.step()
    await indexer.step()
    assert indexer.statistics().state is IndexerState.CATCHING_UP
    chain.is_split = True
    with pytest.raises(NodeContradiction, match="lagging"):
        await indexer.step()
