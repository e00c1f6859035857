"""Price source that reads a file again whenever it changes.

    path        JSON or TOML by its ending, the shape of GET /prices; relative to the settings file
    poll_ms     time between two checks of the file for a change
    refresh_ms  time between two confirmations of unchanged prices
    age_max_ms  age above which a file's prices are not confirmed; 0, the default, sets no bound, for a file
                that a person edits

A change shows in time, size or inode, so that both ways of writing work: renaming another file onto it (the
safe way) and writing in place. Each version is read once more at the next poll, in case a write fell into the
same tick of the file system's clock.

Reads are synchronous and therefore bounded: 1 MiB of JSON, 64 KiB of TOML, whose parser is slow, and no pipe.
Grids are read and their books checked one by one with a checkpoint after each.

A static file with any mistake, as one crossed pair, is reported and not used at all. A pair that a new static
file lacks is disabled: the file is complete, as GET /prices is. Removing the static file is an off switch:
prices that a missing, unreadable, refused or old file no longer confirms are withdrawn after
`price_life_ms`.
"""

import stat
import tomllib
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import trio
from msgspec import Raw, Struct

from .....codecs.messages.maker_messages import PriceGrid
from .....config.errors import CambistError, InvalidInput
from .....feeds.books.book import build_book
from .source import SourceContext, normalise_grid, read_options

JSON_BYTES_MAX = 1 << 20
TOML_BYTES_MAX = 64 << 10

_Signature = tuple[int, int, int]

_decode_pairs = msgspec.json.Decoder(dict[str, dict[str, Raw]]).decode
_decode_json = msgspec.json.Decoder().decode


class StaticOptions(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of the price source `static`.

    Attributes:
        path: path of the price file.
        poll_ms: milliseconds between two checks whether the file has changed.
        refresh_ms: milliseconds after which the source yields unchanged prices again.
        age_max_ms: age of the file, ms, above which its prices count as stale; 0 sets no bound.
    """

    path: str
    poll_ms: int = 200
    refresh_ms: int = 1_000
    age_max_ms: int = 0

    def __post_init__(self) -> None:
        if Path(self.path).suffix not in (".json", ".toml"):
            raise ValueError(f"path ends in .json or .toml, got {self.path!r}")
        if not 0 <= self.age_max_ms <= 86_400_000:
            raise ValueError(f"age_max_ms is 0 to 86400000, got {self.age_max_ms}")
        for name in ("poll_ms", "refresh_ms"):
            if not 10 <= getattr(self, name) <= 3_600_000:
                raise ValueError(f"{name} is 10 to 3600000, got {getattr(self, name)}")


class StaticPrices:
    """Price source `static`: prices from a file, which is read again whenever it changes."""

    def __init__(self, options: Mapping[str, Any], context: SourceContext) -> None:
        self._options = read_options(StaticOptions, options, context)
        self._path = context.folder / Path(self._options.path).expanduser()
        self._context = context
        self._signature: _Signature | None = None
        self._settled = False
        self._raw: bytes | None = None
        self._said = ""

    async def updates(self) -> AsyncGenerator[dict[str, PriceGrid], None]:
        """Yield the file's prices when they change, and each `refresh_ms` while the file is valid and recent.

        Yields:
            Pair id -> price grid; an empty grid for a pair that the file no longer has.
        """
        poll_s, refresh_s = self._options.poll_ms / 1_000, self._options.refresh_ms / 1_000
        prices: dict[str, PriceGrid] = {}
        in_force = False
        confirm_at = trio.current_time()
        while True:
            wake_at = trio.current_time() + poll_s
            raw = self._changed()
            read = None if raw is None else await self._read(raw)
            # Without the file, or after a refused version, the last prices are not confirmed any more.
            in_force = self._signature is not None and (in_force if raw is None else read is not None)
            if read is not None:
                gone = {pair_id: PriceGrid() for pair_id in prices if pair_id not in read}
                prices = read
                confirm_at = trio.current_time() + refresh_s
                yield {**gone, **prices}
            if prices and in_force and not self._is_old():
                if trio.current_time() >= confirm_at:
                    confirm_at = trio.current_time() + refresh_s
                    yield dict(prices)
                wake_at = min(wake_at, confirm_at)
            await trio.sleep_until(wake_at)

    def _changed(self) -> bytes | None:
        """Return the content of the price file if it has changed since the last call, else None."""
        try:
            status = self._path.stat()
            signature = (status.st_mtime_ns, status.st_size, status.st_ino)
            if signature == self._signature and self._settled:
                return None
            self._settled = signature == self._signature
            is_file = stat.S_ISREG(status.st_mode)  # opening a pipe would wait for its writer
            raw = self._content() if is_file else None
        except OSError as error:
            self._unreadable(error.strerror)
            return None
        if raw is None:
            self._unreadable("it is no regular file")
            return None
        self._signature = signature
        if raw == self._raw:
            return None
        self._raw = raw
        return raw

    def _content(self) -> bytes:
        with self._path.open("rb") as file:
            return file.read(JSON_BYTES_MAX + 1)

    def _unreadable(self, why: str | None) -> None:
        self._signature = self._raw = None
        self._say(f"cannot be read: {why}")

    def _is_old(self) -> bool:
        """Whether the price file was last written more than `age_max_ms` ago, so that its prices are stale.

        Writing the same content again makes the prices recent.
        """
        age_max_ms = self._options.age_max_ms
        if not age_max_ms or self._signature is None:
            return False
        age_ms = self._context.now_ms() - self._signature[0] // 1_000_000
        if age_ms > age_max_ms:
            self._say(f"was not written for more than {age_max_ms} ms")
        return age_ms > age_max_ms

    async def _read(self, raw: bytes) -> dict[str, PriceGrid] | None:
        """Decode the price file's content to pair id -> price grid.

        Returns:
            None if the content has a mistake, which is reported to the operator.
        """
        try:
            grids: dict[str, PriceGrid] = {}
            for pair_id, value in self._pairs(raw).items():
                grid = normalise_grid(pair_id, _decoded(value) if isinstance(value, Raw) else value)
                pair = self._context.pairs[pair_id]
                build_book(grid, pair.base_decimals, pair.quote_decimals, field=f"prices.{pair_id}")
                grids[pair_id] = grid
                await trio.lowlevel.checkpoint()
        except CambistError as error:
            self._say(f"not taken: {error.detail}")
            return None
        self._said = ""
        return grids

    def _pairs(self, raw: bytes) -> dict[str, Any]:
        """Split the price file's content into pair id -> price grid; grids from JSON are not decoded yet."""
        tree = _parse(raw, is_toml=self._path.suffix == ".toml")
        if not isinstance(tree, dict) or tree.keys() != {"prices"} or not isinstance(tree["prices"], dict):
            raise InvalidInput(expected="one object, `prices`", got=tree)
        pairs: dict[str, Any] = tree["prices"]
        for pair_id in pairs:
            if pair_id not in self._context.pairs:
                raise InvalidInput(field="prices", expected="pairs of this chain", got=pair_id)
        return pairs

    def _say(self, text: str) -> None:
        """Report a fault of the price file to the operator once, not again at every poll."""
        if text != self._said:
            self._said = text
            self._context.report(f"{self._path}: {text}")


def _parse(raw: bytes, *, is_toml: bool) -> Any:
    bytes_max = TOML_BYTES_MAX if is_toml else JSON_BYTES_MAX
    if len(raw) > bytes_max:
        raise InvalidInput(expected=f"at most {bytes_max} bytes")
    try:
        return tomllib.loads(raw.decode()) if is_toml else _decode_pairs(raw)
    except msgspec.ValidationError:
        raise InvalidInput(expected="one object, `prices`") from None
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"not {'TOML' if is_toml else 'JSON'}: {error}") from None


def _decoded(value: Raw) -> Any:
    try:
        return _decode_json(value)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"not JSON: {error}") from None
