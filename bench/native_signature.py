"""Time of the C signing call alone, on preallocated buffers: a unit of a machine's speed.

No signer in Python can be faster.
"""

import itertools
from collections.abc import Callable
from time import process_time

from cambist.crypto.libsecp256k1 import installed

_SIGNATURES = 2_000


def native_signer(secret32: bytes) -> Callable[[bytes], int]:
    """Return a function that signs a 32-byte digest by the C library, and returns 1 on success."""
    binding = installed()
    ffi, lib, context, null = binding.ffi, binding.lib, binding.context, binding.ffi.NULL
    signature = ffi.new("secp256k1_ecdsa_recoverable_signature *")
    secret = ffi.new("unsigned char[32]", secret32)
    sign = lib.secp256k1_ecdsa_sign_recoverable

    def native(digest32: bytes) -> int:
        done: int = sign(context, signature, digest32, secret, null, null)
        return done

    return native


def signature_us() -> float:
    """Measure the CPU time, in microseconds, of one signature by the C library."""
    sign = native_signer(b"\1" * 32)
    digests = [number.to_bytes(32, "big") for number in itertools.islice(itertools.count(1), _SIGNATURES)]
    began = process_time()
    done = sum(map(sign, digests))
    taken_s = process_time() - began
    if done != _SIGNATURES:
        raise ValueError("not every digest was signed")
    return 1e6 * taken_s / _SIGNATURES
