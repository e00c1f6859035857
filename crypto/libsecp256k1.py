"""The C library libsecp256k1, through whichever binding is installed.

    Python to 3.13     coincurve          libsecp256k1 0.6
    Python from 3.14   btclib-secp256k1   libsecp256k1 0.8, since coincurve has no wheels there

Both bindings are cffi modules with the same C functions. `Binding` has the functions themselves, for calls
with buffers of one's own, and the binding's public interface, with which `secp256k1` compares them at import.

Source: libsecp256k1's include/secp256k1.h and include/secp256k1_recovery.h.
"""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

COMPRESSED, UNCOMPRESSED = 1 << 1 | 1 << 8, 1 << 1
"""SECP256K1_EC_COMPRESSED and SECP256K1_EC_UNCOMPRESSED of secp256k1.h."""


class Binding(Struct, frozen=True):
    """A Python binding of libsecp256k1.

    Attributes:
        name: name of the package on PyPI.
        ffi, lib: cffi's handles of the C library.
        context: the C library's context, randomized.
        point65: public interface: private key of 32 bytes -> uncompressed public key.
        sign65: public interface: (private key of 32 bytes, digest of 32) -> r, s and the recovery id.
        recover65: public interface: (digest, result of `sign65`) -> uncompressed public key.
    """

    name: str
    ffi: Any
    lib: Any
    context: Any
    point65: Callable[[bytes], bytes]
    sign65: Callable[[bytes, bytes], bytes]
    recover65: Callable[[bytes, bytes], bytes]


def _coincurve() -> Binding:
    from coincurve import PrivateKey, PublicKey
    from coincurve._libsecp256k1 import ffi, lib
    from coincurve.context import GLOBAL_CONTEXT

    def point65(secret32: bytes) -> bytes:
        point: bytes = PrivateKey(secret32).public_key.format(compressed=False)
        return point

    def sign65(secret32: bytes, digest32: bytes) -> bytes:
        signature: bytes = PrivateKey(secret32).sign_recoverable(digest32, hasher=None)
        return signature

    def recover65(digest32: bytes, signature65: bytes) -> bytes:
        found = PublicKey.from_signature_and_message(signature65, digest32, hasher=None)
        point: bytes = found.format(compressed=False)
        return point

    return Binding("coincurve", ffi, lib, GLOBAL_CONTEXT.ctx, point65, sign65, recover65)


def _btclib() -> Binding:
    from btclib_secp256k1 import ffi, keys, lib, recovery
    from btclib_secp256k1.context import ctx

    def point65(secret32: bytes) -> bytes:
        point: bytes = keys.pubkey_from_prvkey(secret32, compressed=False)
        return point

    def sign65(secret32: bytes, digest32: bytes) -> bytes:
        rs64, recovery_id = recovery.sign(digest32, secret32)
        return bytes(rs64) + bytes([recovery_id])

    def recover65(digest32: bytes, signature65: bytes) -> bytes:
        point: bytes = recovery.recover(digest32, signature65[:64], signature65[64], compressed=False)
        return point

    return Binding("btclib-secp256k1", ffi, lib, ctx, point65, sign65, recover65)


BINDINGS: tuple[Callable[[], Binding], ...] = (_coincurve, _btclib)
"""Functions that load a binding, in the order in which they are tried."""


def installed() -> Binding:
    """Load the first of `BINDINGS` that is installed.

    Raises:
        ImportError: none is, or its C functions are not where this module looks for them.
    """
    failures = []
    for load in BINDINGS:
        try:
            return load()
        except (ImportError, AttributeError) as error:
            failures.append(f"{load.__name__.strip('_')}: {error}")
    raise ImportError(f"no binding of libsecp256k1 can be used ({'; '.join(failures)})")
