"""Write a file completely or not at all: write it in a temporary folder beside its path, then rename it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from ....config.errors import ConfigError


@contextmanager
def whole_file(path: Path, *, force: bool) -> Iterator[Path]:
    """Context manager: yield a temporary path to write to; if the block succeeds, the file there is made
    durable and renamed to `path`.

    Args:
        force: whether an existing file is replaced.

    Raises:
        ConfigError: the file exists and `force` is False, or the folder cannot be written to.
            An existing file is untouched.
    """
    try:
        _refuse_to_replace(path, force=force)
        with TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
            beside = Path(folder) / path.name
            yield beside
            _sync(beside)
            _refuse_to_replace(path, force=force)
            beside.replace(path)
        _sync(path.parent)
    except OSError as error:
        raise ConfigError(str(path), f"cannot be written: {error.strerror}") from None


def _refuse_to_replace(path: Path, *, force: bool) -> None:
    if os.path.lexists(path) and not force:
        raise ConfigError(str(path), "exists; --force replaces it")


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
