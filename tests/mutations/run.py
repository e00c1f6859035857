"""Runs the contract tests against each mutant of the contracts: `make mutations`.

The run works in copies of the tree, one for each worker. The contracts without a fault have to pass first.
Then each mutant is compiled as `make contracts` compiles, together with the contracts that import its file,
and the contract tests run on the embedded chain until the first one fails. The exit code is 1 if the tests
kill less than 95 % of the mutants, or if a mutant does not compile.
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

_CONTRACTS = Path("engine/chain/contracts")
_NOT_COPIED = shutil.ignore_patterns(".*", "node_modules", "__pycache__", "results", "dist")


def main() -> int:
    """Print the verdict of each mutant; 0 if the tests kill enough of them."""
    workers = min(WORKERS_MAX, os.cpu_count() or 1)
    with tempfile.TemporaryDirectory(prefix="cambist-mutations-") as folder:
        trees = [Path(folder) / f"tree{number}" for number in range(workers)]
        shutil.copytree(ROOT, trees[0], symlinks=True, ignore=_NOT_COPIED)
        contracts = trees[0] / _CONTRACTS
        compiled(contracts, contracts / "artifacts")
        base = tested(trees[0], contract_tests(), f"-n{workers}", "--dist=loadfile")
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
            verdicts = [*pool.map(lambda mutant: judged(mutant, pristine, free), mutants())]
    killed = sum(verdict.outcome is Outcome.KILLED for verdict in verdicts)
    say(f"{killed} of {len(verdicts)} mutants killed, {KILLED_PERCENT_MIN} % needed")
    return 0 if is_enough(verdicts) else 1


def judged(mutant: Mutant, pristine: Path, free: Queue[Path]) -> Verdict:
    """Verdict on a mutant, printed too; its tree is taken from `free` and given back."""
    began, tree = time.perf_counter(), free.get()
    try:
        contracts = tree / _CONTRACTS
        shutil.rmtree(contracts)
        shutil.copytree(pristine, contracts)
        source = contracts / mutant.file
        source.write_text(mutant.applied(source.read_text(encoding="utf-8")), encoding="utf-8")
        compiled_again(contracts, mutant.file, contracts / "artifacts")
        likely = [path for path in contract_tests() if path.name == mutant.test]
        verdict = tested(tree, likely, "-x")
        if verdict.outcome is Outcome.SURVIVED:
            verdict = tested(tree, [path for path in contract_tests() if path not in likely], "-x")
    except (ValueError, NotCompiled) as wrong:
        verdict = Verdict(Outcome.BROKEN, str(wrong))
    finally:
        free.put(tree)
    took_s = time.perf_counter() - began
    say(f"{verdict.outcome:9}{took_s:4.0f} s  {mutant.file}: {mutant.fault} {verdict.detail}".rstrip())
    return verdict


def tested(tree: Path, tests: Sequence[Path], *options: str) -> Verdict:
    """Verdict of these tests on the package and artifacts of a tree."""
    pytest = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=no", "-m", "not anvil")
    environment = os.environ | {"E2E_CHAINS": "embedded", "PYTHONPATH": str(tree / "src")}
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
