"""Findings of Slither and their judgements: a new finding fails, and a judgement without a finding."""

import pytest

from oracles.slither_triage import Finding, complaints, finding_of, triaged

TRIAGE = """
[[accepted]]
check = "timestamp"
places = ["Rfq.open", "Router.begin"]
reason = "Seconds do not matter."
"""


def test_what_is_judged_is_no_complaint() -> None:
    known = triaged(TRIAGE)
    found = [Finding("timestamp", place, "a text") for place in ("Rfq.open", "Router.begin", "Rfq.open")]
    assert complaints(found, known) == []


def test_a_new_finding_is_told_as_an_entry_to_fill_in() -> None:
    known = triaged(TRIAGE)
    found = [Finding("timestamp", place) for place in ("Rfq.open", "Router.begin")]
    (told,) = complaints([*found, Finding("reentrancy-eth", "Delta.settle", "it calls")], known)
    entry = told.partition("#")[0].replace('reason = ""', 'reason = "It is guarded."')
    assert triaged(TRIAGE + entry) == known | {("reentrancy-eth", "Delta.settle"): "It is guarded."}
    assert "it calls" in told


def test_a_judgement_of_nothing_is_told() -> None:
    found = [Finding("timestamp", "Rfq.open")]
    assert complaints(found, triaged(TRIAGE)) == [
        "timestamp of Router.begin is triaged and not found any more"
    ]


@pytest.mark.parametrize(
    "entry",
    [
        TRIAGE.replace("Seconds do not matter.", " "),
        TRIAGE + TRIAGE,
        TRIAGE.replace('"Router.begin"', '"Rfq.open"'),
    ],
)
def test_an_entry_has_a_reason_and_stands_once(entry: str) -> None:
    with pytest.raises(ValueError, match=r"no reason|stands there twice"):
        triaged(entry)


def test_a_finding_is_known_by_contract_and_function() -> None:
    function = {"type": "function", "name": "open", "type_specific_fields": {"parent": {"name": "Rfq"}}}
    node = {"type": "node", "name": "x = 1"}
    told = finding_of({"check": "timestamp", "description": "text", "elements": [node, function]})
    assert told == Finding("timestamp", "Rfq.open", "text")
    variable = {
        "type": "variable",
        "name": "signer_",
        "type_specific_fields": {
            "parent": {"type": "function", **{k: v for k, v in function.items() if k != "type"}}
        },
    }
    told = finding_of({"check": "missing-zero-check", "description": "", "elements": [variable]})
    assert told.place == "Rfq.open.signer_"
