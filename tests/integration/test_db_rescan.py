"""`cambist db rescan`: a chain is read anew from a block on, once its indexer runs again."""

import subprocess
import sys
from pathlib import Path

import trio

from cambist.config.sections.nodes import NodeSettings
from cambist.engine.chain.index.applied import IndexedContracts
from cambist.engine.chain.index.indexer import IndexerState, IndexerStatistics
from cambist.engine.chain.nodes.rpc import RpcChain
from support.chain.indexing import an_indexer, run_dry, sqlite_engine
from support.chain.scripted_rpc import ScriptedRpc, scripted_rpc
from support.patience import STORY_S


async def test_blocks_are_read_anew_from_the_one_that_is_named(tmp_path: Path) -> None:
    async with scripted_rpc() as node:
        (tmp_path / "cambist.toml").write_text(
            f'[store]\nurl = "sqlite:cambist.sqlite3"\n[chains.1.node]\nurls = ["{node.url}"]\n'
        )
        assert (await indexed(tmp_path, node)).blocks == 10
        refused = await rescan(tmp_path, 12)
        assert refused.returncode == 2
        assert b"chain 1 was read up to block 10, not up to 11" in refused.stderr
        done = await rescan(tmp_path, 4)
        assert (done.returncode, done.stdout) == (0, b"chain 1 will be read anew from block 4 on\n")
        now = await indexed(tmp_path, node)
        assert (now.deepest, now.blocks, now.state) == (7, 7, IndexerState.FOLLOWING)


async def indexed(folder: Path, node: ScriptedRpc) -> IndexerStatistics:
    """Read the chain up to its head, on the store of that folder."""
    async with (
        RpcChain.open(1, NodeSettings(urls=(node.url,))) as chain,
        sqlite_engine(folder).open() as store,
    ):
        indexer = an_indexer(chain, store, contracts=IndexedContracts(rfq=bytes(20)), first_block=1)
        await run_dry(indexer)
        return indexer.statistics()


async def rescan(folder: Path, first_block: int) -> "subprocess.CompletedProcess[bytes]":
    named = ["--config", str(folder / "cambist.toml"), "--chain", "1", "--from", str(first_block)]
    with trio.fail_after(STORY_S):
        return await trio.run_process(
            [sys.executable, "-m", "cambist", "db", "rescan", *named],
            check=False,
            capture_stdout=True,
            capture_stderr=True,
        )
