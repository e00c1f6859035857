"""Sign digests and recover addresses: ECDSA over secp256k1 on libsecp256k1.

The library is reached through the cffi module of a binding (`libsecp256k1`), with buffers made once per
thread; a binding's own calls allocate theirs each time. Signatures are deterministic (RFC 6979) and low-s. At
import the answers are compared with the binding's public interface, and a difference raises ImportError,
because a wrong signature costs money.

Guarantees: a key never appears in a repr, an error or a pickle. Not guaranteed: that a key's memory is wiped,
which Python cannot promise.

Source: SEC 1 section 4.1; EIP-2 (low-s); libsecp256k1's include/secp256k1_recovery.h.
"""

import threading
from typing import Any, NoReturn

from ..config.errors import InvalidSignature
from .keccak import keccak256
from .libsecp256k1 import COMPRESSED, UNCOMPRESSED, installed

CURVE_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
HALF_ORDER = CURVE_ORDER // 2
_PROVEN_KEYS = (1, 2, CURVE_ORDER - 1)
KEY_BYTES = 32
DIGEST_BYTES = 32

_BINDING = installed()
_ffi, _lib, _CONTEXT = _BINDING.ffi, _BINDING.lib, _BINDING.context
_NULL: Any = _ffi.NULL


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


def public_key(secret32: bytes, *, compressed: bool = False) -> bytes:
    """Compute the public key of a private key: 65 bytes, or 33 if `compressed`.

    Args:
        secret32: a private key of 32 bytes, from 1 to the curve order minus 1.

    Raises:
        ValueError: it is no private key.
    """
    mine = _buffers
    if len(secret32) != KEY_BYTES or not _lib.secp256k1_ec_pubkey_create(_CONTEXT, mine.public_key, secret32):
        raise ValueError("a private key is 32 bytes, above zero and below the curve order")
    return _serialized(mine.public_key, COMPRESSED if compressed else UNCOMPRESSED)


def _serialized(point: Any, form: int) -> bytes:
    mine = _buffers
    length = mine.point_length
    length[0] = 65  # in: the room in `point65`; the call writes the used length into the same place
    _lib.secp256k1_ec_pubkey_serialize(_CONTEXT, mine.point65, length, point, form)
    serialized: bytes = mine.point65_view[: length[0]]
    return serialized


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
        self.address = address_of_point(public_key(secret32))

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
    return address_of_point(_serialized(point, UNCOMPRESSED))


def _prove() -> None:
    """Compare direct calls of libsecp256k1 with the binding's public interface; raise if they disagree."""
    name = _BINDING.name
    for number in _PROVEN_KEYS:
        secret32 = number.to_bytes(32, "big")
        key, digest32 = SigningKey(secret32), keccak256(secret32)
        rs64, recovery_id = key.sign(digest32)
        public = _BINDING.sign65(secret32, digest32)
        if rs64 + bytes([recovery_id]) != public or int.from_bytes(rs64[32:], "big") > HALF_ORDER:
            raise ImportError(f"{name}'s library and its public interface sign differently")
        point65 = _BINDING.recover65(digest32, public)
        found = key.address, recover_address(digest32, rs64, recovery_id)
        if point65 != _BINDING.point65(secret32) or set(found) != {address_of_point(point65)}:
            raise ImportError(f"{name}'s library and its public interface recover differently")


_prove()
