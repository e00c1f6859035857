"""Estimate of the gas of a swap through the Router contract, before a transaction exists to simulate. Pure.

    the transaction with its fee, and one path     TRANSACTION
    each fill                                      FILL
    each hop of a path after its first             HOP, for the intermediate token
    a purchase (BUY)                               PURCHASE
    native tokens in, or out                       NATIVE_IN, NATIVE_OUT

A further path costs only its fills and its hops after the first: its end tokens' storage is warm by then.

The figures are measured on the embedded chain, with plain tokens and accounts that hold both tokens; a test
keeps the model within GAS_ERROR_PERCENT of the measurement. Not included: 20,000 for an account's first
holding of a token, the cost of tokens with their own logic, and a chain's fee for data.
"""

from .....codecs.messages.vocabulary import Side

TRANSACTION = 137_000
FILL = 66_000
HOP = 25_000
PURCHASE = 17_000
NATIVE_IN = 500
NATIVE_OUT = 5_000
GAS_ERROR_PERCENT = 10


def swap_gas(side: Side, hops_after_first: int, fills: int) -> int:
    """Estimate the gas units of a whole transaction that swaps ERC-20 tokens.

    Args:
        hops_after_first: hops after each path's first, summed over all paths.
        fills: number of makers' fills over all paths.
    """
    purchase = PURCHASE if side is Side.BUY else 0
    return TRANSACTION + purchase + hops_after_first * HOP + fills * FILL
