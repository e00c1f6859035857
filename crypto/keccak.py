"""Compute Keccak-256 as Ethereum uses it (the original padding, not SHA3-256's).

pycryptodome's public object costs three to four times the permutation itself, so its C library is called
directly, through cffi. Two forms, the faster first:

    one-shot        from pycryptodome 4.1 on; the sponge lives on the C stack
    reused state    before 4.1; one state per thread, reset for each digest

The calls release the GIL, so their output buffers are per thread: a shared buffer could be overwritten before
it is read, and a shared state aborts the interpreter. The library handle is semi-private: at import each form
is compared with the public form over lengths around the block size. The first form that agrees is used, else
the public form.

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
_SAMPLES = (
    bytes(range(256)) * 3,
    *(b"\xa5" * length for length in (1, 31, 32, 66, 135, _BLOCK_BYTES, 137, 271, 272, 273, 288)),
)
"""Inputs for which a function has to agree with the public one."""


def keccak256_public(data: bytes) -> bytes:
    """Compute Keccak-256 through pycryptodome's public interface.

    The faster functions of this module are checked against this function, which also replaces them if the
    check fails.
    """
    return _keccak.new(data=data, digest_bits=256).digest()


class _PerThread(threading.local):
    """Buffers for the C calls of Keccak, separate for each thread, so that no digest is overwritten."""

    def __init__(self) -> None:
        self.digest32 = _raw_api.ffi.new("uint8_t[32]")
        self.view = _raw_api.ffi.buffer(self.digest32)
        self.state: Any = None

    def make_state(self, library: Any) -> Any:
        """Create the thread's sponge state, which is freed with the thread's other data."""
        pointer = _raw_api.ffi.new("void *[1]")
        if library.keccak_init(pointer, _CAPACITY_BYTES, _ROUNDS):
            raise ValueError("pycryptodome cannot make a keccak state")
        self.state = _raw_api.ffi.gc(pointer[0], library.keccak_destroy)
        return self.state


class _PerTypedDigest(_PerThread):
    """Buffers for the C calls of one function made by `typed_digest`, separate for each thread."""

    def __init__(self, prefix34: bytes) -> None:
        super().__init__()
        self.whole = _raw_api.ffi.new("uint8_t[]", prefix34 + bytes(_DIGEST_BYTES))
        self.inner32 = self.whole + len(prefix34)


def _library(function: str) -> Any:
    """Find pycryptodome's C library; None if cffi cannot load it, or if it lacks `function`."""
    library: Any = getattr(_keccak, "_raw_keccak_lib", None)
    return library if hasattr(_raw_api, "ffi") and hasattr(library, function) else None


def one_shot() -> Callable[[bytes], bytes] | None:
    """Make a Keccak-256 function of one C call; None if pycryptodome lacks that call or cffi is missing."""
    library = _library("keccak_oneshot")
    if library is None:
        return None
    digest, mine = library.keccak_oneshot, _PerThread()

    def keccak256(data: bytes) -> bytes:
        here = mine
        if digest(data, len(data), here.digest32, _DIGEST_BYTES, _CAPACITY_BYTES, _ROUNDS, _KECCAK_PADDING):
            return keccak256_public(data)
        digest32: bytes = here.view[:]
        return digest32

    return keccak256


def reused_state() -> Callable[[bytes], bytes] | None:
    """Make a Keccak-256 function that reuses one C state per thread; None if cffi is missing."""
    library = _library("keccak_reset")
    if library is None:
        return None
    reset, absorb, digest, mine = (
        library.keccak_reset,
        library.keccak_absorb,
        library.keccak_digest,
        _PerThread(),
    )

    def keccak256(data: bytes) -> bytes:
        here = mine
        state = here.state or here.make_state(library)
        if (
            reset(state)
            or absorb(state, data, len(data))
            or digest(state, here.digest32, _DIGEST_BYTES, _KECCAK_PADDING)
        ):
            return keccak256_public(data)
        digest32: bytes = here.view[:]
        return digest32

    return keccak256


def proven(*forms: Callable[[bytes], bytes] | None) -> Callable[[bytes], bytes]:
    """Select the first Keccak-256 function that gives known digests and agrees with `keccak256_public`.

    The public function is returned if no other function passes.
    """
    return next((form for form in forms if form is not None and _agrees(form)), keccak256_public)


def _agrees(form: Callable[[bytes], bytes]) -> bool:
    try:
        return all(form(data) == keccak256_public(data) for data in _SAMPLES) and all(
            form(data).hex() == answer for data, answer in _KNOWN_ANSWERS.items()
        )
    except (AttributeError, TypeError, ValueError, OverflowError, SystemError):
        return False


_one_shot = one_shot()
keccak256: Callable[[bytes], bytes] = proven(_one_shot, reused_state())
"""keccak256(data: bytes) -> digest32. Safe from any thread. `data` is bytes, not a view or a bytearray."""


def typed_digest(prefix34: bytes) -> Callable[[bytes], bytes]:
    """Make the function encoded -> keccak256(prefix34 || keccak256(encoded)), the last two steps of EIP-712.

    Args:
        prefix34: the bytes 0x19 0x01 and the domain separator.
    """
    if keccak256 is not _one_shot:
        return lambda encoded: keccak256(prefix34 + keccak256(encoded))
    digest, mine = _library("keccak_oneshot").keccak_oneshot, _PerTypedDigest(prefix34)
    whole_bytes = len(prefix34) + _DIGEST_BYTES

    def typed(encoded: bytes) -> bytes:
        here = mine
        if digest(
            encoded, len(encoded), here.inner32, _DIGEST_BYTES, _CAPACITY_BYTES, _ROUNDS, _KECCAK_PADDING
        ) or digest(
            here.whole, whole_bytes, here.digest32, _DIGEST_BYTES, _CAPACITY_BYTES, _ROUNDS, _KECCAK_PADDING
        ):
            return keccak256_public(prefix34 + keccak256_public(encoded))
        digest32: bytes = here.view[:]
        return digest32

    return typed


KECCAK_EMPTY = keccak256(b"")
