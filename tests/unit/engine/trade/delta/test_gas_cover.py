"""Settlements that are worth less than their gas: covered, subsidised up to a budget, or free for keys."""

from collections.abc import Mapping
from fractions import Fraction

import pytest
from msgspec.structs import replace

from cambist.config.limits import AGENT_GAS_COVERED_MAX
from cambist.config.sections.venue import DeltaSettings, GasPolicy
from cambist.engine.host.admission.ledger import Hold, Ledger
from cambist.engine.trade.delta.auction.auction import GasCost
from cambist.engine.trade.delta.auction.gas_cover import GasCover, covered_part
from cambist.engine.trade.delta.bids.bids import RoundOrder
from cambist.engine.trade.delta.bids.simulation import Proven
from support.delta.bidding import a_proven, a_round_order

SALE, OTHER = a_round_order(1), a_round_order(3)
PURCHASE = a_round_order(2, buys=True)
GWEI, GAS = 10**9, 400_000
NOW_MS = 1_700_000_000_000
LIMIT, MOST = SALE.part.dest_amount, PURCHASE.part.src_amount


def usdc_of_wei(wei: int) -> int:
    """Worth of wei at 2,500 USDC a WETH, raw units."""
    return wei * 2_500 // 10**12


COSTS: Mapping[bytes, GasCost] = {
    SALE.order_hash: usdc_of_wei,
    OTHER.order_hash: usdc_of_wei,
    PURCHASE.order_hash: lambda wei: wei,
}
COST = usdc_of_wei(GAS * GWEI)  # of a settlement at one gwei: a USDC


def a_bid(gain: int, asked: RoundOrder = SALE, gas: int = GAS) -> Proven:
    return a_proven("ann", (asked, LIMIT + gain), gas=gas)


def a_cover(policy: GasPolicy, of_owner: int = GAS, of_all: int = 2 * GAS) -> GasCover:
    return GasCover(
        Ledger(), 1, DeltaSettings(gas_policy=policy, gas_subsidy_owner=of_owner, gas_subsidy=of_all)
    )


def taken(cover: GasCover, bid: Proven, now_ms: int = NOW_MS) -> bool:
    return cover.take(bid, GWEI, COSTS, now_ms) is not None


@pytest.mark.parametrize(
    ("bid", "part"),
    [
        (a_bid(COST), Fraction(1)),
        (a_bid(COST - 1), Fraction(COST - 1, COST)),
        (a_bid(0), Fraction(0)),
        (a_proven("ann", (PURCHASE, MOST - GAS * GWEI), gas=GAS), Fraction(1)),
        (a_proven("ann", (PURCHASE, MOST - GAS * GWEI // 2), gas=GAS), Fraction(1, 2)),
    ],
)
def test_the_gain_over_the_limit_covers_gas_in_the_token_that_pays(bid: Proven, part: Fraction) -> None:
    assert covered_part(bid, GWEI, COSTS) == part


@pytest.mark.parametrize("paid", [COST, COST // 2, 0])
def test_the_payment_of_a_bridge_only_order_covers_gas_and_no_gain_does(paid: int) -> None:
    """The owner gets what enters the bridge beyond a low limit, and may be the partner, too."""
    bid = a_bid(1_000 * COST)
    (traded,) = bid.candidate.parts
    transfer = replace(bid.candidate, parts=(replace(traded, pays_gas=True, given=paid),))
    assert covered_part(replace(bid, candidate=transfer), GWEI, COSTS) == Fraction(paid, COST)


def test_a_price_that_is_not_known_covers_nothing_and_gas_for_nothing_is_covered() -> None:
    assert covered_part(a_bid(10**12), GWEI, {}) == 0
    assert covered_part(a_bid(0), 0, {}) == 1


def test_orders_that_are_crossed_carry_each_other() -> None:
    """Each covers six tenths of the gas of both."""
    both = a_proven(
        "ann", (SALE, LIMIT + COST * 6 // 10), (PURCHASE, MOST - GAS * GWEI * 6 // 10), gas=GAS // 2
    )
    assert covered_part(both, GWEI, COSTS) == Fraction(12, 10)
    assert taken(a_cover(GasPolicy.COVERED), both)


def test_what_is_not_covered_waits_by_the_strictest_policy() -> None:
    cover = a_cover(GasPolicy.COVERED)
    assert taken(cover, a_bid(COST))
    assert not taken(cover, a_bid(COST - 1))


def test_an_owner_has_a_subsidy_for_a_day_and_all_owners_have_one() -> None:
    cover = a_cover(GasPolicy.SUBSIDISED)
    assert taken(cover, a_bid(0))
    assert not taken(cover, a_bid(0))
    assert taken(cover, a_bid(COST))
    others = [_owned(a_bid(0), bytes([number]) * 20) for number in (1, 2)]
    assert [taken(cover, bid) for bid in others] == [True, False]
    assert not taken(cover, a_bid(0), NOW_MS + 43_200_000)
    assert taken(cover, a_bid(0), NOW_MS + 86_400_000)


def test_a_subsidy_is_charged_for_what_is_not_covered() -> None:
    cover = a_cover(GasPolicy.SUBSIDISED)
    assert [taken(cover, a_bid(COST * 3 // 4)) for _ in range(5)] == [True] * 4 + [False]


def test_beyond_the_bound_of_gas_that_a_gain_covers_all_of_it_is_charged() -> None:
    gas = AGENT_GAS_COVERED_MAX + 1
    cover = a_cover(GasPolicy.SUBSIDISED, of_owner=gas, of_all=gas)
    assert [taken(cover, a_bid(100 * COST, gas=gas)) for _ in range(2)] == [True, False]


def test_a_bid_that_is_not_settled_after_all_gives_its_subsidy_back() -> None:
    cover = a_cover(GasPolicy.SUBSIDISED)
    hold = cover.take(a_bid(0), GWEI, COSTS, NOW_MS)
    assert isinstance(hold, Hold)
    cover.give_back(hold)
    assert taken(cover, a_bid(0))


def test_a_settlement_that_is_not_mined_gives_its_subsidy_back_once() -> None:
    cover = a_cover(GasPolicy.SUBSIDISED)
    hold = cover.take(a_bid(0), GWEI, COSTS, NOW_MS)
    assert isinstance(hold, Hold)
    cover.stored(SALE.order_hash, hold)
    cover.unspent(OTHER.order_hash)
    assert not taken(cover, a_bid(0))
    cover.unspent(SALE.order_hash)
    assert taken(cover, a_bid(0))
    cover.unspent(SALE.order_hash)
    assert not taken(cover, a_bid(0))


def test_orders_that_came_with_a_key_are_free_by_the_widest_policy() -> None:
    cover = a_cover(GasPolicy.FREE, of_owner=0, of_all=0)
    keyed = _with_key(a_bid(0))
    assert [taken(cover, keyed) for _ in range(10)] == [True] * 10
    assert not taken(cover, a_bid(0))
    assert not taken(a_cover(GasPolicy.SUBSIDISED, 0, 0), keyed)


def _changed(bid: Proven, order: RoundOrder) -> Proven:
    (part,) = bid.candidate.parts
    return replace(bid, candidate=replace(bid.candidate, parts=(replace(part, asked=order),)))


def _owned(bid: Proven, owner: bytes) -> Proven:
    return _changed(bid, replace(SALE, terms=replace(SALE.terms, owner=owner)))


def _with_key(bid: Proven) -> Proven:
    return _changed(bid, replace(SALE, document=replace(SALE.document, by_key=True)))


def test_the_fee_covers_too() -> None:
    fee = replace(SALE.terms.fee, fee_bps=100)
    taxed = _changed(a_bid(0), replace(SALE, terms=replace(SALE.terms, fee=fee)))
    assert covered_part(taxed, GWEI, COSTS) == Fraction(LIMIT // 100, COST)


def test_what_delivers_an_order_on_another_chain_is_gas_of_the_order() -> None:
    """A gain that covers the settlement, and a message that costs as much again on the destination."""
    there = {SALE.order_hash: GAS * GWEI}
    assert covered_part(a_bid(COST), GWEI, COSTS, there) == Fraction(1, 2)
    assert covered_part(a_bid(2 * COST), GWEI, COSTS, there) == 1
    assert a_cover(GasPolicy.COVERED).take(a_bid(COST), GWEI, COSTS, NOW_MS, there) is None
    subsidised = a_cover(GasPolicy.SUBSIDISED, of_owner=2 * GAS, of_all=3 * GAS)
    assert subsidised.take(a_bid(0), GWEI, COSTS, NOW_MS, there) is not None
    assert subsidised.take(a_bid(0), GWEI, COSTS, NOW_MS) is None, "both are charged"
