"""A test is skipped for lack of a program, which the end of the run names, and for no other reason."""

import os
import re
import shutil
import subprocess
import sys
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from support import programs
from support.order_of_tests import arrange
from support.patience import PATIENCE_S
from support.programs import HIDING, PROGRAMS
from support.tracked_files import ROOT, tracked_files

pytestmark = pytest.mark.seldom

SKIPS = re.compile(r"pytest\.(?:skip|importorskip|xfail)\(|mark\.(?:skip|skipif|xfail)\b|collect_ignore")
CADDY = "tests/integration/test_deploy_files.py", "-k", "caddy"


def test_one_file_skips_tests() -> None:
    skipping = {
        path.name
        for path in tracked_files()
        if path.is_relative_to(ROOT / "tests") and path.suffix == ".py" and path != Path(__file__)
        if SKIPS.search(path.read_text(encoding="utf-8"))
    }
    assert skipping == {"programs.py"}, "write @pytest.mark.needs(...) or program(...): support/programs.py"


def ran(*arguments: str, **environ: str) -> tuple[int, str]:
    """Exit status and output of a run of its own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "REQUIRE_"))}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=ROOT, env=kept | environ, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout


@pytest.mark.process
def test_the_end_of_a_run_names_what_is_missing_and_what_brings_it() -> None:
    status, said = ran(*CADDY, WITHOUT="caddy")
    assert status == 0
    assert re.findall(r"^caddy +1 test +(.+)$", said, re.MULTILINE) == [PROGRAMS["caddy"].brought_by]


@pytest.mark.process
def test_what_is_missing_fails_where_everything_is_required() -> None:
    status, said = ran(*CADDY, WITHOUT="caddy", REQUIRE_PROGRAMS="1")
    assert status == 1
    assert "caddy is missing: apt-get install caddy" in said


@pytest.mark.process
def test_files_that_need_no_hidden_program_are_left_out() -> None:
    names = "tests/integration/test_deploy_files.py", "tests/integration/test_deploy_compose.py"
    _, said = ran(*names, "--collect-only", "--needing", WITHOUT="nginx")
    assert {line.partition("::")[0] for line in said.splitlines() if "::" in line} == {names[0]}


def test_a_skip_inside_nurseries_keeps_its_reason_and_hides_no_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("REQUIRE_PROGRAMS", "")
    with pytest.raises(pytest.skip.Exception, match="needs curl") as lacking:
        programs.lack("curl")
    skip = lacking.value
    nested = BaseExceptionGroup("nursery", [BaseExceptionGroup("nursery", [skip])])
    anew = pytest.skip.Exception("")
    anew.__context__ = nested
    assert programs.skip_within(nested) is programs.skip_within(anew) is skip
    assert programs.skip_within(skip) is None  # it is raised as it is
    assert programs.skip_within(BaseExceptionGroup("nursery", [skip, AssertionError("wrong")])) is None
    assert programs.skip_within(ExceptionGroup("nursery", [ValueError("wrong")])) is None


def test_an_unknown_program_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WITHOUT", "curl wget")
    with pytest.raises(pytest.UsageError, match="got wget"):
        programs.hidden()


def test_processes_do_not_find_a_hidden_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("fetch", "fetch-more"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setitem(PROGRAMS, "fetch", programs.Program(lambda: None, "make fetch", ("fetch",)))
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("WITHOUT", "fetch")
    monkeypatch.setenv(HIDING, "")  # is set back at the end, however the test ends
    monkeypatch.delenv(HIDING)
    folder = programs.hide()
    assert folder
    try:
        found = subprocess.run(
            ["sh", "-c", "command -v fetch; command -v fetch-more; command -v sh"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert [Path(line).name for line in found.stdout.splitlines()] == ["fetch-more", "sh"]
    finally:
        shutil.rmtree(folder)


def test_an_order_shuffles_files_and_their_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    long, short = ([f"tests/{folder}/test_{at}.py" for at in range(6)] for folder in ("e2e", "unit"))
    collected = [(file, test) for file in short + long for test in range(8)]

    def arranged(order: str) -> list[tuple[str, int]]:
        monkeypatch.setattr("support.order_of_tests.ORDER", order)
        items: list[Any] = [
            SimpleNamespace(
                path=Path("/", file),
                nodeid=f"{file}::{test}",
                get_closest_marker=lambda _: None,
                at=(file, test),
            )
            for file, test in collected
        ]
        arrange(items)
        return [item.at for item in items]

    assert arranged("") == [(file, test) for file in long + short for test in range(8)]
    assert arranged("reverse") == [(file, test) for file in long + short for test in reversed(range(8))]
    first, second = arranged("1"), arranged("2")
    assert first == arranged("1") != second
    for order in (first, second):
        files = [file for file, _ in groupby(order, lambda each: each[0])]
        assert sorted(files) == sorted(long + short)  # the tests of a file stay together
        assert sorted(files[:6]) == long
        assert files[:6] != long
        assert sorted(order) == sorted(collected)
        assert [test for file, test in order if file == long[0]] != list(range(8))
