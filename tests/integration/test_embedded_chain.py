"""The embedded chain as a node: blocks, time, waiting transactions, the past, re-organisations."""

import pytest
import trio

from cambist.codecs.contracts.abi import bytes_tail, encode, selector
from cambist.codecs.transactions import Transaction, sign_transaction
from cambist.config import limits
from cambist.config.errors import BlockGone, ChainError, RefusalKind, Reverted, TransactionRefused
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.chain.port import DevChain, EthCall, LogFilter
from cambist.engine.chain.reverts import custom_errors
from cambist.engine.dev.embedded.embedded import EmbeddedChain
from support.chain import evm_programs as programs

pytestmark = pytest.mark.needs("pyrevm")

CHAIN_ID, GWEI, ETHER = 31337, 10**9, 10**18
ANNA, BERT = SigningKey(b"\1" * 32), SigningKey(b"\2" * 32)
SOMEBODY = b"\x55" * 20
COUNTER = programs.assembled("0 SLOAD 1 ADD DUP1 0 SSTORE 0 MSTORE CALLER 9 32 0 LOG2 32 0 RETURN")


class Clock:
    def __init__(self) -> None:
        self.now_s = 1_700_000_000

    def __call__(self) -> int:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def chain(clock: Clock) -> EmbeddedChain:
    return EmbeddedChain(CHAIN_ID, clock, {ANNA.address: 1_000 * ETHER, BERT.address: 1_000 * ETHER})


def raw_transaction(
    nonce: int,
    to: bytes = SOMEBODY,
    data: bytes = b"",
    *,
    key: SigningKey = ANNA,
    value_wei: int = 0,
    gas: int = 200_000,
    tip_wei: int = GWEI,
    fee_max_wei: int = 50 * GWEI,
) -> bytes:
    tx = Transaction(CHAIN_ID, nonce, tip_wei, fee_max_wei, gas, to, value_wei, data)
    return sign_transaction(tx, key).raw


async def deployed(chain: EmbeddedChain, code: bytes) -> bytes:
    nonce = await chain.nonce(ANNA.address)
    receipt = await chain.receipt(
        await chain.send_raw(raw_transaction(nonce, b"", programs.deploys(code), gas=3_000_000))
    )
    assert receipt is not None
    assert receipt.contract is not None
    return receipt.contract


async def count(chain: EmbeddedChain, contract: bytes, at: bytes | int | None = None) -> int:
    """Value of the counter."""
    return await chain.slot(contract, 0, at)


def test_it_is_a_dev_chain(chain: EmbeddedChain) -> None:
    dev_chain: DevChain = chain
    assert dev_chain.chain_id == CHAIN_ID


# --- Blocks and time ------------------------------------------------------------------------------


async def test_each_transaction_gets_a_block(chain: EmbeddedChain) -> None:
    genesis = await chain.block()
    assert genesis is not None
    assert await chain.receipt(b"\1" * 32) is None
    raw = raw_transaction(0, value_wei=3, gas=21_000)
    tx_hash = await chain.send_raw(raw)
    receipt, head = await chain.receipt(tx_hash), await chain.block()
    assert receipt is not None
    assert head is not None
    assert (head.number, head.parent_hash, head.base_fee_wei) == (1, genesis.hash, GWEI)
    assert (receipt.block_hash, receipt.gas_used, receipt.gas_price_wei) == (head.hash, 21_000, 2 * GWEI)
    assert await chain.balance(SOMEBODY) == 3
    assert await chain.balance(ANNA.address) == 1_000 * ETHER - 3 - 21_000 * 2 * GWEI
    assert await chain.send_raw(raw) == tx_hash
    assert await chain.block() == head
    assert await chain.knows(tx_hash)
    block = await chain.full_block(head.hash)
    assert block is not None
    assert block.transactions == (await chain.transaction(tx_hash),)


async def test_blocks_of_one_second_have_one_time_and_never_go_back(
    chain: EmbeddedChain, clock: Clock
) -> None:
    times = []
    for now_s in (100, 100, 90, 105):
        clock.now_s = 1_700_000_000 + now_s
        await chain.mine()
        times.append((await chain.full_block()).header.time_s - 1_700_000_000)  # type: ignore[union-attr]
    assert times == [100, 100, 100, 105]


async def test_time_goes_on_from_where_it_was_set(chain: EmbeddedChain, clock: Clock) -> None:
    await chain.set_time(clock.now_s + 1_000)
    clock.now_s += 5
    await chain.mine()
    clock.now_s += 7
    await chain.mine()
    headers = [await chain.block(height) for height in (1, 2)]
    assert [header.time_s for header in headers if header] == [1_700_001_000, 1_700_001_007]
    with pytest.raises(ChainError, match="before the latest"):
        await chain.set_time(1_700_001_006)


async def test_time_can_be_passed(chain: EmbeddedChain, clock: Clock) -> None:
    assert await chain.pass_time(100) == 100
    await chain.mine()
    await chain.set_time(clock.now_s + 150)
    await chain.pass_time(10)
    await chain.mine()
    clock.now_s += 3
    await chain.mine()
    headers = [await chain.block(height) for height in (1, 2, 3)]
    assert [header.time_s - 1_700_000_000 for header in headers if header] == [100, 160, 163]


async def test_base_fee_can_be_set_for_one_block(chain: EmbeddedChain) -> None:
    await chain.set_base_fee(80 * GWEI)
    assert (await chain.fees()).base_fee_wei == 80 * GWEI
    with pytest.raises(TransactionRefused) as caught:
        await chain.send_raw(raw_transaction(0))
    assert caught.value.kind is RefusalKind.FEE_TOO_LOW
    await chain.mine(2)
    headers = [await chain.block(height) for height in (1, 2)]
    assert [header.base_fee_wei for header in headers if header] == [80 * GWEI, 70 * GWEI]


async def test_balances_can_be_given(chain: EmbeddedChain) -> None:
    await chain.set_balance(SOMEBODY, 77)
    assert await chain.balance(SOMEBODY) == 77
    contract = await deployed(chain, COUNTER)
    await chain.set_balance(contract, 5)
    assert (await chain.balance(contract), await chain.code(contract)) == (5, COUNTER)


async def test_the_create2_deployer_is_there(chain: EmbeddedChain) -> None:
    deployer = bytes.fromhex("4e59b44847b379578588920ca78fbf26c0b4956c")
    returned = await chain.call(EthCall(deployer, bytes(32) + programs.deploys(COUNTER)))
    await chain.send_raw(raw_transaction(0, deployer, bytes(32) + programs.deploys(COUNTER)))
    assert await chain.code(returned) == COUNTER


async def test_too_many_blocks_at_once_are_refused(chain: EmbeddedChain) -> None:
    with pytest.raises(ChainError, match="at most"):
        await chain.mine(limits.EMBEDDED_MINE_BLOCKS_MAX + 1)


async def test_a_new_head_wakes_who_waits_for_it(
    chain: EmbeddedChain, autojump_clock: trio.testing.MockClock
) -> None:
    head = await chain.block()
    assert head is not None
    with trio.move_on_after(60) as nobody:
        await chain.wait_head(head.hash)
    assert nobody.cancelled_caught
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(chain.wait_head, head.hash)
            nursery.start_soon(chain.mine)
        await chain.wait_head(head.hash)


# --- Calls ----------------------------------------------------------------------------------------


async def test_reverts_are_told_by_name(clock: Clock) -> None:
    errors = custom_errors([[{"type": "error", "name": "Paused", "inputs": []}]])
    chain = EmbeddedChain(CHAIN_ID, clock, {ANNA.address: ETHER}, errors)
    echo = await deployed(chain, programs.assembled("CALLDATASIZE 0 0 CALLDATACOPY CALLDATASIZE 0 REVERT"))
    burner = await deployed(chain, programs.HALTING)
    for call, reason in (
        (EthCall(echo, selector("Error(string)") + encode(bytes_tail(b"Order expired"))), "Order expired"),
        (EthCall(echo, selector("Paused()")), "Paused()"),
        (EthCall(echo, b""), ""),
        (EthCall(burner, (3).to_bytes(32, "big"), gas_max=50_000), "out of gas"),
        (EthCall(burner, (2).to_bytes(32, "big")), "InvalidFEOpcode"),
    ):
        with pytest.raises(Reverted) as caught:
            await chain.call(call)
        assert (caught.value.reason, caught.value.data) == (reason, call.data if call.to == echo else b"")
        with pytest.raises(Reverted):
            await chain.estimate_gas(call)
    answers = await chain.call_many([EthCall(echo, b"x"), EthCall(SOMEBODY, b"")])
    assert isinstance(answers[0], Reverted)
    assert answers[1] == b""


async def test_the_past_can_be_asked(chain: EmbeddedChain) -> None:
    contract = await deployed(chain, COUNTER)
    for nonce in range(1, 301):
        await chain.send_raw(raw_transaction(nonce, contract))
    head, old = await chain.block(), await chain.block(1 + 20)
    assert head is not None
    assert old is not None
    call = EthCall(contract, b"")
    assert await chain.call(call) == (301).to_bytes(32, "big")
    assert await chain.call(call, old.hash) == (21).to_bytes(32, "big")
    assert await chain.call_many([call] * 3, 1) == [(1).to_bytes(32, "big")] * 3
    assert await chain.nonce(ANNA.address, 1 + 44) == 45
    assert await chain.balance(ANNA.address, 0) == 1_000 * ETHER
    assert await chain.code(contract, 0) == b""
    assert await count(chain, contract, 1 + 7) == 7
    assert await count(chain, contract, head.hash) == 300
    with pytest.raises(BlockGone):
        await chain.call(call, b"\7" * 32)
    with pytest.raises(ChainError, match="no block of height 302"):
        await chain.balance(SOMEBODY, 302)
    assert await chain.block(302) is None


async def test_what_is_kept_is_bounded(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "EMBEDDED_UNDO_BLOCKS", 5)
    monkeypatch.setattr(limits, "EMBEDDED_KEPT_BLOCKS", 8)
    chain = EmbeddedChain(CHAIN_ID, clock, {ANNA.address: ETHER})
    contract = await deployed(chain, COUNTER)
    hashes = [await chain.send_raw(raw_transaction(nonce, contract)) for nonce in range(1, 12)]
    assert await chain.block(4) is None
    assert await chain.block(5) is not None
    assert [await chain.knows(tx_hash) for tx_hash in hashes[:5]] == [False, False, False, True, True]
    assert len(await chain.logs(LogFilter(), 0, 10**18)) == 8
    assert await count(chain, contract, 8) == 7
    with pytest.raises(ChainError, match="too old"):
        await count(chain, contract, 6)
    with pytest.raises(ChainError, match="too old"):
        await chain.reorganise(6)
    assert await count(chain, contract) == 11


# --- Logs -----------------------------------------------------------------------------------------


async def test_logs_by_range_and_by_block(chain: EmbeddedChain) -> None:
    contract, other = await deployed(chain, COUNTER), await deployed(chain, COUNTER)
    await chain.set_automine(on=False)
    for nonce, to in ((2, contract), (3, other), (4, contract)):
        await chain.send_raw(raw_transaction(nonce, to))
    await chain.mine()
    await chain.send_raw(raw_transaction(0, contract, key=BERT))
    await chain.mine()
    logs = await chain.logs(LogFilter(), 0, 99)
    assert [(log.block_number, log.tx_index, log.log_index) for log in logs] == [
        (3, 0, 0), (3, 1, 1), (3, 2, 2), (4, 0, 0),
    ]  # fmt: skip
    nine, bert = (9).to_bytes(32, "big"), BERT.address.rjust(32, b"\0")
    assert logs[3].topics == (nine, bert)
    assert await chain.logs(LogFilter((contract,)), 3, 3) == [logs[0], logs[2]]
    assert await chain.logs(LogFilter((), ((), (bert,))), 0, 4) == [logs[3]]
    assert await chain.logs(LogFilter((), ((nine,), (), (nine,))), 0, 4) == []
    assert await chain.logs(LogFilter(), 3, 2) == []
    assert await chain.logs_of(LogFilter((other,)), logs[0].block_hash) == [logs[1]]
    with pytest.raises(BlockGone):
        await chain.logs_of(LogFilter(), b"\7" * 32)


# --- Transactions that wait -----------------------------------------------------------------------


async def test_transactions_wait_when_nothing_is_mined(chain: EmbeddedChain) -> None:
    await chain.set_automine(on=False)
    later, now = raw_transaction(1, value_wei=1), raw_transaction(0, value_wei=1)
    hashes = [await chain.send_raw(raw) for raw in (later, now)]
    assert await chain.send_raw(now) == hashes[1]
    assert [await chain.knows(one) for one in hashes] == [True, True]
    assert await chain.receipt(hashes[0]) is None
    assert (await chain.balance(SOMEBODY), await chain.nonce(ANNA.address)) == (0, 0)
    assert await chain.pending_nonce(ANNA.address) == 2
    await chain.mine(3)
    block = await chain.full_block(1)
    assert block is not None
    assert [received.transaction.nonce for received in block.transactions] == [0, 1]
    assert (await chain.full_block()).transactions == ()  # type: ignore[union-attr]


async def test_a_gap_is_filled_at_once_with_automine(chain: EmbeddedChain) -> None:
    later = await chain.send_raw(raw_transaction(1))
    assert (await chain.block()).number == 0  # type: ignore[union-attr]
    await chain.send_raw(raw_transaction(0))
    receipt = await chain.receipt(later)
    assert receipt is not None
    assert (receipt.block_number, receipt.tx_index) == (1, 1)


async def test_replacement_and_dropping(chain: EmbeddedChain) -> None:
    await chain.set_automine(on=False)
    first = await chain.send_raw(raw_transaction(0, value_wei=1))
    with pytest.raises(TransactionRefused) as caught:
        await chain.send_raw(raw_transaction(0, value_wei=2, tip_wei=2 * GWEI))
    assert caught.value.kind is RefusalKind.UNDERPRICED
    second = await chain.send_raw(raw_transaction(0, value_wei=2, tip_wei=2 * GWEI, fee_max_wei=55 * GWEI))
    assert (await chain.knows(first), await chain.knows(second)) == (False, True)
    await chain.drop(second)
    assert not await chain.knows(second)
    await chain.mine()
    assert await chain.balance(SOMEBODY) == 0


async def test_one_below_a_risen_base_fee_stays_stuck(chain: EmbeddedChain) -> None:
    await chain.set_automine(on=False)
    stuck = await chain.send_raw(raw_transaction(0, fee_max_wei=2 * GWEI))
    await chain.set_base_fee(3 * GWEI)
    await chain.mine()
    assert await chain.receipt(stuck) is None
    await chain.mine(4)
    assert await chain.receipt(stuck) is not None


async def test_one_that_can_no_longer_be_paid_is_dropped(chain: EmbeddedChain) -> None:
    await chain.set_automine(on=False)
    hashes = [await chain.send_raw(raw_transaction(nonce, value_wei=600 * ETHER)) for nonce in (0, 1)]
    await chain.mine()
    assert [await chain.knows(one) for one in hashes] == [True, False]


async def test_a_full_block_leaves_the_rest_for_the_next(chain: EmbeddedChain) -> None:
    burner = await deployed(chain, programs.HALTING)
    await chain.set_automine(on=False)
    for nonce in (1, 2, 3):
        await chain.send_raw(raw_transaction(nonce, burner, (3).to_bytes(32, "big"), gas=14_000_000))
    await chain.mine(2)
    blocks = [await chain.full_block(height) for height in (2, 3)]
    assert [len(block.transactions) for block in blocks if block] == [2, 1]
    assert [block.gas_used for block in blocks if block] == [28_000_000, 14_000_000]


async def test_others_run_while_a_long_block_is_made(chain: EmbeddedChain) -> None:
    await chain.set_automine(on=False)
    for nonce in range(100):
        await chain.send_raw(raw_transaction(nonce, value_wei=1, gas=21_000))
    turns = 0
    done = trio.Event()

    async def tick() -> None:
        nonlocal turns
        while not done.is_set():
            turns += 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(tick)
        await trio.lowlevel.checkpoint()
        before = turns
        await chain.mine()
        during = turns - before
        done.set()
    assert during >= 20
    assert await chain.balance(SOMEBODY) == 100


async def test_a_block_once_begun_is_finished(chain: EmbeddedChain) -> None:
    await chain.set_automine(on=False)
    for nonce in range(20):
        await chain.send_raw(raw_transaction(nonce, value_wei=1, gas=21_000))

    async def balance_seen() -> None:
        seen.append(await chain.balance(SOMEBODY))

    seen: list[int] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(chain.mine)
        await trio.lowlevel.checkpoint()
        nursery.start_soon(balance_seen)
        await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    assert await chain.balance(SOMEBODY) in (0, 20)
    assert all(wei in (0, 20) for wei in seen)


# --- Going back -----------------------------------------------------------------------------------


async def test_snapshots_bring_everything_back(chain: EmbeddedChain, clock: Clock) -> None:
    contract = await deployed(chain, COUNTER)
    await chain.set_balance(SOMEBODY, 1)
    await chain.set_base_fee(5 * GWEI)
    outer, head = await chain.snapshot(), await chain.block()
    await chain.set_balance(SOMEBODY, 2)
    mined = await chain.send_raw(raw_transaction(1, contract))
    inner = await chain.snapshot()
    await chain.set_time(clock.now_s + 9_999)
    await chain.mine(3)
    await chain.restore(outer)
    assert await chain.block() == head
    assert (await count(chain, contract), await chain.balance(SOMEBODY)) == (0, 1)
    assert await chain.receipt(mined) is None
    assert (await chain.fees()).base_fee_wei == 5 * GWEI
    for used in (outer, inner):
        with pytest.raises(ChainError, match="no snapshot"):
            await chain.restore(used)
    await chain.send_raw(raw_transaction(1, contract))
    assert (await chain.block()).time_s == clock.now_s  # type: ignore[union-attr]


async def test_a_snapshot_keeps_what_waits(chain: EmbeddedChain) -> None:
    await chain.set_automine(on=False)
    waits = await chain.send_raw(raw_transaction(0))
    snapshot = await chain.snapshot()
    await chain.mine()
    later = await chain.send_raw(raw_transaction(1))
    await chain.restore(snapshot)
    assert (await chain.knows(waits), await chain.knows(later)) == (True, False)
    assert await chain.receipt(waits) is None
    await chain.mine()
    assert await chain.receipt(waits) is not None


async def test_a_re_organisation_replaces_blocks(chain: EmbeddedChain) -> None:
    contract = await deployed(chain, COUNTER)
    raws = [raw_transaction(nonce, contract) for nonce in (1, 2, 3)]
    hashes = [await chain.send_raw(raw) for raw in raws]
    old = [await chain.block(height) for height in range(5)]
    await chain.reorganise(3, [(raws[0], 1), (raws[1], 1)])
    new = [await chain.block(height) for height in range(5)]
    assert new[:2] == old[:2]
    for was, now in zip(old[2:], new[2:], strict=True):
        assert was is not None
        assert now is not None
        assert (was.number, was.time_s) == (now.number, now.time_s)
        assert was.hash != now.hash
        assert await chain.block(was.hash) is None
        with pytest.raises(BlockGone):
            await chain.logs_of(LogFilter(), was.hash)
        with pytest.raises(BlockGone):
            await chain.call(EthCall(contract, b""), was.hash)
    assert await count(chain, contract) == 2
    assert await chain.nonce(ANNA.address) == 3
    places = [await chain.receipt(tx_hash) for tx_hash in hashes]
    assert [None if place is None else (place.block_number, place.tx_index) for place in places] == [
        (3, 0), (3, 1), None,
    ]  # fmt: skip
    assert not await chain.knows(hashes[2])
    assert [log.block_number for log in await chain.logs(LogFilter(), 0, 9)] == [3, 3]
    await chain.send_raw(raws[2])
    assert await count(chain, contract) == 3


async def test_two_empty_re_organisations_differ(chain: EmbeddedChain) -> None:
    await chain.mine(4)
    hashes = {(await chain.block()).hash}  # type: ignore[union-attr]
    for _ in range(3):
        await chain.reorganise(2)
        hashes.add((await chain.block()).hash)  # type: ignore[union-attr]
    assert len(hashes) == 4


async def test_a_re_organisation_that_cannot_be_leaves_the_chain_as_it_was(chain: EmbeddedChain) -> None:
    contract = await deployed(chain, COUNTER)
    raws = [raw_transaction(nonce, contract) for nonce in (1, 2)]
    hashes = [await chain.send_raw(raw) for raw in raws]
    head = await chain.block()
    with pytest.raises(TransactionRefused) as caught:
        await chain.reorganise(2, [(raws[0], 0), (raw_transaction(7, contract), 1)])
    assert caught.value.kind is RefusalKind.NONCE_TOO_HIGH
    assert await chain.block() == head
    assert await count(chain, contract) == 2
    assert await count(chain, contract, 2) == 1
    assert [await chain.knows(one) for one in hashes] == [True, True]
    for depth, again in ((4, []), (2, [(raws[0], 2)])):
        with pytest.raises(ChainError):
            await chain.reorganise(depth, again)
    assert await chain.block() == head
    await chain.reorganise(3)
    assert await chain.code(contract) == b""
