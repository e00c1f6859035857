"""Terms of a bridge: bytes that an owner signs, and amounts that enter and arrive."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.codecs.bridges.bridge_terms import (
    SELECTORS,
    AcrossTerms,
    BridgeFee,
    BridgeKind,
    BridgeTerms,
    CctpTerms,
    fee_of,
    input_of,
    output_of,
    pack_terms,
    parse_terms,
)
from cambist.codecs.contracts.abi import uint_word
from cambist.codecs.eip712_orders.delta import DeltaBridge
from cambist.config.errors import InvalidInput
from cambist.engine.chain.artifacts import artifact

ACROSS = AcrossTerms(BridgeFee(400, 20_000), 7_200, bytes(20), 0)
CCTP = CctpTerms(BridgeFee(100, 0), 1_000, 6)
FEES = st.builds(BridgeFee, st.integers(0, 999_999), st.integers(0, 10**12))
AMOUNTS = st.integers(0, 10**30)


def bridge(terms: BridgeTerms, **changes: object) -> DeltaBridge:
    kind = BridgeKind.CCTP if isinstance(terms, CctpTerms) else BridgeKind.ACROSS
    members: dict[str, object] = {
        "protocol_selector": SELECTORS[kind],
        "destination_chain_id": 31_338,
        "output_token": b"\x22" * 20,
        "scaling_factor": 0,
        "protocol_data": pack_terms(terms),
    }
    return DeltaBridge(**(members | changes))  # type: ignore[arg-type]


def test_selectors_are_those_of_the_contract() -> None:
    functions = {
        signature.partition("(")[0]: four for signature, four in artifact("Bridges").selectors().items()
    }
    assert {kind.value: functions[kind.value] for kind in BridgeKind} == SELECTORS


@pytest.mark.parametrize("terms", [ACROSS, CCTP])
def test_what_is_packed_is_parsed(terms: BridgeTerms) -> None:
    assert parse_terms(bridge(terms)) == terms


@pytest.mark.parametrize(
    ("terms", "changes", "field"),
    [
        (ACROSS, {"protocol_selector": b"abcd"}, "bridge.protocolSelector"),
        (ACROSS, {"protocol_selector": bytes(4)}, "bridge.protocolSelector"),
        (ACROSS, {"protocol_data": pack_terms(CCTP)}, "bridge.protocolData"),
        (CCTP, {"protocol_data": pack_terms(ACROSS)}, "bridge.protocolData"),
        (ACROSS, {"protocol_data": pack_terms(ACROSS) + bytes(1)}, "bridge.protocolData"),
        (ACROSS, {"protocol_data": pack_terms(ACROSS)[:-1]}, "bridge.protocolData"),
        (ACROSS, {"scaling_factor": 31}, "bridge.scalingFactor"),
        (ACROSS, {"scaling_factor": -31}, "bridge.scalingFactor"),
        (CCTP, {"scaling_factor": 1}, "bridge.scalingFactor"),
        (AcrossTerms(BridgeFee(10**6, 0), 1, bytes(20), 0), {}, "bridge.protocolData"),
        (AcrossTerms(BridgeFee(0, 2**128), 1, bytes(20), 0), {}, "bridge.protocolData"),
        (AcrossTerms(BridgeFee(0, 0), 2**32, bytes(20), 0), {}, "bridge.protocolData"),
        (AcrossTerms(BridgeFee(0, 0), 1, b"\1" * 32, 0), {}, "bridge.protocolData"),
        (CctpTerms(BridgeFee(0, 0), 2**32, 0), {}, "bridge.protocolData"),
    ],
)  # fmt: skip
def test_what_the_module_does_not_accept_is_refused(
    terms: BridgeTerms, changes: dict[str, object], field: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_terms(bridge(terms, **changes))
    assert refused.value.field == field


MOST = {
    BridgeKind.ACROSS: (999_999, 2**128 - 1, 2**32 - 1, 2**160 - 1, 2**32 - 1),
    BridgeKind.CCTP: (999_999, 2**128 - 1, 2**32 - 1, 2**32 - 1),
}
"""The greatest numbers that the module accepts: fee in parts per million, fixed fee, and the terms."""


def with_words(kind: BridgeKind, words: Sequence[int], scaling: int = 0) -> DeltaBridge:
    data = b"".join(map(uint_word, words))
    return DeltaBridge(SELECTORS[kind], 31_338, b"\x22" * 20, scaling, data)


@pytest.mark.parametrize("kind", BridgeKind)
def test_each_number_is_accepted_up_to_its_bound(kind: BridgeKind) -> None:
    most = MOST[kind]
    fee, last = BridgeFee(*most[:2]), most[-1]
    if kind is BridgeKind.CCTP:
        assert parse_terms(with_words(kind, most)) == CctpTerms(fee, most[2], last)
    else:
        assert parse_terms(with_words(kind, most)) == AcrossTerms(fee, most[2], b"\xff" * 20, last)
    for at in range(len(most)):
        above = [number + (at == index) for index, number in enumerate(most)]
        with pytest.raises(InvalidInput, match=f"of at most {most[at]}"):
            parse_terms(with_words(kind, above))


def test_decimals_differ_by_30_at_most_and_by_none_where_a_token_is_minted() -> None:
    for scaling in range(-32, 33):
        for kind, most in ((BridgeKind.ACROSS, 30), (BridgeKind.CCTP, 0)):
            signed = with_words(kind, MOST[kind], scaling)
            if abs(scaling) <= most:
                assert parse_terms(signed).fee == BridgeFee(*MOST[kind][:2])
            else:
                with pytest.raises(InvalidInput, match=f"scalingFactor: expected at most {most}"):
                    parse_terms(signed)


def test_fees_and_outputs_by_example() -> None:
    fee = BridgeFee(400, 20_000)
    assert fee_of(fee, 2_500_000_001) == 1_000_001 + 20_000
    assert output_of(fee, 0, 2_500_000_001) == 2_498_980_000
    assert output_of(fee, 12, 2_500_000_001) == 2_498_980_000 * 10**12
    assert output_of(fee, -3, 2_500_000_001) == 2_498_980
    assert output_of(fee, 0, 20_000) == 0
    assert input_of(fee, 0, 0) == 0


@given(FEES, st.integers(-12, 12), AMOUNTS)
def test_an_input_is_the_least_that_gives_its_output(fee: BridgeFee, scaling: int, output: int) -> None:
    amount = input_of(fee, scaling, output)
    assert output_of(fee, scaling, amount) >= output
    if output:
        assert output_of(fee, scaling, amount - 1) < output


@given(FEES, st.integers(-12, 12), AMOUNTS)
def test_an_amount_covers_its_own_output(fee: BridgeFee, scaling: int, amount: int) -> None:
    assert input_of(fee, scaling, output_of(fee, scaling, amount)) <= amount
