"""`python -m bench.run [--quick] [--record]`: run the benchmarks and judge them against budgets.toml.

The exit status is 1 if a result is over its budget, or if a part was not recorded for other load.

--quick    the operations that CI holds, under a minute
--record   keep the results in bench/record.json, from which bench/figures_page.py makes the page of figures
else       all operations, then the load tests; tables and a plot go to bench/results/report.md

Load tests without a budget run only with --record or `--part others`.

A part is recorded only if other processes used at most RECORD_FOREIGN_MAX of a core while it was measured: it
starts on a quiet machine, and is repeated if the machine was not quiet to its end.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.table import Table

from bench import (
    load_bad_signatures,
    load_book,
    load_catch_up,
    load_engines,
    load_firm_client,
    load_idle,
    load_intake,
    load_listeners,
    load_orders,
    load_processes,
    load_quote,
    load_remote,
    load_store,
    load_swaps,
    load_trades,
    load_waiting,
    load_websocket,
    otc_listings,
)
from bench.compare import (
    Budget,
    LoadVerdict,
    Verdict,
    judge,
    judge_loads,
    read_budgets,
    read_load_budgets,
    seconds_by_lap,
)
from bench.cpu_use import await_quiet, foreign_cores, whole_use
from bench.load_children import LoadError
from bench.load_firm import FirmLoad, Plan, Row, metrics
from bench.load_report import (
    TextTable,
    firm_tables,
    latency_lines,
    load_verdicts_table,
    text_table,
    write_report,
)
from bench.peers.postgres import postgres_programs
from bench.record import keep_loads, keep_operations, keep_others

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "bench" / "results" / "latest.json"
PARTS = ("operations", "loads", "others")
JUDGED = PARTS[:2]
T = TypeVar("T")
RECORD_FOREIGN_MAX = 0.1
"""Most cores that other processes may use, on average, while a part is measured that is recorded."""
RECORD_PATIENCE_S, RECORD_TRIES = 60.0, 3
QUICK_LAPS = 60  # of the gate: many and short, so that some are undisturbed however busy the machine is

LOADS = {
    "Outbound firm client": load_firm_client,
    "GET /v2/quote": load_quote,
    "WebSocket to book": load_websocket,
    "Durable orders": load_store,
    "Order intake": load_intake,
    "Whole swaps": load_swaps,
    "Orders that wait": load_waiting,
    "A node far away": load_remote,
    "Blocks of a node far away": load_catch_up,
    "Trades behind nodes far away": load_trades,
    "Many listeners": load_listeners,
    "Several processes": load_processes,
    "Nobody trades": load_idle,
}
BOOKS = "Books"

LONG = (
    "--benchmark-max-time=0.5",
    "--benchmark-min-rounds=20",
    "--benchmark-min-time=0.001",
    "--benchmark-warmup=on",
    "--benchmark-warmup-iterations=200",
)
"""Options of pytest-benchmark for full runs: half a second for each benchmark in a lap.

A slice of 1 ms has many inputs: the least of slices with one input each would be the time of the cheapest
input.
"""
SHORT = ("--benchmark-max-time=0.004", "--benchmark-min-rounds=4", "--benchmark-min-time=0.001")
"""Options of pytest-benchmark for --quick: four slices of 1 ms for each benchmark in a lap.

A slice is shorter than another process's time slice.
"""


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--quick", action="store_true", help="only the budgets that CI holds")
    arguments.add_argument("--part", choices=PARTS, help="only one part of a run with --record")
    arguments.add_argument("--laps", type=int, default=3, help="times over the operations (default 3)")
    arguments.add_argument("--rounds", type=int, default=3, help="times over the whole paths (default 3)")
    arguments.add_argument("--seconds", type=float, default=5.0, help="of a closed loop; an open one: thrice")
    arguments.add_argument("--record", action="store_true", help="keep the results in bench/record.json")
    chosen = arguments.parse_args()
    if chosen.quick and chosen.record:
        arguments.error("--record: a quick run has too few operations")
    whole = PARTS if chosen.record else JUDGED
    parts = ("operations",) if chosen.quick else (chosen.part,) if chosen.part else whole
    console = Console()
    operations: list[Verdict] = []
    loads: list[LoadVerdict] = []
    undisturbed = partial(_undisturbed, console) if chosen.record else _once
    if "operations" in parts:
        seconds, operations = undisturbed(
            lambda: run_operations(console, quick=chosen.quick, laps=chosen.laps)
        )
        if chosen.record:
            keep_operations(seconds)
    if "loads" in parts:
        try:
            plan = Plan(chosen.rounds, chosen.seconds, 3 * chosen.seconds)
            rows, loads, tables = undisturbed(lambda: run_loads(console, plan))
        except LoadError as error:
            sys.exit(str(error))
        if chosen.record:
            keep_loads(loads, latency_lines(rows), tables)
        console.print(f"written: {write_report(RESULTS.parent, rows, loads, operations).relative_to(ROOT)}")
    if "others" in parts:
        others = undisturbed(lambda: run_others(console, chosen.rounds))
        if chosen.record:
            keep_others(others)
    over = [
        f"{verdict.budget.what}: {verdict.ratio:.3f} > {verdict.budget.must}"
        for verdict in operations
        if not verdict.kept
    ]
    over += [
        f"{verdict.budget.what}: {verdict.ratio:.3f}, must {verdict.budget.must}"
        f"{', measured beside something else: measure again' if verdict.rounds.noisy else ''}"
        for verdict in loads
        if not verdict.kept
    ]
    for text in over:
        console.print(f"[red]not kept[/red] {text}")
    return 1 if over else 0


def _once(run: Callable[[], T]) -> T:
    return run()


def _undisturbed(console: Console, run: Callable[[], T]) -> T:
    """Run a part that is to be recorded, on a quiet machine; a part beside other load runs again.

    The process exits if the machine does not become quiet, or does not stay so.
    """
    for _ in range(RECORD_TRIES):
        if not await_quiet(RECORD_FOREIGN_MAX, RECORD_PATIENCE_S):
            break
        before = whole_use()
        found = run()
        after = whole_use()
        if before is None or after is None:
            return found
        foreign = foreign_cores(before, after)
        if foreign <= RECORD_FOREIGN_MAX:
            return found
        console.print(f"measured beside other load, {foreign:.2f} of a core: once more")
    sys.exit(f"not recorded: other processes use more than {RECORD_FOREIGN_MAX} of a core")


def run_operations(
    console: Console, *, quick: bool, laps: int
) -> tuple[dict[str, dict[int, float]], list[Verdict]]:
    """Measure the operations that have budgets, and judge their times; return times and verdicts."""
    budgets = [budget for budget in read_budgets() if budget.quick or not quick]
    seconds = measure(budgets, QUICK_LAPS, SHORT) if quick else measure([], laps, LONG)
    verdicts = judge(budgets, seconds)
    console.print(operations_table(seconds))
    console.print(verdicts_table(verdicts))
    return seconds, verdicts


def run_loads(console: Console, plan: Plan) -> tuple[list[Row], list[LoadVerdict], dict[str, TextTable]]:
    """Run the load tests, and judge their results by the budgets.

    Returns:
        The results of POST /firm, the verdicts, and the tables of all load tests by title.

    Raises:
        LoadError: a load test cannot be measured.
    """
    rows = FirmLoad(plan, lambda text: console.print(text, highlight=False)).run()
    found, tables = metrics(rows), firm_tables(rows)
    budgets = read_load_budgets()
    parts = [*LOADS.items(), *([(BOOKS, load_book)] if load_book.has_nautilus() else [])]
    for title, part in parts:
        measured = part.run(plan.rounds)
        table = part.table(measured)
        console.print(table)
        tables[title] = text_table(table)
        found |= part.metrics(measured)
    if not load_book.has_nautilus():
        console.print("NautilusTrader is not installed (make setup-nautilus): its rows are left out")
        budgets = [budget for budget in budgets if budget.metric not in load_book.METRICS]
    if not postgres_programs():
        console.print("PostgreSQL is not installed: its rows are left out")
        budgets = [budget for budget in budgets if budget.metric not in load_store.OF_POSTGRES]
    verdicts = judge_loads(budgets, found)
    console.print(load_verdicts_table(verdicts))
    return rows, verdicts, tables


def run_others(console: Console, rounds: int) -> dict[str, TextTable]:
    """Run the load tests without a budget, print their tables, and return them by title."""
    tables = load_swaps.tables() | load_orders.tables(load_orders.COUNT)
    tables["Wrong signatures"] = load_bad_signatures.table(load_bad_signatures.run(rounds))
    if postgres_programs():
        tables[f"Several engines, {load_engines.SALES} sales"] = load_engines.table()
    tables["Listings of OTC orders, CPU time"] = otc_listings.table()
    for title, table in tables.items():
        console.print(title, table, "", sep="\n")
    return {title: text_table(table) for title, table in tables.items()}


def measure(budgets: list[Budget], laps: int, slices: Sequence[str]) -> dict[str, dict[int, float]]:
    """Run the benchmarks of `budgets` `laps` times; return their times as `seconds_by_lap` does."""
    RESULTS.parent.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "bench", "-o", "python_files=bench_*.py"]
    command += ["-o", "python_functions=bench_*", "--benchmark-enable", "--benchmark-disable-gc"]
    command += ["--benchmark-quiet", f"--benchmark-json={RESULTS}", *slices]
    names = {name for budget in budgets for name in (budget.bench, budget.baseline)}
    if names:
        command += ["-k", " or ".join(f"{name}[" for name in sorted(names))]
    environment = {**os.environ, "CAMBIST_BENCH_LAPS": str(laps)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    return seconds_by_lap(json.loads(RESULTS.read_text(encoding="utf-8")))


def operations_table(seconds: dict[str, dict[int, float]]) -> Table:
    table = Table("operation", "microseconds (least)", box=None)
    for name, laps in sorted(seconds.items()):
        table.add_row(name.removeprefix("bench_").replace("_", " "), f"{min(laps.values()) * 1e6:.2f}")
    return table


def verdicts_table(verdicts: list[Verdict]) -> Table:
    table = Table(
        "ratio to the baseline of the same run", "measured", "median lap", "must", "stretch", box=None
    )
    for verdict in verdicts:
        budget = verdict.budget
        colour = "green" if verdict.ratio <= budget.stretch else "yellow" if verdict.kept else "red"
        table.add_row(
            budget.what,
            f"[{colour}]{verdict.ratio:.3f}[/{colour}]",
            f"{verdict.median_lap:.3f}",
            f"<= {budget.must}",
            f"{budget.stretch}",
        )
    return table


if __name__ == "__main__":
    sys.exit(main())
