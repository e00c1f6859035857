"""Recordings play again at their pace; errors name bad lines, which are skipped."""

import io
import os
from contextlib import aclosing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from cambist.codecs.messages.maker_messages import PriceGrid
from cambist.config.errors import ConfigError, InvalidInput
from cambist.engine.roles.maker.prices.replay import (
    LINE_BYTES_MAX,
    PIECE_BYTES,
    REPORTS_MAX,
    Replay,
    encode_record,
    lines,
)
from support.makers.price_sources import Surroundings, first_updates, open_files

START_MS = 1_795_000_000_000


def replay(folder: Path, content: bytes, surroundings: Surroundings | None = None, **options: Any) -> Replay:
    (folder / "prices.ndjson").write_bytes(content)
    return Replay({"path": "prices.ndjson", **options}, (surroundings or Surroundings(folder)).context)


def recording(*at_ms: int) -> bytes:
    return b"".join(
        encode_record(START_MS + at, {"WETH/USDC": {"bids": [(str(2500 + at), "1")]}}) for at in at_ms
    )


@pytest.mark.parametrize(("speed", "factor"), [(1, 1.0), ("2", 0.5), (0.25, 4.0)])
async def test_updates_come_as_far_apart_as_they_were_recorded(
    tmp_path: Path, speed: object, factor: float, autojump_clock: trio.testing.MockClock
) -> None:
    taken = await first_updates(replay(tmp_path, recording(0, 100, 2_500, 2_000), speed=speed), 4)
    assert [at for at, _ in taken] == pytest.approx([0, 0.1 * factor, 2.5 * factor, 2.5 * factor])
    assert [prices["WETH/USDC"].bids for _, prices in taken] == [
        ((str(2500 + at), "1"),) for at in (0, 100, 2_500, 2_000)
    ]


async def test_without_loop_it_says_that_it_has_ended_and_gives_nothing_more(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    surroundings = Surroundings(tmp_path)
    with trio.move_on_after(1_000):
        await first_updates(replay(tmp_path, recording(0), surroundings), 2)
    assert surroundings.reports == [f"{tmp_path / 'prices.ndjson'}: the recording has ended"]


async def test_with_loop_it_starts_again(tmp_path: Path, autojump_clock: trio.testing.MockClock) -> None:
    taken = await first_updates(replay(tmp_path, recording(0, 5_000), loop=True), 5)
    assert [at for at, _ in taken] == pytest.approx([0, 5, 5, 10, 10])


@pytest.mark.parametrize("content", [b"", b"\n\n", b"nonsense\n"])
async def test_a_loop_over_nothing_does_not_spin(
    tmp_path: Path, content: bytes, autojump_clock: trio.testing.MockClock
) -> None:
    surroundings = Surroundings(tmp_path)
    with trio.move_on_after(10):
        await first_updates(replay(tmp_path, content, surroundings, loop=True), 1)
    assert trio.current_time() == pytest.approx(10)
    assert len(surroundings.reports) == (10 if b"nonsense" in content else 0)


BAD: list[tuple[bytes, str]] = [
    (b"{", "Invalid input: the JSON ends too early"),
    (b"[]", "expected an object, got an array"),
    (b'{"at_ms": 1}', "prices: missing"),
    (b'{"at_ms": -1, "prices": {}}', "at_ms: expected an integer >= 0"),
    (b'{"at_ms": 1e400, "prices": {}}', "Invalid input"),
    (b'{"at_ms": %d, "prices": {}}' % 2**70, "at_ms: expected an integer <="),
    (b'{"at_ms": 1, "prices": {"A/B": {"bids": [[1.5, "1"]]}}}', "expected a string"),
    (b'{"at_ms": 1, "price": {}, "prices": {}}', "price"),
    (b"\xff", "not valid UTF-8"),
    (b" " * (LINE_BYTES_MAX + 1), f"longer than {LINE_BYTES_MAX} bytes"),
]


@pytest.mark.parametrize(("line", "said"), BAD, ids=range(len(BAD)))
async def test_a_bad_line_is_named_and_skipped(
    tmp_path: Path, line: bytes, said: str, autojump_clock: trio.testing.MockClock
) -> None:
    surroundings = Surroundings(tmp_path)
    content = recording(0) + b"\r\n" + line + b"\n" + recording(50)
    taken = await first_updates(replay(tmp_path, content, surroundings), 2)
    assert [at for at, _ in taken] == pytest.approx([0, 0.05])
    (report,) = surroundings.reports
    assert report.startswith(f"{tmp_path / 'prices.ndjson'}: line 3 is skipped: ")
    assert said in report


async def test_a_line_without_end_leaves_others_their_turn(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    surroundings, turns = Surroundings(tmp_path), 0
    pieces = 500
    source = replay(tmp_path, b"", surroundings)
    with (tmp_path / "prices.ndjson").open("r+b") as file:
        file.truncate(pieces * PIECE_BYTES)

    async def count_turns() -> None:
        nonlocal turns
        while not surroundings.reports:
            turns += 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(count_turns)
        with trio.move_on_after(1):
            await first_updates(source, 1)
    assert surroundings.reports[0].endswith(f"line 1 is skipped: longer than {LINE_BYTES_MAX} bytes")
    assert turns > pieces // 2


async def test_each_grid_of_a_record_leaves_others_their_turn(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    pairs, turns = 50, 0
    line = encode_record(START_MS, {f"A{number}/B": {"bids": [("1", "1")]} for number in range(pairs)})
    taken: list[Any] = []

    async def count_turns() -> None:
        nonlocal turns
        while not taken:
            turns += 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(count_turns)
        taken += await first_updates(replay(tmp_path, line), 1)
    assert len(taken[0][1]) == pairs
    assert turns > pairs // 2


async def test_a_pipe_is_refused_instead_of_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "prices.ndjson")
    source = Replay({"path": "prices.ndjson"}, Surroundings(tmp_path).context)
    with pytest.raises(ConfigError, match=r"prices\.ndjson: cannot be read: it is no regular file"):
        await first_updates(source, 1)


async def test_so_many_reports_and_no_more(tmp_path: Path, autojump_clock: trio.testing.MockClock) -> None:
    surroundings = Surroundings(tmp_path)
    await first_updates(replay(tmp_path, b"x\n" * 1_000 + recording(0), surroundings), 1)
    assert len(surroundings.reports) == REPORTS_MAX


async def test_closing_releases_the_file(tmp_path: Path, autojump_clock: trio.testing.MockClock) -> None:
    before = open_files()
    async with aclosing(replay(tmp_path, recording(0, 1_000)).updates()) as updates:
        await anext(updates)
        assert open_files() == before + 1
    assert open_files() == before


async def test_a_recording_that_is_not_there_is_named(tmp_path: Path) -> None:
    source = Replay({"path": "away.ndjson"}, Surroundings(tmp_path).context)
    with pytest.raises(ConfigError, match=r"away\.ndjson: cannot be read: No such file"):
        await first_updates(source, 1)


@given(st.lists(st.binary(max_size=40).map(lambda raw: raw.replace(b"\n", b" ")), max_size=20), st.booleans())
def test_lines_are_those_of_the_file(parts: list[bytes], ends: bool) -> None:
    content = b"\n".join(parts) + (b"\n" if ends else b"")
    expected = content.split(b"\n")
    expected = expected if expected[-1] else expected[:-1]
    assert list(lines(io.BytesIO(content))) == list(enumerate(expected, 1))


@given(
    st.lists(st.sampled_from([0, 1, 65_535, 65_536, 65_537, LINE_BYTES_MAX, LINE_BYTES_MAX + 1]), max_size=6)
)
def test_lines_of_any_length_come_whole_or_as_none(lengths: list[int]) -> None:
    content = b"".join(b"x" * length + b"\n" for length in lengths)
    found = {at: None if line is None else len(line) for at, line in lines(io.BytesIO(content))}
    expected = [None if length > LINE_BYTES_MAX else length for length in lengths]
    assert found == dict(enumerate(expected, 1))


def test_a_record_is_one_line_and_keeps_what_is_absent_absent() -> None:
    line = encode_record(
        START_MS, {"A/B": {"bids": [(Decimal("2500.10"), "1")]}, "C/D": {}, "E/F": PriceGrid((), ())}
    )
    assert line == (
        b'{"at_ms":1795000000000,"prices":{"A/B":{"bids":[["2500.10","1"]]},"C/D":{},"E/F":{"bids":[],"asks":[]}}}\n'
    )


def test_what_could_not_be_replayed_is_not_recorded() -> None:
    with pytest.raises(InvalidInput, match="never a float"):
        encode_record(START_MS, {"A/B": {"bids": [(2500.1, "1")]}})  # type: ignore[list-item]
    wide = {"bids": [("1" * 36, "1")] * 1_000}
    with pytest.raises(InvalidInput, match="a line of at most"):
        encode_record(START_MS, {f"A{number}/B": wide for number in range(30)})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"path": "p", "speed": 0}, r"price_options: speed is 0\.001 to 1000, got 0"),
        ({"path": "p", "speed": "nan"}, r"price_options: speed is 0\.001 to 1000, got nan"),
        ({"path": "p", "lop": True}, r"price_options\.lop: is not an option"),
    ],
)
def test_options(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Replay(options, Surroundings().context)
