"""The random part of nonceAndMeta, from the operating system, read in blocks."""

import os
from collections.abc import Callable

from ...config import limits

_BYTES = limits.FIRM_RANDOM_BITS // 8
_NUMBERS_PER_READ = 1_024


def random96_source(read: Callable[[int], bytes] = os.urandom) -> Callable[[], bytes]:
    """A function that gives 12 unpredictable bytes each time, none twice.

    Args:
        read: count of bytes -> so many unpredictable bytes.
    """
    waiting: list[bytes] = []
    take = waiting.pop

    def random96() -> bytes:
        if not waiting:
            block = read(_BYTES * _NUMBERS_PER_READ)
            waiting.extend(block[at : at + _BYTES] for at in range(0, len(block), _BYTES))
        return take()

    return random96
