"""Encodes a route plan as a sealed `priceRoute`, and decodes a returned `priceRoute` to its plan. Pure.

A sealed route holds all inputs of its transaction, so that the venue keeps no state between the two requests:
`bestRoute` holds amounts and makers, `hmac` carries the terms of the quote's request. The documented members
are all that a client must send back.

    sale       destAmount = output of the paths, less the fee
    purchase   srcAmount = cost of the paths, plus the fee

Hops name the traded tokens: the wrapped form of the native token. `others`, the best route of each maker
alone, does not change the transaction: a client sends it back as issued, or leaves it out.

Source: spec 1.8, 1.25.50, 1.25.52; interop.md 3, `bestRoute`; choices.md#quotes-and-routes,
    choices.md#fees-and-partners.
Choice: Percentages are of the fixed amount, cut to two decimals; the largest part takes the rest to 100.
Choice: `gasCost` is in units of gas; an unknown value in US dollars is `"0"`.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct

from ....codecs.amounts import format_units, format_usd, parse_amount
from ....codecs.canonical_json import canonical
from ....codecs.messages.market_messages import (
    OtherRoute,
    PriceRoute,
    RoutePart,
    RouteTerms,
    Swap,
    SwapExchange,
    decode_price_route,
    decode_route_terms,
)
from ....codecs.messages.vocabulary import MarketVersion, Side
from ....codecs.messages.wire import decoder, encode
from ....codecs.rounding import mul_div_down
from ....config.errors import InvalidInput, InvalidPriceRoute, NoRoute
from ....config.limits import BPS_ONE, JSON_BYTES_MAX, UINT256_MAX
from ....config.sections.partners import ResolvedFee
from ....crypto.addresses import parse_address, to_checksum
from ....crypto.route_seal import RouteSeal
from ..routing.search.plan import HopPlan, MakerShare, PathPlan, RoutePlan, SwapRequest, Taxes
from ..routing.tokens import NATIVE_DECIMALS, ListedToken

METHODS = {Side.SELL: "swapExactIn", Side.BUY: "swapExactOut"}
"""The Router's function for each side; both pay the partner's fee."""

_PERCENT = Decimal(100)
_PRICE_DECIMALS = 18
_ADDRESSES_REMEMBERED = 1_024
_text = lru_cache(_ADDRESSES_REMEMBERED)(to_checksum)
_sorted = msgspec.json.Encoder(order="sorted", decimal_format="number").encode
_members = decoder(dict[str, Raw], bytes_max=JSON_BYTES_MAX)
_value: Callable[[bytes], Any] = decoder(object, bytes_max=JSON_BYTES_MAX)
_NULL = b"null"


class Offered(Struct, frozen=True):
    """Data that a `priceRoute` shows besides its route plan: tokens, dollar values, other makers' routes.

    Attributes:
        tokens: listed tokens by address.
        router: address of the Router contract, 20 bytes.
        src_usd, dest_usd: US dollar values of the plan's amounts before the fee; None if unknown.
        gas_usd: US dollar value of the plan's gas; None if unknown.
        others: maker -> best plan over the books of this maker alone; None if not requested.
    """

    chain_id: int
    block_number: int
    wanted: SwapRequest
    src: ListedToken
    dest: ListedToken
    tokens: Mapping[bytes, ListedToken]
    router: bytes
    fee: ResolvedFee
    version: MarketVersion
    src_usd: Decimal | None
    dest_usd: Decimal | None
    gas_usd: Decimal | None
    is_impact_reached: bool
    others: Mapping[str, RoutePlan] | None = None


class UnsealedRoute(Struct, frozen=True):
    """A `priceRoute` without its seal (`hmac`).

    Attributes:
        terms: data behind the price that the `priceRoute` does not show, such as makers to exclude and the
            tokens' taxes; the seal will contain these data.
    """

    route: PriceRoute
    terms: RouteTerms


class OpenedRoute(Struct, frozen=True):
    """A verified `priceRoute` that a client sent back.

    Attributes:
        route: the `priceRoute`, without the members `hmac` (the seal) and `others`.
        plan: the route plan that the `priceRoute` describes.
        wanted: the request to the pathfinder that led to the plan.
    """

    route: PriceRoute
    plan: RoutePlan
    wanted: SwapRequest

    @property
    def fee_bps(self) -> int:
        """Partner fee with which the route was quoted, basis points."""
        return int(self.route.partner_fee * _PERCENT)


def price_route(offered: Offered, plan: RoutePlan) -> UnsealedRoute:
    """Encode a route plan as a `priceRoute` whose seal (`hmac`) is not computed yet.

    Raises:
        NoRoute: the fee takes the whole output, or the cost is above uint256.
    """
    src_amount, dest_amount = after_fee(plan.side, plan.src_amount, plan.dest_amount, offered.fee.fee_bps)
    if dest_amount <= 0:
        raise NoRoute("the partner's fee takes all proceeds")
    if src_amount > UINT256_MAX:
        raise NoRoute("with the partner's fee the cost is above 2^256 - 1")
    router = _text(offered.router)
    tokens = offered.tokens
    route = PriceRoute(
        block_number=offered.block_number,
        network=offered.chain_id,
        src_token=offered.src.text,
        dest_token=offered.dest.text,
        src_decimals=offered.src.decimals,
        dest_decimals=offered.dest.decimals,
        src_amount=str(src_amount),
        dest_amount=str(dest_amount),
        best_route=tuple(
            RoutePart(percent, _swaps(path.hops, plan.side, tokens))
            for percent, path in zip(_percents(plan.side, plan.paths), plan.paths, strict=True)
        ),
        gas_cost_usd=format_usd(offered.gas_usd),
        gas_cost=str(plan.gas),
        version=offered.version.value,
        contract_address=router,
        token_transfer_proxy=router,
        contract_method=METHODS[plan.side],
        partner_fee=Decimal(offered.fee.fee_bps) / _PERCENT,
        src_usd=format_usd(_part(offered.src_usd, src_amount, plan.src_amount)),
        dest_usd=format_usd(_part(offered.dest_usd, dest_amount, plan.dest_amount)),
        partner=offered.fee.partner,
        max_impact_reached=offered.is_impact_reached,
        side=plan.side,
        others=UNSET if offered.others is None else _others(offered, offered.others),
    )
    # The terms keep the plan's amounts before the fee, which `unpriced` cannot recover from the rounded ones.
    return UnsealedRoute(route, _terms(offered.wanted, plan, route))


def after_fee(side: Side, src_amount: int, dest_amount: int, fee_bps: int) -> tuple[int, int]:
    """Compute the amounts that the user gives and gets with the partner's fee (choices.md#fees-and-partners).

    The function does not check that the source amount of a purchase fits in 256 bits.

    Args:
        src_amount, dest_amount: raw units before the fee.
        fee_bps: the fee, basis points.
    """
    if side is Side.SELL:
        return src_amount, dest_amount - mul_div_down(dest_amount, fee_bps, BPS_ONE)
    return src_amount + mul_div_down(src_amount, fee_bps, BPS_ONE), dest_amount


# --- The seal -----------------------------------------------------------------------------------------


def sealed(seal: RouteSeal, priced: UnsealedRoute, now_ms: int) -> PriceRoute:
    """Return the `priceRoute` with its seal, the venue's signature over the route, in `hmac`."""
    covered = _sorted(msgspec.structs.replace(priced.route, others=UNSET))
    return msgspec.structs.replace(priced.route, hmac=seal.seal(covered, now_ms, encode(priced.terms)))


def opened(seal: RouteSeal, raw: bytes, now_ms: int) -> OpenedRoute:
    """Verify and decode a `priceRoute` that a client sent back.

    Args:
        raw: JSON of the route.

    Guarantees: the seal covers all returned data, so that a client cannot have changed the data.

    Raises:
        InvalidPriceRoute: the route differs from every route that this venue has issued.
        StalePriceRoute: the route was issued too long ago.
    """
    try:
        members = _members(canonical(raw))
        given = _value(bytes(members.pop("hmac", Raw(_NULL))))
    except InvalidInput as error:
        said = error.detail.removeprefix(f"{error.message}: ")
        raise InvalidPriceRoute(said, field="priceRoute") from None
    # The seal does not cover `others`, since a client may leave them out; the sealed terms have their digest.
    others = bytes(members.pop("others", Raw(_NULL)))
    covered = _sorted(members)
    seal.check(covered, given, now_ms)  # before the terms in the seal, and the route, are decoded and trusted
    try:
        terms = decode_route_terms(seal.carried(given))
    except InvalidInput:
        raise InvalidPriceRoute(field="hmac", expected="the terms that a route is issued with") from None
    if others != _NULL and _digest(others) != terms.others:
        raise InvalidPriceRoute(field="priceRoute.others", expected="the member as it was issued, or none")
    return unpriced(UnsealedRoute(decode_price_route(covered), terms))


def unpriced(priced: UnsealedRoute) -> OpenedRoute:
    """Decode a `priceRoute` and its terms to the route's plan and the request that led to the plan.

    The route is trusted: `opened` has verified it, or the venue has just made it for GET /swap.
    """
    route, terms = priced.route, priced.terms
    paths = tuple(_path(tuple(map(_hop, part.swaps))) for part in route.best_route)
    plan = RoutePlan(
        route.side,
        parse_amount(terms.src_amount),
        parse_amount(terms.dest_amount),
        parse_amount(route.gas_cost),
        paths,
    )
    wanted = SwapRequest(
        src_token=paths[0].hops[0].src_token,
        dest_token=paths[0].hops[-1].dest_token,
        amount=plan.src_amount if route.side is Side.SELL else plan.dest_amount,
        side=route.side,
        only=None if terms.include is None else frozenset(terms.include),
        without=frozenset(terms.exclude),
        route=tuple(map(parse_address, terms.route)),
        taxes=Taxes(*terms.taxes),
        gas_price_wei=parse_amount(terms.gas_price_wei),
    )
    return OpenedRoute(route, plan, wanted)


# --- Parts --------------------------------------------------------------------------------------------


def _terms(wanted: SwapRequest, plan: RoutePlan, route: PriceRoute) -> RouteTerms:
    taxes = wanted.taxes
    return RouteTerms(
        src_amount=str(plan.src_amount),
        dest_amount=str(plan.dest_amount),
        gas_price_wei=str(wanted.gas_price_wei),
        include=None if wanted.only is None else tuple(sorted(wanted.only)),
        exclude=tuple(sorted(wanted.without)),
        route=tuple(map(_text, wanted.route)),
        taxes=(taxes.src, taxes.dest, taxes.src_dex, taxes.dest_dex),
        others="" if route.others is UNSET else _digest(_sorted(route.others)),
    )


def _digest(canonical_others: bytes) -> str:
    return hashlib.sha256(canonical_others).hexdigest()


def _others(offered: Offered, plans: Mapping[str, RoutePlan]) -> dict[str, OtherRoute]:
    others = {}
    for maker, plan in sorted(plans.items()):
        src_amount, dest_amount = after_fee(plan.side, plan.src_amount, plan.dest_amount, offered.fee.fee_bps)
        hops = [hop for path in plan.paths for hop in path.hops]
        others[maker] = OtherRoute(str(src_amount), str(dest_amount), _swaps(hops, plan.side, offered.tokens))
    return others


def _swaps(hops: Iterable[HopPlan], side: Side, tokens: Mapping[bytes, ListedToken]) -> tuple[Swap, ...]:
    return tuple(_swap(hop, side, tokens) for hop in hops)


def _swap(hop: HopPlan, side: Side, tokens: Mapping[bytes, ListedToken]) -> Swap:
    src, src_decimals = _text_and_decimals(hop.src_token, tokens)
    dest, dest_decimals = _text_and_decimals(hop.dest_token, tokens)
    return Swap(
        src_token=src,
        src_decimals=src_decimals,
        dest_token=dest,
        dest_decimals=dest_decimals,
        swap_exchanges=tuple(
            SwapExchange(
                share.maker,
                str(share.src_amount),
                str(share.dest_amount),
                percent,
                _data(share, src_decimals, dest_decimals),
            )
            for percent, share in zip(_percents(side, hop.shares), hop.shares, strict=True)
        ),
    )


def _text_and_decimals(address: bytes, tokens: Mapping[bytes, ListedToken]) -> tuple[str, int]:
    """Return (address as text, decimals) of a token.

    An address that is not in `tokens` counts as the wrapped native token.
    """
    token = tokens.get(address)
    return (token.text, token.decimals) if token else (_text(address), NATIVE_DECIMALS)


def _data(share: MakerShare, src_decimals: int, dest_decimals: int) -> dict[str, Any]:
    """Make the JSON member `data` of a maker's share of a hop: the type `RFQ`, and the price.

    The price is in destination tokens per source token.
    """
    scale = src_decimals + _PRICE_DECIMALS
    price = mul_div_down(share.dest_amount, 10**scale, share.src_amount) if share.src_amount else 0
    return {"type": "RFQ", "price": format_units(price, dest_decimals + _PRICE_DECIMALS)}


def _path(hops: tuple[HopPlan, ...]) -> PathPlan:
    return PathPlan(hops[0].src_amount, hops[-1].dest_amount, hops)


def _hop(swap: Swap) -> HopPlan:
    shares = tuple(
        MakerShare(exchange.exchange, parse_amount(exchange.src_amount), parse_amount(exchange.dest_amount))
        for exchange in swap.swap_exchanges
    )
    return HopPlan(
        parse_address(swap.src_token),
        parse_address(swap.dest_token),
        sum(share.src_amount for share in shares),
        sum(share.dest_amount for share in shares),
        shares,
    )


def _percents(side: Side, parts: Sequence[PathPlan] | Sequence[MakerShare]) -> list[Decimal]:
    if len(parts) == 1:
        return [_PERCENT]
    amounts = [part.src_amount if side is Side.SELL else part.dest_amount for part in parts]
    total = sum(amounts)
    hundredths = [amount * BPS_ONE // total for amount in amounts]
    hundredths[amounts.index(max(amounts))] += BPS_ONE - sum(hundredths)
    return [Decimal(hundredth) / _PERCENT for hundredth in hundredths]


def _part(value: Decimal | None, amount: int, whole: int) -> Decimal | None:
    """Compute the value of `amount` if `whole` is worth `value`; None if `value` is None."""
    return value if value is None or amount == whole else value * amount / whole
