"""Bounds of the waits of tests: a busy machine reaches none of them, except where a test waits in vain."""

import ast
from collections.abc import Iterator
from pathlib import Path

from cambist.config import timeouts
from support.stretched_bounds import OWN_S

TESTS = Path(__file__).parents[1]
IN_VAIN_S = 1.0
"""Longest bound that a test may write as a number: of a wait for nothing."""
_BOUND = {"fail_after", "move_on_after"}
_KEYWORDS = {"timeout", "timeout_s", "within_s", "deadline_s"}
_HTTPX = {"get", "post", "options", "stream", "Client", "AsyncClient"}
_OWN_CLOCK = ("autojump_clock", "mock_clock", "MockClock")


def of_tests() -> Iterator[tuple[Path, str]]:
    """Each file of tests without a clock of its own, and its text."""
    for path in sorted(TESTS.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if "node_modules" not in path.parts and not any(word in text for word in _OWN_CLOCK):
            yield path, text


def numbers(call: ast.Call) -> Iterator[float]:
    """Bounds of a call that are written as numbers, seconds."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    bounds = [word.value for word in call.keywords if word.arg in _KEYWORDS]
    for bound in bounds + call.args[: name in _BOUND]:
        if isinstance(bound, ast.Constant) and isinstance(bound.value, int | float):
            yield bound.value


def is_httpx(call: ast.Call) -> bool:
    """Whether httpx gives a call its own bound of five seconds."""
    named = {word.arg for word in call.keywords}
    function = ast.unparse(call.func).partition("httpx.")
    return function[0] == "" and function[2] in _HTTPX and not named & {"timeout", "transport"}


def test_bounds_are_those_of_the_table() -> None:
    found = [
        f"{path.relative_to(TESTS)}:{call.lineno}"
        for path, text in of_tests()
        for call in ast.walk(ast.parse(text))
        if isinstance(call, ast.Call) and (is_httpx(call) or any(each > IN_VAIN_S for each in numbers(call)))
    ]
    assert found == [], "bounds come from support/patience.py"


def test_the_products_bounds_are_stretched_in_tests() -> None:
    assert [name for name, own_s in OWN_S.items() if getattr(timeouts, name) <= own_s] == []
