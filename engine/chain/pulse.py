"""Monitor whether a chain answers: a task reads the chain's latest block at short intervals.

Cached values of a chain, such as the price of gas, may be a minute old while no node answers. An API request
that changes an order needs the chain's present state: at most READY_LOOK_S + READY_ANSWER_S seconds after the
last answer, `Pulse.fault` has the reason for which no node can give that state.

A chain that returns its latest block later than after READY_ANSWER_S counts as unreachable, since the checks
of an order send three such requests within ORDER_CHECK_S.
"""

from collections.abc import Callable
from typing import NoReturn

import trio

from ...config.errors import ChainError
from ...config.timeouts import READY_AGAIN_S, READY_ANSWER_S, READY_LOOK_S
from ...feeds.ticks import tick
from .port import Chain


class Pulse:
    """Monitor of one chain: whether it answers, and its latest block. `run` is the monitor's task.

    Args:
        came_back: called at the first answer, and at the first answer after each failure.

    Attributes:
        fault: reason for which the chain counts as unreachable; empty while it answers.
        head_number, head_time_s: height and timestamp (Unix seconds) of the latest block read; 0 before the
            first.
    """

    def __init__(self, chain: Chain, came_back: Callable[[], None]) -> None:
        self._chain = chain
        self._came_back = came_back
        self.fault = "no node was asked yet"
        self.head_number = self.head_time_s = 0

    async def run(self) -> NoReturn:
        """Read the latest block at intervals until cancelled; the intervals are shorter after a failure."""
        while True:
            fault = await self._ask()
            if self.fault and not fault:
                self._came_back()
            self.fault = fault
            await tick(READY_AGAIN_S if fault else READY_LOOK_S)

    async def _ask(self) -> str:
        """Read the latest block; return the reason of a failure, or an empty text on success."""
        with trio.move_on_after(READY_ANSWER_S):
            try:
                head = await self._chain.block()
            except ChainError as error:
                return error.detail
            if head is None:
                return "the latest block is not in the chain"
            self.head_number, self.head_time_s = head.number, head.time_s
            return ""
        return f"no answer within {READY_ANSWER_S:g} s"
