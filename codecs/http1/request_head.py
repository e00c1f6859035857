"""Check a request's head beyond llhttp: its first line, its host, its framing. Pure functions.

llhttp also takes HTTP/0.9 and 2.0, RTSP, several spaces, absolute and authority targets, fragments,
some forty methods, `gzip, chunked`, any number of Hosts, and unbounded empty lines. All of these are refused,
repeated Hosts by `framing` and empty lines by `server`. The server has the request line checked before the
parser sees the head, and has host and framing checked afterwards.

Source: RFC 9112 2.2, 3, 6, 7; RFC 9110 7.2, 7.8, 10.1.1.
Choice: A request body with a content-encoding is refused (415): a few bytes of gzip unfold to any size.
Choice: A request target in absolute form is refused, against RFC 9112 3.2.2: no known client sends it, and
    two names of one host are ambiguous. An empty Host is refused too.
"""

import re
from functools import lru_cache

from ...config.errors import (
    BodyTooLarge,
    ExpectationFailed,
    HttpFault,
    HttpVersionNotSupported,
    TargetTooLong,
    UnknownMethodOrCoding,
    UnsupportedCoding,
)
from .fields import bare_line_feed
from .framing import body_length, has_option, persists

METHODS = (b"GET", b"POST", b"HEAD", b"OPTIONS", b"PUT", b"PATCH", b"DELETE")

_METHOD_BYTES_MAX = 32  # a longer token is no method
_PLAIN = (b"", b"identity")
_AROUND_TARGET_BYTES_MAX = _METHOD_BYTES_MAX + len("  HTTP/1.1\r\n")

# Groups: method, target, path, query, minor version. Path and query are None for `*`.
match_request_line = re.compile(
    rb"(%b) ((/[!\"$->@-~]*+)(?:\?([!\"$-~]*+))?|\*) HTTP/1\.([01])\r\n" % b"|".join(METHODS)
).match
is_target = re.compile(rb"/[!\"$-~]*+").fullmatch
# A connection repeats its host with every request, so the last 64 results are cached.
is_host = lru_cache(maxsize=64)(
    re.compile(rb"(?:[A-Za-z0-9\-._~!$&'()*+,;=%]++|\[[0-9A-Fa-f:.]++\])(?::[0-9]{0,5})?").fullmatch
)
_match_method = re.compile(rb"[!#$%%&'*+\-.^_`|~0-9A-Za-z]{1,%d}" % _METHOD_BYTES_MAX).match
_is_version = re.compile(rb"HTTP/[0-9]\.[0-9]").fullmatch


def request_line_bytes_max(target_bytes_max: int) -> int:
    """Largest length, in bytes, of a request line whose target has at most `target_bytes_max` bytes."""
    return target_bytes_max + _AROUND_TARGET_BYTES_MAX


def request_line_fault(buffer: bytes, start: int, stop: int) -> HttpFault | None:
    """Find the fault of a complete or incomplete request line that is not acceptable.

    Args:
        buffer: the received bytes; the caller has found that `match_request_line` does not match.
        start: offset of the line's first byte.
        stop: offset by which the line must have ended.

    Returns:
        A fault that no further bytes can remedy; None while further bytes could still complete the line to an
        acceptable one.
    """
    method = _match_method(buffer, start)
    method_end = method.end() if method else start
    if method and method_end == len(buffer):
        return None
    if not method or buffer[method_end] != ord(" "):
        return HttpFault("the request line does not begin with a method")
    line_feed = buffer.find(b"\n", method_end, stop)
    if line_feed < 0:
        return TargetTooLong() if len(buffer) >= stop else None
    if buffer[line_feed - 1] != ord("\r"):
        return HttpFault("a line ends in LF without CR")
    return _line_fault(buffer[start : line_feed - 1])


def _line_fault(line: bytes) -> HttpFault:
    """Determine the fault of a complete request line that `match_request_line` refuses.

    Args:
        line: the line without CRLF; it begins with a method (an HTTP token) and a space.
    """
    method, *parts = line.split(b" ")
    if len(parts) == 1 and parts[0].startswith(b"/"):
        return HttpVersionNotSupported(got="HTTP/0.9")
    if len(parts) != 2 or not _is_version(parts[1]):
        return HttpFault(field="request line", expected="method, target and version, one space apart")
    target, version = parts
    if not version.startswith(b"HTTP/1.") or version[-1] not in b"01":
        return HttpVersionNotSupported(got=version)
    if method == b"CONNECT":
        return HttpFault("CONNECT is not supported")
    if method not in METHODS:
        return UnknownMethodOrCoding(field="method", got=method)
    return HttpFault(
        field="request target", expected="a path and query of visible ASCII without a fragment", got=target
    )


def parser_fault(reason: str, head: bytes, http_minor: int) -> HttpFault:
    """Translate the parser's (llhttp's) refusal of a request head into an error of the catalogue.

    The function reports a line that ends in LF alone in preference to the parser's reason, so that a
    complete head gets the same error as an incomplete one (`check_unfinished`).

    Args:
        reason: error text of the parser.
        head: request line and header section.
        http_minor: 0 for HTTP/1.0, 1 for HTTP/1.1.
    """
    if bare_line_feed(head):
        return HttpFault("a line ends in LF without CR")
    if reason == "Content-Length overflow":
        return BodyTooLarge()
    if "Transfer-Encoding" in reason and "Content-Length" not in reason and http_minor == 1:
        return UnknownMethodOrCoding(reason)
    return HttpFault(reason)


def request_framing(
    method: bytes, http_minor: int, fields: dict[bytes, bytes], body_bytes_max: int
) -> tuple[int, bool, bool, bool]:
    """Determine body length and persistence of a request from its header fields, and check its host.

    An upgrade is only valid as a WebSocket handshake: GET, HTTP/1.1, no body, `Connection: upgrade` and
    exactly `Upgrade: websocket`. Every other offer (h2c, a list, a POST) is ignored, as RFC 9110 7.8 allows:
    the request is read as one without an upgrade.

    Args:
        fields: header fields as `joined` returns them.

    Returns:
        The body's length in bytes, or CHUNKED; whether the client lets the connection persist; whether the
        client waits for `100 Continue` before it sends a body; whether this is a WebSocket handshake.

    Raises:
        HttpFault: host missing, repeated or malformed; a length that is no number, is repeated, or comes
            with a transfer coding; a transfer coding in HTTP/1.0.
        UnknownMethodOrCoding: any transfer coding but a single `chunked`.
        ExpectationFailed: an expectation but `100-continue`.
        BodyTooLarge: a length over `body_bytes_max`.
        UnsupportedCoding: a body with a content coding.
    """
    host = fields.get(b"host")
    if host is None:
        if http_minor == 1:
            raise HttpFault(field="host", expected="one", got="none")
    elif not is_host(host):
        raise HttpFault(field="host", expected="a host name or address, and a port or none", got=host)
    length = body_length(fields, http_minor, body_bytes_max) or 0  # CHUNKED stays: it is -1
    if length and fields.get(b"content-encoding", b"").lower() not in _PLAIN:
        raise UnsupportedCoding(
            field="content-encoding", expected="identity", got=fields[b"content-encoding"]
        )
    connection = fields.get(b"connection")
    expect = fields.get(b"expect")
    # The usual request: without Connection it is no handshake, and its version alone decides persistence.
    if connection is None and expect is None:
        return length, http_minor == 1, False, False

    connection = (connection or b"").lower()
    if http_minor == 0:  # Expect is of HTTP/1.1: RFC 9110 10.1.1 has a server ignore 100-continue in HTTP/1.0
        expect = None
    if expect is not None and expect.lower() != b"100-continue":
        raise ExpectationFailed(got=expect)
    websocket = (
        (method, http_minor, length) == (b"GET", 1, 0)
        and fields.get(b"upgrade", b"").lower() == b"websocket"
        and has_option(connection, b"upgrade")
    )
    return length, persists(connection, http_minor), expect is not None, websocket
