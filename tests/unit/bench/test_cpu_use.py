"""Use of the cores by others while a part of the benchmarks is measured that is recorded."""

import pytest
from bench import run
from bench.cpu_use import WholeUse, foreign_cores, whole_use
from rich.console import Console


def test_what_others_used_is_what_the_system_used_without_us() -> None:
    before = WholeUse(at=10.0, system=500.0, ours=7.0)
    assert foreign_cores(before, WholeUse(at=20.0, system=515.0, ours=19.0)) == pytest.approx(0.3)
    assert foreign_cores(before, WholeUse(at=20.0, system=510.0, ours=19.0)) == 0.0


def test_our_own_work_is_ours() -> None:
    before = whole_use()
    sum(range(3_000_000))
    after = whole_use()
    if before is not None and after is not None:
        assert after.ours > before.ours
        assert after.system >= before.system


def test_a_part_that_is_recorded_is_measured_again_until_nothing_else_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parts = iter(["beside others", "alone"])
    at_and_system = iter([(0.0, 0.0), (10.0, 4.0), (20.0, 4.0), (30.0, 4.0)])
    monkeypatch.setattr(run, "whole_use", lambda: WholeUse(*next(at_and_system), 0.0))
    monkeypatch.setattr(run, "await_quiet", lambda most, patience_s: True)
    assert run._undisturbed(Console(quiet=True), lambda: next(parts)) == "alone"


@pytest.mark.parametrize("is_quiet", [False, True])
def test_beside_other_load_nothing_is_recorded(monkeypatch: pytest.MonkeyPatch, *, is_quiet: bool) -> None:
    times = iter(range(100))
    monkeypatch.setattr(run, "whole_use", lambda: WholeUse(float(at := next(times)), float(at), 0.0))
    monkeypatch.setattr(run, "await_quiet", lambda most, patience_s: is_quiet)
    measured = []
    with pytest.raises(SystemExit, match=r"not recorded: other processes use more than 0\.1 of a core"):
        run._undisturbed(Console(quiet=True), lambda: measured.append(1))
    assert len(measured) == (run.RECORD_TRIES if is_quiet else 0)
