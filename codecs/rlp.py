"""RLP, the encoding of Ethereum transactions: encode and decode.

An item is bytes or a list of items; a number is its big-endian bytes without leading zeros. Each item has
exactly one form, and the reader accepts no other: lengths are as short as possible, a byte below 0x80 stands
for itself, no byte follows the last item.

Source: Ethereum Yellow Paper, appendix B.
"""

from collections.abc import Sequence
from typing import TypeAlias

from ..config import limits
from ..config.errors import InvalidInput

Item: TypeAlias = bytes | list["Item"]
Encodable: TypeAlias = bytes | int | Sequence["Encodable"]

_FIELD = "rlp"
_STRING = 0x80
_LIST = 0xC0
_SHORT_MAX = 55  # longest payload whose length stands in the first byte


def encode(item: Encodable) -> bytes:
    """Encode bytes, a number or a list.

    Raises:
        OverflowError: a number is below zero: a programmer's error.
    """
    if isinstance(item, int):
        if 0 < item < _STRING:
            return item.to_bytes(1, "big")
        item = item.to_bytes((item.bit_length() + 7) // 8, "big")
        return _prefix(len(item), _STRING) + item
    if isinstance(item, bytes):
        if len(item) == 1 and item[0] < _STRING:
            return item
        return _prefix(len(item), _STRING) + item
    return wrap(b"".join(map(encode, item)))


def wrap(encoded_items: bytes) -> bytes:
    """Encode a list from its already encoded items, joined."""
    return _prefix(len(encoded_items), _LIST) + encoded_items


def decode(raw: bytes) -> Item:
    """Decode `raw`, which must be exactly one item.

    Args:
        raw: at most RLP_BYTES_MAX bytes, lists inside one another at most RLP_DEPTH_MAX deep.

    Raises:
        InvalidInput: `raw` is no RLP item in its shortest form, is too long or too deep, or has bytes after
            the item.

    Guarantees: `encode` of the result is `raw`.
    """
    if len(raw) > limits.RLP_BYTES_MAX:
        raise InvalidInput(
            field=_FIELD, expected=f"at most {limits.RLP_BYTES_MAX} bytes", got=f"{len(raw)} bytes"
        )
    item, after = _item(raw, 0, len(raw), 0)
    if after != len(raw):
        raise InvalidInput(field=_FIELD, expected="one item", got=f"{len(raw) - after} bytes after it")
    return item


def as_uint(item: Item, field: str, bits: int = 256) -> int:
    """Convert a decoded RLP item to the number that its bytes encode.

    Raises:
        InvalidInput: a list, a leading zero, or more than `bits` bits.
    """
    if not isinstance(item, bytes) or item[:1] == b"\0":
        raise InvalidInput(field=field, expected="a number without leading zeros", got=_shown(item))
    number = int.from_bytes(item, "big")
    if number >> bits:
        raise InvalidInput(field=field, expected=f"a number below 2^{bits}", got=_shown(item))
    return number


def as_bytes(item: Item, field: str, lengths: Sequence[int] = ()) -> bytes:
    """Return a decoded RLP item that has to be bytes.

    Args:
        field: named in the error.
        lengths: allowed numbers of bytes; empty allows any.

    Raises:
        InvalidInput: the item is a list, or has another length.
    """
    if isinstance(item, bytes) and (not lengths or len(item) in lengths):
        return item
    expected = f"{' or '.join(map(str, lengths))} bytes" if lengths else "bytes"
    raise InvalidInput(field=field, expected=expected, got=_shown(item))


def as_list(item: Item, field: str, length: int | None = None) -> list[Item]:
    """Return a decoded RLP item that has to be a list.

    Args:
        field: named in the error.
        length: required number of items; None allows any.

    Raises:
        InvalidInput: the item is bytes, or has another length.
    """
    if isinstance(item, list) and length in (None, len(item)):
        return item
    expected = "a list" if length is None else f"a list of {length}"
    raise InvalidInput(field=field, expected=expected, got=_shown(item))


def _prefix(length: int, kind: int) -> bytes:
    if length <= _SHORT_MAX:
        return (kind + length).to_bytes(1, "big")
    size = (length.bit_length() + 7) // 8
    return (kind + _SHORT_MAX + size).to_bytes(1, "big") + length.to_bytes(size, "big")


def _item(raw: bytes, at: int, end: int, depth: int) -> tuple[Item, int]:
    """Decode the item at offset `at`, which must end by offset `end`.

    Args:
        depth: number of lists around the item.

    Returns:
        The item, and the offset after it.
    """
    if at >= end:
        raise InvalidInput(field=_FIELD, expected="an item", got="the end")
    first = raw[at]
    if first < _STRING:
        return raw[at : at + 1], at + 1
    if first < _LIST:
        start, after = _span(raw, at, end, first - _STRING)
        if after - start == 1 and raw[start] < _STRING:
            raise InvalidInput(
                field=_FIELD, expected="a byte below 0x80 as itself", got="its length before it"
            )
        return raw[start:after], after
    if depth == limits.RLP_DEPTH_MAX:
        raise InvalidInput(field=_FIELD, expected=f"at most {depth} lists inside one another", got="more")
    position, after = _span(raw, at, end, first - _LIST)
    items: list[Item] = []
    while position < after:
        # Bounded by the end of the list, not of the input: an item that reaches beyond its list is refused.
        item, position = _item(raw, position, after, depth + 1)
        items.append(item)
    return items, after


def _span(raw: bytes, at: int, end: int, code: int) -> tuple[int, int]:
    """Find the offsets at which the payload of the item at offset `at` starts and ends.

    Args:
        end: offset by which the payload must end.
        code: first byte of the item, minus 0x80 for bytes, minus 0xC0 for a list.
    """
    if code <= _SHORT_MAX:
        start, length = at + 1, code
    else:
        start = at + 1 + code - _SHORT_MAX
        length = int.from_bytes(raw[at + 1 : start], "big")
        if start > end:
            raise InvalidInput(field=_FIELD, expected="a length", got="the end")
        if length <= _SHORT_MAX or not raw[at + 1]:
            raise InvalidInput(
                field=_FIELD, expected="the shortest form of a length", got=raw[at:start].hex()
            )
    if length > end - start:
        raise InvalidInput(field=_FIELD, expected=f"{length} bytes", got=f"{end - start} bytes")
    return start, start + length


def _shown(item: Item) -> str:
    return f"0x{item.hex()}" if isinstance(item, bytes) else f"a list of {len(item)}"
