"""Sign digests and recover addresses: ECDSA over secp256k1 on libsecp256k1.

The library is reached through the cffi module that coincurve bundles, with buffers made once per thread;
coincurve's own calls allocate theirs each time. Signatures are deterministic (RFC 6979) and low-s. The cffi
module is semi-private: at import its answers are compared with coincurve's public interface, and a difference
raises ImportError, because a wrong signature costs money.

Guarantees: a key never appears in a repr, an error or a pickle. Not guaranteed: that a key's memory is wiped,
which Python cannot promise.

Source: SEC 1 section 4.1; EIP-2 (low-s); libsecp256k1's include/secp256k1_recovery.h.
"""

import threading
from typing import Any, NoReturn

from coincurve import PrivateKey, PublicKey
from coincurve._libsecp256k1 import ffi as _ffi
from coincurve._libsecp256k1 import lib as _lib
from coincurve.context import GLOBAL_CONTEXT

from ..config.errors import InvalidSignature
from .keccak import keccak256

CURVE_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
HALF_ORDER = CURVE_ORDER // 2
_PROVEN_KEYS = (1, 2, CURVE_ORDER - 1)
KEY_BYTES = 32
DIGEST_BYTES = 32

_CONTEXT: Any = GLOBAL_CONTEXT.ctx
_NULL: Any = _ffi.NULL
_UNCOMPRESSED: int = _lib.SECP256K1_EC_UNCOMPRESSED


class _Buffers(threading.local):
    """Scratch memory for C calls, separate for each thread.

    Two threads must not share the memory: a C call releases Python's lock (GIL) while it uses the memory.
    """

    def __init__(self) -> None:
        self.signature = _ffi.new("secp256k1_ecdsa_recoverable_signature *")
        rs64 = _ffi.new("unsigned char[64]")
        self.signing = self.signature, rs64, _ffi.buffer(rs64), _ffi.new("int *")
        self.public_key = _ffi.new("secp256k1_pubkey *")
        self.point65 = _ffi.new("unsigned char[65]")
        self.point65_view = _ffi.buffer(self.point65)
        self.point_length = _ffi.new("size_t *")


_buffers = _Buffers()


def address_of_point(point65: bytes) -> bytes:
    """Compute the 20-byte address of an uncompressed public key (65 bytes, 0x04 first)."""
    return keccak256(point65[1:])[12:]


class SigningKey:
    """A private key that signs digests.

    Attributes:
        address: 20-byte address of the key.
    """

    __slots__ = ("_secret", "address")

    def __init__(self, secret32: bytes) -> None:
        """Create a signing key from the bytes of a private key.

        Args:
            secret32: a big-endian number of 32 bytes, from 1 to the curve order minus 1.

        Raises:
            ValueError: the length or the number is wrong; the error does not show the bytes.
        """
        if len(secret32) != KEY_BYTES or not 0 < int.from_bytes(secret32, "big") < CURVE_ORDER:
            raise ValueError("a private key is 32 bytes, above zero and below the curve order")
        self._secret = _ffi.new("unsigned char[32]", secret32)
        self.address = address_of_point(PrivateKey(secret32).public_key.format(compressed=False))

    def sign(self, digest32: bytes) -> tuple[bytes, int]:
        """Sign a digest.

        Args:
            digest32: 32 bytes, already hashed.

        Returns:
            (rs64, recovery_id): r and s of 32 bytes each, s in the lower half; recovery id 0 or 1
            (2 and 3 need an r that overflows the curve order, of probability 2^-128, and are refused).

        Raises:
            ValueError: the digest is not 32 bytes long, or its signature needs recovery id 2 or 3.
        """
        if len(digest32) != DIGEST_BYTES:
            raise ValueError(f"a digest is 32 bytes, not {len(digest32)}")
        signature, rs64, rs64_view, recovery_id = _buffers.signing
        if not _lib.secp256k1_ecdsa_sign_recoverable(
            _CONTEXT, signature, digest32, self._secret, _NULL, _NULL
        ):
            raise ValueError("libsecp256k1 refused to sign")
        _lib.secp256k1_ecdsa_recoverable_signature_serialize_compact(_CONTEXT, rs64, recovery_id, signature)
        recovery: int = recovery_id[0]
        if recovery > 1:
            raise ValueError("a signature whose r overflows has no Ethereum form")
        return rs64_view[:], recovery

    def secret32(self) -> bytes:
        """Return the private key itself, only for writing a keystore."""
        secret: bytes = _ffi.buffer(self._secret)[:]
        return secret

    def __repr__(self) -> str:
        return f"SigningKey(0x{self.address.hex()})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a SigningKey is not pickled")


def recover_address(digest32: bytes, rs64: bytes, recovery_id: int) -> bytes:
    """Recover the address whose key signed `digest32`.

    Args:
        digest32: 32 bytes.
        rs64: r and s, 32 bytes each.
        recovery_id: 0 or 1.

    Returns:
        20 bytes. Any valid signature recovers SOME address: compare it with the expected address.

    Raises:
        InvalidSignature: no point of the curve gives this signature.
    """
    if len(digest32) != DIGEST_BYTES or len(rs64) != 64:
        raise InvalidSignature(expected="a digest of 32 and a signature of 64 bytes", got=len(rs64))
    mine = _buffers
    signature, point = mine.signature, mine.public_key
    if not (
        0 <= recovery_id <= 1
        and _lib.secp256k1_ecdsa_recoverable_signature_parse_compact(_CONTEXT, signature, rs64, recovery_id)
        and _lib.secp256k1_ecdsa_recover(_CONTEXT, point, signature, digest32)
    ):
        raise InvalidSignature("no key makes this signature")
    point65, length = mine.point65, mine.point_length
    length[0] = 65  # in: the room in `point65`; the call writes the used length into the same place
    _lib.secp256k1_ec_pubkey_serialize(_CONTEXT, point65, length, point, _UNCOMPRESSED)
    return keccak256(mine.point65_view[1:])[12:]


def _prove() -> None:
    """Compare our direct calls of libsecp256k1 with coincurve's public interface; raise if they disagree."""
    for number in _PROVEN_KEYS:
        secret32 = number.to_bytes(32, "big")
        key, reference = SigningKey(secret32), PrivateKey(secret32)
        digest32 = keccak256(secret32)
        rs64, recovery_id = key.sign(digest32)
        public = reference.sign_recoverable(digest32, hasher=None)
        point65 = PublicKey.from_signature_and_message(public, digest32, hasher=None).format(compressed=False)
        if rs64 + bytes([recovery_id]) != public or int.from_bytes(rs64[32:], "big") > HALF_ORDER:
            raise ImportError("coincurve's library and its public interface sign differently")
        if recover_address(digest32, rs64, recovery_id) != address_of_point(point65) or (
            key.address != address_of_point(point65)
        ):
            raise ImportError("coincurve's library and its public interface recover differently")


_prove()
