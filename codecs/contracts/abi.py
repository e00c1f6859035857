"""Solidity ABI encoding and decoding of the few layouts that hot paths write by hand, and of any flat log.

An argument list is encoded as heads (one word each, or an offset) followed by the tails of its dynamic
members. `encode` takes static members as bytes of whole words, and dynamic members wrapped in `Dynamic`; the
functions below make both kinds.

Source: Contract ABI specification of Solidity, "Formal Specification of the Encoding" and "Events".
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

import msgspec

from ...config.errors import InvalidInput
from ...config.limits import LOG_DATA_BYTES_MAX
from ...crypto.keccak import keccak256

WORD_BYTES, SELECTOR_BYTES = 32, 4
_WORD_BITS = {"bytes32": 256, "address": 160, "bool": 1}
_LOG_MEMBER = re.compile(r"([a-z0-9]+(?:\[\])?)( indexed)?")


class Dynamic(msgspec.Struct, frozen=True):
    """Value of a dynamic ABI type, as an argument of `encode`.

    Attributes:
        tail: encoded value in whole 32-byte words, without the offset word that `encode` writes for it. An
            array, `bytes` or `string` begins with its length word.
    """

    tail: bytes


def selector(signature: str) -> bytes:
    """Compute the 4-byte selector of a function signature such as `transfer(address,uint256)`."""
    return keccak256(signature.encode())[:SELECTOR_BYTES]


def uint_word(number: int) -> bytes:
    """Encode a uint256 as one 32-byte word.

    Raises:
        OverflowError: the number is outside 0 to 2^256 - 1; callers check numbers from outside first.
    """
    return number.to_bytes(WORD_BYTES, "big")


def address_word(address: bytes) -> bytes:
    """Encode a 20-byte address as one word."""
    return address.rjust(WORD_BYTES, b"\0")


def bytes_tail(raw: bytes) -> Dynamic:
    """Encode a dynamic `bytes` or `string` value: length word, then the padded data."""
    return Dynamic(uint_word(len(raw)) + raw + bytes(-len(raw) % WORD_BYTES))


def words_tail(words: Sequence[bytes]) -> Dynamic:
    """Encode a dynamic array of one-word elements, e.g. `bytes32[]`: length word, then the elements."""
    return Dynamic(uint_word(len(words)) + b"".join(words))


def tuples_tail(elements: Sequence[bytes]) -> Dynamic:
    """Encode a dynamic array of dynamic tuples, each already encoded by `encode`."""
    return Dynamic(uint_word(len(elements)) + encode(*map(Dynamic, elements)))


def encode(*members: bytes | Dynamic) -> bytes:
    """Encode an argument list or one tuple: all heads, then the tails of the dynamic members.

    Args:
        members: `bytes` is the encoding of one or more static members, and is a head as it stands; `Dynamic`
            is one dynamic member, whose head is the offset of its tail.
    """
    heads: list[bytes] = []
    tails: list[bytes] = []
    offset = 0
    for member in members:  # a loop: most of the cost of a settlement's calldata
        offset += WORD_BYTES if isinstance(member, Dynamic) else len(member)
    for member in members:
        if isinstance(member, Dynamic):
            heads.append(uint_word(offset))
            tails.append(member.tail)
            offset += len(member.tail)
        else:
            heads.append(member)
    return b"".join(heads + tails)


def decode_uint(returned: bytes, at_word: int = 0) -> int:
    """Decode the uint256 in 32-byte word number `at_word`, counted from 0, of return data.

    Raises:
        InvalidInput: the data ends before the word.
    """
    return int.from_bytes(_word(returned, at_word), "big")


def decode_address(returned: bytes, at_word: int = 0) -> bytes:
    """Decode the 20-byte address in 32-byte word number `at_word`, counted from 0, of return data.

    Raises:
        InvalidInput: the data ends before the word, or the word's upper 12 bytes are not zero.
    """
    word = _word(returned, at_word)
    if any(word[:12]):
        raise InvalidInput(field="return data", expected="an address", got=word.hex())
    return word[12:]


def decode_bytes(returned: bytes, at_word: int = 0) -> bytes:
    """Decode a `bytes` or `string` value of return data.

    Args:
        returned: return data of a call.
        at_word: number of the 32-byte word, counted from 0, that holds the value's offset.

    Raises:
        InvalidInput: the offset or the length points outside the data.
    """
    start = decode_uint(returned, at_word)
    if start + WORD_BYTES > len(returned):
        raise InvalidInput(field="return data", expected="an offset within the data", got=start)
    length = int.from_bytes(returned[start : start + WORD_BYTES], "big")
    first = start + WORD_BYTES
    if first + length > len(returned):
        raise InvalidInput(field="return data", expected="a length within the data", got=length)
    return returned[first : first + length]


class LogLayout:
    """Layout of an event's logs: topics, and data in the compiler's encoding without gaps.

    Attributes:
        name: name of the event.
        topic: first topic of its logs, 32 bytes.
    """

    def __init__(self, declaration: str) -> None:
        """Read the layout from the event's signature.

        Args:
            declaration: e.g. `Transfer(address indexed,address indexed,uint256)`. The types are `address`,
                `bool`, `bytes`, `bytes32`, `uint<bits>`, arrays of the types that fill one word, and tuples
                of these types.
        """
        self.name, _, members = declaration.partition("(")
        self.topic = keccak256(declaration.replace(" indexed", "").encode())
        self._members = [(kind, bool(indexed)) for kind, indexed in _LOG_MEMBER.findall(members)]
        self._topic_count = 1 + sum(indexed for _, indexed in self._members)
        self._head_bytes = (len(self._members) + 1 - self._topic_count) * WORD_BYTES

    def decode(self, topics: Sequence[bytes], data: bytes) -> list[Any]:
        """Decode the members of a log, in the sequence of the declaration.

        Args:
            topics: all topics of the log, 32 bytes each.
            data: at most `LOG_DATA_BYTES_MAX` bytes.

        Returns:
            Integers, bools, bytes (20 for an address, 32 for a `bytes32`), and tuples for arrays. Members of
            a declared tuple stand in its place, one after another.

        Raises:
            InvalidInput: the log is another event's, too long, or not in the compiler's encoding.
        """
        if len(topics) != self._topic_count or topics[0] != self.topic:
            self._refuse(f"{self._topic_count} topics, {self.topic.hex()} first", f"{len(topics)} topics")
        if not self._head_bytes <= len(data) <= LOG_DATA_BYTES_MAX or len(data) % WORD_BYTES:
            self._refuse(f"words of {self._head_bytes} to {LOG_DATA_BYTES_MAX} bytes", len(data))
        words, at, tail = iter(topics[1:]), 0, self._head_bytes
        values: list[Any] = []
        for kind, is_indexed in self._members:
            if is_indexed:
                values.append(self._value(kind, next(words)))
                continue
            head, at = data[at : at + WORD_BYTES], at + WORD_BYTES
            if kind != "bytes" and not kind.endswith("[]"):
                values.append(self._value(kind, head))
                continue
            # Tails follow one another without gaps. Other offsets could make values overlap or hide bytes.
            if int.from_bytes(head, "big") != tail:
                self._refuse(f"{tail} as the offset of its {kind}", head.hex())
            value, tail = self._tail(kind, data, tail)
            values.append(value)
        if tail != len(data):
            self._refuse(f"{tail} bytes of data", len(data))
        return values

    def _tail(self, kind: str, data: bytes, start: int) -> tuple[Any, int]:
        first = start + WORD_BYTES
        count = int.from_bytes(data[start:first], "big")
        unit = 1 if kind == "bytes" else WORD_BYTES
        if first + count * unit > len(data):
            self._refuse(f"a length of its {kind} within the data", count)
        end = first + count * unit
        after = end + -end % WORD_BYTES
        if any(data[end:after]):
            self._refuse("zeros after its bytes", data[end:after].hex())
        if kind == "bytes":
            return data[first:end], after
        element = kind.removesuffix("[]")
        return tuple(
            self._value(element, data[at : at + WORD_BYTES]) for at in range(first, end, WORD_BYTES)
        ), after

    def _value(self, kind: str, word: bytes) -> Any:
        value = int.from_bytes(word, "big")
        bits = _WORD_BITS.get(kind) or int(kind.removeprefix("uint"))
        if len(word) != WORD_BYTES or value >> bits:
            self._refuse(f"a word of type {kind}", word.hex())
        if kind == "bytes32":
            return word
        if kind == "address":
            return word[12:]
        return bool(value) if kind == "bool" else value

    def _refuse(self, expected: str, got: object) -> NoReturn:
        raise InvalidInput(field=f"event {self.name}", expected=expected, got=got)


Event = TypeVar("Event")
KnownLogs = Mapping[bytes, tuple[LogLayout, Callable[..., Event]]]
"""First topic of each known event -> its layout, and the function that makes the event of its members."""


def decode_known(known: KnownLogs[Event], topics: Sequence[bytes], data: bytes) -> Event | None:
    """Decode a log of one of the known events; None for any other event.

    Raises:
        InvalidInput: the log of a known event is malformed, or larger than the limit.
    """
    found = known.get(topics[0]) if topics else None
    if found is None:
        return None
    layout, event = found
    return event(*layout.decode(topics, data))


def _word(returned: bytes, at_word: int) -> bytes:
    start = at_word * WORD_BYTES
    word = returned[start : start + WORD_BYTES]
    if len(word) != WORD_BYTES:
        raise InvalidInput(field="return data", expected=f"{at_word + 1} words", got=f"{len(returned)} bytes")
    return word
