"""An embedded chain that a file brings back: the same blocks, states and pool after any life and any end."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.codecs.transactions import Transaction, sign_transaction
from cambist.config.errors import CambistError, ConfigError
from cambist.engine.dev.embedded.embedded import EmbeddedChain
from cambist.engine.dev.embedded.kept import KeptChain
from support.chain.devnet import KEYS, NOW_S

pytestmark = pytest.mark.needs("pyrevm")

ETH = 10**18
ALICE, BOB = KEYS[:2]
CHAIN_ID = 31_337


class Clock:
    """Wall clock of a test, Unix seconds."""

    def __init__(self) -> None:
        self.now_s = NOW_S

    def __call__(self) -> int:
        return self.now_s


@asynccontextmanager
async def opened(path: Path, clock: Clock) -> AsyncIterator[KeptChain]:
    chain = await KeptChain.opened(path, CHAIN_ID, clock)
    try:
        yield chain
    finally:
        chain.close()


def a_payment(nonce: int, wei: int = 1) -> bytes:
    payment = Transaction(CHAIN_ID, nonce, 10**9, 10**11, 21_000, BOB.address, wei, b"")
    return sign_transaction(payment, ALICE).raw


async def seen(chain: EmbeddedChain) -> object:
    """Headers of all blocks, waiting transactions and balances."""
    head = await chain.head()
    blocks = [await chain.full_block(number) for number in range(head.header.number + 1)]
    waiting = [(received.tx_hash, is_next) for received, is_next in await chain.waiting()]
    balances = [await chain.balance(key.address) for key in KEYS[:3]]
    return [msgspec.to_builtins(block.header) for block in blocks if block], waiting, balances


async def test_blocks_state_and_waiting_transactions_are_there_again(tmp_path: Path) -> None:
    path, clock = tmp_path / "state" / "chain.jsonl", Clock()
    async with opened(path, clock) as chain:
        await chain.set_balance(ALICE.address, 10 * ETH)
        await chain.send_raw(a_payment(0))
        clock.now_s += 60
        await chain.send_raw(a_payment(1))
        await chain.set_automine(on=False)
        await chain.send_raw(a_payment(2))
        await chain.send_raw(a_payment(4))
        before = await seen(chain)
    clock.now_s += 3_600
    async with opened(path, clock) as chain:
        assert await seen(chain) == before
        await chain.mine()
        head = await chain.head()
        assert (head.header.number, head.header.time_s) == (3, clock.now_s)
        assert len(head.transactions) == 1
    assert path.stat().st_mode & 0o777 == 0o600


async def test_a_line_that_a_killed_process_did_not_end_is_forgotten(tmp_path: Path) -> None:
    path, clock = tmp_path / "chain.jsonl", Clock()
    async with opened(path, clock) as chain:
        await chain.mine(2)
        before = await seen(chain)
    with path.open("ab") as file:
        file.write(b'{"at":1800000000,"do":"mi')
    async with opened(path, clock) as chain:
        assert await seen(chain) == before
        await chain.mine()
    async with opened(path, clock) as chain:
        assert (await chain.head()).header.number == 3


async def test_a_file_has_one_owner_and_one_chain(tmp_path: Path) -> None:
    path, clock = tmp_path / "chain.jsonl", Clock()
    async with opened(path, clock):
        with pytest.raises(ConfigError, match="is in use by another process"):
            await KeptChain.opened(path, CHAIN_ID, clock)
    with pytest.raises(ConfigError, match="is not of chain 31338"):
        await KeptChain.opened(path, CHAIN_ID + 1, clock)
    for content in (b"hello\n", b'{"at":1,"do":"mine","with":[1]}\n', b'{"at":"x"}\n'):
        path.write_bytes(content)
        with pytest.raises(ConfigError, match="is not a chain's file"):
            await KeptChain.opened(path, CHAIN_ID, clock)


async def test_a_change_that_the_disk_does_not_take_is_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, clock = tmp_path / "chain.jsonl", Clock()
    async with opened(path, clock) as chain:
        await chain.mine()
        write = os.write
        monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:5]))
        with pytest.raises(CambistError, match="the disk may be full"):
            await chain.mine()
        monkeypatch.undo()
        assert (await chain.head()).header.number == 1
    async with opened(path, clock) as chain:
        assert (await chain.head()).header.number == 1


Step = Callable[[KeptChain, Random], Awaitable[object]]


async def _send(chain: KeptChain, random: Random) -> None:
    await chain.send_raw(a_payment(random.randint(0, 6), random.randint(0, 3)))


async def _reorganise(chain: KeptChain, random: Random) -> None:
    await chain.reorganise(random.randint(1, 3), [(a_payment(random.randint(0, 3)), 0)])


STEPS: dict[str, Step] = {
    "send": _send,
    "mine": lambda chain, random: chain.mine(random.randint(0, 2)),
    "switch": lambda chain, random: chain.set_automine(on=random.random() < 0.5),
    "jump": lambda chain, random: chain.pass_time(random.randint(0, 50)),
    "fund": lambda chain, random: chain.set_balance(ALICE.address, random.randint(0, ETH)),
    "fee": lambda chain, random: chain.set_base_fee(random.randint(1, 10**10)),
    "save": lambda chain, random: chain.snapshot(),
    "back": lambda chain, random: chain.restore(random.randint(1, 3)),
    "fork": _reorganise,
}


@given(steps=st.lists(st.sampled_from(sorted(STEPS)), min_size=5, max_size=40), seed=st.integers(0, 2**32))
async def test_any_life_is_lived_again(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str], seed: int
) -> None:
    path, clock, random = tmp_path_factory.mktemp("life") / "chain.jsonl", Clock(), Random(seed)
    async with opened(path, clock) as chain:
        await chain.set_balance(ALICE.address, ETH)
        for step in steps:
            clock.now_s += random.randint(0, 20)
            try:
                await STEPS[step](chain, random)
            except CambistError:
                continue
        before = await seen(chain)
    clock.now_s += 1_000
    async with opened(path, clock) as chain:
        assert await seen(chain) == before
