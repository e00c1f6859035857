"""What a process keeps is its owner's alone: signed orders, permits and raw transactions are in it.

    from now on             what is made is 0600, folders 0700: the umask, which child processes inherit
    the state directory     0700; it is made where there is none
    files that are there    0600

What is wider is narrowed, with a warning. What belongs to another account cannot be: it is refused where it
is open to everybody.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from stat import S_IMODE, S_ISREG

import structlog

from ...config.errors import ConfigError

_UMASK = 0o077
_OTHERS = 0o007

_log = structlog.get_logger("cambist.safety")


def make_private() -> None:
    """Make what is made from now on its owner's alone."""
    os.umask(_UMASK)


def keep_private(folder: Path, files: Iterable[Path]) -> None:
    """See the module.

    Args:
        folder: the state directory.
        files: that are kept, there or not; what is no plain file is left as it is.

    Raises:
        ConfigError: one is open to everybody and not ours to change, or the folder cannot be made.
    """
    make_private()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _narrow(folder)
        for path in files:
            if path.exists() and S_ISREG(path.lstat().st_mode):
                _narrow(path)
    except OSError as error:
        raise ConfigError("state_dir", f"{folder} cannot be kept private: {error.strerror}") from None


def _narrow(path: Path) -> None:
    """Take away what others may do."""
    mode = S_IMODE(path.stat().st_mode)
    if not mode & _UMASK:
        return
    try:
        path.chmod(mode & ~_UMASK)
    except PermissionError:
        if mode & _OTHERS:
            raise ConfigError(
                "state_dir", f"{path} has mode {mode:04o} and belongs to another account: expected 0700"
            ) from None
        _log.warning("what is kept is open to a group", path=str(path), mode=f"{mode:04o}")
    else:
        _log.warning("what is kept was open to others", path=str(path), mode=f"{mode:04o}")
