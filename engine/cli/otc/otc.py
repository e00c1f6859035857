"""`cambist otc`: posts, fills, cancels, lists and follows OTC orders.

    post      sign an order for a counterparty, or for anyone, and hand it to a venue
    fill      fill an order on chain, whole or in part
    cancel    cancel own orders on chain
    list      list the orders of a maker or of a taker
    watch     follow an order, or the changes of many orders
    purge     for operators: end orders that a venue's book should not hold

Exit status: 0 posted, filled, cancelled or shown, as asked for, 1 refused or failed before a post or a
transaction, 2 wrong usage, 3 another end: a transaction was reverted, the followed order was not filled, or
an order to be cancelled was filled, 4 the end is not known.
"""

import click

from .. import CommandGroup, LazyCommands

_COMMANDS: LazyCommands = {
    "post": (
        "otc.otc_post:post",
        "Offer AMOUNT of SELL_TOKEN for BUY_TOKEN to a counterparty, or to anyone.",
    ),
    "fill": ("otc.otc_fill:fill", "Fill an OTC order on chain, whole or in part; you pay the gas."),
    "cancel": ("otc.otc_cancel:cancel", "Cancel your orders on chain, in one transaction; you pay the gas."),
    "list": ("otc.otc_list:list_otc", "List all OTC orders of an account at a venue."),
    "watch": (
        "otc.otc_watch:watch",
        "Follow the OTC order HASH until it has ended; without HASH, print every change of many orders.",
    ),
    "purge": ("otc.otc_purge:purge", "For operators: end orders that the venue's book should not hold."),
}


@click.group(cls=CommandGroup, lazy=_COMMANDS)
def otc() -> None:
    """OTC orders: signed by a maker at no gas, filled on chain by a taker.

    Exit status: 0 as requested, 1 refused or failed before the post or the transaction, 2 wrong usage, 3
    ended in another way, 4 outcome unknown.
    """
