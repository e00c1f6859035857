"""`cambist order swap`: a Delta order at the market's price, from the quote to the settlement."""

from functools import partial

import click

from ....codecs.messages.vocabulary import OrderType
from ....config.timeouts import TRADER_ORDER_S
from ...client.order.order_terms import OrderWish
from ...client.terms import TradedToken
from ..parameters import Duration
from ..trading import permit_option, slippage
from .order_place import PlacingOptions, place_order, placing_options


@click.command("swap")
@slippage
@click.option(
    "--deadline",
    "life_s",
    type=Duration(),
    default=str(TRADER_ORDER_S),
    help=f"Life of the order.  [default: {TRADER_ORDER_S} seconds]",
)
@click.option("--no-wait", is_flag=True, help="Stop after the submission.")
@placing_options(permit_option)
def swap(placing: PlacingOptions, slippage_bps: int, life_s: int, *, no_wait: bool) -> None:
    """Swap AMOUNT of SELL_TOKEN for BUY_TOKEN by a Delta order.

    Tokens are addresses, or symbols of the venue's list; amounts are in whole tokens, such as 1.5. Shows the
    price and asks. The command compares the venue's order with that price before it signs. Native tokens are
    deposited for the order; other tokens cost gas only for an approval.
    """

    def wish_of(owner: bytes, src: TradedToken, dest: TradedToken) -> OrderWish:
        return placing.wish(owner, src, dest, type=OrderType.MARKET, life_s=life_s, slippage_bps=slippage_bps)

    placing.run(partial(place_order, follows=not no_wait), placing, wish_of)
