"""The ABI's encoding of arguments as its specification defines it, type by type, to compare others with.

    plain_abi(["uint256", "bytes[]"], [5, [b"a", b""]])

Structs are given as structs or sequences, addresses as 20 bytes.

Source: Solidity documentation, "Contract ABI Specification", "Formal Specification of the Encoding".
"""

from collections.abc import Sequence
from typing import Any

import msgspec


def plain_abi(types: Sequence[str], values: Sequence[Any]) -> bytes:
    """Arguments of a call after its selector, or the members of a struct."""
    bodies = [_encoded(kind, value) for kind, value in zip(types, values, strict=True)]
    heads_size = sum(32 if _is_dynamic(kind) else len(body) for kind, body in zip(types, bodies, strict=True))
    heads, tails = b"", b""
    for kind, body in zip(types, bodies, strict=True):
        if _is_dynamic(kind):
            heads += _word(heads_size + len(tails))
            tails += body
        else:
            heads += body
    return heads + tails


def _encoded(kind: str, value: Any) -> bytes:
    if kind.endswith("]"):
        element, _, length = kind[:-1].rpartition("[")
        body = plain_abi([element] * len(value), value)
        return body if length else _word(len(value)) + body
    if kind.startswith("("):
        members = msgspec.structs.astuple(value) if isinstance(value, msgspec.Struct) else value
        return plain_abi(_members(kind), members)
    if kind in ("bytes", "string"):
        padded: bytes = value + bytes(-len(value) % 32)
        return _word(len(value)) + padded
    if kind == "address":
        return bytes(12) + bytes(value)
    return bytes(value) + bytes(32 - len(value)) if kind.startswith("bytes") else _word(value)


def _is_dynamic(kind: str) -> bool:
    if kind.endswith("]"):
        element, _, length = kind[:-1].rpartition("[")
        return not length or _is_dynamic(element)
    return any(map(_is_dynamic, _members(kind))) if kind.startswith("(") else kind in ("bytes", "string")


def _members(kind: str) -> list[str]:
    """Types of a struct's members, `(a,(b,c)[])` -> `a`, `(b,c)[]`."""
    found, depth = [""], 0
    for sign in kind[1:-1]:
        depth += (sign == "(") - (sign == ")")
        if sign == "," and not depth:
            found.append("")
        else:
            found[-1] += sign
    return found


def _word(number: int) -> bytes:
    return (number % 2**256).to_bytes(32, "big")
