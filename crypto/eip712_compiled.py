"""Compile EIP-712 hash functions for the structs on hot paths.

For each struct type the module writes and compiles one straight-line Python function, as attrs and
dataclasses do for their methods: one `b"".join` of the members' words, with adjacent constants (type hash,
zero padding) merged at compile time, then one keccak. The function takes objects with one attribute per
member, in snake_case:

    uintN, intN -> int      address, bytesN, bytes -> bytes      bool -> bool      string -> str
    struct      -> object   T[], T[k]       -> sequence

Guarantees: integers out of their type's range and a wrong total length are refused with InvalidInput.
Not guaranteed: that two byte members of wrong lengths are found when their lengths make up for one another;
decoders check the length of every member.

Source: EIP-712; equal to eip712.Types by test.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..config.errors import InvalidInput
from .eip712 import EIP712_PREFIX, Members, Types, fixed_bytes, integer_bits, split_array
from .keccak import KECCAK_EMPTY, keccak256, typed_digest

_CAPITAL = re.compile(r"(?<=[a-z0-9])([A-Z])")


def attribute_name(member: str) -> str:
    """Convert a camelCase member name to its snake_case attribute name."""
    return _CAPITAL.sub(r"_\1", member).lower()


class CompiledStruct:
    """An EIP-712 struct type with its compiled hash function.

    Attributes:
        name: name of the struct type.
        structs: name -> members, this type first, then the types that it refers to.
        type_string: type string of EIP-712 (`encodeType`).
        type_hash: hash of the type string, 32 bytes.
        hash_struct: function from an object with the members as attributes to its 32-byte struct hash.
    """

    def __init__(self, name: str, structs: Mapping[str, Members]) -> None:
        types = Types(structs)
        self.name = name
        self.structs = dict(structs)
        self.type_string = types.encode_type(name)
        self.type_hash = types.type_hash(name)
        scope: dict[str, Any] = {
            "keccak256": keccak256,
            "KECCAK_EMPTY": KECCAK_EMPTY,
            "signed_word": _signed_word,
            "sized": _sized,
            "refused": _refused,
            "join": b"".join,
        }
        for struct in structs:
            source = _function_source(struct, structs[struct], types.type_hash(struct))
            exec(compile(source, f"<eip712 {struct}>", "exec"), scope)  # noqa: S102  the text is ours
        self._scope = scope
        self.hash_struct: Callable[[Any], bytes] = scope[f"hash_{name}"]

    def digest_for(self, domain_separator32: bytes) -> Callable[[Any], bytes]:
        """Make the function that computes a struct object's EIP-712 digest (32 bytes) under one domain."""
        source = (
            f"def digest(value):\n"
            f"{_encoding_source(self.structs[self.name], self.type_hash, self.name)}"
            f"    return typed_digest(encoded)\n"
        )
        scope = {**self._scope, "typed_digest": typed_digest(EIP712_PREFIX + domain_separator32)}
        exec(compile(source, f"<eip712 {self.name}>", "exec"), scope)  # noqa: S102  the text is ours
        digest: Callable[[Any], bytes] = scope["digest"]
        return digest

    def __repr__(self) -> str:
        return f"CompiledStruct({self.type_string})"


def _signed_word(number: int, bits: int) -> bytes:
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise OverflowError(f"int{bits} out of range")
    return number.to_bytes(32, "big", signed=True)


def _sized(items: Sequence[Any], length: int) -> Sequence[Any]:
    if len(items) != length:
        raise ValueError(f"an array of {length} has {len(items)} elements")
    return items


def _refused(struct: str, value: Any, error: Exception) -> InvalidInput:
    return InvalidInput(str(error), field=struct, expected="members of their types", got=type(value).__name__)


def _function_source(struct: str, members: Members, type_hash: bytes) -> str:
    """Write the Python source of the function `hash_<struct>(value)`, which hashes a struct of one type."""
    encoding = _encoding_source(members, type_hash, struct)
    return f"def hash_{struct}(value):\n{encoding}    return keccak256(encoded)\n"


def _encoding_source(members: Members, type_hash: bytes, struct: str) -> str:
    """Write Python source lines that set `encoded` to the type hash and one word per member of `value`."""
    pieces: list[str | bytes] = [type_hash]
    for member, type_name in members:
        for piece in _pieces(type_name, f"value.{attribute_name(member)}"):
            if isinstance(piece, bytes) and isinstance(pieces[-1], bytes):
                pieces[-1] += piece
            else:
                pieces.append(piece)
    return (
        f"    try:\n"
        f"        encoded = join(({_listed(pieces)},))\n"
        f"    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:\n"
        f"        raise refused({struct!r}, value, error) from None\n"
        f"    if len(encoded) != {32 * (1 + len(members))}:\n"
        f"        raise refused({struct!r}, value, ValueError('a member of bytes has a wrong length'))\n"
    )


def _pieces(type_name: str, value: str) -> list[str | bytes]:
    """List byte constants and Python expressions that, joined, give the 32-byte word of one struct member.

    Args:
        value: Python expression of the member's value.
    """
    integer, width = integer_bits(type_name), fixed_bytes(type_name)
    if integer is not None and not integer[0]:
        octets = integer[1] // 8
        padding: list[str | bytes] = [bytes(32 - octets)] if octets < 32 else []
        return [*padding, f"{value}.to_bytes({octets}, 'big')"]
    if type_name == "address":
        return [bytes(12), value]
    if width is not None:
        return [value, bytes(32 - width)] if width < 32 else [value]
    return [_word_expression(type_name, value)]


def _word_expression(type_name: str, value: str) -> str:
    array, integer = split_array(type_name), integer_bits(type_name)
    if array is not None:
        return _array_expression(*array, value)
    if integer is not None:
        return f"signed_word({value}, {integer[1]})"
    if type_name == "bool":
        return f"({bytes(31) + bytes([1])!r} if {value} else {bytes(32)!r})"
    if type_name == "bytes":
        return f"(keccak256({value}) if {value} else KECCAK_EMPTY)"
    if type_name == "string":
        return f"keccak256({value}.encode())"
    return f"hash_{type_name}({value})"


def _array_expression(element: str, length: int | None, value: str) -> str:
    items = value if length is None else f"sized({value}, {length})"
    return f"keccak256(join([join(({_listed(_pieces(element, 'item'))},)) for item in {items}]))"


def _listed(pieces: list[str | bytes]) -> str:
    return ", ".join(repr(piece) if isinstance(piece, bytes) else piece for piece in pieces)
