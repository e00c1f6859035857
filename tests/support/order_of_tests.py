"""Order and draw of the tests.

TEST_ORDER=reverse turns each file round, TEST_ORDER=7 shuffles files and their tests, TEST_ORDER=given keeps
the order of the command line. Each test makes what it needs, so that any order passes; the same number gives
the same order again.

A run of the whole suite takes a draw, by its order: one in n of the parameters of a test marked `one_of(n)`,
one kind of chain for each story, a pair of databases, a quarter of the files whose tests are marked `seldom`.
TEST_WHOLE=1 takes all; with TEST_SELDOM=2 besides, half of the files marked `seldom`. A run that names files
or folders takes all of these.
"""

import hashlib
import os
from collections import defaultdict

import pytest

from support.examples import IS_LONG

ORDER = os.environ.get("TEST_ORDER", "")
IS_WHOLE = IS_LONG or os.environ.get("TEST_WHOLE") == "1"
"""Whether this run takes all parameters of its tests: CI, `make mutations`, `make test-long`."""
_NAMED = "TESTS_NAMED"
_SELDOM = max(int(os.environ.get("TEST_SELDOM") or (1 if IS_WHOLE else 4)), 1)
"""Of this many files marked `seldom`, the run takes one."""


def note_scope(config: pytest.Config) -> None:
    """Tell the workers of this run whether it names files or folders."""
    if config.option.needing or config.args_source is pytest.Config.ArgsSource.ARGS:
        os.environ[_NAMED] = "1"
    else:
        os.environ.pop(_NAMED, None)


def is_drawn() -> bool:
    """Whether this run takes a draw of tests and parameters."""
    return not IS_WHOLE and _NAMED not in os.environ


def arrange(items: list[pytest.Item]) -> None:
    """Put tests in order, file by file; short files come last, which keep all workers busy to the end."""
    if ORDER == "given":
        return
    if ORDER == "reverse":
        items.reverse()
    items.sort(key=_place)


def left_to_others(items: list[pytest.Item]) -> list[pytest.Item]:
    """Tests to leave out of a run that takes a draw.

    At least one of each function marked `one_of(n)` stays. All tests of a file that are marked `seldom` stay,
    or none, since they share a world.
    """
    if _NAMED in os.environ:
        return []
    parts = defaultdict[tuple[str, str], list[pytest.Item]](list)
    left_out: list[pytest.Item] = []
    for item in items:
        if item.get_closest_marker("seldom") and drawn(item.path.name, _SELDOM):
            left_out.append(item)
        elif item.get_closest_marker("one_of") and not IS_WHOLE:
            parts[str(item.path), getattr(item, "originalname", item.name)].append(item)
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
