"""Bounds on the input of HTTP/1.1 connections, in bytes and in counts."""

from collections.abc import Callable

from msgspec import Struct

from ...config.errors import ServiceUnavailable
from ...config.limits import JSON_BYTES_MAX, QUERY_BYTES_MAX
from .events import Request

_PATH_BYTES_MAX = 1_024


class Http1Limits(Struct, frozen=True, kw_only=True):
    """Bounds on one connection: a server applies all of them, a client applies those on received data.

    Attributes:
        target_bytes_max: most bytes of the request target, path and query together.
        header_bytes_max: most bytes of the header section with its closing empty line. The bytes of a request
            line do not count. The bound applies separately to the trailers of a chunked body.
        header_count_max: most fields in a header or trailer section.
        answer_head_bytes_max, answer_fields_max: the two bounds for the head of an answer, the status line
            included: frameworks and proxies in a row add many fields.
        body_bytes_max: most bytes of the body, decoded.
        chunk_count_max: most chunks in one body, as tiny chunks cost much time for few bytes.
        empty_lines_max: most empty lines before one request line.
        requests_per_connection_max: most requests of one connection; the answer to the last announces
            `connection: close`.
    """

    target_bytes_max: int = QUERY_BYTES_MAX + _PATH_BYTES_MAX
    header_bytes_max: int = 16_384
    header_count_max: int = 64
    answer_head_bytes_max: int = 65_536
    answer_fields_max: int = 256
    body_bytes_max: int = JSON_BYTES_MAX
    chunk_count_max: int = 8_192
    empty_lines_max: int = 2
    requests_per_connection_max: int = 100_000


class Bodies:
    """Counter and limit of the bytes of request bodies that one server holds, over all its connections.

    A body counts until its request is answered. A body with a Content-Length that is complete together with
    the head of its request is not counted, since such a body is no larger than one read of the socket.

    Args:
        bytes_max: most bytes of all bodies together.
        one_bytes_max: function from a request to the most bytes that the request's body may have.
        one_bytes_min: least value that `one_bytes_max` ever returns: no body of up to this size is checked
            with `one_bytes_max`.

    Attributes:
        bytes: number of bytes counted now.
    """

    __slots__ = ("bytes", "bytes_max", "one_bytes_max", "one_bytes_min")

    def __init__(self, bytes_max: int, one_bytes_max: Callable[[Request], int], one_bytes_min: int) -> None:
        self.bytes = 0
        self.bytes_max = bytes_max
        self.one_bytes_max = one_bytes_max
        self.one_bytes_min = one_bytes_min

    def take(self, size: int) -> None:
        """Count `size` more bytes of request bodies; ServiceUnavailable if the sum exceeds `bytes_max`."""
        if self.bytes + size > self.bytes_max:
            raise ServiceUnavailable("too many request bodies under way")
        self.bytes += size
