"""The frames between the engine and its store process: whole, in any pieces, bounded."""

from collections.abc import Sequence
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.config.errors import ConfigError, StoreError, StoreUnavailable
from cambist.config.limits import STORE_FRAME_BYTES_MAX, STORE_UNIT_BYTES_MAX
from cambist.engine.store.process.frames import (
    Apply,
    Failed,
    FrameReader,
    More,
    Open,
    Rows,
    answer,
    batch_frames,
    failed,
    frame,
    opening,
    prepared,
    question,
    raised,
)
from cambist.engine.store.process.place import PostgresPlace
from cambist.engine.store.units import New, Unit, values_of
from cambist.engine.trade.orders.order_units import DELTA
from support.store.stores import a_delta_order, submission

WRITER = b"w" * 16


def bodies(*pieces: bytes) -> list[bytes]:
    reader = FrameReader()
    return [body for piece in pieces for body in reader.feed(piece)]


@given(st.lists(st.binary(max_size=40), max_size=8), st.lists(st.integers(0, 400), max_size=12))
def test_frames_come_out_whole_however_they_are_cut(values: list[bytes], cuts: Sequence[int]) -> None:
    data = b"".join(frame(value) for value in values)
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    pieces = [data[start:end] for start, end in pairwise(places)]
    assert [msgspec.msgpack.decode(body) for body in bodies(*pieces)] == values


def test_a_batch_arrives_as_it_was_queued() -> None:
    units = [submission(a_delta_order(number)) for number in range(3)]
    (framed,) = batch_frames(WRITER, 7, [prepared(unit) for unit in units])
    (body,) = bodies(framed)
    asked = question(body)
    assert isinstance(asked, Apply)
    assert (asked.writer, asked.batch) == (WRITER, 7)
    for unit, arrived in zip(units, asked.units, strict=True):
        assert [change.table for change in arrived.changes] == [change.table for change in unit.changes]
        assert isinstance(arrived.changes[0], New)
        order = a_delta_order(units.index(unit))
        assert DELTA.found(values_of(arrived.changes[0].row)) == order


def test_a_large_batch_goes_in_parts() -> None:
    units = [prepared(submission(a_delta_order(number))) for number in range(10)]
    frames = batch_frames(WRITER, 1, units, part_bytes=3 * max(map(len, units)))
    asked = [question(body) for body in bodies(*frames)]
    assert [type(one) for one in asked] == [More, More, More, Apply]
    arrived = [unit for one in asked if isinstance(one, More | Apply) for unit in one.units]
    assert arrived == [msgspec.msgpack.decode(unit, type=Unit) for unit in units]


def test_what_fills_a_part_to_the_byte_is_one_part() -> None:
    units = [prepared(submission(a_delta_order(number))) for number in range(4)]
    frames = batch_frames(WRITER, 1, units, part_bytes=sum(map(len, units[:2])))
    asked = [question(body) for body in bodies(*frames)]
    assert [len(one.units) for one in asked if isinstance(one, More | Apply)] == [2, 2]


def test_a_unit_larger_than_a_part_goes_alone() -> None:
    units = [prepared(submission(a_delta_order(number))) for number in range(3)]
    asked = [question(body) for body in bodies(*batch_frames(WRITER, 1, units, part_bytes=1))]
    assert [len(one.units) for one in asked if isinstance(one, More | Apply)] == [1, 1, 1]


def test_a_unit_that_is_too_large_is_refused_with_its_size() -> None:
    unit = DELTA.submitted(a_delta_order(), bytes(STORE_UNIT_BYTES_MAX))
    with pytest.raises(StoreError, match=rf"a write has \d+ bytes, at most {STORE_UNIT_BYTES_MAX} are taken"):
        prepared(unit)


def test_a_frame_that_says_it_is_too_large_is_not_waited_for() -> None:
    head = (STORE_FRAME_BYTES_MAX + 1).to_bytes(4, "big")
    with pytest.raises(StoreError, match=f"has {STORE_FRAME_BYTES_MAX + 1} bytes"):
        bodies(head)


@pytest.mark.parametrize(
    "error",
    [
        ConfigError("store.url", "it is locked"),
        StoreUnavailable("the disk is full", retry_after_s=5),
        StoreError("damaged"),
        ValueError("as_of is not of this store"),
    ],
)
def test_errors_cross_with_their_type(error: ConfigError | StoreError | ValueError) -> None:
    (body,) = bodies(frame(failed(error)))
    said = answer(body)
    assert isinstance(said, Failed)
    again = raised(said)
    assert type(again) is type(error)
    assert str(again) == str(error)
    if isinstance(error, StoreUnavailable):
        assert isinstance(again, StoreUnavailable)
        assert again.retry_after_s == error.retry_after_s


def test_rows_arrive_as_tuples_of_what_was_read() -> None:
    rows = [[(b"\x00\xff", 2**63 - 1, "text", None, True)], []]
    (body,) = bodies(frame(Rows(rows)))
    assert answer(body) == Rows(rows)


def test_the_place_crosses_with_its_password() -> None:
    place = PostgresPlace("postgresql://me:secret@db/cambist")
    (body,) = bodies(frame(opening(place)))
    asked = question(body)
    assert isinstance(asked, Open)
    assert asked.place == place


@pytest.mark.parametrize("body", [b"", b"\xc1", b"\x91\x63", b"\x00"])
def test_what_is_no_question_is_refused(body: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        question(body)
