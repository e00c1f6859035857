"""Logs of Arrivals: read to the word, or refused."""

import pytest

from cambist.codecs.bridges.arrivals import (
    ARRIVAL_PAID_OUT,
    ARRIVAL_SWAPPED,
    ArrivalGiven,
    decode_arrival_log,
)
from cambist.codecs.contracts.abi import address_word, uint_word
from cambist.config.errors import InvalidInput
from cambist.engine.chain.artifacts import artifact

ACCOUNT, ALICE, USDC = b"\xa1" * 20, b"\xa2" * 20, b"\xa3" * 20
TOPICS = address_word(ACCOUNT), address_word(ALICE)
DATA = address_word(USDC) + uint_word(2_500) + uint_word(7)


def test_the_topics_are_those_of_the_compiled_contract() -> None:
    events = [entry for entry in artifact("Arrivals").abi if entry.type == "event"]
    signatures = {entry.name: entry.signature() for entry in events}
    assert signatures == {
        "ArrivalSwapped": "ArrivalSwapped(address,address,address,uint256,uint256)",
        "ArrivalPaidOut": "ArrivalPaidOut(address,address,address,uint256)",
    }


def test_a_swap_and_a_pay_out_are_read() -> None:
    swapped = decode_arrival_log((ARRIVAL_SWAPPED, *TOPICS), DATA)
    assert swapped == ArrivalGiven(ACCOUNT, ALICE, USDC, 2_500, 7)
    paid = decode_arrival_log((ARRIVAL_PAID_OUT, *TOPICS), DATA[:64])
    assert paid == ArrivalGiven(ACCOUNT, ALICE, USDC, 2_500, None)


def test_other_events_are_passed_over() -> None:
    assert decode_arrival_log((), b"") is None
    assert decode_arrival_log((b"\x01" * 32, *TOPICS), DATA) is None


@pytest.mark.parametrize(
    ("topics", "data"),
    [
        ((ARRIVAL_SWAPPED, *TOPICS), DATA[:64]),
        ((ARRIVAL_PAID_OUT, *TOPICS), DATA),
        ((ARRIVAL_SWAPPED, TOPICS[0]), DATA),
        ((ARRIVAL_SWAPPED, b"\x01" * 32, TOPICS[1]), DATA),
        ((ARRIVAL_SWAPPED, *TOPICS), b"\x01" * 32 + DATA[32:]),
    ],
)
def test_malformed_logs_are_refused(topics: tuple[bytes, ...], data: bytes) -> None:
    with pytest.raises(InvalidInput):
        decode_arrival_log(topics, data)
