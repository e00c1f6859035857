"""A relayer on every kind of store: effects are mined once, by one engine after the other."""

import pytest
import trio
from msgspec.structs import replace

from cambist.engine.chain.port import DevChain
from cambist.engine.store.queries import Query
from cambist.engine.store.rows import ChainTx, IntentState, TxStatus
from cambist.engine.store.store import Store
from cambist.engine.store.tables import CHAIN_TX
from cambist.engine.store.units import Duplicate, Unit, new, row_of
from support.chain.anvil import CHAIN_ID
from support.chain.relayer_nodes import KEY, effect, relaying, target
from support.patience import PATIENCE_S
from support.programs import program
from support.store.store_work import now_ms
from support.store.stores import Engine

COUNT = 4


@pytest.fixture
def chain() -> DevChain:
    """A chain with nothing on it that makes a block of each transaction."""
    program("pyrevm")
    from cambist.engine.dev.embedded.embedded import EmbeddedChain

    return EmbeddedChain(CHAIN_ID, lambda: now_ms() // 1_000, {KEY.address: 10**22})


async def kept(store: Store) -> list[ChainTx]:
    """Every transaction that was ever signed, in order."""
    columns = ", ".join(CHAIN_TX.columns)
    (rows,) = await store.read(Query(f"SELECT {columns} FROM chain_tx ORDER BY nonce, created_ms", ()))
    return [row_of(CHAIN_TX, row) for row in rows]


async def relay(chain: DevChain, store: Store, holder: str, numbers: range) -> None:
    """Have effects mined for good by an engine of that name, which then ends."""
    async with relaying(chain, store, holder=holder) as relayer:
        for number in numbers:
            await relayer.relay(*effect(number))
        with trio.fail_after(PATIENCE_S):
            for number in numbers:
                outcome = await relayer.wait(effect(number)[0], final=False)
                assert outcome.state in (IntentState.MINED, IntentState.FINAL)
            await chain.mine(3)
            for number in numbers:
                assert (await relayer.wait(effect(number)[0])).state == IntentState.FINAL


async def test_engines_one_after_the_other(chain: DevChain, engine: Engine) -> None:
    async with engine.open() as store:
        await relay(chain, store, "one", range(COUNT))
    async with engine.open() as store:
        await relay(chain, store, "two", range(2 * COUNT))
        rows = await kept(store)
        assert [(tx.nonce, tx.status) for tx in rows] == [(n, TxStatus.FINAL) for n in range(2 * COUNT)]
        second = replace(rows[0], tx_hash=b"\2" * 32, status=TxStatus.SIGNED)
        outcome = await store.write(Unit((new(CHAIN_TX, second),)))
        assert isinstance(outcome, Duplicate)
        assert (outcome.table, outcome.unique) == (CHAIN_TX.name, 1)
    assert [await chain.balance(target(number)) for number in range(2 * COUNT)] == [1] * (2 * COUNT)
    assert await chain.nonce(KEY.address) == 2 * COUNT
