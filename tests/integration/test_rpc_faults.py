"""Nodes that are away, slow, over their rate, behind, confused or lying: detected, named, and replaced."""

from typing import Any

import pytest
import trio

from cambist.config.errors import (
    BlockGone,
    ChainError,
    ConfigError,
    LogsRefused,
    NodeUnavailable,
    RefusalKind,
    Reverted,
    TransactionRefused,
)
from cambist.config.sections.nodes import NodeSettings
from cambist.config.timeouts import NODE_REST_S_MAX
from cambist.crypto.keccak import keccak256
from cambist.engine.chain.nodes import failover
from cambist.engine.chain.nodes.rpc import RpcChain
from cambist.engine.chain.port import EthCall, LogFilter
from support.chain.scripted_rpc import (
    ADDRESS,
    CALL_S,
    FIRST,
    LATE_CALL_S,
    LONG_REST_S,
    OWNER,
    SECOND,
    TOPIC,
    RpcError,
    ScriptedRpc,
    away,
    block_hash,
    fails,
    first_said,
    hexed,
    one_node,
    scripted_rpc,
    two_nodes,
)
from support.patience import PATIENCE_S

pytestmark = pytest.mark.usefixtures("long_rests")


def over_rate(node: ScriptedRpc) -> None:
    node.status, node.headers = 429, ((b"retry-after", b"20"),)


def over_rate_within(node: ScriptedRpc) -> None:
    node.replies["eth_getBalance"] = fails(-32005, "limit exceeded")


def internal(node: ScriptedRpc) -> None:
    node.replies["eth_getBalance"] = fails(-32603, "disk full")


def silent(node: ScriptedRpc) -> None:
    node.silent = True


def nonsense(node: ScriptedRpc) -> None:
    node.body = b"<html>"


def wrong_type(node: ScriptedRpc) -> None:
    node.replies["eth_getBalance"] = lambda *_: 5


def wrong_id(node: ScriptedRpc) -> None:
    node.body = b'{"jsonrpc":"2.0","id":999999,"result":"0x1"}'


def no_result(node: ScriptedRpc) -> None:
    node.body = b'{"jsonrpc":"2.0","id":2}'


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (away, "HTTP status 503"),
        (over_rate, "over its rate: HTTP status 429"),
        (over_rate_within, "over its rate: -32005 limit exceeded"),
        (internal, "eth_getBalance: -32603 disk full"),
        (silent, "not reached: ReadTimeout"),
        (nonsense, "not a JSON-RPC answer"),
        (wrong_type, "expected a string"),
        (wrong_id, "an unrequested or repeated answer"),
        (no_result, "neither result nor error"),
    ],
)
async def test_a_node_that_fails_is_named_and_the_next_one_asked(fault: Any, said: str) -> None:
    async with two_nodes(call_s=LATE_CALL_S if fault is silent else CALL_S) as (first, second, chain):
        fault(first)
        assert await chain.balance(OWNER) == 5
        assert said in first_said(chain)
        asked = len(first.asked)
        assert await chain.balance(OWNER) == 5  # the node rests
        assert len(first.asked) == asked
        assert second.asked.count("eth_getBalance") == 2


@pytest.mark.usefixtures("short_rests")
async def test_a_rest_is_as_long_as_the_node_asks() -> None:
    async with two_nodes() as (first, _, chain):
        over_rate(first)
        await chain.balance(OWNER)
        assert 15 < chain.statistics().nodes[0].rest_s <= 20


async def test_questions_that_fail_together_are_one_failure() -> None:
    """Simultaneous failures of many questions count as one and do not make a node rest for half a minute."""
    async with two_nodes(call_s=LATE_CALL_S) as (first, second, chain):
        first.silent = True
        async with trio.open_nursery() as nursery:
            for _ in range(12):
                nursery.start_soon(chain.balance, OWNER)
        node = chain.statistics().nodes[0]
        assert node.failures == 12
        assert 0 < node.rest_s <= LONG_REST_S
        assert second.asked.count("eth_getBalance") == 12


@pytest.mark.usefixtures("short_rests")
async def test_a_node_that_is_well_again_is_asked_again() -> None:
    async with two_nodes() as (first, _, chain):
        away(first)
        await chain.balance(OWNER)
        first.status = 200
        first.asked.clear()
        with trio.fail_after(PATIENCE_S):
            while "eth_getBalance" not in first.asked:
                await chain.balance(OWNER)
                await trio.sleep(0.01)
        assert chain.statistics().nodes[0].rest_s == 0


async def test_when_all_fail_every_one_is_named() -> None:
    async with two_nodes() as (first, second, chain):
        away(first)
        away(second)
        for _ in range(2):  # the second time both rest
            with pytest.raises(NodeUnavailable) as caught:
                await chain.balance(OWNER)
            assert FIRST in str(caught.value)
            assert SECOND in str(caught.value)
            assert "127.0.0.1" not in str(caught.value)


async def test_an_error_that_says_nothing_of_the_node_lets_it_not_rest() -> None:
    async with one_node() as (node, chain):
        node.replies["eth_getBalance"] = fails(-32000, "this one not")
        with pytest.raises(ChainError, match=r"urls\[0\]: eth_getBalance: -32000 this one not"):
            await chain.balance(OWNER)
        assert await chain.nonce(OWNER) == 5
        assert chain.statistics().nodes[0].failures == 1


async def test_the_only_node_is_asked_again_long_before_its_rest_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(failover, "NODE_PROBE_S", 0.02)
    async with one_node() as (node, chain):
        away(node)
        for _ in range(3):
            with pytest.raises(NodeUnavailable):
                await chain.balance(OWNER)
        assert chain.statistics().nodes[0].rest_s > min(LONG_REST_S, NODE_REST_S_MAX) / 3
        node.status = 200
        with trio.fail_after(PATIENCE_S / 3):
            while True:
                try:
                    assert await chain.balance(OWNER) == 5
                except NodeUnavailable:
                    await trio.sleep(0.005)
                else:
                    break
        assert chain.statistics().nodes[0].rest_s == 0, "it is well for everybody"


async def test_a_node_at_rest_is_asked_one_question_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async with one_node() as (node, chain):
        away(node)
        with pytest.raises(NodeUnavailable):
            await chain.balance(OWNER)
        asked = len(node.batches)
        for _ in range(20):
            with pytest.raises(NodeUnavailable, match="every node of chain 1 rests"):
                await chain.balance(OWNER)
        assert len(node.batches) == asked
        monkeypatch.setattr(failover, "NODE_PROBE_S", 0)
        node.status, node.headers = 429, ((b"retry-after", b"60"),)
        with pytest.raises(NodeUnavailable):
            await chain.balance(OWNER)
        with pytest.raises(NodeUnavailable, match="every node of chain 1 rests"):
            await chain.balance(OWNER)
        assert len(node.batches) == asked + 1, "a node that asks for a rest has it"


# --- The wrong chain ------------------------------------------------------------------------------


async def test_another_chains_node_is_refused_at_the_start() -> None:
    async with scripted_rpc() as right, scripted_rpc(chain_id=5) as wrong:
        with pytest.raises(ConfigError) as caught:
            async with RpcChain.open(1, NodeSettings(urls=(right.url, wrong.url))):
                pytest.fail("it was opened")
        assert f"{SECOND}: is a node of chain 5, expected 1" in str(caught.value)


@pytest.mark.usefixtures("short_rests")
async def test_another_chains_node_is_not_used_once_it_comes_up() -> None:
    async with scripted_rpc() as first, scripted_rpc(chain_id=5) as second:
        second.status = 503
        async with RpcChain.open(1, NodeSettings(urls=(first.url, second.url))) as chain:
            second.status = 200
            first.status = 503
            with trio.fail_after(PATIENCE_S):
                while "is a node of chain 5" not in chain.statistics().nodes[1].said:
                    with pytest.raises(ChainError):
                        await chain.balance(OWNER)
                    await trio.sleep(0.01)
            assert "eth_getBalance" not in second.asked


@pytest.mark.usefixtures("short_rests")
async def test_a_node_that_comes_back_as_another_chains_is_not_used() -> None:
    """The node behind a URL may change while it rests."""
    async with one_node() as (node, chain):
        assert await chain.balance(OWNER) == 5
        node.status = 503
        with pytest.raises(NodeUnavailable):
            await chain.balance(OWNER)
        node.status, node.chain_id = 200, 5
        node.asked.clear()
        with trio.fail_after(PATIENCE_S):
            while "is a node of chain 5" not in chain.statistics().nodes[0].said:
                with pytest.raises(ChainError):
                    await chain.balance(OWNER)
                await trio.sleep(0.01)
        assert "eth_getBalance" not in node.asked


# --- Batches --------------------------------------------------------------------------------------

CALLS = [EthCall(bytes([at]) * 20, b"") for at in range(250)]


def echo(node: ScriptedRpc) -> None:
    node.replies["eth_call"] = lambda call, _: call["to"]


async def test_a_batch_is_of_a_hundred_and_its_answers_may_come_in_any_order() -> None:
    async with one_node() as (node, chain):
        echo(node)
        node.shape = lambda answers: answers[::-1]
        assert await chain.call_many(CALLS, at=5) == [call.to for call in CALLS]
        assert [size for size in node.batches if size > 1] == [100, 100, 50]


@pytest.mark.parametrize("batch_max", [1, 7, 60])
async def test_a_node_that_wants_smaller_batches(batch_max: int) -> None:
    async with one_node() as (node, chain):
        echo(node)
        node.batch_max = batch_max
        assert await chain.call_many(CALLS[:100], at=5) == [call.to for call in CALLS[:100]]
        kept = chain.statistics().nodes[0].batch_max
        assert 1 <= kept <= batch_max
        node.batches.clear()
        await chain.call_many(CALLS[:100], at=5)
        assert max(node.batches) <= batch_max  # the larger batch is not tried again


async def test_a_node_that_refuses_batches_by_its_status() -> None:
    async with one_node() as (node, chain):
        echo(node)
        single = node._body

        def body(request: Any) -> bytes:
            node.status = 400 if isinstance(request, list) else 200
            return b"no batches" if isinstance(request, list) else single(request)

        node._body = body  # type: ignore[method-assign]
        assert await chain.call_many(CALLS[:5], at=5) == [call.to for call in CALLS[:5]]


async def test_what_is_left_out_of_a_batch_is_asked_once_more() -> None:
    async with one_node() as (node, chain):
        echo(node)
        node.shape = lambda answers: answers[:-1] if len(answers) == 50 else answers
        assert await chain.call_many(CALLS[:50], at=5) == [call.to for call in CALLS[:50]]


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        (lambda answers: answers[: len(answers) // 2], "calls unanswered"),
        (lambda answers: [*answers, answers[0]], "or repeated answer"),
        (lambda answers: [{**answers[0], "id": 10**6}, *answers[1:]], "unrequested"),
        (lambda answers: [{**answers[0], "id": "1"}, *answers[1:]], "not a JSON-RPC answer"),
        (lambda answers: [], "calls unanswered"),
    ],
)
async def test_a_batch_that_makes_no_sense(shape: Any, said: str) -> None:
    async with two_nodes() as (first, second, chain):
        echo(first)
        echo(second)
        first.shape = shape
        assert await chain.call_many(CALLS[:10], at=5) == [call.to for call in CALLS[:10]]
        assert said in first_said(chain)


# --- Lies -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [7, block_hash(7)])
async def test_another_block_than_the_one_that_was_named(at: int | bytes) -> None:
    async with two_nodes() as (first, _, chain):
        for method in ("eth_getBlockByNumber", "eth_getBlockByHash"):
            first.replies[method] = lambda *_: first.block(8)
        assert await chain.block(at) == first.header(7)
        assert "block 8" in first_said(chain)


async def test_a_block_that_one_node_does_not_have_yet() -> None:
    async with two_nodes() as (_, second, chain):
        second.height = 12
        assert await chain.block(block_hash(12)) == second.header(12)
        assert await chain.block(12) == second.header(12)
        assert await chain.balance(OWNER, block_hash(12)) == 5
        assert len(await chain.logs_of(LogFilter(), block_hash(11))) == 1
        assert chain.statistics().nodes[0].rest_s == 0
        assert await chain.block(block_hash(13)) is None
        with pytest.raises(BlockGone):
            await chain.balance(OWNER, block_hash(13))
        with pytest.raises(BlockGone):
            await chain.logs_of(LogFilter(), block_hash(13))
        with pytest.raises(BlockGone):
            await chain.logs(LogFilter(), 1, 13)


# --- Logs -----------------------------------------------------------------------------------------


def other_block(node: ScriptedRpc) -> list[dict[str, Any]]:
    return [node.log_entry(7) | {"blockHash": hexed(block_hash(7, branch=1))}]


def unwanted(node: ScriptedRpc) -> list[dict[str, Any]]:
    return [node.log_entry(7) | {"address": hexed(OWNER)}]


def nothing(_: ScriptedRpc) -> list[dict[str, Any]]:
    return []


@pytest.mark.parametrize(
    ("logs", "said"),
    [
        (other_block, "logs of block"),
        (unwanted, "an unrequested log"),
        (nothing, "only a part of the logs"),
    ],
)
async def test_logs_of_a_block_that_are_wrong(logs: Any, said: str) -> None:
    wanted = LogFilter((ADDRESS,), ((TOPIC,),))
    async with two_nodes() as (first, _, chain):
        first.replies["eth_getLogs"] = lambda _: logs(first)
        assert await chain.logs_of(wanted, block_hash(7)) == [first.log(7)]
        assert said in first_said(chain)


async def test_a_part_of_the_logs_is_noticed_even_if_it_is_withheld_only_when_asked_for() -> None:
    async with two_nodes() as (first, _, chain):
        first.replies["eth_getLogs"] = lambda asked: [] if "address" in asked else [first.log_entry(7)]
        assert await chain.logs_of(LogFilter((ADDRESS,)), block_hash(7)) == [first.log(7)]
        assert "only a part" in first_said(chain)


@pytest.mark.parametrize(
    "all_logs", [None, [{"removed": True}], "none"], ids=["null", "a log without fields", "a text"]
)
async def test_cross_checks_of_several_blocks_that_cannot_be_read_are_a_fault_of_the_node(
    all_logs: Any,
) -> None:
    async with two_nodes() as (first, _, chain):
        first.replies["eth_getLogs"] = lambda asked: [] if "address" in asked else all_logs
        hashes = [block_hash(5), block_hash(7), block_hash(9)]
        found = await chain.logs_of_each(LogFilter((ADDRESS,)), hashes)
        assert found == [[first.log(number)] for number in (5, 7, 9)]
        assert "Invalid input" in first_said(chain)


async def test_the_bloom_saves_the_cross_check() -> None:
    async with one_node() as (node, chain):
        assert await chain.logs_of(LogFilter((ADDRESS,)), block_hash(8)) == []
        assert await chain.logs_of(LogFilter((OWNER,)), block_hash(7)) == []
        assert chain.statistics().cross_checks == 0
        assert node.asked.count("eth_getLogs") == 2


@pytest.mark.parametrize(
    ("logs", "said"),
    [
        (lambda node: [node.log_entry(3)], "an unrequested log of block 3"),
        (unwanted, "an unrequested log"),
        (lambda node: [node.log_entry(9) | {"blockHash": hexed(block_hash(9, branch=1))}], "two blocks 9"),
        (lambda node: [node.log_entry(7), node.log_entry(7)], "comes twice"),
        (lambda node: [node.log_entry(7) | {"blockHash": None}], "expected a string"),
        (lambda node: {"logs": []}, "expected an array"),
    ],
)
async def test_logs_of_a_range_that_are_wrong(logs: Any, said: str) -> None:
    async with two_nodes() as (first, _, chain):
        first.replies["eth_getLogs"] = lambda _: logs(first)
        assert await chain.logs(LogFilter((ADDRESS,)), 5, 9) == [first.log(at) for at in (5, 7, 9)]
        assert said in first_said(chain)


async def test_a_range_that_is_too_wide_is_refused_at_once() -> None:
    async with two_nodes() as (first, second, chain):
        first.replies["eth_getLogs"] = fails(-32005, "query returned more than 10000 results")
        with pytest.raises(LogsRefused, match="blocks 0 to 10: -32005 query returned more than 10000"):
            await chain.logs(LogFilter(), 0, 10)
        assert "eth_getLogs" not in second.asked
        assert chain.statistics().nodes[0].rest_s == 0


async def test_an_answer_that_is_too_large_is_of_too_wide_a_range(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cambist.config.limits.CHAIN_ANSWER_BYTES_MAX", 10_000)
    async with one_node() as (node, chain):
        node.height = 200
        with pytest.raises(LogsRefused, match="an answer of more than"):
            await chain.logs(LogFilter(), 0, 200)
        assert len(await chain.logs(LogFilter(), 0, 10)) == 5
        assert chain.statistics().nodes[0].batch_max == 100


async def test_answers_that_are_too_large_together_are_asked_for_in_parts() -> None:
    async with one_node() as (node, chain):

        def some_at_once(call: Any, _: object) -> object:
            if node.batches[-1] > 30:
                raise RpcError(-32003, "response too large")
            return call["to"]

        node.replies["eth_call"] = some_at_once
        assert await chain.call_many(CALLS[:100], at=5) == [call.to for call in CALLS[:100]]
        assert chain.statistics().nodes[0].batch_max == 100  # the limit is not the number of calls


# --- Calls and transactions -----------------------------------------------------------------------


async def test_a_revert_is_an_answer() -> None:
    async with two_nodes() as (first, second, chain):
        first.replies["eth_call"] = fails(3, "execution reverted: over rate limit", "0x")
        with pytest.raises(Reverted):
            await chain.call(EthCall(OWNER, b""))
        assert "eth_call" not in second.asked


RAW = b"\2 a transaction"
TX_HASH = keccak256(RAW)


async def test_a_transaction_that_is_known_is_as_good_as_sent() -> None:
    async with one_node() as (node, chain):
        node.replies["eth_sendRawTransaction"] = fails(-32000, "already known")
        assert await chain.send_raw(RAW) == TX_HASH
        node.replies["eth_sendRawTransaction"] = fails(-32000, "nonce too low")
        node.replies["eth_getTransactionByHash"] = lambda _: {"hash": hexed(TX_HASH)}
        assert await chain.send_raw(RAW) == TX_HASH
        node.replies["eth_getTransactionByHash"] = lambda _: None
        with pytest.raises(TransactionRefused) as caught:
            await chain.send_raw(RAW)
        assert caught.value.kind is RefusalKind.NONCE_TOO_LOW


async def test_a_node_that_answers_for_another_transaction() -> None:
    async with two_nodes() as (first, second, chain):
        first.replies["eth_sendRawTransaction"] = lambda _: hexed(b"\1" * 32)
        second.replies["eth_sendRawTransaction"] = lambda _: hexed(TX_HASH)
        assert await chain.send_raw(RAW) == TX_HASH
        assert "took 0x" in first_said(chain)


def receipt(node: ScriptedRpc, number: int, branch: int = 0) -> dict[str, Any]:
    return {
        "transactionHash": hexed(TX_HASH), "status": "0x1", "blockNumber": hexed(number),
        "blockHash": hexed(block_hash(number, branch)), "transactionIndex": "0x0", "gasUsed": "0x1",
        "effectiveGasPrice": "0x1", "logs": [], "contractAddress": None,
    }  # fmt: skip


async def test_a_receipt_counts_only_on_the_chain() -> None:
    async with one_node() as (node, chain):
        node.replies["eth_getTransactionReceipt"] = lambda _: receipt(node, 7)
        found = await chain.receipt(TX_HASH)
        assert found is not None
        assert found.block_hash == block_hash(7)
        node.replies["eth_getTransactionReceipt"] = lambda _: receipt(node, 7, branch=1)
        assert await chain.receipt(TX_HASH) is None
        node.replies["eth_getTransactionReceipt"] = lambda _: receipt(node, 11)
        assert await chain.receipt(TX_HASH) is None
        with pytest.raises(ChainError, match="the receipt of"):
            await chain.receipt(b"\3" * 32)


async def test_receipts_are_read_together_and_may_be_of_a_block_that_is_gone() -> None:
    async with one_node() as (node, chain):
        gone = receipt(node, 7, branch=1)
        node.replies["eth_getTransactionReceipt"] = lambda key: gone if key == hexed(TX_HASH) else None
        await chain.block()
        node.batches.clear()
        found, missing = await chain.receipts([TX_HASH, b"\3" * 32])
        assert found is not None
        assert (found.block_hash, missing) == (block_hash(7, 1), None)
        assert node.batches == [2]
        assert await chain.receipts([]) == []
        node.replies["eth_getTransactionReceipt"] = lambda _: gone
        with pytest.raises(ChainError, match="the receipt of"):
            await chain.receipts([TX_HASH, b"\3" * 32])


@pytest.mark.parametrize("many", [False, True])
async def test_who_has_read_a_receipt_looks_at_no_block_before_it(many: bool) -> None:
    async with one_node() as (node, chain):
        node.replies["eth_getTransactionReceipt"] = lambda _: receipt(node, node.height)

        async def read() -> None:
            await (chain.receipts([TX_HASH]) if many else chain.receipt(TX_HASH))

        await chain.block()
        await read()
        node.asked.clear()
        assert await chain.recent_block(60) == node.header(10)
        assert node.asked == []
        node.height = 11
        await read()
        assert await chain.recent_block(60) == node.header(11)


async def test_a_look_that_began_before_a_receipt_was_read_puts_no_earlier_block_at_hand() -> None:
    reached, goes_on, accepted = trio.Event(), trio.Event(), trio.Event()

    async def late() -> None:
        reached.set()
        await goes_on.wait()

    async with one_node() as (node, chain), trio.open_nursery() as nursery:

        async def look() -> None:
            assert await chain.block() == node.header(11)
            accepted.set()

        node.replies["eth_getTransactionReceipt"] = lambda _: receipt(node, node.height)
        await chain.block()
        node.height = 11
        node.late["eth_getBlockByHash"] = late
        nursery.start_soon(look)
        await reached.wait()
        node.height = 12
        await chain.receipt(TX_HASH)
        goes_on.set()
        await accepted.wait()
        assert await chain.recent_block(60) == node.header(12)


async def test_an_answer_that_comes_late_puts_no_block_before_a_read_receipt_at_hand() -> None:
    """The node found the answer before the receipt's block, which another look has accepted meanwhile."""
    reached, goes_on, accepted = trio.Event(), trio.Event(), trio.Event()

    async def late() -> None:
        if not reached.is_set():
            reached.set()
            await goes_on.wait()

    async with one_node() as (node, chain), trio.open_nursery() as nursery:

        async def look() -> None:
            assert await chain.block() == node.header(11)
            accepted.set()

        node.replies["eth_getTransactionReceipt"] = lambda _: receipt(node, 12)
        await chain.block()
        node.height = 11
        node.late["eth_getBlockByNumber"] = late
        nursery.start_soon(look)
        await reached.wait()
        node.height = 12
        assert await chain.block() == node.header(12)
        await chain.receipt(TX_HASH)
        goes_on.set()
        await accepted.wait()
        assert await chain.recent_block(60) == node.header(12)


# --- The time of the next block -------------------------------------------------------------------------


def pending(**members: Any) -> Any:
    """Answers of a node whose pending block has these members; its other blocks are its own."""

    def reply(node: ScriptedRpc) -> Any:
        return lambda named, *_: members or None if named == "pending" else node.block(node._number(named))

    return reply


@pytest.mark.parametrize(
    ("reply", "made_s"),
    [
        (pending(number="0xb", timestamp="0x70", hash=None, logsBloom=None), 0x70),
        (pending(number="0xb", timestamp="0x64"), 100),
        (pending(number="0xa", timestamp="0x70"), None),  # the latest block again, as rollups answer
        (pending(number="0xb", timestamp="0x63"), None),  # before the latest block
        (pending(number=None, timestamp="0x70"), None),
        (pending(number="0xb", timestamp="soon"), None),
        (pending(number="0xb", timestamp=hex(2**80)), None),
        (pending(number="0xb"), None),
        (pending(), None),
    ],
)
async def test_a_pending_block_is_believed_where_it_makes_sense_and_is_no_fault_else(
    reply: Any, made_s: int | None
) -> None:
    async with one_node() as (node, chain):
        node.replies["eth_getBlockByNumber"] = reply(node)
        upcoming = await chain.upcoming()
        assert (upcoming.head.number, upcoming.made_s) == (10, made_s)
        assert upcoming.time_s == (100 if made_s is None else made_s)
        assert chain.statistics().nodes[0].failures == 0
        node.asked.clear()
        node.batches.clear()
        await chain.upcoming()
        assert (node.asked, node.batches) == (["eth_getBlockByNumber"] * 2, [2]), "in one request"


@pytest.mark.parametrize(
    "error", [(-32602, "invalid params"), (-32000, "too many arguments, want at most 3")]
)
async def test_a_node_that_overrides_no_time_is_asked_without_and_not_believed_any_more(error: Any) -> None:
    def call(*parameters: Any) -> str:
        if len(parameters) > 2:
            raise RpcError(*error)
        return "0x01"

    async with one_node() as (node, chain):
        node.replies["eth_call"] = call
        node.replies["eth_getBlockByNumber"] = pending(number="0xb", timestamp="0x70")(node)
        upcoming = await chain.upcoming()
        asked = [EthCall(ADDRESS, b""), EthCall(ADDRESS, b"\1")]
        for calls in (4, 2):
            node.asked.clear()
            assert await chain.call_many(asked, upcoming.head.hash, upcoming.made_s) == [b"\1", b"\1"]
            assert node.asked.count("eth_call") == calls
        assert (await chain.upcoming()).made_s is None
        assert chain.statistics().nodes[0].failures == 0


async def test_a_call_that_a_node_refuses_at_any_time_does_not_cost_the_override() -> None:
    """The gas or data of one agent's bid must not decide how the slices of all orders are simulated."""

    def call(message: Any, *_: Any) -> str:
        if message["data"] == "0x01":
            raise RpcError(-32602, "invalid params: gas exceeds the cap")
        return "0x01"

    async with one_node() as (node, chain):
        node.replies["eth_call"] = call
        node.replies["eth_getBlockByNumber"] = pending(number="0xb", timestamp="0x70")(node)
        calls = [EthCall(ADDRESS, b""), EthCall(ADDRESS, b"\1")]
        with pytest.raises(ChainError, match="gas exceeds the cap"):
            await chain.call_many(calls, block_hash(10), 112)
        assert (await chain.upcoming()).made_s == 0x70


async def test_a_contract_that_says_so_is_no_node_that_overrides_no_time() -> None:
    async with one_node() as (node, chain):
        node.replies["eth_call"] = fails(3, "execution reverted: too many arguments", "0x")
        (answer,) = await chain.call_many([EthCall(ADDRESS, b"")], block_hash(10), 112)
        assert isinstance(answer, Reverted)
        assert chain._timeless == set()
