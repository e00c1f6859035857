"""The list of mutants: each one applies to the contracts, and a broken one is refused."""

import pytest

from mutations.mutants import Mutant, Outcome, Verdict, contract_tests, is_enough, mutants, verdict_of
from support.tracked_files import ROOT

RUN = "1 failed, 8 passed\nFAILED tests/e2e/test_rfq_batch.py::test_a - AssertionError: it\n!!! stopping"


@pytest.mark.parametrize(("name", "count"), [("mutants", 40), ("attacks", 20)])
def test_every_fault_applies_to_its_source_and_names_a_test(name: str, count: int) -> None:
    listed = mutants(name)
    assert len(listed) >= count
    for mutant in listed:
        source = (ROOT / mutant.path).read_text(encoding="utf-8")
        assert mutant.applied(source) != source
        assert mutant.fault
        assert len(mutant.first_tests) == 1, mutant.test
        assert name == "attacks" or mutant.first_tests[0] in contract_tests()
    assert len({(mutant.file, mutant.old, mutant.new) for mutant in listed}) == len(listed)


@pytest.mark.parametrize("source", ["a = 2;", "a = 1; a = 1;"])
def test_an_old_text_occurs_exactly_once(source: str) -> None:
    mutant = Mutant("Rfq.sol", "A fault.", "a = 1", "a = 2", "test_rfq_batch.py")
    assert mutant.applied("a = 1; b = 1;") == "a = 2; b = 1;"
    with pytest.raises(ValueError, match=r"Rfq\.sol.*A fault\."):
        mutant.applied(source)


def test_contract_tests_leave_out_those_that_compare_code() -> None:
    names = {path.name for path in contract_tests()}
    assert {"test_rfq_fill.py", "test_contracts_like_model.py", "test_contract_invariants.py"} <= names
    assert names.isdisjoint({"test_contract_artifacts.py", "test_contract_gas.py", "test_contract_words.py"})


@pytest.mark.parametrize(
    ("code", "output", "verdict"),
    [
        (0, "607 passed", Verdict(Outcome.SURVIVED)),
        (1, RUN, Verdict(Outcome.KILLED, "tests/e2e/test_rfq_batch.py::test_a")),
        (1, RUN.replace("FAILED", "ERROR"), Verdict(Outcome.KILLED, "tests/e2e/test_rfq_batch.py::test_a")),
        (
            2,
            "ERROR tests/unit/test_mutants.py\n!!! Interrupted",
            Verdict(Outcome.KILLED, "tests/unit/test_mutants.py"),
        ),
        (4, "ImportError while loading conftest 'x'.", Verdict(Outcome.KILLED, "tests/conftest.py")),
        (4, "file not found", Verdict(Outcome.BROKEN, "file not found")),
    ],
)
def test_a_failing_test_kills(code: int, output: str, verdict: Verdict) -> None:
    assert verdict_of(code, output) == verdict


def test_a_run_needs_the_percentage_and_no_broken_mutant() -> None:
    killed, survived = Verdict(Outcome.KILLED, "a test"), Verdict(Outcome.SURVIVED)
    assert is_enough([killed] * 38 + [survived] * 2, 95)
    assert not is_enough([killed] * 39 + [survived], 100)
    assert not is_enough([killed] * 37 + [survived] * 3, 95)
    assert not is_enough([killed] * 39 + [Verdict(Outcome.BROKEN, "no test ran")], 95)
    assert not is_enough([killed] * 39 + [Verdict(Outcome.REFUSED, "no compile")], 95)
    assert not is_enough([], 95)
