"""Shares of a trade's proceeds: examples by hand, and properties of all trades."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.codecs.eip712_orders.partner_and_fee import PartnerAndFee
from cambist.engine.chain.proceeds import Cut, least_before_fee, most_before_fee, of_purchase, of_sale

PARTNER = b"\x11" * 20
AMOUNTS = st.integers(0, 10**30) | st.integers(0, 20_000)
ALL_TERMS = st.builds(
    PartnerAndFee,
    st.sampled_from([PARTNER, bytes(20)]),
    st.integers(0, 200),
    st.booleans(),
    st.booleans(),
)


def terms(fee_bps: int = 0, *, takes: bool = False, capped: bool = False) -> PartnerAndFee:
    return PartnerAndFee(PARTNER, fee_bps, takes, capped)


@pytest.mark.parametrize(
    ("received", "expected", "minimum", "agreed", "cut"),
    [
        (10_000, 10_000, 9_900, terms(), Cut(0, 0)),
        (10_000, 9_000, 8_000, terms(), Cut(0, 0)),  # the surplus is the user's
        (10_000, 9_800, 9_700, terms(100), Cut(100, 0)),
        (9_999, 9_800, 9_700, terms(100), Cut(99, 0)),  # 99.99, rounded for the user
        (10_000, 9_800, 9_700, terms(100, takes=True), Cut(100, 50)),  # 100 above what was expected
        (10_001, 9_800, 9_700, terms(100, takes=True), Cut(100, 50)),  # 101, halved for the user
        (10_000, 9_800, 9_700, terms(100, takes=True, capped=True), Cut(100, 49)),  # 1 % of 9,800 is 98
        (10_000, 9_000, 8_000, terms(takes=True, capped=True), Cut(0, 45)),
        (10_000, 9_000, 9_500, terms(takes=True), Cut(0, 250)),  # from the signed minimum, which is more
        (10_000, 0, 9_000, terms(takes=True), Cut(0, 0)),  # nothing was expected
        (9_000, 9_500, 8_000, terms(200, takes=True), Cut(180, 0)),
        (0, 0, 0, terms(200, takes=True), Cut(0, 0)),
    ],
)
def test_of_a_sale(received: int, expected: int, minimum: int, agreed: PartnerAndFee, cut: Cut) -> None:
    assert of_sale(received, expected, minimum, agreed) == cut


@pytest.mark.parametrize(
    ("spent", "expected", "maximum", "agreed", "cut"),
    [
        (10_000, 10_000, 10_100, terms(), Cut(0, 0)),
        (9_000, 10_000, 10_100, terms(), Cut(0, 0)),
        (9_000, 10_000, 10_100, terms(100), Cut(90, 0)),
        (10_000, 10_000, 10_100, terms(100), Cut(100, 0)),  # on top, and just within
        (10_001, 10_000, 10_100, terms(100), None),
        (9_999, 10_000, 10_097, terms(100), None),
        (9_999, 10_000, 10_098, terms(100), Cut(99, 0)),
        (9_000, 10_000, 10_100, terms(100, takes=True), Cut(90, 455)),  # 910 below what was expected
        (9_000, 10_000, 10_100, terms(100, takes=True, capped=True), Cut(90, 50)),
        (9_000, 10_000, 9_500, terms(takes=True), Cut(0, 250)),  # from the signed maximum, which is less
        (9_000, 0, 10_100, terms(takes=True), Cut(0, 0)),  # nothing was expected
        (0, 101, 101, terms(takes=True), Cut(0, 50)),
    ],
)
def test_of_a_purchase(
    spent: int, expected: int, maximum: int, agreed: PartnerAndFee, cut: Cut | None
) -> None:
    assert of_purchase(spent, expected, maximum, agreed) == cut


@given(AMOUNTS, AMOUNTS, AMOUNTS, ALL_TERMS)
def test_a_sellers_surplus_is_shared_and_nothing_below_the_limits(
    received: int, expected: int, minimum: int, agreed: PartnerAndFee
) -> None:
    cut = of_sale(received, expected, minimum, agreed)
    assert cut.fee * 10_000 <= received * agreed.fee_bps < (cut.fee + 1) * 10_000
    net = received - cut.fee
    shared = 2 * cut.share
    assert cut.total == cut.fee + shared
    if shared:
        assert agreed.partner_takes_surplus
        assert expected > 0
        assert net - shared >= max(expected, minimum)
    if agreed.cap_surplus:
        assert shared * 100 <= max(expected, minimum)
    elif agreed.partner_takes_surplus and expected:
        assert 0 <= max(net - max(expected, minimum), 0) - shared <= 1
    assert 0 <= cut.total <= received


@given(AMOUNTS, AMOUNTS, AMOUNTS, ALL_TERMS)
def test_a_buyer_never_spends_more_than_the_maximum(
    spent: int, expected: int, maximum: int, agreed: PartnerAndFee
) -> None:
    cut = of_purchase(spent, expected, maximum, agreed)
    fee = spent * agreed.fee_bps // 10_000
    if cut is None:
        assert spent + fee > maximum
        return
    assert cut.fee == fee
    shared = 2 * cut.share
    assert spent + cut.total <= maximum
    if shared:
        assert agreed.partner_takes_surplus
        assert spent + cut.total <= min(expected, maximum)
    if agreed.cap_surplus:
        assert shared * 100 <= min(expected, maximum)
    elif agreed.partner_takes_surplus:
        assert 0 <= max(min(expected, maximum) - spent - fee, 0) - shared <= 1


@given(AMOUNTS, AMOUNTS, AMOUNTS, ALL_TERMS)
def test_a_cap_only_lowers_the_share_and_more_received_costs_a_seller_a_unit_at_most(
    received: int, expected: int, minimum: int, agreed: PartnerAndFee
) -> None:
    capped = PartnerAndFee(agreed.partner, agreed.fee_bps, agreed.partner_takes_surplus, cap_surplus=True)
    cut = of_sale(received, expected, minimum, agreed)
    assert of_sale(received, expected, minimum, capped).share <= cut.share
    better = received + 1
    assert better - of_sale(better, expected, minimum, agreed).total >= received - cut.total - 1


FEES_BPS = st.integers(0, 9_999)


@given(AMOUNTS, FEES_BPS)
def test_the_least_that_a_sale_has_to_bring_is_one_above_what_would_not_do(least: int, fee_bps: int) -> None:
    found = least_before_fee(least, fee_bps)
    kept = [amount - amount * fee_bps // 10_000 for amount in (found - 1, found)]
    assert kept[0] < least <= kept[1] or found == least == 0


@given(AMOUNTS, FEES_BPS)
def test_the_most_that_a_purchase_may_cost_is_one_below_what_would_be_too_much(
    most: int, fee_bps: int
) -> None:
    found = most_before_fee(most, fee_bps)
    costs = [amount + amount * fee_bps // 10_000 for amount in (found, found + 1)]
    assert costs[0] <= most < costs[1]
