"""Messages between the engine and its store process, and their framing on a socket. Pure.

    engine -> process   Open, then Apply (after any More), Attend, Claim, Release, Prune; on the second socket
                        Read
    process -> engine   an answer to each, in order: Opened, Applied, Attended, LeasesClaimed, Released,
                        Pruned, Rows, Failed; on the second socket also Announce, unasked

    frame = 4 bytes length, big-endian | msgpack: an array whose first element is the type of the message

Units are encoded when they are queued and go into the frame of a batch as they are. A large batch goes in
parts: More, More, Apply.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Raw, Struct

from ....config.errors import ConfigError, StoreError, StoreUnavailable
from ....config.limits import STORE_FRAME_BYTES_MAX, STORE_PART_BYTES_MAX, STORE_UNIT_BYTES_MAX
from ..backend import Lease
from ..queries import Query
from ..units import Unit, UnitOutcome
from .place import PostgresPlace, SqlitePlace, StorePlace

_LENGTH_BYTES = 4


class Open(Struct, frozen=True, array_like=True, tag=0):
    """First request of the engine on its first socket to the store process: open this database.

    Attributes:
        where: path of a SQLite file, or a PostgreSQL URL, which may contain the password.
        password: value of the environment variable PGPASSWORD; empty if unset.
    """

    engine: Literal["sqlite", "postgres"]
    where: str
    password: str

    @property
    def place(self) -> StorePlace:
        """Location of the database that the request names, with the password filled in."""
        return PostgresPlace(self.where) if self.engine == "postgres" else SqlitePlace(Path(self.where))


def opening(place: StorePlace, password: str = "") -> Open:
    """Build `Open`, the message by which an engine makes its store process open a database.

    Args:
        password: PostgreSQL password from PGPASSWORD; SQLite ignores it.
    """
    if isinstance(place, PostgresPlace):
        return Open("postgres", place.url, password)
    return Open("sqlite", str(place.path.absolute()), "")


class Apply(Struct, frozen=True, array_like=True, tag=1):
    """Request to write a batch of units (atomic groups of changes). See `Backend.apply`.

    Attributes:
        units: the batch's units, except the first ones that preceding `More` messages carried.
    """

    writer: bytes
    batch: int
    units: list[Unit]


class More(Struct, frozen=True, array_like=True, tag=2):
    """Message with a first part of the units of a large batch; an `Apply` with the last part follows.

    The store process does not answer a `More`.
    """

    units: list[Unit]


class Claim(Struct, frozen=True, array_like=True, tag=3):
    """Request to renew shard leases and claim shards for an engine. See `Backend.lease`."""

    holder: str
    count: int
    now_ms: int
    life_ms: int


class Release(Struct, frozen=True, array_like=True, tag=4):
    """Request to release an engine's shards. See `Backend.release`."""

    holder: str
    shards: list[int] | None = None


class Prune(Struct, frozen=True, array_like=True, tag=5):
    """Request to delete final orders, old events and expired routes. See `Backend.prune`."""

    before_ms: int
    count_max: int


class Read(Struct, frozen=True, array_like=True, tag=6):
    """Request for the rows of queries. See `Backend.read`."""

    queries: list[Query]


class Attend(Struct, frozen=True, array_like=True, tag=7):
    """Request to register an engine, a holder of shards, as alive. See `Backend.attend`."""

    holder: str
    now_ms: int
    life_ms: int


class Opened(Struct, frozen=True, array_like=True, tag=0):
    """Answer to Open: the database is open, with all migrations applied."""


class Applied(Struct, frozen=True, array_like=True, tag=1):
    """Answer to Apply: the batch is durable; carries the outcome of each unit."""

    outcomes: list[UnitOutcome]


class LeasesClaimed(Struct, frozen=True, array_like=True, tag=2):
    """Answer to Claim: all shard leases that the engine has now."""

    leases: list[Lease]


class Released(Struct, frozen=True, array_like=True, tag=3):
    """Answer to Release: the shards are released."""


class Pruned(Struct, frozen=True, array_like=True, tag=4):
    """Answer to Prune: the count of deleted rows."""

    count: int


class Rows(Struct, frozen=True, array_like=True, tag=5):
    """Answer to Read: the rows of each query."""

    rows: list[list[tuple[Any, ...]]]


class Failed(Struct, frozen=True, array_like=True, tag=6):
    """Answer to any request that failed.

    Attributes:
        kind: class of the error: `config` (ConfigError), `unavailable` (StoreUnavailable), `error`
            (StoreError) or `value` (ValueError).
        key: setting that a ConfigError is about; else empty.
        retry_after_s: seconds after which a request that failed with StoreUnavailable may be sent again.
    """

    kind: Literal["config", "unavailable", "error", "value"]
    detail: str
    key: str = ""
    retry_after_s: int = 1


class Announce(Struct, frozen=True, array_like=True, tag=7):
    """Message that the store process sends unasked: some engine may have committed new events."""


class Attended(Struct, frozen=True, array_like=True, tag=8):
    """Answer to Attend: the names of all live engines that share the shards."""

    holders: list[str]


StoreQuestion = Open | Apply | More | Attend | Claim | Release | Prune | Read
StoreAnswer = Opened | Applied | Attended | LeasesClaimed | Released | Pruned | Rows | Failed | Announce

_encoder = msgspec.msgpack.Encoder()
_decode_question = msgspec.msgpack.Decoder(StoreQuestion).decode
_decode_answer = msgspec.msgpack.Decoder(StoreAnswer).decode


def frame(message: Any) -> bytes:
    """Encode a message between engine and store process, with a length prefix.

    Raises:
        StoreError: the message is too large.
    """
    framed = bytearray(_LENGTH_BYTES)
    _encoder.encode_into(message, framed, _LENGTH_BYTES)
    size = len(framed) - _LENGTH_BYTES
    if size > STORE_FRAME_BYTES_MAX:
        raise StoreError(_too_large("a message of the store", size, STORE_FRAME_BYTES_MAX))
    framed[:_LENGTH_BYTES] = size.to_bytes(_LENGTH_BYTES, "big")
    return bytes(framed)


def prepared(unit: Unit) -> Raw:
    """Encode a unit (an atomic group of changes) as msgpack, for `batch_frames`.

    Raises:
        StoreError: the unit is longer than STORE_UNIT_BYTES_MAX.
    """
    encoded = _encoder.encode(unit)
    if len(encoded) > STORE_UNIT_BYTES_MAX:
        raise StoreError(_too_large("a write", len(encoded), STORE_UNIT_BYTES_MAX))
    return Raw(encoded)


def batch_frames(
    writer: bytes, batch: int, units: Sequence[Raw], part_bytes: int = STORE_PART_BYTES_MAX
) -> list[bytes]:
    """Encode a batch of units as frames for the store process: `More` messages, then the `Apply`.

    Args:
        writer, batch: the writer and the batch's number, as in `Backend.apply`.
        units: the units, encoded by `prepared`.
        part_bytes: most bytes of units in one message, unless a single unit is longer.
    """
    parts: list[list[Raw]] = [[]]
    size = 0
    for unit in units:
        size += len(unit)
        if size > part_bytes and parts[-1]:
            parts.append([])
            size = len(unit)
        parts[-1].append(unit)
    return [
        *(frame((More.__struct_config__.tag, part)) for part in parts[:-1]),
        frame((Apply.__struct_config__.tag, writer, batch, parts[-1])),
    ]


def question(body: bytes) -> StoreQuestion:
    """Decode a frame's body to the engine's request. Raises msgspec.DecodeError for an invalid body."""
    request: StoreQuestion = _decode_question(body)
    return request


def answer(body: bytes) -> StoreAnswer:
    """Decode a frame's body to the store process's answer. Raises msgspec.DecodeError for an invalid body."""
    said: StoreAnswer = _decode_answer(body)
    return said


def failed(error: StoreError | ConfigError | ValueError) -> Failed:
    """Convert an error of the store process to the `Failed` answer that carries it to the engine."""
    if isinstance(error, ValueError):
        return Failed("value", str(error))
    if isinstance(error, ConfigError):
        return Failed("config", error.detail.removeprefix(f"{error.key}: "), error.key)
    if isinstance(error, StoreUnavailable):
        return Failed("unavailable", error.detail, "", error.retry_after_s)
    return Failed("error", error.detail)


def raised(said: Failed) -> StoreError | ConfigError | ValueError:
    """Convert a `Failed` answer of the store process back to the error, for the caller to raise."""
    match said.kind:
        case "value":
            return ValueError(said.detail)
        case "config":
            return ConfigError(said.key, said.detail)
        case "unavailable":
            return StoreUnavailable(said.detail, said.retry_after_s)
        case "error":
            return StoreError(said.detail)


class FrameReader:
    """Splits the bytes received on a socket into frames, and returns their bodies (without length prefix)."""

    def __init__(self) -> None:
        self._kept = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Add received bytes and yield the body of each frame that is complete now.

        Raises:
            StoreError: a frame's length prefix is above the limit.
        """
        kept = self._kept
        kept += data
        while len(kept) >= _LENGTH_BYTES:
            size = int.from_bytes(kept[:_LENGTH_BYTES], "big")
            if size > STORE_FRAME_BYTES_MAX:
                raise StoreError(_too_large("a message of the store", size, STORE_FRAME_BYTES_MAX))
            end = _LENGTH_BYTES + size
            if len(kept) < end:
                return
            body = bytes(kept[_LENGTH_BYTES:end])
            del kept[:end]
            yield body


def _too_large(what: str, size: int, size_max: int) -> str:
    return f"{what} has {size} bytes, at most {size_max} are taken"
