"""Order of the tests: TEST_ORDER=reverse turns each file round, TEST_ORDER=7 shuffles files and their tests.

Each test makes what it needs, so that any order passes; the same number gives the same order again.
"""

import hashlib
import os
from collections import defaultdict

import pytest

from support.examples import IS_LONG

ORDER = os.environ.get("TEST_ORDER", "")
IS_WHOLE = IS_LONG or os.environ.get("TEST_WHOLE") == "1"
"""Whether this run takes all parameters of every test: CI, `make mutations`, `make test-long`."""


def arrange(items: list[pytest.Item]) -> None:
    """Put tests in order, file by file; short files come last, which keep all workers busy to the end."""
    if ORDER == "reverse":
        items.reverse()
    items.sort(key=_place)


def sampled(items: list[pytest.Item]) -> list[pytest.Item]:
    """Tests to leave out: of a function with the mark `one_of(n)` one in n stays, drawn by the order.

    At least one of each function stays, so that a test that is named is run.
    """
    parts = defaultdict[tuple[str, str], list[pytest.Item]](list)
    for item in items:
        if item.get_closest_marker("one_of"):
            parts[str(item.path), getattr(item, "originalname", item.name)].append(item)
    left_out: list[pytest.Item] = []
    for part in parts.values():
        mark = part[0].get_closest_marker("one_of")
        least = -(-len(part) // mark.args[0]) if mark else len(part)
        left_out += sorted(part, key=lambda item: _rank(item.nodeid))[least:]
    return left_out


def _place(item: pytest.Item) -> tuple[bool, str, str]:
    is_short = "/tests/unit/" in item.path.as_posix() and item.get_closest_marker("process") is None
    if ORDER in {"", "reverse"}:
        return is_short, str(item.path), ""
    return is_short, _rank(item.path.name), _rank(item.nodeid)


def drawn(name: str, count: int) -> int:
    """Number below `count` that the order of this run draws for a name."""
    return int(_rank(name), 16) % count


def _rank(name: str) -> str:
    return hashlib.sha256(f"{ORDER} {name}".encode()).hexdigest()
