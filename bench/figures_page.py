"""Generator of docs/explanation/figures.md and its plots, from bench/record.json and bench/budgets.toml.

`python -m bench.figures_page` writes them anew; a test fails while a committed file differs.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

from msgspec import Struct

from bench.compare import Budget, LoadBudget, Rounds, read_budgets, read_load_budgets
from bench.load_report import TextTable, latency_plot, markdown
from bench.record import BenchRecord, Machine, RecordedLoads, RecordedOperations, middle, read_record

ROOT = Path(__file__).parents[1]
PAGE = "docs/explanation/figures.md"
OPERATIONS_PLOT = "docs/pictures/plots/operations.svg"
LOADS_PLOT = "docs/pictures/plots/whole-paths.svg"
LATENCY_PLOT = "docs/pictures/plots/latency.svg"

_HEAD = """# Measured figures

`make bench-report` measures, keeps the results in bench/record.json, and writes this page and its plots.
[Performance](performance.md) describes the benches, and explains their figures.

The ratio to a baseline of the same run counts: absolute figures move from machine to machine. A ratio
beyond `must` fails `make bench`, and stands in bold type here. A shared machine changes its speed by up to a
half between two measurements: the rounds show by how much a ratio moves.
"""
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#1b1f24}.title{font-size:15px;font-weight:600}"
    ".rule{stroke:#d5dae0}.bar{fill:#0550ae}.over{fill:#b3261e}.must{stroke:#1b1f24;stroke-width:2}"
    "@media(prefers-color-scheme:dark){text{fill:#e6e9ed}.rule{stroke:#3a4149}.bar{fill:#79b8ff}"
    ".over{fill:#ff8a80}.must{stroke:#e6e9ed}}"
)
_LABELS, _ROW, _TOP, _CHARS = 440, 20, 58, 66
_WIDTH, _RIGHT = 860, 70
_HALVINGS = 4  # to the left of `must`: a sixteenth of it


class PlotRow(Struct, frozen=True):
    """A row of a plot of budgets.

    Attributes:
        share: share of the budget that the result uses; 1 is just `must`, more is over it.
        figure: the measured ratio as text.
    """

    title: str
    share: float
    figure: str


def files(record: BenchRecord, budgets: Sequence[Budget], loads: Sequence[LoadBudget]) -> dict[str, str]:
    """Make the page and its plots: path in the repository -> text. Parts without a record are left out."""
    parts, made = [_HEAD], dict[str, str]()
    if record.operations is not None:
        parts += _operations(record.operations, budgets)
        made[OPERATIONS_PLOT] = plot(
            "Operations: share of the largest allowed ratio", _shares(record.operations, budgets)
        )
    if record.loads is not None:
        parts += _loads(record.loads, loads)
        rows = [
            PlotRow(budget.what, _share(budget, rounds), _figure(middle(rounds)))
            for budget, rounds in _measured(record.loads, loads)
        ]
        made[LOADS_PLOT] = plot("Whole paths: share of the budget", rows)
        if record.loads.latency:
            parts.append(f"![Latency of POST /firm by percentile]({_link(LATENCY_PLOT)})\n")
            made[LATENCY_PLOT] = latency_plot(record.loads.latency)
        parts += _tables(record.loads.tables)
    if record.others is not None:
        parts += ["## Paths without a budget\n", f"{_about(record.others.machine)}\n"]
        parts += _tables(record.others.tables)
    return {PAGE: "\n".join(parts), **made}


def _operations(part: RecordedOperations, budgets: Sequence[Budget]) -> Iterator[str]:
    yield "## Operations\n"
    yield f"{_about(part.machine)} Each time is the least of all laps.\n"
    yield f"![Share of each operation's budget]({_link(OPERATIONS_PLOT)})\n"
    header = ("operation, against its baseline", "us", "baseline, us", "ratio", "must", "in CI")
    seconds = part.seconds
    yield markdown(
        header,
        [
            (
                budget.what,
                _figure(1e6 * seconds[budget.bench]),
                _figure(1e6 * seconds[budget.baseline]),
                _judged(ratio, ratio / budget.must),
                f"{budget.must:g}",
                "yes" if budget.quick else "",
            )
            for budget, ratio in _ratios(part, budgets)
        ],
    )


def _loads(part: RecordedLoads, budgets: Sequence[LoadBudget]) -> Iterator[str]:
    yield "## Whole paths\n"
    yield f"{_about(part.machine)} Each figure is the median of its rounds.\n"
    yield f"![Share of each budget of a whole path]({_link(LOADS_PLOT)})\n"
    yield markdown(
        ("path", "measured", "rounds", "must"),
        [
            (
                budget.what,
                _judged(middle(rounds), _share(budget, rounds))
                + (" (beside other work)" if rounds.noisy else ""),
                ", ".join(map(_figure, rounds.values)),
                f"{'>=' if budget.at_least else '<='} {budget.must:g}",
            )
            for budget, rounds in _measured(part, budgets)
        ],
    )


def _tables(tables: Mapping[str, TextTable]) -> Iterator[str]:
    for title, table in tables.items():
        yield f"### {title}\n"
        yield markdown(table.header, table.rows)


def _measured(part: RecordedLoads, budgets: Sequence[LoadBudget]) -> list[tuple[LoadBudget, Rounds]]:
    return [(budget, part.rounds[budget.metric]) for budget in budgets if budget.metric in part.rounds]


def _ratios(part: RecordedOperations, budgets: Sequence[Budget]) -> list[tuple[Budget, float]]:
    seconds = part.seconds
    return [
        (budget, seconds[budget.bench] / seconds[budget.baseline])
        for budget in budgets
        if {budget.bench, budget.baseline} <= seconds.keys()
    ]


def _shares(part: RecordedOperations, budgets: Sequence[Budget]) -> list[PlotRow]:
    return [
        PlotRow(budget.what, ratio / budget.must, _figure(ratio)) for budget, ratio in _ratios(part, budgets)
    ]


def _share(budget: LoadBudget, rounds: Rounds) -> float:
    return budget.must / middle(rounds) if budget.at_least else middle(rounds) / budget.must


def _about(machine: Machine) -> str:
    return f"{machine.processor}, {machine.cores} cores, Python {machine.python}."


def _judged(value: float, share: float) -> str:
    """A figure as text; in bold type if it uses more than the whole of its budget."""
    return _figure(value) if share <= 1 else f"**{_figure(value)}**"


def _figure(value: float) -> str:
    """Three digits, and no exponent."""
    if value >= 100:
        return f"{value:,.0f}"
    digits = 2 - math.floor(math.log10(value)) if value > 0 else 2
    return f"{value:.{max(digits, 0)}f}"


def _link(path: str) -> str:
    return f"../{path.removeprefix('docs/')}"


# --- The plot -----------------------------------------------------------------------------------------


def plot(title: str, rows: Sequence[PlotRow]) -> str:
    """Draw results as bars up to the share of their budget that they use, each doubling equally wide."""
    height = _TOP + _ROW * len(rows) + 12
    size = f'viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{escape(title)}">',
        f"<style>{_STYLE}</style>",
        f'<text class="title" x="12" y="22">{escape(title)}</text>',
    ]
    for power in range(-_HALVINGS, 2):
        x, name = _across(2.0**power), f"1/{2**-power}" if power < 0 else f"{2**power}"
        kind = "must" if power == 0 else "rule"
        parts.append(f'<line class="{kind}" x1="{x:.1f}" y1="{_TOP - 8}" x2="{x:.1f}" y2="{height - 8}"/>')
        parts.append(f'<text x="{x:.1f}" y="{_TOP - 14}" text-anchor="middle">{name}</text>')
    for at, row in enumerate(rows):
        y, end = _TOP + _ROW * at, _across(row.share)
        label = row.title if len(row.title) <= _CHARS else f"{row.title[: _CHARS - 1].rstrip()}…"
        parts.append(f'<text x="{_LABELS - 8}" y="{y + 12}" text-anchor="end">{escape(label)}</text>')
        colour = "bar" if row.share <= 1 else "over"
        parts.append(
            f'<rect class="{colour}" x="{_LABELS}" y="{y + 3}" width="{end - _LABELS:.1f}" height="11">'
            f"<title>{escape(row.title)}</title></rect>"
        )
        parts.append(f'<text x="{_WIDTH - 8}" y="{y + 12}" text-anchor="end">{row.figure}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _across(share: float) -> float:
    """The place of a share: from a sixteenth of a budget to twice; shares beyond stand at the ends."""
    part = (math.log2(max(share, 2.0 ** -(_HALVINGS + 0.9))) + _HALVINGS + 1) / (_HALVINGS + 2)
    return _LABELS + (_WIDTH - _RIGHT - _LABELS) * min(part, 1.0)


def write(root: Path = ROOT) -> None:
    """Write the page and its plots anew."""
    for path, text in files(read_record(), read_budgets(), read_load_budgets()).items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
