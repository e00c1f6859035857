"""`python -m bench.run [--quick]`: measure, then judge against budgets.toml. Exit status 1 over budget."""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from bench.compare import Budget, Verdict, judge, read_budgets, seconds_by_lap

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "bench" / "results" / "latest.json"


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--quick", action="store_true", help="only the budgets that CI holds")
    arguments.add_argument("--laps", type=int, default=3, help="times over the whole suite (default 3)")
    chosen = arguments.parse_args()
    budgets = [budget for budget in read_budgets() if budget.quick or not chosen.quick]
    measure(budgets if chosen.quick else [], chosen.laps, seconds_each=0.15 if chosen.quick else 0.5)
    seconds = seconds_by_lap(json.loads(RESULTS.read_text(encoding="utf-8")))
    verdicts = judge(budgets, seconds)
    console = Console()
    console.print(operations_table(seconds))
    console.print(verdicts_table(verdicts))
    over = [verdict for verdict in verdicts if not verdict.kept]
    for verdict in over:
        console.print(
            f"[red]over budget[/red] {verdict.budget.what}: {verdict.ratio:.3f} > {verdict.budget.must}"
        )
    return 1 if over else 0


def measure(budgets: list[Budget], laps: int, *, seconds_each: float) -> None:
    """Run the suite, or the benches of `budgets` alone, `laps` times over, into RESULTS."""
    RESULTS.parent.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "bench", "-o", "python_files=bench_*.py"]
    command += ["-o", "python_functions=bench_*", "--benchmark-enable", "--benchmark-disable-gc"]
    command += ["--benchmark-quiet", f"--benchmark-max-time={seconds_each}", "--benchmark-min-rounds=20"]
    command += ["--benchmark-warmup=on", "--benchmark-warmup-iterations=200", f"--benchmark-json={RESULTS}"]
    names = {name for budget in budgets for name in (budget.bench, budget.baseline)}
    if names:
        command += ["-k", " or ".join(f"{name}[" for name in sorted(names))]
    environment = {**os.environ, "CAMBIST_BENCH_LAPS": str(laps)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)


def operations_table(seconds: dict[str, dict[int, float]]) -> Table:
    table = Table("operation", "microseconds (median of laps)", box=None)
    for name, laps in sorted(seconds.items()):
        table.add_row(name.removeprefix("bench_").replace("_", " "), f"{median(laps.values()) * 1e6:.2f}")
    return table


def verdicts_table(verdicts: list[Verdict]) -> Table:
    table = Table("ratio to the baseline of the same run", "measured", "laps", "must", "stretch", box=None)
    for verdict in verdicts:
        budget = verdict.budget
        colour = "green" if verdict.ratio <= budget.stretch else "yellow" if verdict.kept else "red"
        table.add_row(
            budget.what,
            f"[{colour}]{verdict.ratio:.3f}[/{colour}]",
            " ".join(f"{lap:.3f}" for lap in verdict.laps),
            f"<= {budget.must}",
            f"{budget.stretch}",
        )
    return table


if __name__ == "__main__":
    sys.exit(main())
