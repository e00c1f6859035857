"""A transaction, sent and waited for: a failure is reported before sending, or after mining, within the
time limit.
"""

from typing import Any, cast

import pytest
import trio
from trio.testing import MockClock

from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.abi import address_word, selector
from cambist.config.errors import ChainError, RefusalKind, Reverted, TransactionRefused
from cambist.config.timeouts import TRANSACTION_S
from cambist.engine.chain.artifacts import known_errors
from cambist.engine.chain.port import Chain, DevChain
from cambist.engine.chain.transact import transact
from cambist.engine.dev.embedded.embedded import EmbeddedChain
from support.chain.anvil import CHAIN_ID
from support.chain.world import ONE, USDC, World, mined, person
from support.contracts.swapping import told

MINT = selector("mint(address,uint256)")


class _MinesWhatIsSent:
    """A chain of which each transaction that is handed in makes a block, with what waits before it."""

    def __init__(self, chain: DevChain) -> None:
        self._chain = chain

    def __getattr__(self, name: str) -> Any:
        return getattr(self._chain, name)

    async def send_raw(self, raw: bytes) -> bytes:
        tx_hash = await self._chain.send_raw(raw)
        await self._chain.mine()
        return tx_hash


async def test_what_would_fail_is_not_sent(world: World) -> None:
    nonce = await world.chain.nonce(world.user.address)
    with pytest.raises(Reverted) as refusal:
        await transact(world.chain, world.user, world.usdc, calldata.transfer(world.taker.address, 1))
    assert refusal.value.reason == told("InsufficientBalance", owner=world.user.address, balance=0)
    assert await world.chain.nonce(world.user.address) == nonce


async def test_what_is_mined_and_fails_says_why(world: World) -> None:
    nonce = await world.chain.nonce(world.user.address)
    with pytest.raises(Reverted) as refusal:
        await transact(
            world.chain,
            world.user,
            world.usdc,
            calldata.transfer(world.taker.address, 1),
            gas=100_000,
        )
    assert refusal.value.reason == told("InsufficientBalance", owner=world.user.address, balance=0)
    assert await world.chain.nonce(world.user.address) == nonce + 1


@pytest.mark.one_chain
async def test_what_fails_by_another_of_its_own_block_says_so(world: World) -> None:
    await world.mint(world.usdc, world.maker, USDC)
    await world.approve(world.maker, world.usdc, world.user.address, USDC)
    await world.approve(world.maker, world.usdc, world.taker.address, USDC)
    take = calldata.transfer_from(world.maker.address, world.user.address, USDC)
    await world.chain.set_automine(on=False)
    first = await world.signed_tx(world.user, world.usdc, take)
    await world.chain.send_raw(first.raw)
    with pytest.raises(
        Reverted, match="the transaction failed when mined; its call on the block before succeeds"
    ):
        await transact(cast("Chain", _MinesWhatIsSent(world.chain)), world.taker, world.usdc, take)
    assert await world.balance(world.usdc, world.user) == USDC


async def test_an_account_without_gas_money_is_told_so(world: World) -> None:
    poor = person(42)
    await world.mint(world.usdc, poor, 1)
    with pytest.raises(TransactionRefused) as refusal:
        await transact(world.chain, poor, world.usdc, calldata.transfer(world.user.address, 1))
    assert refusal.value.kind is RefusalKind.FUNDS


async def test_too_little_gas_is_a_failure_that_was_mined(world: World) -> None:
    words = address_word(world.user.address) + USDC.to_bytes(32, "big")
    with pytest.raises(Reverted):
        await transact(world.chain, world.user, world.usdc, MINT + words, gas=30_000)
    assert await world.balance(world.usdc, world.user) == 0


async def test_what_is_not_mined_in_time_is_given_up(autojump_clock: MockClock) -> None:
    key = person(0)
    chain = EmbeddedChain(CHAIN_ID, lambda: 1_700_000_000, {key.address: ONE}, known_errors())
    await chain.set_automine(on=False)
    began = trio.current_time()
    with pytest.raises(ChainError, match="was not mined in 60 s; it may still be"):
        await transact(chain, key, person(1).address, b"", value_wei=1)
    assert trio.current_time() - began == pytest.approx(TRANSACTION_S)
    await chain.mine()
    assert await chain.balance(person(1).address) == 1  # the transaction could still be mined, and was


async def test_what_is_mined_late_is_waited_for(autojump_clock: MockClock) -> None:
    key = person(0)
    chain = EmbeddedChain(CHAIN_ID, lambda: 1_700_000_000, {key.address: ONE}, known_errors())
    await chain.set_automine(on=False)

    async def mine_late() -> None:
        await trio.sleep(TRANSACTION_S - 1)
        await chain.mine()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(mine_late)
        receipt = await transact(chain, key, person(1).address, b"", value_wei=1)
    assert receipt.succeeded
    assert await mined(chain, receipt.tx_hash) == receipt
