"""Files of the repository or of an unpacked sdist, for tests of its shape."""

import os
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]


_MADE = frozenset(
    {
        ".venv",
        "node_modules",
        "dist",
        "__pycache__",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        ".hypothesis",
    }
)
"""Folders of an unpacked sdist that tools make."""


@cache
def tracked_files() -> tuple[Path, ...]:
    """Files that git tracks or would add; all files of an sdist, without those that tools make."""
    if (ROOT / "PKG-INFO").is_file():
        return tuple(_walked(ROOT))
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return tuple(ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).is_file())


def _walked(root: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(root):  # links are not followed
        folders[:] = [name for name in folders if name not in _MADE and not name.startswith(".venv-")]
        yield from (Path(folder) / name for name in files if name != "PKG-INFO")
