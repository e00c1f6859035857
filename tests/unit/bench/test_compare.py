"""Budgets: a run over its budget fails, noisy laps do not decide, every row names real benches."""

import re
from pathlib import Path
from typing import Any

import pytest
from bench.compare import BUDGETS, Budget, judge, read_budgets, seconds_by_lap

BUDGET = Budget("ours against theirs", "bench_ours", "bench_theirs", must=1.3, stretch=1.1)


def results(**least: list[float]) -> dict[str, Any]:
    return {
        "benchmarks": [
            {
                "name": f"bench_{name}[{lap}]",
                "params": {"lap": lap},
                "stats": {"min": seconds, "iterations": 30},
                "extra_info": {},
            }
            for name, laps in least.items()
            for lap, seconds in enumerate(laps)
        ]
    }


@pytest.mark.parametrize(
    ("ours", "theirs", "ratio", "kept"),
    [
        ([1.2, 1.2, 1.2], [1.0, 1.0, 1.0], 1.2, True),
        ([1.4, 1.4, 1.4], [1.0, 1.0, 1.0], 1.4, False),
        ([9.9, 9.9, 1.2], [1.0, 1.0, 1.0], 1.2, True),
        ([1.4, 9.9, 9.9], [9.9, 9.9, 1.0], 1.4, False),
        ([2.4, 1.2, 3.6], [2.0, 1.0, 3.0], 1.2, True),
    ],
    ids=["within", "over", "one quiet lap", "over, never quiet together", "a machine that changes pace"],
)
def test_the_least_of_each_side_decides(
    ours: list[float], theirs: list[float], ratio: float, kept: bool
) -> None:
    (verdict,) = judge([BUDGET], seconds_by_lap(results(ours=ours, theirs=theirs)))
    assert verdict.ratio == pytest.approx(ratio)
    assert verdict.kept is kept


def test_a_call_of_many_operations_counts_per_operation() -> None:
    measured = results(ours=[1.0], theirs=[20.0])
    measured["benchmarks"][1]["extra_info"]["operations_per_call"] = 20
    assert seconds_by_lap(measured)["bench_theirs"] == {0: 1.0}


def test_a_budget_whose_bench_did_not_run_is_an_error() -> None:
    with pytest.raises(KeyError):
        judge([BUDGET], seconds_by_lap(results(ours=[1.0])))


def test_every_budget_names_benches_that_exist() -> None:
    source = "".join(path.read_text(encoding="utf-8") for path in Path(BUDGETS).parent.glob("bench_*.py"))
    defined = set(re.findall(r"^def (bench_\w+)", source, re.MULTILINE))
    budgets = read_budgets()
    assert {name for budget in budgets for name in (budget.bench, budget.baseline)} <= defined
    assert all(budget.stretch <= budget.must for budget in budgets)
    assert any(budget.quick for budget in budgets)


def test_a_lap_of_few_calls_is_left_out() -> None:
    measured = results(ours=[1.2, 1.2, 1.2], theirs=[1.0, 1.0, 0.1])
    measured["benchmarks"][5]["stats"]["iterations"] = 1
    (verdict,) = judge([BUDGET], seconds_by_lap(measured))
    assert (verdict.ratio, verdict.kept) == (1.2, True)


def test_the_median_lap_tells_how_busy_the_machine_was() -> None:
    (verdict,) = judge([BUDGET], seconds_by_lap(results(ours=[1.2, 2.4, 6.0], theirs=[1.0, 1.0, 1.0])))
    assert (verdict.ratio, verdict.median_lap) == (1.2, 2.4)
