"""Work in slices of time, one piece after the other, so that no other task waits for a whole piece."""

import time
from collections.abc import Generator
from typing import TypeVar

import trio

SLICE_S = 0.001

Result = TypeVar("Result")


class Slices:
    """Work that shares its slices, in turn: polls and socket messages of one maker on one chain, or agents'
    bids in one chain's auctions."""

    def __init__(self) -> None:
        self._turn = trio.Lock()
        self._slice_ends = 0.0

    async def work(self, steps: Generator[None, None, Result]) -> Result:
        """Run all steps, with a checkpoint after each millisecond of them.

        Many small pieces share a slice: there may be no checkpoint in one of them.

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
