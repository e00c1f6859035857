"""Commands on a terminal and in a pipe: progress and colours are for terminals alone."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.patience import PATIENCE_S

pytestmark = pytest.mark.process
SETTINGS = 'state_dir = "state"\n'
COLOUR = re.compile(r"\x1b\[[0-9;]*3[0-9][0-9;]*m")


def run(folder: Path, *words: str, terminal: bool, **environ: str) -> str:
    """Output of a command that must succeed, on a terminal or through pipes."""
    path = folder / "settings.toml"
    path.write_text(SETTINGS, encoding="utf-8")
    command = [sys.executable, "-m", "cambist", *words, "--config", str(path)]
    variables = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    variables |= {"TERM": "xterm-256color", **environ}
    if not terminal:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE_S, check=True, env=variables
        )
        return done.stdout + done.stderr
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=variables) as process:
        os.close(theirs)
        said = b""
        while True:
            try:
                part = os.read(ours, 65_536)
            except OSError:  # Linux's end of a terminal
                break
            if not part:
                break
            said += part
        os.close(ours)
        assert process.wait(PATIENCE_S) == 0, said
    return said.decode()


def test_a_terminal_sees_the_work_and_colours(tmp_path: Path) -> None:
    said = run(tmp_path, "config", "check", terminal=True)
    assert "opening the roles" in said
    assert COLOUR.search(said)
    assert "settings are right" in said


@pytest.mark.parametrize("environ", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=lambda each: next(iter(each)))
def test_a_terminal_without_colours_gets_none(tmp_path: Path, environ: dict[str, str]) -> None:
    said = run(tmp_path, "config", "check", terminal=True, **environ)
    assert "settings are right" in said
    assert not COLOUR.search(said)


def test_a_pipe_gets_the_result_alone(tmp_path: Path) -> None:
    said = run(tmp_path, "config", "check", terminal=False)
    assert "\x1b" not in said
    assert "opening the roles" not in said
    run(tmp_path, "db", "migrate", terminal=False)
    assert run(tmp_path, "db", "migrate", terminal=False) == "nothing to apply\n"


def test_the_store_s_long_works_show_on_a_terminal(tmp_path: Path) -> None:
    assert "migrating" in run(tmp_path, "db", "migrate", terminal=True)
    assert "counting rows" in run(tmp_path, "db", "status", terminal=True)
    backup = str(tmp_path / "backup.sqlite3")
    assert "copying and checking" in run(tmp_path, "db", "backup", backup, terminal=True)
