"""Run long computations in time slices, with checkpoints between them, so that other tasks get their turn."""

import time
from collections.abc import Generator
from typing import TypeVar

import trio

SLICE_S = 0.001

Result = TypeVar("Result")


class Slices:
    """Runs generators one after the other, with a trio checkpoint after about every millisecond of work.

    An instance serves the polls and WebSocket messages of one maker on one chain, or the agents' bids
    in one chain's auctions.
    """

    def __init__(self) -> None:
        self._turn = trio.Lock()  # held across checkpoints: generators of one instance never interleave
        self._slice_ends = 0.0

    async def work(self, steps: Generator[None, None, Result]) -> Result:
        """Run a generator to its end, with a trio checkpoint about every millisecond.

        The millisecond counts from the last checkpoint of any call of `work`, so that a short generator may
        end without a checkpoint.

        Returns:
            The return value of the generator.
        """
        try:
            self._turn.acquire_nowait()
        except trio.WouldBlock:
            await self._turn.acquire()
        try:
            while True:
                try:
                    next(steps)
                except StopIteration as end:
                    result: Result = end.value
                    return result
                if time.perf_counter() >= self._slice_ends:
                    await trio.lowlevel.checkpoint()
                    self._slice_ends = time.perf_counter() + SLICE_S
        finally:
            self._turn.release()
