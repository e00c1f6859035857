"""Serve files of the package to browsers: pages with their scripts, styles and images.

    folder of files -> read_assets -> table: path -> Asset -> asset_group -> routes of the server

The process reads the files once, at its start. The server finds a path in the table, or answers 404: no
request reaches the file system. `index.html` has the path of its folder. Clients that accept gzip get texts
compressed; a file named `*.gz`, which is compressed already, has the path without this ending.

Browsers keep a file, and ask each time whether the file has changed (`no-cache`), so that no page runs with
the scripts of an earlier version. No policy of a page permits inline scripts, inline styles or files of other
hosts.

Source: RFC 9110 8.8.3 (ETag), 12.5.3 (Accept-Encoding), 13.1.2 (If-None-Match); Content Security Policy 3.
"""

import gzip
import hashlib
from collections.abc import Mapping
from pathlib import Path

from .routing import ErrorEncoder, HttpCall, Reply, RouteGroup, header

CONTENT_TYPES = {
    ".css": b"text/css; charset=utf-8",
    ".html": b"text/html; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".json": b"application/json",
    ".png": b"image/png",
    ".svg": b"image/svg+xml",
    ".txt": b"text/plain; charset=utf-8",
}
"""Ending of a file's name -> content type; files with other endings are refused at the start."""

_INDEX = "index.html"
_TEXTS = frozenset({".css", ".html", ".js", ".svg"})  # endings of files that compression makes smaller
_TAG_DIGITS = 32
_POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "connect-src": "'self'",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
    "form-action": "'none'",
}


def page_policy(connect: str = "") -> bytes:
    """Return the Content-Security-Policy of a page that loads files of its own host alone.

    Args:
        connect: sources that scripts of the page may call besides their own host, joined by spaces, such as
            the origin of a chain's node.
    """
    sources = {**_POLICY, "connect-src": f"{_POLICY['connect-src']} {connect}".rstrip()}
    return "; ".join(f"{name} {value}" for name, value in sources.items()).encode("ascii")


class Asset:
    """A file of a page, with the answers to GET that a client can get.

    Args:
        body: content of the file.
        content_type: content type of the file.
        policy: Content-Security-Policy of the page that the file belongs to.
        packed: `body` compressed by gzip; None to send it as it is to every client.
    """

    def __init__(self, body: bytes, content_type: bytes, policy: bytes, packed: bytes | None = None) -> None:
        headers: tuple[tuple[bytes, bytes], ...] = (
            (b"cache-control", b"no-cache"),
            (b"content-security-policy", policy),
            (b"referrer-policy", b"no-referrer"),
            (b"x-content-type-options", b"nosniff"),
        )
        if packed is not None:
            headers += ((b"vary", b"accept-encoding"),)
        tag = b'"%b"' % hashlib.sha256(body).hexdigest()[:_TAG_DIGITS].encode()
        self._plain = Reply(200, body, ((b"etag", tag), *headers), content_type)
        self._packed = None
        if packed is not None:
            tag = b'"%b-gzip"' % tag.strip(b'"')
            headers = ((b"etag", tag), *headers, (b"content-encoding", b"gzip"))
            self._packed = Reply(200, packed, headers, content_type)

    def reply(self, call: HttpCall) -> Reply:
        """Answer GET and HEAD with the file, or with 304 if the client has the file already."""
        reply = self._plain
        if self._packed is not None and _accepts_gzip(header(call.request, b"accept-encoding")):
            reply = self._packed
        known, (_, tag) = header(call.request, b"if-none-match"), reply.headers[0]
        if known is not None and _names(known, tag):
            return Reply(304, b"", reply.headers)
        return reply


def read_assets(folder: Path, at: str, policy: bytes) -> dict[str, Asset]:
    """Read all files below a folder of the package.

    Args:
        at: URL path of the folder, without a slash at the end.
        policy: Content-Security-Policy of the page that the files belong to.

    Returns:
        URL path -> file.

    Raises:
        ValueError: the ending of a file's name is in no row of CONTENT_TYPES.
    """
    assets = {}
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        content, packed = file.read_bytes(), None
        name = file.relative_to(folder)
        if name.suffix == ".gz":
            name, packed, content = name.with_suffix(""), content, gzip.decompress(content)
        kind = CONTENT_TYPES.get(name.suffix)
        if kind is None:
            raise ValueError(f"{file}: no content type for {name.suffix!r}")
        if packed is None and name.suffix in _TEXTS:
            packed = gzip.compress(content, mtime=0)
        url = name.parent if name.name == _INDEX else name
        assets[f"{at}/{url.as_posix()}".removesuffix("/.")] = Asset(content, kind, policy, packed)
    return assets


def asset_group(assets: Mapping[str, Asset], encode_error: ErrorEncoder) -> RouteGroup:
    """Create the route group of some files, for `Router.mount`; its answers have no CORS headers.

    Args:
        encode_error: encodes errors of the paths, such as 405, into the body of the answer.
    """
    group = RouteGroup(encode_error)
    for path, asset in assets.items():
        group.plain("GET", path, asset.reply)
    return group


def _accepts_gzip(accepted: bytes | None) -> bool:
    """Whether an Accept-Encoding header permits gzip; a client without the header gets the plain file."""
    found: dict[bytes, bool] = {}
    for part in (accepted or b"").lower().split(b","):
        coding, _, weight = part.replace(b" ", b"").partition(b";q=")
        found[coding] = bool(weight.strip(b"0.")) if weight else True
    return found.get(b"gzip", found.get(b"x-gzip", found.get(b"*", False)))


def _names(listed: bytes, tag: bytes) -> bool:
    """Whether an If-None-Match header names an entity tag; the comparison is weak (RFC 9110 8.8.3.2)."""
    return any(candidate.strip().removeprefix(b"W/") in (tag, b"*") for candidate in listed.split(b","))
