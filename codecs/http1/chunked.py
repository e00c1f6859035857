r"""Encode and strictly decode the chunked transfer coding.

    body = *( CRLF size CRLF data ) CRLF "0" CRLF trailers CRLF

Every size line is read with the CRLF before it: the end of the previous chunk's data, or of the header
section for the first chunk. In requests, sizes are one to eight hex digits and nothing else. Chunk extensions
are refused there, where RFC 9112 7.1.1 asks to ignore unknown extensions: no client needs them, and lenient
parsing of them is a known way to smuggle requests. In answers, extensions, and the white space with which
servers pad a size, are skipped. Trailers are checked, bounded and dropped.

llhttp's decoder is not used: httptools does not report the end of a message in a buffer, so the next
pipelined head could not be bounded before it is parsed.

Source: RFC 9112 7.1.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from ...config.errors import BodyTooLarge, HttpFault
from .fields import check_count, is_field_section, section_end
from .limits import Http1Limits

LAST_CHUNK = b"0\r\n\r\n"
_CHUNKS_AT_ONCE = 128  # tiny chunks cost a microsecond each, and a read may hold thousands


class _SizeLines(NamedTuple):
    """Form of the lines with chunk sizes: whole ones, beginnings of one, most bytes of one."""

    match: Callable[[bytes, int], re.Match[bytes] | None]
    may_become: Callable[[bytes], object]
    bytes_max: int


_OF_REQUESTS = _SizeLines(
    re.compile(rb"\r\n([0-9A-Fa-f]{1,8})\r\n").match,
    re.compile(rb"(?:\r(?:\n(?:[0-9A-Fa-f]{1,8}\r?)?)?)?").fullmatch,
    12,  # CRLF, eight digits, CRLF
)
_EXTENSION = rb"[ \t]{0,64}+(?:;[\t -~\x80-\xff]{0,900}+)?"
_OF_ANSWERS = _SizeLines(
    re.compile(rb"\r\n([0-9A-Fa-f]{1,16})%b\r\n" % _EXTENSION).match,
    re.compile(rb"(?:\r(?:\n(?:[0-9A-Fa-f]{1,16}%b\r?)?)?)?" % _EXTENSION).fullmatch,
    1_024,
)


def encode_chunk(data: bytes) -> bytes:
    """Encode one chunk. Empty data gives no bytes, since an empty chunk would end the body."""
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""


class ChunkedBody:
    """Decoder of one chunked body, which keeps the data decoded so far.

    Attributes:
        data: the body decoded so far.
        complete: whether the last chunk and the trailers have been read.
        is_due: whether `read` stopped early, after 128 chunks, to let other tasks run; the caller then calls
            `read` again without new bytes.

    Args:
        body_bytes_max: largest size of the data in bytes; None means `limits.body_bytes_max`.
        is_answer: whether the body is an answer's.
    """

    __slots__ = (
        "_bytes_max",
        "_chunks",
        "_in_trailers",
        "_left",
        "_limits",
        "_lines",
        "_scanned",
        "complete",
        "data",
        "is_due",
    )

    def __init__(
        self, limits: Http1Limits, body_bytes_max: int | None = None, *, is_answer: bool = False
    ) -> None:
        self.data = bytearray()
        self.complete = self.is_due = False
        self._limits = limits
        self._lines = _OF_ANSWERS if is_answer else _OF_REQUESTS
        self._bytes_max = limits.body_bytes_max if body_bytes_max is None else body_bytes_max
        self._left = 0  # bytes of the current chunk that have not come
        self._chunks = 0
        self._in_trailers = False
        self._scanned = 0  # bytes of the trailers that were searched for their end

    def read(self, buffer: bytes, position: int) -> int:
        """Decode the bytes of `buffer` from `position` on that belong to the body.

        The caller passes unconsumed bytes again, together with later ones. A call reads 128 chunks at most,
        and sets `is_due` if it stops for that reason.

        Args:
            buffer: the received bytes.
            position: offset of the first unconsumed byte; in the first call, the offset of the CRLF that ends
                the header section.

        Returns:
            The offset of the first unconsumed byte.

        Raises:
            HttpFault: the chunked coding is malformed.
            BodyTooLarge: the data are larger than the limit, or the chunks too many.
            HeadersTooLarge: the trailers are larger than the limits on a header section.
        """
        stop_at = self._chunks + _CHUNKS_AT_ONCE
        self.is_due = False
        while not self._in_trailers:
            if self._left:
                piece = buffer[position : position + self._left]
                self.data += piece
                self._left -= len(piece)
                position += len(piece)
                if self._left:
                    return position
            # Tested between two chunks, so that the next call goes on with a size line.
            if self._chunks == stop_at:
                self.is_due = True
                return position
            match = self._lines.match(buffer, position)
            if match is None:
                # A wrong line is refused now; a line that is only incomplete waits for more bytes.
                begun = buffer[position : position + self._lines.bytes_max]
                if len(begun) == self._lines.bytes_max or not self._lines.may_become(begun):
                    raise HttpFault("a chunk has malformed ends")
                return position
            position = match.end()
            self._start_chunk(int(match[1], 16))
        return self._read_trailers(buffer, position)

    def _start_chunk(self, size: int) -> None:
        self._left = size
        self._in_trailers = size == 0
        self._chunks += 1
        if len(self.data) + size > self._bytes_max:
            raise BodyTooLarge(expected=f"at most {self._bytes_max} bytes")
        if self._chunks > self._limits.chunk_count_max:
            raise BodyTooLarge(expected=f"at most {self._limits.chunk_count_max} chunks")

    def _read_trailers(self, buffer: bytes, position: int) -> int:
        # The size line's CRLF has been taken: with no trailers the section is CRLF alone.
        if buffer.startswith(b"\r\n", position):
            self.complete = True
            return position + 2
        end = section_end(buffer, position, position + self._scanned, self._limits.header_bytes_max)
        if not end:
            self._scanned = len(buffer) - position
            return position
        if not is_field_section(buffer, position, end):
            raise HttpFault("malformed trailers")
        check_count(buffer.count(b"\r\n", position, end) - 1, self._limits.header_count_max)
        self.complete = True
        return end
