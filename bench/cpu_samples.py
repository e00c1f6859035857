"""Profile of this process's CPU: the main thread's stack, sampled after each `EVERY_S` seconds of CPU.

A trio task is on the stack with all its awaiting callers, so that a sample shows on whose behalf it ran. Work
in C counts for the Python line that called it. Other threads are not sampled.
"""

import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

EVERY_S = 0.001

Stack = tuple[str, ...]
"""Functions of a sampled stack, outermost first, as `file:function` with the path's last two parts."""


class CpuSamples:
    """Profile of this process's CPU: number of samples of each stack."""

    def __init__(self) -> None:
        self.stacks: Counter[Stack] = Counter()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Context manager that samples the stack of this process until its block ends."""
        before = signal.signal(signal.SIGPROF, self._take)
        signal.setitimer(signal.ITIMER_PROF, EVERY_S, EVERY_S)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, before)

    def _take(self, _: int, frame: FrameType | None) -> None:
        stack = []
        while frame is not None:
            code = frame.f_code
            stack.append("/".join(code.co_filename.rsplit("/", 2)[-2:]) + ":" + code.co_qualname)
            frame = frame.f_back
        self.stacks[tuple(reversed(stack))] += 1

    def shares(self, name: Callable[[Stack], str]) -> dict[str, float]:
        """Return the share of the CPU of each group of stacks, the largest first.

        Args:
            name: returns the name of the group of a stack.
        """
        found: Counter[str] = Counter()
        for stack, count in self.stacks.items():
            found[name(stack)] += count
        total = found.total() or 1
        return {what: count / total for what, count in found.most_common()}
