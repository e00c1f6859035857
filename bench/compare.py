"""Judge a run: the ratio of each budgeted bench to its baseline, lap by lap, against budgets.toml."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

BUDGETS = Path(__file__).with_name("budgets.toml")


class Budget(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row of budgets.toml; ratios are bench / baseline, smaller is faster."""

    what: str
    bench: str
    baseline: str
    must: float
    stretch: float
    quick: bool = False


class Verdict(msgspec.Struct, frozen=True):
    """A budget and what was measured."""

    budget: Budget
    ratio: float
    laps: tuple[float, ...]

    @property
    def kept(self) -> bool:
        return self.ratio <= self.budget.must


def read_budgets(path: Path = BUDGETS) -> list[Budget]:
    """The rows of budgets.toml."""
    return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8"))["budget"], list[Budget])


def seconds_by_lap(results: Mapping[str, Any]) -> dict[str, dict[int, float]]:
    """bench name -> lap -> median seconds of one operation, from pytest-benchmark's JSON."""
    seconds: dict[str, dict[int, float]] = {}
    for bench in results["benchmarks"]:
        operations = bench["extra_info"].get("operations_per_call", 1)
        name = bench["name"].partition("[")[0]
        seconds.setdefault(name, {})[bench["params"]["lap"]] = bench["stats"]["median"] / operations
    return seconds


def judge(budgets: Sequence[Budget], seconds: Mapping[str, Mapping[int, float]]) -> list[Verdict]:
    """One verdict per budget: the median over laps of the ratio within each lap.

    Raises:
        KeyError: a budgeted bench or its baseline did not run.
    """
    verdicts = []
    for budget in budgets:
        ours, theirs = seconds[budget.bench], seconds[budget.baseline]
        laps = tuple(ours[lap] / theirs[lap] for lap in sorted(ours))
        verdicts.append(Verdict(budget, median(laps), laps))
    return verdicts
