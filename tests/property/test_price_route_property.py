"""A Market route there and back: the sealed route is the planned one, and no changed route passes."""

import itertools
import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec import UNSET, structs

from cambist.codecs.canonical_json import canonical
from cambist.codecs.messages.market_messages import PriceRoute
from cambist.codecs.messages.vocabulary import MarketVersion, Side
from cambist.codecs.messages.wire import encode
from cambist.config.errors import InvalidPriceRoute, StalePriceRoute
from cambist.config.limits import ROUTE_FRESH_MS
from cambist.config.sections.partners import ResolvedFee
from cambist.crypto.route_seal import RouteSeal
from cambist.engine.chain.proceeds import least_before_fee, most_before_fee
from cambist.engine.trade.quote.price_route import (
    Offered,
    opened,
    price_route,
    sealed,
)
from cambist.engine.trade.routing.search.plan import (
    HopPlan,
    MakerShare,
    PathPlan,
    RoutePlan,
    SwapRequest,
    Taxes,
)
from support.venue.documented import documented
from support.venue.market_place import CHAIN_ID, NOW_MS, ROUTER, a_shop

SEAL_CHARS = 80  # of the time and the digest
SEAL = RouteSeal([b"one key", b"an older one"])
TOKENS = a_shop().place.tokens.by_address
LISTED = [token for token in TOKENS.values() if token.listed is not None]
amounts = st.integers(1, 2**200)
sides = st.sampled_from(list(Side))
names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters=","), min_size=1, max_size=12)


@st.composite
def plans(draw: st.DrawFn) -> RoutePlan:
    """Any amounts along paths of listed tokens: sums are what a pathfinder keeps to."""
    src, dest, *between = draw(st.permutations(LISTED))
    paths = []
    for _ in range(draw(st.integers(1, 3))):
        way = [src, *between[: draw(st.integers(0, 2))], dest]
        hops = []
        for one, other in itertools.pairwise(way):
            shares = tuple(
                draw(st.lists(st.builds(MakerShare, names, amounts, amounts), min_size=1, max_size=3))
            )
            gives = sum(share.src_amount for share in shares)
            gets = sum(share.dest_amount for share in shares)
            hops.append(HopPlan(one.routed, other.routed, gives, gets, shares))
        paths.append(PathPlan(hops[0].src_amount, hops[-1].dest_amount, tuple(hops)))
    return RoutePlan(
        draw(sides),
        draw(amounts),
        draw(amounts),
        draw(st.integers(0, 10**7)),
        tuple(paths),
    )


@st.composite
def offers(draw: st.DrawFn) -> tuple[Offered, RoutePlan]:
    plan = draw(plans())
    first, last = plan.paths[0].hops[0], plan.paths[0].hops[-1]
    bps = st.integers(0, 9_999)
    wanted = SwapRequest(
        first.src_token,
        last.dest_token,
        plan.src_amount if plan.side is Side.SELL else plan.dest_amount,
        plan.side,
        draw(st.none() | st.frozensets(names, max_size=3)),
        draw(st.frozensets(names, max_size=3)),
        draw(st.sampled_from([(), (first.src_token, last.dest_token)])),
        draw(st.builds(Taxes, bps, bps, bps, bps)),
        draw(st.integers(0, 10**15)),
    )
    usd = st.none() | st.decimals(0, 10**30, places=10)
    offered = Offered(
        chain_id=CHAIN_ID,
        block_number=draw(st.integers(0, 2**53 - 1)),
        wanted=wanted,
        src=TOKENS[first.src_token],
        dest=TOKENS[last.dest_token],
        tokens=TOKENS,
        router=ROUTER,
        fee=ResolvedFee(draw(names), "", draw(st.integers(0, 200))),
        version=draw(st.sampled_from(list(MarketVersion))),
        src_usd=draw(usd),
        dest_usd=draw(usd),
        gas_usd=draw(usd),
        is_impact_reached=draw(st.booleans()),
        others=draw(st.none() | st.dictionaries(names, st.just(plan), max_size=2)),
    )
    return offered, plan


def bare(route: PriceRoute) -> PriceRoute:
    """The members that are sealed as they stand."""
    return structs.replace(route, hmac=UNSET, others=UNSET)


@given(offers())
def test_a_sealed_route_comes_back_as_the_plan_it_was_made_of(offer: tuple[Offered, RoutePlan]) -> None:
    offered, plan = offer
    route = sealed(SEAL, price_route(offered, plan), NOW_MS)
    back = opened(SEAL, encode(route), NOW_MS + ROUTE_FRESH_MS)
    assert (back.plan, back.wanted, back.route) == (plan, offered.wanted, bare(route))
    assert back.fee_bps == offered.fee.fee_bps


@given(offers())
def test_the_seal_is_over_the_canonical_route_and_the_terms_that_it_carries(
    offer: tuple[Offered, RoutePlan],
) -> None:
    priced = price_route(*offer)
    covered = canonical(encode(bare(priced.route)))
    assert sealed(SEAL, priced, NOW_MS).hmac == SEAL.seal(covered, NOW_MS, encode(priced.terms))


@given(offers())
def test_a_client_that_keeps_documented_members_alone_sends_back_all_that_is_needed(
    offer: tuple[Offered, RoutePlan],
) -> None:
    offered, plan = offer
    route = json.loads(encode(sealed(SEAL, price_route(offered, plan), NOW_MS)), parse_float=Decimal)
    for kept in (documented(route), documented(route) | {"others": None}):
        back = opened(SEAL, encode(kept), NOW_MS)
        assert (back.plan, back.wanted, back.fee_bps) == (plan, offered.wanted, offered.fee.fee_bps)


@given(offers(), offers())
def test_terms_of_another_route_are_refused(
    offer: tuple[Offered, RoutePlan], other: tuple[Offered, RoutePlan]
) -> None:
    one, two = (json.loads(encode(sealed(SEAL, price_route(*each), NOW_MS))) for each in (offer, other))
    assume(one != two)
    for hmac in (two["hmac"], one["hmac"][:SEAL_CHARS] + two["hmac"][SEAL_CHARS:], one["hmac"][:SEAL_CHARS]):
        if hmac != one["hmac"]:
            with pytest.raises(InvalidPriceRoute):
                opened(SEAL, json.dumps(one | {"hmac": hmac}).encode(), NOW_MS)


@given(offers())
def test_a_seal_of_ours_without_terms_is_an_invalid_route(offer: tuple[Offered, RoutePlan]) -> None:
    route = bare(price_route(*offer).route)
    older = structs.replace(route, hmac=SEAL.seal(canonical(encode(route)), NOW_MS))
    with pytest.raises(InvalidPriceRoute, match="hmac: expected the terms"):
        opened(SEAL, encode(older), NOW_MS)


@given(offers())
def test_percentages_sum_to_a_hundred(offer: tuple[Offered, RoutePlan]) -> None:
    route = price_route(*offer).route
    assert sum(part.percent for part in route.best_route) == Decimal(100)
    for part in route.best_route:
        for swap in part.swaps:
            assert sum(one.percent for one in swap.swap_exchanges) == Decimal(100)


def _leaves(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict | list) and value:
        items = value.items() if isinstance(value, dict) else enumerate(value)
        return [leaf for key, inner in items for leaf in _leaves(inner, (*at, key))]
    return [at]


def _changed(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        return value[:-1] + ("1" if value[-1:] != "1" else "2")
    return "more"


@given(offers(), st.data())
def test_every_mutation_is_refused(offer: tuple[Offered, RoutePlan], data: st.DataObject) -> None:
    raw = encode(sealed(SEAL, price_route(*offer), NOW_MS))
    document = json.loads(raw)
    leaves = [at for at in _leaves(document) if at != ("others",)]  # an empty one may be left out
    *parents, last = data.draw(st.sampled_from(leaves))
    holder = document
    for key in parents:
        holder = holder[key]
    if data.draw(st.booleans()):
        holder[last] = _changed(holder[last])
    else:
        del holder[last]
    with pytest.raises(InvalidPriceRoute):
        opened(SEAL, json.dumps(document).encode(), NOW_MS)


@given(offers())
def test_what_only_looks_different_passes_and_digits_do_not_change(offer: tuple[Offered, RoutePlan]) -> None:
    route = sealed(SEAL, price_route(*offer), NOW_MS)
    raw = encode(route)
    members = json.loads(raw, parse_float=Decimal)
    backwards = (
        b"{"
        + b", ".join(encode(name) + b" : " + encode(value) for name, value in reversed(members.items()))
        + b"}"
    )
    assert opened(SEAL, backwards, NOW_MS).route == bare(route)
    for before, after in ((b'"srcAmount":"', b'"srcAmount":"0'), (b'"network":', b'"network":1e0,"n":')):
        with pytest.raises(InvalidPriceRoute):
            opened(SEAL, raw.replace(before, after, 1), NOW_MS)
    with pytest.raises(InvalidPriceRoute):
        opened(SEAL, raw[:-1] + b',"more":1}', NOW_MS)


def test_a_route_is_good_for_thirty_seconds_and_told_stale_after() -> None:
    shop = a_shop()
    query = f"srcToken=WETH&destToken=USDC&amount={10**18}&network={CHAIN_ID}"
    route = shop.prices(query)
    assert opened(shop.seal, encode(route), NOW_MS + 30_000).route == bare(route)
    with pytest.raises(StalePriceRoute, match="Stale priceRoute: issued 30001 ms ago"):
        opened(shop.seal, encode(route), NOW_MS + 30_001)
    changed = structs.replace(route, dest_amount="1")
    with pytest.raises(InvalidPriceRoute, match=r"^Invalid priceRoute"):
        opened(shop.seal, encode(changed), NOW_MS + 60_000)  # the seal is judged before the age
    with pytest.raises(InvalidPriceRoute):
        opened(shop.seal, encode(structs.replace(route, hmac=UNSET)), NOW_MS)
    other = RouteSeal([b"another venue's"])
    with pytest.raises(InvalidPriceRoute):
        opened(other, encode(route), NOW_MS)


@pytest.mark.parametrize(
    "raw", [b"", b"null", b"[]", b'"route"', b"{}", b'{"hmac":1}', b'{"a":1,"a":2}', b"{"]
)
def test_what_is_no_route_is_refused(raw: bytes) -> None:
    with pytest.raises(InvalidPriceRoute):
        opened(SEAL, raw, NOW_MS)


@given(st.integers(0, 2**128), st.integers(0, 200))
def test_the_least_before_the_fee_is_the_least(least: int, bps: int) -> None:
    gross = least_before_fee(least, bps)
    assert gross - gross * bps // 10_000 >= least
    assert gross == 0 or gross - 1 - (gross - 1) * bps // 10_000 < least


@given(st.integers(0, 2**128), st.integers(0, 200))
def test_the_most_before_the_fee_is_the_most(most: int, bps: int) -> None:
    net = most_before_fee(most, bps)
    assert net + net * bps // 10_000 <= most
    assert net + 1 + (net + 1) * bps // 10_000 > most
