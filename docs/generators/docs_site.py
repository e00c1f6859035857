"""Builder of the docs as a site: every page of docs/ as HTML, with navigation, anchors and search.

    python -m docs.generators.docs_site build/docs

docs/README.md orders the pages. Each page is there as Markdown too, and `llms.txt` lists these files for
programs that read (llmstxt.org). Links between pages become links of the site; a link or an anchor that leads
nowhere stops the build. Pages load nothing from other hosts.
"""

import json
import re
import shutil
import sys
from collections.abc import Iterator
from html import escape
from os.path import normpath, relpath
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token
from msgspec import Struct

_ROOT = Path(__file__).resolve().parents[2]
_ASSETS = ("style.css", "search.js")
_PICTURES = {".svg", ".png", ".webp"}
_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")
_OUTSIDE = re.compile(r"^(?:https?|mailto):")
_PAGE_LINK = re.compile(r"\]\(([^)#\s]+\.md)")
_SENTENCE = re.compile(r"(?<=[.:]) (?=[A-Z`])")
_TEXT_MAX = 4_000


class DocsFault(Exception):
    """A link or an anchor of a page leads nowhere; the text names page and link."""


class DocsSection(Struct, frozen=True):
    """A heading of a page, with the text below it, for the search."""

    anchor: str
    title: str
    text: str


class DocsPage(Struct, frozen=True):
    """A page as tokens.

    Attributes:
        path: path in the repository, such as docs/guides/venue.md.
        url: path in the site.
    """

    path: str
    url: str
    title: str
    tokens: list[Token]
    sections: tuple[DocsSection, ...]


def build(out: Path, root: Path = _ROOT) -> list[DocsPage]:
    """Write the site into a new folder, and return its pages.

    Raises:
        DocsFault: a link or an anchor leads nowhere.
    """
    pages = {page.path: page for page in _pages(root)}
    shutil.rmtree(out, ignore_errors=True)
    for page in pages.values():
        target = out / page.url
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(_html(page, pages, root, out), encoding="utf-8")
        (out / _markdown_url(page)).write_text(_markdown(page, pages, root), encoding="utf-8")
    (out / "llms.txt").write_text(_listed(pages), encoding="utf-8")
    for name in _ASSETS:
        shutil.copy(root / "docs" / "site" / name, out / name)
    sections = [
        {"url": f"{page.url}#{one.anchor}", "page": page.title, "title": one.title, "text": one.text.lower()}
        for page in pages.values()
        for one in page.sections
    ]
    (out / "sections.js").write_text(f"window.docsSections = {json.dumps(sections)};\n", encoding="utf-8")
    return list(pages.values())


def anchor_of(title: str) -> str:
    """The anchor of a heading, as links in the pages write it."""
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def _pages(root: Path) -> Iterator[DocsPage]:
    paths = [*root.glob("docs/**/*.md"), *root.glob("*.md"), root / "deploy" / "README.md"]
    for path in sorted(paths):
        name = path.relative_to(root).as_posix()
        if name == "README.md":  # the repository's page; the site has docs/README.md
            continue
        tokens = _MARKDOWN.parse(path.read_text(encoding="utf-8"))
        sections = tuple(_sections(tokens))
        yield DocsPage(name, _url(name), sections[0].title, tokens, sections)


def _url(path: str) -> str:
    if path == "docs/README.md":
        return "index.html"
    name = path.removeprefix("docs/").removesuffix(".md").lower()
    return f"{name}.html"


def _markdown_url(page: DocsPage) -> str:
    return f"{page.url.removesuffix('.html')}.md"


def _markdown(page: DocsPage, pages: dict[str, DocsPage], root: Path) -> str:
    """A page's Markdown, its links to pages made links to their Markdown in the site."""
    folder = page.path.rpartition("/")[0] or "."
    here = page.url.rpartition("/")[0] or "."

    def link(found: re.Match[str]) -> str:
        target = pages.get(normpath(f"{folder}/{found[1]}"))
        return f"]({relpath(_markdown_url(target), here)}" if target else found[0]

    return _PAGE_LINK.sub(link, (root / page.path).read_text(encoding="utf-8"))


def _listed(pages: dict[str, DocsPage]) -> str:
    """Text of llms.txt: the pages by part, each with its Markdown and its first sentence."""
    home = pages["docs/README.md"]
    lines = ["# cambist", "", f"> {_first(home)}"]
    for kind, text in _order(home):
        if kind == "part":
            lines += ["", f"## {text}", ""]
        elif text in pages:
            page = pages[text]
            lines.append(f"- [{page.title}]({_markdown_url(page)}): {_first(page)}")
    return "\n".join(lines) + "\n"


def _first(page: DocsPage) -> str:
    """First sentence of a page's first paragraph."""
    for at, token in enumerate(page.tokens):
        if token.type == "paragraph_open":
            text = " ".join(_plain(page.tokens[at + 1]).split())
            return _SENTENCE.split(text, maxsplit=1)[0]
    return page.title


def _sections(tokens: list[Token]) -> Iterator[DocsSection]:
    title, text = "", list[str]()
    for at, token in enumerate(tokens):
        if token.type == "heading_open":
            if title:
                yield DocsSection(anchor_of(title), title, " ".join(text)[:_TEXT_MAX])
            title, text = _plain(tokens[at + 1]), []
        elif token.type in ("inline", "fence"):
            text.append(_plain(token))
    yield DocsSection(anchor_of(title), title, " ".join(text)[:_TEXT_MAX])


def _plain(token: Token) -> str:
    if token.children is None:
        return token.content
    return "".join(" " if child.type == "softbreak" else child.content for child in token.children)


# --- A page as HTML -----------------------------------------------------------------------------------


def _html(page: DocsPage, pages: dict[str, DocsPage], root: Path, out: Path) -> str:
    for at, token in enumerate(page.tokens):
        if token.type == "heading_open":
            token.attrSet("id", anchor_of(_plain(page.tokens[at + 1])))
        for child in token.children or ():
            if child.type == "link_open":
                child.attrSet("href", _link(str(child.attrGet("href")), page, pages, root, out))
            elif child.type == "image":
                child.attrSet("src", _picture(str(child.attrGet("src")), page, root, out))
    body = _MARKDOWN.renderer.render(page.tokens, _MARKDOWN.options, {})
    body = body.replace("<table>", '<div class="table"><table>').replace("</table>", "</table></div>")
    base = "../" * page.url.count("/")
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width">\n'
        f"<title>{escape(page.title)} · cambist</title>\n"
        f'<link rel="icon" href="data:,">\n<link rel="stylesheet" href="{base}style.css">\n</head>\n<body>\n'
        f'<header><a class="home" href="{base}index.html">cambist</a>'
        f'<a class="all" href="#pages">All pages</a>'
        f'<input id="search" type="search" placeholder="Search" aria-label="Search">'
        f'<div id="found" aria-live="polite"></div></header>\n'
        f"<main>\n{body}</main>\n{_navigation(page, pages, base)}\n"
        f'<script src="{base}search.js" data-root="{base}"></script>\n</body>\n</html>\n'
    )


def _navigation(here: DocsPage, pages: dict[str, DocsPage], base: str) -> str:
    """The pages by part, in the order of docs/README.md."""
    parts = ['<nav id="pages" aria-label="Pages">']
    is_open = False
    for kind, text in _order(pages["docs/README.md"]):
        if kind == "part":
            parts.append(f"{'</ul>' if is_open else ''}<h2>{escape(text)}</h2><ul>")
            is_open = True
        elif text in pages:
            page = pages[text]
            mark = ' aria-current="page"' if page is here else ""
            parts.append(f'<li><a href="{base}{page.url}"{mark}>{escape(page.title)}</a></li>')
    return "".join([*parts, "</ul></nav>"])


def _order(home: DocsPage) -> Iterator[tuple[str, str]]:
    """Yield ("part", title) of each part of the home page, and ("page", path) of each page that it lists."""
    seen = set()
    for at, token in enumerate(home.tokens):
        if token.type == "heading_open" and token.tag == "h2":
            yield "part", _plain(home.tokens[at + 1])
        for child in token.children or ():
            if child.type == "link_open":
                path = child.meta.get("path") or normpath(f"docs/{child.attrGet('href')}")
                child.meta["path"] = path
                if path not in seen:
                    seen.add(path)
                    yield "page", path


def _link(href: str, page: DocsPage, pages: dict[str, DocsPage], root: Path, out: Path) -> str:
    """The address in the site of a link's target; a file that is no page is copied into the site.

    Raises:
        DocsFault: no page, no anchor or no file of the repository is there.
    """
    if _OUTSIDE.match(href):
        return href
    path, _, anchor = href.partition("#")
    target = normpath(f"{page.path.rpartition('/')[0] or '.'}/{path}") if path else page.path
    found = pages.get(target)
    if found is None:
        if target == "README.md":
            return relpath("index.html", page.url.rpartition("/")[0] or ".")
        if not (root / target).is_file():
            raise DocsFault(f"{page.path}: {href} leads to no page and no file")
        copy = out / "files" / target
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / target, copy)
        return relpath(f"files/{target}", page.url.rpartition("/")[0] or ".")
    if anchor and anchor not in {section.anchor for section in found.sections}:
        raise DocsFault(f"{page.path}: {href}: no such heading")
    url = relpath(found.url, page.url.rpartition("/")[0] or ".")
    return f"{url}#{anchor}" if anchor else url


def _picture(src: str, page: DocsPage, root: Path, out: Path) -> str:
    """Copy a picture into the site; return its address there.

    Raises:
        DocsFault: the picture is not in docs/, or of another kind.
    """
    source = normpath(f"{page.path.rpartition('/')[0] or '.'}/{src}")
    if (
        not source.startswith("docs/")
        or Path(source).suffix not in _PICTURES
        or not (root / source).is_file()
    ):
        raise DocsFault(f"{page.path}: {src} is no picture of docs/")
    url = source.removeprefix("docs/")
    (out / url).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(root / source, out / url)
    return relpath(url, page.url.rpartition("/")[0] or ".")


if __name__ == "__main__":
    build(Path(sys.argv[1]))
