"""A disk that is full for a store process, without a disk: no file of the process may grow."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager

from support.store.store_work import store_processes


@contextmanager
def full_disk(engine: int | None = None) -> Iterator[None]:
    """The real store process cannot write a byte to any file meanwhile.

    Args:
        engine: process whose store process it is; by default this one.
    """
    (pid,) = store_processes(engine)
    soft, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (soft, hard))
