"""The built package: equal from tree and sdist, complete, and running without the repository."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.process

LAYERS = ("config", "crypto", "codecs", "feeds", "engine")


def build(source: Path, into: Path, target: str) -> Path:
    into.mkdir(exist_ok=True)
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(into)],
        cwd=source, check=True, capture_output=True,
    )  # fmt: skip
    (built,) = into.iterdir()
    return built


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if not name.endswith("RECORD")}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("tree") / "wheel", "wheel")


def test_wheel_from_the_sdist_equals_the_wheel_from_the_tree(wheel: Path, tmp_path: Path) -> None:
    sdist = build(ROOT, tmp_path / "sdist", "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (source,) = (tmp_path / "unpacked").iterdir()
    assert contents(build(source, tmp_path / "again", "wheel")) == contents(wheel)


def test_wheel_holds_every_module_and_data_file_and_nothing_else(wheel: Path) -> None:
    expected = {
        f"cambist/{path.relative_to(ROOT)}"
        for layer in LAYERS
        for path in (ROOT / layer).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    } | {"cambist/__init__.py", "cambist/__main__.py", "cambist/py.typed"}
    held = {name for name in contents(wheel) if ".dist-info/" not in name}
    assert held == expected


def test_installed_wheel_runs_on_its_own(wheel: Path, tmp_path: Path) -> None:
    program = (
        "import sys; sys.path.insert(0, sys.argv.pop(1)); import cambist;"
        "print(cambist.__file__); from cambist.engine.cli import main; main()"
    )
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index",
         "--target", str(tmp_path / "site"), str(wheel)],
        check=True, capture_output=True,
    )  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "site"), "--help"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    first, *page = done.stdout.splitlines()
    assert first.startswith(str(tmp_path))
    assert any("typed-data" in line for line in page)
