"""Files of a page: content types, encodings, 304, the policy, and no path to any other file."""

import gzip
from pathlib import Path

import pytest

from cambist.codecs.http1 import Response
from cambist.config.errors import PathNotFound
from cambist.engine.host.server.assets import asset_group, page_policy, read_assets
from support.server.server_harness import a_router, a_surface, answers, encode_error, serving

BUNDLE = b"export const answer = 42;\n" * 1_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    page = tmp_path / "page"
    (page / "vendor").mkdir(parents=True)
    (page / "index.html").write_bytes(b"<!doctype html><title>a page</title>")
    (page / "style.css").write_bytes(b"body { margin: 0 }")
    (page / "vendor" / "bundle.js.gz").write_bytes(gzip.compress(BUNDLE, mtime=0))
    (tmp_path / "secret.txt").write_bytes(b"a key")
    return page


async def asked(folder: Path, *requests: tuple[str, str, dict[str, str]]) -> list[Response]:
    """Answers to requests (method, target, headers) over one connection."""
    group = asset_group(read_assets(folder, "/page", page_policy()), encode_error)
    async with serving(a_router(a_surface(), group), reactor=True) as served:
        lines = [
            "".join(
                [f"{method} {target} HTTP/1.1\r\nHost: a\r\n", *(f"{k}: {v}\r\n" for k, v in headers.items())]
            )
            for method, target, headers in requests
        ]
        sent = "\r\n".join(lines) + "Connection: close\r\n\r\n"
        return answers(await served.converse(sent.encode()), *(one[0].encode() for one in requests))


def fields(response: Response) -> dict[bytes, bytes]:
    return dict(response.headers)


async def test_a_page_and_its_files_are_served_with_type_tag_and_policy(folder: Path) -> None:
    page, slash, style = await asked(
        folder, ("GET", "/page", {}), ("GET", "/page/", {}), ("GET", "/page/style.css", {})
    )
    assert page.body == slash.body == b"<!doctype html><title>a page</title>"
    assert (fields(page)[b"content-type"], fields(style)[b"content-type"]) == (
        b"text/html; charset=utf-8",
        b"text/css; charset=utf-8",
    )
    for reply in (page, style):
        told = fields(reply)
        assert reply.status == 200
        assert told[b"cache-control"] == b"no-cache"
        assert told[b"x-content-type-options"] == b"nosniff"
        assert told[b"referrer-policy"] == b"no-referrer"
        policy = dict(part.split(" ", 1) for part in told[b"content-security-policy"].decode().split("; "))
        assert policy == {
            "default-src": "'none'",
            "script-src": "'self'",
            "style-src": "'self'",
            "img-src": "'self' data:",
            "connect-src": "'self'",
            "base-uri": "'none'",
            "frame-ancestors": "'none'",
            "form-action": "'none'",
        }
    assert fields(page)[b"etag"] != fields(style)[b"etag"]


async def test_head_tells_the_length_without_the_file(folder: Path) -> None:
    (head,) = await asked(folder, ("HEAD", "/page/style.css", {}))
    assert (head.status, head.body, fields(head)[b"content-length"]) == (200, b"", b"18")


@pytest.mark.parametrize("known", ["{tag}", "W/{tag}", '"other", {tag}', "*"])
async def test_a_file_that_the_client_has_is_not_sent_again(folder: Path, known: str) -> None:
    (first,) = await asked(folder, ("GET", "/page/style.css", {}))
    tag = fields(first)[b"etag"].decode()
    again, other = await asked(
        folder,
        ("GET", "/page/style.css", {"If-None-Match": known.format(tag=tag)}),
        ("GET", "/page/style.css", {"If-None-Match": '"other"'}),
    )
    assert (again.status, again.body, fields(again)[b"etag"]) == (304, b"", tag.encode())
    assert b"content-security-policy" in fields(again)
    assert (other.status, other.body) == (200, first.body)


@pytest.mark.parametrize(
    ("accepted", "is_packed"),
    [
        ("gzip", True),
        ("br, gzip;q=0.5", True),
        ("*", True),
        ("gzip;q=0, *", False),
        ("identity", False),
        ("GZIP ; q=0.000", False),
        (None, False),
    ],
)
async def test_a_packed_file_is_unpacked_for_clients_that_need_it(
    folder: Path, accepted: str | None, *, is_packed: bool
) -> None:
    asking = {} if accepted is None else {"Accept-Encoding": accepted}
    (reply,) = await asked(folder, ("GET", "/page/vendor/bundle.js", asking))
    told = fields(reply)
    assert (gzip.decompress(reply.body) if is_packed else reply.body) == BUNDLE
    assert told.get(b"content-encoding") == (b"gzip" if is_packed else None)
    assert told[b"vary"] == b"accept-encoding"
    (again,) = await asked(
        folder, ("GET", "/page/vendor/bundle.js", {**asking, "If-None-Match": told[b"etag"].decode()})
    )
    assert again.status == 304


async def test_the_two_encodings_of_a_file_have_tags_of_their_own(folder: Path) -> None:
    plain, packed = await asked(
        folder,
        ("GET", "/page/vendor/bundle.js", {}),
        ("GET", "/page/vendor/bundle.js", {"Accept-Encoding": "gzip"}),
    )
    assert fields(plain)[b"etag"] != fields(packed)[b"etag"]


@pytest.mark.parametrize(
    "target",
    [
        "/page/../secret.txt",
        "/page/%2e%2e/secret.txt",
        "/page/vendor/../../secret.txt",
        "/page/vendor/bundle.js.gz",
        "/page/index.html",
        "/page/vendor",
        "/page/none.css",
    ],
)
async def test_no_other_file_is_reached(folder: Path, target: str) -> None:
    (reply,) = await asked(folder, ("GET", target, {}))
    assert reply.status == 404
    assert reply.body == encode_error(PathNotFound(), "")


async def test_files_are_read_once(folder: Path) -> None:
    assets = read_assets(folder, "/page", page_policy())
    (folder / "style.css").write_bytes(b"changed")
    async with serving(a_router(asset_group(assets, encode_error)), reactor=True) as served:
        sent = b"GET /page/style.css HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        (reply,) = answers(await served.converse(sent), b"GET")
    assert reply.body == b"body { margin: 0 }"


async def test_other_methods_are_refused_in_the_shape_of_the_api(folder: Path) -> None:
    (reply,) = await asked(folder, ("POST", "/page", {"Content-Length": "0"}))
    assert (reply.status, fields(reply)[b"allow"]) == (405, b"GET, HEAD, OPTIONS")


def test_a_file_without_a_content_type_is_refused_at_the_start(folder: Path) -> None:
    (folder / "font.woff9").write_bytes(b"")
    with pytest.raises(ValueError, match=r"font\.woff9: no content type for '\.woff9'"):
        read_assets(folder, "/page", page_policy())


def test_a_page_may_call_the_hosts_that_it_names() -> None:
    policy = page_policy(connect="https://node.example:8545")
    assert b"connect-src 'self' https://node.example:8545; " in policy
