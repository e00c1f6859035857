"""Restricts a process's files to its own account, since they hold signed orders, permits, raw transactions.

    new files               0600, new folders 0700: the umask, which child processes inherit
    the state directory     0700; it is made if missing
    existing files          0600

A wider mode is narrowed, with a warning. The mode of another account's file cannot be changed: such a file is
refused if it is open to all accounts.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from stat import S_IMODE, S_ISREG

import structlog

from ....config.errors import ConfigError

_UMASK = 0o077
_OTHERS = 0o007

_log = structlog.get_logger("cambist.safety")


def make_private() -> None:
    """Make new files of this process, and of its children, accessible to their owner alone."""
    os.umask(_UMASK)


def keep_private(folder: Path, files: Iterable[Path]) -> None:
    """Restrict the state directory (mode 0700) and files (0600) to this process's account.

    Each change of a mode is logged as a warning.

    Args:
        folder: the state directory, made if missing.
        files: files to restrict; each may be missing, and links and folders among them stay as they are.

    Raises:
        ConfigError: a file of another account is open to all accounts, or the folder cannot be made.
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
    """Remove all access rights of group and others from a file or folder.

    Raises:
        ConfigError: the file belongs to another account and is open to all accounts.
    """
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
        _log.warning("a file of another account is open to its group", path=str(path), mode=f"{mode:04o}")
    else:
        _log.warning("a file was open to other accounts", path=str(path), mode=f"{mode:04o}")
