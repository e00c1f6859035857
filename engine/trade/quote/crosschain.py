"""The price of a Delta order across chains: a swap on the origin, and the best bridges for its output. Pure.

    sale       books' output - gas - partner's fee = entering amount
               entering amount - bridge's fee = arriving amount
    purchase   arriving amount + bridge's fee = entering amount
               cost of the entering amount by books + gas + partner's fee = amount that the user gives

    origin        input: the user's token         output: the token that enters the bridge, maybe the same
    destination   input: the token that arrives   output: that token, or the one that makers swap it into

The recommended route is `route`. The other routes are `alternatives`, sorted by return, then by time, then by
name.

Source: spec 1.6.9, 1.7; interop.md 3; choices.md#quotes-and-routes.
Choice: The route tagged `best-return` brings the most of a sale, or costs the least of a purchase; `fastest`
    has the least expected time; `recommended` is the fastest route within 10 basis points of the best return.
Choice: A swap on the destination is priced by the books there, less its gas.
Choice: `fees.gas` is the gas of the origin, of handing in a message of CCTP, and of a wrap that follows; of a
    bridge-only order also of a swap that follows.
Choice: At equal return a route without a swap on the destination comes first.
Choice: `fees.bridge` is in the bridge's token on the origin, from which the bridge takes it.
"""

from collections.abc import Sequence
from decimal import Decimal

from msgspec import Struct
from msgspec.structs import replace

from ....codecs.bridges.bridge_terms import fee_of, input_of, output_of
from ....codecs.messages.delta_messages import (
    AmountEntry,
    Bridge,
    DeltaBlock,
    Fees,
    Leg,
    Partner,
    Route,
    TokenReference,
)
from ....codecs.messages.vocabulary import Side
from ....config import limits
from ....config.errors import NoRoute
from ....feeds.books.usd_prices import UsdPrices
from ....feeds.bridges.fee_answers import LaneFee
from ..routing.search.gas import swap_gas
from ..routing.search.plan import PlanTotal, SwapRequest
from ..routing.tokens import ListedToken
from ..served.bridge_lanes import BridgeLane
from .delta_price import DeltaAsk, gas_in_token, net_of, priced

_PERCENT = Decimal(100)  # basis points of one percent


class SwapThere(Struct, frozen=True):
    """A priced swap or wrap, on the destination chain, of the tokens that a bridge delivers there.

    Attributes:
        dest: the token that is wanted.
        output: raw units of `dest` after gas.
        gas: cost of the swap's gas, raw units of `dest`.
    """

    dest: ListedToken
    output: int
    gas: int


class Passage(Struct, frozen=True):
    """A priced way to the destination: a swap on the origin, and a lane of a bridge for the swap's output.

    Attributes:
        ask: the swap on the origin, from the user's token to the lane's.
        src: raw units that the user gives.
        gas: cost of gas, raw units of the token that pays for it (`DeltaAsk.paying`).
        entering: raw units of the lane's token that enter the bridge.
        arriving: raw units that arrive on the destination chain.
        there: swap on the destination of the tokens that arrive; None if the user wants the lane's token.
    """

    ask: DeltaAsk
    lane: BridgeLane
    fee: LaneFee
    src: int
    gas: int
    entering: int
    arriving: int
    there: SwapThere | None = None

    @property
    def output(self) -> int:
        """Raw units of the wanted token on the destination chain."""
        return self.arriving if self.there is None else self.there.output

    @property
    def by_return(self) -> tuple[int, bool, int, str]:
        """Sort key: the better return first, then routes without a second swap, shorter time, name."""
        worth = -self.output if self.ask.side is Side.SELL else self.src
        return worth, self.there is not None, self.fee.estimated_ms, self.lane.name

    @property
    def by_time(self) -> tuple[int, bool]:
        """Sort key: the shorter time first, then routes without a second swap."""
        return self.fee.estimated_ms, self.there is not None

    def is_near(self, best: "Passage") -> bool:
        """Whether the return is within BRIDGE_RECOMMENDED_BPS of the best return."""
        whole, near = limits.BPS_ONE, limits.BRIDGE_RECOMMENDED_BPS
        if self.ask.side is Side.SELL:
            return self.output * whole >= best.output * (whole - near)
        return self.src * whole <= best.src * (whole + near)


def current_fee(lane: BridgeLane, now_ms: int) -> LaneFee:
    """Return the present fee of a lane.

    Raises:
        NoRoute: the bridge's API has given no recent fee.
    """
    fee = lane.fees.at(now_ms)
    if fee is None:
        raise NoRoute(f"its fee is not known{f' ({lane.fees.fault})' if lane.fees.fault else ''}")
    return fee


def amount_to_plan(lane: BridgeLane, fee: LaneFee, side: Side, amount: int) -> int:
    """Compute the amount of the swap on the origin: of its source (SELL) or of the lane's token (BUY).

    Args:
        amount: raw units of the source token (SELL), or of the token that arrives (BUY).

    Raises:
        NoRoute: a purchase is below or above the lane's limits.
    """
    if side is Side.SELL:
        return amount
    entering = input_of(fee.fee, lane.scaling_factor, amount)
    _check_limits(fee, entering)
    return entering


def all_given(wanted: SwapRequest) -> PlanTotal:
    """Return the plan of a bridge-only order, whose source token enters the bridge: nothing is swapped."""
    return PlanTotal(wanted.side, wanted.amount, wanted.amount, swap_gas(wanted.side, 0, 0))


def passage(
    ask: DeltaAsk, plan: PlanTotal, lane: BridgeLane, fee: LaneFee, usd: UsdPrices, amount: int
) -> Passage:
    """Price a way to the destination: a swap on the origin, and a bridge.

    Args:
        plan: amounts of the swap on the origin by live books, before gas and fee.
        usd: prices of the origin's tokens in US dollars.
        amount: raw units of the request, as `amount_to_plan` takes them.

    Raises:
        NoRoute: the output of a sale is below or above the lane's limits, or the bridge's fee takes it all.
        PricingError, GasCostExceedsTradeAmount: see `delta_block`.
    """
    src, entering, gas = net_of(ask, plan, usd)
    if ask.side is Side.BUY:
        return Passage(ask=ask, lane=lane, fee=fee, src=src, gas=gas, entering=entering, arriving=amount)
    _check_limits(fee, entering)
    arriving = output_of(fee.fee, lane.scaling_factor, entering)
    if not arriving:
        raise NoRoute(f"the bridge's fee takes all of {entering}")
    return Passage(ask=ask, lane=lane, fee=fee, src=src, gas=gas, entering=entering, arriving=arriving)


def swapped_there(
    way: Passage, dest: ListedToken, plan: PlanTotal, gas_wei: int, native: bytes, usd_there: UsdPrices
) -> Passage:
    """Price the swap, on the destination, of the tokens that a sale's bridge delivers; return `way` with it.

    Args:
        way: the way to the destination, without that swap.
        dest: the token that is wanted.
        plan: amounts of that swap by the destination's live books, before gas.
        gas_wei: cost of the gas of the venue's call that swaps, wei.
        native: the destination's wrapped native token, 20 bytes.

    Raises:
        PricingError, GasCostExceedsTradeAmount: see `delta_block`.
    """
    gas = gas_in_token(dest, gas_wei, native, usd_there)
    _, output = priced(Side.SELL, plan, gas, 0)
    return replace(way, there=SwapThere(dest, output, gas))


def wrapped_there(way: Passage) -> Passage:
    """Return a way with the wrap, on the destination, of the native tokens that the bridge pays there.

    Its gas is in the price on the origin already.
    """
    return replace(way, there=SwapThere(way.lane.destination, way.arriving, 0))


def crosschain_block(
    found: Sequence[Passage], usd: UsdPrices, usd_there: UsdPrices, block_id: str
) -> DeltaBlock:
    """Make the `delta` object of a quote across chains.

    Args:
        found: priced ways to the destination, at least one.
        usd, usd_there: prices of tokens in US dollars on the origin and on the destination chain.
        block_id: unique id of the object.
    """
    ranked = sorted(found, key=lambda way: way.by_return)
    # `min` takes the first of equals: of equally fast routes, the one with the better return.
    best, fastest = ranked[0], min(ranked, key=lambda way: way.by_time)
    recommended = min((way for way in ranked if way.is_near(best)), key=lambda way: way.by_time)
    tagged = {"recommended": recommended, "fastest": fastest, "best-return": best}
    routes = [
        _route(way, tuple(tag for tag, of in tagged.items() if of is way), usd, usd_there)
        for way in (recommended, *(way for way in ranked if way is not recommended))
    ]
    ask = best.ask
    return DeltaBlock(
        id=block_id,
        side=ask.side,
        input_token=routes[0].origin.input.token,
        output_token=routes[0].destination.output.token,
        route=routes[0],
        partner=Partner(ask.fee.partner, Decimal(ask.fee.fee_bps) / _PERCENT),
        spender=ask.spender,
        alternatives=tuple(routes[1:]),
    )


def _check_limits(fee: LaneFee, entering: int) -> None:
    if entering < fee.least:
        raise NoRoute(f"the amount is too little: {entering} would enter, at least {fee.least} may")
    most = min(fee.most, limits.UINT256_MAX)
    if entering > most:
        raise NoRoute(f"the amount is too much: {entering} would enter, at most {most} may")


def _route(way: Passage, tags: tuple[str, ...], usd: UsdPrices, usd_there: UsdPrices) -> Route:
    ask, lane = way.ask, way.lane
    src, middle = TokenReference(ask.chain_id, ask.src.text), TokenReference(ask.chain_id, lane.origin.text)
    # A swap there sells the lane's token, to which its account wraps what came; a wrap begins at what came.
    is_swapped = way.there is not None and way.there.dest is not lane.destination
    arriving = lane.destination if is_swapped else lane.delivers
    delivered = TokenReference(lane.destination_chain, arriving.text)

    def of_middle(amount: int) -> AmountEntry:
        return AmountEntry(middle, str(amount), usd.text(lane.origin.routed, amount))

    arrives = AmountEntry(delivered, str(way.arriving), usd_there.text(lane.destination.routed, way.arriving))
    output = arrives
    if (there := way.there) is not None:
        wanted = TokenReference(lane.destination_chain, there.dest.text)
        output = AmountEntry(wanted, str(there.output), usd_there.text(there.dest.routed, there.output))
    gas = AmountEntry(
        middle if ask.paying is lane.origin else src,
        str(way.gas),
        usd.text(ask.paying.routed, way.gas),
    )
    given = AmountEntry(src, str(way.src), usd.text(ask.src.routed, way.src))
    bridge = Bridge(lane.name, way.fee.estimated_ms, tags, lane.params(way.fee.fee))
    fees = Fees(gas, (of_middle(fee_of(way.fee.fee, way.entering)),))
    return Route(Leg(given, of_middle(way.entering)), Leg(arrives, output), bridge, fees)
