"""Decode query strings into typed messages, with one table per message made in advance.

Rules (the specification is silent on all of them):
    Choice: Unknown parameters and body members are ignored, since clients send more than the specification
        names. Settings refuse unknown keys.
    Choice: A parameter that differs from a known one by case or brackets alone is refused, with the right
        spelling: a client that means the known one would otherwise not learn that it had no effect.
    Choice: Lists come as axios, qs and PHP write them, too: `a=x&a=y`, `a[]=x&a[]=y` or `a[0]=x&a[1]=y`. Any
        other parameter given twice is refused.
    Choice: An empty parameter (`partner=`) counts as absent: clients write it for a null.
    Choice: Parameter names may be percent-encoded; `+` is a space, as browsers encode it.
    Choice: Integers are ASCII digits without a sign, booleans `true` or `false` in any case, decimals digits
        with an optional fraction and no exponent. Lists are comma-separated, and their empty items count as
        absent.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from enum import Enum
from typing import Any, TypeVar
from urllib.parse import unquote_to_bytes

import msgspec
from msgspec import inspect

from ...config.errors import InvalidInput
from ...config.limits import (
    DECIMAL_FRACTION_DIGITS_MAX,
    DECIMAL_WHOLE_DIGITS_MAX,
    QUERY_BYTES_MAX,
    QUERY_PARAMETERS_MAX,
)
from .vocabulary import AnyCase

S = TypeVar("S", bound=msgspec.Struct)
Parser = Callable[[str, str], Any]  # (parameter, text) -> value; raises InvalidInput

_INTEGER_DIGITS_MAX = 19
_DECIMAL = re.compile(rf"[0-9]{{1,{DECIMAL_WHOLE_DIGITS_MAX}}}(\.[0-9]{{1,{DECIMAL_FRACTION_DIGITS_MAX}}})?")
_BAD_PERCENT = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_BOOLEANS = {"true": True, "false": False}
_OF_LIST = re.compile(r"\[[0-9]{0,4}\]")


class _Parameter(msgspec.Struct, frozen=True):
    """A known parameter: its name, the struct's attribute, the parser of its text, whether it is a list."""

    name: str
    attribute: str
    parse: Parser
    is_list: bool


def query_decoder(kind: type[S]) -> Callable[[bytes], S]:
    """Make the function that decodes a query string into one struct.

    Args:
        kind: a Struct whose fields are strings, integers, booleans, enums, Decimals or tuples of strings,
            integers or enums, each possibly `| None`; any other type raises TypeError at once.

    Returns:
        `decode(raw_query) -> kind`; `raw_query` is the text after the `?`, percent-encoding included.
        `decode` raises InvalidInput, which names the parameter, and any error of the struct's own check.
    """
    fields = msgspec.structs.fields(kind)
    described = inspect.type_info(kind)
    if not isinstance(described, inspect.StructType):
        raise TypeError(f"{kind!r} is not a Struct")
    table = {
        field.encode_name: _Parameter(
            field.encode_name, field.name, _parser(field.type), _is_list(field.type)
        )
        for field in described.fields
    }
    in_any_case = {name.lower(): parameter for name, parameter in table.items()}
    required = [(field.name, field.encode_name) for field in fields if field.required]

    def decode(raw_query: bytes) -> S:
        values: dict[str, Any] = {}
        empty: set[str] = set()
        for name, text in _parameters(raw_query):
            known = table.get(name) or _spelled(name, in_any_case)
            if known is None:
                continue
            attribute, is_list = known.attribute, known.is_list
            # An empty parameter counts as absent, but as given all the same: `a=&a=1` is refused.
            if not is_list and (attribute in values or attribute in empty):
                raise InvalidInput("given twice", field=name)
            # Decoded for known parameters alone: a bad percent-encoding in an unknown one is ignored with it.
            if text:
                found = known.parse(name, text if isinstance(text, str) else _unquoted(name, text))
                values[attribute] = (*values.get(attribute, ()), *found) if is_list else found
            else:
                empty.add(attribute)
        for attribute, name in required:
            if attribute not in values:
                raise InvalidInput("missing", field=name)
        return kind(**values)

    return decode


def _spelled(name: str, in_any_case: Mapping[str, _Parameter]) -> _Parameter | None:
    """Find the list whose items a parameter such as `a[]` or `a[0]` gives; None for an unlike parameter.

    Raises:
        InvalidInput: the name is that of a known parameter in another case, or with other brackets.
    """
    plain, bracket, rest = name.partition("[")
    known = in_any_case.get(plain.lower())
    if known is None:
        return None
    if known.is_list and plain == known.name and _OF_LIST.fullmatch(bracket + rest):
        return known
    raise InvalidInput(field=name, expected=f"the spelling {known.name}", got=name)


def _is_list(node: inspect.Type) -> bool:
    options = node.types if isinstance(node, inspect.UnionType) else (node,)
    return any(isinstance(option, inspect.VarTupleType) for option in options)


def _parameters(raw_query: bytes) -> Iterable[tuple[str, str | bytes]]:
    """Split a query string into names and values.

    A value with percent-encoding stays undecoded bytes; a name without `=` has an empty value.
    """
    if len(raw_query) > QUERY_BYTES_MAX:
        raise InvalidInput(f"the query is longer than {QUERY_BYTES_MAX} bytes")
    if raw_query.count(b"&") >= QUERY_PARAMETERS_MAX:
        raise InvalidInput(f"more than {QUERY_PARAMETERS_MAX} query parameters")
    if raw_query.isascii() and b"%" not in raw_query and b"+" not in raw_query:
        texts = (item.partition("=") for item in raw_query.decode().split("&"))
        return [(name, text) for name, _, text in texts]
    parts = [item.partition(b"=") for item in raw_query.split(b"&")]
    return [(_unquoted("a parameter's name", name), value) for name, _, value in parts]


def _unquoted(name: str, part: bytes) -> str:
    if _BAD_PERCENT.search(part):
        raise InvalidInput("a percent sign without two hexadecimal digits", field=name)
    try:
        return unquote_to_bytes(part.replace(b"+", b" ")).decode()
    except UnicodeDecodeError:
        raise InvalidInput("not valid UTF-8", field=name) from None


def _parser(node: inspect.Type) -> Parser:
    """Make the parser of one query parameter from its field's type, as msgspec describes the type."""
    if isinstance(node, inspect.UnionType):
        named = [option for option in node.types if not isinstance(option, inspect.NoneType)]
        if len(named) == 1:
            return _parser(named[0])
    if isinstance(node, inspect.VarTupleType):
        return _list_parser(_parser(node.item_type))
    if isinstance(node, inspect.IntType):
        return _integer_parser(node.ge or 0, node.le)
    if isinstance(node, inspect.StrType):
        return _string_parser(node.max_length)
    if isinstance(node, inspect.EnumType):
        return _enum_parser(node.cls)
    if isinstance(node, inspect.BoolType):
        return _boolean
    if isinstance(node, inspect.DecimalType):
        return _decimal
    raise TypeError(f"{node!r} cannot stand in a query string")


def _list_parser(parse_item: Parser) -> Parser:
    def parse(name: str, text: str) -> tuple[Any, ...]:
        return tuple(parse_item(name, item) for item in text.split(",") if item)

    return parse


def _integer_parser(lowest: int, highest: int | None) -> Parser:
    expected = f"an integer from {lowest}" + ("" if highest is None else f" to {highest}")

    def parse(name: str, text: str) -> int:
        if text.isascii() and text.isdigit() and len(text) <= _INTEGER_DIGITS_MAX:
            value = int(text)
            if value >= lowest and (highest is None or value <= highest):
                return value
        raise InvalidInput(field=name, expected=expected, got=text)

    return parse


def _string_parser(chars_max: int | None) -> Parser:
    def parse(name: str, text: str) -> str:
        if chars_max is not None and len(text) > chars_max:
            raise InvalidInput(field=name, expected=f"at most {chars_max} characters", got=text)
        return text

    return parse


def _enum_parser(words: type[Enum]) -> Parser:
    members: dict[str, Enum] = {str(member.value): member for member in words}
    expected = "one of " + ", ".join(members)

    spell = str.upper if issubclass(words, AnyCase) else str

    def parse(name: str, text: str) -> Enum:
        member = members.get(spell(text)) if text.isascii() else None
        if member is None:
            raise InvalidInput(field=name, expected=expected, got=text)
        return member

    return parse


def _boolean(name: str, text: str) -> bool:
    value = _BOOLEANS.get(text.lower())
    if value is None:
        raise InvalidInput(field=name, expected="true or false", got=text)
    return value


def _decimal(name: str, text: str) -> Decimal:
    if _DECIMAL.fullmatch(text) is None:
        raise InvalidInput(field=name, expected="a decimal number", got=text)
    return Decimal(text)
