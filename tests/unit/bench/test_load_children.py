"""Processes of the load benches: ready when they answer, ended by their own id, failures say what to do."""

import socket
import sys
from pathlib import Path

import pytest
from bench import load_children
from bench.load_children import HOST, LoadError, ServerProcess, python_of


@pytest.fixture
def _this_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_children, "python_of", lambda _: sys.executable)


@pytest.mark.process
@pytest.mark.usefixtures("_this_interpreter")
def test_our_server_answers_once_it_is_entered_and_is_gone_behind_it(tmp_path: Path) -> None:
    watched = tmp_path / "watched.json"
    options = ["--pairs", "200", "--snapshots", "--watch", str(watched)]
    with ServerProcess("ours", ".venv-load", "bench.firm_server", options, None) as server:
        assert Path(f"/proc/{server.pid}").exists() or sys.platform != "linux"
        socket.create_connection((HOST, server.port)).close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((HOST, server.port))
    assert '"late_s"' in watched.read_text(encoding="utf-8")


@pytest.mark.process
@pytest.mark.usefixtures("_this_interpreter")
def test_a_server_that_lacks_a_package_says_what_installs_it() -> None:
    with (
        pytest.raises(LoadError, match=r"gave no quote(.|\n)*make setup-load(.|\n)*No module named"),
        ServerProcess("peer", ".venv-load", "bench.peers.not_there", [], None),
    ):
        pass


@pytest.mark.parametrize(
    ("environment", "target"), [(".venv-load", "make setup-load"), (".venv-peers", "make setup-peers")]
)
def test_an_environment_that_is_missing_names_its_target(
    environment: str, target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load_children, "ROOT", tmp_path)
    with pytest.raises(LoadError, match=f"{environment} is missing: {target}"):
        python_of(environment)
