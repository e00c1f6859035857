"""What one HTTP/1.1 connection may send us: a bound on everything, in bytes and in counts."""

from msgspec import Struct

from ...config.limits import JSON_BYTES_MAX, QUERY_BYTES_MAX

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
