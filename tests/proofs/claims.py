"""Claims of the proofs, and what halmos says of one. Pure but for reading.

A claim is a function `check_...` of a `*.t.sol` beside this file. Its comment has:

    the claim itself, one or more sentences; close to true ones of its contract if it is false on purpose
    @custom:widths    sizes of the arguments that halmos searches; absent if the claim is false on purpose
    @custom:bound     seconds that its run may take, several times what it takes
    @custom:quick     CI runs it
"""

import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
OPENED = "Opened.sol"
"""Contracts that open to calls what the product's contracts do inside; compiled with them."""

_CLAIM = re.compile(r"^contract (\w+) is|^((?: +///.*\n)+) +function (check_\w+)\(", re.MULTILINE)


class Claim(NamedTuple):
    """A claim about the contracts.

    Attributes:
        widths: empty for a claim that is false on purpose.
        is_of_opened: whether it is about the contracts of Opened.sol.
    """

    name: str
    contract: str
    text: str
    widths: str
    bound_s: int
    is_quick: bool
    is_of_opened: bool

    @property
    def is_false(self) -> bool:
        """Whether halmos has to refute it."""
        return not self.widths


class Outcome(StrEnum):
    """Result of halmos for a claim.

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
        yield Claim(
            name=match[3],
            contract=contract,
            text=text,
            widths=tags.get("widths", ""),
            bound_s=int(bound[1]),
            is_quick="quick" in tags,
            is_of_opened=OPENED in source,
        )


def results_of(told: dict[str, Any] | None, wanted: Iterable[Claim]) -> dict[str, tuple[Outcome, float]]:
    """Outcome and seconds of each claim, by halmos's JSON of a run; None where it wrote none.

    A loop that halmos does not follow to its end, or a path that it gives up, proves nothing. Neither does an
    answer after the claim's bound.
    """
    results = {
        result["name"].partition("(")[0]: result
        for each in (told or {}).get("test_results", {}).values()
        for result in each
    }
    return {claim.name: _result_of(results.get(claim.name), claim.bound_s) for claim in wanted}


def _result_of(result: dict[str, Any] | None, bound_s: int) -> tuple[Outcome, float]:
    if result is None:
        return Outcome.BROKEN, 0
    took_s = float(result["time"][0])
    match result["exitcode"]:
        case 0 if result["num_bounded_loops"] == 0:
            return Outcome.PROVEN if took_s <= bound_s else Outcome.UNDECIDED, took_s
        case 1:
            return Outcome.REFUTED, took_s
        case 2:
            return Outcome.UNDECIDED, took_s
    return Outcome.BROKEN, took_s


def row(claim: Claim, took_s: float) -> str:
    """Row of the table in docs/reference/contracts.md."""
    return f"| {claim.text} | `{claim.name}` | {claim.widths} | {took_s:.0f} |"
