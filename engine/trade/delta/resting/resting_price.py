"""Compares the price of live books with the limit of a waiting limit order. Pure.

    sale       output of the books for a part - gas   >=  the part's minimum and the fee on it
    purchase   cost of the books for a part + gas     <=  the part's maximum less the fee on top

Gas is the cost of the fills and the settlement, in the destination token (sale) or source token (purchase).
Minimum and maximum are pro rata, as the contract computes them. The shares of partner and protocol in the
surplus do not count here: they never take a settlement below its limit.

Source: ARCHITECTURE.md, "Delta price"; engine/chain/proceeds; contracts/Delta.sol, `settle`.
Choice: A partially fillable order is fillable if a part of at least a tenth is: the whole is tried, then
    successive halves, then the tenth.
"""

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from .....codecs.eip712_orders.delta import DeltaOrder, ProductiveOrder
from .....codecs.messages.vocabulary import OrderType, Side
from .....codecs.rounding import mul_div_down, mul_div_up
from .....config.errors import PricingError
from .....feeds.books.usd_prices import UsdPrices
from ....chain.proceeds import BPS, least_before_fee, most_before_fee
from ...quote.delta_price import gas_in_token
from ...routing.search.gas import swap_gas
from ...routing.search.ladders import LadderRate
from ...routing.search.pathfinder import Pathfinder
from ...routing.search.plan import PlanTotal, SwapRequest
from ...routing.tokens import TokenTable
from ..orders.terms import DeltaPart, part_min, sells_shares

if TYPE_CHECKING:
    from ..orders.live_orders import LiveOrder

Ends = tuple[bytes, bytes]
"""Addresses of an order's (source, destination) tokens, with native tokens as the wrapped token."""


class RestingFacts(Struct, frozen=True):
    """Limit of a waiting limit order and present price of the books, both for the order's unfilled amount.

    Attributes:
        amount: unfilled raw units of the source token (SELL) or the destination token (BUY).
        limit: least raw units of the destination (SELL), or most of the source (BUY).
        given: raw units that the user would get (SELL) or spend (BUY) now, after gas and fee; None if the
            books cannot fill the amount.
    """

    side: Side
    amount: int
    limit: int
    given: int | None


def rests(live: "LiveOrder") -> bool:
    """Whether an order waits until books reach its price: a limit order that agents trade, and no TWAP."""
    return live.row.type is OrderType.LIMIT and isinstance(live.order, DeltaOrder | ProductiveOrder)


def rate_of(live: "LiveOrder") -> LadderRate:
    """Compute the least rate of the books that can fill an order within its limit: (numerator, denominator).

    The rate, in destination raw units per source raw unit, covers the partner's fee but no gas. If the order
    has a fee, the limit is eased by one raw unit, since the fee is rounded. A part of the order may be filled
    at a slightly lower rate, since one raw unit is a greater share of a part than of the whole.
    """
    terms, fee_bps = live.terms, live.terms.fee.fee_bps
    unit = 1 if fee_bps else 0
    if sells_shares(live.order):
        given, least = left_of(live)
        return (least - unit) * BPS, given * (BPS - fee_bps)
    if terms.side is Side.SELL:
        return (terms.dest_total - unit) * BPS, terms.src_total * (BPS - fee_bps)
    return terms.dest_total * (BPS + fee_bps), (terms.src_total + unit) * BPS


def left_of(live: "LiveOrder") -> tuple[int, int]:
    """Return (source, destination) raw units of an order's unfilled rest at its limit; (0, 0) if filled."""
    part = live.part()
    return (0, 0) if part is None else (part.src_amount, part.dest_amount)


class RestingPrices:
    """Prices of orders by a chain's live books, net of gas, and the comparison with the orders' limits.

    Args:
        delta_gas: units of gas that a settlement uses besides its fills.
    """

    def __init__(self, pathfinder: Pathfinder, usd: UsdPrices, tokens: TokenTable, delta_gas: int) -> None:
        self.pathfinder = pathfinder
        self._usd = usd
        self._tokens = tokens
        self._delta_gas = delta_gas
        self.priced = 0

    def ends(self, live: "LiveOrder") -> Ends:
        """Return an order's (source, destination) token addresses, native tokens as the wrapped token."""
        return self._routed(live.terms.src_token), self._routed(live.terms.dest_token)

    def is_fillable(self, live: "LiveOrder", gas_price_wei: int) -> Generator[None, None, bool]:
        """Whether the books fill an order, or a large enough part of it, within its limit.

        The generator yields after each amount that it prices, since a price takes up to milliseconds.

        Returns:
            Whether the books fill one of the priced amounts; the books may change between the steps.
        """
        sells = live.terms.side is Side.SELL
        for amount in _amounts(live):
            other = self._other(live, amount, gas_price_wei)
            if other is not None:
                limit = _limit(live, amount)
                if other >= limit if sells else other <= limit:
                    return True
            yield
        return False

    def facts(self, live: "LiveOrder", gas_price_wei: int) -> RestingFacts | None:
        """Return limit and present price of an order's unfilled amount; None if the order is filled."""
        part = live.part()
        if part is None:
            return None
        amount = _traded(live, part)
        other = self._other(live, amount, gas_price_wei)
        fee_bps = live.terms.fee.fee_bps
        if live.terms.side is Side.SELL:
            given = None if other is None else max(other - other * fee_bps // BPS, 0)
            return RestingFacts(Side.SELL, amount, part.dest_amount, given)
        given = None if other is None else other + other * fee_bps // BPS
        return RestingFacts(Side.BUY, amount, part.src_amount, given)

    def _other(self, live: "LiveOrder", amount: int, gas_price_wei: int) -> int | None:
        """Compute from the books an amount's output less gas (SELL) or cost plus gas (BUY), raw units.

        The result is None if the books cannot fill the amount.

        Args:
            amount: raw units to sell (SELL) or to buy (BUY).
        """
        src, dest = self.ends(live)
        self.priced += 1
        side = live.terms.side
        plan = self.pathfinder.total(SwapRequest(src, dest, amount, side, gas_price_wei=gas_price_wei))
        if plan is None:
            return None
        gas_wei = self._gas(plan) * gas_price_wei
        if side is Side.SELL:
            return plan.dest_amount - self.worth_of_gas(live.terms.dest_token, gas_wei)
        return plan.src_amount + self.worth_of_gas(live.terms.src_token, gas_wei)

    def _gas(self, plan: PlanTotal) -> int:
        return plan.gas - swap_gas(plan.side, 0, 0) + self._delta_gas

    def worth_of_gas(self, token: bytes, gas_wei: int) -> int:
        """Convert a gas cost to raw units of a token, rounded up; 0 if the token or gas has no price."""
        listed = self._tokens.by_address.get(token)
        try:
            if listed is None:
                return 0
            return gas_in_token(listed, gas_wei, self._tokens.wrapped_native, self._usd)
        except PricingError:
            return 0

    def _routed(self, token: bytes) -> bytes:
        listed = self._tokens.by_address.get(token)
        return token if listed is None else listed.routed


def _amounts(live: "LiveOrder") -> Iterator[int]:
    """Yield the amounts of an order to price, the largest first: raw units to sell (SELL) or to buy (BUY).

    Shares of a vault are priced as the source tokens that they are worth. The first amount is the whole
    unfilled amount. For a partially fillable order, a half of the first amount, a quarter and so on follow,
    and at last the smallest part that a settlement may fill.
    """
    part = live.part()
    if part is None:
        return
    whole = _traded(live, part)
    yield whole
    if not live.document.partially_fillable:
        return
    least = part_min(whole)
    amount = whole // 2
    while amount > least:
        yield amount
        amount //= 2
    if least < whole:
        yield least


def _traded(live: "LiveOrder", part: DeltaPart) -> int:
    """Return the amount of a part that the books fill exactly: raw units to sell (SELL) or to buy (BUY)."""
    return part.src_amount if live.terms.side is Side.SELL else part.dest_amount


def _limit(live: "LiveOrder", amount: int) -> int:
    """Compute the limit of a part of an order before fees: raw units of least output or highest cost."""
    order, fee_bps = live.terms, live.terms.fee.fee_bps
    if sells_shares(live.order):
        return least_before_fee(left_of(live)[1], fee_bps)
    if order.side is Side.SELL:
        return least_before_fee(mul_div_up(order.dest_total, amount, order.src_total), fee_bps)
    return most_before_fee(mul_div_down(order.src_total, amount, order.dest_total), fee_bps)
