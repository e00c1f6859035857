"""Figures that the README names are those of the record of the benchmarks."""

from statistics import median

from bench.compare import read_budgets
from bench.record import read_record

from support.tracked_files import ROOT

WORDS_MAX = 600
HANDLER = "firm quote, the whole handler without HTTP, against the C signature alone"
FIRM_TABLE, OURS = "POST /firm, closed loop of 64 connections", "ours: trio, one reactor task"


def test_the_figures_of_the_readme_are_in_the_record() -> None:
    record = read_record()
    assert record.operations is not None
    assert record.loads is not None
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    budget = next(budget for budget in read_budgets() if budget.what == HANDLER)
    seconds = record.operations.seconds
    assert (
        f"{seconds[budget.bench] / seconds[budget.baseline]:.1f} times the cost of the bare C signature"
        in text
    )
    ours, theirs = seconds["bench_order_hash_and_sign"], seconds["bench_order_hash_and_sign_eth_account"]
    assert f"{100 * ours / theirs:.0f} % of eth-account's time" in text
    (rate,) = (row[1] for row in record.loads.tables[FIRM_TABLE].rows if row[0] == OURS)
    assert f"{int(rate.replace(',', '')) // 1_000},000 a second on one core" in text
    uvicorn = median(record.loads.rounds["throughput_uvicorn"].values)
    assert f"{uvicorn:.1f} times what uvicorn serves" in text


def test_the_readme_fits_on_a_screen() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= WORDS_MAX
