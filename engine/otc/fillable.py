"""How much of a token an account can still give with new OTC orders. Pure.

    min(balance, allowance to the RFQ contract) - what is left of its PENDING orders of the token, at least 0

Source: spec 2.10; interop.md 1.
Choice: A fillable balance is the lesser of balance and allowance less the unfilled amounts of PENDING orders,
    at least 0; a DRAFT or SUSPENDED order reserves nothing.
Choice: A permit beyond the allowance is not in the fillable balance: it counts for its own order alone.
"""

from collections.abc import Iterable, Mapping

from ...codecs.messages.vocabulary import OtcState
from ..store.rows import OtcOrderRow, amount_of


def promised(orders: Iterable[OtcOrderRow]) -> dict[bytes, int]:
    """Maker's asset -> what is left of the PENDING orders that give it; 0 where other orders alone do."""
    left: dict[bytes, int] = {}
    for order in orders:
        of_order = amount_of(order.remaining) if order.status is OtcState.PENDING else 0
        left[order.maker_asset] = left.get(order.maker_asset, 0) + of_order
    return left


def fillable(usable: Mapping[bytes, int], taken: Mapping[bytes, int], token: bytes) -> int:
    """What is left of a token.

    Args:
        usable: the smaller of balance and allowance; a token that tells neither is not there.
        taken: see `promised`.
    """
    return max(0, usable.get(token, 0) - taken.get(token, 0))
