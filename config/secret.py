"""Read secrets from their sources, and hold each without showing its text.

A setting that is a secret names its source and never holds it: `env:NAME` or `file:PATH`. A literal is
refused, so that a settings file can be shown to anybody.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, NoReturn

from . import limits
from .errors import ConfigError

SecretEncoding = Literal["utf8", "base64", "hex"]
"""Encoding in which the two sides exchanged a shared secret (interop.md section 4)."""

# Names are shorter than a private key's 64 digits: errors repeat a name, and must not repeat a key.
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}\Z")
_SUFFIXES = frozenset({".hex", ".json", ".key", ".pem", ".secret", ".txt"})
_EXPECTED = "expected env:NAME or file:PATH; a secret itself never stands here"


class Secret:
    """A secret text and its source. repr and str show the source; comparing and pickling are refused."""

    __slots__ = ("_text", "source")

    def __init__(self, text: str, source: str) -> None:
        self._text = text
        self.source = source

    def reveal(self) -> str:
        """Return the secret text itself."""
        return self._text

    def __repr__(self) -> str:
        return f"Secret({self.source})"

    __str__ = __repr__

    def __eq__(self, other: object) -> NoReturn:
        raise TypeError("secrets are compared in constant time, by their verifiers")

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Secret is not pickled")


def read_secret(reference: object, environ: Mapping[str, str], field: str, folder: Path = Path()) -> Secret:
    """Read the secret that a reference names.

    Args:
        reference: `env:NAME` or `file:PATH`; one trailing line break of a file is dropped.
        environ: the environment.
        field: settings key or option, for errors.
        folder: folder that relative paths start from.

    Raises:
        ConfigError: the text is no reference, or the source is missing or unreadable. A refused reference is
            not repeated: it may be the secret.
    """
    scheme, _, name = reference.partition(":") if isinstance(reference, str) else ("", "", "")
    if scheme == "env" and name:
        # Ahead of the look-up, whose error repeats the name: a key pasted in its place must not be shown.
        if not _VARIABLE.match(name):
            raise ConfigError(field, f"{_EXPECTED}: the text after env: is not the name of a variable")
        text = environ.get(name)
        if not text:
            raise ConfigError(field, f"environment variable {name} is not set or empty")
        if not is_unicode(text):
            raise ConfigError(field, f"environment variable {name} is not UTF-8 text")
        return Secret(text, f"env:{name}")
    if scheme == "file" and name:
        return Secret(_read_file(folder, name, field), f"file:{name}")
    raise ConfigError(field, _EXPECTED)


def is_unicode(text: str) -> bool:
    """Whether UTF-8 can encode a secret text; Python's own error, which repeats the text, is dropped."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _read_file(folder: Path, name: str, field: str) -> str:
    path = folder / name
    try:
        path = folder / Path(name).expanduser()
        with path.open("rb") as file:
            raw = file.read(limits.KEY_FILE_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(field, f"cannot read {_shown(name, path)}: {error.strerror}") from None
    except (RuntimeError, ValueError) as error:  # ~ of an unknown user; a zero byte
        raise ConfigError(field, f"cannot read {_shown(name, path)}: {error}") from None
    if len(raw) > limits.KEY_FILE_BYTES_MAX:
        raise ConfigError(field, f"{path} is larger than {limits.KEY_FILE_BYTES_MAX} bytes")
    text = raw.decode(errors="surrogateescape").removesuffix("\n").removesuffix("\r")
    if not is_unicode(text):
        raise ConfigError(field, f"{path} is not UTF-8 text")
    if not text:
        raise ConfigError(field, f"{path} is empty")
    return text


def _shown(name: str, path: Path) -> str:
    """Return the name of a file that cannot be read, unless it may be a key that was pasted in its place."""
    try:
        is_path = "/" in name.lstrip("/") and path.parent.is_dir()
    except (OSError, ValueError):  # too long, or a zero byte
        is_path = False
    return name if is_path or Path(name).suffix in _SUFFIXES else "the file that the reference names"
