"""The page of figures: made from the record and the budgets alone, true to both, its plots as SVG."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from bench import figures_page
from bench.compare import Budget, LoadBudget, LoadVerdict, Rounds, read_budgets, read_load_budgets
from bench.load_report import Line, TextTable, text_table
from bench.measured import PERCENTILES
from bench.record import BenchRecord, keep_loads, keep_operations, keep_others, read_record
from rich.table import Table

ROOT = Path(__file__).parents[3]
SIGNING = Budget("sign, against C", "bench_sign", "bench_c", must=1.3, stretch=1.1, quick=True)
ABSENT = Budget("hash, against C", "bench_hash", "bench_c", must=1.3, stretch=1.1)
ANSWERS = LoadBudget("answers a second", "answers", must=1.5, stretch=2.0, at_least=True)


@pytest.fixture
def record(tmp_path: Path) -> BenchRecord:
    path = tmp_path / "record.json"
    keep_operations({"bench_sign": {0: 40e-6, 1: 36e-6}, "bench_c": {0: 30e-6, 1: 30.004e-6}}, path)
    latency = [Line("ours", [0.1 * (at + 1) for at in range(len(PERCENTILES))])]
    books = TextTable(("strings", "CPU us"), (("trimmed", "21.5"),))
    keep_loads([LoadVerdict(ANSWERS, Rounds((3.0, 1.0, 2.0)))], latency, {"Books": books}, path)
    keep_others({"Whole swaps": TextTable(("swaps", "a second"), (("500", "115"),))}, path)
    return read_record(path)


def test_the_committed_page_and_plots_are_made_from_the_record() -> None:
    made = figures_page.files(read_record(), read_budgets(), read_load_budgets())
    plots = {
        path.relative_to(ROOT).as_posix() for path in (ROOT / figures_page.OPERATIONS_PLOT).parent.iterdir()
    }
    assert {path: (ROOT / path).read_text(encoding="utf-8") for path in made} == made, "make catalogue"
    assert plots == made.keys() - {figures_page.PAGE}


def test_the_page_has_a_row_for_each_measured_budget(record: BenchRecord) -> None:
    page = figures_page.files(record, [SIGNING, ABSENT], [ANSWERS])[figures_page.PAGE]
    assert "| sign, against C | 36.0 | 30.0 | 1.20 | 1.3 | yes |" in page
    assert "| answers a second | 2.00 | 3.00, 1.00, 2.00 | >= 1.5 |" in page
    assert "hash, against C" not in page
    over = LoadBudget("answers a second", "answers", must=2.5, stretch=3.0, at_least=True)
    page = figures_page.files(record, [SIGNING], [over])[figures_page.PAGE]
    assert "| answers a second | **2.00** | 3.00, 1.00, 2.00 | >= 2.5 |" in page
    assert "### Books\n\n| strings | CPU us |\n| --- | --- |\n| trimmed | 21.5 |\n" in page
    assert "| 500 | 115 |" in page.partition("## Paths without a budget")[2]


def test_tables_for_terminals_are_kept_without_their_colours() -> None:
    shown = Table("path", "ratio")
    shown.add_row("answers", "[green]2.00[/green]")
    shown.add_row("quotes", "3.00")
    assert text_table(shown) == TextTable(("path", "ratio"), (("answers", "2.00"), ("quotes", "3.00")))


def test_plots_mark_results_beyond_their_budget(record: BenchRecord) -> None:
    over = Budget("sign, against C", "bench_sign", "bench_c", must=1.1, stretch=1.0)
    for budget, colour in ((SIGNING, "bar"), (over, "over")):
        drawn = figures_page.files(record, [budget], [ANSWERS])[figures_page.OPERATIONS_PLOT]
        bars = [each for each in ET.fromstring(drawn).iter() if each.tag.endswith("rect")]
        assert [each.get("class") for each in bars] == [colour]


def test_a_part_that_no_run_kept_is_left_out(record: BenchRecord, tmp_path: Path) -> None:
    assert figures_page.files(read_record(tmp_path / "none.json"), [SIGNING], [ANSWERS]).keys() == {
        figures_page.PAGE
    }
    assert len(figures_page.files(record, [SIGNING], [ANSWERS])) == 4


def test_a_part_replaces_its_own_part_of_the_record_alone(record: BenchRecord, tmp_path: Path) -> None:
    keep_operations({"bench_sign": {0: 1e-6}}, tmp_path / "record.json")
    after = read_record(tmp_path / "record.json")
    assert (after.loads, after.others) == (record.loads, record.others)
    assert after.operations is not None
    assert after.operations.seconds == {"bench_sign": 1e-6}
