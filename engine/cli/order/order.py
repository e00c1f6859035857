"""`cambist order`: places, follows, lists and cancels a trader's Delta orders.

    swap      at the market's price: quote, sign, submit, follow
    limit     at a price: rests until the price can be had
    twap      in slices, on a schedule
    list      list the orders at a venue
    watch     follow a submitted order, or the changes of many orders
    cancel    sign the cancellation of orders, follow them
    withdraw  take back the rest of a deposit of native tokens

Exit status: 0 settled (or placed, cancelled or shown, as asked for), 1 refused or failed before the order was
submitted, 2 wrong usage, 3 another end: not settled, not cancelled, or an earlier transaction was reverted,
4 the end is not known.
"""

import click

from .. import CommandGroup, LazyCommands

_COMMANDS: LazyCommands = {
    "swap": ("order.order_swap:swap", "Swap AMOUNT of SELL_TOKEN for BUY_TOKEN by a Delta order."),
    "limit": (
        "order.order_limit:limit",
        "Sell AMOUNT of SELL_TOKEN for BUY_TOKEN at a price, or a better price.",
    ),
    "twap": (
        "order.order_twap:twap",
        "Sell AMOUNT of SELL_TOKEN for BUY_TOKEN in slices, one order for all of them.",
    ),
    "list": ("order.order_list:list_orders", "List all Delta orders of a venue that the filters select."),
    "watch": (
        "order.order_watch:watch",
        "Follow the order ID until it has ended; without ID, print every change of many orders.",
    ),
    "cancel": (
        "order.order_cancel:cancel_orders",
        "Cancel Delta orders, by their ids or hashes: the venue cancels all of them or none.",
    ),
    "withdraw": (
        "order.order_withdraw:withdraw",
        "Take back native tokens that are deposited with the Delta contract.",
    ),
}


@click.group(cls=CommandGroup, lazy=_COMMANDS)
def order() -> None:
    """Delta orders: signed once, auctioned among agents, settled without gas of yours.

    Exit status: 0 settled (or as requested), 1 refused or failed before the submission, 2 wrong usage, 3
    ended in another way, 4 outcome unknown.
    """
