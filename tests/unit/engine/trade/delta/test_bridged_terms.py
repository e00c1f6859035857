"""Parts of orders across chains: what has to enter the bridge, part by part, as the contract rounds it."""

from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cambist.codecs.bridges.bridge_terms import (
    SELECTORS,
    AcrossTerms,
    BridgeFee,
    BridgeKind,
    input_of,
    output_of,
    pack_terms,
)
from cambist.codecs.eip712_orders.delta import (
    KIND_BUY,
    KIND_SELL,
    SAME_CHAIN,
    DeltaBridge,
    DeltaOrder,
    TwapBuyOrder,
    TwapOrder,
)
from cambist.engine.trade.delta.bids.bids import Candidate, Rejection, answer_of, read_answer, shown
from cambist.engine.trade.delta.orders.entering import entering, is_crosschain
from cambist.engine.trade.delta.orders.terms import SettledOrder, next_part, output_total, part_of, terms_of
from support.delta.bidding import ONE, USDC_ONE, a_delta_order, a_round_order, hash_of

FEES = st.builds(BridgeFee, st.integers(0, 999_999), st.integers(0, 10**15))
SCALES = st.integers(-12, 12)
AMOUNTS = st.integers(1, 10**30)
SLICES = st.integers(2, 50)
OWNER, SRC, DEST, OUT = (bytes([byte]) * 20 for byte in (1, 2, 3, 4))
ENDS: dict[str, Any] = {
    "owner": OWNER,
    "beneficiary": OWNER,
    "src_token": SRC,
    "dest_token": DEST,
    "nonce": 1,
    "partner_and_fee": 0,
    "deadline": 2**33,
    "permit": b"",
    "metadata": b"",
}


def a_bridge(fee: BridgeFee, scale: int) -> DeltaBridge:
    terms = AcrossTerms(fee, 7_200, bytes(20), 0)
    return DeltaBridge(SELECTORS[BridgeKind.ACROSS], 10, OUT, scale, pack_terms(terms))


def an_order(bridge: DeltaBridge, src: int, dest: int, expected: int, kind: int = KIND_SELL) -> DeltaOrder:
    return DeltaOrder(
        **ENDS, src_amount=src, dest_amount=dest, expected_amount=expected, kind=kind, bridge=bridge
    )


def twap(bridge: DeltaBridge, slices: int, per_slice: int, total: int) -> TwapOrder:
    return TwapOrder(
        **ENDS,
        interval=60,
        num_slices=slices,
        dest_amount_per_slice=per_slice,
        total_src_amount=total,
        bridge=bridge,
    )


def twap_purchase(bridge: DeltaBridge, slices: int, total: int, most: int) -> TwapBuyOrder:
    return TwapBuyOrder(
        **ENDS, interval=60, num_slices=slices, total_dest_amount=total, max_src_amount=most, bridge=bridge
    )


def on_one_chain(order: SettledOrder) -> SettledOrder:
    return msgspec.structs.replace(order, bridge=SAME_CHAIN)


@given(FEES, SCALES, AMOUNTS, AMOUNTS, AMOUNTS, st.data())
def test_a_part_of_a_sale_is_divided_first_and_then_enters(
    fee: BridgeFee, scale: int, src: int, dest: int, expected: int, data: st.DataObject
) -> None:
    order = an_order(a_bridge(fee, scale), src, dest, expected)
    amount = data.draw(st.integers(1, src))
    bare, part = (part_of(one, src, amount) for one in (on_one_chain(order), order))  # type: ignore[arg-type]
    assert (part.amount, part.src_amount, part.is_last) == (bare.amount, bare.src_amount, bare.is_last)
    assert part.dest_amount == input_of(fee, scale, bare.dest_amount)
    assert part.expected == input_of(fee, scale, bare.expected)
    assert output_of(fee, scale, part.dest_amount) >= bare.dest_amount


@given(FEES, SCALES, AMOUNTS, AMOUNTS, AMOUNTS)
def test_a_purchase_wants_what_has_to_enter_and_counts_what_arrives(
    fee: BridgeFee, scale: int, src: int, dest: int, expected: int
) -> None:
    order = an_order(a_bridge(fee, scale), src, dest, expected, KIND_BUY)
    part = next_part(order, 0)
    assert part is not None
    assert part.amount == dest
    assert part.dest_amount == input_of(fee, scale, dest)
    assert (part.src_amount, part.expected, part.is_last) == (src, expected, True)
    assert next_part(order, dest) is None


@given(FEES, SCALES, SLICES, st.integers(0, 10**30), AMOUNTS)
def test_slices_of_a_sale(fee: BridgeFee, scale: int, slices: int, per_slice: int, total: int) -> None:
    assume(total >= slices)
    order = twap(a_bridge(fee, scale), slices, per_slice, total)
    parts = [next_part(order, done) for done in range(slices)]
    bare = [next_part(on_one_chain(order), done) for done in range(slices)]
    entered = [input_of(fee, scale, part.dest_amount) for part in bare if part]
    assert [part.dest_amount for part in parts if part] == entered
    terms = terms_of(order)
    assert (terms.src_total, terms.dest_total) == (total, sum(entered))
    assert output_total(order) == sum(part.dest_amount for part in bare if part)


@given(FEES, SCALES, SLICES, AMOUNTS, AMOUNTS)
def test_slices_of_a_purchase(fee: BridgeFee, scale: int, slices: int, total: int, most: int) -> None:
    assume(total >= slices)
    order = twap_purchase(a_bridge(fee, scale), slices, total, most)
    parts = [next_part(order, done) for done in range(slices)]
    assert sum(part.amount for part in parts if part) == total == output_total(order)
    entered = [input_of(fee, scale, part.amount) for part in parts if part]
    assert [part.dest_amount for part in parts if part] == entered
    assert terms_of(order).dest_total == sum(entered)


def test_an_order_on_one_chain_stays_as_it_is() -> None:
    order = an_order(SAME_CHAIN, 10, 20, 30)
    assert not is_crosschain(order)
    assert entering(order, 20) == 20
    assert terms_of(order).dest_total == output_total(order) == 20


def test_terms_of_an_order_across_chains() -> None:
    order = an_order(a_bridge(BridgeFee(1_000, 5), 0), 10, 999, 0)
    assert is_crosschain(order)
    terms = terms_of(order)
    assert terms.dest_total == entering(order, 999) == 1_006
    assert output_total(order) == 999
    part = next_part(order, 0)
    assert part is not None
    assert part.expected == 0


# --- In an auction --------------------------------------------------------------------------------------

BY_ACROSS = a_bridge(BridgeFee(1_000, 5), 0)


def test_agents_are_shown_what_has_to_enter_the_bridge() -> None:
    told = shown(a_round_order(1, a_delta_order(bridge=BY_ACROSS)))
    fee = BridgeFee(1_000, 5)
    assert told.dest_amount == str(input_of(fee, 0, 2_400 * USDC_ONE))
    assert told.expected_amount == str(input_of(fee, 0, 2_500 * USDC_ONE))
    assert told.destination_chain_id == 10
    bought = shown(a_round_order(2, a_delta_order(buys=True, bridge=BY_ACROSS)))
    assert bought.dest_amount == str(input_of(fee, 0, 2_500 * USDC_ONE))
    assert (bought.src_amount, bought.part_min) == (str(11 * ONE // 10), "")
    plain = shown(a_round_order(3))
    assert plain.destination_chain_id == 0
    assert b"destinationChainId" not in msgspec.json.encode(plain)


@pytest.mark.parametrize("at", [0, 1])
def test_an_order_across_chains_is_settled_alone(at: int) -> None:
    asked = [a_round_order(1), a_round_order(2)]
    asked[at] = a_round_order(at + 1, a_delta_order(bridge=BY_ACROSS))
    parts = [{"orderHash": f"0x{hash_of(one).hex()}", "promisedAmount": str(10**12)} for one in (1, 2)]
    of_round = {one.order_hash: one for one in asked}

    def read(*found: dict[str, str]) -> Candidate | Rejection:
        raw = msgspec.json.encode({"bids": [{"parts": [part | {"steps": []} for part in found]}]})
        (told,) = read_answer(answer_of("alpha", 0, 0, raw), of_round)
        return told

    assert isinstance(read(parts[at]), Candidate)
    crossed = read(*parts)
    assert isinstance(crossed, Rejection)
    assert f"parts[{at}].orderHash: expected an order on one chain" in crossed.detail
