"""Order of the tests: TEST_ORDER=reverse turns each file round, TEST_ORDER=7 shuffles files and their tests.

Each test makes what it needs, so that any order passes; the same number gives the same order again.
"""

import hashlib
import os

import pytest

ORDER = os.environ.get("TEST_ORDER", "")


def arrange(items: list[pytest.Item]) -> None:
    """Put tests in order, file by file; short files come last, which keep all workers busy to the end."""
    if ORDER == "reverse":
        items.reverse()
    items.sort(key=_place)


def _place(item: pytest.Item) -> tuple[bool, str, str]:
    is_short = "/tests/unit/" in item.path.as_posix() and item.get_closest_marker("process") is None
    if ORDER in {"", "reverse"}:
        return is_short, str(item.path), ""
    return is_short, _rank(item.path.name), _rank(item.nodeid)


def _rank(name: str) -> str:
    return hashlib.sha256(f"{ORDER} {name}".encode()).hexdigest()
