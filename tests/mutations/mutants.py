"""Planted faults, the tests that have to find them, and the verdict on each. Pure but for reading.

mutants.toml    arbitrary faults of the contracts: all contract tests together find most of them
attacks.toml    faults of contracts and venue that open a known attack again: the named test finds each

`drawing.py` draws two more lists: `contracts`, of all contracts, and `python`, of the money paths.
"""

import re
import tomllib
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).parents[1]
CONTRACTS = Path("engine/chain/contracts")
KILLED_PERCENT_MIN = {"attacks": 100, "mutants": 95, "contracts": 95, "python": 95}
"""Percentage of each list that the tests have to find."""

_STORIES = (
    "rfq", "delta", "router", "fee_vault", "executor", "attacks", "contract", "odd", "agent_callers",
    "order_promises", "reentered", "arrivals",
)  # fmt: skip
# Tests that compare bytecode, gas or sources fail for any change.
_LEFT_OUT = {"test_contract_artifacts.py", "test_contract_gas.py", "test_contract_words.py"}
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
_RAN = {1, 2}
"""Exit codes of pytest where a test failed, or a file of tests, while it was read."""
_UNREADABLE = "ImportError while loading conftest"
CONFTEST = "tests/conftest.py"
"""Killer of a fault with which no test can start."""


class Mutant(NamedTuple):
    """A planted fault; mutants.toml and attacks.toml document the members. A drawn one names no test."""

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
    """State of a mutant after its tests.

    REFUSED: the compiler refuses it. BROKEN: its tests do not run, or they fail without the fault, too.
    """

    KILLED = "killed"
    SURVIVED = "survived"
    REFUSED = "refused"
    BROKEN = "broken"


class Verdict(NamedTuple):
    """Outcome, with the killing test or the reason of a refused or broken mutant."""

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
    if code in _RAN and killer is not None:
        return Verdict(Outcome.KILLED, killer[1])
    if output.startswith(_UNREADABLE):
        return Verdict(Outcome.KILLED, CONFTEST)
    return Verdict(Outcome.BROKEN, output.strip())


def is_enough(verdicts: Sequence[Verdict], percent: int) -> bool:
    """Whether the tests kill at least `percent` of the mutants, and no mutant is refused or broken."""
    outcomes = [verdict.outcome for verdict in verdicts]
    killed = outcomes.count(Outcome.KILLED)
    is_whole = bool(outcomes) and {*outcomes} <= {Outcome.KILLED, Outcome.SURVIVED}
    return is_whole and 100 * killed >= percent * len(outcomes)
