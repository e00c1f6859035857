"""Turns of connections: networks take turns, however many connections each of them has in the queue."""

from time import perf_counter

import trio
import trio.testing

from cambist.engine.host.server.turns import Turns
from support.patience import PATIENCE_S

MANY = 40


def spin_1_ms() -> None:
    until = perf_counter() + 0.001
    while perf_counter() < until:
        pass


async def test_a_network_with_many_connections_waits_behind_its_own() -> None:
    turns, order = Turns(), list[str]()

    async def ask(network: str) -> None:
        await turns.take(network)
        order.append(network)
        spin_1_ms()
        turns.end()

    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(turns.run)
            await trio.testing.wait_all_tasks_blocked()
            async with trio.open_nursery() as asking:
                for _ in range(MANY):
                    asking.start_soon(ask, "192.0.2")
                # Two networks with one connection each, which come last.
                await trio.lowlevel.checkpoint()
                asking.start_soon(ask, "198.51.100")
                asking.start_soon(ask, "203.0.113")
            nursery.cancel_scope.cancel()
    assert len(order) == MANY + 2
    assert max(order.index("198.51.100"), order.index("203.0.113")) < MANY // 4
