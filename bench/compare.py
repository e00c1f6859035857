"""Judges a run of the benchmarks: ratio of each operation's time to its baseline's, against budgets.toml.

Bench and baseline run in turn, lap by lap, and the least time of each counts: another process that runs
beside them slows some laps only. The median of the laps' own ratios shows how busy the machine was.
"""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

BUDGETS = Path(__file__).with_name("budgets.toml")


class Budget(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A row of budgets.toml about an operation: limits on its time divided by its baseline's time.

    Attributes:
        what: text for the report.
        bench, baseline: names of the two benchmarks.
        must: limit of the ratio; a higher ratio fails the run.
        stretch: aim for the ratio.
        quick: whether a quick run includes the operation.
    """

    what: str
    bench: str
    baseline: str
    must: float
    stretch: float
    quick: bool = False


class LoadBudget(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A row of budgets.toml about a load test, such as POST /firm over loopback: limits on its metric.

    Attributes:
        metric: name of the measured quantity in the load test.
        must, stretch: limit of the metric, which must be kept, and aim for it.
        at_least: whether the limits are minima, i.e. greater is better.
    """

    what: str
    metric: str
    must: float
    stretch: float
    at_least: bool = False

    def keeps(self, ratio: float, bound: float) -> bool:
        """Whether a measured ratio keeps a limit: a minimum if `at_least`, else a maximum."""
        return ratio >= bound if self.at_least else ratio <= bound


class Verdict(msgspec.Struct, frozen=True):
    """A budget of an operation and the measured ratios of its time to its baseline's time.

    Attributes:
        ratio: the ratio of the least times over all laps.
        median_lap: the median over laps of the ratio of the least times within the lap.
    """

    budget: Budget
    ratio: float
    median_lap: float

    @property
    def kept(self) -> bool:
        return self.ratio <= self.budget.must


class Rounds(msgspec.Struct, frozen=True):
    """A metric of a load test, with a value for each round.

    Attributes:
        values: the metric of each round that counts.
        noisy: whether other processes ran beside every round; `values` then has all rounds, and none is
            reliable.
    """

    values: tuple[float, ...]
    noisy: bool = False


class LoadVerdict(msgspec.Struct, frozen=True):
    """A budget of a load test, and the measured values of its metric."""

    budget: LoadBudget
    rounds: Rounds

    @property
    def ratio(self) -> float:
        """Median of the metric over the rounds of the load test."""
        return median(self.rounds.values)

    @property
    def kept(self) -> bool:
        """Whether the median of the metric is within the budget; False if all rounds were disturbed."""
        return not self.rounds.noisy and self.budget.keeps(self.ratio, self.budget.must)

    @property
    def stretched(self) -> bool:
        """Whether the median of the metric also reaches the budget's aim."""
        return self.budget.keeps(self.ratio, self.budget.stretch)


def read_budgets(path: Path = BUDGETS) -> list[Budget]:
    """Read the rows of budgets.toml about operations."""
    return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8"))["budget"], list[Budget])


def read_load_budgets(path: Path = BUDGETS) -> list[LoadBudget]:
    """Read the rows of budgets.toml about load tests."""
    return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8"))["load"], list[LoadBudget])


def seconds_by_lap(results: Mapping[str, Any]) -> dict[str, dict[int, float]]:
    """Read benchmark times from pytest-benchmark's JSON: bench name -> lap -> least seconds of one operation.

    A lap whose slices have less than half of the usual number of calls is skipped: another process disturbed
    the choice of this number, and so few calls may all be fast ones.
    """
    laps: dict[str, dict[int, tuple[int, float]]] = {}
    for bench in results["benchmarks"]:
        operations = bench["extra_info"].get("operations_per_call", 1)
        name, stats = bench["name"].partition("[")[0], bench["stats"]
        found = stats["iterations"], stats["min"] / operations
        laps.setdefault(name, {})[bench["params"]["lap"]] = found
    return {name: _undisturbed(found) for name, found in laps.items()}


def _undisturbed(laps: Mapping[int, tuple[int, float]]) -> dict[int, float]:
    usual = median(calls for calls, _ in laps.values())
    return {lap: seconds for lap, (calls, seconds) in laps.items() if 2 * calls >= usual}


def judge(budgets: Sequence[Budget], seconds: Mapping[str, Mapping[int, float]]) -> list[Verdict]:
    """Compare measured times with the budgets of operations; return a verdict for each budget.

    Args:
        seconds: bench name -> lap -> least seconds of one operation.

    Raises:
        KeyError: a budgeted bench or its baseline did not run.
    """
    verdicts = []
    for budget in budgets:
        ours, theirs = seconds[budget.bench], seconds[budget.baseline]
        ratio = min(ours.values()) / min(theirs.values())
        verdicts.append(
            Verdict(budget, ratio, median(ours[lap] / theirs[lap] for lap in ours.keys() & theirs.keys()))
        )
    return verdicts


def judge_loads(budgets: Sequence[LoadBudget], measured: Mapping[str, Rounds]) -> list[LoadVerdict]:
    """Compare the metrics of load tests with their budgets; return a verdict for each budget.

    Args:
        measured: name of the metric -> its values by round.

    Raises:
        KeyError: a budgeted metric was not measured.
    """
    return [LoadVerdict(budget, measured[budget.metric]) for budget in budgets]
