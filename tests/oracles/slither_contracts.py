"""Runs Slither over the contracts; fails on a finding not in slither.toml, or an entry without a finding.

    slither_contracts.py CONTRACTS TRIAGE SOLC...      by the interpreter of .venv-slither

SOLC is the command that starts tests/oracles/solc_command.mjs. Detectors of high, medium and low impact check
all contracts except those for devnets.
"""

# pyright: reportMissingImports=false
import inspect
import json
import os
import shlex
import sys
import tempfile
from pathlib import Path

from crytic_compile import CryticCompile
from slither import Slither
from slither.detectors import all_detectors
from slither.detectors.abstract_detector import AbstractDetector, DetectorClassification
from slither_triage import complaints, finding_of, triaged

IMPACTS = {DetectorClassification.HIGH, DetectorClassification.MEDIUM, DetectorClassification.LOW}


def main(contracts: str, triage: str, *solc: str) -> int:
    """0 if every finding has a judgement and every judgement a finding."""
    known = triaged(Path(triage).read_text(encoding="utf-8"))
    os.chdir(contracts)
    names = sorted(path.as_posix() for path in Path().rglob("*.sol") if path.parts[0] != "dev")
    settings = {"evmVersion": "cancun", "viaIR": True}
    sources = {name: {"content": Path(name).read_text(encoding="utf-8")} for name in names}
    with tempfile.TemporaryDirectory() as folder:
        asked, command = Path(folder) / "contracts.json", Path(folder) / "solc"
        asked.write_text(json.dumps({"language": "Solidity", "sources": sources, "settings": settings}))
        command.write_text(f'#!/bin/sh\nexec {shlex.join(solc)} "$@"\n')
        command.chmod(0o700)
        compiled = CryticCompile(
            str(asked), solc=str(command), compile_force_framework="solc-json", solc_disable_warnings=True
        )
    slither = Slither(compiled)
    for _, detector in inspect.getmembers(all_detectors, inspect.isclass):
        if issubclass(detector, AbstractDetector) and getattr(detector, "IMPACT", None) in IMPACTS:
            slither.register_detector(detector)
    findings = [finding_of(result) for results in slither.run_detectors() for result in results]
    wrong = complaints(findings, known)
    told = "\n".join(wrong) if wrong else f"{len({one.key for one in findings})} findings, all of them judged"
    sys.stdout.write(f"{told}\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
