"""Outcome of a bid by the answer of its simulation, without a chain."""

from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest

from cambist.codecs.contracts.abi import selector, uint_word
from cambist.codecs.messages.agent_messages import Notice
from cambist.config.errors import NodeUnavailable, Reverted
from cambist.crypto.addresses import to_checksum
from cambist.engine.chain.port import EthCall
from cambist.engine.trade.delta.auction.simulating import gas_cost
from cambist.engine.trade.delta.bids.bids import Rejection, RoundOrder
from cambist.engine.trade.delta.bids.simulation import (
    Proven,
    SettlementOutcome,
    proven,
    simulation_of,
    transaction_gas,
)
from cambist.engine.trade.routing.tokens import ListedToken
from support.delta.bidding import ONE, USDC_ONE, a_candidate, a_round_order, hash_of
from support.venue.market_place import WrittenUsd

SALE, PURCHASE = a_round_order(1), a_round_order(2, buys=True)
FAIR = 2_500 * USDC_ONE
CALLDATA = b"\x01\x00\x02"
BASE = 21_000 + 4 + 2 * 16
PROMISE_BROKEN = selector("PromiseBroken(bytes32,uint256,uint256)")
STEP_FAILED, BELOW_MINIMUM = selector("StepFailed(uint256,bytes)"), selector("BelowMinimum(uint256,uint256)")


def words(*numbers: int) -> bytes:
    return b"".join(map(uint_word, numbers))


def crossed(spent: list[int], received: list[int], gas: int) -> bytes:
    second = 32 * (3 + 1 + len(spent))
    return words(3 * 32, second, gas, len(spent), *spent, len(received), *received)


def test_the_call_is_the_settlement_from_the_relayer() -> None:
    candidate = a_candidate("alpha", (SALE, FAIR), calldata=CALLDATA)
    call = simulation_of(candidate, b"\x0d" * 20, b"\x4e" * 20, 3_000_000)
    assert call == EthCall(b"\x0d" * 20, CALLDATA, b"\x4e" * 20, gas_max=3_000_000)
    assert transaction_gas(CALLDATA) == BASE


def test_a_settlement_that_does_what_was_promised_is_proven() -> None:
    candidate = a_candidate("alpha", (SALE, FAIR), calldata=CALLDATA)
    found = proven(candidate, words(ONE, FAIR + 1, 150_000))
    assert found == Proven(candidate, (SettlementOutcome(ONE, FAIR + 1, BASE + 150_000),))
    assert isinstance(found, Proven)
    assert found.amount(0) == FAIR + 1


@pytest.mark.parametrize(("asked", "promised", "came"), [(SALE, FAIR, FAIR - 1), (PURCHASE, ONE, ONE + 1)])
def test_a_settlement_below_the_promise_is_a_mismatch(asked: RoundOrder, promised: int, came: int) -> None:
    error = PROMISE_BROKEN + asked.order_hash + words(came, promised)
    found = proven(a_candidate("alpha", (asked, promised), place=4), Reverted("PromiseBroken", error))
    assert isinstance(found, Rejection)
    assert found.notice is Notice.SIMULATION_MISMATCH
    told = f"promised {promised}, simulated {came}"
    assert found.detail == f"bids[4]: 0x{asked.order_hash.hex()}: {told}"
    assert found.orders == {asked.order_hash: promised}
    assert found.simulated == {asked.order_hash: came}


def test_orders_that_are_crossed_share_the_gas_rounded_up() -> None:
    candidate = a_candidate("alpha", (SALE, FAIR), (PURCHASE, ONE), calldata=CALLDATA)
    found = proven(candidate, crossed([ONE, ONE], [FAIR, FAIR], 101 - BASE % 2))
    share = (BASE + 101 - BASE % 2 + 1) // 2
    assert found == Proven(
        candidate, (SettlementOutcome(ONE, FAIR, share), SettlementOutcome(ONE, FAIR, share))
    )


def test_the_order_of_a_crossing_whose_promise_is_broken_is_named() -> None:
    candidate = a_candidate("alpha", (SALE, FAIR), (PURCHASE, ONE), calldata=CALLDATA)
    found = proven(candidate, Reverted("", PROMISE_BROKEN + hash_of(2) + words(ONE + 1, ONE)))
    assert isinstance(found, Rejection)
    assert found.orders == {hash_of(1): FAIR, hash_of(2): ONE}
    assert found.simulated == {hash_of(2): ONE + 1}


@pytest.mark.parametrize("error", ["BelowMinimum(uint256,uint256)", "AboveMaximum(uint256,uint256)"])
def test_a_limit_that_the_contract_holds_is_below_limit(error: str) -> None:
    candidate = a_candidate("alpha", (SALE, FAIR))
    found = proven(candidate, Reverted("in words", selector(error) + words(1, 2)))
    assert isinstance(found, Rejection)
    assert (found.notice, found.detail) == (Notice.BELOW_LIMIT, "bids[0]: simulated: in words")


def test_what_a_bid_gave_below_the_orders_own_limit_is_kept() -> None:
    """The contracts name a bridge's output, and what a purchase brings, with the same errors."""
    below, above = (selector(f"{name}(uint256,uint256)") for name in ("BelowMinimum", "AboveMaximum"))
    least, most = SALE.part.dest_amount, PURCHASE.part.src_amount
    for asked, error, arguments, kept in (
        (SALE, below, (least - 1, least), least - 1),
        (SALE, below, (5, 6), None),
        (SALE, below, (), None),
        (PURCHASE, above, (most + 1, most), most + 1),
        (PURCHASE, below, (1, PURCHASE.part.dest_amount), None),
    ):
        found = proven(a_candidate("alpha", (asked, FAIR)), Reverted("in words", error + words(*arguments)))
        assert isinstance(found, Rejection)
        assert found.simulated == ({} if kept is None else {asked.order_hash: kept})
    crossing = a_candidate("alpha", (SALE, FAIR), (PURCHASE, ONE), calldata=CALLDATA)
    found = proven(crossing, Reverted("", below + words(least - 1, least)))
    assert isinstance(found, Rejection)
    assert found.simulated == {}, "the error names no order"


@pytest.mark.parametrize(
    ("refusal", "detail"),
    [
        (Reverted("TooEarly(5)", selector("TooEarly(uint256)") + words(5)), "TooEarly(5)"),
        (Reverted("", b""), "reverted without a reason"),
        (Reverted("StepFailed(0)", STEP_FAILED + BELOW_MINIMUM), "StepFailed(0)"),
    ],
)
def test_another_refusal_is_reverted(refusal: Reverted, detail: str) -> None:
    found = proven(a_candidate("alpha", (SALE, FAIR)), refusal)
    assert isinstance(found, Rejection)
    assert (found.notice, found.detail) == (Notice.REVERTED, f"bids[0]: simulated: {detail}")


@pytest.mark.parametrize("returned", [b"", words(1, 2), words(1, 2, 3, 4)])
def test_a_contract_that_answers_otherwise_proves_nothing(returned: bytes) -> None:
    found = proven(a_candidate("alpha", (SALE, FAIR)), returned)
    assert isinstance(found, Rejection)
    assert found.notice is Notice.REVERTED
    two = a_candidate("alpha", (SALE, FAIR), (PURCHASE, ONE))
    three = proven(two, crossed([1, 2, 3], [1, 2, 3], 9))
    assert isinstance(three, Rejection)
    assert "expected 2 orders" in three.detail


def test_a_node_that_is_away_says_nothing_of_the_bid() -> None:
    with pytest.raises(NodeUnavailable):
        proven(a_candidate("alpha", (SALE, FAIR)), NodeUnavailable("away"))


def test_the_cost_of_gas_in_a_token_is_by_the_prices_when_the_round_is_decided() -> None:
    """Other tasks run while a round is decided, and may move or take away the prices."""
    dest = SALE.terms.dest_token
    token = ListedToken(dest, dest, "USDC", 6, to_checksum(dest), None)
    native = b"\x0e" * 20
    usd = WrittenUsd({native: Decimal("2500e-18"), dest: Decimal("1e-6")})
    served: Any = SimpleNamespace(
        tokens=SimpleNamespace(by_address={dest: token}, wrapped_native=native), usd=usd
    )
    cost = gas_cost(SALE, served)
    assert cost is not None
    assert cost(10**18) == 2_500 * USDC_ONE
    assert cost(1) == 1
    usd.prices.clear()
    assert cost(2 * 10**18) == 5_000 * USDC_ONE
    assert gas_cost(SALE, served) is None
