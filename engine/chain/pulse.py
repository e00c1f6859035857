"""Watch whether a chain answers now: a task asks for the chain's head at short intervals.

Values of a chain that other parts cache, as the price of gas, may be a minute old while no node answers. A
write needs the chain's present state: within READY_LOOK_S + READY_ANSWER_S, `fault` shows that no node can
give that state.

A chain whose head takes longer than READY_ANSWER_S counts as unreachable: an order's checks take three such
questions within ORDER_CHECK_S.
"""

from collections.abc import Callable
from typing import NoReturn

import trio

from ...config.errors import ChainError
from ...config.timeouts import READY_AGAIN_S, READY_ANSWER_S, READY_LOOK_S
from .port import Chain


class Pulse:
    """Watches whether one chain answers. `run` is its task.

    Args:
        came_back: called when the chain answers again after a silence.

    Attributes:
        fault: reason for which the chain counts as unreachable; empty while it answers.
        head_number, head_time_s: height and time (Unix seconds) of the latest block seen; 0 before the first.
    """

    def __init__(self, chain: Chain, came_back: Callable[[], None]) -> None:
        self._chain = chain
        self._came_back = came_back
        self.fault = "no node was asked yet"
        self.head_number = self.head_time_s = 0

    async def run(self) -> NoReturn:
        """Ask for the head, more often while the chain is unreachable, until cancelled."""
        while True:
            fault = await self._ask()
            if self.fault and not fault:
                self._came_back()
            self.fault = fault
            await trio.sleep(READY_AGAIN_S if fault else READY_LOOK_S)

    async def _ask(self) -> str:
        """Ask for the head; returns the reason of a failure, empty on success."""
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
