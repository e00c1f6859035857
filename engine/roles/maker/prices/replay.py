"""Price source that replays a recording of prices.

A recording is NDJSON: one line per update, as `encode_record` writes it,

    {"at_ms": 1795000000000, "prices": {"WETH/USDC": {"bids": [["2499.5", "1"]], "asks": [["2500.5", "1"]]}}}

with the time of the update in Unix milliseconds and the grids that changed or were confirmed in it, in the
shape of GET /prices. The first line plays at once, each other line at its recorded distance from the first.

    path    file of the recording; relative to the settings file
    speed   factor of the speed: 2 plays the recording twice as fast
    loop    whether the replay starts again at the recording's end

The file, which may not be a pipe, is read in pieces of 64 KiB while it plays, and a line is at most 1 MiB. A
longer line, or a line that is no such record, is skipped and reported with its number, up to 100 reports.
The replay has a checkpoint after each line and after each grid.

Without `loop` a replay ends with its recording: the last prices are withdrawn after `price_life_ms`. A line
recorded earlier than the line before plays at once. A replay confirms no price between two lines: in a gap
longer than `price_life_ms`, prices are withdrawn.
"""

from collections.abc import AsyncGenerator, Iterator, Mapping
from pathlib import Path
from typing import IO, Annotated, Any

import trio
from msgspec import Meta, Raw, Struct

from .....codecs.messages.maker_messages import PriceGrid
from .....codecs.messages.wire import decoder, encode
from .....config.errors import ConfigError, InvalidInput
from .....config.limits import JSON_INT_MAX, MAKER_ENTRIES_MAX
from .source import Grid, SourceContext, normalise_grid, read_options

LINE_BYTES_MAX = 1 << 20
PIECE_BYTES = 64 << 10
REPORTS_MAX = 100
LOOP_S_MIN = 1.0  # least duration of one pass, even of an empty recording


class ReplayOptions(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of the price source `replay`.

    Attributes:
        path: path of the recording.
        speed: factor by which the replay is faster than the recording.
        loop: whether the recording is replayed again after its end.
    """

    path: str
    speed: float = 1.0
    loop: bool = False

    def __post_init__(self) -> None:
        if not 0.001 <= self.speed <= 1_000:
            raise ValueError(f"speed is 0.001 to 1000, got {self.speed}")


class Record(Struct, frozen=True, forbid_unknown_fields=True):
    """A line of a recording of prices.

    Attributes:
        at_ms: time of the prices, Unix milliseconds.
        prices: pair id -> price grid, as JSON that is not decoded yet.
    """

    at_ms: Annotated[int, Meta(ge=0, le=JSON_INT_MAX)]
    prices: Annotated[dict[str, Raw], Meta(max_length=MAKER_ENTRIES_MAX)]


_decode_record = decoder(Record, bytes_max=LINE_BYTES_MAX)
_decode_grid = decoder(PriceGrid, bytes_max=LINE_BYTES_MAX)


def encode_record(at_ms: int, prices: Mapping[str, Grid]) -> bytes:
    """Encode an update of prices as a line of a recording, newline included.

    Args:
        at_ms: time of the prices, Unix milliseconds.
        prices: pair id -> price grid.

    Raises:
        InvalidInput: a grid is invalid, or the line would be longer than LINE_BYTES_MAX.
    """
    grids = {pair_id: normalise_grid(pair_id, grid) for pair_id, grid in prices.items()}
    line = encode({"at_ms": at_ms, "prices": grids}) + b"\n"
    if len(line) > LINE_BYTES_MAX:
        raise InvalidInput(field="prices", expected=f"a line of at most {LINE_BYTES_MAX} bytes")
    return line


class Replay:
    """Price source `replay`: yields the prices of a recording with the recorded intervals between them."""

    def __init__(self, options: Mapping[str, Any], context: SourceContext) -> None:
        self._options = read_options(ReplayOptions, options, context)
        self._path = context.folder / Path(self._options.path).expanduser()
        self._context = context
        self._reports = 0

    async def updates(self) -> AsyncGenerator[dict[str, PriceGrid], None]:
        """Yield the price grids of each line of the recording: pair id -> price grid.

        The delay between two lines is the difference of their recorded times, divided by the option `speed`.
        """
        while True:
            passed_at = trio.current_time() + LOOP_S_MIN
            with self._open() as file:
                started_at, first_ms = trio.current_time(), None
                for record in self._records(file):
                    if record is None:
                        await trio.lowlevel.checkpoint()
                        continue
                    at_ms, prices = record
                    if first_ms is None:
                        first_ms = at_ms
                    after_s = (at_ms - first_ms) / 1_000 / self._options.speed
                    await trio.sleep_until(started_at + after_s)
                    yield prices
            if not self._options.loop:
                self._context.report(f"{self._path}: the recording has ended")
                await trio.sleep_forever()
            await trio.sleep_until(passed_at)

    def _open(self) -> IO[bytes]:
        if self._path.exists() and not self._path.is_file():  # opening a pipe would wait for its writer
            raise ConfigError(str(self._path), "cannot be read: it is no regular file")
        try:
            return self._path.open("rb")
        except OSError as error:
            raise ConfigError(str(self._path), f"cannot be read: {error.strerror}") from None

    def _records(self, file: IO[bytes]) -> Iterator[tuple[int, dict[str, PriceGrid]] | None]:
        """Yield (Unix milliseconds, price grids) of each recorded line.

        The iterator also yields None after each grid and each line, so that the caller can let other tasks
        run.
        """
        for number, line in lines(file):
            if line is None:
                self._report_line(number, f"longer than {LINE_BYTES_MAX} bytes")
            elif line.strip():
                pair_id, prices = "", dict[str, PriceGrid]()
                try:
                    record = _decode_record(line)
                    for pair_id, raw in record.prices.items():
                        prices[pair_id] = _decode_grid(bytes(raw))
                        yield None
                except InvalidInput as error:
                    self._report_line(number, f"{f'prices.{pair_id}: ' if pair_id else ''}{error.detail}")
                else:
                    yield record.at_ms, prices
            yield None

    def _report_line(self, number: int, fault: str) -> None:
        self._reports += 1
        if self._reports <= REPORTS_MAX:
            self._context.report(f"{self._path}: line {number} is skipped: {fault}")


def lines(file: IO[bytes]) -> Iterator[tuple[int, bytes | None]]:
    """Read a file in pieces and yield (line number, line without newline) for each line.

    For a line longer than LINE_BYTES_MAX, the iterator yields (line number, None) at the end of the line, and
    before that (line number, b"") for each piece that it reads, so that the caller can let other tasks run.
    """
    number, held, too_long = 1, b"", False
    while piece := file.read(PIECE_BYTES):
        first, *others = piece.split(b"\n")
        held = held if too_long else held + first
        if not others:
            too_long = too_long or len(held) > LINE_BYTES_MAX
            if too_long:
                yield number, b""
            continue
        yield number, None if too_long or len(held) > LINE_BYTES_MAX else held
        yield from enumerate(others[:-1], number + 1)
        number += len(others)
        held, too_long = others[-1], False
    if held or too_long:
        yield number, None if too_long else held
