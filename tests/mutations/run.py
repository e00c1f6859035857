"""Runs tests against planted faults of the contracts and of the venue: `make mutations`.

    attacks     all of attacks.toml: the test file that an attack names has to fail
    mutants     all of mutants.toml: a mutant's own test file runs first, then all contract tests
    contracts   drawn by a seed from all contracts: near tests run first, then all contract tests
    python      drawn by a seed from the money paths: near tests run first, then those of the path

The run works in copies of the tree, one for each worker. A fault of a contract is compiled as `make
contracts` compiles, together with the contracts that import its file; chains are embedded. A test that finds
a fault runs again without the fault, and has to pass. Tests that do not end find a fault, too, if they end
without it. The compiler refuses some drawn mutants, and the next of the draw take their places. `--files`
draws from some sources alone. The exit code is 1 if the tests miss an attack, or kill less than 95 % of
another list.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from fnmatch import fnmatch
from itertools import islice
from pathlib import Path
from queue import Queue

from mutations.drawing import contract_mutants, drawn, python_mutants, stages
from mutations.forked_pytest import ForkedPytest, write_source
from mutations.mutants import (
    CONFTEST,
    CONTRACTS,
    KILLED_PERCENT_MIN,
    Mutant,
    Outcome,
    Verdict,
    contract_tests,
    is_enough,
    mutants,
    verdict_of,
)
from support.contracts.contract_compiler import NotCompiled, compiled, compiled_again, syntax_trees
from support.patience import PATIENCE_S, STORY_S
from support.tracked_files import ROOT

WORKERS_MAX = 4
NEAR_S = 4 * PATIENCE_S
"""Bound of the first run of tests against a fault."""
ALL_S = 4 * STORY_S
"""Bound of one run of all contract tests."""

_NOT_COPIED = shutil.ignore_patterns(".*", "node_modules", "__pycache__", "results", "dist")
_MARKS = "not anvil and not oracle and not browser and not long"
_OPTIONS = (
    "-q", "-x", "-p", "no:cacheprovider", "--tb=no", "-m", _MARKS,
    "-W", "ignore::pytest.PytestAssertRewriteWarning",
)  # fmt: skip
_QUICK = "tests/unit/crypto/test_addresses.py"
UNENDING = "no end of "
"""Start of the detail where a run of tests does not end within its bound; the tests follow."""


def main(arguments: Sequence[str]) -> int:
    """Print the verdict on each planted fault; 0 if the tests find enough of each list."""
    parser = argparse.ArgumentParser(prog="mutations.run")
    today = datetime.now(UTC).strftime("%Y%m%d")
    parser.add_argument("--seed", default=today, help="of the drawn lists; today's date")
    parser.add_argument("--drawn", type=int, default=100, help="mutants of each drawn list")
    parser.add_argument("--workers", type=int, default=min(WORKERS_MAX, os.cpu_count() or 1))
    parser.add_argument("lists", nargs="*", metavar="LIST", help=f"of {', '.join(KILLED_PERCENT_MIN)}; all")
    parser.add_argument("--files", default="*", metavar="GLOB", help="sources of the drawn mutants; all")
    options = parser.parse_args(arguments)
    if unknown := sorted({*options.lists} - {*KILLED_PERCENT_MIN}):
        parser.error(f"lists: expected some of {', '.join(KILLED_PERCENT_MIN)}, got {', '.join(unknown)}")
    say(f"seed {options.seed}, {options.drawn} mutants of each drawn list")
    names = options.lists or [*KILLED_PERCENT_MIN]
    with tempfile.TemporaryDirectory(prefix="cambist-mutations-") as folder:
        bench = Bench(Path(folder), options.workers, names != ["python"])
        found = {
            name: bench.judged(
                (judged for judged in LISTS[name](options.seed) if fnmatch(judged[0].file, options.files)),
                options.drawn if name in DRAWN else None,
            )
            for name in names
        }
    for name, verdicts in found.items():
        killed = sum(verdict.outcome is Outcome.KILLED for verdict in verdicts)
        say(f"{killed} of {len(verdicts)} {name} killed, {KILLED_PERCENT_MIN[name]} % needed")
    return 0 if all(is_enough(verdicts, KILLED_PERCENT_MIN[name]) for name, verdicts in found.items()) else 1


Judged = tuple[Mutant, Sequence[Sequence[Path]]]
"""Mutant, and the test files of each run that judges it, relative to the repository."""


def attacks(_seed: str) -> Iterator[Judged]:
    """All attacks."""
    return ((one, [one.first_tests]) for one in mutants("attacks"))


def listed(_seed: str) -> Iterator[Judged]:
    """All mutants of the list."""
    for one in mutants("mutants"):
        near = one.first_tests
        yield one, [near, [path for path in contract_tests() if path not in near]]


def of_contracts(seed: str) -> Iterator[Judged]:
    """Mutants of all contracts, in the order of a seed."""
    return ((one, stages(one)) for one in drawn(contract_mutants(syntax_trees(ROOT / CONTRACTS)), seed))


def of_python(seed: str) -> Iterator[Judged]:
    """Mutants of the money paths, in the order of a seed."""
    return ((one, stages(one)) for one in drawn(python_mutants(), seed))


LISTS: dict[str, Callable[[str], Iterator[Judged]]] = {
    "attacks": attacks,
    "mutants": listed,
    "contracts": of_contracts,
    "python": of_python,
}
DRAWN = {"contracts", "python"}
"""Lists of which a number is drawn."""


class Bench:
    """Copies of the tree, one for each worker, and the tests that passed without a fault.

    Args:
        compiles: whether contracts are compiled; otherwise the tests take the artifacts of the repository.
    """

    def __init__(self, folder: Path, workers: int, compiles: bool) -> None:
        self._workers = workers
        self._trees: Queue[Tree] = Queue()
        self._trusted = set[str]()
        first = shutil.copytree(ROOT, folder / "tree0", symlinks=True, ignore=_NOT_COPIED)
        if compiles:
            compiled(first / CONTRACTS, first / CONTRACTS / "artifacts")
        self._pristine = shutil.copytree(first / CONTRACTS, folder / "contracts")
        self._trees.put(Tree(first))
        for number in range(1, workers):
            self._trees.put(Tree(shutil.copytree(first, folder / f"tree{number}", symlinks=True)))

    def judged(self, listed: Iterator[Judged], count: int | None) -> list[Verdict]:
        """Verdicts on mutants, each printed.

        Args:
            count: number of verdicts, without those on mutants that the compiler refuses; None for all.
        """
        if count is None:
            return self._judged_together(listed)
        verdicts: list[Verdict] = []
        while batch := [*islice(listed, count - len(verdicts))]:
            together = self._judged_together(batch)
            verdicts.extend(one for one in together if one.outcome is not Outcome.REFUSED)
        return verdicts

    def _judged_together(self, batch: Iterable[Judged]) -> list[Verdict]:
        with ThreadPoolExecutor(self._workers) as pool:
            return [*pool.map(lambda one: self._judged(*one), batch)]

    def _judged(self, mutant: Mutant, runs: Sequence[Sequence[Path]]) -> Verdict:
        began, tree = time.perf_counter(), self._trees.get()
        try:
            verdict = self._with_fault(tree, mutant, runs)
            if verdict.outcome is Outcome.KILLED and not self._is_trusted(tree, verdict.detail):
                verdict = Verdict(Outcome.BROKEN, f"{verdict.detail} fails without the fault")
        finally:
            self._trees.put(tree)
        took_s = time.perf_counter() - began
        say(f"{verdict.outcome:9}{took_s:4.0f} s  {mutant.file}: {mutant.fault} {verdict.detail}".rstrip())
        if verdict.outcome is Outcome.SURVIVED:
            say(f"file = \"{mutant.file}\"\nold = '''\n{mutant.old}'''\nnew = '''\n{mutant.new}'''")
        return verdict

    def _with_fault(self, tree: "Tree", mutant: Mutant, runs: Sequence[Sequence[Path]]) -> Verdict:
        """Verdict of the tests while the fault is planted in a tree."""
        folder, source = tree.folder, tree.folder / mutant.path
        original = source.read_text(encoding="utf-8")
        try:
            write_source(source, mutant.applied(original))
            if mutant.is_of_contract:
                compiled_again(folder / CONTRACTS, mutant.file, folder / CONTRACTS / "artifacts")
            verdict = Verdict(Outcome.SURVIVED)
            for number, tests in enumerate(runs):
                if tests and verdict.outcome is Outcome.SURVIVED:
                    verdict = tree.tested(map(str, tests), NEAR_S if number + 1 < len(runs) else ALL_S)
        except NotCompiled as wrong:
            return Verdict(Outcome.REFUSED, f"{wrong}".strip())
        except ValueError as wrong:
            return Verdict(Outcome.BROKEN, str(wrong))
        finally:
            write_source(source, original)
            if mutant.is_of_contract:
                shutil.rmtree(folder / CONTRACTS)
                shutil.copytree(self._pristine, folder / CONTRACTS)
        return verdict

    def _is_trusted(self, tree: "Tree", killer: str) -> bool:
        """Whether a test, named with or without its parameters, or files of tests pass without a fault."""
        if killer == CONFTEST:  # any test reads it
            return tree.tested([_QUICK], NEAR_S).outcome is Outcome.SURVIVED
        names = killer.removeprefix(UNENDING).partition("[")[0].split()
        if not self._trusted.issuperset(names):
            within_s = NEAR_S if killer.startswith(UNENDING) else ALL_S
            if tree.tested(names, within_s).outcome is not Outcome.SURVIVED:
                return False
            self._trusted.update(names)
        return True


class Tree:
    """A copy of the tree, and the runs of tests on its package and artifacts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        changed = {"E2E_CHAINS": "embedded", "TEST_WHOLE": "1", "PYTHONPATH": str(folder / "src")}
        changed |= {"TEST_ORDER": "given"}  # near and quick tests first
        changed |= {"PYTHONDONTWRITEBYTECODE": ""}  # else each run would compile all modules anew
        self._pytest = ForkedPytest(folder, os.environ | changed)

    def tested(self, tests: Iterable[str], within_s: float) -> Verdict:
        """Verdict of these tests."""
        named = [*tests]
        try:
            code, output = self._pytest.run([*_OPTIONS, *named], within_s)
        except TimeoutError:
            return Verdict(Outcome.KILLED, f"{UNENDING}{' '.join(named)}")
        return verdict_of(code, output)


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
