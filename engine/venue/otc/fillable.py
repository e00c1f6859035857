"""How much of a token an account can still give with new OTC orders. Pure.

    min(balance, allowance to the RFQ contract) - what is left of its live orders of the token, at least 0

Source: document 2, GET /ft/fillablebalance; interop.md 1; choices.md 24.
Choice: PENDING and SUSPENDED orders count; a DRAFT, which nobody can fill, does not.
Choice: what permits grant beyond the allowance is not in it: each counts for its own order alone.
"""

from collections.abc import Iterable, Mapping

from ...store.rows import OtcOrder, amount_of
from .life import BACKED


def promised(orders: Iterable[OtcOrder]) -> dict[bytes, int]:
    """Maker's asset -> what is left of the live orders that give it; 0 where only drafts do."""
    left: dict[bytes, int] = {}
    for order in orders:
        of_order = amount_of(order.remaining) if order.status in BACKED else 0
        left[order.maker_asset] = left.get(order.maker_asset, 0) + of_order
    return left


def fillable(usable: Mapping[bytes, int], taken: Mapping[bytes, int], token: bytes) -> int:
    """What is left of a token.

    Args:
        usable: the smaller of balance and allowance; a token that tells neither is not there.
        taken: see `promised`.
    """
    return max(0, usable.get(token, 0) - taken.get(token, 0))
