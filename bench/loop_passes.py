"""Duration of each pass of a trio event loop, during which all other tasks wait.

Wall time includes other processes on the core; CPU time does not. The embedded chain's EVM is counted
separately: in production it is a node's work.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter, thread_time
from typing import Any
from unittest.mock import patch

import trio

from cambist.engine.dev.embedded.embedded import EmbeddedChain
from cambist.engine.dev.embedded.ledger import BlockLedger

_STEP_S = 0.000_1
_STEPS = 50_000
_EVM = ((EmbeddedChain, "_called"), (BlockLedger, "execute"))


class Spread:
    """Histogram of durations in steps of a tenth of a millisecond, with memory that does not grow."""

    def __init__(self) -> None:
        self._counts = [0] * (_STEPS + 1)
        self.count = 0

    def add(self, seconds: float) -> None:
        """Count a duration, in seconds, in the histogram."""
        self._counts[min(int(seconds / _STEP_S), _STEPS)] += 1
        self.count += 1

    def at_ms(self, share: float) -> float:
        """Return the percentile of the durations at `share`, from 0 to 1, in milliseconds."""
        left = share * self.count
        for step, count in enumerate(self._counts):
            left -= count
            if left <= 0 and self.count:
                return (step + 1) * _STEP_S * 1e3
        return 0.0


class LoopPasses(trio.abc.Instrument):
    """Measurement of the passes of this thread's trio event loop, while `counted` is active.

    Attributes:
        wall, cpu: histograms of the wall time and the CPU time of the passes.
        own: histogram of the CPU time without the embedded chain's EVM.
        lately: as `own`, but since a reader of the figures last replaced it.
        evm_s: total CPU of the EVM.
        cpu_s: total CPU of all passes.
    """

    def __init__(self) -> None:
        self.wall, self.cpu, self.own, self.lately = Spread(), Spread(), Spread(), Spread()
        self.evm_s = self.cpu_s = 0.0
        self._evm_of_pass = self._began = self._began_cpu = 0.0

    def after_io_wait(self, timeout: float) -> None:  # noqa: ARG002
        """Record the beginning of a pass of the event loop."""
        self._evm_of_pass = 0.0
        self._began, self._began_cpu = perf_counter(), thread_time()

    def before_io_wait(self, timeout: float) -> None:  # noqa: ARG002
        """Count the pass of the event loop that has ended."""
        if not self._began:
            return
        cpu = thread_time() - self._began_cpu
        self.wall.add(perf_counter() - self._began)
        self.cpu.add(cpu)
        self.own.add(max(cpu - self._evm_of_pass, 0.0))
        self.lately.add(max(cpu - self._evm_of_pass, 0.0))
        self.cpu_s += cpu
        self.evm_s += self._evm_of_pass

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Context manager that measures the passes of the event loop until its block ends."""
        patches = [patch.object(owner, name, self._timed(getattr(owner, name))) for owner, name in _EVM]
        for each in patches:
            each.start()
        trio.lowlevel.add_instrument(self)
        try:
            yield
        finally:
            trio.lowlevel.remove_instrument(self)
            for each in patches:
                each.stop()

    def _timed(self, act: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*given: Any, **named: Any) -> Any:
            began = thread_time()
            try:
                return act(*given, **named)
            finally:
                self._evm_of_pass += thread_time() - began

        return timed
