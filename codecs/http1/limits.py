"""What HTTP/1.1 connections may send us: a bound on everything, in bytes and in counts."""

from collections.abc import Callable

from msgspec import Struct

from ...config.errors import ServiceUnavailable
from ...config.limits import JSON_BYTES_MAX, QUERY_BYTES_MAX
from .events import Request

_PATH_BYTES_MAX = 1_024


class Http1Limits(Struct, frozen=True, kw_only=True):
    """The bounds of one connection; the server uses all of them, the client those on what it receives.

    Attributes:
        target_bytes_max: the request target, path and query together.
        header_bytes_max: the header section with its closing empty line, without the request line; an
            answer's status line counts. Trailers of a chunked body have the same bound of their own.
        header_count_max: fields in a header or trailer section.
        body_bytes_max: the body, decoded.
        chunk_count_max: chunks in one body; tiny chunks cost more time than bytes.
        empty_lines_max: empty lines tolerated ahead of one request line.
        requests_per_connection_max: the last one is answered with `connection: close`.
    """

    target_bytes_max: int = QUERY_BYTES_MAX + _PATH_BYTES_MAX
    header_bytes_max: int = 16_384
    header_count_max: int = 64
    body_bytes_max: int = JSON_BYTES_MAX
    chunk_count_max: int = 8_192
    empty_lines_max: int = 2
    requests_per_connection_max: int = 100_000


class Bodies:
    """The bodies of all connections of one server that are under way or being answered.

    One that came whole with its head is not counted: it is no larger than one read.

    Args:
        bytes_max: of all together.
        one_bytes_max: of one, by the request it belongs to.
        one_bytes_min: the least that `one_bytes_max` ever gives: it is not asked about smaller ones.

    Attributes:
        bytes: taken now.
    """

    __slots__ = ("bytes", "bytes_max", "one_bytes_max", "one_bytes_min")

    def __init__(self, bytes_max: int, one_bytes_max: Callable[[Request], int], one_bytes_min: int) -> None:
        self.bytes = 0
        self.bytes_max = bytes_max
        self.one_bytes_max = one_bytes_max
        self.one_bytes_min = one_bytes_min

    def take(self, size: int) -> None:
        """Count `size` bytes more. Raises ServiceUnavailable where there is no room for them."""
        if self.bytes + size > self.bytes_max:
            raise ServiceUnavailable("too many request bodies under way")
        self.bytes += size
