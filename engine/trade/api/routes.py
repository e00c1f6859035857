"""The table of HTTP endpoints: path, handler, cost, and types of request and answer.

Each group of endpoints (such as `engine/trade/otc/endpoints.py`) returns its rows. All rows together make the
served routes and the OpenAPI document (`openapi`). Only this module puts handlers behind admission, i.e.
callers' rate limits.

A route's cost is the number of tokens that a call takes from its caller's bucket: above 1 for a route that
does or causes more work, 0 for a route that is not counted.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from ....codecs.http1 import JSON
from ....codecs.messages.resource_messages import otc_error_body, trading_error_body
from ....codecs.messages.wire import encode
from ....config.errors import CambistError
from ...host.admission.admission import Admission
from ...host.server.routing import (
    CoroutineHandler,
    ErrorEncoder,
    HandshakeCheck,
    HttpCall,
    PlainHandler,
    RouteGroup,
    Router,
    SocketHandler,
)

OTC_PREFIX = "/ft"
"""Prefix of the URL paths of OTC orders.

Errors of these paths have another body than errors of all other paths (choices.md#requests-and-errors).
"""


class Socket(Struct, frozen=True):
    """WebSocket handlers of an endpoint.

    Attributes:
        check: refuses a request to open a WebSocket by raising an error, before the WebSocket is opened.
        serve: sends and receives messages while the WebSocket is open.
    """

    check: HandshakeCheck
    serve: SocketHandler


class Endpoint(Struct, frozen=True, kw_only=True):
    """A row of the table of HTTP endpoints.

    Attributes:
        path: URL path with `{placeholders}`.
        plain, coroutine: handler that answers within 100 us without waiting, or handler that may wait;
            exactly one of the two is set.
        socket: handlers of requests that upgrade the connection to a WebSocket; None for no WebSocket.
        cost: number of tokens that a request takes from its caller's rate-limit bucket.
        needs_key: whether requests without an API key are refused.
        group, summary, detail: heading, one-line and further description in the API's documentation.
        query: struct of the query's parameters.
        body: struct of the request's JSON body.
        answer: type of the JSON answer; None if the answer is not JSON.
        content_type: content type of the answer.
        events: name of a message of the endpoint's stream -> type of the message; empty without a stream.
    """

    method: Literal["GET", "POST"]
    path: str
    plain: PlainHandler | None = None
    coroutine: CoroutineHandler | None = None
    socket: Socket | None = None
    cost: int = 1
    needs_key: bool = False
    group: str
    summary: str
    detail: str = ""
    query: type[Struct] | None = None
    body: type[Struct] | None = None
    answer: Any = None
    content_type: bytes = JSON
    events: Mapping[str, Any] = {}

    @property
    def name(self) -> str:
        """Name of the endpoint in the error catalogue (errors.json): method and path."""
        return f"{self.method} {self.path}"

    @property
    def is_otc(self) -> bool:
        """Whether the endpoint's path is below OTC_PREFIX, the prefix of OTC orders."""
        return self.path.startswith(f"{OTC_PREFIX}/")


def encode_trading_error(error: CambistError, request_id: str) -> bytes:
    """Encode the JSON body of an error on paths outside OTC_PREFIX (choices.md#requests-and-errors)."""
    return encode(trading_error_body(error, request_id))


def encode_otc_error(error: CambistError, request_id: str) -> bytes:
    """Encode the JSON body of an error on paths below OTC_PREFIX (choices.md#requests-and-errors)."""
    return encode(otc_error_body(error, request_id))


def mount_endpoints(
    router: Router,
    endpoints: Sequence[Endpoint],
    admission: Admission,
    *,
    cors_origins: Sequence[str] = (),
    body_bytes_max: int,
) -> None:
    """Add the endpoints to the router in two route groups: paths below OTC_PREFIX, and all other paths.

    The two groups differ in the body of their errors.

    Args:
        cors_origins: origins of the web pages that may call the endpoints.
        body_bytes_max: most bytes of a request's body.
    """
    for prefix, encode_error in (("", encode_trading_error), (OTC_PREFIX, encode_otc_error)):
        rows = [row for row in endpoints if row.is_otc == bool(prefix)]
        surface = surface_of(
            rows,
            admission,
            cors_origins=cors_origins,
            body_bytes_max=body_bytes_max,
            encode_error=encode_error,
            prefix=prefix,
        )
        router.mount(surface, prefix=prefix)


def surface_of(
    endpoints: Sequence[Endpoint],
    admission: Admission,
    *,
    cors_origins: Sequence[str],
    body_bytes_max: int,
    encode_error: ErrorEncoder = encode_trading_error,
    prefix: str = "",
) -> RouteGroup:
    """Create a route group of endpoints; each request first takes its cost from its caller's token bucket.

    Args:
        encode_error: encodes an error into the body of the answer.
        prefix: common prefix of the paths, under which the router mounts the group.
    """
    surface = RouteGroup(encode_error, cors_origins=cors_origins, body_bytes_max=body_bytes_max)
    for row in endpoints:
        path = row.path.removeprefix(prefix)
        if row.plain is not None:
            surface.plain(row.method, path, admission.plain(row.plain, row.cost) if row.cost else row.plain)
        elif row.coroutine is not None:
            counted = admission.coroutine(row.coroutine, row.cost) if row.cost else row.coroutine
            surface.coroutine(row.method, path, counted)
        else:
            raise ValueError(f"{row.name} has no handler")
        if row.socket is not None:  # the handshake takes the cost, once for the whole connection
            surface.websocket(path, _admitted(row.socket.check, admission, row.cost), row.socket.serve)
    return surface


def _admitted(check: HandshakeCheck, admission: Admission, cost: int) -> HandshakeCheck:
    """Wrap a WebSocket's handshake check to take `cost` tokens from the caller's bucket first."""

    def admitted(call: HttpCall) -> None:
        headers = admission.admit(call, cost) if cost else ()
        try:
            check(call)
        except CambistError as error:
            error.headers = headers
            raise

    return admitted
