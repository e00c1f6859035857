"""Findings of Slither, compared with the triage. Pure; the standard library alone.

The key of a finding is its detector and its function or variable, as `Contract.name`. The triage is
slither.toml beside the contracts; an entry lists the findings that share a reason.
"""

import tomllib
from collections.abc import Iterable
from typing import Any, NamedTuple


class Finding(NamedTuple):
    """A finding of Slither at one place; `text` is not part of its key."""

    check: str
    place: str
    text: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """Detector and place."""
        return self.check, self.place


def finding_of(result: dict[str, Any]) -> Finding:
    """Finding of a JSON result of Slither."""
    elements = result["elements"]
    about = next((one for one in elements if one["type"] in ("function", "variable")), elements[0])
    parent = about.get("type_specific_fields", {}).get("parent", {})
    while parent.get("type") == "function":  # of a variable
        about = {"name": f"{parent['name']}.{about['name']}"}
        parent = parent.get("type_specific_fields", {}).get("parent", {})
    return Finding(result["check"], f"{parent.get('name', '')}.{about['name']}", result["description"])


def triaged(text: str) -> dict[tuple[str, str], str]:
    """Key -> reason, of the triage file. ValueError for an entry without a reason, or a repeated one."""
    found: dict[tuple[str, str], str] = {}
    for entry in tomllib.loads(text).get("accepted", []):
        if not entry.get("reason", "").strip():
            raise ValueError(f"{entry['check']}: no reason")
        for place in entry["places"]:
            key = entry["check"], place
            if key in found:
                raise ValueError(f"{entry['check']} of {place} stands there twice")
            found[key] = entry["reason"]
    return found


def complaints(findings: Iterable[Finding], known: dict[tuple[str, str], str]) -> list[str]:
    """A text for each finding without a judgement, and for each judgement without a finding."""
    found = {finding.key: finding for finding in findings}
    new = [
        f'[[accepted]]\ncheck = "{check}"\nplaces = ["{place}"]\nreason = ""\n# {finding.text}'
        for (check, place), finding in sorted(found.items())
        if (check, place) not in known
    ]
    gone = [
        f"{check} of {place} is triaged and not found any more"
        for check, place in sorted(known.keys() - found)
    ]
    return new + gone
