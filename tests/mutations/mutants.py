"""Planted faults, the tests that have to find them, and the verdict on each. Pure but for reading.

mutants.toml    arbitrary faults of the contracts: all contract tests together find most of them
attacks.toml    faults of contracts and venue that open a known attack again: the named test finds each
"""

import re
import tomllib
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).parents[1]
CONTRACTS = Path("engine/chain/contracts")
KILLED_PERCENT_MIN = {"mutants": 95, "attacks": 100}
"""Percentage of each list that the tests have to find."""

_STORIES = (
    "rfq", "delta", "router", "fee_vault", "executor", "attacks", "contract", "odd", "agent_callers",
    "order_promises", "reentered", "arrivals",
)  # fmt: skip
# Tests that compare bytecode, gas or sources fail for any change.
_LEFT_OUT = {"test_contract_artifacts.py", "test_contract_gas.py", "test_contract_words.py"}
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


class Mutant(NamedTuple):
    """A planted fault; mutants.toml and attacks.toml document the members."""

    file: str
    fault: str
    old: str
    new: str
    test: str

    @property
    def is_of_contract(self) -> bool:
        """Whether the fault is in a contract, which has to be compiled again."""
        return self.file.endswith(".sol")

    @property
    def path(self) -> Path:
        """Source of the fault, relative to the repository."""
        return CONTRACTS / self.file if self.is_of_contract else Path(self.file)

    @property
    def first_tests(self) -> list[Path]:
        """Test file that runs first, relative to the repository; empty if the name is wrong."""
        return [path.relative_to(TESTS.parent) for path in TESTS.glob(f"*/**/{self.test}")]

    def applied(self, source: str) -> str:
        """Source of the file with the fault. ValueError unless `old` occurs exactly once."""
        if (times := source.count(self.old)) != 1:
            raise ValueError(f"{self.file} has the old text {times} times, expected once: {self.fault}")
        return source.replace(self.old, self.new)


class Outcome(StrEnum):
    """State of a mutant after its tests; BROKEN: it does not compile, or its tests do not run."""

    KILLED = "killed"
    SURVIVED = "survived"
    BROKEN = "broken"


class Verdict(NamedTuple):
    """Outcome, with the killing test or the reason of a broken mutant."""

    outcome: Outcome
    detail: str = ""


def mutants(name: str) -> list[Mutant]:
    """All mutants of a list, `mutants` or `attacks`, in its order."""
    text = (Path(__file__).parent / f"{name}.toml").read_text(encoding="utf-8")
    return [Mutant(**entry) for entry in tomllib.loads(text)["mutant"]]


def contract_tests() -> list[Path]:
    """Test files of the contracts, relative to the repository, the property last."""
    stories = {path for story in _STORIES for path in (TESTS / "e2e").glob(f"test_{story}*.py")}
    kept = sorted(path for path in stories if path.name not in _LEFT_OUT)
    kept.append(TESTS / "property" / "test_contract_invariants.py")
    return [path.relative_to(TESTS.parent) for path in kept]


def verdict_of(code: int, output: str) -> Verdict:
    """Verdict of a run of pytest, by its exit code and output."""
    if code == 0:
        return Verdict(Outcome.SURVIVED)
    killer = _FAILED.search(output)
    if code == 1 and killer is not None:
        return Verdict(Outcome.KILLED, killer[1])
    return Verdict(Outcome.BROKEN, output.strip())


def is_enough(verdicts: Sequence[Verdict], percent: int) -> bool:
    """Whether the tests kill at least `percent` of the mutants, and no mutant is broken."""
    outcomes = [verdict.outcome for verdict in verdicts]
    killed = outcomes.count(Outcome.KILLED)
    is_whole = bool(outcomes) and Outcome.BROKEN not in outcomes
    return is_whole and 100 * killed >= percent * len(outcomes)
