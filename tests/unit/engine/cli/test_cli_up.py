"""The command that `cambist up` prints can be typed where it was printed."""

import sys
from pathlib import Path

import pytest

from cambist.engine.cli.dev import up


@pytest.mark.parametrize(
    ("folder", "installed", "on_path", "printed"),
    [
        ("{tmp}", True, False, ".venv/bin/cambist"),
        ("{tmp}", True, True, "cambist"),
        ("{tmp}", False, False, "cambist"),
        ("/", True, False, "{tmp}/.venv/bin/cambist"),
    ],
)
def test_the_printed_command_is_found(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    folder: str,
    installed: bool,
    on_path: bool,
    printed: str,
) -> None:
    there = tmp_path / ".venv" / "bin"
    there.mkdir(parents=True)
    for name in ("python", *(("cambist",) if installed else ())):
        (there / name).write_text("#!/bin/sh\n")
        (there / name).chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(there / "python"))
    monkeypatch.setenv("PATH", str(there) if on_path else "/nowhere")
    where = folder.replace("{tmp}", str(tmp_path))
    monkeypatch.chdir(where)
    expected = printed.replace("{tmp}", str(tmp_path))
    # The root holds every folder, so that a path from there is relative, too.
    assert up._command() == (expected.removeprefix("/") if where == "/" else expected)
