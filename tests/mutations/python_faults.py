"""All faults of one place each that the operators find in a Python source. Pure.

    compare     < and <=, > and >=, == and !=, is and is not, in and not in change places
    condition   the test of an if, a while, a conditional expression or a comprehension is negated
    boolean     and and or, True and False change places
    arithmetic  + and -, * and //, | and &, << and >> change places; a minus in front is dropped
    number      an integer is one more, or one less
    choice      min and max, a rounding up and a rounding down change places
    arguments   two arguments of a call, both plain names, change places
    statement   a call, an assignment to a member, a raise, a continue or a break is dropped; an assignment
                in a constructor stays, since any use of the object fails without it

A fault stands in the body of a function. Annotations, decorators, defaults, log lines, assertions (the
`strict` of a zip is one), members of errors, formatted texts and values that only these show have none.
Functions that only describe (`__repr__`, `statistics`) have none, and neither have counters that only these
read, turns of the event loop (`checkpoint`) and the tests whether one is due, nor the bound of a choice that
is the same on both sides of it, such as `a if a < b else b`.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from mutations.edits import Edit, as_edit

_COMPARED: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
_JOINED: dict[type[ast.boolop], tuple[str, str]] = {ast.And: ("and", "or"), ast.Or: ("or", "and")}
_ASKING = (ast.If, ast.While, ast.IfExp)
_DROPPED = (ast.AugAssign, ast.Raise, ast.Continue, ast.Break, ast.Delete)
_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_COMPUTED: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "//"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "//"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
}
_CHOSEN = {"min": "max", "max": "min", "any": "all", "all": "any"}
_CHOSEN |= {"div_up": "div_down", "div_down": "div_up"}
_CHOSEN |= {"mul_div_up": "mul_div_down", "mul_div_down": "mul_div_up"}
_TEXTS = (ast.JoinedStr, ast.List, ast.Tuple, ast.ListComp)
_DESCRIBING = {"__repr__", "__str__", "statistics"}
_SILENT = {"_log", "log", "lowlevel"}
"""Owners of calls that change no outcome: log lines, and `trio.lowlevel.checkpoint`."""
_PRODUCTS = {"mul_div_up", "mul_div_down"}
"""Functions whose first two arguments are factors."""
_NUMBER_MAX = 10_000  # a larger one is a sentinel or a bound
_PLAIN = (ast.Name, ast.Attribute)
_NO_ARGUMENTS = {"isinstance", "issubclass", "cast"}
_NO_ARGUMENTS |= {"min", "max", "compare_digest", "between", "pair_version", "barred"}  # equal in rights


def python_faults(source: str) -> list[Edit]:
    """Faults of a source, in its order; each one compiles."""
    found = dict.fromkeys(_Faults(source).of(ast.parse(source), False))
    return sorted(found, key=lambda edit: edit.start)


class _Faults:
    """Walk over a source; offsets are bytes of its UTF-8."""

    def __init__(self, source: str) -> None:
        self._raw = source.encode()
        self._lines = [0]
        for line in self._raw.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))
        self._kept: set[ast.AST] = set()
        self._worded: set[ast.AST] = set()
        self._counters: set[str] = set()
        self._meeting: set[ast.AST] = set()  # conditions whose bound makes no difference

    def of(self, node: ast.AST, is_body: bool) -> Iterator[Edit]:
        """Faults at a node and below; `is_body` says whether the node stands in the body of a function."""
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self._worded |= _worded(node)
            if node.name == "__init__":
                self._kept.update(ast.walk(node))
            if node.name not in _DESCRIBING:
                yield from self._of_all(node.body, True)
            return
        if isinstance(node, ast.ClassDef):
            self._counters.update(_counters(node))
        is_counter = isinstance(node, ast.AugAssign) and ast.unparse(node.target) in self._counters
        if is_counter or _is_silent(node) or node in self._worded:
            return
        if is_body:
            yield from self._at(node)
        if isinstance(node, ast.Raise):
            return  # below it are the members of an error
        if isinstance(node, ast.AnnAssign):
            yield from self._of_all([node.value] if node.value is not None else [], is_body)
        else:
            yield from self._of_all(ast.iter_child_nodes(node), is_body)

    def _of_all(self, nodes: Iterable[ast.AST], is_body: bool) -> Iterator[Edit]:
        for node in nodes:
            yield from self.of(node, is_body)

    def _at(self, node: ast.AST) -> Iterator[Edit]:
        """Faults of exactly this node."""
        if isinstance(node, ast.IfExp) and _meets(node):
            self._meeting.add(node.test)
        if isinstance(node, ast.stmt):
            if isinstance(node, _DROPPED) or _is_dropped(node, node in self._kept):
                yield self._edit(node, "pass")
        elif isinstance(node, ast.Constant):
            yield from self._of_constant(node)
        elif isinstance(node, ast.Call):
            yield from self._of_call(node.func, node.args)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            yield self._edit(node, f"({self._text(node.operand)})")
        else:
            yield from self._of_operators(node)
        tests = [node.test] if isinstance(node, _ASKING) else getattr(node, "ifs", [])
        for test in tests:
            yield from self._negated(test)

    def _of_operators(self, node: ast.AST) -> Iterator[Edit]:
        match node:
            case ast.Compare() if node in self._meeting:
                return
            case ast.Compare(left=left, ops=ops, comparators=others):
                for (before, after), operator in zip(pairwise([left, *others]), ops, strict=True):
                    yield from self._between(before, after, *_COMPARED[type(operator)])
            case ast.BoolOp(op=operator, values=values):
                for before, after in pairwise(values):
                    yield from self._between(before, after, *_JOINED[type(operator)])
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _COMPUTED:
                if not (_is_text(left) or _is_text(right)):
                    yield from self._between(left, right, *_COMPUTED[type(operator)])
            case _:
                pass

    def _of_constant(self, node: ast.Constant) -> Iterator[Edit]:
        value = node.value
        if isinstance(value, bool):
            yield self._edit(node, str(not value))
        elif isinstance(value, int) and value <= _NUMBER_MAX:
            yield self._edit(node, str(value + 1))
            if value > 0:
                yield self._edit(node, str(value - 1))

    def _of_call(self, function: ast.expr, arguments: list[ast.expr]) -> Iterator[Edit]:
        name = getattr(function, "id", getattr(function, "attr", ""))
        if isinstance(function, ast.Name) and name in _CHOSEN:
            yield self._edit(function, _CHOSEN[name])
        if name in _NO_ARGUMENTS:
            return
        for one, other in pairwise(arguments[name in _PRODUCTS :]):
            is_plain = isinstance(one, _PLAIN) and isinstance(other, _PLAIN)
            if is_plain and self._text(one) != self._text(other):
                between = self._raw[self._end(one) : self._start(other)].decode()
                swapped = f"{self._text(other)}{between}{self._text(one)}"
                yield as_edit(self._raw, self._start(one), self._end(other), swapped)

    def _negated(self, test: ast.expr) -> Iterator[Edit]:
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            yield self._edit(test, f"({self._text(test.operand)})")
        elif isinstance(test, ast.Compare) and not isinstance(test.ops[0], _ORDERS):
            return  # its operator changes
        elif not (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"):
            yield self._edit(test, f"(not ({self._text(test)}))")

    def _between(self, before: ast.expr, after: ast.expr, old: str, new: str) -> Iterator[Edit]:
        """The operator between two operands in another one's place."""
        begin, end = self._end(before), self._start(after)
        words = r"\s+".join(map(re.escape, old.split())).encode()
        edge = rb"\b" if old[0].isalpha() else b""
        if (found := re.search(edge + words + edge, self._raw[begin:end])) is not None:
            yield as_edit(self._raw, begin + found.start(), begin + found.end(), new)

    def _edit(self, node: ast.expr | ast.stmt, new: str) -> Edit:
        return as_edit(self._raw, self._start(node), self._end(node), new)

    def _text(self, node: ast.expr) -> str:
        return self._raw[self._start(node) : self._end(node)].decode()

    def _start(self, node: ast.expr | ast.stmt) -> int:
        return self._lines[node.lineno - 1] + node.col_offset

    def _end(self, node: ast.expr | ast.stmt) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._lines[node.end_lineno - 1] + node.end_col_offset


def _is_text(node: ast.expr) -> bool:
    """Whether an operand is no number as it stands; a `-` of it fails at once."""
    return isinstance(node, _TEXTS) or (isinstance(node, ast.Constant) and not isinstance(node.value, int))


def _is_dropped(node: ast.stmt, is_kept: bool) -> bool:
    """Whether a statement is a call, or an assignment to a member that is not kept."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call | ast.Await)
    is_of_member = isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute | ast.Subscript)
    return is_of_member and not is_kept


def _meets(node: ast.IfExp) -> bool:
    """Whether both results of a choice are the same where the compared numbers are."""
    if not isinstance(node.test, ast.Compare) or not isinstance(node.test.ops[0], _ORDERS):
        return False
    left, right = ast.unparse(node.test.left), ast.unparse(node.test.comparators[0])
    results = {ast.unparse(node.body), ast.unparse(node.orelse)}
    return results in ({left, right}, {f"{left} - {right}", "0"}, {f"{right} - {left}", "0"})


def _counters(owner: ast.ClassDef) -> set[str]:
    """Members of a class, as `self.name`, that only functions that describe it read."""
    read: dict[bool, set[str]] = {True: set(), False: set()}
    for function in owner.body:
        is_describing = getattr(function, "name", "") in _DESCRIBING
        for node in ast.walk(function):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                read[is_describing].add(ast.unparse(node))
    return {name for name in read[True] - read[False] if name.startswith("self.")}


def _worded(function: ast.AST) -> set[ast.AST]:
    """Assignments in a function to names that only errors, texts, silent nodes and such assignments read."""
    assigned: dict[ast.AST, str] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign | ast.AugAssign):
            target = node.target if isinstance(node, ast.AugAssign) else node.targets[0]
            if isinstance(target, ast.Name):
                assigned[node] = target.id
    reads = [node for node in ast.walk(function) if isinstance(node, ast.Name) and not _is_stored(node)]
    silent = {node for node in ast.walk(function) if isinstance(node, ast.Raise) or _is_silent(node)}
    found: set[ast.AST] = set()
    while True:
        below = {inner for node in silent | found for inner in ast.walk(node)}
        told = {node.id for node in reads if node in below} - {node.id for node in reads if node not in below}
        more: set[ast.AST] = {node for node, name in assigned.items() if name in told}
        if more == found:
            return found
        found = more


def _is_stored(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store | ast.Del)


def _is_silent(node: ast.AST) -> bool:
    """Whether a node is an assertion, a formatted text, a log line, or a turn of the event loop.

    A test of which the only outcome is such a node is silent too.
    """
    if isinstance(node, ast.Assert | ast.JoinedStr):
        return True
    if isinstance(node, ast.keyword):
        return node.arg == "strict"
    if isinstance(node, ast.If) and not node.orelse:
        return all(map(_is_silent, node.body))
    call = node.value if isinstance(node, ast.Expr) else node
    call = call.value if isinstance(call, ast.Await) else call
    function = call.func if isinstance(call, ast.Call) else None
    owner = function.value if isinstance(function, ast.Attribute) else None
    name = owner.id if isinstance(owner, ast.Name) else owner.attr if isinstance(owner, ast.Attribute) else ""
    return name in _SILENT
