"""Files of /docs: those of Swagger UI as its authors publish them, and a page that needs nothing else."""

import gzip
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urljoin

import pytest

from cambist.engine.roles.venue import reference
from support.programs import ORACLES, program
from support.venue.quiet_venue import a_quiet_venue

FOLDER = Path(reference.__file__).parent / "docs"
PUBLISHED = {
    "swagger-ui-bundle.js.gz": "swagger-ui-bundle.js",
    "swagger-ui.css.gz": "swagger-ui.css",
    "swagger-ui-bundle.js.LICENSE.txt": "swagger-ui-bundle.js.LICENSE.txt",
    "LICENSE.txt": "LICENSE",
    "NOTICE.txt": "NOTICE",
}
"""File of ours -> file of the npm package."""
OURS = {"index.html", "docs.css", "docs.js"}


class Page(HTMLParser):
    """Parsed contents of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.used: list[str] = []
        self.inline: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = dict(attrs)
        self.used += [told[name] or "" for name in ("src", "href") if name in told]
        if tag == "style" or (tag == "script" and "src" not in told):
            self.inline.append(tag)
        self.inline += [name for name in told if name == "style" or name.startswith("on")]


@pytest.mark.oracle
@pytest.mark.parametrize("name", PUBLISHED)
def test_files_of_others_are_those_of_the_locked_package(name: str) -> None:
    """`npm ci` holds the package to the hash in the lock; `make docs-page` copies its files."""
    package = ORACLES / "node_modules" / "swagger-ui-dist"
    program("npm-packages")
    content = (FOLDER / name).read_bytes()
    plain = gzip.decompress(content) if name.endswith(".gz") else content
    assert plain == (package / PUBLISHED[name]).read_bytes()
    version = json.loads((package / "package.json").read_bytes())["version"]
    assert json.loads((ORACLES / "package.json").read_bytes())["dependencies"]["swagger-ui-dist"] == version


def test_the_folder_holds_no_other_file() -> None:
    assert {path.name for path in FOLDER.iterdir()} == OURS | set(PUBLISHED)


def test_the_package_stays_small() -> None:
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 600_000


def test_files_of_ours_name_no_other_host() -> None:
    for name in OURS:
        assert not re.search(
            r"https?://|//\w", (FOLDER / name).read_text(encoding="utf-8").replace("// ", "")
        )


async def test_all_that_the_page_uses_is_served_and_nothing_is_inline(tmp_path: Path) -> None:
    async with a_quiet_venue(tmp_path) as venue:
        reply = await venue.ask("GET", "/docs/")
        page = Page()
        page.feed(reply.body.decode())
        assert page.inline == []
        used = [link for link in page.used if not link.startswith("data:")]
        assert len(used) > 6
        for link in used:
            for place in ("/docs", "/docs/"):
                assert (await venue.ask("GET", urljoin(place, link))).status == 200, (place, link)


async def test_the_document_is_kept_by_browsers_and_compressed(tmp_path: Path) -> None:
    async with a_quiet_venue(tmp_path) as venue:
        reply = await venue.ask("GET", "/openapi.json")
        assert dict(reply.headers)[b"etag"].startswith(b'"')
        assert json.loads(reply.body)["openapi"] == "3.1.0"
