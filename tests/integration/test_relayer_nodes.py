"""Each effect is mined once through dropped transactions, stuck fees, re-organisations and a node that is
restarted: on the embedded chain and on a real anvil, with a real store."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from cambist.codecs.transactions import Transaction, decode_transaction, sign_transaction
from cambist.engine.chain.port import DevChain, EthCall
from cambist.engine.chain.relay.relay_state import TOO_LATE
from cambist.engine.chain.relay.relayer import Relayer
from cambist.engine.dev.devnet.anvil import AnvilChain
from cambist.engine.store.queries import Query
from cambist.engine.store.rows import ChainTx, IntentCause, IntentState, TxStatus
from cambist.engine.store.store import Store
from cambist.engine.store.tables import CHAIN_TX
from cambist.engine.store.units import row_of
from support.chain.anvil import CHAIN_ID, Anvil, opened
from support.chain.relayer_nodes import CAP_WEI, GAS_MAX, GWEI, KEY, effect, relaying, target
from support.patience import PATIENCE_S, until_told
from support.programs import program
from support.store.store_work import now_ms, store_at

COUNT = 4


@pytest.fixture(params=["embedded", pytest.param("anvil", marks=pytest.mark.anvil)])
async def chain(request: pytest.FixtureRequest) -> AsyncIterator[DevChain]:
    """A chain with nothing on it that mines when it is told to."""
    if request.param == "embedded":
        program("pyrevm")
        from cambist.engine.dev.embedded.embedded import EmbeddedChain

        made: DevChain = EmbeddedChain(CHAIN_ID, lambda: now_ms() // 1_000, {KEY.address: 10**22})
        await made.set_automine(on=False)
        yield made
        return
    anvil: Anvil = request.getfixturevalue("anvil")
    async with opened(anvil) as chain:
        await chain.set_automine(on=False)
        yield chain


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    """A store of its own process."""
    async with store_at(f"sqlite:{tmp_path / 'relayer.sqlite3'}") as store:
        yield store


async def kept(store: Store) -> list[ChainTx]:
    """Every transaction that was ever signed, in order."""
    (rows,) = await store.read(
        Query(f"SELECT {', '.join(CHAIN_TX.columns)} FROM chain_tx ORDER BY nonce, created_ms", ())
    )
    return [row_of(CHAIN_TX, row) for row in rows]


async def submitted(relayer: Relayer, count: int = COUNT) -> list[str]:
    for number in range(count):
        await relayer.relay(*effect(number))
    return [effect(number)[0] for number in range(count)]


async def handed_in(chain: DevChain, store: Store, count: int = COUNT) -> None:
    """Return once so many transactions were taken by the node."""

    async def is_so() -> bool:
        return sum([await chain.knows(tx.tx_hash) for tx in await kept(store)]) >= count

    await until_told(is_so)


async def finish(chain: DevChain, relayer: Relayer, keys: list[str]) -> None:
    """Make blocks until all has ended."""

    async def is_so() -> bool:
        await chain.mine()
        outcomes = [await relayer.outcome(key) for key in keys]
        return all(outcome is not None and outcome.is_final for outcome in outcomes)

    await until_told(is_so)


async def check(chain: DevChain, store: Store, count: int = COUNT) -> list[ChainTx]:
    """Each effect was mined once, for no more than the cap. Returns what was signed."""
    assert [await chain.balance(target(number)) for number in range(count)] == [1] * count
    signed = await kept(store)
    for tx in signed:
        assert decode_transaction(tx.raw).transaction.fee_max_wei <= CAP_WEI
    ends = {tx.nonce: [other.status for other in signed if other.nonce == tx.nonce] for tx in signed}
    for statuses in ends.values():
        assert sorted(set(statuses) - {"REPLACED"}) == ["FINAL"]
        assert statuses.count(TxStatus.FINAL) == 1
    assert sorted(ends) == list(range(await chain.nonce(KEY.address)))
    return signed


async def test_mined_and_final(chain: DevChain, store: Store) -> None:
    async with relaying(chain, store) as relayer:
        keys = await submitted(relayer)
        await handed_in(chain, store)
        await chain.mine()
        with trio.fail_after(PATIENCE_S):
            outcome = await relayer.wait(keys[0], final=False)
        assert outcome.state == IntentState.MINED
        assert outcome.receipt is not None
        assert outcome.receipt.succeeded
        await finish(chain, relayer, keys)
        outcome = await relayer.wait(keys[0])
        assert (outcome.state, outcome.is_final) == (IntentState.FINAL, True)
    signed = await check(chain, store)
    assert len(signed) == COUNT


async def test_dropped_transactions_are_handed_in_again(
    chain: DevChain, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cambist.engine.chain.relay.relay_plan._AGAIN_MS", 500)
    async with relaying(chain, store) as relayer:
        keys = await submitted(relayer)
        await handed_in(chain, store)
        for tx in (await kept(store))[1:3]:
            await chain.drop(tx.tx_hash)
        await finish(chain, relayer, keys)
    await check(chain, store)


async def test_stuck_fees_are_bumped(chain: DevChain, store: Store) -> None:
    async with relaying(chain, store) as relayer:
        keys = await submitted(relayer)
        await handed_in(chain, store)
        fees = await chain.fees()
        await chain.set_base_fee(20 * fees.base_fee_wei)
        await chain.mine()
        await until_told(lambda: _has_bumped(relayer))
        await finish(chain, relayer, keys)
        assert relayer.statistics().counts["bumped"] >= 1
    signed = await check(chain, store)
    assert {tx.status for tx in signed} == {"FINAL", "REPLACED"}


async def _has_bumped(relayer: Relayer) -> bool:
    return relayer.statistics().counts["bumped"] >= 1


@pytest.mark.parametrize("depth", [1, 2])
async def test_a_reorganisation_is_mined_again(chain: DevChain, store: Store, depth: int) -> None:
    async with relaying(chain, store) as relayer:
        keys = await submitted(relayer)
        await handed_in(chain, store)
        await chain.mine(depth)
        with trio.fail_after(PATIENCE_S):
            for key in keys:
                await relayer.wait(key, final=False)
        await chain.reorganise(depth)
        assert await chain.nonce(KEY.address) == 0
        await until_told(lambda: _has_reorganised(relayer))
        await finish(chain, relayer, keys)
    signed = await check(chain, store)
    assert len({tx.nonce for tx in signed}) == COUNT


async def _has_reorganised(relayer: Relayer) -> bool:
    return relayer.statistics().counts["reorganised"] == COUNT


async def test_a_late_one_is_cancelled(chain: DevChain, store: Store) -> None:
    async with relaying(chain, store) as relayer:
        key, call = effect(0)
        deadline_s = now_ms() // 1_000 + 5
        await relayer.relay(key, call, deadline_s)
        await handed_in(chain, store, 1)
        await until_told(lambda: _is_filled(chain, store))
        await finish(chain, relayer, [key])
        outcome = await relayer.wait(key)
        assert (outcome.state, outcome.cause) == (IntentState.CANCELLED, IntentCause.DEADLINE)
        assert outcome.reason == TOO_LATE.words
    assert await chain.balance(target(0)) == 0


async def _is_filled(chain: DevChain, store: Store) -> bool:
    fillers = [tx.tx_hash for tx in await kept(store) if not tx.effect_key]
    return any([await chain.knows(tx_hash) for tx_hash in fillers])


async def test_what_the_node_refuses_for_good_has_failed_once_its_nonce_is_filled(
    chain: DevChain, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cambist.engine.chain.relay.relay_plan._AGAIN_MS", 500)
    async with relaying(chain, store) as relayer:
        await relayer.relay("too much", EthCall(target(0), b"", gas_max=GAS_MAX))
        keys = await submitted(relayer)
        await finish(chain, relayer, ["too much", *keys])
        outcome = await relayer.wait("too much")
        assert outcome.state == IntentState.FAILED
        assert "gas" in outcome.reason
    assert [await chain.balance(target(number)) for number in range(COUNT)] == [1] * COUNT


async def test_a_foreign_transaction_with_our_nonce(
    chain: DevChain, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cambist.engine.chain.relay.relay_plan._TAKEN_MS", 200)
    async with relaying(chain, store) as relayer:
        keys = await submitted(relayer)
        await handed_in(chain, store)
        foreign = Transaction(
            CHAIN_ID, 1, 40 * GWEI, 100 * GWEI, 21_000, b"\x0f" * 20, 7, b""
        )  # the same key, somebody else
        await chain.send_raw(sign_transaction(foreign, KEY).raw)
        await finish(chain, relayer, keys)
        assert relayer.statistics().counts["taken"] == 1
    assert await chain.balance(b"\x0f" * 20) == 7
    assert [await chain.balance(target(number)) for number in range(COUNT)] == [1] * COUNT


@pytest.mark.anvil
async def test_a_node_that_is_restarted(store: Store, tmp_path: Path) -> None:
    with Anvil(state=tmp_path / "anvil.json") as anvil:
        async with AnvilChain.open(CHAIN_ID, anvil.settings) as chain:
            await chain.set_automine(on=False)
            async with relaying(chain, store) as relayer:
                keys = await submitted(relayer)
                await handed_in(chain, store)
                await chain.mine()
                with trio.fail_after(PATIENCE_S):
                    await relayer.wait(keys[0], final=False)
                await trio.to_thread.run_sync(anvil.stop)
                for number in range(COUNT, 2 * COUNT):
                    await relayer.relay(*effect(number))
                    keys.append(effect(number)[0])
                await until_told(lambda: _is_away(relayer))
                await trio.to_thread.run_sync(anvil.start)
                await until_told(lambda: _is_back(relayer))
                await finish(chain, relayer, keys)
            await check(chain, store, 2 * COUNT)


async def _is_away(relayer: Relayer) -> bool:
    return bool(relayer.statistics().away)


async def _is_back(relayer: Relayer) -> bool:
    return not relayer.statistics().away
