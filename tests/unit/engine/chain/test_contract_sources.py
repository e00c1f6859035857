"""Rules for the deployed contracts: room to grow, a trust model at the top, no repeated code."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from cambist.engine.chain.artifacts import artifact
from support.contracts.contract_compiler import SOURCES

CODE_SIZE_MAX = 24_576
"""Largest code of a contract in bytes (EIP-170)."""

DEPLOYED = sorted({path.stem for path in SOURCES.glob("*.sol")} - {"IRfq", "IOrderHandler"})
PAGE = (Path(__file__).parents[4] / "docs" / "reference" / "contracts.md").read_text(encoding="utf-8")
SIZE_ROW = re.compile(r"^\| `(\w+)` \| ([\d,]+) \| ([\d,]+) \|$", re.MULTILINE)
_FUNCTION = re.compile(r"\b(function\s+\w+|modifier\s+\w+)\b[^;{}]*\{")
_LOOP = re.compile(r"\bfor\s*\([^{}]*?\)(?=\s*[\w{(])")
EQUAL_STATEMENTS_MAX = 3
"""Longest run of equal statements that two places of the contracts may have, after names are replaced."""


def test_the_page_tells_each_contracts_size_and_what_is_left() -> None:
    section = PAGE.partition("### Sizes\n")[2].partition("\n### ")[0]
    rows = {
        name: tuple(int(text.replace(",", "")) for text in row) for name, *row in SIZE_ROW.findall(section)
    }
    sizes = {name: artifact(name).runtime.size for name in DEPLOYED}
    assert rows == {name: (size, CODE_SIZE_MAX - size) for name, size in sizes.items()}


def test_delta_keeps_two_fifths_of_the_limit_free_and_each_contract_a_quarter() -> None:
    sizes = {name: len(artifact(name).code()) for name in DEPLOYED}
    assert sizes["Delta"] <= CODE_SIZE_MAX * 3 // 5
    assert [name for name, size in sizes.items() if size > CODE_SIZE_MAX * 3 // 4] == []


@pytest.mark.parametrize("name", DEPLOYED)
def test_each_contract_begins_with_its_trust_model(name: str) -> None:
    source = (SOURCES / f"{name}.sol").read_text(encoding="utf-8")
    before = source.partition(f"\ncontract {name} ")[0].splitlines()
    natspec: list[str] = []
    while before and before[-1].startswith("///"):
        natspec.insert(0, before.pop())
    assert "Who is trusted with what" in "\n".join(natspec)


def _functions(source: str) -> Iterator[tuple[str, str]]:
    """Name and body of each function and modifier, without comments.

    Constructors are left out: each contract has to assign its own immutables.
    """
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", source, flags=re.DOTALL)
    for found in _FUNCTION.finditer(text):
        end, depth = found.end(), 1
        while depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        yield found[1], text[found.end() : end - 1]


def _statements(body: str) -> list[str]:
    """Statements and heads of blocks, with one space between tokens."""
    whole = _LOOP.sub(lambda loop: loop[0].replace(";", ","), body)
    tokens = (" ".join(re.findall(r"\w+|[^\w\s]", part)) for part in re.split(r"(?<=[;{}])", whole))
    return [statement for statement in tokens if statement not in ("", "{", "}")]


def _renamed(statements: list[str]) -> tuple[str, ...]:
    """The same statements with names replaced by numbers, so that a copy under other names is equal."""
    numbers: dict[str, str] = {}
    return tuple(
        re.sub(r"\b[a-z_]\w*\b", lambda name: numbers.setdefault(name[0], f"${len(numbers)}"), statement)
        for statement in statements
    )


def repeated(sources: Iterable[tuple[str, str]]) -> list[set[str]]:
    """Places with equal statements: sets of `file function`."""
    length = EQUAL_STATEMENTS_MAX + 1
    places: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for file, source in sources:
        for function, body in _functions(source):
            statements = _statements(body)
            for first in range(len(statements) - length + 1):
                run = _renamed(statements[first : first + length])
                places[run].append(f"{file} {function}")
    return [set(found) for found in places.values() if len(set(found)) > 1]


def _sources() -> Iterator[tuple[str, str]]:
    for path in (*SOURCES.glob("*.sol"), *SOURCES.glob("lib/*.sol"), *SOURCES.glob("examples/*.sol")):
        yield path.name, path.read_text(encoding="utf-8")


def test_no_code_stands_in_two_functions() -> None:
    assert repeated(_sources()) == []


@pytest.mark.parametrize(
    ("file", "function"),
    [("TwapSettler.sol", "partOf"), ("Settling.sol", "settlePart"), ("Settling.sol", "finishSale")],
)
def test_a_copy_under_other_names_is_found(file: str, function: str) -> None:
    """For example, a copy of the sale's code that settles a purchase's slice is found."""
    (body,) = [
        body
        for path, text in _sources()
        for name, body in _functions(text)
        if (path, name) == (file, f"function {function}")
    ]
    copy = "function copied() private {" + re.sub(r"\b(order|part|received|cut)\b", r"its\1", body) + "}"
    assert copy.count("its") > 5
    assert {f"{file} function {function}", "TwapSettler.sol function copied"} in repeated(
        [*_sources(), ("TwapSettler.sol", copy)]
    )
