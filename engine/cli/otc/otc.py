"""`cambist otc`: posts, fills, cancels, lists and follows OTC orders.

    post      sign an order for a counterparty, or for anyone, and hand it to a venue
    fill      fill an order on chain, whole or in part
    cancel    cancel own orders on chain
    list      list the orders of a maker or of a taker
    watch     follow an order, or the changes of many orders

Exit status: 0 posted, filled, cancelled or shown, as asked for, 1 refused or failed before a post or a
transaction, 2 wrong usage, 3 another end: a transaction was reverted, the followed order was not filled, or
an order to be cancelled was filled, 4 the end is not known.
"""

import click

from .. import CommandGroup
from .otc_cancel import cancel
from .otc_fill import fill
from .otc_list import list_otc
from .otc_post import post
from .otc_watch import watch


@click.group(cls=CommandGroup)
def otc() -> None:
    """OTC orders: signed by a maker at no gas, filled on chain by a taker.

    Exit status: 0 as requested, 1 refused or failed before the post or the transaction, 2 wrong usage, 3
    ended in another way, 4 outcome unknown.
    """


for command in (post, fill, cancel, list_otc, watch):
    otc.add_command(command)
