"""Assemble whole messages from the bytes of one WebSocket connection. No sockets, no clock.

The core of the `websockets` library checks every frame but one kind: a whole, unmasked, unfragmented text
frame within the bounds, between two messages. Makers send little else, and only the UTF-8 of such a frame
needs a check, so this module reads the frame itself, at a seventh of the cost. The core gets one frame at a
time, so that core and module always agree where the next frame starts.

Source: RFC 6455 5.2, 5.4, 8.1.
"""

from collections import deque
from typing import cast

from websockets.frames import CloseCode, Frame, Opcode
from websockets.protocol import CLIENT, CLOSED, OPEN, Protocol

_WHOLE_TEXT = 0x81  # FIN, no extension, text
_FRAMES_AT_ONCE = 64
_TEXT, _BINARY, _CONTINUATION, _PONG = Opcode.TEXT, Opcode.BINARY, Opcode.CONT, Opcode.PONG


class MessageReader:
    """Assembles whole messages from the frames of one WebSocket connection.

    Args:
        core: protocol object of `websockets`, which checks frames and answers pings and close frames.
        first: bytes received after the handshake.

    Attributes:
        messages: queue of whole messages; the driver takes them from the left.
        received: number of messages so far.
        pong: data of the last pong frame; the driver resets it once handled.
        is_dropping: whether further messages are dropped, as after invalid UTF-8.
    """

    __slots__ = (
        "_at",
        "_core",
        "_data",
        "_head",
        "_missing",
        "_partial",
        "_partial_is_text",
        "_text_bytes_max",
        "is_dropping",
        "messages",
        "pong",
        "received",
    )

    def __init__(self, core: Protocol, first: bytes) -> None:
        self.messages: deque[str | bytes] = deque()
        self.received = 0
        self.pong: bytes | None = None
        self.is_dropping = False
        self._core = core
        self._text_bytes_max = (core.max_message_size or 0) if core.side is CLIENT else -1
        self._data = first
        self._at = 0  # bytes of `_data` that are parsed
        self._head = b""  # the first bytes of a frame whose length has not come whole
        self._missing = 0  # bytes still to come of a frame whose beginning the core has
        self._partial = bytearray()
        self._partial_is_text = False

    @property
    def is_due(self) -> bool:
        """Whether received bytes remain unparsed: call `parse` again before reading more."""
        return self._at < len(self._data)

    def feed(self, data: bytes) -> None:
        """Accept newly received bytes; call this only after `parse` has used all earlier bytes."""
        self._data = self._head + data if self._head else data
        self._head = b""
        self._at = 0

    def drop(self) -> None:
        """Discard the bytes that are not parsed yet."""
        self._data = b""
        self._at = 0

    def parse(self) -> int:
        """Parse at most 64 frames; return their number. `core` may then hold replies to send (pongs)."""
        core, data, size = self._core, self._data, len(self._data)
        frames = 0
        if self._missing and core.state is not CLOSED:
            self._show(self._at + self._missing)
            frames = 1
        text_bytes_max = self._takes_text()
        while self._at < size and frames < _FRAMES_AT_ONCE and core.state is not CLOSED:
            at = self._at
            start = at + 2
            # Without the second byte the length is unknown: 126 leads to the branch for an incomplete head.
            marked = data[at + 1] if start <= size else 126
            length = marked & 127
            if length >= 126:
                first = start
                start += 2 if length == 126 else 8
                if start > size:
                    self._head = data[at:]
                    self._at = size
                    return frames
                length = int.from_bytes(data[first:start], "big")
            stop = start + length
            frames += 1
            if data[at] == _WHOLE_TEXT and marked < 128 and length <= text_bytes_max and stop <= size:
                self._at = stop
                # The core sees nothing of this frame, so that `text_bytes_max` stays valid. If the text is no
                # UTF-8, `_take` fails the core and has all later messages discarded.
                self._take(data[start:stop], is_text=True)
            else:
                # A masked frame (128 and above) has a key of four bytes before its data.
                self._show(stop if marked < 128 else stop + 4)
                text_bytes_max = self._takes_text()
        if core.state is CLOSED:
            self._at = size  # `is_due` must become False, or the driver would call `parse` for ever
        return frames

    def _takes_text(self) -> int:
        """Largest text frame, bytes, that may now be decoded without the `websockets` core; -1 for none."""
        core = self._core
        return self._text_bytes_max if core.current_size is None and core.state is OPEN else -1

    def _show(self, stop: int) -> None:
        """Pass a frame's received bytes to the core, and handle the frames that the core has parsed.

        Args:
            stop: index of the frame's end, counted in the bytes being parsed.
        """
        core, data = self._core, self._data
        piece = data[self._at : stop]
        self._at += len(piece)
        self._missing = max(0, stop - len(data))
        core.receive_data(piece)
        for frame in cast("list[Frame]", core.events_received()):
            self._take_frame(frame)

    def _take_frame(self, frame: Frame) -> None:
        opcode = frame.opcode
        if opcode is _PONG:
            self.pong = bytes(frame.data)
        elif opcode is _TEXT or opcode is _BINARY or opcode is _CONTINUATION:
            if opcode is not _CONTINUATION:
                self._partial_is_text = opcode is _TEXT
            self._partial += frame.data
            if frame.fin:
                whole, self._partial = self._partial, bytearray()
                self._take(whole, is_text=self._partial_is_text)

    def _take(self, data: bytes | bytearray, *, is_text: bool) -> None:
        try:
            message = str(data, "utf-8") if is_text else bytes(data)
        except UnicodeDecodeError as error:
            self._core.fail(CloseCode.INVALID_DATA, f"{error.reason} at position {error.start}")
            self.is_dropping = True
            return
        if not self.is_dropping:
            self.received += 1
            self.messages.append(message)
