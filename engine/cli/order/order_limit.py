"""`cambist order limit`: a Delta order that rests until its price can be had."""

import click

from ....config.timeouts import TRADER_LIMIT_ORDER_S
from ...trader.client.public.results import DeltaOrderState
from ...trader.client.public.venue import Venue
from ...trader.client.schedule import duration_text
from ..parameters import Duration, amount_option, life_option, price_option
from ..trading import follow
from .order_place import PlacingArguments, PlacingOptions, place_order, placing_options, strategy_option

_PRICE, _AMOUNT = "--limit", "--limit-amount"


class _LimitOptions(PlacingOptions, frozen=True, kw_only=True):
    """Options of `cambist order limit`. Exactly one of `price` and `limit_text` is set.

    Attributes:
        price: limit price, BUY_TOKEN for one SELL_TOKEN, as typed.
        limit_text: limit amount in whole tokens, as typed: least receipt, or largest spending of a purchase.
    """

    price: str | None
    limit_text: str | None
    is_partial: bool

    def names(self) -> dict[str, str]:
        """Map parameter names of `cambist.client` to the options and arguments of the command, for errors."""
        return super().names() | {"price": _PRICE, "limit": _AMOUNT, "is_partial": "--partial"}

    async def place(self, program: Venue, placing: PlacingArguments) -> DeltaOrderState:
        """Place the limit order."""
        return await program.order(
            self.sell,
            self.buy,
            self.amount,
            price=self.price,
            limit=self.limit_text,
            life_s=self.life_s,
            is_partial=self.is_partial,
            vault=self.strategy,
            **placing,
        )


@click.command("limit")
@price_option(_PRICE)
@amount_option(
    _AMOUNT,
    "limit_text",
    "In place of the price: least total receipt, or with --side BUY largest total spending.",
)
@click.option(
    "--partial", "is_partial", is_flag=True, help="Allow settlements in parts, at no worse a price."
)
@life_option(
    "--deadline",
    Duration(),
    TRADER_LIMIT_ORDER_S,
    f"Life of the order: 90, 30m, 12h, 7d.  [default: {duration_text(TRADER_LIMIT_ORDER_S)}]",
)
@strategy_option
@follow
@placing_options(_LimitOptions)
def limit(placing: _LimitOptions) -> None:
    """Sell AMOUNT of SELL_TOKEN for BUY_TOKEN at a price, or a better price.

    The order rests at the venue until makers' prices meet the order's price, also while you are away.
    Rounding is in your favour: you receive at least the price, or with --side BUY pay at most the price. The
    order needs an approval or a deposit, not a permit. With --strategy the tokens earn yield in a vault until
    the settlement, and the order sells shares of the vault. The command shows the resulting amounts and asks
    for your consent.
    """
    if (placing.price is None) == (placing.limit_text is None):
        raise click.UsageError(f"one of {_PRICE} and {_AMOUNT} is needed")
    if placing.is_partial and placing.strategy is not None:
        raise click.UsageError("--partial: not with --strategy")
    if placing.is_partial and placing.to_chain is not None:
        raise click.UsageError("--partial: not with --to-chain, where each part would pay the bridge")
    placing.run(place_order, placing)
