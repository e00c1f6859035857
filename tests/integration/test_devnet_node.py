"""The embedded chain behind JSON-RPC: the port's own client works against it as against an anvil."""

from collections.abc import AsyncIterator

import pytest
import trio

from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.abi import decode_uint
from cambist.codecs.transactions import Transaction, sign_transaction
from cambist.config.errors import BlockGone, ChainError, RefusalKind, Reverted, TransactionRefused
from cambist.engine.chain.port import EthCall, LogFilter
from cambist.engine.chain.transact import transact
from support.chain.devnet import KEYS, NOW_S, Served, served_chain
from support.chain.world import mined
from support.patience import PATIENCE_S, until

pytestmark = pytest.mark.needs("pyrevm")

ETH = 10**18
ALICE, BOB = KEYS[2], KEYS[3]
NOBODY = b"\x77" * 20


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    async with served_chain() as chain:
        yield chain


def a_transfer(nonce: int = 0, **changed: int) -> Transaction:
    members = {"tip_wei": 10**9, "fee_max_wei": 3 * 10**9, "gas": 21_000, "value_wei": ETH} | changed
    return Transaction(
        chain_id=members.get("chain_id", 31_337),
        nonce=nonce,
        tip_wei=members["tip_wei"],
        fee_max_wei=members["fee_max_wei"],
        gas=members["gas"],
        to=NOBODY,
        value_wei=members["value_wei"],
        data=b"",
    )


async def test_blocks_fees_and_state_are_the_chains(served: Served) -> None:
    for at in (None, 0):
        assert await served.rpc.block(at) == await served.chain.block(at)
    assert await served.rpc.fees() == await served.chain.fees()
    assert await served.rpc.balance(ALICE.address) == 10_000 * ETH
    assert await served.rpc.block(5) is None
    assert await served.rpc.block(b"\x01" * 32) is None
    with pytest.raises(BlockGone):
        await served.rpc.balance(ALICE.address, b"\x01" * 32)


async def test_a_transaction_is_mined_and_told_alike(served: Served) -> None:
    receipt = await transact(served.rpc, ALICE, NOBODY, b"", value_wei=ETH)
    assert receipt == await served.chain.receipt(receipt.tx_hash)
    assert await served.rpc.balance(NOBODY) == ETH
    assert await served.rpc.balance(NOBODY, receipt.block_number - 1) == 0
    assert await served.rpc.nonce(ALICE.address) == 1
    assert await served.rpc.knows(receipt.tx_hash)
    assert not await served.rpc.knows(bytes(32))
    assert await served.rpc.receipt(bytes(32)) is None


@pytest.mark.parametrize(
    ("nonce", "changed", "kind"),
    [
        (0, {"value_wei": 10_001 * ETH}, RefusalKind.FUNDS),
        (0, {"fee_max_wei": 1, "tip_wei": 1}, RefusalKind.FEE_TOO_LOW),
        (0, {"gas": 20_999}, RefusalKind.GAS),
        (0, {"gas": 30_000_001}, RefusalKind.GAS),
        (0, {"chain_id": 1}, RefusalKind.INVALID),
        (0, {"tip_wei": 4 * 10**9}, RefusalKind.INVALID),
    ],
)
async def test_what_is_not_taken_is_refused_for_the_same_reason(
    served: Served, nonce: int, changed: dict[str, int], kind: RefusalKind
) -> None:
    raw = sign_transaction(a_transfer(nonce, **changed), ALICE).raw
    with pytest.raises(TransactionRefused) as refusal:
        await served.rpc.send_raw(raw)
    assert refusal.value.kind is kind


async def test_used_nonces_and_poor_replacements_are_refused(served: Served) -> None:
    first = sign_transaction(a_transfer(), ALICE)
    await served.rpc.set_automine(on=False)
    await served.rpc.send_raw(first.raw)
    assert await served.rpc.send_raw(first.raw) == first.tx_hash  # known already is as good as sent
    with pytest.raises(TransactionRefused) as poor:
        await served.rpc.send_raw(sign_transaction(a_transfer(value_wei=1), ALICE).raw)
    assert poor.value.kind is RefusalKind.UNDERPRICED
    await served.rpc.mine()
    assert await served.rpc.send_raw(first.raw) == first.tx_hash
    with pytest.raises(TransactionRefused) as used:
        await served.rpc.send_raw(sign_transaction(a_transfer(value_wei=2), ALICE).raw)
    assert used.value.kind is RefusalKind.NONCE_TOO_LOW


async def test_time_snapshots_and_dropped_transactions(served: Served) -> None:
    rpc = served.rpc
    await rpc.set_time(NOW_S + 100)
    await rpc.mine(2)
    head = await rpc.block()
    assert head is not None
    assert (head.number, head.time_s) == (2, NOW_S + 100)
    snapshot = await rpc.snapshot()
    await rpc.set_balance(NOBODY, 7)
    await rpc.mine()
    await rpc.restore(snapshot)
    assert await rpc.block() == head
    assert await rpc.balance(NOBODY) == 0
    with pytest.raises(ChainError):
        await rpc.restore(snapshot)
    await rpc.set_automine(on=False)
    tx_hash = await rpc.send_raw(sign_transaction(a_transfer(), ALICE).raw)
    await rpc.drop(tx_hash)
    assert not await rpc.knows(tx_hash)
    await rpc.set_base_fee(5 * 10**9)
    await rpc.mine()
    assert (await rpc.block() or head).base_fee_wei == 5 * 10**9


async def test_a_reorganisation_replaces_blocks(served: Served) -> None:
    raw = sign_transaction(a_transfer(), ALICE).raw
    tx_hash = await served.rpc.send_raw(raw)
    await served.rpc.mine(2)
    before = await served.rpc.receipt(tx_hash)
    assert before is not None
    await served.rpc.reorganise(3, [(raw, 1)])
    after = await served.rpc.receipt(tx_hash)
    assert after is not None
    assert (before.block_number, after.block_number) == (1, 2)
    with pytest.raises(BlockGone):
        await served.rpc.logs_of(LogFilter(), before.block_hash)


async def test_a_new_head_wakes(served: Served) -> None:
    head = await served.rpc.block()
    assert head is not None
    await until(lambda: served.rpc.statistics().heads.is_listening)
    await served.rpc.mine()
    await until(lambda: served.rpc.statistics().heads.heads)
    with trio.fail_after(PATIENCE_S):
        await served.rpc.wait_head(head.hash)


async def test_contracts_tokens_and_refusals() -> None:
    async with served_chain(is_furnished=True) as served:
        chain = served.rpc
        (usdc, weth) = [token async for token in _tokens(served)]
        for key in KEYS:
            assert await chain.balance(key.address) == 10_000 * ETH
            assert decode_uint(await chain.call(EthCall(usdc, calldata.balance_of(key.address)))) == 10**12
            assert decode_uint(await chain.call(EthCall(weth, calldata.balance_of(key.address)))) == 100 * ETH
        assert await chain.nonce(ALICE.address) == 0
        receipt = await transact(chain, ALICE, usdc, calldata.transfer(BOB.address, 5))
        assert receipt == await served.chain.receipt(receipt.tx_hash)
        number = receipt.block_number
        wanted = LogFilter((usdc,), ((receipt.logs[0].topics[0],),))
        assert await chain.logs(wanted, number, number) == list(receipt.logs)
        assert await chain.logs_of(wanted, receipt.block_hash) == list(receipt.logs)
        assert await chain.logs_of(LogFilter((weth,)), receipt.block_hash) == []
        too_much = EthCall(usdc, calldata.transfer(BOB.address, 10**30), ALICE.address)
        with pytest.raises(Reverted) as told:
            await served.chain.call(too_much)
        with pytest.raises(Reverted) as heard:
            await chain.call(too_much)
        assert (heard.value.reason, heard.value.data) == (told.value.reason, told.value.data)
        with pytest.raises(Reverted):
            await chain.estimate_gas(too_much)
        answers = await chain.call_many([too_much, EthCall(usdc, calldata.balance_of(BOB.address))])
        assert isinstance(answers[0], Reverted)
        assert answers[1] == (10**12 + 5).to_bytes(32, "big")
        sent = await mined(
            chain, await chain.send_raw(sign_transaction(a_transfer(1, gas=90_000), ALICE).raw)
        )
        assert sent.succeeded


async def _tokens(served: Served) -> AsyncIterator[bytes]:
    """USDC and WETH, found by what they emitted at the start."""
    logs = await served.chain.logs(LogFilter(), 0, 1_000)
    transfers = [log for log in logs if log.topics and int.from_bytes(log.data[:32], "big") == 10**12]
    yield transfers[0].address
    yield next(log.address for log in logs if int.from_bytes(log.data[:32], "big") == 1_000 * ETH)
