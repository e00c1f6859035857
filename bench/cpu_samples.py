"""Profile of this process's CPU: its stack, sampled after each `EVERY_S` seconds of CPU.

A trio task is on the stack with all its awaiting callers, so that a sample shows on whose behalf it ran. Work
in C counts for the Python line that called it. Sampled in the main thread alone.
"""

import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

EVERY_S = 0.001

Stack = tuple[str, ...]
"""`file:function`, the outermost first; files as their last two parts."""


class CpuSamples:
    """Counts of sampled stacks."""

    def __init__(self) -> None:
        self.stacks: Counter[Stack] = Counter()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Context manager that samples the stack until it is left."""
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
        """Share of the CPU by the name that `name` gives a stack, the largest first."""
        found: Counter[str] = Counter()
        for stack, count in self.stacks.items():
            found[name(stack)] += count
        total = found.total() or 1
        return {what: count / total for what, count in found.most_common()}
