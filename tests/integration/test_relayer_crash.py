"""kill -9 of a relayer between signing and handing in, and after handing in, on a real store and a real node:
its successor hands in the same bytes, and they are mined once.
"""

import signal
from pathlib import Path
from tempfile import TemporaryFile

import pytest
import trio

from cambist.engine.dev.devnet.anvil import AnvilChain
from cambist.engine.store.queries import open_transactions
from cambist.engine.store.rows import ChainTx
from cambist.engine.store.tables import CHAIN_TX
from cambist.engine.store.units import row_of
from support.chain.anvil import CHAIN_ID, Anvil
from support.chain.relayer_nodes import KEY, target
from support.patience import STORY_S
from support.store.store_work import store_at
from support.warm_processes import warm_process

pytestmark = pytest.mark.anvil

EFFECTS = 3


async def run_program(store_url: str, anvil: Anvil, where: str) -> tuple[int, list[str]]:
    """(exit status, what it said)."""
    with TemporaryFile() as said:
        arguments = (store_url, anvil.url, where, str(EFFECTS))
        process = await warm_process("support.chain.relayer_nodes:main", *arguments, stdout=said)
        try:
            with trio.fail_after(STORY_S):
                status = await process.ended()
        finally:
            process.kill()
        said.seek(0)
        return status, said.read().decode().splitlines()


async def kept(store_url: str) -> list[ChainTx]:
    """The signed transactions whose end is not known."""
    async with store_at(store_url) as store:
        (rows,) = await store.read(open_transactions(CHAIN_ID, KEY.address))
    return [row_of(CHAIN_TX, row) for row in rows]


@pytest.mark.parametrize(("where", "handed_in"), [("signed", 0), ("sent", 1)])
async def test_the_same_bytes_are_mined_once(
    anvil: Anvil, anvil_chain: AnvilChain, tmp_path: Path, where: str, handed_in: int
) -> None:
    store_url = f"sqlite:{tmp_path / 'relayer.sqlite3'}"
    await anvil_chain.set_automine(on=False)
    status, said = await run_program(store_url, anvil, where)
    assert (status, said[-1]) == (-signal.SIGKILL, f"died {where}")
    before = await kept(store_url)
    assert [tx.nonce for tx in before] == list(range(len(before)))
    assert before
    assert {tx.status for tx in before} == {"SIGNED"}
    assert [await anvil_chain.knows(tx.tx_hash) for tx in before].count(True) == handed_in

    await anvil_chain.set_automine(on=True)
    status, said = await run_program(store_url, anvil, "never")
    assert status == 0
    mined = [line.split()[-1] for line in said if line.startswith("mined")]
    assert len(mined) == len(set(mined)) == EFFECTS
    assert {tx.tx_hash.hex() for tx in before} <= set(mined)
    assert await anvil_chain.nonce(KEY.address) == EFFECTS
    assert [await anvil_chain.balance(target(number)) for number in range(EFFECTS)] == [1] * EFFECTS
