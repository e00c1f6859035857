"""Secrets: read from what a reference names, shown nowhere."""

import copy
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cambist.config.errors import ConfigError
from cambist.config.limits import KEY_FILE_BYTES_MAX
from cambist.config.secret import Secret, read_secret
from support.exception_chains import everything_told

TEXT = "correct horse battery staple"


def test_from_the_environment() -> None:
    secret = read_secret("env:MAKER", {"MAKER": TEXT, "OTHER": "x"}, "keys.maker")
    assert secret.reveal() == TEXT
    assert secret.source == "env:MAKER"


def test_a_variable_is_taken_as_it_is() -> None:
    assert read_secret("env:K", {"K": f" {TEXT}\n"}, "k").reveal() == f" {TEXT}\n"


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        pytest.param(b"abc", "abc", id="no line break"),
        pytest.param(b"abc\n", "abc", id="one line break"),
        pytest.param(b"abc\r\n", "abc", id="Windows line break"),
        pytest.param(b"abc\n\n", "abc\n", id="only one is dropped"),
        pytest.param(b" abc \n", " abc ", id="spaces stay"),
        pytest.param("é€😀".encode(), "é€😀", id="UTF-8"),
        pytest.param(b"x" * KEY_FILE_BYTES_MAX, "x" * KEY_FILE_BYTES_MAX, id="largest"),
    ],
)
def test_from_a_file(tmp_path: Path, raw: bytes, text: str) -> None:
    (tmp_path / "key").write_bytes(raw)
    secret = read_secret("file:key", {}, "k", tmp_path)
    assert secret.reveal() == text
    assert secret.source == "file:key"
    assert read_secret(f"file:{tmp_path}/key", {}, "k", Path("/elsewhere")).reveal() == text


def test_a_file_in_the_home_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "key").write_text(TEXT)
    assert read_secret("file:~/key", {}, "k").reveal() == TEXT


@pytest.mark.parametrize(
    "reference",
    [
        TEXT,
        "",
        "env:",
        "file:",
        ":",
        "ENV:K",
        "env",
        "vault:x",
        "11" * 32,
        None,
        5,
        True,
        ["env:K"],
        b"env:K",
    ],
    ids=str,
)
def test_what_is_no_reference_is_refused_and_not_repeated(reference: object) -> None:
    with pytest.raises(ConfigError) as caught:
        read_secret(reference, {"K": "x"}, "keys.maker.source")
    assert str(caught.value) == (
        "keys.maker.source: expected env:NAME or file:PATH; a secret itself never stands here"
    )


_HIDDEN = "the file that the reference names"


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        pytest.param("env:ABSENT", "environment variable ABSENT is not set or empty", id="absent variable"),
        pytest.param("env:EMPTY", "environment variable EMPTY is not set or empty", id="empty variable"),
        pytest.param("env:BYTES", "environment variable BYTES is not UTF-8 text", id="variable not text"),
        pytest.param(
            "file:absent.key", "cannot read absent.key: No such file or directory", id="absent file"
        ),
        pytest.param("file:./absent", "cannot read ./absent: No such file", id="absent file of a folder"),
        pytest.param("file:.", f"cannot read {_HIDDEN}: Is a directory", id="directory"),
        pytest.param("file:a/b\0c", f"cannot read {_HIDDEN}: embedded null byte", id="zero byte"),
        pytest.param("file:~no-such-user/key", f"cannot read {_HIDDEN}: Could not", id="home of nobody"),
        pytest.param("file:" + "x" * 5_000, f"cannot read {_HIDDEN}: File name too long", id="name too long"),
        pytest.param("file:0x" + "ab" * 32, f"cannot read {_HIDDEN}: No such file", id="key"),
        pytest.param("file:eyJhbGci.eyJzdWIi.c2ln", f"cannot read {_HIDDEN}: No such file", id="JWT"),
        pytest.param("file:postgres://u:p@db.example", f"cannot read {_HIDDEN}: No such file", id="URL"),
        pytest.param("file:c2Vj/cmV0+c2VjcmV0", f"cannot read {_HIDDEN}: No such file", id="Base64"),
        pytest.param("file:empty", "empty is empty", id="empty file"),
        pytest.param("file:newline", "newline is empty", id="line break alone"),
        pytest.param("file:large", f"large is larger than {KEY_FILE_BYTES_MAX} bytes", id="too large"),
        pytest.param("file:binary", "binary is not UTF-8 text", id="not text"),
    ],
)
def test_nothing_usable_is_there(tmp_path: Path, reference: str, said: str) -> None:
    for name, raw in {
        "empty": b"",
        "newline": b"\n",
        "large": b"x" * (KEY_FILE_BYTES_MAX + 1),
        "binary": b"secret\xff",
    }.items():
        (tmp_path / name).write_bytes(raw)
    environ = {"EMPTY": "", "BYTES": "secret\udcff"}
    with pytest.raises(ConfigError) as caught:
        read_secret(reference, environ, "k", tmp_path)
    told = str(caught.value)
    assert said in told.replace(f"{tmp_path}/", "")
    assert told.startswith("k: ")
    assert "secret" not in everything_told(caught.value)


SHOWING: dict[str, Callable[[Secret], str]] = {
    "str": str,
    "repr": repr,
    "format": lambda secret: f"{secret} {secret!r} {secret:}",
    "percent": lambda secret: "%s %r" % (secret, secret),  # noqa: UP031
    "in a list": lambda secret: str([secret]),
    "ascii": ascii,
}


@pytest.mark.parametrize("show", SHOWING.values(), ids=SHOWING)
def test_showing_a_secret_shows_its_source(show: Callable[[Secret], str]) -> None:
    text = show(Secret(TEXT, "env:K"))
    assert TEXT not in text
    assert "Secret(env:K)" in text


REFUSED: dict[str, Callable[[Secret], Any]] = {
    "equal": lambda secret: secret == Secret(TEXT, "env:K"),
    "not equal": lambda secret: secret != "x",
    "text equal": lambda secret: secret == TEXT,
    "hash": hash,
    "pickle": pickle.dumps,
    "old pickle": lambda secret: pickle.dumps(secret, 0),
    "copy": copy.copy,
    "deep copy": copy.deepcopy,
    "json": json.dumps,
    "msgspec": msgspec.json.encode,
    "length": len,  # type: ignore[dict-item]
    "vars": vars,
}


@pytest.mark.parametrize("use", REFUSED.values(), ids=REFUSED)
def test_every_other_use_is_refused(use: Callable[[Secret], Any]) -> None:
    with pytest.raises(TypeError) as caught:
        use(Secret(TEXT, "env:K"))
    assert TEXT not in str(caught.value)
