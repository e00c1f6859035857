"""Report of `make bench`: bench/results/report.md with tables, a latency plot and verdicts on budgets.

The plot is written by hand: percentiles to the right, each further nine (90 %, 99 %, 99.9 %) equally wide,
milliseconds upwards on a logarithmic scale.
"""

import math
import os
import platform
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median

from msgspec import Struct
from rich.table import Table
from rich.text import Text

from bench.compare import LoadVerdict, Verdict
from bench.load_children import has_wrk
from bench.load_firm import FOREIGN_MAX, OURS, SHAPES, TASKS, Row, late_at, quiet
from bench.load_firm import rows_of as all_rows_of
from bench.measured import PERCENTILES

PLOT = "latency.svg"
REPORT = "report.md"
_COLOURS = ("#0b6e4f", "#c0392b", "#2c5aa0", "#8e6c00", "#7d3c98")
_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT, _BOTTOM = 860, 460, 70, 30, 20, 50
_NINES_MAX = 5.0  # where the maximum stands
_TICKS = {"50": 0.5, "90": 0.9, "99": 0.99, "99.9": 0.999, "99.99": 0.9999, "max": 1.0}


def rows_of(rows: Sequence[Row], phase: str, server: str = OURS) -> list[Row]:
    """Return the results of one phase and server of the load test of POST /firm that count."""
    return quiet(all_rows_of(rows, phase, server))


class TextTable(Struct, frozen=True):
    """A table of a load test, as texts."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Line(Struct, frozen=True):
    """A line of the latency plot: a server's latencies, milliseconds, at PERCENTILES."""

    title: str
    latency_ms: Sequence[float]


def write_report(
    folder: Path, rows: Sequence[Row], loads: Sequence[LoadVerdict], operations: Sequence[Verdict]
) -> Path:
    """Write the report of the benchmarks and its plot to a folder; return the report's path."""
    folder.mkdir(exist_ok=True)
    lines = latency_lines(rows)
    if lines:
        (folder / PLOT).write_text(latency_plot(lines), encoding="utf-8")
    path = folder / REPORT
    path.write_text(report(rows, loads, operations), encoding="utf-8")
    return path


def report(rows: Sequence[Row], loads: Sequence[LoadVerdict], operations: Sequence[Verdict]) -> str:
    """Make the text of the report of the benchmarks, in Markdown."""
    about = (
        f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores. Ratios are of "
        "one run; absolute figures move from machine to machine. Figures are medians of quiet rounds.\n"
    )
    parts = ["# Benches\n", about]
    if operations:
        parts += ["## Operations\n", operation_verdicts(operations)]
    if loads:
        parts += ["## Whole paths: verdicts\n", load_verdicts(loads)]
    if rows:
        for title, table in firm_tables(rows).items():
            parts += [f"## {title}\n", markdown(table.header, table.rows)]
        parts += [_witness(), f"![latency by percentile]({PLOT})\n", "## Noise\n", noise(rows)]
    return "\n".join(parts)


# --- Tables -------------------------------------------------------------------------------------------


def markdown(header: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    """Format a header and rows of texts as a Markdown table."""
    rows = ["| " + " | ".join(cells) + " |" for cells in (header, ["---"] * len(header), *body)]
    return "\n".join(rows) + "\n"


def text_table(table: Table) -> TextTable:
    """Copy the texts of a terminal table, without its colours."""
    columns = [[Text.from_markup(str(cell)).plain for cell in column.cells] for column in table.columns]
    return TextTable(
        tuple([str(column.header) for column in table.columns]), tuple(zip(*columns, strict=True))
    )


def operation_verdicts(verdicts: Iterable[Verdict]) -> str:
    header = ("ratio to the baseline of the same run", "measured", "must", "stretch", "")
    return markdown(
        header,
        [
            (
                verdict.budget.what,
                f"{verdict.ratio:.3f}",
                f"<= {verdict.budget.must}",
                f"{verdict.budget.stretch}",
                "kept" if verdict.kept else "**over budget**",
            )
            for verdict in verdicts
        ],
    )


def load_verdicts(verdicts: Iterable[LoadVerdict]) -> str:
    header = ("what", "measured", "rounds", "must", "stretch", "")
    return markdown(header, [(*_verdict_cells(verdict), _word(verdict)) for verdict in verdicts])


def _word(verdict: LoadVerdict) -> str:
    if verdict.kept:
        return "kept"
    return "**noisy: measure again**" if verdict.rounds.noisy else "**over budget**"


def load_verdicts_table(verdicts: Iterable[LoadVerdict]) -> Table:
    """Make a terminal table of the verdicts on the budgets of load tests."""
    table = Table("whole path", "measured", "rounds", "must", "stretch", box=None)
    for verdict in verdicts:
        what, measured, *others = _verdict_cells(verdict)
        colour = "green" if verdict.stretched else "yellow" if verdict.kept else "red"
        table.add_row(what, f"[{colour}]{measured}[/{colour}]", *others)
    return table


def _verdict_cells(verdict: LoadVerdict) -> tuple[str, str, str, str, str]:
    budget = verdict.budget
    return (
        budget.what,
        f"{verdict.ratio:.3f}",
        " ".join(f"{value:.2f}" for value in verdict.rounds.values)
        + (" noisy" if verdict.rounds.noisy else ""),
        f"{'>=' if budget.at_least else '<='} {budget.must}",
        f"{budget.stretch}",
    )


def firm_tables(rows: Sequence[Row]) -> dict[str, TextTable]:
    """Make the tables of the load test of POST /firm, by title."""
    return {
        "POST /firm, closed loop of 64 connections": throughput(rows),
        "POST /firm, open loop": latency(rows),
        "POST /firm beside other work of the process": disturbed(rows),
    }


def throughput(rows: Sequence[Row]) -> TextTable:
    """Make the table of requests per second and CPU per request of each server.

    Cambist's rate is shown as a ratio to each other server's.
    """
    body: list[tuple[str, ...]] = []
    ours = [row.measured.rate for row in rows_of(rows, "throughput")]
    for phase, server, title in [
        *(("throughput", server, shape.title) for server, shape in SHAPES.items()),
        ("access log on", OURS, "ours, access log on"),
        (TASKS, OURS, f"ours: trio, {TASKS}"),
    ]:
        found = rows_of(rows, phase, server)
        if not found:
            continue
        rate = median(row.measured.rate for row in found)
        body.append(
            (
                title,
                f"{rate:,.0f}",
                f"{median(ours) / rate:.2f}" if ours else "",
                f"{_median(row.measured.at(0.5) for row in found):.2f}",
                f"{_median(row.measured.at(0.99) for row in found):.2f}",
                _cpu(found),
                _wrk(found),
            )
        )
    header = ("server", "requests/s", "ours to it", "p50 ms", "p99 ms", "CPU us each", "wrk: requests/s")
    return TextTable(header, tuple(body))


def latency(rows: Sequence[Row]) -> TextTable:
    """Make the table of latencies at a fixed rate, from each request's due time."""
    body = [
        (shape.title, f"{found[0].rate:,.0f}", *_percentile_cells(found))
        for server, shape in SHAPES.items()
        if (found := rows_of(rows, "latency", server))
    ]
    return TextTable(("server", "rate/s", "p50 ms", "p99 ms", "p99.9 ms", "max ms"), tuple(body))


def disturbed(rows: Sequence[Row]) -> TextTable:
    """Make the table of cambist's server with 500 pairs, and of waits of tasks in a flood.

    The server is shown both quiet and with all prices replaced every half second.
    """
    titles = {
        "quiet": "500 pairs, prices at rest",
        "snapshots": "500 pairs, all applied anew every 0.5 s",
        "flood": "64 clients pipeline",
    }
    body: list[tuple[str, ...]] = []
    for phase, title in titles.items():
        found = rows_of(rows, phase)
        if found:
            body.append(
                (
                    title,
                    f"{_median(row.measured.rate for row in found):,.0f}",
                    *_percentile_cells(found),
                    f"{_median(late_at(row, 0.999) for row in found):.2f}",
                    f"{max(late_at(row, 1.0) for row in found):.2f}",
                    _snapshot(found),
                )
            )
    header = (
        "ours", "requests/s", "p50 ms", "p99 ms", "p99.9 ms", "max ms", "other task late: p99.9 ms", "max ms",
        "a snapshot takes, ms",
    )  # fmt: skip
    return TextTable(header, tuple(body))


def noise(rows: Sequence[Row]) -> str:
    """Make the report's section on CPU use by other processes during the measurements."""
    known = [row.measured.foreign_core for row in rows if row.measured.foreign_core is not None]
    if not known:
        return "This platform does not tell what else ran.\n"
    noisy = [f"{row.phase} {row.round + 1} {row.server}" for row in rows if row.noisy]
    again = sum(row.tries - 1 for row in rows)
    text = (
        f"Foreign CPU use: median {median(known):.3f}, most {max(known):.3f} of a core. {again} measurements "
        f"were done again because more than {FOREIGN_MAX} was used.\n"
    )
    return text + (f"\nStill noisy: {', '.join(noisy)}.\n" if noisy else "")


def _percentile_cells(rows: Sequence[Row]) -> list[str]:
    return [f"{_median(row.measured.at(share) for row in rows):.2f}" for share in (0.5, 0.99, 0.999, 1.0)]


def _cpu(rows: Sequence[Row]) -> str:
    used = [1e6 * row.measured.server_core / row.measured.rate for row in rows if row.measured.server_core]
    return f"{median(used):.0f}" if used else ""


def _wrk(rows: Sequence[Row]) -> str:
    rates = [row.wrk.rate for row in rows if row.wrk]
    return f"{median(rates):,.0f}" if rates else ""


def _snapshot(rows: Sequence[Row]) -> str:
    taken = [time_ms for row in rows for time_ms in row.snapshot_ms]
    return f"{median(taken):.1f}" if taken else ""


def _median(values: Iterable[float]) -> float:
    return median(values)


def _witness() -> str:
    return "" if has_wrk() else "wrk is not installed here, so there is no second witness.\n"


# --- The plot -----------------------------------------------------------------------------------------


def latency_lines(rows: Sequence[Row]) -> list[Line]:
    """Return the line of each server in the latency plot: medians over rounds of each percentile."""
    lines = []
    for server, shape in SHAPES.items():
        found = rows_of(rows, "latency", server)
        if found:
            title = f"{shape.title}, {found[0].rate:,.0f}/s"
            medians = [_median(row.measured.at(share) for row in found) for share in PERCENTILES]
            lines.append(Line(title, medians))
    return lines


def latency_plot(lines: Sequence[Line]) -> str:
    """Draw the latency plot as SVG: milliseconds by percentile, a line for each server."""
    lowest = min(min(line.latency_ms) for line in lines)
    highest = max(max(line.latency_ms) for line in lines)
    bottom, top = math.floor(math.log10(max(lowest, 1e-3))), math.ceil(math.log10(max(highest, 1e-2)))

    def across(share: float) -> float:
        nines = _NINES_MAX if share >= 1 else -math.log10(1 - share)
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * nines / _NINES_MAX

    def upwards(value: float) -> float:
        part = (math.log10(max(value, 10**bottom)) - bottom) / max(top - bottom, 1)
        return _HEIGHT - _BOTTOM - (_HEIGHT - _BOTTOM - _TOP) * part

    frame = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" '
        f'font-size="12"><rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>'
    )
    title = "POST /firm, open loop: milliseconds from when a request was due"
    parts = [frame, f'<text x="{_LEFT}" y="18">{title}</text>']
    for label, share in _TICKS.items():
        parts.append(_rule(across(share), _TOP, across(share), _HEIGHT - _BOTTOM))
        parts.append(f'<text x="{across(share):.1f}" y="{_HEIGHT - 30}" text-anchor="middle">{label}</text>')
    for power in range(bottom, top + 1):
        height = upwards(10.0**power)
        parts.append(_rule(_LEFT, height, _WIDTH - _RIGHT, height))
        parts.append(f'<text x="{_LEFT - 8}" y="{height + 4:.1f}" text-anchor="end">{10.0**power:g}</text>')
    for at, line in enumerate(lines):
        colour = _COLOURS[at % len(_COLOURS)]
        points = " ".join(
            f"{across(share):.1f},{upwards(value):.1f}"
            for share, value in zip(PERCENTILES, line.latency_ms, strict=True)
        )
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<text x="{_LEFT + 12}" y="{_TOP + 18 + 16 * at}" fill="{colour}">{line.title}</text>')
    parts.append(f'<text x="{_WIDTH / 2}" y="{_HEIGHT - 10}" text-anchor="middle">percentile</text></svg>\n')
    return "\n".join(parts)


def _rule(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#ddd"/>'
