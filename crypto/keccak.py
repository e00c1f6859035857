"""Keccak-256 as Ethereum uses it (the original padding, not SHA3-256's).

pycryptodome's public object costs three to four times the permutation itself. From 4.2 on its C library
also has a one-shot call, which keeps the sponge on the C stack: we call that through cffi with one output
buffer per thread (the call releases the GIL, so a shared buffer could be overwritten before it is read).
The library handle is semi-private: at import the fast form is compared with the public one over lengths
around the block size, and where it is missing or differs, the public one is used.

Source: FIPS 202 section 3 with the padding of the Keccak submission; Ethereum yellow paper, appendix G.
"""

import threading
from collections.abc import Callable
from typing import Any

from Crypto.Hash import keccak as _keccak
from Crypto.Util import _raw_api

_DIGEST_BYTES = 32
_CAPACITY_BYTES = 64
_ROUNDS = 24
_KECCAK_PADDING = 1
_BLOCK_BYTES = 136
_KNOWN_ANSWERS = {
    b"": "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470",
    b"abc": "4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45",
    b"transfer(address,uint256)": "a9059cbb2ab09eb219583f4a59a5d0623ade346d962bcd4e46b11da047c9049b",
}


def keccak256_public(data: bytes) -> bytes:
    """Keccak-256 through pycryptodome's public interface: the reference and the fallback."""
    return _keccak.new(data=data, digest_bits=256).digest()


def _one_shot() -> Callable[[bytes], bytes] | None:
    """The fast form, or None where this pycryptodome has none or cffi is missing."""
    library: Any = getattr(_keccak, "_raw_keccak_lib", None)
    ffi: Any = getattr(_raw_api, "ffi", None)
    if ffi is None or not hasattr(library, "keccak_oneshot"):
        return None
    one_shot = library.keccak_oneshot
    new_buffer, view = ffi.new, ffi.buffer

    class Output(threading.local):
        def __init__(self) -> None:
            self.digest32 = new_buffer("uint8_t[32]")
            self.view = view(self.digest32)

    output = Output()

    def keccak256(data: bytes) -> bytes:
        mine = output
        if one_shot(data, len(data), mine.digest32, _DIGEST_BYTES, _CAPACITY_BYTES, _ROUNDS, _KECCAK_PADDING):
            return keccak256_public(data)
        digest: bytes = mine.view[:]
        return digest

    return keccak256


def proven(fast: Callable[[bytes], bytes] | None) -> Callable[[bytes], bytes]:
    """`fast` if it gives the known answers and agrees with the public form, else the public form."""
    if fast is None:
        return keccak256_public
    samples = [bytes(range(256)) * 3]
    samples += [b"\xa5" * length for length in (1, 31, 32, 66, 135, _BLOCK_BYTES, 137, 271, 272, 273, 288)]
    try:
        agrees = all(fast(data) == keccak256_public(data) for data in samples) and all(
            fast(data).hex() == answer for data, answer in _KNOWN_ANSWERS.items()
        )
    except (TypeError, ValueError, OverflowError, SystemError):
        agrees = False
    return fast if agrees else keccak256_public


keccak256: Callable[[bytes], bytes] = proven(_one_shot())
"""keccak256(data: bytes) -> digest32. Safe from any thread. `data` is bytes, not a view or a bytearray."""

KECCAK_EMPTY = keccak256(b"")
