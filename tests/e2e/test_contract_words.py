"""The NatSpec of the contracts is whole: each argument, returned value and getter is documented.

The errors that it names exist.
"""

import re
import shutil
from pathlib import Path

import pytest

from cambist.engine.chain.artifacts import FOLDER, artifact
from cambist.engine.chain.deploy.deploy import SETTLERS
from support.contracts.contract_compiler import SOURCES, missing_words
from support.programs import program


@pytest.mark.oracle
def test_only_words_that_are_taken_out_are_missing(tmp_path: Path) -> None:
    """Of a function of its own, of an inherited one, of one whose words an interface has, of a getter."""
    program("npm-packages")
    sources = Path(
        shutil.copytree(SOURCES, tmp_path / "contracts", ignore=shutil.ignore_patterns("artifacts"))
    )
    left_out = {
        "FeeVault.sol": "@param sent ",
        "Rfq.sol": "@return the EIP-712 digest",
        "IRfq.sol": "@param makerFillAmount ",
        "lib/Nonces.sol": "@return done ",
        "lib/Owned.sol": "The account that decides ",
    }
    for name, words in left_out.items():
        source = sources / name
        lines = source.read_text(encoding="utf-8").splitlines(keepends=True)
        kept = [line for line in lines if f"/// {words}" not in line]
        assert len(kept) == len(lines) - 1
        source.write_text("".join(kept), encoding="utf-8")
    assert sorted(missing_words(sources)) == sorted(
        [
            "FeeVault.credit: @param sent",
            "Rfq.getOrderHash: @return _0",
            *(f"{name}.tryBatchFillOrderMakerAmount: @param makerFillAmount" for name in ("IRfq", "Rfq")),
            *(f"{name}.orderState: @return done" for name in ("Delta", *SETTLERS)),
            *(f"{name}.owner: @notice" for name in ("Delta", "FeeVault", "RfqExecutor", "Router")),
        ]
    )


def test_errors_that_the_words_name_exist() -> None:
    errors = {
        entry.name
        for path in FOLDER.glob("*.json")
        for entry in artifact(path.stem).abi
        if entry.type == "error"
    }
    named = set()
    for source in SOURCES.rglob("*.sol"):
        for words in re.findall(r"(?:^ *///.*\n)+", source.read_text(encoding="utf-8"), re.MULTILINE):
            sentences = re.sub(r"\s*///\s*", " ", words).split(". ")
            reverting = " ".join(one for one in sentences if "everts with" in one)
            named |= set(re.findall(r"\b[A-Z][a-z]+(?:[A-Z][a-z]+)+\b", reverting))
    assert len(named) > 20
    assert named <= errors
