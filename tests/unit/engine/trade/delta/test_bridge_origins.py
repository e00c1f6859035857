"""Deposits and burned messages in a settlement's receipt: the transfer's own, and no other."""

from typing import Any

import pytest
from msgspec.structs import replace

from cambist.codecs.bridges.bridge_terms import SELECTORS, BridgeKind
from cambist.codecs.bridges.cctp import CctpMessage, pack_burn
from cambist.codecs.contracts.abi import address_word
from cambist.codecs.contracts.contract_events import OrderBridged
from cambist.engine.chain.port import Log
from cambist.engine.store.rows import BridgeTransfer
from cambist.engine.trade.delta.bridging.origins import (
    BurnedMessage,
    burn_in,
    deposit_in,
    kind_of_transfer,
)
from support.chain.bridge_logs import (
    BURN,
    DOMAINS,
    MESSAGE,
    OUTPUT,
    PARTIES,
    POOL,
    RELAY,
    SENT,
    TRANSMITTER,
    deposited,
    message_sent,
)
from support.chain.log_emitter import Record, record
from support.store.stores import ALICE, BOB, WETH

DELTA = b"\xde" * 20


def logs(*made: tuple[bytes, Record]) -> list[Log]:
    return [
        Log(address, *of, SENT.block_number, SENT.block_hash, SENT.tx_hash, 0, at)
        for at, (address, of) in enumerate(made)
    ]


def a_bridged_log(log_index: int) -> Log:
    event = OrderBridged(bytes(32), SELECTORS[BridgeKind.CCTP], 10, OUTPUT, 1, 1, 0)
    return Log(DELTA, *record(event), SENT.block_number, SENT.block_hash, SENT.tx_hash, 0, log_index)


def with_burn(**changed: Any) -> CctpMessage:
    return replace(MESSAGE, body=pack_burn(replace(BURN, **changed)))


def test_the_protocol_follows_from_the_selector() -> None:
    for kind, selector4 in SELECTORS.items():
        assert kind_of_transfer(replace(SENT, selector4=selector4)) is kind
    assert kind_of_transfer(replace(SENT, selector4=b"\0\1\2\3")) is None


# --- Across ---------------------------------------------------------------------------------------------


def test_a_deposit_is_found_among_others() -> None:
    other = replace(RELAY, deposit_id=2)
    found = deposit_in(logs((POOL, deposited(other, 10)), (POOL, deposited(RELAY, 10))), SENT, PARTIES, POOL)
    assert found == RELAY


@pytest.mark.parametrize(
    "changed",
    [
        {"deposit_id": 4},
        {"input_amount": 1},
        {"output_amount": 1},
        {"input_token": address_word(WETH)},
        {"output_token": address_word(WETH)},
        {"depositor": address_word(BOB)},
        {"recipient": address_word(ALICE)},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_a_deposit_that_differs_is_not_the_transfers(changed: dict[str, Any]) -> None:
    made = logs((POOL, deposited(replace(RELAY, **changed), 10)))
    assert deposit_in(made, SENT, PARTIES, POOL) is None


def test_a_deposit_elsewhere_or_malformed_is_none() -> None:
    topics, data = deposited(RELAY, 10)
    for made in ((b"\x99" * 20, (topics, data)), (POOL, (topics, data[:-32])), (POOL, ((), data))):
        assert deposit_in(logs(made), SENT, PARTIES, POOL) is None
    assert deposit_in(logs((POOL, deposited(RELAY, 11))), SENT, PARTIES, POOL) is None


# --- CCTP -----------------------------------------------------------------------------------------------


def burned(made: list[Log], sent: BridgeTransfer = SENT) -> BurnedMessage | None:
    return burn_in(made, sent, PARTIES, TRANSMITTER, DOMAINS)


def test_the_message_before_the_transfers_log_is_the_transfers() -> None:
    found = burned(
        logs((TRANSMITTER, message_sent(with_burn(amount=1))), (TRANSMITTER, message_sent(MESSAGE)))
    )
    assert found == BurnedMessage(MESSAGE, BURN, 0)


def test_equal_messages_of_one_transaction_are_told_apart_by_their_rank() -> None:
    made = [
        *logs((TRANSMITTER, message_sent(MESSAGE))),
        a_bridged_log(1),
        replace(logs((TRANSMITTER, message_sent(MESSAGE)))[0], log_index=2),
        a_bridged_log(3),
    ]
    first, second = (burned(made, replace(SENT, log_index=at)) for at in (1, 3))
    assert first is not None
    assert second is not None
    assert (first.rank, second.rank) == (0, 1)
    assert burned(made, replace(SENT, log_index=0)) is None


def test_a_message_of_another_transfer_is_not_taken_for_this_one() -> None:
    made = [*logs((TRANSMITTER, message_sent(MESSAGE))), a_bridged_log(1)]
    assert burned(made) is None


@pytest.mark.parametrize(
    "message",
    [
        replace(MESSAGE, source_domain=8),
        replace(MESSAGE, destination_domain=8),
        replace(MESSAGE, destination_caller=address_word(BOB)),
        replace(MESSAGE, body=b"short"),
        with_burn(amount=1),
        with_burn(max_fee=11 * 10**6),
        with_burn(burn_token=address_word(WETH)),
        with_burn(mint_recipient=address_word(ALICE)),
    ],
    ids=["source", "destination", "caller", "body", "amount", "fee", "token", "recipient"],
)
def test_a_message_that_differs_is_not_the_transfers(message: CctpMessage) -> None:
    assert burned(logs((TRANSMITTER, message_sent(message)))) is None


def test_a_message_elsewhere_is_none() -> None:
    assert burned(logs((POOL, message_sent(MESSAGE)))) is None


def test_a_chain_outside_cctp_does_not_pass_for_ethereum_or_any_other() -> None:
    """Ethereum's number is 0."""
    for source, destination in (DOMAINS, (0, 0), (0, 9), (7, 0)):
        message = replace(MESSAGE, source_domain=source, destination_domain=destination)
        made = logs((TRANSMITTER, message_sent(message)))
        for domains in ((None, destination), (source, None), (None, None)):
            assert burn_in(made, SENT, PARTIES, TRANSMITTER, domains) is None
        assert burn_in(made, SENT, PARTIES, TRANSMITTER, (source, destination)) is not None
