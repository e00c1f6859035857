"""Computes the Delta price: the amounts that agents (solvers) can be expected to deliver. Pure.

    sale       output of the books - gas, in the destination token;  less the fee
    purchase   cost of the books + gas, in the source token;         plus the fee

In a route on one chain, both `origin` and `destination` are the whole swap. `crosschain` makes the routes
between chains.

Source: ARCHITECTURE.md, "Delta price"; spec 1.6; interop.md 3 (`GasCostExceedsTradeAmount`);
    choices.md#fees-and-partners.
Choice: Gas is converted by the dollar prices of the native token and of the token that pays for gas; if the
    wrapped native token pays, the amount is exact. Gas without a value is `PricingError`.
Choice: A purchase whose gas costs at least its source amount by the books is `GasCostExceedsTradeAmount`.
Choice: An amount without a price has `"0"` for US dollars.
"""

from decimal import Decimal

import msgspec
from msgspec import Struct

from ....codecs.amounts import POWERS_OF_TEN
from ....codecs.messages.delta_messages import (
    AmountEntry,
    DeltaBlock,
    Fees,
    Leg,
    Partner,
    Route,
    TokenReference,
)
from ....codecs.messages.vocabulary import Side
from ....codecs.rounding import div_up
from ....config import limits
from ....config.errors import GasCostExceedsTradeAmount, PricingError
from ....config.sections.partners import ResolvedFee
from ....feeds.books.usd_prices import UsdPrices
from ..routing.search.plan import PlanTotal
from ..routing.tokens import ListedToken

_PERCENT = Decimal(100)  # basis points of one percent
canonical_route = msgspec.json.Encoder(order="sorted").encode
"""Encode a Delta route of this venue as canonical JSON (`codecs.canonical_json`)."""


class DeltaAsk(Struct, frozen=True):
    """Inputs of a Delta price, besides the amounts that live order books yield for the swap (`PlanTotal`).

    Attributes:
        native: the chain's wrapped native token, 20 bytes; empty if none is configured.
        gas_wei: cost of the settlement's gas, wei.
        fee: the partner's fee on the request.
        spender: address of the Delta contract, as text for the answer.
    """

    chain_id: int
    side: Side
    src: ListedToken
    dest: ListedToken
    native: bytes
    gas_wei: int
    fee: ResolvedFee
    spender: str

    @property
    def paying(self) -> ListedToken:
        """Token that pays for gas and fee: a sale's destination token, a purchase's source token."""
        return self.dest if self.side is Side.SELL else self.src


def delta_block(ask: DeltaAsk, plan: PlanTotal, usd: UsdPrices, block_id: str) -> DeltaBlock:
    """Make the `delta` object of a quote: amounts after gas and fee, route, partner and spender.

    Args:
        plan: source and destination amounts by live books, before gas and fee.
        usd: prices of tokens in US dollars.
        block_id: unique id of the object.

    Raises:
        PricingError: the token that pays for gas, or the native token, has no price.
        GasCostExceedsTradeAmount: gas and fee leave nothing of the trade.
    """
    src, dest, paying = ask.src, ask.dest, ask.paying
    src_amount, dest_amount, gas = net_of(ask, plan, usd)
    src_reference, dest_reference = (
        TokenReference(ask.chain_id, src.text),
        TokenReference(ask.chain_id, dest.text),
    )
    leg = Leg(
        AmountEntry(src_reference, str(src_amount), usd.text(src.routed, src_amount)),
        AmountEntry(dest_reference, str(dest_amount), usd.text(dest.routed, dest_amount)),
    )
    gas_entry = AmountEntry(
        dest_reference if paying is dest else src_reference,
        str(gas),
        usd.text(paying.routed, gas),
    )
    return DeltaBlock(
        id=block_id,
        side=ask.side,
        input_token=src_reference,
        output_token=dest_reference,
        route=Route(leg, leg, None, Fees(gas_entry, ())),
        partner=Partner(ask.fee.partner, Decimal(ask.fee.fee_bps) / _PERCENT),
        spender=ask.spender,
    )


def net_of(ask: DeltaAsk, plan: PlanTotal, usd: UsdPrices) -> tuple[int, int, int]:
    """Compute the amounts of a Delta price after gas and fee.

    Args:
        plan: source and destination amounts by live books, before gas and fee.

    Returns:
        (source raw units that the user gives, destination raw units that the settlement pays out, cost of
        gas in raw units of the token that pays for it).

    Raises:
        PricingError, GasCostExceedsTradeAmount: see `delta_block`.
    """
    gas = gas_in_token(ask.paying, ask.gas_wei, ask.native, usd)
    src_amount, dest_amount = priced(ask.side, plan, gas, ask.fee.fee_bps)
    return src_amount, dest_amount, gas


def priced(side: Side, plan: PlanTotal, gas: int, fee_bps: int) -> tuple[int, int]:
    """Compute the amounts of a trade after gas and fee.

    Args:
        plan: source and destination amounts by live books, before gas and fee.
        gas: cost of gas in raw units of the destination token (SELL) or of the source token (BUY).
        fee_bps: fee in basis points.

    Returns:
        (source raw units that the user gives, destination raw units that the user gets).

    Raises:
        GasCostExceedsTradeAmount: gas and fee leave nothing of a sale, or the gas of a purchase costs as much
            as the source amount.
    """
    if side is Side.SELL:
        left = plan.dest_amount - gas
        kept = left - left * fee_bps // limits.BPS_ONE
        if kept <= 0:
            raise GasCostExceedsTradeAmount(expected=f"gas below {plan.dest_amount}", got=gas)
        return plan.src_amount, kept
    if gas >= plan.src_amount:
        raise GasCostExceedsTradeAmount(expected=f"gas below {plan.src_amount}", got=gas)
    spent = plan.src_amount + gas
    return spent + spent * fee_bps // limits.BPS_ONE, plan.dest_amount


def gas_in_token(token: ListedToken, gas_wei: int, native: bytes, usd: UsdPrices) -> int:
    """Convert a gas cost from wei to raw units of a token, rounded up.

    Args:
        native: the chain's wrapped native token, 20 bytes.
        usd: prices of tokens in US dollars.

    Raises:
        PricingError: the token or the native token has no price in dollars.
    """
    if token.routed == native:
        return gas_wei
    one = POWERS_OF_TEN[token.decimals]
    cost, unit = usd.units(native, gas_wei), usd.units(token.routed, one)
    if cost is None or not unit:
        raise PricingError(f"no price values gas in {token.symbol}")
    return div_up(cost * one, unit)
