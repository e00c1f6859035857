"""Compute and test the bloom filter of a block header's logs.

The filter has 2,048 bits, of which each address and each topic of the block's logs sets up to three. An unset
bit proves that an item is absent from the logs; set bits prove nothing.

Source: the yellow paper, 4.4.3 (M3:2048).
"""

from collections.abc import Iterable, Sequence

from ....crypto.keccak import keccak256
from ..port import Log, LogFilter

BLOOM_BYTES = 256


def bloom_of(logs: Iterable[Log]) -> bytes:
    """Compute the bloom filter, 256 bytes, of a block that has these logs."""
    bits = 0
    for item in {item for log in logs for item in (log.address, *log.topics)}:
        bits |= _bits(item)
    return bits.to_bytes(BLOOM_BYTES, "big")


def covers(bloom: bytes, part: bytes) -> bool:
    """Whether every bit that is set in the bloom filter `part` is set in `bloom` too."""
    bits = int.from_bytes(part, "big")
    return int.from_bytes(bloom, "big") & bits == bits


def may_match(bloom: bytes, wanted: LogFilter) -> bool:
    """Whether a block with this bloom filter may have a log that passes `wanted`; False is certain."""
    bits = int.from_bytes(bloom, "big")
    return bits != 0 and all(_may_hold(bits, any_of) for any_of in (wanted.addresses, *wanted.topics))


def _may_hold(bits: int, any_of: Sequence[bytes]) -> bool:
    return not any_of or any(bits & wanted == wanted for wanted in map(_bits, any_of))


def _bits(item: bytes) -> int:
    digest = keccak256(item)
    places = (int.from_bytes(digest[at : at + 2], "big") % 2_048 for at in (0, 2, 4))
    return sum({1 << place for place in places})
