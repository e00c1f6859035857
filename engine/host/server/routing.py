"""Find the handler of a request: route groups, and the table that holds them. Pure.

A route group is a set of routes with one error shape and one list of origins. A router holds route groups
under path prefixes and host names and always finds a route: if no handler fits, a route that answers 404, 405
or OPTIONS in the shape of the group under whose prefix the path falls. A driver therefore knows two kinds of
route, plain and coroutine, and no errors.

    static path, as sent       one dict lookup
    path with {placeholders}   by number of segments, the most literal template first

The most specific path alone decides on 405: a path with placeholders never serves methods that a literal path
lacks. A plain GET of a WebSocket's path is 400, not 426. A request with a mounted Host looks among that
host's groups first, then among those of any host.

Source: RFC 9110 9.3.2 (HEAD), 9.3.7 (OPTIONS), 10.2.1 (Allow), 15.5.6 (405); Fetch, 3.2 (CORS).
Choice: The literal part of a path is compared as sent: `%74okens` is not `tokens`.
Choice: `localhost` among the origins stands for all pages of this machine, at any port.
Choice: A page of a named origin may send credentials, as clients do unasked; no cookie is ever set.
"""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import unquote_to_bytes

from msgspec import Struct

from ....codecs.http1 import JSON, METHODS, Request
from ....codecs.messages.resource_messages import error_status
from ....config.errors import (
    CambistError,
    HttpFault,
    InvalidInput,
    MethodNotAllowed,
    PathNotFound,
    RateLimited,
    RequestError,
    ServiceUnavailable,
    StoreUnavailable,
)
from ....config.sections.server import ANY_ORIGIN, LOCAL_ORIGINS
from ....feeds.durations import Durations

if TYPE_CHECKING:
    from ....feeds.transport.websocket import WebSocket

_PREFLIGHT_S = 600  # browsers keep a preflight's answer for so long
_is_template = re.compile(r"(?:/(?:[A-Za-z0-9\-._~!$&'()*+,;=:@]+|\{[A-Za-z]+\}))*/?").fullmatch
_HOLE = b""  # stands for a placeholder: no segment of a path that matches is empty
_EXPOSED = (
    b"ratelimit-limit, ratelimit-remaining, ratelimit-reset, retry-after, x-api-key-status, x-request-id"
)
_is_local_origin = re.compile(rb"https?://(?:localhost|127\.0\.0\.1|\[::1\])(?::[0-9]{1,5})?").fullmatch
_BROKEN_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})").search


class HttpCall(Struct, gc=False):
    """A request with the data that its handler needs.

    Attributes:
        request: the request as parsed: method, target, headers, body.
        client: IP address of the client, as text.
        request_id: id of the request, which the answer shows in its header `x-request-id`.
        now_ms: wall clock, Unix milliseconds.
        parameters: values of the path's placeholders, percent-decoded, in order.
    """

    request: Request
    client: str
    request_id: str
    now_ms: int
    parameters: tuple[str, ...]


class Reply(Struct, gc=False):
    """A complete HTTP answer.

    Attributes:
        headers: (lower-case name, value) without framing headers such as content-length, which the encoder
            adds.
        pauses: whether the client is over its rate, so that its next request is read later (see `pauses`).
    """

    status: int
    body: bytes
    headers: tuple[tuple[bytes, bytes], ...] = ()
    content_type: bytes = JSON
    pauses: bool = False


WriteNow: TypeAlias = Callable[[bytes], bool]
"""Function that writes a piece of a body without waiting; False if nothing was written.

It may be called only while the body's iterator waits for its next piece.
"""


class StreamReply(Struct, kw_only=True):
    """An answer with a body in pieces; the server requests each piece after sending the previous piece.

    Attributes:
        pieces: iterator over the body's pieces; the server calls its method `aclose`, if any, after the end
            of the answer, be it complete or not.
        endless: True for a subscription, which is cut off when the server shuts down; a finite stream is sent
            to its end.
        attach: called before the first piece with a function that writes further pieces at once; None for
            pieces of the iterator alone. Not called where the connection cannot, as with TLS.
    """

    status: int = 200
    content_type: bytes
    headers: tuple[tuple[bytes, bytes], ...] = ()
    pieces: AsyncIterator[bytes]
    endless: bool = False
    attach: Callable[[WriteNow], None] | None = None


PlainHandler: TypeAlias = Callable[[HttpCall], Reply]
CoroutineHandler: TypeAlias = Callable[[HttpCall], Awaitable[Reply | StreamReply]]
ErrorEncoder: TypeAlias = Callable[[CambistError, str], bytes]
HandshakeCheck: TypeAlias = Callable[[HttpCall], None]
SocketHandler: TypeAlias = "Callable[[HttpCall, WebSocket], Awaitable[None]]"


class HttpRoute(Struct, frozen=True):
    """Route of one method of one path, with exactly one handler: plain (never awaits) or coroutine.

    Attributes:
        durations: times from a complete request to its answer. All routes of a group that only refuse, or
            that answer OPTIONS, share one `Durations`.
    """

    surface: "RouteGroup"
    durations: Durations
    plain: PlainHandler | None = None
    coroutine: CoroutineHandler | None = None


class SocketRoute(Struct, frozen=True):
    """Route of a path's WebSockets: check of the handshake, and the handler that serves the socket."""

    surface: "RouteGroup"
    check: HandshakeCheck
    serve: SocketHandler


class RouteGroup:
    """A group of routes (delta, otc, ...) with one shape of error bodies and one list of browser origins.

    Args:
        encode_error: (error, request id) -> body of the reply.
        cors_origins: origins of the pages that may call; `*` for any, `localhost` for pages of this machine
            at any port; without origins no CORS header is sent.
        body_bytes_max: most bytes of a request's body, if less than the server's limit.
    """

    def __init__(
        self,
        encode_error: ErrorEncoder,
        *,
        cors_origins: Sequence[str] = (),
        body_bytes_max: int | None = None,
    ) -> None:
        self.encode_error = encode_error
        self.body_bytes_max = body_bytes_max
        self.cors = bool(cors_origins)
        self._any_origin = ANY_ORIGIN in cors_origins
        self._local_origins = LOCAL_ORIGINS in cors_origins
        self._origins = frozenset(
            origin.encode("ascii") for origin in cors_origins if origin != LOCAL_ORIGINS
        )
        self._refusals = Durations()
        self.routes: list[tuple[str, str, HttpRoute]] = []
        self.sockets: list[tuple[str, SocketRoute]] = []

    def plain(self, method: str, path: str, handler: PlainHandler) -> None:
        """Register a plain function as handler of a method and path; a GET handler also answers HEAD.

        The function must return within about 100 us, without I/O and without awaiting.
        """
        self.routes.append((method, path, HttpRoute(self, Durations(), plain=handler)))

    def coroutine(self, method: str, path: str, handler: CoroutineHandler) -> None:
        """Register a coroutine function as handler of a method and path; a GET handler also answers HEAD."""
        self.routes.append((method, path, HttpRoute(self, Durations(), coroutine=handler)))

    def websocket(self, path: str, check: HandshakeCheck, serve: SocketHandler) -> None:
        """Register the WebSocket of a path.

        Args:
            check: plain function that runs before the 101 answer; an error that it raises refuses the
                handshake.
            serve: coroutine function that serves the open WebSocket.
        """
        self.sockets.append((path, SocketRoute(self, check, serve)))

    def refusal(self, error: CambistError, request_id: str) -> Reply:
        """Encode `error`, in this group's shape of error bodies, as the reply to a failed request."""
        status = error_status(error)
        wait_s = error.retry_after_s if isinstance(error, RequestError | StoreUnavailable) else None
        if status == ServiceUnavailable.status and wait_s is None:
            wait_s = ServiceUnavailable.retry_after_s
        headers = ((b"retry-after", b"%d" % wait_s), *error.headers) if wait_s else error.headers
        is_over_rate = isinstance(error, RateLimited) and error.is_over_rate
        return Reply(status, self.encode_error(error, request_id), headers, pauses=is_over_rate)

    def cors_headers(self, request: Request) -> tuple[tuple[bytes, bytes], ...]:
        """CORS headers that let a page of a permitted origin read the answer.

        The caller must not call this method for a group without `cors_origins`.
        """
        origin = header(request, b"origin")
        if self._any_origin:
            shown = ((b"access-control-allow-origin", b"*"), (b"access-control-expose-headers", b"*"))
            return () if origin is None else shown
        vary = ((b"vary", b"origin"),)
        if origin is None or not self._is_named(origin):
            return vary
        return (
            (b"access-control-allow-origin", origin),
            (b"access-control-allow-credentials", b"true"),
            (b"access-control-expose-headers", _EXPOSED),
            *vary,
        )

    def _is_named(self, origin: bytes) -> bool:
        return origin in self._origins or (self._local_origins and _is_local_origin(origin) is not None)

    def check_origin(self, request: Request) -> None:
        """Refuse a WebSocket to pages of foreign origins, since browsers send no preflight for WebSockets.

        Raises:
            InvalidInput: the Origin header is neither a permitted origin nor the request's own host.
        """
        origin = header(request, b"origin")
        if origin is None or self._any_origin or self._is_named(origin):
            return
        if origin.partition(b"://")[2].lower() != (header(request, b"host") or b"").lower():
            raise InvalidInput(field="origin", expected="an origin that may call", got=origin)

    def _preflight_headers(self, request: Request, allow: bytes) -> tuple[tuple[bytes, bytes], ...]:
        """Headers of an OPTIONS answer besides `cors_headers`: Allow, and the answer to a CORS preflight."""
        if not self.cors or header(request, b"access-control-request-method") is None:
            return ((b"allow", allow),)
        requested = header(request, b"access-control-request-headers")
        is_private = header(request, b"access-control-request-private-network") == b"true"
        return (
            (b"allow", allow),
            (b"access-control-allow-methods", allow),
            *(((b"access-control-allow-headers", requested),) if requested else ()),
            *(((b"access-control-allow-private-network", b"true"),) if is_private else ()),
            (b"access-control-max-age", b"%d" % _PREFLIGHT_S),
        )

    def options_route(self, allow: bytes) -> HttpRoute:
        """Make the route that answers OPTIONS for a path, with `allow` as the list of its methods."""
        return self._refusing(lambda call: Reply(204, b"", self._preflight_headers(call.request, allow)))

    def not_allowed_route(self, allow: bytes) -> HttpRoute:
        """Make the route that answers 405 to methods that a path does not have.

        Args:
            allow: list of the methods that the path has.
        """

        def refuse(call: HttpCall) -> Reply:
            error = MethodNotAllowed(expected=allow.decode(), got=call.request.method.decode())
            reply = self.refusal(error, call.request_id)
            reply.headers += ((b"allow", allow),)
            return reply

        return self._refusing(refuse)

    def refusing_route(self, error: CambistError) -> HttpRoute:
        """Make a route that answers every request with `error`."""
        return self._refusing(lambda call: self.refusal(error, call.request_id))

    def _refusing(self, handler: PlainHandler) -> HttpRoute:
        return HttpRoute(self, self._refusals, plain=handler)


class _Endpoint:
    """A path with its routes by HTTP method, and the route that answers every other method with 405."""

    __slots__ = ("_registered", "other", "routes", "socket", "surface", "template")

    def __init__(self, surface: RouteGroup, template: str) -> None:
        self.surface = surface
        self.template = template
        self._registered: dict[bytes, HttpRoute] = {}
        self.routes: dict[bytes, HttpRoute] = {}
        self.socket: SocketRoute | None = None
        self.other = surface.not_allowed_route(b"OPTIONS")

    def add(self, method: bytes, route: HttpRoute) -> None:
        if method not in METHODS or method in (b"HEAD", b"OPTIONS"):
            raise ValueError(f"not a method to register: {method!r}")
        if method in self._registered:
            raise ValueError(f"{method.decode()} {self.template} is registered twice")
        self._registered[method] = route

    def finish(self) -> None:
        """Build the path's OPTIONS, HEAD and 405 routes from the registered ones, after each mount."""
        named = {method: self._registered[method] for method in METHODS if method in self._registered}
        if self.socket and b"GET" not in named:
            fault = HttpFault(field="upgrade", expected="websocket")
            named[b"GET"] = self.surface.refusing_route(fault)
        if b"GET" in named:
            named[b"HEAD"] = named[b"GET"]
        allow = b", ".join([*named, b"OPTIONS"])
        named[b"OPTIONS"] = self.surface.options_route(allow)
        self.other = self.surface.not_allowed_route(allow)
        self.routes = named


class _Mounts:
    """The route groups mounted for one host name, or for any host."""

    def __init__(self) -> None:
        self.static: dict[bytes, _Endpoint] = {}
        self.templates: dict[int, list[tuple[tuple[bytes, ...], _Endpoint]]] = {}
        self.prefixes: list[tuple[bytes, HttpRoute]] = []  # the longest first; the routes answer 404

    def endpoint(self, surface: RouteGroup, template: str) -> _Endpoint:
        """Return the `_Endpoint` (routes by method) of a path template, created if it does not exist."""
        if not _is_template(template):
            raise ValueError(f"not a path: {template!r}")
        path = template.encode().rstrip(b"/")
        segments = tuple(_HOLE if s.startswith(b"{") else s for s in path.split(b"/")[1:])
        if _HOLE not in segments:
            found = self.static.get(path or b"/") or _Endpoint(surface, template)
            self.static[path or b"/"] = self.static[path + b"/"] = found
            return found
        same_size = self.templates.setdefault(len(segments), [])
        for pattern, found in same_size:
            if pattern == segments:
                return found
        made = _Endpoint(surface, template)
        same_size.append((segments, made))
        # A literal segment goes before a placeholder, the leftmost first.
        same_size.sort(key=lambda entry: [segment == _HOLE for segment in entry[0]])
        return made

    def find(self, path: bytes) -> tuple[_Endpoint, tuple[bytes, ...]] | None:
        found = self.static.get(path)
        if found is not None:
            return found, ()
        segments = path.split(b"/")[1:]
        if segments and not segments[-1]:
            segments.pop()
        for pattern, endpoint in self.templates.get(len(segments), ()):
            if all(b and a in (b, _HOLE) for a, b in zip(pattern, segments, strict=True)):
                return endpoint, tuple(b for a, b in zip(pattern, segments, strict=True) if a == _HOLE)
        return None

    def not_found(self, path: bytes) -> HttpRoute | None:
        for prefix, route in self.prefixes:
            if path == prefix or path.startswith(prefix + b"/"):
                return route
        return None


class Router:
    """The table of all routes of a server, which finds the handler of a request.

    Args:
        default_errors: (error, request id) -> body of the error reply, for malformed requests and for paths
            under no mounted prefix.
    """

    def __init__(self, default_errors: ErrorEncoder) -> None:
        self.default = RouteGroup(default_errors)
        self._anywhere = _Mounts()
        self._by_host: dict[bytes, _Mounts] = {}
        self._bounds: list[int] = []
        self._durations: dict[str, Durations] = {}
        self._nowhere = self.default.refusing_route(PathNotFound())

    def mount(self, surface: RouteGroup, *, prefix: str = "", host: str | None = None) -> None:
        """Add the routes registered so far on a route group (`surface`) to the table.

        Args:
            prefix: path that precedes each path of the group, without a trailing slash.
            host: host name in the Host header of the requests to serve, at any port; None for any host.

        Raises:
            ValueError: a path or method is malformed, or two routes collide.
        """
        if prefix.endswith("/") or "{" in prefix or not _is_template(prefix):
            raise ValueError(f"not a prefix: {prefix!r}")
        mounts = self._anywhere
        if host is not None:
            mounts = self._by_host.setdefault(host.lower().encode("ascii"), _Mounts())
        touched = []
        for method, path, route in surface.routes:
            endpoint = mounts.endpoint(surface, prefix + path)
            endpoint.add(method.encode("ascii"), route)
            self._durations[f"{method} {host or ''}{prefix}{path}"] = route.durations
            touched.append(endpoint)
        for path, socket in surface.sockets:
            endpoint = mounts.endpoint(surface, prefix + path)
            if endpoint.socket:
                raise ValueError(f"the WebSocket {prefix + path} is registered twice")
            endpoint.socket = socket
            touched.append(endpoint)
        # After all routes are added: the Allow header lists a path's methods, WebSocket included.
        for endpoint in touched:
            endpoint.finish()
        if surface.body_bytes_max is not None:
            self._bounds.append(surface.body_bytes_max)
            self.default.body_bytes_max = min(self._bounds)  # for paths of no group, too
        mounts.prefixes.append((prefix.encode(), surface.refusing_route(PathNotFound())))
        mounts.prefixes.sort(key=lambda entry: -len(entry[0]))

    def resolve(self, request: Request) -> tuple[HttpRoute, tuple[str, ...]]:
        """Find the route of a request, and the values of the placeholders in its path.

        For an unknown path or method the route answers 404 or 405.
        """
        path = request.path
        if not self._by_host:
            endpoint = self._anywhere.static.get(path)
            if endpoint is not None:
                return endpoint.routes.get(request.method) or endpoint.other, ()
        found = self._find(request)
        if found is None:
            return self._not_found(request), ()
        endpoint, raw = found
        route = endpoint.routes.get(request.method) or endpoint.other
        if not raw:
            return route, ()
        try:
            return route, tuple([_decoded(value) for value in raw])
        except InvalidInput as error:
            return route.surface.refusing_route(error), ()

    def durations(self) -> dict[str, Durations]:
        """Return the durations of answers by method and path template, of all registered routes."""
        return self._durations

    def body_bytes_min(self, most: int) -> int:
        """Smallest limit of a request body, bytes: the least of `most` and the limits of all route groups."""
        return min([most, *self._bounds])

    def surface(self, request: Request) -> RouteGroup:
        """Return the route group of a request's path.

        The group of an unknown path is the one with the longest prefix of the path.
        """
        return self.resolve(request)[0].surface

    def resolve_socket(self, request: Request) -> tuple[SocketRoute, tuple[str, ...]] | None:
        """Find the WebSocket route of a request's path, and the values of the path's placeholders.

        Returns:
            None if the path has no WebSocket route or a malformed placeholder value; the server then treats
            the request as a GET without upgrade.
        """
        found = self._find(request)
        if found is None or found[0].socket is None:
            return None
        try:
            return found[0].socket, tuple([_decoded(value) for value in found[1]])
        except InvalidInput:
            return None

    def _mounts(self, request: Request) -> list[_Mounts]:
        if not self._by_host:
            return [self._anywhere]
        here = self._by_host.get(host_name(request))
        return [here, self._anywhere] if here else [self._anywhere]

    def _find(self, request: Request) -> tuple[_Endpoint, tuple[bytes, ...]] | None:
        for mounts in self._mounts(request):
            found = mounts.find(request.path)
            if found is not None:
                return found
        return None

    def _not_found(self, request: Request) -> HttpRoute:
        if request.path == b"*":
            return self.default.options_route(b", ".join(METHODS))
        for mounts in self._mounts(request):
            route = mounts.not_found(request.path)
            if route is not None:
                return route
        return self._nowhere


def header(request: Request, name: bytes) -> bytes | None:
    """Return the value of a request's first header with a name; None if the request has no such header.

    Args:
        name: name of the header in lower case.
    """
    for found, value in request.headers:
        if found == name:
            return value
    return None


def host_name(request: Request) -> bytes:
    """Return the request's Host header without its port, in lower case."""
    host = header(request, b"host") or b""
    name, _, port = host.rpartition(b":")
    return (name if name and not port.endswith(b"]") else host).lower()


def _decoded(value: bytes) -> str:
    try:
        if not _BROKEN_ESCAPE(value):
            return unquote_to_bytes(value).decode()
    except UnicodeDecodeError:
        pass
    raise InvalidInput(field="path", expected="percent-encoded UTF-8", got=value)
