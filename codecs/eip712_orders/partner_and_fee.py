"""Pack and unpack `partnerAndFee` of a Delta order: partner, fee and surplus rules in one uint256.

    partner << 96 | capSurplus << 9 | partnerTakesSurplus << 8 | feeBps

Source: interop.md section 2.
"""

import msgspec

from ...config import limits
from ...config.errors import InvalidInput

_PARTNER_SHIFT = 96
_CAP_SURPLUS = 1 << 9
_TAKES_SURPLUS = 1 << 8
_FEE_MASK = 0xFF
_UNUSED = ((1 << _PARTNER_SHIFT) - 1) & ~(_CAP_SURPLUS | _TAKES_SURPLUS | _FEE_MASK)


class PartnerAndFee(msgspec.Struct, frozen=True):
    """Partner, fee and surplus rules of a Delta order, unpacked from `partnerAndFee`.

    Attributes:
        partner: address of the partner, 20 bytes; zero for none.
        fee_bps: 0 to 200 basis points of the destination amount (SELL) or the source amount (BUY).
        partner_takes_surplus: whether the partner and the protocol each get half of the surplus, i.e. of the
            improvement on the expected amount; otherwise the user keeps the surplus.
        cap_surplus: whether the shared part of the surplus is at most 1 % of the expected amount; the user
            keeps the remainder.
    """

    partner: bytes
    fee_bps: int
    partner_takes_surplus: bool
    cap_surplus: bool


def pack_partner_and_fee(parts: PartnerAndFee) -> int:
    """Pack `partnerAndFee` into a uint256.

    Raises:
        ValueError: fee_bps is outside 0 to 200; callers refuse such a fee of a request first.
    """
    if not limits.PARTNER_FEE_BPS_MIN <= parts.fee_bps <= limits.PARTNER_FEE_BPS_MAX:
        raise ValueError("fee_bps is not 0 to 200")
    return (
        int.from_bytes(parts.partner, "big") << _PARTNER_SHIFT
        | (_CAP_SURPLUS if parts.cap_surplus else 0)
        | (_TAKES_SURPLUS if parts.partner_takes_surplus else 0)
        | parts.fee_bps
    )


def unpack_partner_and_fee(packed: int, field: str = "partnerAndFee") -> PartnerAndFee:
    """Unpack `partnerAndFee` of an order that came from outside.

    Raises:
        InvalidInput: a bit without a meaning is set, or the fee is above 200 basis points.
    """
    fee_bps = packed & _FEE_MASK
    if packed & _UNUSED or fee_bps > limits.PARTNER_FEE_BPS_MAX or packed >> 256:
        raise InvalidInput(
            field=field,
            expected="partner << 96 | capSurplus << 9 | takesSurplus << 8 | feeBps 0..200",
            got=packed,
        )
    return PartnerAndFee(
        partner=(packed >> _PARTNER_SHIFT).to_bytes(20, "big"),
        fee_bps=fee_bps,
        partner_takes_surplus=bool(packed & _TAKES_SURPLUS),
        cap_surplus=bool(packed & _CAP_SURPLUS),
    )
