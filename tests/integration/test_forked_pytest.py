"""Runs of pytest in forks, as `make mutations` judges faults: each one sees the sources as they are."""

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from mutations.forked_pytest import ForkedPytest, write_source

TEST = """
from number import NUMBER


def test_number():
    assert NUMBER == 12


def test_end():
    while NUMBER == 0:
        pass
"""


@pytest.fixture
def forked(tmp_path: Path) -> Iterator[ForkedPytest]:
    (tmp_path / "test_number.py").write_text(TEST, encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": ""}
    with closing(ForkedPytest(tmp_path, environment)) as forked:
        yield forked


def test_a_fault_of_the_same_size_is_there_while_it_is_planted(tmp_path: Path, forked: ForkedPytest) -> None:
    for number, code, says in (
        (12, 0, "2 passed"),
        (13, 1, "FAILED test_number.py::test_number"),
        (12, 0, "2 passed"),
    ):
        write_source(tmp_path / "number.py", f"NUMBER = {number}\n")
        found, output = forked.run(["-q", "-p", "no:cacheprovider"], 60)
        assert (found, says in output) == (code, True)


def test_a_run_without_end_is_ended_and_the_next_one_begins(tmp_path: Path, forked: ForkedPytest) -> None:
    write_source(tmp_path / "number.py", "NUMBER = 0\n")
    with pytest.raises(TimeoutError):
        forked.run(["-q", "-k", "end"], 1)
    write_source(tmp_path / "number.py", "NUMBER = 1\n")
    assert forked.run(["-q", "-k", "end"], 60)[0] == 0
