"""`cambist order swap`: a Delta order at the market's price, from the quote to the settlement."""

import click

from ....config.timeouts import TRADER_ORDER_S
from ..parameters import Duration, life_option
from ..trading import permit_option, slippage
from .order_place import PlacingOptions, place_order, placing_options, strategy_option


@click.command("swap")
@slippage
@life_option(
    "--deadline", Duration(), TRADER_ORDER_S, f"Life of the order.  [default: {TRADER_ORDER_S} seconds]"
)
@click.option(
    "--no-wait",
    "follows",
    is_flag=True,
    callback=lambda _, __, no_wait: not no_wait,
    help="Stop after the submission.",
)
@strategy_option
@placing_options(PlacingOptions, permit_option)
def swap(placing: PlacingOptions) -> None:
    """Swap AMOUNT of SELL_TOKEN for BUY_TOKEN by a Delta order.

    Tokens are addresses, or symbols of the venue's list; amounts are in whole tokens, such as 1.5. The
    command shows the price, asks for your consent, and compares the venue's order with that price before it
    signs. Native tokens are deposited for the order; other tokens cost gas only for an approval. With
    --strategy the settlement takes the tokens out of a yield vault, and the approval is for shares of the
    vault.
    """
    placing.run(place_order, placing)
