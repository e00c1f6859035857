"""Run each test file in a process of its own, a fork of one that has imported the package.

    TEST_ORDER=reverse python -m support.files_alone [FILE ...]

The tests of a file that share a world run in a process each, too: each makes all that it needs. The output of
each run that fails is printed, and the process ends with 1 then. Without names it runs all files.
"""

import math
import os
import re
import signal
import sys
import tempfile
from pathlib import Path

import pytest

# isort: split

import support.stretched_bounds  # noqa: F401  before the modules that copy the bounds

# isort: split

import cambist.engine.cli
import cambist.engine.dev.place.up  # noqa: F401
from support.patience import STORY_S

_AT_ONCE = 4
FILE_S = 4 * STORY_S
"""Bound of a file: more than one story of it may take its whole time."""
_SHARES = re.compile(r'scope="module"')
_TEST = re.compile(r"^(?:async )?def (test_\w+)", re.MULTILINE)
_FINE = {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}


def start(part: str, folder: Path) -> int:
    """Fork a process that runs a file or a test, with its output in the folder; return its id."""
    folder.mkdir()
    if child := os.fork():
        return child
    status = pytest.ExitCode.INTERNAL_ERROR
    try:
        output = os.open(folder / "output", os.O_WRONLY | os.O_CREAT)
        os.dup2(output, 1)
        os.dup2(output, 2)
        signal.alarm(math.ceil(FILE_S))  # ends a file that hangs
        status = pytest.ExitCode(
            pytest.main(["-q", "-p", "no:cacheprovider", f"--basetemp={folder / 'tmp'}", part])
        )
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def run(parts: list[str], folder: Path) -> int:
    """Run files and tests; return how many failed."""
    waiting, running, failed = list(reversed(parts)), dict[int, tuple[str, Path]](), 0
    while waiting or running:
        while waiting and len(running) < _AT_ONCE:
            part, own = waiting.pop(), folder / str(len(waiting))
            running[start(part, own)] = part, own
        child, status = os.wait()
        part, own = running.pop(child)
        if os.waitstatus_to_exitcode(status) not in _FINE:
            failed += 1
            print(part, (own / "output").read_text(), sep="\n", flush=True)  # noqa: T201
    return failed


def _all_files() -> list[str]:
    tests = Path(__file__).parents[1]
    return sorted(str(path) for path in tests.rglob("test_*.py") if "node_modules" not in path.parts)


def parts_of(file: str) -> list[str]:
    """The file, and each of its tests if these share a world."""
    text = Path(file).read_text(encoding="utf-8")
    return [file, *(f"{file}::{name}" for name in _TEST.findall(text) if _SHARES.search(text))]


if __name__ == "__main__":
    chosen = [part for file in sys.argv[1:] or _all_files() for part in parts_of(file)]
    with tempfile.TemporaryDirectory() as made:
        failures = run(chosen, Path(made))
    sys.exit(failures > 0)
