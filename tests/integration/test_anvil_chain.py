"""The port over JSON-RPC, method by method, on a real node: an anvil."""

import time
from collections.abc import Sequence
from pathlib import Path

import pytest
import trio

from cambist.codecs.transactions import SignedTransaction, Transaction, contract_address, sign_transaction
from cambist.config.errors import (
    BlockGone,
    ChainError,
    ConfigError,
    NodeUnavailable,
    RefusalKind,
    Reverted,
    TransactionRefused,
)
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.chain.nodes.logs_bloom import bloom_of
from cambist.engine.chain.nodes.rpc_values import read_block
from cambist.engine.chain.port import DevChain, EthCall, Header, LogFilter, Receipt
from cambist.engine.dev.devnet.anvil import AnvilChain, anvil_command, running_anvil
from support.chain.anvil import CHAIN_ID, KEYS, OTHER_CHAIN_ID, Anvil, opened, until_up
from support.patience import PATIENCE_S, until
from support.programs import program

pytestmark = pytest.mark.anvil

ALICE, BOB = (SigningKey(bytes.fromhex(key)) for key in KEYS[:2])
TO = b"\x0b" * 20
TOPIC = b"\x70" * 32
GWEI = 10**9
# The contract logs its call data; without data it reverts with the word 0xdeadbeef.
EMITTER = bytes.fromhex("3660105763deadbeef5f526004601cfd5b365f5f377f" + TOPIC.hex() + "365fa100")
DEPLOY = bytes.fromhex(f"60{len(EMITTER):02x}80600a5f395ff3fe") + EMITTER


def signed(
    nonce: int, *, key: SigningKey = ALICE, to: bytes = TO, data: bytes = b"", wei: int = 1, fee: int = 10,
    tip: int = 1, gas: int = 200_000, chain_id: int = CHAIN_ID,
) -> SignedTransaction:  # fmt: skip
    """Fees in gwei."""
    return sign_transaction(Transaction(chain_id, nonce, tip * GWEI, fee * GWEI, gas, to, wei, data), key)


async def mined(chain: AnvilChain, sent: SignedTransaction) -> Receipt:
    """Send it; return once it is mined."""
    assert await chain.send_raw(sent.raw) == sent.tx_hash
    with trio.fail_after(PATIENCE_S):
        while True:
            receipt = await chain.receipt(sent.tx_hash)
            if receipt is not None:
                return receipt


async def header(chain: AnvilChain, at: bytes | int | None = None) -> Header:
    found = await chain.block(at)
    assert found is not None
    return found


async def emitter(chain: AnvilChain) -> bytes:
    """Deploys the contract of these tests, with Alice's first transaction."""
    address = contract_address(ALICE.address, 0)
    receipt = await mined(chain, signed(0, to=b"", data=DEPLOY, wei=0))
    assert (receipt.succeeded, receipt.contract) == (True, address)
    return address


async def test_state_and_receipts(anvil_chain: AnvilChain) -> None:
    chain: DevChain = anvil_chain
    genesis = await header(anvil_chain)
    assert (chain.chain_id, genesis.number) == (CHAIN_ID, 0)
    before = await chain.balance(ALICE.address)
    sent = signed(0, wei=5)
    receipt = await mined(anvil_chain, sent)
    head = await header(anvil_chain)
    assert (head.number, head.parent_hash) == (1, genesis.hash)
    assert receipt == Receipt(sent.tx_hash, True, 1, head.hash, 0, 21_000, head.base_fee_wei + GWEI, None, ())
    assert await chain.nonce(ALICE.address) == 1
    assert await chain.balance(TO) == 5
    assert await chain.balance(ALICE.address) == before - 5 - 21_000 * receipt.gas_price_wei
    for at in (genesis.hash, 0):
        assert await chain.nonce(ALICE.address, at) == 0
        assert await chain.balance(TO, at) == 0
        assert await chain.block(at) == genesis
    assert await chain.receipt(b"\1" * 32) is None
    assert (await chain.knows(sent.tx_hash), await chain.knows(b"\1" * 32)) == (True, False)


async def test_calls_and_gas(anvil_chain: AnvilChain) -> None:
    chain = anvil_chain
    address = await emitter(chain)
    assert await chain.code(address) == EMITTER
    assert await chain.code(address, 0) == b""
    assert await chain.call(EthCall(address, b"x")) == b""
    with pytest.raises(Reverted) as caught:
        await chain.call(EthCall(address, b""))
    assert caught.value.data == bytes.fromhex("deadbeef")
    with pytest.raises(Reverted):
        await chain.estimate_gas(EthCall(address, b""))
    gas = await chain.estimate_gas(EthCall(address, b"x", ALICE.address))
    assert (await mined(chain, signed(1, to=address, data=b"x", wei=0))).gas_used <= gas
    answers = await chain.call_many([EthCall(address, b"x"), EthCall(address, b""), EthCall(TO, b"")] * 40)
    assert len(answers) == 120
    assert answers[0] == answers[2] == b""
    assert isinstance(answers[1], Reverted)
    assert await chain.call_many([EthCall(address, b"")], at=0) == [b""]  # the contract did not exist yet
    assert await chain.call_many([]) == []
    with pytest.raises(Reverted):
        await chain.call(EthCall(TO, b"", TO, value_wei=10**30))


async def test_fees(anvil_chain: AnvilChain) -> None:
    fees = await anvil_chain.fees()
    await anvil_chain.mine()
    assert (await header(anvil_chain)).base_fee_wei == fees.base_fee_wei
    assert fees.tip_wei == GWEI
    await anvil_chain.set_base_fee(3 * GWEI)
    await anvil_chain.mine()
    assert (await header(anvil_chain)).base_fee_wei == 3 * GWEI


async def test_logs_and_their_bloom(anvil_chain: AnvilChain) -> None:
    chain = anvil_chain
    address = await emitter(chain)
    receipts = [
        await mined(chain, signed(nonce, to=address, data=b"%d" % nonce, wei=0)) for nonce in (1, 2, 3)
    ]
    head = await header(chain)
    wanted = LogFilter((address,), ((TOPIC,),))
    everything = [log for receipt in receipts for log in receipt.logs]
    assert [log.data for log in everything] == [b"1", b"2", b"3"]
    assert await chain.logs(wanted, 0, head.number) == everything
    assert await chain.logs(LogFilter(), 0, head.number) == everything
    assert await chain.logs(wanted, head.number, head.number) == everything[-1:]
    assert await chain.logs(wanted, 1, 0) == []
    assert await chain.logs(LogFilter((TO,)), 0, head.number) == []
    assert await chain.logs(LogFilter((address,), ((b"\1" * 32,),)), 0, head.number) == []
    for receipt in receipts:
        assert await chain.logs_of(wanted, receipt.block_hash) == list(receipt.logs)
    assert await chain.logs_of(LogFilter((TO,)), head.hash) == []
    raw = await chain._do("eth_getBlockByNumber", hex(head.number), False)
    block = read_block(raw)
    assert block is not None
    assert block.bloom == bloom_of(receipts[-1].logs)


async def test_blocks_that_are_not_there(anvil_chain: AnvilChain) -> None:
    chain = anvil_chain
    for at in (9, b"\1" * 32):
        assert await chain.block(at) is None
        with pytest.raises(BlockGone):
            await chain.balance(TO, at)
        with pytest.raises(BlockGone):
            await chain.call(EthCall(TO, b""), at)
        with pytest.raises(BlockGone):
            await chain.call_many([EthCall(TO, b"")], at)
    with pytest.raises(BlockGone):
        await chain.logs_of(LogFilter(), b"\1" * 32)
    with pytest.raises(BlockGone):
        await chain.logs(LogFilter(), 0, 9)
    assert chain.statistics().nodes[0].failures == 0


@pytest.mark.parametrize(
    ("sent", "kind"),
    [
        (signed(0), RefusalKind.NONCE_TOO_LOW),
        (signed(1, fee=0, tip=0), RefusalKind.FEE_TOO_LOW),
        (signed(1, wei=10**30), RefusalKind.FUNDS),
        (signed(1, gas=20_000), RefusalKind.GAS),
        (signed(1, gas=40_000_000), RefusalKind.GAS),
        (signed(1, chain_id=5), RefusalKind.INVALID),
        (signed(1, to=b"", data=bytes(50_000), gas=5_000_000), RefusalKind.INVALID),
    ],
    ids=lambda value: value.name if isinstance(value, RefusalKind) else "",
)
async def test_refusals(anvil_chain: AnvilChain, sent: SignedTransaction, kind: RefusalKind) -> None:
    await mined(anvil_chain, signed(0, wei=7))
    with pytest.raises(TransactionRefused) as caught:
        await anvil_chain.send_raw(sent.raw)
    assert caught.value.kind is kind
    with pytest.raises(TransactionRefused):
        await anvil_chain.send_raw(b"\2nonsense")


async def test_what_waits(anvil_chain: AnvilChain) -> None:
    chain = anvil_chain
    await chain.set_automine(on=False)
    first = signed(0)
    for _ in range(2):  # known already is as good as sent
        assert await chain.send_raw(first.raw) == first.tx_hash
    assert (await chain.knows(first.tx_hash), await chain.receipt(first.tx_hash)) == (True, None)
    with pytest.raises(TransactionRefused) as caught:
        await chain.send_raw(signed(0, wei=2).raw)
    assert caught.value.kind is RefusalKind.UNDERPRICED
    bumped = signed(0, wei=3, fee=20, tip=2)
    await chain.send_raw(bumped.raw)
    await chain.mine()
    assert (await chain.receipt(first.tx_hash), await chain.knows(first.tx_hash)) == (None, False)
    assert await chain.receipt(bumped.tx_hash)
    assert await chain.send_raw(bumped.raw) == bumped.tx_hash  # mined, and known
    dropped = signed(1)
    await chain.send_raw(dropped.raw)
    await chain.drop(dropped.tx_hash)
    assert not await chain.knows(dropped.tx_hash)
    await chain.mine(2)
    assert await chain.receipt(dropped.tx_hash) is None
    await chain.set_automine(on=True)
    assert (await mined(chain, dropped)).succeeded


async def test_a_restored_snapshot_keeps_what_waited_and_nothing_else(anvil_chain: AnvilChain) -> None:
    chain = anvil_chain
    await chain.set_automine(on=False)
    waiting, later = signed(0), signed(1)
    await chain.send_raw(waiting.raw)
    snapshot = await chain.snapshot()
    await chain.send_raw(later.raw)
    await chain.restore(snapshot)
    assert (await chain.knows(waiting.tx_hash), await chain.knows(later.tx_hash)) == (True, False)
    await chain.mine()
    assert await chain.receipt(waiting.tx_hash)


async def test_time_and_balances(anvil_chain: AnvilChain) -> None:
    chain = anvil_chain
    now = (await header(chain)).time_s
    for time_s in (now + 1_000, now + 1_000, now + 5_000):
        await chain.set_time(time_s)
        await chain.mine()
        assert (await header(chain)).time_s == time_s
    await chain.mine(3)
    assert now + 5_000 <= (await header(chain)).time_s < now + 5_100
    with pytest.raises(ChainError):
        await chain.set_time(now)
    await chain.set_balance(TO, 10**24)
    assert await chain.balance(TO) == 10**24


async def test_snapshots(anvil_chain: AnvilChain) -> None:
    chain = anvil_chain
    await mined(chain, signed(0, wei=5))
    head = await header(chain)
    snapshot = await chain.snapshot()
    await mined(chain, signed(1, wei=5))
    await chain.mine(200)
    assert (await header(chain)).number == 202
    await chain.restore(snapshot)
    assert await header(chain) == head  # far back, and believed: we did it
    assert await chain.balance(TO) == 5
    with pytest.raises(ChainError, match="unknown snapshot"):
        await chain.restore(snapshot)
    await chain.reset()
    assert (await header(chain)).number == 0


async def test_an_anvil_that_was_started_earlier_is_opened_at_the_present_time(
    anvil: Anvil, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = int(time.time()) + 3_600
    monkeypatch.setattr(time, "time", lambda: now_s)
    async with opened(anvil) as chain:
        await chain.mine()
        assert now_s <= (await header(chain)).time_s < now_s + PATIENCE_S


@pytest.mark.parametrize("depth", [1, 2, 5])
async def test_reorganisation(anvil_chain: AnvilChain, depth: int) -> None:
    chain = anvil_chain
    address = await emitter(chain)
    await chain.mine(depth)
    sent = [signed(nonce, to=address, data=b"%d" % nonce, wei=0) for nonce in range(1, depth + 1)]
    before = [await mined(chain, transaction) for transaction in sent]
    height = (await header(chain)).number
    again: Sequence[tuple[bytes, int]] = [(sent[0].raw, depth - 1)]
    await chain.reorganise(depth, again)
    assert (await header(chain)).number == height
    moved = await chain.receipt(sent[0].tx_hash)
    assert moved is not None
    assert moved.block_number == height
    assert moved.block_hash != before[-1].block_hash
    for transaction in sent[1:]:
        assert await chain.receipt(transaction.tx_hash) is None
        assert not await chain.knows(transaction.tx_hash)
    for receipt in before:
        assert await chain.block(receipt.block_hash) is None
        with pytest.raises(BlockGone):
            await chain.logs_of(LogFilter(), receipt.block_hash)
        with pytest.raises(BlockGone):
            await chain.nonce(ALICE.address, receipt.block_hash)
    assert await chain.logs(LogFilter(), 0, height) == list(moved.logs)


async def test_a_contract_answers_after_a_reorganisation_of_an_old_chain(anvil_chain: AnvilChain) -> None:
    address = await emitter(anvil_chain)
    await anvil_chain.mine(600)
    await anvil_chain.reorganise(590)
    receipt = await mined(anvil_chain, signed(1, to=address, data=b"\x01", wei=0))
    assert [log.data for log in receipt.logs] == [b"\x01"]


async def test_heads_wake(anvil_chain: AnvilChain) -> None:
    chain = anvil_chain
    await until(lambda: chain.statistics().heads.is_listening)
    for _ in range(3):
        head = await header(chain)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(chain.wait_head, head.hash)
            await chain.mine()
        assert (await header(chain)).parent_hash == head.hash
    assert chain.statistics().heads.heads >= 3


async def test_two_chains(anvil_chain: AnvilChain, other_anvil_chain: AnvilChain, anvil: Anvil) -> None:
    assert other_anvil_chain.chain_id == OTHER_CHAIN_ID
    await other_anvil_chain.mine(2)
    assert (await header(anvil_chain)).number == 0
    with pytest.raises(ConfigError, match="is a node of chain 31337, expected 31338"):
        async with AnvilChain.open(OTHER_CHAIN_ID, anvil.settings):
            pytest.fail("it was opened")


async def test_a_restart_keeps_the_chain(tmp_path: Path) -> None:
    with Anvil(state=tmp_path / "state.json") as process:
        async with AnvilChain.open(CHAIN_ID, process.settings) as chain:
            sent = signed(0, wei=5)
            receipt = await mined(chain, sent)
            process.stop()
            with pytest.raises(NodeUnavailable, match=r"chains.31337.node.urls\[0\]"):
                await chain.block()
            process.start()
            await until_up(chain)
            assert await chain.balance(TO) == 5
            assert await chain.receipt(sent.tx_hash) == receipt
            process.kill()
            process.start()
            await until_up(chain)
            await until(lambda: chain.statistics().heads.is_listening)


async def test_an_anvil_of_the_engines_own() -> None:
    async with (
        running_anvil(anvil_command(program("anvil"), OTHER_CHAIN_ID)) as settings,
        AnvilChain.open(OTHER_CHAIN_ID, settings) as chain,
    ):
        await chain.mine(3)
        assert (await header(chain)).number == 3
    with pytest.raises(NodeUnavailable):
        async with AnvilChain.open(OTHER_CHAIN_ID, settings) as chain:
            await chain.block()


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["/nowhere/anvil"], "cannot be started: No such file"),
        (["/bin/echo", "hello"], "ended with status 0: hello"),
        (["/bin/false"], "ended with status 1: silent"),
    ],
)
async def test_a_program_that_is_no_anvil(command: list[str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        async with running_anvil(command):
            pytest.fail("it started")


# --- The time of the next block -------------------------------------------------------------------------

TIME_TELLER = bytes.fromhex("425f5260205ff3")
"""Returns the block's time."""


async def test_calls_are_executed_at_the_time_of_the_next_block(anvil_chain: AnvilChain) -> None:
    chain, to = anvil_chain, b"\x77" * 20
    await chain._do("anvil_setCode", f"0x{to.hex()}", f"0x{TIME_TELLER.hex()}")
    await chain.mine()
    head = await header(chain)
    await chain._do("evm_increaseTime", 1_000)
    upcoming = await chain.upcoming()
    assert upcoming.head == head, "no block is made"
    assert upcoming.made_s is not None
    assert upcoming.time_s == upcoming.made_s >= head.time_s + 1_000
    asked = [EthCall(to, b"")] * 3
    for at_s, time_s in ((None, head.time_s), (upcoming.made_s, upcoming.made_s), (5, 5)):
        assert await chain.call_many(asked, head.hash, at_s) == [time_s.to_bytes(32, "big")] * 3
    await chain.set_time(head.time_s + 5_000)
    assert (await chain.upcoming()).made_s == head.time_s + 5_000
    await chain.mine()
    assert (await header(chain)).time_s == head.time_s + 5_000
