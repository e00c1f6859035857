"""A lock file that admits one writer of a SQLite file; the operating system releases the lock when its holder
ends.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from ....config.errors import ConfigError

_LOOK_S = 0.01
_HOLDER_BYTES_MAX = 32


@contextmanager
def locked(database: Path, patience_s: float) -> Iterator[None]:
    """Context manager: hold the lock file of a SQLite database, so that no other process writes to the
    database. The lock file stays afterwards; it names the process that holds the lock.

    Args:
        database: the SQLite file.
        patience_s: longest wait, in seconds, until an earlier holder releases the lock; the wait blocks.

    Raises:
        ConfigError: another process still holds the lock, or the lock file cannot be made.
    """
    real = database.resolve()  # one lock for all names of the file, symbolic links included
    path = real.with_name(f"{real.name}.lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+b", buffering=0)  # not truncated: it may hold the process id of the holder
    except OSError as error:
        raise ConfigError("store.url", f"{path} cannot be written: {error.strerror}") from None
    with file:
        if not _taken(file, patience_s):
            file.seek(0)
            holder = file.read(_HOLDER_BYTES_MAX).decode(errors="replace").strip() or "another"
            raise ConfigError(
                "store.url",
                f"process {holder} uses {database}: {path} is locked; one engine owns a SQLite file, several "
                "need PostgreSQL",
            )
        file.truncate(0)
        file.write(f"{os.getpid()}\n".encode())
        yield  # the lock file is not deleted: a waiting process would then lock a file without a name


def _taken(file: BinaryIO, patience_s: float) -> bool:
    until = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(_LOOK_S)
        else:
            return True
