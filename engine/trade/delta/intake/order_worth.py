"""Refuses an order whose settlement costs more gas than the traded tokens are worth, as a quote does. Pure.

Source: docs/explanation/security.md, "Costs and stakes"; engine/trade/quote/delta_price.py.
Choice: The tokens of an order's first settlement have to be worth more than the gas that every settlement
    uses (`delta_gas`), and that the venue uses to deliver on another chain: a slice of a TWAP, too.
Choice: An order of a handler or a vault is not judged by its worth, nor one whose tokens or gas have no price
    at the moment.
"""

from typing import TYPE_CHECKING

from .....codecs.eip712_orders.delta import ExternalOrder, ProductiveOrder
from .....config.errors import GasCostExceedsTradeAmount, ServiceUnavailable
from ..orders.terms import DeltaPart, SettledOrder, terms_of

if TYPE_CHECKING:
    from ...served.served_chain import ServedChain


def check_worth(
    order: SettledOrder, first: DeltaPart, served: "ServedChain", delta_gas: int, there_wei: int = 0
) -> None:
    """Refuse an order whose first settlement is worth at most its gas.

    Args:
        first: amounts of the order's first settlement.
        delta_gas: units of gas that a settlement uses besides its fills.
        there_wei: cost of the order's delivery on its destination, in wei of this chain.

    Raises:
        GasCostExceedsTradeAmount: the tokens are worth less than the gas.
    """
    if isinstance(order, ExternalOrder | ProductiveOrder):
        return
    terms = terms_of(order)
    src = served.tokens.by_address.get(terms.src_token)
    try:
        gas_wei = delta_gas * served.gas.gas_price_wei + there_wei
    except ServiceUnavailable:
        return
    gas_usd = served.usd.value(served.tokens.wrapped_native, gas_wei)
    traded_usd = None if src is None else served.usd.value(src.routed, first.src_amount)
    if gas_usd is not None and traded_usd is not None and traded_usd <= gas_usd:
        raise GasCostExceedsTradeAmount(
            field="order.srcAmount",
            expected=f"worth more than the gas of a settlement, {gas_usd:.4f} USD",
            got=f"{first.src_amount}, {traded_usd:.4f} USD",
        )
