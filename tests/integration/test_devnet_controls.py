"""Methods that control a devnet's chain: each in every form of its numbers, in memory and kept in a file."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cambist.engine.dev.devnet.controls import Controls
from cambist.engine.dev.devnet.dispatch import answer
from cambist.engine.dev.devnet.facade import Methods
from cambist.engine.dev.embedded.embedded import EmbeddedChain
from cambist.engine.dev.embedded.kept import KeptChain
from support.chain.devnet import KEYS, NOW_S

pytestmark = pytest.mark.needs("pyrevm")

CHAIN_ID = 31_337
ACCOUNT = "0x" + "77" * 20
TRANSACTION = "0x" + "11" * 32
Form = Callable[[int], object]
FORMS: dict[str, Form] = {"number": int, "hexadecimal": hex}

CALLS: dict[str, Callable[[Form], list[list[Any]]]] = {
    "evm_mine": lambda form: [
        [], [form(NOW_S + 60)], [{"blocks": form(2)}], [{"timestamp": form(NOW_S + 90), "blocks": form(2)}]
    ],
    "anvil_mine": lambda form: [[], [form(2)], [form(2), form(30)]],
    "hardhat_mine": lambda form: [[], [form(2)], [form(2), form(30)]],
    "evm_increaseTime": lambda form: [[form(60)]],
    "anvil_increaseTime": lambda form: [[form(60)]],
    "evm_setNextBlockTimestamp": lambda form: [[form(NOW_S + 3_600)]],
    "anvil_setNextBlockTimestamp": lambda form: [[form(NOW_S + 3_600)]],
    "evm_snapshot": lambda _: [[]],
    "anvil_snapshot": lambda _: [[]],
    "evm_revert": lambda _: [["0x1"]],
    "anvil_revert": lambda _: [["0x1"]],
    "evm_setAutomine": lambda _: [[True], [False]],
    "anvil_setAutomine": lambda _: [[True], [False]],
    "anvil_getAutomine": lambda _: [[]],
    "hardhat_getAutomine": lambda _: [[]],
    "anvil_setBalance": lambda _: [[ACCOUNT, hex(10**20)]],
    "hardhat_setBalance": lambda _: [[ACCOUNT, hex(10**20)]],
    "anvil_setNextBlockBaseFeePerGas": lambda _: [[hex(7)]],
    "hardhat_setNextBlockBaseFeePerGas": lambda _: [[hex(7)]],
    "anvil_reorg": lambda form: [[form(1)], [form(2), []]],
    "anvil_dropTransaction": lambda _: [[TRANSACTION]],
    "hardhat_dropTransaction": lambda _: [[TRANSACTION]],
}  # fmt: skip
"""Each method with parameters in a form of numbers; quantities and hashes have one form alone."""


@asynccontextmanager
async def a_chain(path: Path | None) -> AsyncIterator[EmbeddedChain]:
    """A chain with a few blocks and a snapshot."""
    chain = (
        EmbeddedChain(CHAIN_ID, lambda: NOW_S, {})
        if path is None
        else await KeptChain.opened(path, CHAIN_ID, lambda: NOW_S)
    )
    try:
        if not (await chain.head()).header.number:
            await chain.set_balance(KEYS[0].address, 10**18)
            await chain.snapshot()
            await chain.mine(3)
        yield chain
    finally:
        if isinstance(chain, KeptChain):
            chain.close()


async def told_by(methods: Methods, name: str, parameters: list[Any]) -> Any:
    asked = {"jsonrpc": "2.0", "id": 1, "method": name, "params": parameters}
    return json.loads(await answer(msgspec.json.encode(asked), methods))


async def seen(chain: EmbeddedChain) -> object:
    """Headers of all blocks, and the balance of the account."""
    head = await chain.head()
    blocks = [await chain.full_block(number) for number in range(head.header.number + 1)]
    headers = [msgspec.to_builtins(block.header) for block in blocks if block]
    return headers, await chain.balance(bytes.fromhex(ACCOUNT[2:]))


def test_the_table_has_all_methods() -> None:
    assert Controls(EmbeddedChain(CHAIN_ID, lambda: NOW_S, {})).methods().keys() == CALLS.keys()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", CALLS)
async def test_a_kept_chain_takes_each_call_as_one_in_memory_does(
    tmp_path: Path, name: str, form: str
) -> None:
    path = tmp_path / "chain.jsonl"
    for parameters in CALLS[name](FORMS[form]):
        path.unlink(missing_ok=True)
        async with a_chain(None) as plain, a_chain(path) as kept:
            answers = [await told_by(Controls(each).methods(), name, parameters) for each in (plain, kept)]
            assert "error" not in answers[0], answers
            assert answers[0] == answers[1]
            await kept.mine()
            await plain.mine()
            before = await seen(kept)
            assert before == await seen(plain)
        async with a_chain(path) as again:
            assert await seen(again) == before
