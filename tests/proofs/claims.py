"""Claims of the proofs, and what halmos says of one. Pure but for reading.

A claim is a function `check_...` of a `*.t.sol` beside this file. Its comment has:

    the claim itself, one or more sentences
    @custom:widths    sizes of the arguments for which halmos searches; absent from the claims that are false on purpose
    @custom:bound     seconds that its run may take, several times what it takes
    @custom:quick     CI runs it
"""

import re
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent

_CLAIM = re.compile(r"^contract (\w+) is|^((?: +///.*\n)+) +function (check_\w+)\(", re.MULTILINE)


class Claim(NamedTuple):
    """A claim about the contracts; `widths` is empty for one that is false on purpose."""

    name: str
    contract: str
    text: str
    widths: str
    bound_s: int
    is_quick: bool

    @property
    def is_false(self) -> bool:
        """Whether halmos has to refute it."""
        return not self.widths


class Outcome(StrEnum):
    """What a run of halmos says of a claim.

    UNDECIDED: solver or run reach their bound. BROKEN: halmos gives no answer, or leaves paths out.
    """

    PROVEN = "proven"
    REFUTED = "refuted"
    UNDECIDED = "undecided"
    BROKEN = "broken"


def claims() -> list[Claim]:
    """All claims, by file and place."""
    files = sorted(HERE.glob("*.t.sol"))
    return [claim for path in files for claim in claims_of(path.read_text(encoding="utf-8"))]


def claims_of(source: str) -> Iterator[Claim]:
    """Claims of a file. ValueError for a claim without words or a bound."""
    contract = ""
    for match in _CLAIM.finditer(source):
        if match[1]:
            contract = match[1]
            continue
        lines = [line.strip().removeprefix("///").strip() for line in match[2].splitlines()]
        text = " ".join(line for line in lines if not line.startswith("@"))
        tags = dict(re.findall(r"^@custom:(\w+) ?(.*)$", "\n".join(lines), re.MULTILINE))
        bound = re.fullmatch(r"(\d+) s", tags.get("bound", ""))
        if not text or bound is None:
            raise ValueError(f"{match[3]}: expected a claim in words, and a bound such as `60 s`")
        yield Claim(match[3], contract, text, tags.get("widths", ""), int(bound[1]), "quick" in tags)


def outcome_of(told: dict[str, Any] | None) -> Outcome:
    """Outcome by halmos's JSON of a run with one claim; None where it wrote none.

    A loop that halmos does not follow to its end, or a path that it gives up, proves nothing.
    """
    results = [result for each in (told or {}).get("test_results", {}).values() for result in each]
    if len(results) != 1:
        return Outcome.BROKEN
    result = results[0]
    match result["exitcode"]:
        case 0 if result["num_bounded_loops"] == 0:
            return Outcome.PROVEN
        case 1:
            return Outcome.REFUTED
        case 2:
            return Outcome.UNDECIDED
    return Outcome.BROKEN


def row(claim: Claim, took_s: float) -> str:
    """Row of the table in docs/reference/contracts.md."""
    return f"| {claim.text} | `{claim.name}` | {claim.widths} | {took_s:.0f} |"
