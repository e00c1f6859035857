"""A chain whose nodes are away says so within two seconds, and within two seconds that they are back."""

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, cast

import pytest
import trio
from trio.testing import MockClock

from cambist.config.errors import NodeUnavailable
from cambist.config.sections.nodes import NodeSettings
from cambist.engine.chain import pulse
from cambist.engine.chain.nodes.failover import Nodes
from cambist.engine.chain.nodes.heads import Heads
from cambist.engine.chain.nodes.rpc import RpcChain
from cambist.engine.chain.pulse import Pulse
from cambist.engine.chain.reverts import NO_ERRORS
from support.chain.scripted_rpc import ScriptedRpc
from support.stretched_bounds import own_bounds

SOON_S = 2.0
AWAY_S = 120.0
"""Longer than the longest rest of a node, and than the time for which a price of gas is taken."""


class Node:
    """A node of a chain that stands still.

    Attributes:
        habit: answers | refuses | hangs: what was asked while it hangs is never answered.
        takes_s: for an answer.
        asked: requests.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.habit = "answers"
        self.takes_s = 0.01
        self.asked = 0
        self.rest_s = 0.0
        self.batch_max = 100
        self._rpc = ScriptedRpc()

    async def outcomes(self, calls: Sequence[tuple[str, list[Any]]]) -> list[bytes]:
        self.asked += 1
        if self.habit == "hangs":
            await trio.sleep(10)
            raise NodeUnavailable(f"{self.name}: not reached: ReadTimeout")
        if self.habit == "refuses":
            await trio.lowlevel.checkpoint()
            raise NodeUnavailable(f"{self.name}: not reached: ConnectError")
        await trio.sleep(self.takes_s)
        return [self._answer(method) for method, _ in calls]

    def _answer(self, method: str) -> bytes:
        told = "0x1" if method == "eth_chainId" else self._rpc.block(self._rpc.height)
        return json.dumps(told).encode()


class Followed:
    """Two nodes, the chain behind them, its pulse, and how often it came back."""

    def __init__(self) -> None:
        self.nodes = [Node("node 0"), Node("node 1")]
        nodes = Nodes(1, cast("Any", self.nodes), lambda: 1.0)
        self.chain = RpcChain(1, nodes, Heads(1, (), lambda: 1.0), NodeSettings(), NO_ERRORS)
        self.came_back = 0
        self.pulse = Pulse(self.chain, self._count)

    def _count(self) -> None:
        self.came_back += 1

    def become(self, habit: str) -> None:
        for node in self.nodes:
            node.habit = habit


@pytest.fixture
async def followed(nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch) -> Followed:
    own_bounds(monkeypatch, pulse)
    followed = Followed()
    assert followed.pulse.fault == "no node was asked yet"
    nursery.start_soon(followed.pulse.run)
    await trio.sleep(10.1)
    return followed


@pytest.mark.parametrize("habit", ["refuses", "hangs"])
async def test_nodes_that_are_away_are_told_of_and_so_is_their_return(
    followed: Followed, nursery: trio.Nursery, autojump_clock: MockClock, habit: str
) -> None:
    """Others ask too meanwhile, and have the nodes rest for longer and longer."""

    async def asks() -> None:
        while True:
            with suppress(NodeUnavailable):
                await followed.chain.block()
            await trio.sleep(0.7)

    told = followed.pulse
    assert (told.fault, told.head_number, followed.came_back) == ("", 10, 1)
    followed.become(habit)
    nursery.start_soon(asks)
    await trio.sleep(SOON_S)
    assert told.fault
    await trio.sleep(AWAY_S)
    assert told.fault
    followed.become("answers")
    await trio.sleep(SOON_S)
    assert (told.fault, followed.came_back) == ("", 2)


async def test_one_node_of_two_is_enough(followed: Followed, autojump_clock: MockClock) -> None:
    followed.nodes[0].habit = "refuses"
    for _ in range(100):
        await trio.sleep(0.1)
        assert not followed.pulse.fault


async def test_a_node_that_takes_too_long_for_what_an_order_needs_is_away(
    followed: Followed, autojump_clock: MockClock
) -> None:
    for node in followed.nodes:
        node.takes_s = 1.6
    await trio.sleep(SOON_S)
    assert followed.pulse.fault == "no answer within 1.4 s"
    for node in followed.nodes:
        node.takes_s = 1.3
    await trio.sleep(SOON_S + 1)
    for _ in range(100):
        await trio.sleep(0.1)
        assert not followed.pulse.fault


async def test_a_chain_that_is_well_is_asked_twice_a_second(
    followed: Followed, autojump_clock: MockClock
) -> None:
    before = followed.nodes[0].asked
    await trio.sleep(10)
    assert 15 <= followed.nodes[0].asked - before <= 20
    assert followed.nodes[1].asked == 0
