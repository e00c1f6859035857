"""JSON as languages write it, mended to what a message type demands. Pure.

    value in the document      where the type has        becomes
    `null`                     a member with a default   no member, unless the type takes null itself
    `null`                     an array or an object     `[]` or `{}`, as an empty collection of Go
    `[]`                       an object                 `{}`, as an empty array of PHP
    `"5"`, `5.0`, `5e0`        an integer                `5`
    `5`                        a `NumeralText`           `"5"`

Clients disagree on which numbers are JSON numbers: one sends `"deadline": 1790000000`, another
`"deadline": "1790000000"`. `dialect_mender` makes a function that rewrites a document as a type demands.

Source: encoding/json of Go (nil slices and maps), json_encode of PHP (empty arrays), Jackson of Java (absent
    members).
Choice: Integers of messages may be strings of ASCII digits or have a fraction of zero, and `partnerFeeBps` be
    a number. Amounts and nonces are strings alone: many clients lose digits of JSON numbers.
Choice: A null member means an absent one, and a null or `[]` in place of an object an empty one, in messages
    of makers and agents and in bodies of trading requests. Exception: a null `order` of a firm answer.
"""

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Raw, Struct, inspect

Mender = Callable[[bytes], bytes]
"""Function from a value's JSON to the form that its type demands."""

_QUOTED = re.compile(rb'"([0-9]{1,19})"')
_FRACTION = re.compile(rb"-?[0-9]{1,19}(?:\.[0-9]{1,40})?(?:[eE]\+?[0-9]{1,2})?")
_NULL, _NO_ITEMS, _NO_MEMBERS = b"null", b"[]", b"{}"
_PLAIN = re.compile(rb"[0-9]{1,19}")
_TAG = "numeral"
NumeralText = Annotated[str, Meta(extra={_TAG: True})]
"""A string of digits that clients may send as a JSON number."""

_members = msgspec.json.Decoder(dict[str, Raw]).decode
_items = msgspec.json.Decoder(list[Raw]).decode
_encode = msgspec.json.Encoder().encode


class _Member(Struct, frozen=True):
    """Rules for a member of a struct: its mender, and whether a null of it means an absent member."""

    mend: Mender | None
    drops_null: bool


def dialect_mender(kind: Any) -> Mender:
    """Make the function that rewrites JSON as one message type demands.

    Args:
        kind: a msgspec Struct.

    Returns:
        Function from JSON to JSON. Use it for documents that a decoder of `kind` has refused: a second
        decoding reports any fault that is left. Malformed JSON raises msgspec's DecodeError.
    """
    mend = _mender(inspect.type_info(kind))
    if mend is None:
        raise TypeError(f"{kind!r} has nothing to mend")
    return mend


def _mender(node: inspect.Type) -> Mender | None:
    if isinstance(node, inspect.Metadata):
        return _text if (node.extra or {}).get(_TAG) else _mender(node.type)
    if isinstance(node, inspect.UnionType):
        mend = next(filter(None, map(_mender, node.types)), None)
        return mend if mend is None or not _takes_null(node) else _unless_null(mend)
    if isinstance(node, inspect.IntType):
        return _number
    if isinstance(node, inspect.VarTupleType):
        return _list_mender(_mender(node.item_type))
    if isinstance(node, inspect.DictType):
        return _dict_mender(_mender(node.value_type))
    if isinstance(node, inspect.StructType) and not node.array_like:
        return _object_mender(
            {
                field.encode_name: _Member(
                    _mender(field.type), drops_null=not field.required and not _takes_null(field.type)
                )
                for field in node.fields
            }
        )
    return None


def _takes_null(node: inspect.Type) -> bool:
    if isinstance(node, inspect.Metadata):
        return _takes_null(node.type)
    kinds = node.types if isinstance(node, inspect.UnionType) else (node,)
    return any(isinstance(one, inspect.NoneType | inspect.RawType | inspect.AnyType) for one in kinds)


def _unless_null(mend: Mender) -> Mender:
    return lambda raw: raw if raw == _NULL else mend(raw)


def _number(raw: bytes) -> bytes:
    if quoted := _QUOTED.fullmatch(raw):
        return b"%d" % int(quoted[1])
    if not _FRACTION.fullmatch(raw):
        return raw
    number = Decimal(raw.decode())
    return b"%d" % int(number) if number == number.to_integral_value() else raw


def _text(raw: bytes) -> bytes:
    return b'"%b"' % raw if _PLAIN.fullmatch(raw) else raw


def _list_mender(mend: Mender | None) -> Mender:
    def mended(raw: bytes) -> bytes:
        if raw == _NULL:
            return _NO_ITEMS
        if mend is None or not raw.startswith(b"["):
            return raw
        return _encode([Raw(mend(bytes(item))) for item in _items(raw)])

    return mended


def _dict_mender(mend: Mender | None) -> Mender:
    def mended(raw: bytes) -> bytes:
        if _is_nothing(raw):
            return _NO_MEMBERS
        if mend is None or not raw.startswith(b"{"):
            return raw
        return _encode({name: Raw(mend(bytes(value))) for name, value in _members(raw).items()})

    return mended


def _object_mender(rules: dict[str, _Member]) -> Mender:
    def mended(raw: bytes) -> bytes:
        raw = raw.strip()
        if _is_nothing(raw):
            return _NO_MEMBERS
        if not raw.startswith(b"{"):
            return raw
        members = _members(raw)
        for name in rules.keys() & members.keys():
            value, rule = bytes(members[name]), rules[name]
            if value == _NULL and rule.drops_null:
                del members[name]
            elif rule.mend is not None:
                members[name] = Raw(rule.mend(value))
        return _encode(members)

    return mended


def _is_nothing(raw: bytes) -> bool:
    return raw == _NULL or (raw.startswith(b"[") and not raw[1:-1].strip())
