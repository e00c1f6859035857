"""The drawing of mutants: operators find each kind of fault where code runs, and a seed repeats a draw."""

from itertools import islice
from pathlib import Path

import pytest

from mutations.contract_faults import contract_faults
from mutations.drawing import (
    contract_files,
    contract_mutants,
    drawn,
    equivalents,
    importing_tests,
    python_files,
    python_mutants,
    stages,
)
from mutations.edits import as_edit, as_mutant
from mutations.mutants import CONTRACTS, Mutant, contract_tests
from mutations.python_faults import python_faults
from support.contracts.contract_compiler import syntax_trees
from support.tracked_files import ROOT

PYTHON = [
    ("a < b", "<", "<="),
    ("a >= b", ">=", ">"),
    ("a == b", "==", "!="),
    ("a is not b", "is not", "is"),
    ("a in b", "in", "not in"),
    ("a and b", "and", "or"),
    ("a + b", "+", "-"),
    ("a // b", "//", "*"),
    ("-a", "-a", "(a)"),
    ("a(True)", "True", "False"),
    ("a[1]", "1", "2"),
    ("a[1]", "1", "0"),
    ("min(a, b)", "min", "max"),
    ("mul_div_up(a, b, c)", "mul_div_up", "mul_div_down"),
    ("run(a, b.c)", "a, b.c", "b.c, a"),
    ("a if b else c", "b", "(not (b))"),
    ("a if not b else c", "not b", "(b)"),
    ("[a for a in b if a]", "a", "(not (a))"),
]


def _changes(source: str) -> list[tuple[str, str]]:
    return [(edit.old, edit.new) for edit in python_faults(source)]


@pytest.mark.parametrize(("code", "old", "new"), PYTHON)
def test_an_operator_of_python_finds_its_fault(code: str, old: str, new: str) -> None:
    assert (old, new) in _changes(f"def f():\n    return {code}\n")


@pytest.mark.parametrize(
    "statement",
    ["pay(a)", "await pay(a)", "self.paid = a", "a[b] = c", "a += b", "raise Refused(a)", "del a[b]"],
)
def test_a_statement_is_dropped(statement: str) -> None:
    assert (statement, "pass") in _changes(f"async def f():\n    {statement}\n")


def test_a_condition_is_negated() -> None:
    assert ("a", "(not (a))") in _changes("def f():\n    if a:\n        b()\n")
    assert _changes("def f():\n    if a is b:\n        return c\n") == [("is", "is not")]


@pytest.mark.parametrize(
    "source",
    [
        '"""1 < 2"""\n',
        "BOUND_S = 1 + 2\n",
        "def f(a: int = 1) -> list[1]:\n    return a\n",
        "@cache(1)\ndef f():\n    return a\n",
        "def f():\n    # 1 < 2\n    return a\n",
        'def f():\n    return f"{a + 1}"\n',
        'def f():\n    _log.info("paid", amount=a + 1)\n',
        'async def f():\n    await self._log.ainfo("paid", amount=a + 1)\n',
        "def f():\n    assert a < b\n",
        "def f():\n    return index.between(a, b)\n",
        "def f():\n    return zip(*a, strict=True)\n",
        "async def f():\n    for a in b:\n        n += 1\n        if n:\n            await lowlevel.c()\n",
        "def f():\n    a: Literal[1] = b\n",
        "class A:\n    def __repr__(self):\n        return str(1 + 2)\n",
        "class A:\n    def statistics(self):\n        return Statistics(self.a + 1)\n",
        "class A:\n    def __init__(self, a):\n        self.a = a\n",
        "class A:\n    def f(self):\n        self.a += 1\n    def statistics(self):\n        return self.a\n",
        "async def f():\n    await trio.lowlevel.checkpoint()\n",
        "if TYPE_CHECKING:\n    pass\n",
    ],
)
def test_what_never_runs_or_only_describes_has_no_fault(source: str) -> None:
    assert _changes(source) == []


def test_a_value_that_only_an_error_shows_has_no_fault() -> None:
    source = (
        "def f():\n    a = b[:5]\n    c = len(a) + 1\n    if d:\n        raise Refused(c)\n    return {}\n"
    )
    assert _changes(source.format("d")) == [("d", "(not (d))"), ("raise Refused(c)", "pass")]
    assert ("5", "4") in _changes(source.format("c"))


def test_a_counter_that_others_read_has_faults() -> None:
    source = "class A:\n    def f(self):\n        self.a += b\n        return self.a\n"
    assert ("self.a += b", "pass") in _changes(source)


def test_the_bound_of_a_choice_of_the_less_has_no_fault_and_its_direction_has() -> None:
    assert _changes("def f():\n    return a if a < b else b\n") == [("a < b", "(not (a < b))")]
    assert _changes("def f():\n    return a - b if a > b else 0\n")[:1] == [("-", "+")]
    assert ("<", "<=") in _changes("def f():\n    return a if a < b else c\n")


def test_the_members_of_an_error_have_no_fault() -> None:
    assert _changes("def f():\n    raise Refused(a + 1)\n") == [("raise Refused(a + 1)", "pass")]


def test_factors_of_a_product_stay_and_its_divisor_does_not() -> None:
    swaps = [(old, new) for old, new in _changes("def f():\n    return mul_div_up(a, b, c)\n") if ", " in old]
    assert swaps == [("b, c", "c, b")]


def test_offsets_are_bytes() -> None:
    [edit] = python_faults("def f():\n    return 'ä', a < b\n")
    assert (
        edit.applied("def f():\n    return 'ä', a < b\n".encode()).decode()
        == "def f():\n    return 'ä', a <= b\n"
    )
    assert edit.line == 2


def test_the_old_text_of_a_mutant_occurs_once() -> None:
    source = "def f():\n    a()\n    b()\n\n\ndef g():\n    c()\n    b()\n"
    start = source.rindex("b()")
    mutant = as_mutant("x.py", source, as_edit(source.encode(), start, start + 3, "pass"))
    assert mutant.old == "    c()\n    b()\n"
    assert mutant.applied(source) == "def f():\n    a()\n    b()\n\n\ndef g():\n    c()\n    pass\n"
    assert mutant.fault == "Line 8: `b()` becomes `pass`."


CONTRACT = """// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

contract C {
    error Wrong(uint256 by);
    event Paid(uint256 a);
    uint256 private constant MOST = 20;
    uint256 public kept;

    function f(uint256 a, uint256 b) external returns (uint256 c) {
        // 3 < 4
        require(a < b, "3 < 4");
        if (a != 7) revert Wrong(a * b);
        emit Paid(a);
        kept += g(a, b);
        for (uint256 i = 0; i < MOST; i++) c = b;
        assembly ("memory-safe") {
            c := add(c, 5)
            if iszero(call(8, a, b, 11, 12, 32, 31)) { revert(13, 0) }
            c := call(8, a, b, 14, 0, 33, 35)
        }
        return a + b;
    }

    function g(uint256 a, uint256 b) private view returns (uint256) {
        uint256 c = a >= b ? b : a;
        return kept > 0 || !(a == b) ? a : c;
    }
}
"""
FAULTS = [
    ("20", "21"),
    ("20", "19"),
    ("a < b", "!(a < b)"),
    ("<", "<="),
    ('require(a < b, "3 < 4");', "{}"),
    ("!=", "=="),
    ("7", "8"),
    ("revert Wrong(a * b);", "{}"),
    ("emit Paid(a);", "{}"),
    ("kept += g(a, b);", "{}"),
    ("+=", "-="),
    ("a, b", "b, a"),
    ("c = b;", "{}"),
    ("add", "sub"),
    ("5", "6"),
    ("c := add(c, 5)", "{}"),
    ("11", "12"),
    ("32", "33"),
    ("35", "36"),
    ("0", "1"),
    ("return a + b;", "{}"),
    ("+", "-"),
    ("||", "&&"),
    ("!(a == b)", "(a == b)"),
]
NONE_OF = {"3", "4", "*", "i++", ">=", "13", "14", "31"}
"""Texts of the contract without a fault: words, members of an error, the step of a loop, the bound of the
less of two, places of no bytes, the size of an answer in scratch memory.
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str]]:
    """Faults of the contract above."""
    folder = tmp_path_factory.mktemp("contracts")
    (folder / "C.sol").write_text(CONTRACT)
    return [(edit.old, edit.new) for edit in contract_faults(CONTRACT, syntax_trees(folder)["C.sol"])]


@pytest.mark.needs("npm-packages")
@pytest.mark.parametrize(("old", "new"), FAULTS)
def test_an_operator_of_solidity_finds_its_fault(found: list[tuple[str, str]], old: str, new: str) -> None:
    assert (old, new) in found


@pytest.mark.needs("npm-packages")
def test_words_errors_and_the_steps_of_loops_have_no_fault(found: list[tuple[str, str]]) -> None:
    assert NONE_OF.isdisjoint(old for old, _ in found)


@pytest.fixture(scope="module")
def of_contracts() -> list[Mutant]:
    return contract_mutants(syntax_trees(ROOT / CONTRACTS))


@pytest.mark.needs("npm-packages")
def test_all_contracts_but_those_for_devnets_are_drawn_from(of_contracts: list[Mutant]) -> None:
    files = {mutant.file for mutant in of_contracts}
    assert files == {*contract_files()}
    interfaces = {"IOrderHandler.sol", "IRfq.sol", "lib/Bridging.sol"}
    sources = {path.relative_to(ROOT / CONTRACTS).as_posix() for path in (ROOT / CONTRACTS).rglob("*.sol")}
    assert files == {name for name in sources - interfaces if not name.startswith("dev/")}
    assert len(of_contracts) > 2000


@pytest.mark.needs("npm-packages")
def test_near_tests_of_a_contract_come_first_and_all_contract_tests_follow(
    of_contracts: list[Mutant],
) -> None:
    for mutant in {mutant.file: mutant for mutant in of_contracts}.values():
        near, others = stages(mutant)
        assert near
        assert {*near, *others} >= {*contract_tests()}
        assert {*near}.isdisjoint(others)


@pytest.fixture(scope="module")
def of_python() -> list[Mutant]:
    return python_mutants()


def test_every_module_of_the_money_paths_has_tests_that_judge_it() -> None:
    files = python_files()
    assert len(files) >= 80
    for path in files:
        near, others = stages(Mutant(path.as_posix(), "A fault.", "a", "b", ""))
        assert near, path
        assert others, path
        assert all((ROOT / test).is_file() for test in [*near, *others])


def test_a_test_that_imports_a_module_is_near_to_it() -> None:
    near = importing_tests(Path("engine/trade/otc/balances.py"))
    assert near[0] == Path("tests/unit/engine/trade/otc/test_otc_balances.py")
    assert Path("tests/property/test_otc_lives.py") in near


def test_mutants_of_python_compile(of_python: list[Mutant]) -> None:
    assert len(of_python) > 7000
    for mutant in of_python[::40]:
        compile(mutant.applied((ROOT / mutant.path).read_text(encoding="utf-8")), mutant.file, "exec")


def test_a_seed_repeats_a_draw_and_another_seed_draws_others(of_python: list[Mutant]) -> None:
    first = [*islice(drawn(of_python, "7"), 100)]
    assert first == [*islice(drawn(reversed(of_python), "7"), 100)]
    assert len({*first} & {*islice(drawn(of_python, "8"), 100)}) < 20


def test_a_changed_source_leaves_the_order_of_others(of_python: list[Mutant]) -> None:
    changed = of_python[0].file
    others = [mutant for mutant in of_python if mutant.file != changed]
    assert [*drawn(others, "7")] == [mutant for mutant in drawn(of_python, "7") if mutant.file != changed]


def test_a_draw_has_one_mutant_of_a_text_and_no_equivalent(of_python: list[Mutant]) -> None:
    whole = [*drawn(of_python, "7")]
    assert len({(mutant.file, mutant.old) for mutant in whole}) == len(whole)
    listed = {(entry["file"], entry["old"], entry["new"]) for entry in equivalents()}
    assert listed.isdisjoint((mutant.file, mutant.old, mutant.new) for mutant in whole)


@pytest.mark.needs("npm-packages")
def test_every_equivalent_is_a_mutant_of_today_and_has_a_reason(
    of_python: list[Mutant], of_contracts: list[Mutant]
) -> None:
    known = {(mutant.file, mutant.old, mutant.new) for mutant in [*of_python, *of_contracts]}
    for entry in equivalents():
        assert (entry["file"], entry["old"], entry["new"]) in known
        assert entry["reason"].endswith(".")
