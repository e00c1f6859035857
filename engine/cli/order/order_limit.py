"""`cambist order limit`: a Delta order that rests until its price can be had."""

from functools import partial

import click

from ....codecs.messages.vocabulary import OrderType
from ....config.timeouts import TRADER_LIMIT_ORDER_S
from ...client.limit_price import LimitPrice
from ...client.order.order_terms import OrderWish
from ...client.schedule import duration_text
from ...client.terms import TradedToken
from ..parameters import Duration, decimal_text, price_option
from ..trading import follow
from .order_place import PlacingOptions, place_order, placing_options

_PRICE, _AMOUNT = "--limit", "--limit-amount"


@click.command("limit")
@price_option(_PRICE)
@click.option(
    _AMOUNT,
    "limit_amount",
    metavar="AMOUNT",
    callback=decimal_text,
    help="In place of the price: least total receipt, or with --side BUY largest total spending.",
)
@click.option(
    "--partial", "is_partial", is_flag=True, help="Allow settlements in parts, at no worse a price."
)
@click.option(
    "--deadline",
    "life_s",
    type=Duration(),
    default=str(TRADER_LIMIT_ORDER_S),
    help=f"Life of the order: 90, 30m, 12h, 7d.  [default: {duration_text(TRADER_LIMIT_ORDER_S)}]",
)
@follow
@placing_options()
def limit(
    placing: PlacingOptions,
    price: LimitPrice | None,
    limit_amount: str | None,
    life_s: int,
    *,
    is_partial: bool,
    follows: bool,
) -> None:
    """Sell AMOUNT of SELL_TOKEN for BUY_TOKEN at a price, or a better price.

    The order rests at the venue until makers' prices meet it, also while you are away. Rounding is in your
    favour: you receive at least the price, or with --side BUY pay at most the price. The order needs an
    approval or a deposit, not a permit. The command shows the resulting amounts and asks.
    """
    if (price is None) == (limit_amount is None):
        raise click.UsageError(f"one of {_PRICE} and {_AMOUNT} is needed")

    def wish_of(owner: bytes, src: TradedToken, dest: TradedToken) -> OrderWish:
        if price is not None:
            amount = placing.raw_amount(src, dest)
            bound = price.limit_amount(placing.side, amount, src, dest, _PRICE)
        else:
            bound = placing.raw_limit(limit_amount or "", src, dest, _AMOUNT)
        return placing.wish(
            owner,
            src,
            dest,
            type=OrderType.LIMIT,
            life_s=life_s,
            limit_amount=bound,
            is_partial=is_partial,
        )

    placing.run(partial(place_order, follows=follows), placing, wish_of)
