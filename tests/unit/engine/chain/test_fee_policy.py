"""Prices of gas that the relayer offers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.engine.chain.port import GasFees
from cambist.engine.chain.relay.fee_policy import FeePolicy, GasPrice, first_price, replacement_price

POLICY = FeePolicy(cap_wei=1_000, tip_min_wei=2, tip_max_wei=50, bump_bps=1_250)
WEI = st.integers(0, 10**12)


@pytest.mark.parametrize(
    ("base_fee", "tip", "expected"),
    [
        (100, 10, GasPrice(210, 10)),
        (100, 0, GasPrice(202, 2)),  # at least the least tip
        (100, 90, GasPrice(250, 50)),  # at most the greatest
        (600, 10, GasPrice(1_000, 10)),  # less head-room below the cap
        (998, 10, GasPrice(1_000, 10)),
        (999, 10, None),  # not even the base fee and the least tip
    ],
)
def test_first_price(base_fee: int, tip: int, expected: GasPrice | None) -> None:
    assert first_price(GasFees(base_fee, tip), POLICY) == expected


@pytest.mark.parametrize(
    ("before", "base_fee", "expected"),
    [
        (GasPrice(200, 10), 50, GasPrice(225, 12)),  # 12.5 %, rounded up
        (GasPrice(200, 0), 50, GasPrice(225, 10)),
        (GasPrice(200, 10), 300, GasPrice(610, 12)),  # what a first one would offer
        (GasPrice(888, 10), 50, GasPrice(999, 12)),
        (GasPrice(889, 10), 50, None),  # 1000.125 is above the cap
        (GasPrice(200, 10), 2_000, None),
    ],
)
def test_replacement_price(before: GasPrice, base_fee: int, expected: GasPrice | None) -> None:
    assert replacement_price(before, GasFees(base_fee, 10), POLICY) == expected


@given(WEI, WEI, WEI, st.integers(1_000, 10_000))
def test_no_price_is_above_the_cap_and_each_bump_is_enough(
    base_fee: int, tip: int, cap: int, bump_bps: int
) -> None:
    policy = FeePolicy(cap, 0, cap, bump_bps)
    price = first_price(GasFees(base_fee, tip), policy)
    while price is not None:
        assert base_fee <= price.fee_max_wei <= cap
        assert price.tip_wei <= price.fee_max_wei
        after = replacement_price(price, GasFees(base_fee, tip), policy)
        if after is not None:
            assert after.fee_max_wei * 10_000 >= price.fee_max_wei * (10_000 + bump_bps)
            assert after.tip_wei * 10_000 >= price.tip_wei * (10_000 + bump_bps)
        price = after
