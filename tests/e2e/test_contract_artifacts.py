"""The committed artifacts are the output of the committed sources.

The compiler needs a minute or two. An ordinary run compares the hash of all its inputs with the recorded one;
CI and `make test-long` compile.
"""

import shutil
from pathlib import Path

import pytest

from cambist.engine.chain.artifacts import FOLDER, artifact, known_errors
from support.contracts.contract_compiler import SOURCES, NotCompiled, compiled, compiled_again
from support.contracts.contract_inputs import RECORD, inputs_hash
from support.programs import program

pytestmark = pytest.mark.oracle


def test_artifacts_were_compiled_from_the_committed_sources() -> None:
    program("npm-packages")
    assert RECORD.read_text(encoding="utf-8").strip() == inputs_hash(SOURCES), "make contracts"


@pytest.mark.long
def test_sources_compile_to_the_committed_artifacts(tmp_path: Path) -> None:
    program("npm-packages")
    compiled(SOURCES, into := tmp_path / "artifacts")
    made = {path.name: path.read_text(encoding="utf-8") for path in into.iterdir()}
    committed = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.json")}
    assert made == committed


@pytest.mark.parametrize("change", ["a byte of a source", "its name", "one more", "one less"])
def test_other_sources_have_another_hash(tmp_path: Path, change: str) -> None:
    before = inputs_hash(SOURCES)
    sources = Path(shutil.copytree(SOURCES, tmp_path / "contracts"))
    assert inputs_hash(sources) == before
    source = sources / "lib" / "Owned.sol"
    if change == "a byte of a source":
        source.write_bytes(source.read_bytes().replace(b"owner", b"0wner", 1))
    elif change == "its name":
        source.rename(source.with_name("Owner.sol"))
    elif change == "one more":
        shutil.copy(source, sources / "dev" / "Owned.sol")
    else:
        source.unlink()
    assert inputs_hash(sources) != before


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
