"""Solidity ABI encoding and decoding of the few layouts that hot paths write by hand.

An argument list is encoded as heads (one word each, or an offset) followed by the tails of its dynamic
members. `encode` takes static members as bytes of whole words and dynamic ones wrapped in `Dynamic`; the
functions below make both.

Source: Contract ABI specification of Solidity, "Formal Specification of the Encoding".
"""

from collections.abc import Sequence

import msgspec

from ...config.errors import InvalidInput
from ...crypto.keccak import keccak256

WORD_BYTES, SELECTOR_BYTES = 32, 4


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


def _word(returned: bytes, at_word: int) -> bytes:
    start = at_word * WORD_BYTES
    word = returned[start : start + WORD_BYTES]
    if len(word) != WORD_BYTES:
        raise InvalidInput(field="return data", expected=f"{at_word + 1} words", got=f"{len(returned)} bytes")
    return word
