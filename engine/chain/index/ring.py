"""The ring: height and hash of the last blocks read, by which the indexer finds a re-organisation. Pure.

    ... -- 97 -- 98 -- 99 -- 100     blocks read: (height, hash), lowest first
              \\- 99'- 100'- 101'    the node's blocks now: 98 is the last common block

A mark is the height and the hash of a block. The hash fixes the block's whole past: a node that has a mark
also has the marks below it, and halving finds the last common block. Marks need not be adjacent: of history,
which is read in ranges, the ranges' ends are marked. A chain that shares no mark was re-organised deeper than
the ring.

Source: ARCHITECTURE.md, "Indexer".
"""

from collections.abc import Generator, Sequence

import msgspec
from msgspec import Struct

from ....config.errors import StoreError

NOTHING_READ = -1
"""Height that stands for no block read, below block 0; its hash is the parent hash of block 0, 32 zeros."""

UNKNOWN = bytes(32)
"""Placeholder hash that no block has.

If the last block of a ring has this hash, the indexer deletes all rows above the ring's second-last block.
"""


class Mark(Struct, frozen=True, array_like=True, gc=False):
    """Height and hash (32 bytes) of a block that the indexer read."""

    number: int
    hash: bytes


class Ring(Struct, frozen=True):
    """Heights and hashes of the last blocks that the indexer read of a chain; at least one.

    Attributes:
        marks: in ascending heights; the last is the block read last.
    """

    marks: tuple[Mark, ...]

    @property
    def top(self) -> Mark:
        """Height and hash of the block read last."""
        return self.marks[-1]

    def pushed(self, marks: Sequence[Mark], depth: int) -> "Ring":
        """Return the ring with new blocks appended; blocks `depth` or more below the last one are dropped."""
        if not marks:
            return self
        together = (*self.marks, *marks)
        lowest = together[-1].number - depth
        return Ring(tuple(mark for mark in together if mark.number > lowest))

    def since(self, mark: Mark) -> tuple[Mark, ...] | None:
        """Return the blocks after `mark`; None if the ring lacks `mark` or skips a block above `mark`."""
        if mark not in self.marks:
            return None
        later = self.marks[self.marks.index(mark) + 1 :]
        return later if len(later) == self.top.number - mark.number else None

    def cut(self, top: Mark) -> "Ring":
        """Return the ring with only the blocks below the height of `top`, and `top` as the last block."""
        return Ring((*(mark for mark in self.marks if mark.number < top.number), top))


def last_common(marks: Sequence[Mark]) -> Generator[Mark, bool, Mark | None]:
    """Find the highest of some marks (height and hash) that a node has, with few requests.

    Yields:
        A mark; the caller sends whether the node has a block of that height and hash.

    Returns:
        The highest mark that the node has; None if it lacks even the lowest. A node with the highest mark, or
            without any, gets at most two requests.
    """
    if not marks:
        return None
    if (yield marks[-1]):
        return marks[-1]
    if len(marks) == 1 or not (yield marks[0]):
        return None
    has, lacks, distance = 0, len(marks) - 1, 1
    while lacks - has > 1:  # from the top in growing leaps, most re-organisations being shallow; then halving
        middle = max(lacks - distance, (has + lacks) // 2)
        distance *= 2
        if (yield marks[middle]):
            has = middle
        else:
            lacks = middle
    return marks[has]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[Mark, ...]).decode


def encode_ring(ring: Ring) -> bytes:
    """Encode the blocks of a ring as bytes for the stored row of the chain's cursor."""
    return _encode(ring.marks)


def decode_ring(kept: bytes) -> Ring:
    """Decode the ring of blocks from the stored row of a chain's cursor.

    Raises:
        StoreError: the bytes hold no ring, or an empty one.
    """
    try:
        marks = _decode(kept)
    except msgspec.MsgspecError as error:
        raise StoreError(f"the cursor of a chain holds no ring of blocks: {error}") from None
    if not marks:
        raise StoreError("the cursor of a chain holds an empty ring of blocks")
    return Ring(marks)
