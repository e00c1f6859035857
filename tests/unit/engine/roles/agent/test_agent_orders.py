"""An order's limit before fees, and the highest promise for a trade."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cambist.codecs.eip712_orders.partner_and_fee import PartnerAndFee, pack_partner_and_fee
from cambist.codecs.messages.agent_messages import AuctionOrder, SolveRequest, WholeOrder
from cambist.codecs.messages.vocabulary import OnChainOrderType, Side
from cambist.config.errors import InvalidInput
from cambist.config.limits import AGENT_ORDERS_MAX, NATIVE_PLACEHOLDER
from cambist.engine.chain.proceeds import of_purchase, of_sale
from cambist.engine.roles.agent.orders import OpenOrder, open_orders
from cambist.engine.trade.delta.bids.bids import shown
from support.delta.bidding import a_delta_order, a_round_order

WRAPPED, USDC = "0x" + "11" * 20, "0x" + "22" * 20
FREE = PartnerAndFee(bytes(20), 0, partner_takes_surplus=False, cap_surplus=False)
AMOUNTS = st.integers(0, 10**6) | st.integers(0, 2**128)
FEES = st.builds(PartnerAndFee, st.just(bytes(20)), st.integers(0, 200), st.booleans(), st.booleans())


def a_request(*orders: AuctionOrder) -> SolveRequest:
    return SolveRequest(1, 1, 0, USDC, USDC, USDC, WRAPPED, "1", orders)


def an_order(side: Side, src: int, dest: int, expected: int = 0, fee: PartnerAndFee = FREE) -> OpenOrder:
    packed = pack_partner_and_fee(fee)
    shown = AuctionOrder(
        "0x01", OnChainOrderType.ORDER, side, USDC, NATIVE_PLACEHOLDER, USDC,
        str(src), str(dest), str(expected), str(packed), 0,
    )  # fmt: skip
    (order,) = open_orders(a_request(shown))
    return order


def test_native_tokens_are_traded_wrapped() -> None:
    assert an_order(Side.SELL, 1, 1).src_token == bytes.fromhex(WRAPPED[2:])


def test_more_orders_than_a_round_has_are_refused() -> None:
    shown = AuctionOrder(
        "0x01", OnChainOrderType.ORDER, Side.SELL, USDC, USDC, USDC, "1", "1", "0", "0", 0
    )  # fmt: skip
    assert len(open_orders(a_request(*[shown] * AGENT_ORDERS_MAX))) == AGENT_ORDERS_MAX
    with pytest.raises(InvalidInput, match="orders: expected at most 256"):
        open_orders(a_request(*[shown] * (AGENT_ORDERS_MAX + 1)))


@given(AMOUNTS, AMOUNTS, AMOUNTS, FEES, st.integers(0, 1_000))
def test_a_sale_that_keeps_the_limit_is_promised_with_the_margin_kept_back(
    received: int, least: int, expected: int, fee: PartnerAndFee, margin_bps: int
) -> None:
    order = an_order(Side.SELL, 1, least, expected, fee)
    promised = order.promised(1, received, margin_bps)
    users = received - of_sale(received, expected, least, fee).total
    assert (promised is None) == (received < order.limit) == (users < least)
    if promised is not None:
        assert least <= promised <= users
        assert promised in (least, users * (10_000 - margin_bps) // 10_000)


@given(AMOUNTS, AMOUNTS, AMOUNTS, FEES, st.integers(0, 1_000))
def test_a_purchase_that_keeps_the_limit_is_promised_with_the_margin_on_top(
    spent: int, most: int, expected: int, fee: PartnerAndFee, margin_bps: int
) -> None:
    order = an_order(Side.BUY, most, 5, expected, fee)
    promised = order.promised(spent, 5, margin_bps)
    cut = of_purchase(spent, expected, most, fee)
    assert (promised is None) == (spent > order.limit) == (cut is None)
    if promised is not None and cut is not None:
        assert spent + cut.total <= promised <= most
    assert order.promised(spent, 4, margin_bps) is None


@given(AMOUNTS.filter(bool), AMOUNTS, AMOUNTS, st.booleans(), st.integers(0, 8), st.data())
def test_a_part_is_the_contracts_to_the_unit(
    fixed: int, other: int, expected: int, buys: bool, cuts: int, data: st.DataObject
) -> None:
    """An agent's part of a shown order equals the part that the venue settles, after any earlier fill."""
    src, dest = (other, fixed) if buys else (fixed, other)
    amounts = {"src_amount": src, "dest_amount": dest, "expected_amount": expected}
    order = a_delta_order(buys=buys, **amounts)
    filled = data.draw(st.integers(0, fixed - 1))
    asked = a_round_order(1, order, filled=filled, partially_fillable=True)
    (one,) = open_orders(a_request(shown(asked)))
    assert one.part_min == asked.part_min
    for _ in range(cuts if one.part_min else 0):
        amount = data.draw(st.integers(one.part_min, one.fixed_amount - one.part_min))
        part, settled = one.part(amount), asked.part_of(amount)
        told = part.src_amount, part.dest_amount, part.expected
        assert told == (settled.src_amount, settled.dest_amount, settled.expected)
    assert one.part(one.fixed_amount) is one
    for amount in (0, one.part_min - 1, one.fixed_amount - one.part_min + 1, one.fixed_amount + 1):
        if amount != one.fixed_amount:
            with pytest.raises(ValueError, match="is no part that may be filled"):
                one.part(amount)


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"part_min": "-1"}, "orders[0].partMin"),
        ({"whole": WholeOrder("x", "1", "0")}, "orders[0].whole.srcAmount"),
        ({"whole": WholeOrder("0", "1", "0")}, "orders[0].whole: expected a fixed amount above 0"),
    ],
)
def test_a_part_that_makes_no_sense_is_refused(changed: dict[str, Any], field: str) -> None:
    told = replace(shown(a_round_order(1, partially_fillable=True)), **changed)
    with pytest.raises(InvalidInput, match=re.escape(field)):
        open_orders(a_request(told))
