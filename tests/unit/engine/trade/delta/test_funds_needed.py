"""Funds that orders need of their owners, part by part, and the reasons given for missing funds."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.codecs.eip712_orders.delta import SAME_CHAIN, TwapBuyOrder
from cambist.codecs.trading_token import NATIVE_TOKEN
from cambist.engine.chain.holdings import Holding
from cambist.engine.trade.delta.orders.funds import Fund, MissingFund, Needs, lacks_of, needs_of, told_of
from support.delta.bidding import ALICE, DEADLINE_S, ONE, USDC, USDC_ONE, WETH, a_delta_order, a_twap


def a_twap_purchase(**changed: Any) -> TwapBuyOrder:
    """Buys 3 USDC in three slices, for 10 units of WETH at most."""
    order = TwapBuyOrder(
        ALICE, ALICE, WETH, USDC, 2, 0, DEADLINE_S, 60, 3, 3 * USDC_ONE, 10, b"", b"", SAME_CHAIN
    )
    return msgspec.structs.replace(order, **changed)


def test_a_sale_needs_all_that_is_left_of_it() -> None:
    assert needs_of(a_delta_order(), 0) == Needs(ONE, ONE, is_native=False)
    assert needs_of(a_delta_order(), ONE // 4) == Needs(3 * ONE // 4, 3 * ONE // 4, is_native=False)
    assert needs_of(a_delta_order(), ONE) == Needs(0, 0, is_native=False)


def test_a_purchase_needs_what_it_is_expected_to_cost_and_to_be_allowed_the_most_that_it_may() -> None:
    order = a_delta_order(buys=True)
    assert needs_of(order, 0) == Needs(ONE, 11 * ONE // 10, is_native=False)
    part = needs_of(order, 1_000 * USDC_ONE)
    assert (part.part, part.allowance) == (ONE * 3 // 5, 11 * ONE // 10 * 3 // 5)
    for expected in (0, 2 * ONE):
        most = needs_of(msgspec.structs.replace(order, expected_amount=expected), 0)
        assert most.part == most.allowance == 11 * ONE // 10


def test_a_twap_needs_its_next_slice_and_to_be_allowed_all_that_are_left() -> None:
    twap = msgspec.structs.replace(a_twap(), total_src_amount=10)
    assert needs_of(twap, 0) == Needs(3, 10, is_native=False)
    assert needs_of(twap, 1) == Needs(3, 7, is_native=False)
    assert needs_of(twap, 2) == Needs(4, 4, is_native=False), "the last slice takes the remainder"
    assert needs_of(twap, 3) == Needs(0, 0, is_native=False)


def test_a_scheduled_purchase_needs_what_its_slices_may_cost() -> None:
    assert [needs_of(a_twap_purchase(), done).part for done in range(4)] == [3, 3, 3, 0]
    assert [needs_of(a_twap_purchase(), done).allowance for done in range(4)] == [9, 6, 3, 0]


@pytest.mark.parametrize("filled", [0, 1])
def test_a_permit_stands_for_the_allowance_and_a_deposit_for_both(filled: int) -> None:
    permitted = needs_of(a_delta_order(permit=b"\1"), filled)
    assert permitted == Needs(ONE - filled, 0, is_native=False)
    assert needs_of(a_delta_order(src_token=NATIVE_TOKEN), filled) == Needs(ONE - filled, 0, is_native=True)


@given(st.integers(0, 5), st.integers(0, 5), st.integers(0, 5), st.integers(0, 5))
def test_something_lacks_where_there_is_less_of_it(part: int, whole: int, balance: int, allows: int) -> None:
    lacks = lacks_of(Needs(part, whole, is_native=False), Holding(balance, allows))
    assert {lack.fund for lack in lacks} == (
        ({Fund.BALANCE} if balance < part else set()) | ({Fund.ALLOWANCE} if allows < whole else set())
    )
    for lack in lacks:
        assert lack.there is not None
        assert lack.there < lack.needed


def test_of_a_token_that_does_not_tell_there_is_nothing() -> None:
    (lack,) = lacks_of(Needs(7, 7, is_native=False), None)
    assert lack == MissingFund(Fund.BALANCE, 7, None)
    assert lacks_of(Needs(0, 0, is_native=False), None) == ()


def test_what_lacks_is_told_with_what_is_needed_and_what_is_there() -> None:
    needs = Needs(7, 9, is_native=False)
    text = "0x" + "0e" * 20
    told = told_of(lacks_of(needs, Holding(1, 2)), WETH)
    assert [code for code, _ in told] == ["balanceLacks", "allowanceLacks"]
    assert [sentence.lower() for _, sentence in told] == [
        f"the owner has 1 of {text}, and the next settlement takes 7",
        f"the delta contract may take 2 of {text}, and the rest of the order takes 9",
    ]
    (deposit,) = told_of(lacks_of(Needs(7, 0, is_native=True), Holding(3, 0)), NATIVE_TOKEN)
    assert deposit == (
        "depositLacks",
        "the owner has deposited 3 wei, and the next settlement takes 7",
    )
    ((code, sentence),) = told_of(lacks_of(needs, None), WETH)
    assert code == "balanceLacks"
    assert "returns no amount of the owner" in sentence
