"""Work, as the number of calls that a thread makes: the same on any machine, however busy it is."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


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
