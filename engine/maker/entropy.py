"""The random part of nonceAndMeta, from the operating system, read in blocks."""

import os
from collections.abc import Callable

from ...config import limits

_BYTES = limits.FIRM_RANDOM_BITS // 8
_NUMBERS_PER_READ = 1_024


def random96_source(read: Callable[[int], bytes] = os.urandom) -> Callable[[], int]:
    """A function that gives an unpredictable integer below 2^96 each time, none twice.

    Args:
        read: count of bytes -> so many unpredictable bytes.
    """
    waiting: list[int] = []
    take = waiting.pop

    def random96() -> int:
        if not waiting:
            block = read(_BYTES * _NUMBERS_PER_READ)
            waiting.extend(
                int.from_bytes(block[at : at + _BYTES], "big") for at in range(0, len(block), _BYTES)
            )
        return take()

    return random96
