"""Trades that rows of fills and settlements show: flows, makers, surplus, time to the fill."""

from typing import Any

import pytest
from msgspec.structs import replace

from cambist.codecs.bridges.bridge_terms import (
    SELECTORS,
    AcrossTerms,
    BridgeFee,
    BridgeKind,
    input_of,
    pack_terms,
)
from cambist.codecs.eip712_orders.delta import DeltaBridge
from cambist.codecs.messages.tape_messages import TradeKind
from cambist.codecs.messages.vocabulary import OrderType
from cambist.crypto.hexadecimal import to_hex
from cambist.engine.store.rows import OtcFill, amount32
from cambist.engine.trade.delta.settlement.settling import Settlement
from cambist.engine.trade.tape.trades import (
    MakerPart,
    TapeTrade,
    TradeAccounts,
    delta_trade,
    market_trades,
    trade_message,
    valued,
)
from support.delta.bidding import a_twap
from support.store.stores import NOW_MS, USDC, WETH, hash_of
from support.tape.tape_rows import (
    ACCOUNTS,
    ALPHA,
    BETA,
    DAI,
    DELTA_CONTRACT,
    EXECUTOR,
    ONE,
    STRANGER,
    USD,
    a_delta_fill,
    a_purchase,
    a_sale,
    a_settlement,
    an_otc_fill,
    traded,
)


def swapped(*fills: OtcFill, settled: frozenset[bytes] = frozenset()) -> list[TapeTrade]:
    return market_trades(fills, settled, ACCOUNTS)


def flow(trade: TapeTrade) -> tuple[bytes, int, bytes, int]:
    return trade.src_token, trade.src_amount, trade.dest_token, trade.dest_amount


# --- Market ---------------------------------------------------------------------------------------------


def test_fills_that_pay_the_router_in_one_transaction_are_one_swap() -> None:
    first = an_otc_fill(1)
    second = replace(an_otc_fill(1, maker=BETA, maker_amount=2_499 * USD), log_index=5)
    (trade,) = swapped(second, first)
    assert trade.kind is TradeKind.MARKET
    assert flow(trade) == (WETH, 2 * ONE, USDC, 4_999 * USD)
    assert trade.parts == (MakerPart("alpha", USDC, 2_500 * USD), MakerPart("beta", USDC, 2_499 * USD))
    assert (trade.place, trade.log_id) == ((1, 5), (second.block_hash, second.tx_hash, 5))
    assert (trade.agent, trade.surplus_tenths, trade.fill_ms) == (None, None, None)


def test_the_token_between_two_hops_is_neither_given_nor_received() -> None:
    first = an_otc_fill(1, taker=EXECUTOR)
    for rest in (0, 7):
        second = replace(
            an_otc_fill(1, maker=BETA, maker_asset=DAI, taker_asset=USDC, taker_amount=2_500 * USD - rest),
            log_index=4,
        )
        (trade,) = swapped(first, second)
        assert flow(trade) == (WETH, ONE, DAI, 2_500 * USD)


@pytest.mark.parametrize("taker", [STRANGER, DELTA_CONTRACT, EXECUTOR, ALPHA])
def test_fills_that_do_not_end_at_the_router_are_no_swap(taker: bytes) -> None:
    assert swapped(an_otc_fill(1, taker=taker)) == []


def test_fills_within_a_settlement_are_no_swap_even_through_the_router() -> None:
    fill = an_otc_fill(1)
    assert swapped(fill, settled=frozenset({fill.tx_hash})) == []
    assert len(swapped(fill, settled=frozenset({hash_of(9)}))) == 1


def test_a_transaction_without_one_source_and_one_destination_is_no_swap() -> None:
    fill = an_otc_fill(1)
    two_sources = replace(an_otc_fill(1, taker_asset=DAI), log_index=4)
    two_destinations = replace(an_otc_fill(1, maker_asset=DAI), log_index=4)
    back = replace(an_otc_fill(1, maker_asset=WETH, taker_asset=USDC), log_index=4)
    returned = an_otc_fill(1, taker=EXECUTOR, maker_asset=WETH, taker_asset=USDC, maker_amount=ONE)
    all_back = replace(returned, log_index=4)
    spent_again = replace(all_back, taker_amount=amount32(3_000 * USD))
    for other in (two_sources, two_destinations, back, spent_again):
        assert swapped(fill, other) == []


def test_transactions_are_told_apart() -> None:
    assert {trade.place for trade in swapped(an_otc_fill(1), an_otc_fill(2))} == {(1, 3), (2, 3)}


def test_a_chain_without_a_router_has_no_swaps() -> None:
    accounts = TradeAccounts(b"", b"", {})
    assert market_trades([an_otc_fill(1, taker=b"")], (), accounts) == []


def test_a_swap_of_makers_that_are_not_configured_names_none() -> None:
    (trade,) = swapped(an_otc_fill(1, maker=STRANGER))
    assert trade.parts == ()


# --- Delta ----------------------------------------------------------------------------------------------


def told(order: Any, settlement: Settlement | None, *, row: Any = None, **fill: Any) -> TapeTrade:
    return delta_trade(a_delta_fill(1, **fill), traded(1, order, settlement, **row or {}), ())


def test_a_settlement_has_its_order_s_tokens_its_amounts_and_its_agent() -> None:
    parts = (MakerPart("alpha", USDC, 2_500 * USD),)
    trade = delta_trade(a_delta_fill(1), traded(1, a_sale(), a_settlement(agent="ann")), parts)
    assert flow(trade) == (WETH, ONE, USDC, 2_500 * USD)
    assert (trade.kind, trade.agent, trade.parts) == (TradeKind.DELTA, "ann", parts)
    assert (trade.fill_ms, trade.surplus_tenths) == (900, 10 * 100_000 // 2_490)


@pytest.mark.parametrize(
    ("order", "fill", "tenths"),
    [
        pytest.param(a_sale(), {"received": 2_490 * USD}, 0, id="a sale as quoted"),
        pytest.param(a_sale(), {"received": 2_490 * USD - 1}, -1, id="a sale below, floored"),
        pytest.param(a_sale(), {"received": 2_614_500_000}, 5_000, id="a sale 5 % above"),
        pytest.param(a_sale(expected_amount=0), {}, None, id="without a quoted amount"),
        pytest.param(a_purchase(), {"spent": ONE, "filled": 2_500 * USD}, 990, id="a cheaper purchase"),
        pytest.param(a_purchase(), {"spent": ONE * 102 // 100, "filled": 1}, -991, id="a dearer purchase"),
    ],
)
def test_surplus_is_what_the_owner_got_more_than_quoted(order: Any, fill: Any, tenths: int | None) -> None:
    amount = 2_500 * USD if order.kind else ONE
    assert told(order, a_settlement(part_amount=str(amount)), **fill).surplus_tenths == tenths


def test_the_quoted_amount_of_a_part_is_pro_rata() -> None:
    part = ONE // 4
    trade = told(a_sale(), a_settlement(part_amount=str(part)), spent=part, received=625 * USD, filled=part)
    assert trade.surplus_tenths == (625 * USD - 622_500_000) * 100_000 // 622_500_000


def test_a_part_after_the_first_has_no_time_to_its_fill() -> None:
    for filled, fill_ms in ((ONE // 4, 900), (ONE // 2, None)):
        settlement = a_settlement(part_amount=str(ONE // 4))
        assert told(a_sale(), settlement, spent=ONE // 4, filled=filled).fill_ms == fill_ms


def test_a_limit_order_has_no_time_to_its_fill() -> None:
    assert told(a_sale(), a_settlement(), row={"type": OrderType.LIMIT}).fill_ms is None


def test_a_block_whose_time_is_before_the_submission_took_no_time() -> None:
    assert told(a_sale(), a_settlement(), row={"created_ms": NOW_MS + 1_500}).fill_ms == 0


def test_the_first_slice_of_a_twap_is_due_at_once_and_no_slice_has_a_surplus() -> None:
    for filled, fill_ms in ((1, 900), (2, None)):
        trade = told(a_twap(), a_settlement(part_amount=str(ONE)), filled=filled)
        assert (trade.fill_ms, trade.surplus_tenths) == (fill_ms, None)


def test_a_settlement_that_this_venue_did_not_send_has_neither_agent_nor_surplus() -> None:
    trade = told(a_sale(), None)
    assert (trade.agent, trade.surplus_tenths, trade.fill_ms) == (None, None, None)


# --- Values and words -----------------------------------------------------------------------------------


def worth(token: bytes, amount: int) -> int | None:
    """A dollar for each USDC, 2,490 dollars for each WETH."""
    return {USDC: amount * 100 // USD, WETH: amount * 249_000 // ONE}.get(token)


def test_values_are_cents_of_the_moment_and_stay() -> None:
    (trade,) = swapped(an_otc_fill(1))
    found = valued(trade, worth)
    assert (found.src_cents, found.dest_cents, found.cents) == (249_000, 250_000, 249_000)
    assert found.parts == (MakerPart("alpha", USDC, 2_500 * USD, 250_000),)
    assert valued(found, lambda *_: 1) == found


def test_a_value_that_is_unknown_is_that_of_the_other_token() -> None:
    (trade,) = swapped(an_otc_fill(1, taker_asset=DAI))
    found = valued(trade, worth)
    assert (found.src_cents, found.cents, found.is_valued) == (None, 250_000, False)
    later = valued(found, lambda *_: 1)
    assert (later.src_cents, later.dest_cents) == (1, 250_000)


def test_the_message_names_no_owner_and_no_order() -> None:
    trade = delta_trade(
        a_delta_fill(1, received=2_480 * USD),
        traded(1, a_sale(), a_settlement()),
        (MakerPart("beta", USDC, 1), MakerPart("alpha", USDC, 1), MakerPart("beta", USDC, 2)),
    )
    message = trade_message(valued(trade, worth))
    assert message.makers == ("alpha", "beta")
    assert (message.src_usd, message.dest_usd, message.surplus_bps) == ("2490.00", "2480.00", "-40.2")
    assert (message.at, message.block_number) == ("2023-11-14T22:13:21.000Z", 1)
    assert message.transaction_hash == to_hex(trade.log_id[1])
    assert not {"owner", "order_hash", "id"} & set(message.__struct_fields__)


def test_the_surplus_across_chains_compares_what_entered_the_bridge() -> None:
    fee = BridgeFee(1_000, 5)
    terms = pack_terms(AcrossTerms(fee, 7_200, bytes(20), 0))
    bridge = DeltaBridge(SELECTORS[BridgeKind.ACROSS], 8_453, DAI, 0, terms)
    order = a_sale(bridge=bridge)
    expected = input_of(fee, 0, 2_490 * USD)
    assert expected > 2_490 * USD
    trade = told(order, a_settlement(), received=expected + expected // 100)
    assert trade.surplus_tenths == 999
    assert flow(trade) == (WETH, ONE, USDC, expected + expected // 100)
