"""Whole numbers of a request as clients write them: `5` or `"5"` (spec 1.4.7). Pure.

Clients disagree on which numbers are JSON numbers: one sends `"deadline": 1790000000`, another
`"deadline": "1790000000"`. `numeral_mender` makes a function that rewrites a document as its type demands.

Choice: Integers of trading requests may be strings of ASCII digits, and `partnerFeeBps` a number. Amounts and
    nonces are strings alone: many clients lose digits of JSON numbers.
"""

import re
from collections.abc import Callable
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Raw, inspect

Mender = Callable[[bytes], bytes]
"""Function from a value's JSON to the form that its type demands: number or digit string."""

_QUOTED = re.compile(rb'"([0-9]{1,19})"')
_PLAIN = re.compile(rb"[0-9]{1,19}")
_TAG = "numeral"
NumeralText = Annotated[str, Meta(extra={_TAG: True})]
"""A string of digits that clients may send as a JSON number."""

_members = msgspec.json.Decoder(dict[str, Raw]).decode
_items = msgspec.json.Decoder(list[Raw]).decode
_encode = msgspec.json.Encoder().encode


def numeral_mender(kind: Any) -> Mender:
    """Make the function that rewrites whole numbers in JSON (`5` or `"5"`) as one message type demands.

    Args:
        kind: a msgspec Struct.

    Returns:
        Function from JSON to JSON. Use it for documents that a decoder of `kind` has refused: only whole
        numbers change, so that a second decoding reports any other fault. Malformed JSON raises msgspec's
        DecodeError.
    """
    mend = _mender(inspect.type_info(kind))
    if mend is None:
        raise TypeError(f"{kind!r} has no numbers")
    return mend


def _mender(node: inspect.Type) -> Mender | None:
    if isinstance(node, inspect.Metadata):
        return _text if (node.extra or {}).get(_TAG) else _mender(node.type)
    if isinstance(node, inspect.UnionType):
        return next(filter(None, map(_mender, node.types)), None)
    if isinstance(node, inspect.IntType):
        return _number
    if isinstance(node, inspect.VarTupleType):
        item = _mender(node.item_type)
        return None if item is None else _list_mender(item)
    if isinstance(node, inspect.StructType):
        menders = {field.encode_name: _mender(field.type) for field in node.fields}
        return _object_mender({name: mend for name, mend in menders.items() if mend is not None})
    return None


def _number(raw: bytes) -> bytes:
    quoted = _QUOTED.fullmatch(raw)
    return b"%d" % int(quoted[1]) if quoted else raw


def _text(raw: bytes) -> bytes:
    return b'"%b"' % raw if _PLAIN.fullmatch(raw) else raw


def _list_mender(mend: Mender) -> Mender:
    def mended(raw: bytes) -> bytes:
        if not raw.startswith(b"["):
            return raw
        return _encode([Raw(mend(bytes(item))) for item in _items(raw)])

    return mended


def _object_mender(menders: dict[str, Mender]) -> Mender:
    def mended(raw: bytes) -> bytes:
        if not raw.lstrip().startswith(b"{"):
            return raw
        members = _members(raw)
        for name in menders.keys() & members.keys():
            members[name] = Raw(menders[name](bytes(members[name])))
        return _encode(members)

    return mended
