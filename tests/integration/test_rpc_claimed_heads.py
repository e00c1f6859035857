"""Heads that a node claims: far back, far beyond, or not to be had."""

import pytest
import trio

from cambist.config.errors import ChainError
from cambist.config.sections.nodes import NodeSettings
from cambist.engine.chain.nodes.rpc import RpcChain
from support.chain.scripted_rpc import away, first_said, one_node, scripted_rpc, two_nodes
from support.patience import PATIENCE_S

pytestmark = pytest.mark.usefixtures("long_rests")


async def test_a_head_that_goes_far_back_is_not_believed() -> None:
    async with two_nodes(lag_blocks_max=5) as (first, _, chain):
        assert (await chain.block()) == first.header(10)
        first.height = 4
        assert (await chain.block()) == first.header(10)  # the second node's
        assert "the latest block is 4, 6 behind" in first_said(chain)


async def test_a_head_that_stays_back_is_believed_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    async with one_node(lag_blocks_max=5) as (node, chain):
        await chain.block()
        node.height = 4
        with pytest.raises(ChainError, match="6 behind"):
            await chain.block()
        monkeypatch.setattr("cambist.engine.chain.nodes.rpc.NODE_BACK_S", 0.5)
        with trio.fail_after(PATIENCE_S):
            while True:
                try:
                    assert await chain.block() == node.header(4)
                except ChainError:
                    await trio.sleep(0.01)
                else:
                    break


async def test_a_head_far_beyond_what_another_node_has_is_not_believed_and_shuts_nobody_out() -> None:
    async with two_nodes(lag_blocks_max=5) as (first, second, chain):
        assert await chain.block() == first.header(10)
        first.height = 1_010
        second.height = 12
        assert await chain.block() == second.header(12)
        said = "is 1010, 1000 above the highest seen before, and the other nodes are at 12 at most"
        assert said in first_said(chain)
        second.height = 13
        assert await chain.block() == second.header(13)
        assert chain.statistics().nodes[1].failures == 0


async def test_a_chain_that_has_gone_on_far_is_believed_where_another_node_says_so_or_none_is_there() -> None:
    async with two_nodes(lag_blocks_max=5) as (first, second, chain):
        await chain.block()
        first.height, second.height = 1_010, 1_007
        assert await chain.block() == first.header(1_010)
        away(second)
        first.height = 2_000
        assert await chain.block() == first.header(2_000)
        assert chain.statistics().nodes[0].failures == 0


async def test_one_of_several_other_nodes_is_enough_to_believe_a_jump() -> None:
    async with scripted_rpc() as first, scripted_rpc() as stuck, scripted_rpc() as third:
        nodes = NodeSettings(urls=(first.url, stuck.url, third.url), lag_blocks_max=5)
        async with RpcChain.open(1, nodes) as chain:
            await chain.block()
            first.height, third.height = 1_010, 1_009
            assert await chain.block() == first.header(1_010)


@pytest.mark.usefixtures("short_rests")
@pytest.mark.parametrize("goes_on_to", [10, 12])
async def test_a_chain_that_has_gone_on_far_is_believed_once_the_other_node_stands_still(
    monkeypatch: pytest.MonkeyPatch, goes_on_to: int
) -> None:
    monkeypatch.setattr("cambist.engine.chain.nodes.rpc.NODE_BACK_S", 0.5)
    async with two_nodes(lag_blocks_max=5) as (first, second, chain):
        await chain.block()
        first.height = 1_010
        assert await chain.block() == second.header(10)
        second.height = goes_on_to
        with trio.fail_after(PATIENCE_S):
            while await chain.block() != first.header(1_010):  # noqa: ASYNC110  nothing there can set an event
                await trio.sleep(0.01)


async def test_a_head_that_cannot_be_had() -> None:
    async with two_nodes() as (first, _, chain):
        first.replies["eth_getBlockByHash"] = lambda *_: None
        assert await chain.block() == first.header(10)
        assert "names" in first_said(chain)
        assert "does not have it" in first_said(chain)


async def test_a_head_that_a_reorganisation_takes_away_is_no_lie() -> None:
    async with one_node() as (node, chain):

        def gone(_: str, __: bool) -> None:
            del node.replies["eth_getBlockByHash"]
            node.height = 9

        node.replies["eth_getBlockByHash"] = gone
        assert await chain.block() == node.header(9)
        assert chain.statistics().nodes[0].failures == 0


async def test_a_recent_head_is_at_hand_without_a_request_until_it_is_too_old() -> None:
    async with one_node() as (node, chain):
        assert await chain.recent_block(60) == node.header(10)
        node.height = 11
        node.asked.clear()
        assert await chain.recent_block(60) == node.header(10)
        assert node.asked == []
        assert await chain.recent_block(-1) == await chain.recent_block(60) == node.header(11)
