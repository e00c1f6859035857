"""The ring of blocks: the kept blocks, and the search for the last common block."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.config.errors import StoreError
from cambist.engine.chain.index.ring import UNKNOWN, Mark, Ring, decode_ring, encode_ring, last_common


def mark(number: int, chain: str = "a") -> Mark:
    return Mark(number, f"{chain}{number}".encode().ljust(32, b"\0"))


def marks(*numbers: int) -> tuple[Mark, ...]:
    return tuple(map(mark, numbers))


def found(kept: tuple[Mark, ...], there: set[Mark]) -> tuple[Mark | None, int]:
    """(last common block, number of questions to the chain)."""
    search = last_common(kept)
    questions = 0
    try:
        asked = next(search)
        while True:
            questions += 1
            asked = search.send(asked in there)
    except StopIteration as end:
        result: Mark | None = end.value
        return result, questions


def test_blocks_out_of_reach_are_dropped_and_the_last_never_is() -> None:
    ring = Ring(marks(1)).pushed(marks(2, 3, 4, 5), 3)
    assert ring.marks == marks(3, 4, 5)
    assert ring.pushed(marks(2_005), 3).marks == marks(2_005)
    assert ring.pushed((), 3) == ring
    assert ring.top == mark(5)


def test_a_ring_is_cut_at_a_mark_that_may_be_new_to_it() -> None:
    ring = Ring(marks(3, 7, 9))
    assert ring.cut(mark(7)).marks == marks(3, 7)
    assert ring.cut(Mark(8, UNKNOWN)).marks == (*marks(3, 7), Mark(8, UNKNOWN))
    assert ring.cut(Mark(8, UNKNOWN)).pushed((), 1).marks[0] == mark(3), "what is common is not forgotten"


def test_a_ring_comes_back_from_the_cursor_as_it_was() -> None:
    ring = Ring((Mark(-1, bytes(32)), *marks(0, 5, 2**40)))
    assert decode_ring(encode_ring(ring)) == ring


@pytest.mark.parametrize("kept", [b"", b"\x90", b"\x91\x01", b"\x91\x92\xa1x\x01", b"\xc1"])
def test_a_cursor_without_a_ring_is_an_error_that_says_so(kept: bytes) -> None:
    with pytest.raises(StoreError, match="ring of blocks"):
        decode_ring(kept)


@given(st.sets(st.integers(0, 1_000), min_size=1, max_size=300), st.integers(0, 300))
def test_the_last_common_block_is_found_in_few_questions(numbers: set[int], shared: int) -> None:
    kept = marks(*sorted(numbers))
    there = set(kept[:shared])
    common, questions = found(kept, there)
    assert common == (kept[min(shared, len(kept)) - 1] if shared else None)
    assert questions <= 20


def test_where_nothing_changed_or_everything_did_few_questions_are_asked() -> None:
    kept = marks(*range(256))
    assert found(kept, set(kept)) == (kept[-1], 1)
    assert found(kept, set()) == (None, 2)
    assert found(kept, set(kept[:-1])) == (kept[-2], 3)
    assert found((), set()) == (None, 0)


@given(st.integers(1, 255))
def test_a_shallow_reorganisation_takes_questions_by_its_depth(depth: int) -> None:
    kept = marks(*range(256))
    common, questions = found(kept, set(kept[: 256 - depth]))
    assert common == kept[255 - depth]
    assert questions <= 2 * depth.bit_length() + 3
