"""The `cambist` command as a fork whose chain has to answer in the product's own time while a test says so.

process = await warm_process("support.hurried_command:main", "serve", "--config", "venue.toml", ...)
with hurried(process.pid):
    ...     a chain that hangs is away within seconds
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from cambist.engine.chain import pulse
from cambist.engine.cli import main as command
from cambist.engine.trade.served import asking
from support.stretched_bounds import own_bounds

_HURRY, _PATIENT = signal.SIGUSR1, signal.SIGUSR2


@contextmanager
def hurried(pid: int) -> Iterator[None]:
    """In the block the process has the product's own bounds for its chain, after it the stretched ones."""
    os.kill(pid, _HURRY)
    try:
        yield
    finally:
        os.kill(pid, _PATIENT)


def main() -> None:
    """The program (`support.warm_processes`)."""
    patch = pytest.MonkeyPatch()
    signal.signal(_HURRY, lambda *_: own_bounds(patch, asking, pulse))
    signal.signal(_PATIENT, lambda *_: patch.undo())
    command()
