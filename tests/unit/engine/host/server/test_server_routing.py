"""Routing: the handler of a request, and the answer if no route fits."""

from collections.abc import AsyncIterator, Callable

import msgspec
import pytest

from cambist.codecs.http1 import Request
from cambist.config.errors import CambistError, ChainError, InvalidInput, RateLimited
from cambist.engine.host.server import HttpCall, Reply, RouteGroup, Router, StreamReply
from support.server.server_harness import encode_error


def request_for(method: str, path: str, *headers: tuple[bytes, bytes]) -> Request:
    return Request(method.encode(), path.encode(), path.encode(), None, 1, list(headers), True, dict(headers))


def naming(name: str) -> RouteGroup:
    """A surface whose errors say its name."""

    def encode(error: CambistError, request_id: str) -> bytes:
        return msgspec.json.encode({name: error.detail})

    return RouteGroup(encode)


def telling(text: str) -> Callable[[HttpCall], Reply]:
    return lambda call: Reply(200, "|".join((text, *call.parameters)).encode())


def ask(router: Router, method: str, path: str, *headers: tuple[bytes, bytes]) -> Reply:
    request = request_for(method, path, *headers)
    route, parameters = router.resolve(request)
    assert route.plain
    return route.plain(HttpCall(request, "1.2.3.4", "id-1", 0, parameters))


def routed(*routes: tuple[str, str], **mount: str) -> Router:
    router = Router(encode_error)
    surface = RouteGroup(encode_error)
    for method, path in routes:
        surface.plain(method, path, telling(f"{method} {path}"))
    router.mount(surface, **mount)
    return router


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/", "GET /"),
        ("/tokens", "GET /tokens"),
        ("/tokens/", "GET /tokens"),
        ("/prices/1/0xab", "GET /prices/{chainId}/{user}|1|0xab"),
        ("/prices/1/0xab/", "GET /prices/{chainId}/{user}|1|0xab"),
        ("/prices/1/fees", "GET /prices/{chainId}/fees|1"),
        ("/prices/all/fees", "GET /prices/all/{user}|fees"),
        ("/prices/a%20b%2Fc/%C3%A9", "GET /prices/{chainId}/{user}|a b/c|é"),
    ],
)
def test_a_path_finds_its_most_literal_route(path: str, answer: str) -> None:
    router = routed(
        ("GET", "/"),
        ("GET", "/tokens"),
        ("GET", "/prices/{chainId}/{user}"),
        ("GET", "/prices/{chainId}/fees"),
        ("GET", "/prices/all/{user}"),
    )
    assert ask(router, "GET", path).body.decode() == answer


@pytest.mark.parametrize("path", ["/token", "/tokens//", "//tokens", "/prices//1", "/%74okens", "/Tokens"])
def test_another_path_is_not_found(path: str) -> None:
    router = routed(("GET", "/tokens"), ("GET", "/prices/{chainId}/{user}"))
    assert ask(router, "GET", path).status == 404


@pytest.mark.parametrize("value", ["%", "%4", "%zz", "%ff"])
def test_a_broken_escape_is_the_callers_fault(value: str) -> None:
    reply = ask(routed(("GET", "/a/{name}")), "GET", f"/a/{value}")
    assert reply.status == 400
    assert b"percent-encoded UTF-8" in reply.body


def test_head_is_served_by_get_and_another_method_is_refused_with_allow() -> None:
    router = routed(("GET", "/a"), ("DELETE", "/a"))
    assert ask(router, "HEAD", "/a").body == b"GET /a"
    refusal = ask(router, "PUT", "/a")
    assert refusal.status == 405
    assert dict(refusal.headers)[b"allow"] == b"GET, DELETE, HEAD, OPTIONS"
    assert b"PUT" in refusal.body


def test_options_tells_the_methods() -> None:
    router = routed(("POST", "/a"))
    reply = ask(router, "OPTIONS", "/a")
    assert (reply.status, dict(reply.headers)) == (204, {b"allow": b"POST, OPTIONS"})
    assert ask(router, "OPTIONS", "*").status == 204
    assert ask(router, "OPTIONS", "/b").status == 404


def test_methods_of_one_path_may_come_from_several_surfaces() -> None:
    router = Router(encode_error)
    first, second = naming("first"), naming("second")
    first.plain("GET", "/a/{id}", telling("get"))
    second.plain("POST", "/a/{name}", telling("post"))
    router.mount(first)
    router.mount(second)
    assert ask(router, "GET", "/a/1").body == b"get|1"
    assert ask(router, "POST", "/a/1").body == b"post|1"
    assert dict(ask(router, "PUT", "/a/1").headers)[b"allow"] == b"GET, POST, HEAD, OPTIONS"


def test_errors_are_in_the_shape_of_the_surface_with_the_longest_prefix() -> None:
    router = Router(naming("default").encode_error)
    trading, otc = naming("trading"), naming("otc")
    trading.plain("GET", "/v2/quote", telling("quote"))
    otc.plain("GET", "/order", telling("order"))
    router.mount(otc, prefix="/ft")
    assert b'"default"' in ask(router, "GET", "/nowhere").body
    router.mount(trading)
    assert b'"trading"' in ask(router, "GET", "/nowhere").body
    assert b'"otc"' in ask(router, "GET", "/ft/nowhere").body
    assert b'"trading"' in ask(router, "GET", "/ftx").body
    assert b'"otc"' in ask(router, "POST", "/ft/order").body
    assert ask(router, "GET", "/ft/order").body == b"order"


def test_a_host_has_its_own_surfaces_before_those_of_any_host() -> None:
    router = Router(naming("default").encode_error)
    here, anywhere = naming("here"), naming("anywhere")
    here.plain("GET", "/a", telling("here"))
    anywhere.plain("GET", "/a", telling("anywhere"))
    anywhere.plain("GET", "/b", telling("anywhere b"))
    router.mount(here, host="Api.Example")
    router.mount(anywhere)
    for host in (b"api.example", b"API.EXAMPLE:8080"):
        assert ask(router, "GET", "/a", (b"host", host)).body == b"here"
        assert ask(router, "GET", "/b", (b"host", host)).body == b"anywhere b"
        assert b'"here"' in ask(router, "GET", "/c", (b"host", host)).body
    for host in (b"other.example", b"[::1]:80", b"api.example.com"):
        assert ask(router, "GET", "/a", (b"host", host)).body == b"anywhere"
    assert ask(router, "GET", "/a").body == b"anywhere"


@pytest.mark.parametrize(
    ("method", "path", "mount"),
    [
        ("GET", "no-slash", {}),
        ("GET", "/a/{}", {}),
        ("GET", "/a/x{id}", {}),
        ("GET", "/a b", {}),
        ("GET", "/a//b", {}),
        ("TRACE", "/a", {}),
        ("HEAD", "/a", {}),
        ("OPTIONS", "/a", {}),
        ("GET", "/a", {"prefix": "/v2/"}),
        ("GET", "/a", {"prefix": "v2"}),
        ("GET", "/a", {"prefix": "/{x}"}),
    ],
)
def test_a_route_that_could_not_be_served_is_refused(method: str, path: str, mount: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="not a"):
        routed((method, path), **mount)


def test_two_routes_in_one_place_are_refused() -> None:
    with pytest.raises(ValueError, match="GET /a is registered twice"):
        routed(("GET", "/a"), ("GET", "/a/"))
    with pytest.raises(ValueError, match="registered twice"):
        routed(("GET", "/a/{x}"), ("GET", "/a/{y}"))


def test_a_refusal_says_when_to_come_back() -> None:
    surface = RouteGroup(encode_error)
    assert dict(surface.refusal(RateLimited(), "id").headers) == {b"retry-after": b"1"}
    away = surface.refusal(ChainError("the node at 10.0.0.1 is away"), "id")
    assert (away.status, dict(away.headers)) == (503, {b"retry-after": b"1"})
    assert b"10.0.0.1" not in away.body


class TestCors:
    ORIGIN = (b"origin", b"https://app.example")
    ASKED = (b"access-control-request-method", b"POST")

    def surface(self, *origins: str) -> RouteGroup:
        surface = RouteGroup(encode_error, cors_origins=origins)
        surface.plain("POST", "/a", telling("a"))
        return surface

    def test_an_origin_that_is_listed_is_told_so(self) -> None:
        headers = dict(
            self.surface("https://app.example").cors_headers(request_for("POST", "/a", self.ORIGIN))
        )
        assert headers[b"access-control-allow-origin"] == b"https://app.example"
        assert headers[b"vary"] == b"origin"

    @pytest.mark.parametrize(
        "headers", [(), ((b"origin", b"https://evil.example"),), ((b"origin", b"null"),)]
    )
    def test_another_is_told_nothing(self, headers: tuple[tuple[bytes, bytes], ...]) -> None:
        surface = self.surface("https://app.example")
        assert surface.cors_headers(request_for("POST", "/a", *headers)) == ((b"vary", b"origin"),)

    def test_a_star_is_for_any(self) -> None:
        headers = dict(self.surface("*").cors_headers(request_for("POST", "/a", self.ORIGIN)))
        assert headers[b"access-control-allow-origin"] == b"*"
        assert b"vary" not in headers

    @pytest.mark.parametrize(
        "origin", ["http://localhost:5173", "http://localhost", "https://127.0.0.1:3000", "http://[::1]:8080"]
    )
    def test_localhost_is_for_the_pages_of_this_machine(self, origin: str) -> None:
        asked = request_for("POST", "/a", (b"origin", origin.encode()))
        headers = dict(self.surface("localhost").cors_headers(asked))
        assert headers[b"access-control-allow-origin"] == origin.encode()
        assert headers[b"access-control-allow-credentials"] == b"true"
        assert b"x-request-id" in headers[b"access-control-expose-headers"]
        self.surface("localhost").check_origin(asked)

    @pytest.mark.parametrize(
        "origin",
        [
            "http://localhost.evil.example",
            "http://evil.example:80",
            "null",
            "localhost",
            "http://127.0.0.1.evil",
        ],
    )
    def test_localhost_is_for_no_other_page(self, origin: str) -> None:
        asked = request_for("POST", "/a", (b"origin", origin.encode()), (b"host", b"venue.example"))
        assert self.surface("localhost").cors_headers(asked) == ((b"vary", b"origin"),)
        with pytest.raises(InvalidInput):
            self.surface("localhost").check_origin(asked)

    def test_a_preflight_lists_methods_and_the_headers_asked_for(self) -> None:
        router = Router(encode_error)
        router.mount(self.surface("https://app.example"))
        asked_headers = (b"access-control-request-headers", b"x-api-key, content-type")
        headers = dict(ask(router, "OPTIONS", "/a", self.ORIGIN, self.ASKED, asked_headers).headers)
        assert headers[b"access-control-allow-methods"] == b"POST, OPTIONS"
        assert headers[b"access-control-allow-headers"] == b"x-api-key, content-type"
        assert b"access-control-allow-private-network" not in headers
        private = (b"access-control-request-private-network", b"true")
        headers = dict(ask(router, "OPTIONS", "/a", self.ORIGIN, self.ASKED, private).headers)
        assert headers[b"access-control-allow-private-network"] == b"true"
        assert b"access-control-allow-methods" not in dict(ask(router, "OPTIONS", "/a", self.ORIGIN).headers)


def test_a_path_with_a_websocket_only_asks_a_plain_get_to_upgrade() -> None:
    async def serve(call: HttpCall, socket: object) -> None: ...

    router = Router(encode_error)
    surface = RouteGroup(encode_error)
    surface.websocket("/ws/{chainId}", lambda call: None, serve)
    router.mount(surface)
    assert b"upgrade: expected websocket" in ask(router, "GET", "/ws/1").body
    found = router.resolve_socket(request_for("GET", "/ws/1/"))
    assert found is not None
    assert found[1] == ("1",)
    assert router.resolve_socket(request_for("GET", "/other")) is None


def test_a_stream_reply_is_finite_unless_it_says_otherwise() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b""

    assert not StreamReply(content_type=b"text/plain", pieces=pieces()).endless
