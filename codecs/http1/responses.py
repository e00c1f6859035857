"""Render responses of the server: whole responses, and the head of a streamed response. Pure functions.

Constant lines are rendered once. No argument but `lines` can add a line: a control character in a header
raises ValueError, and so does a header that belongs to the framing.

Source: RFC 9110 6.6.1 (Date), 8.6 (Content-Length), 9.3.2 (HEAD), 15.3.5 and 15.4.5 (no content);
RFC 9112 4, 6, 9.3.
"""

from collections.abc import Sequence
from functools import lru_cache
from http import HTTPStatus

from .fields import check_value, render_fields

JSON = b"application/json"

_PHRASES = {status.value: status.phrase for status in HTTPStatus}
_WITHOUT_CONTENT = frozenset((204, 304))


@lru_cache(maxsize=512)
def _head_start(status: int, content_type: bytes, connection: bytes) -> bytes:
    """Render the constant start of a response: status line, content type, connection."""
    if not 200 <= status <= 599:
        raise ValueError(f"not the status of a final response: {status}")
    head = f"HTTP/1.1 {status} {_PHRASES.get(status, '')}\r\n".encode()
    if status not in _WITHOUT_CONTENT:
        head += b"content-type: %b\r\n" % check_value(content_type)
    return head + b"connection: %b\r\n" % connection


@lru_cache(maxsize=4)
def _date_line(date: bytes | None) -> bytes:
    return b"" if date is None else b"date: %b\r\n" % check_value(date)


def encode_response(
    status: int,
    body: bytes,
    *,
    content_type: bytes = JSON,
    extra_headers: Sequence[tuple[bytes, bytes]] = (),
    keep_alive: bool = True,
    head: bool = False,
    date: bytes | None = None,
    lines: bytes = b"",
) -> bytes:
    """Render a whole response.

    Args:
        status: 200 to 599.
        body: empty with 204 and 304.
        content_type: not written with 204 and 304.
        extra_headers: names and values, written in this order.
        keep_alive: `keep_alive` of the request. The Connection header is always written: HTTP/1.0 needs it.
        head: whether the request was HEAD: the response then announces the length of the body and omits it.
        date: an IMF-fixdate; None for a server without a clock.
        lines: headers that the caller has rendered, each with its CRLF; the function does not check these.

    Raises:
        ValueError: an argument that would break the framing: our bug.
    """
    start = _head_start(status, content_type, b"keep-alive" if keep_alive else b"close")
    extra = lines + render_fields(extra_headers) if extra_headers else lines
    if status in _WITHOUT_CONTENT:  # without content-length: RFC 9110 8.6 forbids it in a 204
        if body:
            raise ValueError(f"a {status} has no body")
        return b"%b%b%b\r\n" % (start, _date_line(date), extra)
    return b"%b%b%bcontent-length: %d\r\n\r\n%b" % (
        start,
        _date_line(date),
        extra,
        len(body),
        b"" if head else body,
    )


def encode_stream_head(
    status: int,
    *,
    content_type: bytes,
    extra_headers: Sequence[tuple[bytes, bytes]] = (),
    keep_alive: bool = True,
    chunked: bool = True,
    date: bytes | None = None,
    lines: bytes = b"",
) -> bytes:
    """Render the head of a response whose body is sent in pieces.

    Args:
        status: 200 to 599, except a status without content.
        chunked: True for a client that spoke HTTP/1.1: the caller sends each piece through `encode_chunk`,
            and `LAST_CHUNK` at the end. False for HTTP/1.0: the caller sends the pieces as they are and
            closes the connection at the end, so `keep_alive` is ignored. The answer to HEAD has no pieces.
        date: an IMF-fixdate; None for a server without a clock.
        lines: headers that the caller has rendered, each with its CRLF; not checked.

    Raises:
        ValueError: an argument that would break the framing: our bug.
    """
    if status in _WITHOUT_CONTENT:
        raise ValueError(f"a {status} has no body")
    start = _head_start(status, content_type, b"keep-alive" if keep_alive and chunked else b"close")
    return b"%b%b%b%b%b\r\n" % (
        start,
        _date_line(date),
        lines,
        render_fields(extra_headers),
        b"transfer-encoding: chunked\r\n" if chunked else b"",
    )
