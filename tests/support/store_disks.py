"""A disk that is full for the store process of this one, without a disk: no file of the process may grow."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager

from support.store_work import store_processes


@contextmanager
def full_disk() -> Iterator[None]:
    """The real store process cannot write a byte to any file meanwhile."""
    (pid,) = store_processes()
    soft, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (soft, hard))
