"""Keeps live quotes across restarts, in a file per chain and process in the state directory.

    start --file says `running`--> the last run crashed: sign nothing until its quotes have expired
          --file has quotes------> the last run ended in order: its live quotes are reserved again
          --no file--------------> no promises exist
    running: the file says `running`, and how long the run's quotes live
    end:     an orderly end writes the live quotes instead; if the wait after an earlier crash still lasts, it
             writes the end of that wait too, since the quotes of the crashed run are not known

The file is not written while quotes are signed: the hot path costs nothing, the price is the wait after a
crash. The start's write is on the disk before the first quote is signed. A file belongs to one process at a
time.

Source: ARCHITECTURE.md, "Maker promises".
Choice: After a crash the maker signs no quote until those of the former run are expired.
"""

import fcntl
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from .....codecs.messages.wire import decoder, encode
from .....config.errors import ConfigError, InvalidInput
from .ledger import EXPIRY_GRACE_S, Exposure, MakerHolding, QuoteLedger

QUOTES = "quotes-"
"""Start of the names of files that hold a run's quotes for the next run, one per chain and process."""

_BYTES_MAX = 1 << 30


class Kept(msgspec.Struct, array_like=True):
    """A live firm quote in the form stored in the state file between two runs.

    Bytes are hexadecimal text, and amounts are decimal text, in raw token units. Fields are as in `Promise`.
    """

    order_hash: str
    user: str
    token: str
    pair_id: str
    amount: str
    notional: str
    base_sold: str
    left: str
    release_s: int


class Remembered(msgspec.Struct, forbid_unknown_fields=True):
    """Content of the file that keeps live quotes between two runs.

    Attributes:
        running: True from the start of a run until its orderly end; True at the next start shows a crash.
        expiry_s: seconds for which quotes of the run may live.
        quotes: live quotes at the run's orderly end; empty while `running`.
        hold_until_s: Unix seconds until which unknown quotes of an earlier, crashed run may be filled; 0 for
            none.
    """

    running: bool
    expiry_s: int
    quotes: list[Kept]
    hold_until_s: int = 0


_decode = decoder(Remembered, bytes_max=_BYTES_MAX)


class QuoteMemory:
    """Reads and writes the file that keeps one chain's live quotes between two runs.

    Args:
        path: the file, in the state directory.
        inherited: files of processes that the maker no longer runs, whose quotes this process takes over.
        ledger: ledger to which restored quotes are added.
        holdings: token -> the maker's funds in the token, of which restored quotes reserve a part.
        exposures: pair id -> totals of the pair's quotes, to which restored quotes are added.
        expiry_s: seconds from signing until a quote of this run expires.
    """

    def __init__(
        self,
        path: Path,
        inherited: Sequence[Path],
        ledger: QuoteLedger,
        holdings: Mapping[bytes, MakerHolding],
        exposures: Mapping[str, Exposure],
        expiry_s: int,
    ) -> None:
        self._path = path
        self._inherited = inherited
        self._ledger = ledger
        self._holdings = holdings
        self._exposures = exposures
        self._expiry_s = expiry_s
        self._hold_until_s = 0

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Context manager: hold an exclusive lock, so that no other process uses the file of live quotes.

        Raises:
            ConfigError: another process holds the lock, or the file cannot be made.
        """
        path = self._path.with_suffix(".lock")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            lock = path.open("wb")
        except OSError as error:
            raise ConfigError("state_dir", f"{path} cannot be written: {error.strerror}") from None
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ConfigError("state_dir", f"another process uses it: {path} is locked") from None
            yield

    def begin(self, now_s: int) -> int:
        """Restore the last run's live quotes from the file, and mark the file as `running`.

        Args:
            now_s: wall clock, Unix seconds.

        Returns:
            Unix seconds until which this run must sign no quote, since quotes of a crashed run may still be
            filled; 0 for no wait.

        Raises:
            ConfigError: the file cannot be read or written.
        """
        hold_until_s = 0
        kept: list[Kept] = []
        for path in (self._path, *self._inherited):
            last = self._read(path)
            if last is not None:
                kept += last.quotes
                hold_until_s = max(hold_until_s, last.hold_until_s)
                if last.running:
                    hold_until_s = max(hold_until_s, now_s + last.expiry_s + EXPIRY_GRACE_S)
        self._hold_until_s = hold_until_s = hold_until_s if hold_until_s > now_s else 0
        # The ledger releases from the front of its queue: the quotes of several files are merged by time.
        for quote in sorted(kept, key=lambda quote: quote.release_s):
            self._restore(quote)
        # After a crash the next start waits for `expiry_s`: it must cover the restored quotes and a wait that
        # still lasts, since the write below replaces what the file says of them.
        left_s = max([hold_until_s, *(quote.release_s for quote in kept)]) - now_s
        self._write(Remembered(running=True, expiry_s=max(self._expiry_s, left_s), quotes=[]))
        # Deleted only after the write: after a crash in between, the next start reads these quotes again.
        for path in self._inherited:
            path.unlink(missing_ok=True)
        return hold_until_s

    def end(self) -> None:
        """Write the live quotes to the file, for the next run.

        Raises:
            ConfigError: the write fails; the next run then signs nothing until these quotes have expired.
        """
        pairs = {id(exposure): pair_id for pair_id, exposure in self._exposures.items()}
        quotes = [
            Kept(
                order_hash=promise.order_hash.hex(),
                user=promise.user.hex(),
                token=promise.holding.token.hex(),
                pair_id=pairs[id(promise.exposure)],
                amount=str(promise.amount),
                notional=str(promise.notional),
                base_sold=str(promise.base_sold),
                left=str(promise.left),
                release_s=promise.release_s,
            )
            for promise in self._ledger.promises()
        ]
        self._write(
            Remembered(running=False, expiry_s=self._expiry_s, quotes=quotes, hold_until_s=self._hold_until_s)
        )

    def _restore(self, kept: Kept) -> None:
        """Reserve the funds for a stored quote again, unless the settings lack its token or pair now."""
        holding = self._holdings.get(bytes.fromhex(kept.token))
        exposure = self._exposures.get(kept.pair_id)
        if holding is None or exposure is None:
            return
        promise = self._ledger.promise(
            bytes.fromhex(kept.order_hash),
            bytes.fromhex(kept.user),
            holding,
            int(kept.amount),
            exposure,
            int(kept.notional),
            int(kept.base_sold),
            kept.release_s - EXPIRY_GRACE_S,
        )
        self._ledger.settle(promise, int(kept.left) + 1)

    def _read(self, path: Path) -> Remembered | None:
        try:
            return _decode(path.read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ConfigError("state_dir", f"{path} cannot be read: {error.strerror}") from None
        except InvalidInput:
            return Remembered(
                running=True, expiry_s=self._expiry_s, quotes=[]
            )  # torn: treated as after a crash

    def _write(self, remembered: Remembered) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            beside = self._path.with_name(f"{self._path.name}.new")
            with beside.open("wb") as file:
                file.write(encode(remembered))
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self._path)
            folder = os.open(self._path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            raise ConfigError("state_dir", f"{self._path} cannot be written: {error.strerror}") from None
