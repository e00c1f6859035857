"""New heads: announced, or looked for; through sockets that drop, keep silent, refuse or are not there."""

from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import pytest
import trio

from cambist.config.sections.nodes import NodeSettings
from cambist.engine.chain.nodes import heads
from cambist.engine.chain.nodes.failover import rest_s
from cambist.engine.chain.nodes.heads import Heads
from cambist.engine.chain.nodes.rpc import RpcChain
from support.chain.scripted_rpc import ScriptedRpc, block_hash, scripted_rpc
from support.patience import PATIENCE_S, until

WS = "chains.1.node.ws_urls[0]"


async def woken(wait: Callable[[], Awaitable[None]], cause: Callable[[], Awaitable[None]]) -> bool:
    """Whether a wait ends after a cause, and not before."""
    ended = trio.Event()

    async def waiting() -> None:
        await wait()
        ended.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(waiting)
        await trio.testing.wait_all_tasks_blocked(0.02)
        assert not ended.is_set()
        await cause()
        with trio.move_on_after(PATIENCE_S):
            await ended.wait()
        nursery.cancel_scope.cancel()
    return ended.is_set()


@pytest.fixture
def short_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cambist.engine.chain.nodes.failover.NODE_REST_S", 0.01)


def grow(node: ScriptedRpc) -> Callable[[], Awaitable[None]]:
    async def cause() -> None:
        node.height += 1

    return cause


def opened(node: ScriptedRpc, **settings: Any) -> Any:
    return RpcChain.open(1, NodeSettings(urls=(node.url,), **settings))


async def test_a_look_finds_a_new_head_where_nothing_announces_it() -> None:
    async with scripted_rpc() as node, opened(node, poll_s=0.1) as chain:
        assert await woken(lambda: chain.wait_head(block_hash(10)), grow(node))


async def test_an_announcement_wakes_long_before_a_look() -> None:
    async with scripted_rpc() as node, opened(node, ws_urls=(node.ws_url,), poll_s=60) as chain:
        await until(lambda: bool(node.sockets))

        async def announce() -> None:
            node.height += 1
            await node.announce(10)  # the known one
            await node.announce(11)

        assert await woken(lambda: chain.wait_head(block_hash(10)), announce)
        with trio.fail_after(PATIENCE_S):  # an earlier head counts too
            await chain.wait_head(block_hash(10))
        assert chain.statistics().heads.heads == 2
        assert node.upgrade.target == b"/secret-key?a=b"
        assert (b"authorization", b"Basic dXNlcjpwYXNz") in node.upgrade.headers


async def test_a_socket_that_drops_is_opened_again(short_rests: None) -> None:
    async with scripted_rpc() as node, opened(node, ws_urls=(node.ws_url,), poll_s=60) as chain:
        for count in (1, 2, 3):
            await until(lambda count=count: len(node.sockets) == count)  # type: ignore[misc]
            await until(lambda: chain.statistics().heads.is_listening)
            await node.sockets[-1].aclose(1001, "restarting")
            await until(lambda count=count: chain.statistics().heads.failures == count)  # type: ignore[misc]
        said = chain.statistics().heads.said
        assert said.startswith(WS)
        assert "restarting" in said
        await until(lambda: len(node.sockets) == 4)
        assert await woken(lambda: chain.wait_head(block_hash(9)), lambda: node.announce(10))


async def test_a_node_without_a_websocket_or_without_subscriptions() -> None:
    async with scripted_rpc() as node:
        node.subscribes = False
        urls = ("ws://127.0.0.1:1/secret", node.ws_url)
        async with opened(node, ws_urls=urls, poll_s=0.1) as chain:
            await until(lambda: chain.statistics().heads.failures >= 2)
            said = chain.statistics().heads
            assert (said.is_listening, said.connections) == (False, 0)
            assert "secret" not in said.said
            assert await woken(lambda: chain.wait_head(block_hash(10)), grow(node))


async def test_nonsense_ends_a_subscription(short_rests: None) -> None:
    async with scripted_rpc() as node, opened(node, ws_urls=(node.ws_url,), poll_s=60) as chain:
        for said in ("{", '{"params":{"result":{"hash":"zz"}}}', '{"id":1}', "[" * 60_000, "x" * 70_000):
            failures = chain.statistics().heads.failures
            await until(lambda: chain.statistics().heads.is_listening)
            await node.sockets[-1].send(said)
            await until(lambda failures=failures: chain.statistics().heads.failures > failures)  # type: ignore[misc]
        assert chain.statistics().heads.heads == 0


async def test_a_silent_socket_is_opened_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heads, "NODE_SUBSCRIPTION_S", 0.1)
    async with scripted_rpc() as node, opened(node, ws_urls=(node.ws_url,), poll_s=60) as chain:
        await until(lambda: len(node.sockets) >= 2)
        assert "silent for 0.1 s" in chain.statistics().heads.said


async def test_a_failure_to_look_ends_the_wait() -> None:
    async with scripted_rpc() as node, opened(node, poll_s=0.1) as chain:

        async def fail() -> None:
            node.status = 503

        assert await woken(lambda: chain.wait_head(block_hash(10)), fail)


async def test_a_head_that_was_never_announced_is_waited_for() -> None:
    """The head may come from another node than the announcing one."""
    async with scripted_rpc() as node:
        following = Heads(1, (node.ws_url,), lambda: 0.0)
        async with following.followed():
            await until(lambda: bool(node.sockets))
            await node.announce(9)
            await until(lambda: following.statistics().heads == 1)
            assert await woken(lambda: following.other_than(block_hash(10)), lambda: node.announce(8))


async def test_a_head_that_the_node_does_not_have_yet_is_looked_for_now_and_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The node that announces and the one that is asked may be two: no question after question meanwhile."""
    looked: list[float] = []

    def look(*_: object) -> object:
        looked.append(trio.current_time())
        return node.block(node.height)

    monkeypatch.setattr("cambist.engine.chain.nodes.rpc.NODE_LOOK_S", 0.02)
    async with scripted_rpc() as node, opened(node, ws_urls=(node.ws_url,), poll_s=60) as chain:
        await until(lambda: bool(node.sockets))
        await node.announce(10)
        await node.announce(9)  # any other than the one that the node has
        await until(lambda: chain.statistics().heads.heads == 2)
        await chain.block()
        node.replies["eth_getBlockByNumber"] = look
        with trio.fail_after(PATIENCE_S):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(chain.wait_head, block_hash(10))
                await until(lambda: len(looked) >= 4)
                node.height += 1
    gaps_s = [then - first for first, then in pairwise(looked)]
    assert all(gap_s >= 0.02 * 2**at for at, gap_s in enumerate(gaps_s))


def test_rests_double_up_to_a_bound_and_are_jittered() -> None:
    assert [rest_s(failures, 1.0) for failures in (0, 1, 2, 3, 50)] == [0.25, 0.5, 1.0, 2.0, 30.0]
    assert rest_s(3, 0.0) == 1.0
