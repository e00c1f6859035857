"""`cambist keys`: key files are encrypted, private, whole, and never written over another."""

import json
import os
import stat
import subprocess
import sys
import uuid
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cambist.crypto.custody.keystore import decrypt_key, encrypt_key
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.cli import cli

DIGITS = "7a28b5ba57c53603b0b07b56bba752f7784bf506fa95edc395f5cf6c7514fe9d"
ADDRESS = "0x008AeEda4D805471dF9b2A5B0f38A0C3bCBA786b"
PASSWORD = "correct horse battery staple"
KEYSTORE = encrypt_key(
    SigningKey(bytes.fromhex(DIGITS)), PASSWORD, salt32=b"\1" * 32, iv16=b"\2" * 16, file_id="", scrypt_n=2
)


@pytest.fixture
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keystores are written at the least cost there is; `keys new` is tested at the cost that it writes."""
    monkeypatch.setattr("cambist.engine.cli.offline.keys.encrypt_key", partial(encrypt_key, scrypt_n=2))


def run(*arguments: str, **environ: str) -> Result:
    given = {"PASSWORD": PASSWORD, "KEY": DIGITS} | environ
    result = CliRunner().invoke(cli, ["keys", *arguments], env=given)
    assert DIGITS not in result.output
    assert PASSWORD not in result.output
    return result


def refusal(result: Result) -> str:
    assert result.exit_code == 1
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    return line.removeprefix("Error: ")


def test_new_writes_a_private_keystore_and_prints_its_address(tmp_path: Path) -> None:
    out = tmp_path / "maker.json"
    result = run("new", "--out", str(out), "--password", "env:PASSWORD")
    assert result.exit_code == 0, result.output
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [out]
    document = json.loads(out.read_bytes())
    assert document["crypto"]["kdfparams"]["n"] == 1 << 18
    assert uuid.UUID(document["id"]).version == 4
    assert result.stdout.strip().lower() == f"0x{document['address']}"
    assert decrypt_key(out.read_bytes(), PASSWORD).address.hex() == document["address"]
    assert refusal(run("new", "--out", str(out), "--password", "env:PASSWORD")) == (
        f"{out}: exists; a key file is never overwritten"
    )
    assert json.loads(out.read_bytes()) == document


@pytest.mark.usefixtures("cheap")
def test_import_stores_an_existing_key_under_a_password_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "password").write_text(PASSWORD + "\n")
    (tmp_path / "old.json").write_bytes(KEYSTORE)
    out = tmp_path / "new.json"
    result = run(
        "import", "--key", f"file:{tmp_path}/old.json", "--key-password", "env:PASSWORD",
        "--out", str(out), "--password", f"file:{tmp_path}/password",
    )  # fmt: skip
    assert (result.exit_code, result.stdout) == (0, ADDRESS + "\n")
    assert decrypt_key(out.read_bytes(), PASSWORD).secret32().hex() == DIGITS


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("--key", "env:KEY"), id="digits"),
        pytest.param(("--key", "env:PREFIXED"), id="0x"),
        pytest.param(("--key", "env:STORE", "--password", "env:PASSWORD"), id="keystore"),
    ],
)
def test_address_tells_whose_key_it_is(arguments: tuple[str, ...]) -> None:
    result = run("address", *arguments, PREFIXED="0x" + DIGITS, STORE=KEYSTORE.decode())
    assert (result.exit_code, result.stdout, result.stderr) == (0, ADDRESS + "\n", "")


ADDRESS_REFUSED: dict[str, tuple[tuple[str, ...], str]] = {
    "a literal": (("--key", DIGITS), "--key: expected env:NAME or file:PATH"),
    "nothing there": (("--key", "env:NOPE"), "--key: environment variable NOPE is not set or empty"),
    "not a key": (("--key", "env:PASSWORD"), "env:PASSWORD: is neither a private key"),
    "no password": (("--key", "env:STORE"), "env:STORE: is an encrypted keystore and needs a password"),
    "wrong password": (
        ("--key", "env:STORE", "--password", "env:OTHER"),
        "env:STORE: keystore: wrong password",
    ),
    "empty password": (("--key", "env:STORE", "--password", "env:EMPTY"), "--password: environment variable"),
    "typed password": (
        ("--key", "env:STORE", "--password", PASSWORD),
        "--password: expected env:NAME or file",
    ),
    "needless password": (("--key", "env:KEY", "--password", "env:PASSWORD"), "env:KEY: is a plain key, but"),
}


@pytest.mark.parametrize(("arguments", "said"), ADDRESS_REFUSED.values(), ids=ADDRESS_REFUSED)
def test_a_key_that_cannot_be_read_is_refused(arguments: tuple[str, ...], said: str) -> None:
    result = run("address", *arguments, STORE=KEYSTORE.decode(), OTHER="x", EMPTY="")
    assert refusal(result).startswith(said)


@pytest.mark.parametrize("kind", ["file", "empty file", "link to a file", "dangling link"])
def test_nothing_that_stands_there_is_overwritten(tmp_path: Path, kind: str) -> None:
    out, other = tmp_path / "out.json", tmp_path / "other"
    if kind == "link to a file":
        other.write_text("precious")
    if "link" in kind:
        out.symlink_to(other)
    else:
        out.write_text("precious" if kind == "file" else "")
    before = sorted((path.name, path.is_symlink()) for path in tmp_path.iterdir())
    result = run("import", "--key", "env:KEY", "--out", str(out), "--password", "env:PASSWORD")
    assert refusal(result) == f"{out}: exists; a key file is never overwritten"
    assert sorted((path.name, path.is_symlink()) for path in tmp_path.iterdir()) == before
    read = {path.read_text() for path in (out, other) if path.exists()}
    assert read == {"file": {"precious"}, "link to a file": {"precious"}, "empty file": {""}}.get(kind, set())


@pytest.mark.usefixtures("cheap")
def test_a_name_too_long_is_refused(tmp_path: Path) -> None:
    out = tmp_path / ("x" * 300)
    result = run("import", "--key", "env:KEY", "--out", str(out), "--password", "env:PASSWORD")
    assert refusal(result) == f"{out}: cannot be written: File name too long"


def test_without_a_password_and_a_terminal_nothing_is_written(tmp_path: Path) -> None:
    result = run("import", "--key", "env:KEY", "--out", str(tmp_path / "out.json"))
    assert refusal(result).startswith("--password: is needed where there is no terminal to ask at")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("cheap")
def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    out = tmp_path / "no" / "out.json"
    result = run("import", "--key", "env:KEY", "--out", str(out), "--password", "env:PASSWORD")
    assert refusal(result) == f"{out}: cannot be written: No such file or directory"


@pytest.mark.process
def test_a_file_that_cannot_be_written_whole_is_not_left_behind(tmp_path: Path) -> None:
    program = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100));"
        "from cambist.engine.cli import main; main()"
    )
    out = tmp_path / "out.json"
    done = subprocess.run(
        [sys.executable, "-B", "-c", program, "keys", "import", "--key", "env:KEY", "--out", str(out),
         "--password", "env:PASSWORD"],
        env=os.environ | {"KEY": DIGITS, "PASSWORD": PASSWORD},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"Error: {out}: cannot be written: File too large\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("new",),
        ("new", "--out", "."),
        ("import", "--out", "x"),
        ("import", "--key", "env:KEY"),
        ("address",),
        ("address", "env:KEY"),
        ("show", "--key", "env:KEY"),
    ],
    ids=" ".join,
)
def test_wrong_usage_ends_with_status_2(arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
