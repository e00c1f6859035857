"""`cambist otc`: OTC orders, from the signature to the fill on chain.

    post      sign an order for a counterparty, or for anyone, and hand it to a venue
    fill      fill one on chain, whole or in part
    cancel    cancel orders of one's own on chain
    list      what there is, of a maker or of a taker
    watch     follow one, or the changes of many

Exit status: 0 posted, filled, cancelled or shown, as asked for, 1 refused or failed before anything was
posted or sent, 2 wrong usage, 3 it ended in another way: a transaction was reverted, the order that was
followed was not filled, or one that was to be cancelled was, 4 it is not known how it ends.
"""

import click

from ..order.order_options import HELP
from .otc_cancel import cancel
from .otc_fill import fill
from .otc_list import list_otc
from .otc_post import post
from .otc_watch import watch


@click.group(context_settings=HELP)
def otc() -> None:
    """OTC orders: signed by a maker at no gas, filled on chain by a taker.

    Exit status: 0 as asked for, 1 refused or failed before it was posted or sent, 2 wrong usage, 3 ended in
    another way, 4 not known.
    """


for command in (post, fill, cancel, list_otc, watch):
    otc.add_command(command)
