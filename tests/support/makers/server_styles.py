"""HTTP answers as the servers of makers write them, byte for byte but for dates and ids.

STYLES: name -> function of (status, JSON body) that gives the answer's bytes, and whether the server then
closes the connection.

Source: h11_impl.py of uvicorn 0.30, Node's http with Express 4, php_cli_server.c of PHP 8, the http.server of
Python, server.go of Go's net/http, Http11Processor of Tomcat, request.rb of Puma,
ngx_http_header_filter_module.c of nginx, and Cloudflare's usual fields.
"""

from collections.abc import Callable
from http import HTTPStatus

_DATE = b"Mon, 30 Nov 2026 10:00:00 GMT"

Style = Callable[[int, bytes], tuple[bytes, bool]]


def _line(status: int, version: bytes = b"1.1") -> bytes:
    return b"HTTP/%b %d %b\r\n" % (version, status, HTTPStatus(status).phrase.encode())


def _chunked(body: bytes, piece: int, size: Callable[[int], bytes] = lambda length: b"%x" % length) -> bytes:
    pieces = [body[at : at + piece] for at in range(0, len(body), piece)]
    return b"".join(b"%b\r\n%b\r\n" % (size(len(one)), one) for one in pieces) + b"%b\r\n\r\n" % size(0)


def fastapi(status: int, body: bytes) -> tuple[bytes, bool]:
    """FastAPI on uvicorn with h11: names in lower case."""
    head = b"date: %b\r\nserver: uvicorn\r\ncontent-length: %d\r\ncontent-type: application/json\r\n\r\n"
    return _line(status) + head % (_DATE, len(body)) + body, False


def express(status: int, body: bytes) -> tuple[bytes, bool]:
    """Express on Node: a weak ETag, a timeout of kept connections."""
    head = (
        b"X-Powered-By: Express\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: %d\r\n"
        b'ETag: W/"1c-6Xfv0nTHIkI5cqDtTCbaxUvHCLI"\r\nDate: %b\r\nConnection: keep-alive\r\n'
        b"Keep-Alive: timeout=5\r\n\r\n"
    )
    return _line(status) + head % (len(body), _DATE) + body, False


def go(status: int, body: bytes) -> tuple[bytes, bool]:
    """net/http of Go: bodies of over 2,048 bytes are chunked, and json.Encoder ends them with a line feed."""
    body += b"\n"
    head = _line(status) + b"Content-Type: application/json\r\nDate: %b\r\n" % _DATE
    if len(body) <= 2_048:
        return head + b"Content-Length: %d\r\n\r\n%b" % (len(body), body), False
    return head + b"Transfer-Encoding: chunked\r\n\r\n" + _chunked(body, 2_048), False


def spring(status: int, body: bytes) -> tuple[bytes, bool]:
    """Spring on Tomcat: no reason phrase, always chunked."""
    head = (
        b"HTTP/1.1 %d \r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\nDate: %b\r\n"
        b"Keep-Alive: timeout=60\r\nConnection: keep-alive\r\n\r\n"
    )
    return head % (status, _DATE) + _chunked(body, 8_192), False


def php(status: int, body: bytes) -> tuple[bytes, bool]:
    """PHP's built-in server: a Host of its own, no length, the body ends with the connection."""
    head = (
        b"Host: 127.0.0.1:8000\r\nDate: %b\r\nConnection: close\r\nX-Powered-By: PHP/8.3.6\r\n"
        b"Content-type: application/json\r\n\r\n"
    )
    return _line(status) + head % _DATE + body, True


def python(status: int, body: bytes) -> tuple[bytes, bool]:
    """http.server of Python: HTTP/1.0 without a length."""
    head = b"Server: BaseHTTP/0.6 Python/3.11.7\r\nDate: %b\r\nContent-Type: application/json\r\n\r\n"
    return _line(status, b"1.0") + head % _DATE + body, True


def rails(status: int, body: bytes) -> tuple[bytes, bool]:
    """Rails on Puma: fields for browsers, a request id, the length last."""
    head = (
        b"X-Frame-Options: SAMEORIGIN\r\nX-XSS-Protection: 0\r\nX-Content-Type-Options: nosniff\r\n"
        b"X-Permitted-Cross-Domain-Policies: none\r\nReferrer-Policy: strict-origin-when-cross-origin\r\n"
        b'Content-Type: application/json; charset=utf-8\r\nVary: Accept\r\nETag: W/"5f0ea1"\r\n'
        b"Cache-Control: max-age=0, private, must-revalidate\r\nX-Request-Id: 4f1c\r\nX-Runtime: 0.004\r\n"
        b"Server-Timing: start_processing.action_controller;dur=0.01\r\nContent-Length: %d\r\n\r\n"
    )
    return _line(status) + head % len(body) + body, False


def cgi(status: int, body: bytes) -> tuple[bytes, bool]:
    """A script of old behind a server that hands its head on: LF alone, a folded line, no length."""
    head = b"HTTP/1.0 %d %b\nX-Remark: one\n  and more\nContent-Type : application/json\n\n"
    return head % (status, HTTPStatus(status).phrase.encode()) + body, True


def weblogic(status: int, body: bytes) -> tuple[bytes, bool]:
    """Sizes of chunks in four digits, padded, and an extension."""
    head = b"Content-Type: application/json\r\nTransfer-Encoding: Chunked\r\n\r\n"
    return _line(status) + head + _chunked(body, 4_080, lambda length: b"%04x  ;z" % length), False


def proxies(status: int, body: bytes) -> tuple[bytes, bool]:
    """A mesh, nginx and Cloudflare in a row: 90 fields, the length twice."""
    more = b"".join(b"x-envoy-attempt-%d: %b\r\n" % (number, b"v" * 60) for number in range(78))
    head = (
        b"Date: %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: keep-alive\r\n%b"
        b"Content-Length: %d\r\nServer: cloudflare\r\nCf-Cache-Status: DYNAMIC\r\nCF-RAY: 8f1c0a6e-FRA\r\n"
        b'Nel: {"success_fraction":0,"report_to":"cf-nel","max_age":604800}\r\n'
        b'Report-To: {"group":"cf-nel","endpoints":[{"url":"https://a.nel.cloudflare.com/"}]}\r\n'
        b'Strict-Transport-Security: max-age=15552000\r\nalt-svc: h3=":443"; ma=86400\r\n\r\n'
    )
    return _line(status) + head % (_DATE, len(body), more, len(body)) + body, False


STYLES: dict[str, Style] = {
    style.__name__: style
    for style in (fastapi, express, go, spring, php, python, rails, cgi, weblogic, proxies)
}
