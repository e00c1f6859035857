"""An embedded chain that a restart brings back: a file records each change, and the next start repeats them.

    {"at":1800000000,"do":"set_balance","with":["0x...","1000"]}  a line of the file for each change

A change stands in the file before the chain makes it, so that a killed process loses nothing that a client
knows. The same changes at the same times make the same blocks, with the same hashes.
"""

import fcntl
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import trio

from ....config.errors import CambistError, ChainError, ConfigError
from ....crypto.hexadecimal import parse_hex, to_hex
from ...chain.reverts import NO_ERRORS, CustomErrors
from .embedded import EmbeddedChain

T = TypeVar("T")
_FILE_MODE = 0o600


class _Change(msgspec.Struct):
    """A line of the file: Unix time, name of the method, arguments with bytes as hexadecimal text."""

    at: int
    do: str
    arguments: list[Any] = msgspec.field(name="with")


class KeptChain(EmbeddedChain):
    """Embedded chain that records its changes in a file; `opened` creates it."""

    _file: int

    @classmethod
    async def opened(
        cls, path: Path, chain_id: int, now_s: Callable[[], int], errors: CustomErrors = NO_ERRORS
    ) -> "KeptChain":
        """Open the chain that a file records, and repeat all changes of the file.

        Without a file, or from an empty one, a new chain begins, and with it its file.

        Args:
            now_s: function that returns the wall clock, Unix seconds.

        Raises:
            ConfigError: the file cannot be written, is in use by another process, or is not the record of a
                chain with this id.
        """
        file = _locked(path)
        try:
            changes = _changes(path, file, chain_id)
            born_s = changes[0].at if changes else now_s()
            chain = cls(chain_id, now_s, born_s, errors, file)
            if not changes:
                chain._write(_Change(born_s, "begin", [chain_id]))
            for change in changes[1:]:
                await chain._repeat(change)
        except BaseException:
            os.close(file)
            raise
        chain._at = None
        return chain

    def __init__(
        self, chain_id: int, now_s: Callable[[], int], born_s: int, errors: CustomErrors, file: int
    ) -> None:
        self._clock = now_s
        self._at: int | None = born_s
        self._order = trio.Lock()
        self._file = file
        super().__init__(chain_id, self._time_of_change, {}, errors)

    def close(self) -> None:
        """Close the file, so that another process can open it."""
        os.close(self._file)

    async def send_raw(self, raw: bytes) -> bytes:
        """Accept a signed transaction; see `EmbeddedChain.send_raw`."""
        return await self._make("send_raw", [to_hex(raw)], lambda: EmbeddedChain.send_raw(self, raw))

    async def drop(self, tx_hash: bytes) -> None:
        """Remove a waiting transaction; see `EmbeddedChain.drop`."""
        await self._make("drop", [to_hex(tx_hash)], lambda: EmbeddedChain.drop(self, tx_hash))

    async def mine(self, blocks: int = 1) -> None:
        """Mine a number of blocks; see `EmbeddedChain.mine`."""
        await self._make("mine", [blocks], lambda: EmbeddedChain.mine(self, blocks))

    async def set_automine(self, *, on: bool) -> None:
        """Set whether each sent transaction is mined at once; see `EmbeddedChain.set_automine`."""
        await self._make("set_automine", [on], lambda: EmbeddedChain.set_automine(self, on=on))

    async def set_time(self, time_s: int) -> None:
        """Set the time of the next block; see `EmbeddedChain.set_time`."""
        await self._make("set_time", [time_s], lambda: EmbeddedChain.set_time(self, time_s))

    async def pass_time(self, seconds: int) -> int:
        """Add seconds to the times of all later blocks; see `EmbeddedChain.pass_time`."""
        return await self._make("pass_time", [seconds], lambda: EmbeddedChain.pass_time(self, seconds))

    async def set_balance(self, address: bytes, wei: int) -> None:
        """Set an account's balance in wei; see `EmbeddedChain.set_balance`."""
        await self._make(
            "set_balance", [to_hex(address), str(wei)], lambda: EmbeddedChain.set_balance(self, address, wei)
        )

    async def set_base_fee(self, wei: int) -> None:
        """Set the base fee of the next block; see `EmbeddedChain.set_base_fee`."""
        await self._make("set_base_fee", [str(wei)], lambda: EmbeddedChain.set_base_fee(self, wei))

    async def snapshot(self) -> int:
        """Save the chain's state; see `EmbeddedChain.snapshot`."""
        return await self._make("snapshot", [], lambda: EmbeddedChain.snapshot(self))

    async def restore(self, snapshot: int) -> None:
        """Return the chain to a snapshot's state; see `EmbeddedChain.restore`."""
        await self._make("restore", [snapshot], lambda: EmbeddedChain.restore(self, snapshot))

    async def reorganise(self, depth: int, again: Sequence[tuple[bytes, int]] = ()) -> None:
        """Replace the last blocks by others; see `EmbeddedChain.reorganise`."""
        planned = [[to_hex(raw), at] for raw, at in again]
        await self._make("reorganise", [depth, planned], lambda: EmbeddedChain.reorganise(self, depth, again))

    # --- The file ---------------------------------------------------------------------------------

    def _time_of_change(self) -> int:
        return self._clock() if self._at is None else self._at

    async def _make(self, name: str, arguments: list[Any], change: Callable[[], Awaitable[T]]) -> T:
        """Write a change to the file, then make the change.

        Meanwhile the chain's clock stands at the written time, so that a repetition makes the same blocks. A
        lock keeps the changes in the order of the file.
        """
        async with self._order:
            self._at = self._clock()
            made: list[T] = []
            try:
                self._write(_Change(self._at, name, arguments))
                with trio.CancelScope(shield=True):
                    made.append(await change())
            finally:
                self._at = None
        return made[0]

    async def _repeat(self, change: _Change) -> None:
        """Make a change of the file again; a change that was refused is refused again."""
        method = _REPEATED.get(change.do)
        if method is None:
            raise ConfigError("state", f"unknown change {change.do!r}")
        self._at = change.at
        try:
            await method(self, *change.arguments)
        except CambistError:
            return

    def _write(self, change: _Change) -> None:
        line = msgspec.json.encode(change) + b"\n"
        size = os.fstat(self._file).st_size
        try:
            whole = os.write(self._file, line) == len(line)
        except OSError:
            whole = False
        if not whole:
            os.ftruncate(self._file, size)
            raise ChainError("the chain's file cannot be written: the disk may be full")


_REPEATED: Mapping[str, Callable[..., Awaitable[object]]] = {
    "send_raw": lambda chain, raw: EmbeddedChain.send_raw(chain, parse_hex(raw, "raw")),
    "drop": lambda chain, tx_hash: EmbeddedChain.drop(chain, parse_hex(tx_hash, "hash")),
    "mine": EmbeddedChain.mine,
    "set_automine": lambda chain, on: EmbeddedChain.set_automine(chain, on=on),
    "set_time": EmbeddedChain.set_time,
    "pass_time": EmbeddedChain.pass_time,
    "set_balance": lambda chain, address, wei: EmbeddedChain.set_balance(
        chain, parse_hex(address, "address"), int(wei)
    ),
    "set_base_fee": lambda chain, wei: EmbeddedChain.set_base_fee(chain, int(wei)),
    "snapshot": EmbeddedChain.snapshot,
    "restore": EmbeddedChain.restore,
    "reorganise": lambda chain, depth, again: EmbeddedChain.reorganise(
        chain, depth, [(parse_hex(raw, "raw"), at) for raw, at in again]
    ),
}
"""Name of a change -> function that makes the change again."""


def _locked(path: Path) -> int:
    """Open a file for appending, and lock it against other processes."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, _FILE_MODE)
    except OSError as error:
        raise ConfigError(str(path), f"cannot be written: {error.strerror}") from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        raise ConfigError(str(path), "is in use by another process") from None
    return file


def _changes(path: Path, file: int, chain_id: int) -> list[_Change]:
    """Read the changes of a file; cut off an incomplete last line, which a killed process has left.

    Raises:
        ConfigError: the file is not the record of a chain with this id.
    """
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        os.ftruncate(file, whole)
    try:
        changes = msgspec.json.Decoder(_Change).decode_lines(content[:whole])
    except msgspec.MsgspecError as error:
        raise ConfigError(str(path), f"is not a chain's file: {error}") from None
    if changes and changes[0].do != "begin":
        raise ConfigError(str(path), "is not a chain's file: its first change is not `begin`")
    if changes and changes[0].arguments != [chain_id]:
        raise ConfigError(str(path), f"is not of chain {chain_id}")
    return changes
