"""The built package: equal from tree and sdist, complete, and running without the repository."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from cambist.config.version import __version__
from support.tracked_files import tracked_files

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.process, pytest.mark.seldom]

LAYERS = ("config", "crypto", "codecs", "feeds", "engine")


def build(source: Path, into: Path, target: str, **environment: str) -> Path:
    into.mkdir(exist_ok=True)
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(into)],
        cwd=source, env=os.environ | environment, check=True, capture_output=True,
    )  # fmt: skip
    (built,) = into.iterdir()
    return built


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if not name.endswith("RECORD")}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("tree") / "wheel", "wheel")


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the unpacked sdist."""
    folder = tmp_path_factory.mktemp("sdist")
    (folder / "unpacked").mkdir()
    archive = build(ROOT, folder / "built", "sdist")
    subprocess.run(["tar", "--extract", "--file", archive, "--directory", folder / "unpacked"], check=True)
    (source,) = (folder / "unpacked").iterdir()
    return source


def test_wheel_from_the_sdist_equals_the_wheel_from_the_tree(
    wheel: Path, unpacked: Path, tmp_path: Path
) -> None:
    assert contents(build(unpacked, tmp_path / "again", "wheel")) == contents(wheel)


def test_sdist_has_every_file_of_the_repository_and_its_tests_run(unpacked: Path, tmp_path: Path) -> None:
    found = {path.relative_to(unpacked) for path in unpacked.rglob("*") if path.is_file()}
    files = {path for path in found if path.name != "PKG-INFO" and "__pycache__" not in path.parts}
    assert files == {path.relative_to(ROOT) for path in tracked_files() if not path.is_symlink()}
    source = shutil.copytree(unpacked, tmp_path / "source")
    subprocess.run(["make", "links"], cwd=source, check=True, capture_output=True)
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not oracle",
         "tests/unit/crypto", "tests/guards/test_package_shape.py::test_top_level_is_the_agreed_one"],
        cwd=source, env=os.environ | {"PYTHONPATH": "src"}, check=True, capture_output=True,
    )  # fmt: skip


def test_a_release_names_the_addresses_of_its_pages(tmp_path: Path) -> None:
    wheel = build(ROOT, tmp_path, "wheel", PROJECT_URL="https://example.org/o/cambist/")
    (name,) = [name for name in contents(wheel) if name.endswith("/METADATA")]
    metadata = contents(wheel)[name].decode()
    files = f"https://example.org/o/cambist/blob/v{__version__}"
    assert f"Project-URL: Changelog, {files}/CHANGELOG.md" in metadata
    assert f"]({files}/docs/guides/api.md)" in metadata
    assert (
        f"](https://example.org/o/cambist/raw/v{__version__}/docs/guides/console/trade-swap.webp)" in metadata
    )
    assert not re.search(r"\]\((?!https://)", metadata)
    done = subprocess.run(["make", "dist"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, "PROJECT_URL: expected an https:// address" in done.stdout) == (2, True)


def test_wheel_holds_every_module_and_data_file_and_nothing_else(wheel: Path) -> None:
    expected = {
        f"cambist/{path.relative_to(ROOT)}"
        for layer in LAYERS
        for path in (ROOT / layer).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    } | {f"cambist/{path.name}" for path in (ROOT / "src/cambist").iterdir() if not path.is_dir()}
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
