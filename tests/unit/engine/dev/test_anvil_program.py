"""Path, start and output of the anvil program."""

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from cambist.engine.dev.devnet.anvil import anvil_command, chain_to_install, find_anvil, listening_port

ROOT = Path(__file__).parents[4]


def program(path: Path, mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True)
    path.write_text("")
    path.chmod(mode)
    return path


def test_the_path_comes_first_then_npms_folders(tmp_path: Path) -> None:
    packages = tmp_path / "node_modules" / "@foundry-rs"
    installed = program(packages / "anvil-linux-amd64" / "bin" / "anvil")
    on_path = program(tmp_path / "bin" / "anvil")
    folders = [tmp_path / "absent", tmp_path]
    assert find_anvil({"PATH": str(on_path.parent)}, folders) == on_path
    assert find_anvil({"PATH": ""}, folders) == installed
    assert find_anvil({"PATH": ""}) is None


def test_what_cannot_be_run_is_none(tmp_path: Path) -> None:
    program(tmp_path / "node_modules" / "@foundry-rs" / "anvil-linux-arm64" / "bin" / "anvil", 0o644)
    assert find_anvil({"PATH": ""}, [tmp_path]) is None


@pytest.mark.parametrize("python", [(3, 11), (3, 12), (3, 13)])
@pytest.mark.parametrize(
    ("system", "machine"),
    [
        ("Linux", "x86_64"),
        ("Linux", "aarch64"),
        ("Darwin", "arm64"),
        ("Windows", "AMD64"),
        ("FreeBSD", "amd64"),
    ],
)
def test_the_extra_is_named_where_it_installs_the_embedded_chain(
    python: tuple[int, int], system: str, machine: str
) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (required,) = project["optional-dependencies"]["devnet"]
    marker = Requirement(required).marker
    assert marker is not None
    version = ".".join(map(str, python))
    here = {"python_version": version, "sys_platform": system.lower(), "platform_machine": machine}
    has_wheel = marker.evaluate(here)
    advice = chain_to_install(python, system, machine)
    assert "npm install --global @foundry-rs/anvil" in advice
    assert ('pip install "cambist[devnet]"' in advice) == has_wheel
    assert (f"no wheel for Python {version} on {system} {machine}" in advice) != has_wheel


def test_the_command_holds_the_hardfork_and_the_chain() -> None:
    assert anvil_command(Path("anvil"), 31338, state=Path("s.json"), options=["--no-mining"]) == [
        "anvil", "--hardfork", "prague", "--host", "127.0.0.1", "--port", "0", "--chain-id", "31338",
        "--prune-history", "10000", "--state", "s.json", "--preserve-historical-states", "--no-mining",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "port"),
    [
        (b"Listening on 127.0.0.1:33979\n", 33979),
        (b"Listening on [::1]:8545\r\n", 8545),
        (b"Listening on \n", None),
        (b"Listening on 127.0.0.1:none\n", None),
        (b"Genesis Number\n", None),
        (b"", None),
    ],
)
def test_the_port_is_in_its_output(line: bytes, port: int | None) -> None:
    assert listening_port(line) == port
