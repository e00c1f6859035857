"""Decode and encode JSON as typed messages: one decoder per message type, one encoder for all.

`decoder(kind, bytes_max=...)` makes a function that turns bytes into a `kind` or raises `InvalidInput` and no
other error. Rules of msgspec itself and rules added here (measured on msgspec 0.22):

    refused by msgspec: lone surrogate escapes (skipped values included), NaN and Infinity, `01`, `1.`,
        control characters in strings, BOM, UTF-16, trailing text, an empty body; for an integer field
        `1.0`, `1e3`, `true`, `"1"` and a number of over 4300 digits (refused within microseconds);
        nesting beyond the interpreter's own limit, in skipped values too: about a thousand levels, and from
        Python 3.14 on what the C stack holds
    refused here: a body above `bytes_max`, invalid UTF-8 anywhere (msgspec does not check skipped values and
        `Raw`); with `unique_keys` an object anywhere that has a key twice
    accepted without `unique_keys`: a repeated key; its last value counts, as in every browser. A body that is
        compared or sealed goes through `canonical_json`, which refuses repetitions.

Exactness: a JSON number with a fraction becomes a `Decimal`, never a float, in untyped places too, and a
`Decimal` is written back as a JSON number with the same digits (its `str`: 1E-18 for a very small one).
A `Decimal` field also takes a string of digits (msgspec offers no way to forbid it); `check_number` keeps
NaN and giant exponents out.

Encoder and decoders hold no state between calls and may be shared by threads (msgspec since 0.16).

Choice: A key given twice in one object of a POST body is refused on trading endpoints, since two readers
    would see two requests. Bodies of makers and agents are read as browsers read them.
Choice: Integers are at most 2^53 - 1, which every JSON reader and every store column keeps exactly.
"""

import json
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, TypeVar

import msgspec

from ...config.errors import InvalidInput
from ...config.limits import DECIMAL_FRACTION_DIGITS_MAX, DECIMAL_WHOLE_DIGITS_MAX, JSON_VALUES_MAX
from .dialects import dialect_mender

T = TypeVar("T")

_MALFORMED = {
    "Input data was truncated": "the JSON ends too early, or a string holds half of a surrogate pair"
}
_EXPECTED_GOT = re.compile(r"Expected (?P<expected>.+), got (?P<got>.+)", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(?P<name>[^`]+)`")
_NOT_IN_ENUM = re.compile(r"Invalid enum value (?P<got>.+)", re.DOTALL)
_STEP = re.compile(r"\.([A-Za-z_][A-Za-z0-9_]*)|\[(\d+|\.\.\.)\]")
_KIND = re.compile(r"`([^`]+)`")
_KIND_NAMES = {
    "int": "an integer",
    "str": "a string",
    "bool": "a boolean",
    "float": "a number with a fraction or exponent",
    "decimal": "a number",
    "null": "null",
    "array": "an array",
    "object": "an object",
}


class _Described(str):
    """A description of the received value, which errors show without the quotes of a literal value."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def decoder(
    kind: type[T], *, bytes_max: int, unique_keys: bool = False, tolerant: bool = False
) -> Callable[[bytes], T]:
    """Make the function that decodes JSON documents of one type.

    Args:
        kind: a msgspec Struct, or any type msgspec decodes.
        bytes_max: longest accepted document, in bytes.
        unique_keys: refuse an object that has a key twice, and more than JSON_VALUES_MAX values.
        tolerant: take the forms of `dialects` too, at the cost of a second decoding.

    Returns:
        `decode(raw) -> kind`. `decode` raises InvalidInput for any bad bytes, and no other error. The error's
        `field` is the dotted path of the fault (`order.transactions[2].tx`), in which `[...]` stands for a
        key of an object without fixed member names.

    Guarantees: no float, no lone surrogate and no invalid UTF-8 gets through. Not guaranteed without
    `unique_keys`: that the keys of an object are unique.
    """
    decode_typed = _tolerant_decoder(kind) if tolerant else _strict_decoder(kind)

    def decode(raw: bytes) -> T:
        try:
            if len(raw) > bytes_max:
                raise InvalidInput(expected=f"at most {bytes_max} bytes", got=_Described(f"{len(raw)} bytes"))
            if not raw.isascii():
                raw.decode()  # msgspec checks no UTF-8 in skipped values and in `Raw`
            if unique_keys:
                _check_size(raw)
            message = decode_typed(raw)
            # After the typed decoding, which refuses most bad documents sooner, and names the path at fault.
            if unique_keys:
                _check_keys(raw)
        # Subclasses come first: ValidationError is a MsgspecError, UnicodeError a ValueError. InvalidInput is
        # neither, so that the errors raised above pass unchanged.
        except msgspec.ValidationError as fault:
            raise _refusal(str(fault), kind) from None
        except UnicodeError:
            raise InvalidInput("not valid UTF-8") from None
        except RecursionError:
            raise InvalidInput("nested too deep") from None
        except (msgspec.MsgspecError, ValueError, OverflowError) as fault:
            raise _malformed(raw, str(fault)) from None
        return message

    return decode


def _strict_decoder(kind: type[T]) -> Callable[[bytes], T]:
    return msgspec.json.Decoder(kind, float_hook=Decimal).decode


def _tolerant_decoder(kind: type[T]) -> Callable[[bytes], T]:
    """Make a decoder that mends a document that the strict decoder refuses, and decodes it again."""
    decode_strict, mend = _strict_decoder(kind), dialect_mender(kind)

    def decode(raw: bytes) -> T:
        try:
            return decode_strict(raw)
        except msgspec.ValidationError:
            return decode_strict(mend(raw))

    return decode


_encoder = msgspec.json.Encoder(decimal_format="number")
encode: Callable[[Any], bytes] = _encoder.encode


def _unique(pairs: list[tuple[str, None]]) -> None:
    """Refuse the members of one object if two of them have the same key."""
    if len(dict(pairs)) == len(pairs):
        return
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise InvalidInput("given twice in one object", field=_brief(key))
        seen.add(key)


_BEGINNINGS = (b",", b"[", b"{")
_scan = json.JSONDecoder(object_pairs_hook=_unique, parse_int=str, parse_float=str).decode


def _check_size(raw: bytes) -> None:
    """Refuse a JSON document with so many members that a check for repeated keys would take too long.

    The count is an upper bound: commas and opening brackets, inside strings too.
    """
    count = sum(map(raw.count, _BEGINNINGS))
    if count > JSON_VALUES_MAX:
        raise InvalidInput(
            expected=f"at most {JSON_VALUES_MAX} commas and opening brackets", got=_Described(str(count))
        )


def _check_keys(raw: bytes) -> None:
    """Refuse a JSON document with a key twice in one object."""
    _scan(raw.decode())


def check_number(field: str, value: Decimal) -> None:
    """Check that a number of a message is finite and of bounded length; for `__post_init__` of structs.

    Raises:
        ValueError: the number is refused; `decoder` turns the error, written like msgspec's, into an
            InvalidInput with the number's path.
    """
    whole, fraction = DECIMAL_WHOLE_DIGITS_MAX, DECIMAL_FRACTION_DIGITS_MAX
    exponent = value.as_tuple().exponent if value.adjusted() < whole else "too long"
    if not isinstance(exponent, int) or exponent < -fraction:
        wanted = f"a number of at most {whole} whole and {fraction} decimal digits"
        raise ValueError(f"Expected {wanted}, got {_brief(value)} - at `$.{field}`")


def _malformed(raw: bytes, said: str) -> InvalidInput:
    return InvalidInput(_MALFORMED.get(said, said) if raw.strip() else "the body is empty")


def _refusal(text: str, kind: Any) -> InvalidInput:
    """Translate msgspec's error text into an InvalidInput.

    msgspec's text may end with several paths of members, the innermost first.
    """
    path = ""
    while text.endswith("`") and " - at `$" in text:
        text, _, inner = text[:-1].rpartition(" - at `$")
        path += inner
    field = path.lstrip(".") or None
    if found := _EXPECTED_GOT.fullmatch(text):
        return InvalidInput(
            field=field, expected=_words(found["expected"]), got=_Described(_words(found["got"]))
        )
    if found := _MISSING.fullmatch(text):
        return InvalidInput("missing", field=f"{field}.{found['name']}" if field else found["name"])
    if found := _NOT_IN_ENUM.fullmatch(text):
        return InvalidInput(
            field=field, expected=_enum_words(kind, path), got=_Described(_brief(found["got"]))
        )
    if text.startswith("Expected "):
        return InvalidInput(field=field, expected=_words(text.removeprefix("Expected ")))
    return InvalidInput(text, field=field)


def _words(text: str) -> str:
    """Replace msgspec's type names by words: "`int` <= 10" becomes "an integer <= 10"."""
    return _KIND.sub(lambda m: " or ".join(_KIND_NAMES.get(name, name) for name in m[1].split(" | ")), text)


def _brief(value: object) -> str:
    text = ascii(value) if isinstance(value, str) and not value.isascii() else str(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def _enum_words(kind: Any, path: str) -> str:
    """List the values of the enum at `path` inside `kind`, for an error text."""
    node: Any = msgspec.inspect.type_info(kind)
    for name, _ in _STEP.findall(path):
        found = (_inside(option, name) for option in _options(node))
        node = next((inside for inside in found if inside is not None), None)
    for option in _options(node):
        if isinstance(option, msgspec.inspect.EnumType):
            return "one of " + ", ".join(str(member.value) for member in option.cls)
    return "a known value"


def _options(node: Any) -> tuple[Any, ...]:
    return node.types if isinstance(node, msgspec.inspect.UnionType) else (node,)


def _inside(node: Any, name: str) -> Any:
    """Type of a struct's member `name`, or of the elements of a collection; None for other types."""
    if isinstance(node, msgspec.inspect.StructType):
        return next((field.type for field in node.fields if field.encode_name == name), None)
    if isinstance(node, msgspec.inspect.DictType):
        return node.value_type
    return getattr(node, "item_type", None)
