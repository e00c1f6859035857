"""Files of the state directory are open to their owner alone."""

import os
from collections.abc import Iterator
from pathlib import Path
from stat import S_IMODE

import pytest
from structlog.testing import capture_logs

from cambist.config.errors import ConfigError
from cambist.engine.host.safety.private_state import keep_private, make_private


@pytest.fixture(autouse=True)
def own_umask() -> Iterator[None]:
    was = os.umask(0o022)
    yield
    os.umask(was)


def mode(path: Path) -> int:
    return S_IMODE(path.stat().st_mode)


def test_what_is_made_from_then_on_is_private(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "state"
    keep_private(folder, [folder / "none.sqlite3"])
    (folder / "new").touch()
    assert (mode(folder), mode(folder / "new")) == (0o700, 0o600)
    make_private()
    (folder / "newer").mkdir()
    assert mode(folder / "newer") == 0o700


def test_what_is_wider_is_narrowed_with_a_warning(tmp_path: Path) -> None:
    kept, other = tmp_path / "a.sqlite3", tmp_path / "contracts.json"
    for path in (kept, other):
        path.touch(0o644)
    tmp_path.chmod(0o755)
    with capture_logs() as logs:
        keep_private(tmp_path, [kept])
    assert (mode(tmp_path), mode(kept), mode(other)) == (0o700, 0o600, 0o644)
    assert [(line["path"], line["mode"]) for line in logs] == [(str(tmp_path), "0755"), (str(kept), "0644")]
    with capture_logs() as logs:
        keep_private(tmp_path, [kept])
    assert logs == []


def test_what_belongs_to_others_is_refused_where_everybody_may_enter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    tmp_path.chmod(0o755)
    monkeypatch.setattr(Path, "chmod", denied)
    with pytest.raises(ConfigError, match="has mode 0755 and belongs to another account: expected 0700"):
        keep_private(tmp_path, [])
    os.chmod(tmp_path, 0o770)  # noqa: PTH101  that of Path is replaced
    with capture_logs() as logs:
        keep_private(tmp_path, [])
    assert [line["event"] for line in logs] == ["a file of another account is open to its group"]


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="file/state cannot be kept private: Not a directory"):
        keep_private(tmp_path / "file" / "state", [])
