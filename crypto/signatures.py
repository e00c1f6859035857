"""Convert signatures of 65 bytes (r, s, v) and 64 bytes (ERC-2098) to and from (rs64, recovery id).

Refused, each with its reason: other lengths, r or s zero or not below the curve order, s in the upper half
(a second valid form of the same signature), a v other than 27, 28, 0 or 1.

Source: EIP-2, ERC-2098, interop.md section 1.
"""

from ..config.errors import InvalidInput, InvalidSignature
from .hexadecimal import HEX_EXPECTED, parse_hex
from .secp256k1 import CURVE_ORDER, HALF_ORDER, recover_address

_RECOVERY_IDS = {0: 0, 1: 1, 27: 0, 28: 1}
_Y_PARITY_BIT = 1 << 255


def parse_signature(raw: bytes) -> tuple[bytes, int]:
    """Split a signature of 65 or 64 bytes.

    Returns:
        (rs64, recovery_id): r and s with s in the lower half, and 0 or 1.

    Raises:
        InvalidSignature: another length, r or s out of range, s in the upper half, or a v other than 27, 28,
            0 or 1.
    """
    if len(raw) == 65:
        recovery_id = _RECOVERY_IDS.get(raw[64], -1)
        if recovery_id < 0:
            raise InvalidSignature(field="v", expected="27, 28, 0 or 1", got=raw[64])
        s = int.from_bytes(raw[32:64], "big")
    elif len(raw) == 64:
        packed = int.from_bytes(raw[32:], "big")
        # ERC-2098: the top bit is the recovery id; an s in the lower half leaves this bit free.
        recovery_id, s = packed >> 255, packed & ~_Y_PARITY_BIT
    else:
        raise InvalidSignature(expected="65 bytes, or 64 in the compact form", got=len(raw))
    r = int.from_bytes(raw[:32], "big")
    if not 0 < r < CURVE_ORDER:
        raise InvalidSignature("r is zero or not below the curve order")
    if not 0 < s <= HALF_ORDER:
        reason = "s is in the upper half of the order" if 0 < s < CURVE_ORDER else "s is zero or out of range"
        raise InvalidSignature(reason)
    return raw[:32] + s.to_bytes(32, "big"), recovery_id


def parse_signature_text(text: object, field: str = "signature") -> bytes:
    """Parse a signature's `0x` text to bytes of any length: contract signatures have no fixed length.

    Raises:
        InvalidSignature: not `0x` and an even number of hexadecimal digits.
    """
    try:
        return parse_hex(text, field)
    except InvalidInput:
        raise InvalidSignature(field=field, expected=HEX_EXPECTED, got=text) from None


def to_65(rs64: bytes, recovery_id: int) -> bytes:
    """Encode a signature as 65 bytes: r, s and v = 27 or 28."""
    return rs64 + (b"\x1c" if recovery_id else b"\x1b")


def to_compact64(rs64: bytes, recovery_id: int) -> bytes:
    """Encode a signature as 64 bytes (ERC-2098): r, then s with the recovery id as its top bit.

    The top bit is free, since s is in the lower half of the curve order.
    """
    if not recovery_id:
        return rs64
    return rs64[:32] + bytes([rs64[32] | 0x80]) + rs64[33:]


def signer(digest32: bytes, raw: bytes) -> bytes:
    """Recover the 20-byte address that signed `digest32` with a signature of 65 or 64 bytes.

    Raises:
        InvalidSignature: `parse_signature` refuses the form, or no key can have made the signature.
    """
    rs64, recovery_id = parse_signature(raw)
    return recover_address(digest32, rs64, recovery_id)
