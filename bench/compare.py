"""Judge a run: the ratio of each budgeted bench to its baseline, against budgets.toml.

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
    """A row of budgets.toml; ratios are bench / baseline, smaller is faster."""

    what: str
    bench: str
    baseline: str
    must: float
    stretch: float
    quick: bool = False


class LoadBudget(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A row of budgets.toml about a whole path, such as POST /firm over loopback.

    Attributes:
        metric: name of the measured quantity in the path's load bench.
        at_least: the bounds are minima: greater is better.
    """

    what: str
    metric: str
    must: float
    stretch: float
    at_least: bool = False

    def keeps(self, ratio: float, bound: float) -> bool:
        """Whether a ratio meets a bound: a minimum if `at_least`, else a maximum."""
        return ratio >= bound if self.at_least else ratio <= bound


class Verdict(msgspec.Struct, frozen=True):
    """A budget and the measured ratios, bench / baseline.

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
    """A metric of a whole path, round by round.

    Attributes:
        values: the metric of each round that counts.
        noisy: other processes ran beside every round; `values` has all rounds, and none is reliable.
    """

    values: tuple[float, ...]
    noisy: bool = False


class LoadVerdict(msgspec.Struct, frozen=True):
    """A budget of a whole path, and its measured rounds."""

    budget: LoadBudget
    rounds: Rounds

    @property
    def ratio(self) -> float:
        """The median of the rounds."""
        return median(self.rounds.values)

    @property
    def kept(self) -> bool:
        """Whether the ratio is within the budget; False for noisy rounds."""
        return not self.rounds.noisy and self.budget.keeps(self.ratio, self.budget.must)

    @property
    def stretched(self) -> bool:
        """Whether the ratio also meets the stretch goal."""
        return self.budget.keeps(self.ratio, self.budget.stretch)


def read_budgets(path: Path = BUDGETS) -> list[Budget]:
    """The rows of budgets.toml about operations."""
    return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8"))["budget"], list[Budget])


def read_load_budgets(path: Path = BUDGETS) -> list[LoadBudget]:
    """The rows of budgets.toml about whole paths."""
    return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8"))["load"], list[LoadBudget])


def seconds_by_lap(results: Mapping[str, Any]) -> dict[str, dict[int, float]]:
    """bench name -> lap -> least seconds of one operation, from pytest-benchmark's JSON.

    A lap whose slices have less than half of the calls of the usual ones is left out: something disturbed the
    choice of their number, and so few calls may all be cheap ones.
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
    """A verdict per budget.

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
    """A verdict per budget: the median over the rounds that count.

    Raises:
        KeyError: a budgeted metric was not measured.
    """
    return [LoadVerdict(budget, measured[budget.metric]) for budget in budgets]
