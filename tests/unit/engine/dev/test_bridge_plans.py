"""Plans of the dev bridges: each rule by itself, and rules that hold for all inputs."""

from math import inf
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.codecs.bridges.across import RelayData
from cambist.codecs.bridges.bridge_terms import BridgeFee, fee_of, output_of
from cambist.codecs.bridges.cctp import (
    FINALITY_CONFIRMED,
    FINALITY_FINALIZED,
    CctpBurn,
    CctpMessage,
    pack_burn,
    parse_burn,
    parse_message,
)
from cambist.engine.dev.bridge.attest_plan import AttesterOrders, as_final, completed, nonce_of
from cambist.engine.dev.bridge.lanes import LaneEnd, RelayedToken, RelayerTerms, RelayLane, lane_of
from cambist.engine.dev.bridge.relay_plan import DepositSight, RelayAct, RelayerOrders, RelayStep, next_step

WORD, ME = b"\1" * 32, b"\2" * 32
RELAY = RelayData(WORD, WORD, bytes(32), WORD, WORD, 1_000, 990, 1, 0, 5_000, 0)
SIGHT = DepositSight(is_filled=False, is_worth=True, funds=990, waited_s=10, time_s=1_000)
AT_ONCE = RelayerOrders(fill_after_s=0)


@pytest.mark.parametrize(
    ("relay", "sight", "orders", "step"),
    [
        ({}, {}, {}, (RelayAct.FILL, 4_001)),
        ({}, {"funds": 989}, {}, (RelayAct.NOTHING, 4_001)),
        ({}, {"is_worth": False}, {}, (RelayAct.NOTHING, 4_001)),
        ({}, {"is_filled": True}, {}, (RelayAct.NOTHING, 4_001)),
        ({}, {}, {"is_silent": True}, (RelayAct.NOTHING, 4_001)),
        ({"message": b"x"}, {}, {}, (RelayAct.NOTHING, 4_001)),
        ({}, {}, {"fill_after_s": 10}, (RelayAct.FILL, 4_001)),
        ({}, {}, {"fill_after_s": 12}, (RelayAct.NOTHING, 2)),
        ({}, {}, {"fill_after_s": 80_000}, (RelayAct.NOTHING, 4_001)),
        ({}, {"time_s": 5_000}, {}, (RelayAct.FILL, 1)),
        ({}, {"time_s": 5_001}, {}, (RelayAct.PAY_OUT, inf)),
        ({}, {"time_s": 5_001, "is_filled": True}, {"is_silent": True}, (RelayAct.PAY_OUT, inf)),
        ({}, {"time_s": 5_001}, {"pays_out": False}, (RelayAct.NOTHING, inf)),
        ({"exclusive_relayer": WORD, "exclusivity_deadline": 1_100}, {}, {}, (RelayAct.NOTHING, 101)),
        ({"exclusive_relayer": WORD, "exclusivity_deadline": 999}, {}, {}, (RelayAct.FILL, 4_001)),
        ({"exclusive_relayer": ME, "exclusivity_deadline": 1_100}, {}, {}, (RelayAct.FILL, 4_001)),
    ],
)
def test_the_next_step_about_a_deposit(
    relay: dict[str, Any], sight: dict[str, Any], orders: dict[str, Any], step: tuple[RelayAct, float]
) -> None:
    replace = msgspec.structs.replace
    found = next_step(replace(RELAY, **relay), replace(SIGHT, **sight), replace(AT_ONCE, **orders), ME)
    assert found == RelayStep(*step)


def test_lanes_are_of_one_token_on_two_chains() -> None:
    usdc = RelayedToken("USDC", {1: LaneEnd(b"a" * 20, 6), 2: LaneEnd(b"b" * 20, 18)}, 20_000)
    weth = RelayedToken("WETH", {1: LaneEnd(b"c" * 20, 18), 2: LaneEnd(b"d" * 20, 18)}, 10)
    tokens = usdc, weth
    lane = RelayLane("USDC", usdc.ends[1], usdc.ends[2], 20_000)
    assert lane_of(tokens, (1, b"a" * 20), (2, b"b" * 20)) == lane
    assert lane_of(tokens, (2, b"d" * 20), (1, b"c" * 20)) == RelayLane(
        "WETH", weth.ends[2], weth.ends[1], 10
    )
    for origin, destination in (
        ((1, b"a" * 20), (2, b"d" * 20)),
        ((1, b"b" * 20), (2, b"a" * 20)),
        ((1, b"a" * 20), (1, b"a" * 20)),
        ((3, b"a" * 20), (2, b"b" * 20)),
    ):
        assert lane_of(tokens, origin, destination) is None


@given(st.integers(1, 10**30), st.integers(0, 18), st.integers(0, 18), st.integers(0, 10**6))
def test_a_signed_fee_covers_what_is_suggested(amount: int, first: int, second: int, gas_micro: int) -> None:
    """An owner who signs the suggested shares and the fixed fee promises no more than arrives."""
    lane = RelayLane("USDC", LaneEnd(b"", first), LaneEnd(b"", second), gas_micro)
    terms = RelayerTerms()
    signed = BridgeFee(terms.capital_ppm + terms.lp_ppm, lane.gas_fee())
    suggested = lane.fee(amount, terms).total
    assert suggested - 1 <= fee_of(signed, amount) <= suggested
    assert output_of(signed, second - first, amount) <= lane.arriving(amount)
    assert lane.leaving(lane.arriving(amount)) <= amount
    assert lane.arriving(lane.leaving(amount)) >= amount


BURN = CctpBurn(WORD, WORD, 1_000_001, ME, 101)
FAST = CctpMessage(1, 2, bytes(32), WORD, WORD, bytes(32), FINALITY_CONFIRMED, 0, pack_burn(BURN))
STANDARD = msgspec.structs.replace(FAST, min_finality=FINALITY_FINALIZED)
ORDERS = AttesterOrders(fast_after_s=2, final_after_s=20, expires_after_blocks=50)


def test_a_fast_message_gets_a_fee_and_an_expiry() -> None:
    early = completed(FAST, ME, ORDERS, 1.5, 300)
    assert (early.raw, early.delay_reason, early.again_s) == (b"", "", 0.5)
    message = parse_message(completed(FAST, ME, ORDERS, 2, 300).raw)
    burn = parse_burn(message.body)
    assert (message.nonce, message.finality_executed) == (ME, FINALITY_CONFIRMED)
    assert (burn.fee_executed, burn.expiration_block) == (101, 350)  # rounded up
    assert msgspec.structs.replace(burn, fee_executed=0, expiration_block=0) == BURN
    again = parse_message(as_final(message))
    burn = parse_burn(again.body)
    assert (again.nonce, again.finality_executed) == (ME, FINALITY_FINALIZED)
    assert (burn.fee_executed, burn.expiration_block) == (101, 0)


def test_a_standard_message_and_one_with_too_small_a_fee_wait_for_finality() -> None:
    cheap = msgspec.structs.replace(FAST, body=pack_burn(msgspec.structs.replace(BURN, max_fee=100)))
    for message, reason in ((STANDARD, ""), (cheap, "insufficient_fee")):
        early = completed(message, ME, ORDERS, 19, 300)
        assert (early.raw, early.delay_reason, early.again_s) == (b"", reason, 1)
        final = parse_message(completed(message, ME, ORDERS, 20, 300).raw)
        burn = parse_burn(final.body)
        assert (final.finality_executed, burn.fee_executed, burn.expiration_block) == (2_000, 0, 0)


def test_a_silent_attester_completes_nothing() -> None:
    silent = msgspec.structs.replace(ORDERS, is_silent=True)
    assert completed(STANDARD, ME, silent, 1e9, 300) == completed(STANDARD, ME, silent, 0, 0)
    assert completed(STANDARD, ME, silent, 1e9, 300).again_s == inf


def test_a_message_about_no_burn_keeps_its_body() -> None:
    plain = msgspec.structs.replace(FAST, body=b"hello")
    message = parse_message(completed(plain, ME, ORDERS, 2, 300).raw)
    assert (message.body, message.finality_executed) == (b"hello", FINALITY_CONFIRMED)
    assert parse_message(as_final(message)).body == b"hello"


def test_nonces_differ() -> None:
    places = [(domain, bytes([tx]) * 32, place) for domain in (1, 2) for tx in (1, 2) for place in (0, 1)]
    assert len({nonce_of(*place) for place in places}) == len(places)


@pytest.mark.parametrize(
    ("kind", "changes", "words"),
    [
        (RelayerOrders, {"fill_after_s": -1.0}, "fill_after_s is 0 to 86400"),
        (AttesterOrders, {"fast_after_s": 86_401.0}, "fast_after_s is 0 to 86400"),
        (AttesterOrders, {"final_after_s": -0.1}, "final_after_s is 0 to 86400"),
        (AttesterOrders, {"fast_fee_bps": 10_000}, "fast_fee_bps is 0 to 9999"),
        (AttesterOrders, {"expires_after_blocks": 0}, "expires_after_blocks is 1 to"),
    ],
)
def test_orders_have_bounds(kind: type[Any], changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        kind(**changes)
