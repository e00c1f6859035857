"""Events of a server connection: whole requests in order, then the end of the connection.

`Upgrade`, `RequestFault`, `Closed` and a `Request` whose `keep_alive` is False are last: no event follows.
"""

from enum import Enum
from typing import TypeAlias

from msgspec import Struct

from ...config.errors import HttpFault, ServiceUnavailable

Headers: TypeAlias = list[tuple[bytes, bytes]]


class Phase(Enum):
    """The input that a server connection waits for next; the driver's time-outs depend on it."""

    IDLE = "idle"  # no byte of the next request has come; empty lines do not count
    HEADERS = "headers"  # a request line or header section is under way
    BODY = "body"
    CLOSED = "closed"  # no further input is read: after a last request, a fault or the end of input
    UPGRADED = "upgraded"  # the bytes belong to another protocol


class Request(Struct, gc=False):
    """A complete request.

    Attributes:
        method: one of GET, HEAD, POST, OPTIONS, PUT, PATCH, DELETE.
        target: as sent, in origin form; `*` only with OPTIONS. Visible ASCII, still percent-encoded.
        path, query: the target split at its first `?`; query is None without one.
        http_minor: 0 for HTTP/1.0, 1 for HTTP/1.1. An HTTP/1.0 client cannot read a chunked response.
        headers: in order; names in lower case, values without the white space around them.
        fields: the headers by name; the values of a repeated header joined by commas.
        keep_alive: False for the last request read from this connection; the answer announces the close.
        body: decoded; trailers are dropped.
    """

    method: bytes
    target: bytes
    path: bytes
    query: bytes | None
    http_minor: int
    headers: Headers
    keep_alive: bool
    fields: dict[bytes, bytes]
    body: bytes = b""


class Upgrade(Struct, frozen=True):
    """Event: a WebSocket opening handshake.

    The driver has to answer the handshake with 101, or to refuse it and close the connection.

    Attributes:
        request: the handshake request; its body is empty.
        trailing: bytes received after the request: the first bytes of the WebSocket protocol.
    """

    request: Request
    trailing: bytes


class RequestFault(Struct, frozen=True):
    """Event: the received bytes are no acceptable request.

    The driver has to answer with `error` and the header `connection: close`, and to close the connection.

    Attributes:
        error: the error to answer with.
        request: the request at fault, without its body; None if its header section could not be read.
    """

    error: HttpFault | ServiceUnavailable
    request: Request | None = None


class Closed(Struct, frozen=True):
    """Event: the client sends no more bytes.

    Attributes:
        clean: whether the input ended between two requests; False if it ended within a request.
    """

    clean: bool


Event: TypeAlias = Request | Upgrade | RequestFault | Closed
