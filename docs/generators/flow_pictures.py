"""Generator of the pictures of flows in docs/pictures: sequence diagrams as SVG, from the text of flows.txt.

`make catalogue` draws them; a test fails while a committed picture differs from the drawn one. Colours follow
the reader's light or dark scheme.
"""

import re
from collections.abc import Iterator
from html import escape
from pathlib import Path

from msgspec import Struct

FOLDER = "docs/pictures"
_ROOT = Path(__file__).resolve().parents[2]
_FLOW = re.compile(r"^flow ([\w-]+): (.+)$")
_MESSAGE = re.compile(r"^(\w+) -> (\w+): (.+)$")
_WORK = re.compile(r"^(\w+): (.+)$")
_LANE, _STEP, _TOP, _MARGIN, _CHARS = 210, 44, 64, 105, 28
_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#1b1f24}.title{font-size:16px;font-weight:600}"
    ".party{font-weight:600}.lane{stroke:#b4bac2}.arrow{stroke:#0550ae;fill:none;stroke-width:1.5}"
    ".head{fill:#0550ae}.box{fill:#f3f5f8;stroke:#b4bac2}"
    "@media(prefers-color-scheme:dark){text{fill:#e6e9ed}.lane,.box{stroke:#5b636d}.box{fill:#23282f}"
    ".arrow{stroke:#79b8ff}.head{fill:#79b8ff}}"
)


class FlowStep(Struct, frozen=True):
    """A message from one party to another, or work at one party: then both are the same."""

    source: str
    target: str
    text: str


class Flow(Struct, frozen=True):
    """A flow of `flows.txt`."""

    name: str
    title: str
    steps: tuple[FlowStep, ...]


def flows(text: str) -> Iterator[Flow]:
    """Yield the flows of a text.

    Raises:
        ValueError: a line has none of the three forms.
    """
    name, title, steps = "", "", list[FlowStep]()
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        if found := _FLOW.match(line):
            if name:
                yield Flow(name, title, tuple(steps))
            name, title, steps = found[1], found[2], []
        elif found := _MESSAGE.match(line):
            steps.append(FlowStep(found[1], found[2], found[3]))
        elif found := _WORK.match(line):
            steps.append(FlowStep(found[1], found[1], found[2]))
        else:
            raise ValueError(f"no flow, message or work: {line}")
    if name:
        yield Flow(name, title, tuple(steps))


def picture(flow: Flow) -> str:
    """A flow as SVG: a lane for each party, in the order of their first step."""
    parties = list(dict.fromkeys(end for step in flow.steps for end in (step.source, step.target)))
    at = {party: _MARGIN + _LANE * number for number, party in enumerate(parties)}
    rows = [_wrapped(step.text) for step in flow.steps]
    tops, y = [], _TOP + 30
    for lines in rows:
        tops.append(y)
        y += _STEP + 15 * (len(lines) - 1)
    width, height = 2 * _MARGIN + _LANE * (len(parties) - 1), y + 10
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{escape(flow.title)}">',
        f"<style>{_STYLE}</style>",
        f'<text class="title" x="12" y="24">{escape(flow.title)}</text>',
    ]
    for party, x in at.items():
        parts.append(f'<line class="lane" x1="{x}" y1="{_TOP}" x2="{x}" y2="{height - 8}"/>')
        parts.append(
            f'<text class="party" x="{x}" y="{_TOP - 8}" text-anchor="middle">{escape(party)}</text>'
        )
    for step, lines, top in zip(flow.steps, rows, tops, strict=True):
        parts += _step(at[step.source], at[step.target], lines, top)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _step(source: int, target: int, lines: list[str], top: int) -> Iterator[str]:
    middle, bottom = (source + target) // 2, top + 15 * (len(lines) - 1)
    if source == target:
        half, height = _LANE // 2 - 4, 15 * len(lines) + 9
        place = f'x="{source - half}" y="{top - 17}" width="{2 * half}" height="{height}"'
        yield f'<rect class="box" {place} rx="4"/>'
    for number, line in enumerate(lines):
        yield f'<text x="{middle}" y="{top + 15 * number}" text-anchor="middle">{escape(line)}</text>'
    if source != target:
        way = 1 if target > source else -1
        y = bottom + 9
        yield f'<line class="arrow" x1="{source}" y1="{y}" x2="{target - 7 * way}" y2="{y}"/>'
        yield f'<path class="head" d="M{target} {y}l{-9 * way} -4v8z"/>'


def _wrapped(text: str) -> list[str]:
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > _CHARS:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def _write() -> None:
    folder = _ROOT / FOLDER
    for flow in flows((folder / "flows.txt").read_text(encoding="utf-8")):
        (folder / f"{flow.name}.svg").write_text(picture(flow), encoding="utf-8")


if __name__ == "__main__":
    _write()
