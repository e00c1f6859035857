"""How much gas a swap of the Router is expected to need, before there is anything to simulate. Pure.

    the transaction with its fee, and one path     TRANSACTION
    each fill                                      FILL
    each hop of a path after its first             HOP, for the token between
    bought, not sold                               PURCHASE
    native tokens in, or out                       NATIVE_IN, NATIVE_OUT

A further path costs what its fills and its hops after the first cost: both of its ends are warm by then.

Measured on the embedded chain between accounts that hold both tokens, with plain tokens; a test keeps the
model within GAS_ERROR_PERCENT of that. The first time that anyone holds a token costs 20,000 more, a token's
own doings what they cost; what a chain asks for data is not in it.
"""

from ....codecs.messages.vocabulary import Side

TRANSACTION = 137_000
FILL = 66_000
HOP = 25_000
PURCHASE = 17_000
NATIVE_IN = 500
NATIVE_OUT = 5_000
GAS_ERROR_PERCENT = 10


def swap_gas(side: Side, hops_after_first: int, fills: int) -> int:
    """Units for a whole transaction of ERC-20 tokens.

    Args:
        hops_after_first: of all paths together.
    """
    purchase = PURCHASE if side is Side.BUY else 0
    return TRANSACTION + purchase + hops_after_first * HOP + fills * FILL
