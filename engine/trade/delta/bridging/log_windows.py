"""Chooses the ranges of blocks whose logs a search reads: the search leaves no block out. Pure.

    first_block   the lowest block whose time is not before a time: a search over headers, by halving
    window        the next range of a search that has read up to a height

Each search reads all blocks that are not final anew, since a re-organisation may change these blocks.
"""

from collections.abc import Generator

from .....config.limits import BRIDGE_RANGE_BLOCKS_MAX


def first_block(top: int, at_s: int) -> Generator[int, int, int]:
    """Search for the lowest height whose block's timestamp is `at_s` or later.

    The generator yields heights, and the caller sends the timestamps of their blocks.

    Args:
        top: height of the latest block.

    Returns:
        The height, as the value of StopIteration; `top` if all blocks are older.
    """
    low, high = 0, top
    while low < high:
        middle = (low + high) // 2
        if (yield middle) < at_s:
            low = middle + 1
        else:
            high = middle
    return low


def window(after: int, head: int, span: int = BRIDGE_RANGE_BLOCKS_MAX) -> tuple[int, int] | None:
    """Return the next range (first, last) of blocks to read; None if no block is left.

    Args:
        after: height up to which the search has read for good.
        head: height of the latest block.
        span: largest number of blocks in the range.
    """
    return (after + 1, min(after + span, head)) if after < head else None
