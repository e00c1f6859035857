"""Pack and unpack `nonceAndMeta` of an RFQ order: one uint256, two layouts.

    firm quote (spec 3.5)    upper 96 bits random        lower 160 bits the user's address
    OTC order  (spec 2.3)    upper 160 bits the maker    lower 96 bits a per-maker nonce

The two rules differ, and clients post OTC orders in either layout or with any number at all: so any uint256
is accepted from outside, and only our own orders are packed strictly.

Source: spec 2.3, 3.5; interop.md section 1.
"""

from ...config import limits

_ADDRESS_BITS = 160
_ADDRESS_MASK = (1 << _ADDRESS_BITS) - 1
_FIRM_RANDOM_END = 1 << limits.FIRM_RANDOM_BITS


def pack_firm(user: bytes, random96: int) -> int:
    """Pack nonceAndMeta of a firm quote: 96 random bits above the 160 bits of the user's address.

    Args:
        user: address of the end user, 20 bytes.
        random96: unpredictable number, 0 <= random96 < 2^96.

    Raises:
        ValueError: random96 is out of range.
    """
    if not 0 <= random96 < _FIRM_RANDOM_END:
        raise ValueError("the random part is not below 2^96")
    return random96 << 160 | int.from_bytes(user, "big")


def firm_word(user: bytes, random12: bytes) -> bytes:
    """Pack nonceAndMeta of a firm quote as the 32 bytes that are signed: random bytes, then the user.

    Args:
        user: address of the end user, 20 bytes.
        random12: 12 unpredictable bytes.
    """
    return random12 + user


def pack_otc(maker: bytes, nonce96: int) -> int:
    """Pack nonceAndMeta of an OTC order: the 160 bits of the maker's address above a 96-bit nonce.

    Args:
        maker: address of the maker, 20 bytes.
        nonce96: nonce that the maker chooses, 0 <= nonce96 < 2^96.

    Raises:
        ValueError: nonce96 is out of range.
    """
    if not 0 <= nonce96 < 1 << limits.OTC_NONCE_BITS:
        raise ValueError("the nonce is not below 2^96")
    return int.from_bytes(maker, "big") << limits.OTC_NONCE_BITS | nonce96


def firm_user(nonce_and_meta: int) -> bytes:
    """Unpack the end user's address of a firm quote: the lower 160 bits of nonceAndMeta."""
    return (nonce_and_meta & _ADDRESS_MASK).to_bytes(20, "big")


def taker_from_meta(nonce_and_meta: int, maker: bytes, taker: bytes) -> bytes:
    """Determine the intended taker of an RFQ order.

    Args:
        maker, taker: addresses that the order names, 20 bytes each.

    Returns:
        `taker` if the upper 160 bits of nonceAndMeta are the maker's address (the layout of OTC orders);
        otherwise the address in the lower 160 bits (the layout of firm quotes). 20 bytes.
    """
    if nonce_and_meta >> limits.OTC_NONCE_BITS == int.from_bytes(maker, "big"):
        return taker
    return firm_user(nonce_and_meta)
