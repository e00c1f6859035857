"""All faults of one place each that the operators find in a Solidity source, by its syntax tree. Pure.

    compare     < and <=, > and >=, == and != change places
    condition   the test of an if, a loop, a conditional expression or a require is negated
    boolean     && and ||, true and false change places; a ! is dropped
    arithmetic  + and -, * and /, & and |, << and >> change places
    number      an integer is one more, or one less
    arguments   two arguments of a call that have the same type change places
    statement   a call, a require, a revert, an assignment, an event or a return is dropped
    assembly    instructions of the same shape change places, a number is one more, a statement is dropped

A fault stands in the body of a function or a modifier, or in the value of a constant. The arguments of a
revert and the words of a require have none, and neither has the bound of a choice that is the same on both
sides of it, such as `a < b ? a : b`. In assembly, neither has a place of no bytes, such as that of
`revert(0, 0)`, nor the size of an answer that goes to scratch memory, with room for a byte more.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from mutations.edits import Edit, as_edit

Node = dict[str, Any]
"""A node of the compiler's tree: `nodeType`, `src` as `start:length:file` in bytes, and members."""

_OPERATORS = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&",
    "+": "-", "-": "+", "*": "/", "/": "*", "%": "/", "&": "|", "|": "&", "<<": ">>", ">>": "<<",
}  # fmt: skip
_ORDERS = {"<", "<=", ">", ">="}
_ASSIGNED = {"+=": "-=", "-=": "+=", "|=": "&=", "&=": "|="}
_INSTRUCTIONS = {
    "gt": "lt", "lt": "gt", "and": "or", "or": "and", "add": "sub", "sub": "add", "shl": "shr", "shr": "shl",
}  # fmt: skip
_ASKED = {"IfStatement", "WhileStatement", "ForStatement", "Conditional"}
_DROPPED = {"ExpressionStatement", "RevertStatement", "EmitStatement", "Return"}
_DROPPED_INSTRUCTIONS = {"YulExpressionStatement", "YulAssignment"}
_EITHER_WAY = {"least", "most"}
"""Functions whose arguments are equal in rights."""
_BODIES = {"FunctionDefinition", "ModifierDefinition"}
_CALLS = {"call", "staticcall", "delegatecall"}
_SCRATCH_BYTES = 64
_NUMBER_MAX = 10_000  # a larger one is a mask or a sentinel
_NAMED_NUMBER = re.compile(r"[0-9][0-9_]*")


def contract_faults(source: str, tree: Node) -> list[Edit]:
    """Faults of a source, in its order.

    Args:
        tree: the compiler's syntax tree of the source.
    """
    faults = _Faults(source.encode())
    found = dict.fromkeys(faults.of(tree, False))
    return sorted(found, key=lambda edit: edit.start)


class _Faults:
    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._meeting: set[str] = set()  # sources of conditions whose bound makes no difference
        self._idle: set[str] = set()  # sources of numbers in assembly that make none

    def of(self, node: Node, is_body: bool) -> Iterator[Edit]:
        """Faults at a node and below; `is_body` says whether the node stands where code runs."""
        kind = node["nodeType"]
        if kind in _BODIES:
            if node.get("body"):
                yield from self.of(node["body"], True)
            return
        if kind == "VariableDeclaration" and not is_body:
            if node.get("constant") and node.get("value"):
                yield from self.of(node["value"], True)
            return
        if is_body:
            yield from self._at(node)
        if kind in ("RevertStatement", "PragmaDirective", "ImportDirective"):
            return
        for child in _children(node):
            yield from self.of(child, is_body)

    def _at(self, node: Node) -> Iterator[Edit]:
        """Faults of exactly this node."""
        kind = node["nodeType"]
        if kind == "Conditional" and self._meets(node):
            self._meeting.add(node["condition"]["src"])
        if kind == "BinaryOperation" and node["src"] not in self._meeting:
            yield from self._between(
                node["leftExpression"], node["rightExpression"], node["operator"], _OPERATORS
            )
        elif kind == "Assignment":
            yield from self._between(node["leftHandSide"], node["rightHandSide"], node["operator"], _ASSIGNED)
        elif kind == "UnaryOperation" and node["operator"] == "!":
            yield self._edit(node, self._text(node["subExpression"]))
        elif kind == "Literal":
            yield from self._of_literal(node)
        elif kind == "FunctionCall":
            yield from self._of_call(node)
        elif kind.startswith("Yul"):
            yield from self._of_assembly(node)
        if kind in _ASKED and node.get("condition"):
            yield from self._negated(node["condition"])
        if kind in _DROPPED and not (kind == "Return" and not node.get("expression")):
            yield from self._without(node)

    def _of_assembly(self, node: Node) -> Iterator[Edit]:
        kind = node["nodeType"]
        name = node["functionName"]["name"] if kind == "YulFunctionCall" else ""
        if name in _CALLS or name == "revert":
            self._idle.update(self._idle_of(node["arguments"], name))
        if kind in _DROPPED_INSTRUCTIONS:
            yield self._edit(node, "{}")
        elif node["src"] in self._idle:
            return
        elif kind == "YulLiteral" and node["kind"] == "number" and _NAMED_NUMBER.fullmatch(node["value"]):
            yield self._edit(node, str(int(node["value"]) + 1))
        elif name in _INSTRUCTIONS:
            yield self._edit(node["functionName"], _INSTRUCTIONS[name])
        elif name == "iszero":
            yield self._edit(node, f"gt({self._text(node['arguments'][0])}, 0)")

    def _idle_of(self, arguments: list[Node], name: str) -> Iterator[str]:
        """Sources of the numbers of a call or a revert that may be one more without a difference."""
        places = arguments[-4:] if name in _CALLS else arguments
        for place, size in zip(places[::2], places[1::2], strict=True):
            at, count = (int(each.get("value", "-1"), 0) for each in (place, size))
            if count == 0:
                yield place["src"]
            if name in _CALLS and size is arguments[-1] and at >= 0 and 0 <= count < _SCRATCH_BYTES - at:
                yield size["src"]

    def _meets(self, node: Node) -> bool:
        """Whether both results of a choice are the same where the compared numbers are."""
        condition = node["condition"]
        if condition["nodeType"] != "BinaryOperation" or condition["operator"] not in _ORDERS:
            return False
        left, right = self._text(condition["leftExpression"]), self._text(condition["rightExpression"])
        results = {self._text(node["trueExpression"]), self._text(node["falseExpression"])}
        return results in ({left, right}, {f"{left} - {right}", "0"}, {f"{right} - {left}", "0"})

    def _without(self, node: Node) -> Iterator[Edit]:
        """No statement in its place; the step of a loop, which has no semicolon, stays."""
        end = _end(node)
        if self._raw[end : end + 1] == b";":
            yield as_edit(self._raw, _start(node), end + 1, "{}")

    def _of_literal(self, node: Node) -> Iterator[Edit]:
        text = self._text(node)
        if node["kind"] == "bool":
            yield self._edit(node, "false" if text == "true" else "true")
        elif node["kind"] == "number" and _NAMED_NUMBER.fullmatch(text) and not node.get("subdenomination"):
            number = int(text)
            if number <= _NUMBER_MAX:
                yield self._edit(node, str(number + 1))
                if number > 0:
                    yield self._edit(node, str(number - 1))

    def _of_call(self, node: Node) -> Iterator[Edit]:
        arguments = node["arguments"]
        if node["expression"].get("name") == "require":
            yield from self._negated(arguments[0])
        is_either_way = node["expression"].get("memberName") in _EITHER_WAY
        if node["kind"] != "functionCall" or node["names"] or is_either_way:
            return
        for one, other in pairwise(arguments):
            if _type(one) == _type(other) and self._text(one) != self._text(other):
                between = self._raw[_end(one) : _start(other)].decode()
                swapped = f"{self._text(other)}{between}{self._text(one)}"
                yield as_edit(self._raw, _start(one), _end(other), swapped)

    def _negated(self, test: Node) -> Iterator[Edit]:
        """The opposite of a test, unless an operator or a `!` of its own changes already."""
        if test["nodeType"] == "UnaryOperation" or test.get("operator") in ("==", "!="):
            return
        yield self._edit(test, f"!({self._text(test)})")

    def _between(self, left: Node, right: Node, operator: str, table: dict[str, str]) -> Iterator[Edit]:
        if operator not in table:
            return
        begin = self._raw.index(operator.encode(), _end(left), _start(right))
        yield as_edit(self._raw, begin, begin + len(operator), table[operator])

    def _edit(self, node: Node, new: str) -> Edit:
        return as_edit(self._raw, _start(node), _end(node), new)

    def _text(self, node: Node) -> str:
        return self._raw[_start(node) : _end(node)].decode()


def _children(node: Node) -> Iterator[Node]:
    for value in node.values():
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, dict) and "nodeType" in child:
                yield child


def _type(node: Node) -> str:
    found: str = node["typeDescriptions"]["typeIdentifier"]
    return found


def _start(node: Node) -> int:
    return int(node["src"].split(":")[0])


def _end(node: Node) -> int:
    start, length, _ = node["src"].split(":")
    return int(start) + int(length)
