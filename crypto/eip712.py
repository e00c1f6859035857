"""Hash any EIP-712 typed data: struct types as data, values as JSON gives them.

This is the general form, for documents as wallets exchange them. Structs that are hashed by the thousand have
a compiled form of the same definition (eip712_compiled); tests hold the two equal.

    type_hash        = keccak(encode_type)          e.g. "Mail(Person from,string text)Person(string name)"
    hash_struct      = keccak(type_hash || one 32-byte word per member)
    domain_separator = hash_struct("EIP712Domain", domain)
    digest32         = keccak(0x19 0x01 || domain_separator || hash_struct(message))

Values: integers as JSON integers, decimal strings or 0x strings; bytes as 0x strings, of exactly N bytes for
bytesN; addresses checked by `checked_address`; a null struct is 32 zero bytes, which is how a recursive
type ends. Members that the type does not name are ignored, as wallets do. All other values are refused; the
error names the path.
Choice: `uint` and `int` are refused, as EIP-712 has no aliases. A struct name holds any character that type
    syntax does not use: deployed names contain a colon.

Source: EIP-712.
"""

import re
from collections.abc import Mapping, Sequence

from ..config import limits
from ..config.errors import InvalidInput
from .addresses import checked_address
from .hexadecimal import HEX_EXPECTED, parse_hex
from .keccak import keccak256

EIP712_PREFIX = b"\x19\x01"
DOMAIN_TYPE = "EIP712Domain"
DOMAIN_MEMBERS: tuple[tuple[str, str], ...] = (
    ("name", "string"),
    ("version", "string"),
    ("chainId", "uint256"),
    ("verifyingContract", "address"),
    ("salt", "bytes32"),
)
NULL_STRUCT_HASH = bytes(32)

Members = tuple[tuple[str, str], ...]
"""(name, type) pairs of a struct type, in order."""

_NAME = re.compile(r"[^\s()\[\],\ud800-\udfff]{1,128}\Z")
_ARRAY = re.compile(r"(.+)\[([0-9]{0,9})\]\Z")
_INTEGER = re.compile(r"(u?)int([0-9]{1,3})\Z")
_FIXED_BYTES = re.compile(r"bytes([0-9]{1,2})\Z")
_DECIMAL_TEXT = re.compile(r"-?[0-9]{1,78}\Z")
_HEX_TEXT = re.compile(r"0[xX][0-9a-fA-F]{1,64}\Z")


def split_array(type_name: str) -> tuple[str, int | None] | None:
    """Split the last pair of brackets off an EIP-712 array type.

    Returns:
        (element type, fixed length or None); None for a type that is no array.
    """
    match = _ARRAY.match(type_name)
    if not match:
        return None
    return match[1], int(match[2]) if match[2] else None


def integer_bits(type_name: str) -> tuple[bool, int] | None:
    """Parse an EIP-712 integer type such as `uint256`; the width is 8 to 256 bits, in whole bytes.

    Returns:
        (is signed, number of bits); None for any other type.
    """
    match = _INTEGER.match(type_name)
    if not match or match[2].startswith("0") or int(match[2]) % 8 or int(match[2]) > 256:
        return None
    return not match[1], int(match[2])


def integer_range(signed: bool, bits: int) -> tuple[int, int]:  # noqa: FBT001
    """Least and greatest value of an integer type."""
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)


def fixed_bytes(type_name: str) -> int | None:
    """Parse a type such as `bytes32` to its number of bytes, 1 to 32; None for any other type."""
    match = _FIXED_BYTES.match(type_name)
    if not match or match[1].startswith("0") or int(match[1]) > 32:
        return None
    return int(match[1])


def is_atomic(type_name: str) -> bool:
    """Whether a type is an atomic or dynamic type of EIP-712: neither struct nor array."""
    return (
        type_name in ("address", "bool", "string", "bytes")
        or integer_bits(type_name) is not None
        or fixed_bytes(type_name) is not None
    )


def element_type(type_name: str) -> str:
    """Strip all array brackets from an EIP-712 type: `uint256[2][]` gives `uint256`.

    Raises:
        InvalidInput: TYPED_DATA_DEPTH_MAX pairs of brackets or more.
    """
    for _ in range(limits.TYPED_DATA_DEPTH_MAX):
        array = split_array(type_name)
        if array is None:
            return type_name
        type_name = array[0]
    raise InvalidInput(
        field="types", expected=f"at most {limits.TYPED_DATA_DEPTH_MAX} arrays in one another", got=type_name
    )


class Types:
    """A closed set of EIP-712 struct types, checked once, with their type hashes.

    Args:
        structs: struct name -> members. The type of a member is atomic, a struct of the set, or an array of
            either.

    Raises:
        InvalidInput: a name is malformed, given twice, or that of an atomic type; a type is unknown; or the
            structs have more than TYPED_DATA_MEMBERS_MAX members together.
    """

    def __init__(self, structs: Mapping[str, Members]) -> None:
        self._structs = dict(structs)
        if sum(map(len, self._structs.values())) > limits.TYPED_DATA_MEMBERS_MAX:
            raise InvalidInput(field="types", expected=f"at most {limits.TYPED_DATA_MEMBERS_MAX} members")
        self._referenced: dict[str, tuple[str, ...]] = {
            name: self._references(name, members) for name, members in self._structs.items()
        }
        self._type_hashes: dict[str, bytes] = {}

    def _references(self, name: str, members: Members) -> tuple[str, ...]:
        if not _NAME.match(name) or is_atomic(name) or name in ("uint", "int"):
            raise InvalidInput(field="types", expected="a struct name", got=name)
        seen: set[str] = set()
        inner: list[str] = []
        for member, type_name in members:
            field = f"types.{name}"
            if not _NAME.match(member) or member in seen:
                raise InvalidInput(field=field, expected="members with names of their own", got=member)
            seen.add(member)
            element = element_type(type_name)
            if element in self._structs:
                inner.append(element)
            elif not is_atomic(element):
                raise InvalidInput(field=f"{field}.{member}", expected="a known type", got=type_name)
        return tuple(inner)

    def members(self, name: str) -> Members:
        """List the members of a struct type as (name, type) pairs.

        Raises:
            InvalidInput: the set has no such type.
        """
        try:
            return self._structs[name]
        except KeyError:
            raise InvalidInput(field="primaryType", expected="a type of `types`", got=name) from None

    def primary_type(self) -> str:
        """Find the only struct type that no other type refers to, apart from the domain's own type.

        Raises:
            InvalidInput: no type or several types are unreferenced.
        """
        used = {
            inner for name, referenced in self._referenced.items() for inner in referenced if inner != name
        }
        free = [name for name in self._structs if name not in used and name != DOMAIN_TYPE]
        if len(free) != 1:
            raise InvalidInput(
                field="primaryType",
                expected="to be given, since not exactly one type is unreferenced",
                got=", ".join(free) or "none",
            )
        return free[0]

    def encode_type(self, name: str) -> str:
        """Make the EIP-712 type string: the struct, then the types that it refers to, sorted by name."""
        self.members(name)
        found, todo = {name}, [name]
        while todo:
            for inner in self._referenced[todo.pop()]:
                if inner not in found:
                    found.add(inner)
                    todo.append(inner)
        ordered = [name, *sorted(found - {name})]
        return "".join(
            f"{struct}({','.join(f'{type_name} {member}' for member, type_name in self._structs[struct])})"
            for struct in ordered
        )

    def type_hash(self, name: str) -> bytes:
        """Keccak-256 of a struct type's type string (`encode_type`), cached."""
        known = self._type_hashes.get(name)
        if known is None:
            known = self._type_hashes[name] = keccak256(self.encode_type(name).encode())
        return known

    def hash_struct(self, name: str, value: object, field: str = "message") -> bytes:
        """Hash a value in JSON form: `hash_struct` of EIP-712.

        Args:
            name: the struct type.
            value: mapping from the name of each member to the member's value.
            field: path of the value, for errors.

        Raises:
            InvalidInput: names the path, the expected type and the received value.
        """
        return _Walk(self).struct(name, value, field, 0)


class _Walk:
    """Computation of one value's struct hash, which refuses a value with too many or too deep parts."""

    def __init__(self, types: Types) -> None:
        self._types = types
        self._values_left = limits.TYPED_DATA_VALUES_MAX

    def struct(self, name: str, value: object, path: str, depth: int) -> bytes:
        if depth > limits.TYPED_DATA_DEPTH_MAX:
            raise InvalidInput(
                field=path, expected=f"at most {limits.TYPED_DATA_DEPTH_MAX} values in one another"
            )
        if not isinstance(value, Mapping):
            raise InvalidInput(field=path, expected=f"an object ({name})", got=value)
        words = [self._types.type_hash(name)]
        for member, type_name in self._types.members(name):
            if member not in value:
                raise InvalidInput(field=f"{path}.{member}", expected=type_name, got="nothing")
            words.append(self._word(type_name, value[member], f"{path}.{member}", depth + 1))
        return keccak256(b"".join(words))

    def _word(self, type_name: str, value: object, path: str, depth: int) -> bytes:
        self._values_left -= 1
        if self._values_left < 0:
            raise InvalidInput(field=path, expected=f"at most {limits.TYPED_DATA_VALUES_MAX} values in all")
        array = split_array(type_name)
        if array is not None:
            return self._array(array, value, path, depth)
        if is_atomic(type_name):
            return atomic_word(type_name, value, path)
        return NULL_STRUCT_HASH if value is None else self.struct(type_name, value, path, depth)

    def _array(self, array: tuple[str, int | None], value: object, path: str, depth: int) -> bytes:
        element, length = array
        if isinstance(value, str | bytes) or not isinstance(value, Sequence):
            raise InvalidInput(field=path, expected=f"an array of {element}", got=value)
        if length is not None and len(value) != length:
            raise InvalidInput(field=path, expected=f"{length} elements", got=len(value))
        return keccak256(
            b"".join(self._word(element, item, f"{path}[{at}]", depth + 1) for at, item in enumerate(value))
        )


def atomic_word(type_name: str, value: object, path: str) -> bytes:
    """Encode a value of an atomic or dynamic type as its 32-byte word.

    Raises:
        InvalidInput: the value is not of the type.
    """
    integer = integer_bits(type_name)
    if integer is not None:
        return _integer_word(type_name, *integer, value, path)
    if type_name == "address":
        return checked_address(value, path).rjust(32, b"\0")
    if type_name == "bool":
        if not isinstance(value, bool):
            raise InvalidInput(field=path, expected="true or false", got=value)
        return value.to_bytes(32, "big")
    if type_name == "string":
        return keccak256(_utf8(value, path))
    raw = parse_hex(value, path, f"{type_name}: {HEX_EXPECTED}")
    width = fixed_bytes(type_name)
    if width is None:
        return keccak256(raw)
    if len(raw) != width:
        raise InvalidInput(field=path, expected=f"{width} bytes ({type_name})", got=value)
    return raw.ljust(32, b"\0")


def _integer_word(type_name: str, signed: bool, bits: int, value: object, path: str) -> bytes:  # noqa: FBT001
    number: int | None = None
    if isinstance(value, int) and not isinstance(value, bool):
        number = value
    elif isinstance(value, str) and _DECIMAL_TEXT.match(value):
        number = int(value)
    elif isinstance(value, str) and _HEX_TEXT.match(value):
        number = int(value, 16)
    if number is None:
        raise InvalidInput(
            field=path, expected=f"{type_name}: an integer, or a decimal or 0x string", got=value
        )
    low, high = integer_range(signed, bits)
    if not low <= number <= high:
        raise InvalidInput(field=path, expected=f"{type_name}: {low} to {high}", got=value)
    return number.to_bytes(32, "big", signed=signed)


def _utf8(value: object, path: str) -> bytes:
    if isinstance(value, str):
        try:
            return value.encode()
        except UnicodeEncodeError:
            raise InvalidInput("the string holds a lone surrogate", field=path, expected="text") from None
    raise InvalidInput(field=path, expected="a string", got=value)


def domain_members(domain: Mapping[str, object]) -> Members:
    """Members of the type EIP712Domain for the keys that `domain` has, in the order of EIP-712.

    Raises:
        InvalidInput: a key is no domain member of the EIP.
    """
    known = dict(DOMAIN_MEMBERS)
    for key in domain:
        if key not in known:
            raise InvalidInput(field="domain", expected=f"only {', '.join(known)}", got=key)
    return tuple((name, type_name) for name, type_name in DOMAIN_MEMBERS if name in domain)


def domain_separator(domain: Mapping[str, object]) -> bytes:
    """Compute the separator of a domain with any of name, version, chainId, verifyingContract and salt.

    Raises:
        InvalidInput: a key is no domain member of the EIP, or a value is not of its type.
    """
    return Types({DOMAIN_TYPE: domain_members(domain)}).hash_struct(DOMAIN_TYPE, domain, "domain")


def signing_digest(domain_separator32: bytes, struct_hash32: bytes) -> bytes:
    """Compute the 32-byte digest that a wallet signs."""
    return keccak256(EIP712_PREFIX + domain_separator32 + struct_hash32)
