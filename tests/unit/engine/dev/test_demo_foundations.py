"""The demo of the foundations: its claims hold, on any terminal."""

import io
import re

import pytest
from rich.console import Console

from cambist.engine.dev.demo.foundations import run_foundations


def shown(width: int = 160) -> str:
    console = Console(file=io.StringIO(), width=width)
    run_foundations(console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_every_step_is_shown() -> None:
    text = shown()
    for title in ("22. Beneath: the venue signs", "23. A user signs", "24. How fast"):
        assert title in text


@pytest.mark.parametrize(
    ("request_shown", "answer"),
    [
        ("as sent", "verified"),
        ("another body", "401 X-AUTH-SIGNATURE: does not match"),
        ("another key", "401 X-AUTH-ACCESS-KEY: wrong access key"),
        ("45 s late", "401 X-AUTH-TIMESTAMP: 45000 ms behind"),
        ("no signature", "401 X-AUTH-SIGNATURE: header missing"),
    ],
)
def test_each_request_gets_its_answer(request_shown: str, answer: str) -> None:
    (line,) = (line for line in shown().splitlines() if line.strip().startswith(request_shown))
    assert line.split(request_shown)[1].strip().startswith(answer)


def test_keys_are_thrown_away() -> None:
    signatures = {re.findall(r"TWAPOrder .*(0x[0-9a-f]{24})", shown())[0] for _ in range(2)}
    assert len(signatures) == 2


def test_a_narrow_terminal_is_no_obstacle() -> None:
    assert "How fast" in shown(width=40)
