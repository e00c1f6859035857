"""Runs tests against each planted fault of the contracts and of the venue: `make mutations`.

The run works in copies of the tree, one for each worker. The tests have to pass first without a fault. A
fault of a contract is compiled as `make contracts` compiles, together with the contracts that import its
file. A mutant's own test file runs first, then all contract tests, on the embedded chain until the first one
fails; an attack's own file alone has to fail. The exit code is 1 if the tests kill less than 95 % of the
mutants or miss an attack, or if a fault does not compile.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

from mutations.mutants import (
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
from support.contracts.contract_compiler import NotCompiled, compiled, compiled_again
from support.patience import STORY_S
from support.tracked_files import ROOT

WORKERS_MAX = 4
TESTS_S = 4 * STORY_S
"""Bound of one run of all contract tests."""

_NOT_COPIED = shutil.ignore_patterns(".*", "node_modules", "__pycache__", "results", "dist")


def main() -> int:
    """Print the verdict on each planted fault; 0 if the tests find enough of both lists."""
    workers = min(WORKERS_MAX, os.cpu_count() or 1)
    with tempfile.TemporaryDirectory(prefix="cambist-mutations-") as folder:
        trees = [Path(folder) / f"tree{number}" for number in range(workers)]
        shutil.copytree(ROOT, trees[0], symlinks=True, ignore=_NOT_COPIED)
        contracts = trees[0] / CONTRACTS
        compiled(contracts, contracts / "artifacts")
        attacks = mutants("attacks")
        tests = dict.fromkeys(
            [*contract_tests(), *(path for attack in attacks for path in attack.first_tests)]
        )
        base = tested(trees[0], [*tests], f"-n{workers}", "--dist=loadfile")
        if base.outcome is not Outcome.SURVIVED:
            say(f"the tests fail without a fault: {base.detail}")
            return 1
        pristine = shutil.copytree(contracts, Path(folder) / "contracts")
        for tree in trees[1:]:
            shutil.copytree(trees[0], tree, symlinks=True)
        free: Queue[Path] = Queue()
        for tree in trees:
            free.put(tree)
        with ThreadPoolExecutor(workers) as pool:
            found = {
                "attacks": [*pool.map(lambda one: judged(one, (), pristine, free), attacks)],
                "mutants": [
                    *pool.map(lambda one: judged(one, contract_tests(), pristine, free), mutants("mutants"))
                ],
            }
    for name, verdicts in found.items():
        killed = sum(verdict.outcome is Outcome.KILLED for verdict in verdicts)
        say(f"{killed} of {len(verdicts)} {name} killed, {KILLED_PERCENT_MIN[name]} % needed")
    return 0 if all(is_enough(verdicts, KILLED_PERCENT_MIN[name]) for name, verdicts in found.items()) else 1


def judged(mutant: Mutant, others: Sequence[Path], pristine: Path, free: Queue[Path]) -> Verdict:
    """Verdict on a planted fault, printed too.

    Args:
        others: test files that run if the fault's own file does not find it, relative to the repository.
        pristine: contracts and artifacts without a fault.
        free: trees that no other fault is planted in; one is taken and given back.
    """
    began, tree = time.perf_counter(), free.get()
    source = tree / mutant.path
    original = source.read_text(encoding="utf-8")
    try:
        source.write_text(mutant.applied(original), encoding="utf-8")
        if mutant.is_of_contract:
            compiled_again(tree / CONTRACTS, mutant.file, tree / CONTRACTS / "artifacts")
        verdict = tested(tree, mutant.first_tests, "-x")
        if verdict.outcome is Outcome.SURVIVED and others:
            verdict = tested(tree, [path for path in others if path not in mutant.first_tests], "-x")
    except (ValueError, NotCompiled) as wrong:
        verdict = Verdict(Outcome.BROKEN, str(wrong))
    finally:
        source.write_text(original, encoding="utf-8")
        if mutant.is_of_contract:
            shutil.rmtree(tree / CONTRACTS)
            shutil.copytree(pristine, tree / CONTRACTS)
        free.put(tree)
    took_s = time.perf_counter() - began
    say(f"{verdict.outcome:9}{took_s:4.0f} s  {mutant.file}: {mutant.fault} {verdict.detail}".rstrip())
    return verdict


def tested(tree: Path, tests: Sequence[Path], *options: str) -> Verdict:
    """Verdict of these tests on the package and artifacts of a tree."""
    pytest = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=no", "-m", "not anvil")
    environment = os.environ | {"E2E_CHAINS": "embedded", "TEST_WHOLE": "1", "PYTHONPATH": str(tree / "src")}
    try:
        done = subprocess.run(
            [*pytest, *options, *tests],
            cwd=tree, env=environment, capture_output=True, text=True, timeout=TESTS_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as late:
        return Verdict(Outcome.BROKEN, str(late))
    return verdict_of(done.returncode, done.stdout + done.stderr)


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
