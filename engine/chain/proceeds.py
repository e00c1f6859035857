"""Compute the fee of a trade, its surplus, and the shares of the surplus. Pure.

    sale       fee = floor(received * bps / 10000), taken from the received amount
    purchase   fee = floor(spent * bps / 10000), on top of the spent amount
    surplus    the excess over the expected amount, after the fee. The user keeps it unless it is shared: then
               partner and protocol get half each, of the whole surplus or, where the surplus is capped, of
               at most 1 % of the expected amount; the user keeps the surplus above that

The signed limit replaces the expected amount where the limit is better for the user. Each part rounds in the
user's favour, by at most one unit. The contracts compute the same amounts.

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
    """Fee and surplus shares that a trade's user does not get.

    All amounts are raw units: of the destination token for a sale, of the source token for a purchase.

    Attributes:
        fee: fee of the partner, or of the protocol for a trade without a partner.
        share: the partner's half of the surplus that is shared; the protocol gets the same amount.
    """

    fee: int
    share: int

    @property
    def total(self) -> int:
        """Amount that the user does not get: the fee and both shares of the surplus, in raw units."""
        return self.fee + 2 * self.share


def of_sale(received: int, expected: int, minimum: int, terms: PartnerAndFee) -> Cut:
    """Compute the fee and the surplus shares of a sale from the amount that the sale brought.

    Args:
        received: raw units of the destination token.
        expected: expected amount after the fee, in the same units; 0 for no expectation.
        minimum: signed minimum, in the same units.
        terms: fee rate, and whether partner and protocol share the surplus.
    """
    fee = received * terms.fee_bps // BPS
    base = max(expected, minimum)
    surplus = max(received - fee - base, 0) if expected else 0
    return Cut(fee, _share(surplus, base, terms))


def of_purchase(spent: int, expected: int, maximum: int, terms: PartnerAndFee) -> Cut | None:
    """Compute the fee and the surplus shares of a purchase; None if cost plus fee exceeds the maximum.

    Args:
        spent: cost of the trade itself, in raw units of the source token.
        expected: expected cost with the fee, in the same units; 0 for no expectation.
        maximum: signed maximum, in the same units.
        terms: fee rate, and whether partner and protocol share the surplus.
    """
    fee = spent * terms.fee_bps // BPS
    if spent + fee > maximum:
        return None
    base = min(expected, maximum)
    return Cut(fee, _share(max(base - spent - fee, 0), base, terms))


def least_before_fee(least: int, fee_bps: int) -> int:
    """Smallest amount that a sale has to bring, in raw units, for `least` to be left after the fee."""
    return mul_div_down(least - 1, BPS, BPS - fee_bps) + 1 if least else 0


def most_before_fee(most: int, fee_bps: int) -> int:
    """Largest cost of a purchase, in raw units, for which cost plus fee is at most `most`."""
    return div_up((most + 1) * BPS, BPS + fee_bps) - 1


def _share(surplus: int, base: int, terms: PartnerAndFee) -> int:
    if not terms.partner_takes_surplus:
        return 0
    return (min(surplus, base * SURPLUS_CAP_BPS // BPS) if terms.cap_surplus else surplus) // 2
