"""The list of mutants: each one applies to the contracts, and a broken one is refused."""

import pytest

from mutations.mutants import Mutant, Outcome, Verdict, contract_tests, is_enough, mutants, verdict_of
from support.contracts.contract_compiler import SOURCES

RUN = "1 failed, 8 passed\nFAILED tests/e2e/test_rfq_batch.py::test_a - AssertionError: it\n!!! stopping"


def test_every_mutant_applies_to_the_contracts_and_names_a_test() -> None:
    names = {path.name for path in contract_tests()}
    listed = mutants()
    assert len(listed) >= 40
    for mutant in listed:
        source = (SOURCES / mutant.file).read_text(encoding="utf-8")
        assert mutant.applied(source) != source
        assert mutant.fault
        assert mutant.test in names
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
        (4, "file not found", Verdict(Outcome.BROKEN, "file not found")),
    ],
)
def test_a_failing_test_kills(code: int, output: str, verdict: Verdict) -> None:
    assert verdict_of(code, output) == verdict


def test_a_run_needs_95_percent_and_no_broken_mutant() -> None:
    killed, survived = Verdict(Outcome.KILLED, "a test"), Verdict(Outcome.SURVIVED)
    assert is_enough([killed] * 38 + [survived] * 2)
    assert not is_enough([killed] * 37 + [survived] * 3)
    assert not is_enough([killed] * 39 + [Verdict(Outcome.BROKEN, "no compile")])
    assert not is_enough([])
