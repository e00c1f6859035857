"""The latest block and the price of gas: followed head by head, and refused once they are too old."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import pytest
import trio
from trio.testing import MockClock

from cambist.config.errors import NodeUnavailable, ServiceUnavailable
from cambist.config.timeouts import GAS_LOOK_S, GAS_STALE_S
from cambist.engine.chain.port import Chain, GasFees, Header
from cambist.engine.trade.routing import gas_watch
from cambist.engine.trade.routing.gas_watch import GasWatch
from support.stretched_bounds import own_bounds


class Node:
    """A node with one block, whose fees are the block's number.

    Attributes:
        is_away: no answers; is_silent: no announced heads; is_stuck: callers wait for ever.
    """

    def __init__(self) -> None:
        self.number = 0
        self.is_away = self.is_silent = self.is_stuck = False
        self.looks = 0
        self._grown = trio.Event()

    def grow(self) -> None:
        self.number += 1
        grown, self._grown = self._grown, trio.Event()
        grown.set()

    async def block(self, at: object = None) -> Header | None:
        self.looks += 1
        if self.is_stuck:
            await trio.sleep_forever()
        if self.is_away:
            raise NodeUnavailable("all nodes are away")
        return Header(self.number, self.number.to_bytes(32, "big"), bytes(32), 0, 0)

    async def fees(self) -> GasFees:
        return GasFees(base_fee_wei=100 * self.number, tip_wei=self.number)

    async def wait_head(self, known: bytes) -> None:
        if self.is_away:
            raise NodeUnavailable("all nodes are away")
        if self.is_silent or int.from_bytes(known, "big") == self.number:
            await (trio.Event() if self.is_silent else self._grown).wait()


@asynccontextmanager
async def watched(node: Node) -> AsyncIterator[GasWatch]:
    watch = GasWatch(cast("Chain", node), lambda: int(trio.current_time() * 1_000))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch.run)
        await trio.testing.wait_all_tasks_blocked()
        yield watch
        nursery.cancel_scope.cancel()


def test_before_the_first_look_there_is_nothing() -> None:
    watch = GasWatch(cast("Chain", Node()), lambda: 0)
    assert not watch.is_fresh
    assert watch.statistics().age_ms is None
    with pytest.raises(ServiceUnavailable, match="no block of the chain was seen yet"):
        _ = watch.head


async def test_every_head_is_looked_at(autojump_clock: MockClock) -> None:
    node = Node()
    async with watched(node) as watch:
        for number in range(1, 4):
            node.grow()
            await trio.testing.wait_all_tasks_blocked()
            assert watch.head.number == number
            assert (watch.fees, watch.gas_price_wei) == (GasFees(100 * number, number), 101 * number)
        assert watch.statistics().looks == 4


async def test_heads_that_nobody_announces_are_found(autojump_clock: MockClock) -> None:
    node = Node()
    node.is_silent = True
    async with watched(node) as watch:
        node.grow()
        assert watch.head.number == 0
        await trio.sleep(GAS_LOOK_S + 0.1)
        assert watch.head.number == 1
        looks = node.looks
        await trio.sleep(10 * GAS_LOOK_S)
        assert node.looks - looks == 10


async def test_what_was_seen_too_long_ago_is_refused_and_comes_back(autojump_clock: MockClock) -> None:
    node = Node()
    async with watched(node) as watch:
        node.grow()
        await trio.testing.wait_all_tasks_blocked()
        node.is_away = True
        await trio.sleep(GAS_STALE_S - 1)
        assert watch.gas_price_wei == 101
        await trio.sleep(GAS_LOOK_S + 1.1)
        assert not watch.is_fresh
        for read in ("head", "fees", "gas_price_wei"):
            with pytest.raises(ServiceUnavailable, match="at most 60 s are allowed"):
                getattr(watch, read)
        statistics = watch.statistics()
        assert statistics.fault == "all nodes are away"
        assert statistics.failures >= 15
        node.is_away = False
        await trio.sleep(GAS_LOOK_S + 0.1)
        assert watch.head.number == 1
        assert watch.statistics().fault == ""


async def test_a_node_that_lets_us_wait_is_given_up(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_bounds(monkeypatch, gas_watch)
    node = Node()
    async with watched(node) as watch:
        node.is_stuck = True
        await trio.sleep(GAS_STALE_S + 1)
        assert watch.statistics().fault == "the node did not answer in time"
        assert not watch.is_fresh
        node.is_stuck = False
        await trio.sleep(30)
        assert watch.is_fresh


async def test_a_look_that_is_asked_for_comes_at_once(autojump_clock: MockClock) -> None:
    node = Node()
    async with watched(node) as watch:
        node.is_away = True
        await trio.sleep(GAS_STALE_S + 2 * GAS_LOOK_S)
        assert not watch.is_fresh
        node.is_stuck = True
        await trio.sleep(GAS_LOOK_S + 0.1)
        node.is_away = node.is_stuck = False
        watch.look_now()
        await trio.sleep(0.01)
        assert watch.is_fresh
