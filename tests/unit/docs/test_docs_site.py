"""The docs as a site: every link leads somewhere, pages load nothing from elsewhere, faults stop it."""

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import msgspec
import pytest
from docs.generators import docs_site, flow_pictures

ROOT = Path(__file__).parents[3]
LINK = re.compile(r'(?:href|src)="([^"]*)"')


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site") / "docs"
    docs_site.build(out)
    return out


def test_every_link_of_the_site_leads_to_a_file_and_a_heading(site: Path) -> None:
    pages = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    assert len(pages) > 35
    wrong = []
    for path, text in pages.items():
        for link in LINK.findall(text):
            parts = urlsplit(link)
            if parts.scheme:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target == site.resolve():
                continue
            anchor = f'id="{parts.fragment}"'
            if not target.is_file() or (parts.fragment and anchor not in target.read_text(encoding="utf-8")):
                wrong.append(f"{path.relative_to(site)}: {link}")
    assert wrong == []


def test_pages_load_nothing_from_other_hosts(site: Path) -> None:
    for path in site.rglob("*.html"):
        loaded = re.findall(r'(?:src|<link[^>]*href)="([^"]*)"', path.read_text(encoding="utf-8"))
        assert [each for each in loaded if "//" in each] == []


def test_every_page_is_in_the_navigation_or_at_the_top(site: Path) -> None:
    home = (site / "index.html").read_text(encoding="utf-8")
    listed = {link for link in LINK.findall(home) if link.endswith(".html")}
    built = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    assert built - listed == {"changelog.html", "contributing.html", "security.html"}


def test_programs_find_each_page_as_markdown(site: Path) -> None:
    listed = re.findall(
        r"^- \[(.+)\]\((.+)\): (.+)$", (site / "llms.txt").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert len(listed) > 30
    for title, path, sentence in listed:
        text = (site / path).read_text(encoding="utf-8")
        assert text.startswith(f"# {title}\n")
        assert sentence
        assert (site / path).with_suffix(".html").is_file()
        for link in re.findall(r"\]\(([^)#:\s]+\.md)", text):
            assert ((site / path).parent / link).resolve() == site or (
                (site / path).parent / link
            ).is_file(), link


def test_the_search_knows_every_heading(site: Path) -> None:
    script = (site / "sections.js").read_text(encoding="utf-8")
    sections = msgspec.json.decode(script.removeprefix("window.docsSections = ").removesuffix(";\n"))
    titles = {(one["page"], one["title"]) for one in sections}
    assert ("Run an agent", "A desk of your own") in titles
    assert all(one["text"] == one["text"].lower() for one in sections)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[a](nowhere)", "docs/README.md: nowhere leads to no page and no file"),
        ("[a](#nothing)", "docs/README.md: #nothing: no such heading"),
        ("![a](none.svg)", "docs/README.md: none.svg is no picture of docs/"),
    ],
)
def test_a_link_that_leads_nowhere_stops_the_build(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "docs" / "site").mkdir(parents=True)
    (tmp_path / "deploy").mkdir()
    (tmp_path / "deploy" / "README.md").write_text("# Kit\n")
    (tmp_path / "docs" / "README.md").write_text(f"# Home\n\n{text}\n")
    with pytest.raises(docs_site.DocsFault) as fault:
        docs_site.build(tmp_path / "out", tmp_path)
    assert str(fault.value) == says


def test_the_pictures_of_flows_are_drawn_from_their_text() -> None:
    folder = ROOT / flow_pictures.FOLDER
    drawn = {
        f"{flow.name}.svg": flow_pictures.picture(flow)
        for flow in flow_pictures.flows((folder / "flows.txt").read_text(encoding="utf-8"))
    }
    assert {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.svg")} == drawn, (
        "make catalogue"
    )
    with pytest.raises(ValueError, match="no flow, message or work: nonsense"):
        list(flow_pictures.flows("nonsense"))
