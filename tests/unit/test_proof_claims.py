"""The claims of the proofs: how they are read, what halmos says of them, and the fault that each finds."""

import re
from typing import Any

import pytest

from mutations.mutants import mutants
from proofs.claims import HERE, Claim, Outcome, claims, claims_of, results_of, row
from support.tracked_files import ROOT

SOURCE = """
/// Many words.
contract RfqProofs is Proof {
    function setUp() public {}

    /// An order is filled once,
    /// and no more.
    /// @custom:widths amounts of 16 bits
    /// @custom:bound 60 s
    /// @custom:quick
    function check_Once(uint16 amount) public {
"""


def told(code: int, loops: int = 0, took_s: float = 1.5, name: str = "check_Once(uint16)") -> dict[str, Any]:
    result = {"name": name, "exitcode": code, "num_bounded_loops": loops, "time": [took_s, 1, 0]}
    return {"exitcode": 0, "test_results": {"proofs/Rfq.t.sol:RfqProofs": [result]}}


def test_a_claim_is_read_with_its_contract_and_bounds() -> None:
    text = "An order is filled once, and no more."
    widths = "amounts of 16 bits"
    claim = Claim("check_Once", "RfqProofs", text, widths, 60, is_quick=True, is_of_opened=False)
    assert [*claims_of(SOURCE)] == [claim]
    (claim,) = claims_of(SOURCE.replace("    /// @custom:quick\n", "").replace("widths", "other"))
    assert claim.is_false
    assert not claim.is_quick


@pytest.mark.parametrize(
    "line", ["    /// @custom:bound 60 s\n", "    /// An order is filled once,\n    /// and no more.\n"]
)
def test_a_claim_has_words_and_a_bound(line: str) -> None:
    with pytest.raises(ValueError, match=r"check_Once: expected a claim"):
        list(claims_of(SOURCE.replace(line, "")))


@pytest.mark.parametrize(
    ("json", "outcome"),
    [
        (told(0), Outcome.PROVEN),
        (told(1), Outcome.REFUTED),
        (told(2), Outcome.UNDECIDED),
        (told(3), Outcome.BROKEN),
        (told(4), Outcome.BROKEN),
        (told(5), Outcome.BROKEN),
        (told(0, loops=1), Outcome.BROKEN),
        (told(0, took_s=61), Outcome.UNDECIDED),
        (told(0, name="check_Other(uint16)"), Outcome.BROKEN),
        (None, Outcome.BROKEN),
    ],
)
def test_only_a_run_to_the_end_in_time_proves(json: dict[str, Any] | None, outcome: Outcome) -> None:
    (claim,) = claims_of(SOURCE)
    assert results_of(json, [claim])["check_Once"][0] is outcome


def test_every_check_of_the_proofs_is_a_claim_with_a_name_of_its_own() -> None:
    names = [claim.name for claim in claims()]
    sources = [path.read_text(encoding="utf-8") for path in sorted(HERE.glob("*.sol"))]
    assert names == [name for source in sources for name in re.findall(r"function (check_\w+)", source)]
    assert len(set(names)) == len(names)


def test_each_group_of_claims_has_a_false_one_in_the_same_set_up() -> None:
    assert {claim.contract for claim in claims() if claim.is_false} == {claim.contract for claim in claims()}


def test_each_true_claim_has_a_fault_that_makes_it_false() -> None:
    listed = mutants("proofs")
    for fault in listed:
        source = (ROOT / fault.path).read_text(encoding="utf-8")
        assert fault.applied(source) != source
        assert fault.fault
    assert {fault.test for fault in listed} == {claim.name for claim in claims() if not claim.is_false}


def test_the_page_has_the_claims_and_their_widths() -> None:
    page = (ROOT / "docs" / "reference" / "contracts.md").read_text(encoding="utf-8")
    rows = page.partition("| Claim | Proof | Widths | Seconds |\n|---|---|---|---|\n")[2].partition("\n\n")[0]
    found = [re.fullmatch(r"(\|.*\|) (\d+) \|", line) for line in rows.splitlines()]
    assert all(found)
    written = [f"{match[1]} {match[2]} |" for match in found if match]
    seconds = [int(match[2]) for match in found if match]
    true = [claim for claim in claims() if not claim.is_false]
    assert written == [row(claim, took_s) for claim, took_s in zip(true, seconds, strict=True)]
    assert all(took_s < claim.bound_s for claim, took_s in zip(true, seconds, strict=True))


def test_the_page_names_tests_of_what_is_only_fuzzed() -> None:
    page = (ROOT / "docs" / "reference" / "contracts.md").read_text(encoding="utf-8")
    rows = page.partition("| Only fuzzed | Test |\n|---|---|\n")[2].partition("\n\n")[0]
    named = re.findall(r"`([\w/.]+)::(\w+)`", rows)
    assert len(named) >= len(rows.splitlines()) > 0
    for path, test in named:
        source = (ROOT / "tests" / path).read_text(encoding="utf-8")
        assert re.search(rf"^(async )?def {test}\(", source, re.MULTILINE), test
