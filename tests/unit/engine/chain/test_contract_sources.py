"""Rules for the deployed contracts: docs/contracts.md states each size, and each leaves room to grow."""

import re
from pathlib import Path

from cambist.engine.chain.artifacts import artifact
from support.contracts.contract_compiler import SOURCES

CODE_SIZE_MAX = 24_576
"""Largest code of a contract in bytes (EIP-170)."""

DEPLOYED = sorted(path.stem for path in SOURCES.glob("*.sol") if path.stem != "IRfq")
PAGE = (Path(__file__).parents[4] / "docs" / "contracts.md").read_text(encoding="utf-8")
SIZE_ROW = re.compile(r"^\| `(\w+)` \| ([\d,]+) \| ([\d,]+) \|$", re.MULTILINE)


def test_the_page_tells_each_contracts_size_and_what_is_left() -> None:
    section = PAGE.partition("### Sizes\n")[2].partition("\n### ")[0]
    rows = {
        name: tuple(int(text.replace(",", "")) for text in row) for name, *row in SIZE_ROW.findall(section)
    }
    sizes = {name: artifact(name).runtime.size for name in DEPLOYED}
    assert rows == {name: (size, CODE_SIZE_MAX - size) for name, size in sizes.items()}


def test_delta_keeps_half_of_the_limit_free_and_each_contract_a_quarter() -> None:
    sizes = {name: len(artifact(name).code()) for name in DEPLOYED}
    assert sizes["Delta"] <= CODE_SIZE_MAX // 2
    assert [name for name, size in sizes.items() if size > CODE_SIZE_MAX * 3 // 4] == []
