"""A browser holds a page to its policy: own files run; inline code and other hosts' files do not."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from cambist.engine.host.server.assets import asset_group, page_policy, read_assets
from support.browser import Browser
from support.server.server_harness import a_router, encode_error, serving

PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>first</title>
<link rel="icon" href="data:,"><link rel="stylesheet" href="/page/style.css">{head}</head>
<body {body}><p id="shown">nothing</p><script src="/page/page.js"></script></body></html>"""
SCRIPT = """document.getElementById("shown").textContent = "own";
fetch("/page/data.json").then((answer) => answer.json()).then((data) => {
  document.getElementById("shown").textContent += ` and ${data.word}`;
}).finally(() => { document.body.dataset.ended = ""; });"""


@asynccontextmanager
async def a_page(folder: Path, **parts: str) -> AsyncIterator[str]:
    """Origin of a server whose /page has `head` in its head and `body` among the attributes of its body."""
    (folder / "index.html").write_text(PAGE.format(**{"head": "", "body": "", **parts}), encoding="utf-8")
    (folder / "page.js").write_text(SCRIPT, encoding="utf-8")
    (folder / "style.css").write_text("body { color: rgb(1, 2, 3) }", encoding="utf-8")
    (folder / "data.json").write_text('{"word": "fetched"}', encoding="utf-8")
    group = asset_group(read_assets(folder, "/page", page_policy()), encode_error)
    async with serving(a_router(group), reactor=True) as served:
        yield f"http://127.0.0.1:{served.port}"


async def test_the_files_of_a_page_work_together(tmp_path: Path, browser: Browser) -> None:
    async with a_page(tmp_path) as base:
        told = await browser.visit("policy_visit", base, "/page")
    assert told == {"title": "first", "shown": "own and fetched", "colour": "rgb(1, 2, 3)"}


async def test_nothing_inline_and_no_other_host_is_loaded(tmp_path: Path, browser: Browser) -> None:
    inline = "<script>document.title = 'second'</script><style>body { color: red }</style>"
    other = '<script src="http://127.0.0.2:9/other.js"></script>'
    async with a_page(tmp_path, head=inline + other, body='style="color: red"') as base:
        visit = await browser.look("policy_visit", base, "/page")
    assert visit.told == {"title": "first", "shown": "own and fetched", "colour": "rgb(1, 2, 3)"}
    refused = [line for line in visit.complaints if "Content Security Policy" in line]
    assert len(refused) == 4
    assert visit.foreign == ("http://127.0.0.2:9/other.js",)
