"""Join an EIP-712 struct type with the msgspec struct that holds its values.

A `TypedStruct` hashes such a struct, and converts it to and from its wire form:

    wire    camelCase JSON; integers as decimal strings, except the members in WIRE_NUMBERS; bytes as 0x
            text; addresses as 0x text with their checksums, the native placeholder in its accepted spelling
    struct  snake_case attributes; integers as int; bytes and addresses as bytes

Reading takes an integer as a decimal string or as a JSON integer, since client libraries differ. Reading
refuses a float, an exponent, a value out of the member's type, and a member that the type lacks; the error
names the member.
Source: interop.md section 2 (toSign); EIP-712.
"""

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

import msgspec

from ...config.errors import InvalidInput
from ...crypto.addresses import parse_address, to_checksum
from ...crypto.eip712 import Members, fixed_bytes, integer_bits, integer_range, split_array
from ...crypto.eip712_compiled import CompiledStruct, attribute_name
from ...crypto.hexadecimal import parse_hex, to_hex

WIRE_NUMBERS = frozenset(
    {"expiry", "deadline", "interval", "numSlices", "kind", "destinationChainId", "scalingFactor"}
)

_INTEGER_CHARS_MAX = 80

S = TypeVar("S", bound=msgspec.Struct)


def members_of(text: str) -> Members:
    """Parse the members of a struct, e.g. "address owner,uint256 nonce", to (name, type) pairs."""
    pairs = (member.split(" ") for member in text.split(","))
    return tuple((name, type_name) for type_name, name in pairs)


class TypedStruct(Generic[S]):
    """An EIP-712 struct type together with the Python struct that holds its values.

    Args:
        name: the EIP-712 struct name.
        members: the struct's members as Solidity text, e.g. "address owner,uint256 nonce".
        cls: the Python struct; its fields are the members in snake_case, in order.
        inner: the other struct types that `members` refer to.

    Attributes:
        compiled: hash functions for instances of `cls`.
        wire_types: struct name -> members, as in `toSign.types` without EIP712Domain.
        member_names: names of the members.
    """

    def __init__(
        self, name: str, members: str, cls: type[S], inner: tuple["TypedStruct[Any]", ...] = ()
    ) -> None:
        self.name = name
        self.cls = cls
        self._members = members_of(members)
        self._inner = {struct.name: struct for struct in inner}
        structs = {name: self._members} | {struct.name: struct._members for struct in inner}
        self.compiled = CompiledStruct(name, structs)
        self.wire_types: dict[str, list[dict[str, str]]] = {
            struct: [{"name": member, "type": type_name} for member, type_name in pairs]
            for struct, pairs in structs.items()
        }
        attributes = tuple(attribute_name(member) for member, _ in self._members)
        if attributes != cls.__struct_fields__:
            raise TypeError(f"{cls.__name__} does not have the members of {name}, in order")
        self.member_names = frozenset(member for member, _ in self._members)
        self._writers = tuple(
            (member, attribute, self._writer(member, type_name))
            for (member, type_name), attribute in zip(self._members, attributes, strict=True)
        )
        self._readers = tuple(
            (member, self._inner[type_name].from_wire if type_name in self._inner else _reader(type_name))
            for member, type_name in self._members
        )

    def _writer(self, member: str, type_name: str) -> Callable[[Any], Any]:
        if type_name in self._inner:
            return self._inner[type_name].to_wire
        if integer_bits(type_name):
            return int if member in WIRE_NUMBERS else str
        if split_array(type_name):
            return list
        if type_name == "bool":
            return bool
        return to_checksum if type_name == "address" else to_hex

    def to_wire(self, value: S) -> dict[str, Any]:
        """Convert a struct to its JSON object, members in the type's order."""
        return {member: write(getattr(value, attribute)) for member, attribute, write in self._writers}

    def from_wire(self, wire: object, field: str = "order") -> S:
        """Convert a JSON object to the struct.

        Args:
            wire: decoded JSON.
            field: path of `wire` in its document, for errors.

        Raises:
            InvalidInput: names the member at fault.
        """
        if not isinstance(wire, Mapping):
            raise InvalidInput(field=field, expected=f"an object ({self.name})", got=wire)
        unknown = wire.keys() - self.member_names
        if unknown:
            raise InvalidInput(
                field=f"{field}.{min(map(str, unknown))}", expected=f"no member of {self.name}"
            )
        try:
            return self.cls(*[read(wire[member], member) for member, read in self._readers])
        except (InvalidInput, KeyError):
            return self._faulty(wire, field)

    def _faulty(self, wire: Mapping[Any, object], field: str) -> S:
        """Repeat a conversion that failed in `from_wire`, to raise an error with the member's full path."""
        values: list[Any] = []
        for member, read in self._readers:
            path = f"{field}.{member}"
            if member not in wire:
                raise InvalidInput(field=path, expected=f"to be given ({self.name})", got="nothing")
            values.append(read(wire[member], path))
        return self.cls(*values)


def _reader(type_name: str) -> Callable[[object, str], Any]:
    """Make the function (wire value, path) -> Python value for an atomic type or for string[]."""
    integer, width = integer_bits(type_name), fixed_bytes(type_name)
    if integer is not None:
        return _integer_reader(type_name, *integer)
    if type_name == "address":
        return parse_address
    if type_name == "bool":
        return _read_bool
    if split_array(type_name):
        return _read_texts
    return _bytes_reader(type_name, width)


def _integer_reader(type_name: str, signed: bool, bits: int) -> Callable[[object, str], int]:  # noqa: FBT001
    low, high = integer_range(signed, bits)

    def read(value: object, field: str) -> int:
        number: int | None = None
        if type(value) is int:
            number = value
        elif isinstance(value, str) and len(value) <= _INTEGER_CHARS_MAX:
            digits = value[1:] if signed and value.startswith("-") else value
            if digits.isdigit() and digits.isascii():
                number = int(value)
        if number is None or not low <= number <= high:
            raise InvalidInput(
                field=field, expected=f"{type_name} as a decimal string or an integer", got=value
            )
        return number

    return read


def _bytes_reader(type_name: str, width: int | None) -> Callable[[object, str], bytes]:
    digits = "hexadecimal digits" if width is None else f"{2 * width} hexadecimal digits"
    expected = f"{type_name}: 0x and {digits}"

    def read(value: object, field: str) -> bytes:
        raw = parse_hex(value, field, expected)
        if width is not None and len(raw) != width:
            raise InvalidInput(field=field, expected=expected, got=value)
        return raw

    return read


def _read_bool(value: object, field: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(field=field, expected="true or false", got=value)
    return value


def _read_texts(value: object, field: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise InvalidInput(field=field, expected="an array of strings", got=value)
    try:
        "".join(value).encode()
    except UnicodeEncodeError:
        raise InvalidInput("a string holds a lone surrogate", field=field, expected="texts") from None
    return tuple(value)
