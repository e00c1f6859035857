"""A chain over one scripted node or two, and what its first node is known for."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from cambist.config.sections.nodes import NodeSettings
from cambist.engine.chain.nodes.rpc import RpcChain
from support.chain.scripted_rpc import RpcError, ScriptedRpc, scripted_rpc
from support.patience import PATIENCE, PATIENCE_S

FIRST, SECOND = "chains.1.node.urls[0]", "chains.1.node.urls[1]"
OWNER = b"\1" * 20
LONG_REST_S = PATIENCE_S
CALL_S = min(PATIENCE_S, 60.0)
LATE_CALL_S = min(PATIENCE, 20.0)
"""Deadline of a call, seconds: the first node misses it, the second answers within it."""


@asynccontextmanager
async def two_nodes(
    call_s: float = CALL_S, **settings: Any
) -> AsyncIterator[tuple[ScriptedRpc, ScriptedRpc, RpcChain]]:
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(scripted_rpc())
        second = await stack.enter_async_context(scripted_rpc())
        nodes = NodeSettings(urls=(first.url, second.url), call_s=call_s, **settings)
        chain = await stack.enter_async_context(RpcChain.open(1, nodes))
        yield first, second, chain


@asynccontextmanager
async def one_node(**settings: Any) -> AsyncIterator[tuple[ScriptedRpc, RpcChain]]:
    async with (
        scripted_rpc() as node,
        RpcChain.open(1, NodeSettings(urls=(node.url,), **settings)) as chain,
    ):
        yield node, chain


def first_said(chain: RpcChain) -> str:
    """Last error of the first node, which must be in its cool-down; no statistics may show its URL."""
    node = chain.statistics().nodes[0]
    assert node.name == FIRST
    assert node.rest_s > 0
    assert node.said.startswith(f"{FIRST}: ")
    assert "secret" not in repr(chain.statistics())
    assert "127.0.0.1" not in repr(chain.statistics())
    return node.said


def away(node: ScriptedRpc) -> None:
    node.status = 503


def fails(code: int, message: str, data: object = None) -> Any:
    def reply(*_: object) -> object:
        raise RpcError(code, message, data)

    return reply
