"""Log the `message` strings of a market maker, with bounds on their rate and length.

Source: spec 3.1.14 and 3.1.15, 3.11.14.
"""

from collections.abc import Callable

from ..config.error_text import one_line
from ..config.limits import MAKER_REMARK_CHARS_MAX
from ..config.timeouts import FEED_REMARK_EVERY_S


class Remarks:
    """Logger of the `message` members (free text to the venue) in the messages of one maker on one chain.

    Args:
        write: function that logs a text.
        now_ms: clock in milliseconds.

    Attributes:
        dropped: number of texts not logged, as they came within FEED_REMARK_EVERY_S of the last logged one.
    """

    __slots__ = ("_last", "_next_ms", "_now_ms", "_write", "dropped")

    def __init__(self, write: Callable[[str], object], now_ms: Callable[[], int]) -> None:
        self._write = write
        self._now_ms = now_ms
        self._next_ms = 0
        self._last = ""
        self.dropped = 0

    def take(self, text: str | None) -> None:
        """Log a maker's text, unless it repeats the last logged one or follows within FEED_REMARK_EVERY_S."""
        if not text or text == self._last:
            return
        now_ms = self._now_ms()
        if now_ms < self._next_ms:
            self.dropped += 1
            return
        self._last = text
        self._next_ms = now_ms + round(FEED_REMARK_EVERY_S * 1_000)
        self._write(one_line(text[:MAKER_REMARK_CHARS_MAX]))
