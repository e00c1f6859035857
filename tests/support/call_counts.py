"""Work, as the number of calls that a thread makes: the same on any machine, however busy it is."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


class Calls:
    """Number of calls and returns counted so far."""

    def __init__(self) -> None:
        self.made = 0

    def _count(self, *_: object) -> None:
        self.made += 1


@contextmanager
def counted_calls() -> Iterator[Calls]:
    """Count the calls that this thread makes within, of Python's functions and of C's, and their returns."""
    calls = Calls()
    sys.setprofile(calls._count)
    try:
        yield calls
    finally:
        sys.setprofile(None)


def counted(monkeypatch: pytest.MonkeyPatch, owner: object, *names: str) -> dict[str, int]:
    """Numbers of calls of functions of a module, or of methods of a class, from now on."""
    counts = dict.fromkeys(names, 0)

    def counting(name: str, function: Any) -> Any:
        def call(*arguments: Any) -> Any:
            counts[name] += 1
            return function(*arguments)

        return call

    for name in names:
        monkeypatch.setattr(owner, name, counting(name, getattr(owner, name)))
    return counts
