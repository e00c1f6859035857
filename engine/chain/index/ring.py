"""The blocks of a chain that were read last, by which a re-organisation is found. Pure.

    ... -- 97 -- 98 -- 99 -- 100     what was read: (height, hash), lowest first
              \\- 99'- 100'- 101'    what the node has now: 98 is the last common block

A block is named by its hash, which names its whole past: if the node has a mark, it has those below it too.
So the last common block is found by halving. Marks need not be adjacent: where history is read in ranges,
their ends are marked. A chain that shares none of them was re-organised deeper than the ring.

Source: ARCHITECTURE.md, "Indexer".
"""

from collections.abc import Generator, Sequence

import msgspec
from msgspec import Struct

from ....config.errors import StoreError

NOTHING_READ = -1
"""The height of the mark below the first block: its hash is the parent hash of that one, 32 zero bytes."""

UNKNOWN = bytes(32)
"""In place of the hash of a height: no node has it, so that what is above the mark before is taken back."""


class Mark(Struct, frozen=True, array_like=True, gc=False):
    """A block that was read."""

    number: int
    hash: bytes


class Ring(Struct, frozen=True):
    """The marks, lowest first; there is at least one.

    Attributes:
        marks: in ascending heights; the last is how far the chain was read.
    """

    marks: tuple[Mark, ...]

    @property
    def top(self) -> Mark:
        """The block that was read last."""
        return self.marks[-1]

    def pushed(self, marks: Sequence[Mark], depth: int) -> "Ring":
        """With blocks that were read since; those `depth` or more below the last of these are dropped."""
        if not marks:
            return self
        together = (*self.marks, *marks)
        lowest = together[-1].number - depth
        return Ring(tuple(mark for mark in together if mark.number > lowest))

    def since(self, mark: Mark) -> tuple[Mark, ...] | None:
        """Each block that was read after one; None where not each of them is marked."""
        if mark not in self.marks:
            return None
        later = self.marks[self.marks.index(mark) + 1 :]
        return later if len(later) == self.top.number - mark.number else None

    def cut(self, top: Mark) -> "Ring":
        """With what is below a mark, and the mark as the last."""
        return Ring((*(mark for mark in self.marks if mark.number < top.number), top))


def last_common(marks: Sequence[Mark]) -> Generator[Mark, bool, Mark | None]:
    """Find the highest mark that the node has.

    Yields:
        A mark; send whether the node has a block of that height and hash.

    Returns:
        The highest one; None if it has not even the lowest. Few questions where it has the highest, or none.
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
    """As the cursor's row keeps it."""
    return _encode(ring.marks)


def decode_ring(kept: bytes) -> Ring:
    """The ring of a cursor's row.

    Raises:
        StoreError: it is none.
    """
    try:
        marks = _decode(kept)
    except msgspec.MsgspecError as error:
        raise StoreError(f"the cursor of a chain holds no ring of blocks: {error}") from None
    if not marks:
        raise StoreError("the cursor of a chain holds an empty ring of blocks")
    return Ring(marks)
