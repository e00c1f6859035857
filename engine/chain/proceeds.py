"""Who gets what of a trade: fee, surplus and its shares. Pure; the contracts have the same arithmetic.

    sale       fee = floor(received * bps / 10000), of what was received
    purchase   fee = floor(spent * bps / 10000), on top of what was spent
    surplus    what was executed better than expected, after the fee; the user's, unless it is shared: half
               the partner's, half the protocol's; where capped, of at most 1 % of what was expected

What is expected counts from the limit that was signed, if that is better for the user. Everything rounds in
the user's favour, by at most one unit each.

Source: choices.md#fees-and-partners; engine/chain/contracts/lib/Proceeds.sol.
Choice: Surplus is the excess over the expected amount after the fee, or over the signed limit where nothing
    better was expected. A TWAP expects nothing and has none to share.
Choice: A fee is `floor(amount * bps / 10000)` of the destination for SELL and on top of the source for BUY.
    It accrues in the FeeVault, or is sent at once on a Market swap that says so.
Choice: Surplus is the user's unless partner and protocol share it half by half, of at most 1 % of the
    expected amount where it is capped. Without a partner both shares are the protocol's; rounding favours the
    user, by at most one unit.
"""

from msgspec import Struct

from ...codecs.eip712_orders.partner_and_fee import PartnerAndFee
from ...codecs.rounding import div_up, mul_div_down

BPS = 10_000
SURPLUS_CAP_BPS = 100


class Cut(Struct, frozen=True):
    """What is not the user's, in raw units of the token that is not fixed.

    Attributes:
        fee: the partner's.
        share: of the surplus: what the partner gets, and what the protocol gets as well.
    """

    fee: int
    share: int

    @property
    def total(self) -> int:
        """All of it."""
        return self.fee + 2 * self.share


def of_sale(received: int, expected: int, minimum: int, terms: PartnerAndFee) -> Cut:
    """The cut of what a sale brought.

    Args:
        received: raw units of the destination.
        expected: of them, what was expected after the fee; 0 for nothing.
        minimum: of them, what was signed.
    """
    fee = received * terms.fee_bps // BPS
    base = max(expected, minimum)
    surplus = max(received - fee - base, 0) if expected else 0
    return Cut(fee, _share(surplus, base, terms))


def of_purchase(spent: int, expected: int, maximum: int, terms: PartnerAndFee) -> Cut | None:
    """The cut of what a purchase cost; None where that and the fee are more than the maximum.

    Args:
        spent: raw units of the source that the trade itself cost.
        expected: of them, what was expected with the fee; 0 for nothing.
        maximum: of them, what was signed.
    """
    fee = spent * terms.fee_bps // BPS
    if spent + fee > maximum:
        return None
    base = min(expected, maximum)
    return Cut(fee, _share(max(base - spent - fee, 0), base, terms))


def least_before_fee(least: int, fee_bps: int) -> int:
    """The smallest amount of which at least `least` is left after the fee of a sale."""
    return mul_div_down(least - 1, BPS, BPS - fee_bps) + 1 if least else 0


def most_before_fee(most: int, fee_bps: int) -> int:
    """The largest amount that is at most `most` with the fee of a purchase on top."""
    return div_up((most + 1) * BPS, BPS + fee_bps) - 1


def _share(surplus: int, base: int, terms: PartnerAndFee) -> int:
    if not terms.partner_takes_surplus:
        return 0
    return (min(surplus, base * SURPLUS_CAP_BPS // BPS) if terms.cap_surplus else surplus) // 2
