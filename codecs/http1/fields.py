"""Header and trailer sections: find the end of a section, collect llhttp's fields, render a section.

llhttp gets a section only once it is complete, in one piece. Its size is therefore bounded before the parser
sees a byte, no value arrives in fragments (httptools joins fragments in quadratic time), and the result
cannot depend on the splitting of the bytes.

Source: RFC 9110 5 (fields); RFC 9112 2.2 (line ends), 5 (field syntax).
Choice: A client takes heads with folded lines, lines that end in LF alone, and white space ahead of a colon,
    as RFC 9112 2.2, 5.1 and 5.2 allow it to.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from ...config.errors import HeadersTooLarge, HttpFault
from .events import Headers

_TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]++"
_VALUE = rb"[\t -~\x80-\xff]*+"
_is_token = re.compile(_TOKEN).fullmatch
_is_value = re.compile(_VALUE).fullmatch
is_field_section = re.compile(rb"(?:%b:%b\r\n)*+\r\n" % (_TOKEN, _VALUE)).fullmatch
_bare_line_feed = re.compile(rb"(?<!\r)\n")
bare_line_feed = _bare_line_feed.search

_answer_end = re.compile(rb"\n\r?\n").search
_fold = re.compile(rb"\r?\n[ \t]+")
_field_of_answer = re.compile(rb"(%b)[ \t]*+:[ \t]*+(%b)\r\n" % (_TOKEN, _VALUE)).match

_NOT_FREE = frozenset(
    (b"connection", b"content-length", b"host", b"trailer", b"transfer-encoding", b"upgrade")
)


class FieldSink:
    """Callbacks for the parser llhttp that collect header fields in order and count complete messages."""

    __slots__ = ("fields", "messages")

    def __init__(self) -> None:
        self.fields: Headers = []
        self.messages = 0

    def on_header(self, name: bytes, value: bytes) -> None:
        """Collect a field without the white space after its value, which llhttp keeps."""
        self.fields.append((name.lower(), value.rstrip()))

    def on_message_complete(self) -> None:
        """Count a message that llhttp considers complete; `ServerConnection` expects one for each request."""
        self.messages += 1


def section_end(buffer: bytes, start: int, scanned: int, bytes_max: int) -> int:
    """Find the end of the header section that starts at `start`.

    Args:
        buffer: the received bytes.
        start: offset of the section's first byte; if bytes precede the section, the last two are CRLF.
        scanned: offset up to which an earlier call has searched; `start` at first.
        bytes_max: largest size with the closing empty line.

    Returns:
        The offset after the closing empty line; 0 if that line has not been received yet.

    Raises:
        HttpFault, HeadersTooLarge: as `check_unfinished`.
    """
    end = buffer.find(b"\r\n\r\n", max(start - 2, 0), start + bytes_max)
    if end >= 0:
        return end + 4
    check_unfinished(buffer, start, scanned, bytes_max)
    return 0


def answer_end(buffer: bytes, scanned: int, bytes_max: int) -> int:
    """Find the end of an answer's head, whose lines end in CRLF or in LF alone.

    Args:
        buffer: the received bytes, from the head's first byte on.
        scanned: number of bytes that an earlier call has searched.
        bytes_max: largest size with the closing empty line.

    Returns:
        The offset after the closing empty line; 0 if that line has not been received yet.

    Raises:
        HeadersTooLarge: the head is larger than `bytes_max`.
    """
    found = _answer_end(buffer, max(scanned - 2, 0), bytes_max)
    if found is None and len(buffer) >= bytes_max:
        raise HeadersTooLarge(expected=f"at most {bytes_max} bytes")
    return 0 if found is None else found.end()


def has_bare_lf(head: bytes) -> bool:
    """Whether a line of a head ends in LF alone."""
    return head.count(b"\n") != head.count(b"\r\n")


def fields_of_answer(head: bytes) -> Headers:
    """Parse the fields of an answer's head that is not to the letter, in the form of `FieldSink`.

    Args:
        head: status line and fields, with the closing empty line.

    Raises:
        HttpFault: a line is no field even so.
    """
    unfolded = _bare_line_feed.sub(b"\r\n", _fold.sub(b" ", head))
    at, fields = unfolded.index(b"\r\n") + 2, []
    while at < len(unfolded) - 2:
        field = _field_of_answer(unfolded, at)
        if field is None:
            raise HttpFault("malformed fields")
        fields.append((field[1].lower(), field[2].rstrip()))
        at = field.end()
    return fields


def check_unfinished(buffer: bytes, start: int, scanned: int, bytes_max: int) -> None:
    """Refuse an incomplete header section that can no longer become valid.

    Args:
        buffer, start, scanned, bytes_max: as for `section_end`.

    Raises:
        HttpFault: a line ends in LF alone. The sender of such a line may consider the section complete, and
            would wait for ever for an answer.
        HeadersTooLarge: the section is larger than `bytes_max`.
    """
    stop = start + bytes_max
    if bare_line_feed(buffer, scanned, stop):
        raise HttpFault("a line ends in LF without CR")
    if len(buffer) >= stop:
        raise HeadersTooLarge(expected=f"at most {bytes_max} bytes")


def check_count(count: int, count_max: int) -> None:
    """Raise HeadersTooLarge for more than `count_max` header or trailer fields."""
    if count > count_max:
        raise HeadersTooLarge(expected=f"at most {count_max} fields", got=count)


@lru_cache(maxsize=256)
def _line_start(name: bytes) -> bytes:
    if not _is_token(name):
        raise ValueError(f"not a header name: {name!r}")
    if name.lower() in _NOT_FREE:
        raise ValueError(f"{name.decode()} belongs to the framing")
    return name + b": "


def check_value(value: bytes) -> bytes:
    """Return a header value unchanged; ValueError for a control character in it such as CR, LF or NUL."""
    if not _is_value(value):
        raise ValueError("a header value holds a control character")
    return value


def render_fields(fields: Sequence[tuple[bytes, bytes]]) -> bytes:
    """Render header fields as lines, each ended by CRLF.

    Raises:
        ValueError: a name is no token of HTTP or is a header of the framing, which the connection itself
            writes; or a value holds a control character.
    """
    check_value(b"".join([value for _, value in fields]))
    return b"".join([b"%b%b\r\n" % (_line_start(name), value) for name, value in fields])
