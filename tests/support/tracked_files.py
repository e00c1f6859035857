"""Files of the repository, for tests of its shape."""

import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@cache
def tracked_files() -> tuple[Path, ...]:
    """Files that git tracks or would add."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listed.returncode:
        pytest.fail("these guards run in a git checkout")
    return tuple(ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).is_file())
