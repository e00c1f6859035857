"""Deliveries on the destination: what they are verified against, and attested messages before them."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from cambist.codecs.bridges.cctp import CctpMessage, pack_burn, pack_message
from cambist.codecs.contracts.abi import address_word
from cambist.codecs.contracts.contract_events import Transfer
from cambist.config.errors import InvalidInput
from cambist.config.limits import BRIDGE_MESSAGES_MAX, CCTP_BODY_BYTES_MAX
from cambist.engine.chain.port import Log
from cambist.engine.trade.delta.bridging.arrivals import Arrival, fill_of, is_unwrapped, mint_of
from cambist.engine.trade.delta.bridging.attestations import (
    AttestedMessage,
    attested_in,
    messages_target,
    reattest_target,
)
from cambist.engine.trade.delta.bridging.origins import BurnedMessage
from support.chain.bridge_logs import (
    BURN,
    MESSAGE,
    OUTPUT,
    POOL,
    RELAY,
    TRANSMITTER,
    filled,
    message_received,
    message_sent,
    minted,
)
from support.chain.log_emitter import Record, record
from support.store.stores import ALICE, BOB, WETH

MESSENGER = MESSAGE.recipient[12:]
NONCE, OTHER_NONCE = b"\x21" * 32, b"\x22" * 32
BURNED = BurnedMessage(MESSAGE, BURN, 0)
FEE = 5


def a_log(address: bytes, of: Record, at: int = 0) -> Log:
    return Log(address, *of, 7, b"\xbb" * 32, b"\x77" * 32, 0, at)


def attested(nonce: bytes = NONCE, fee: int = FEE, expiry: int = 50, **changed: Any) -> CctpMessage:
    body = pack_burn(replace(BURN, fee_executed=fee, expiration_block=expiry))
    return replace(MESSAGE, nonce=nonce, finality_executed=2_000, body=body, **changed)


# --- Across ---------------------------------------------------------------------------------------------


def test_a_fill_of_the_deposit_is_a_delivery() -> None:
    log = a_log(POOL, filled(RELAY))
    assert fill_of(log, RELAY, POOL) == Arrival(log, RELAY.output_amount, receiver=RELAY.recipient[12:])


def test_a_fill_without_a_transfer_of_the_wrapped_token_to_the_receiver_paid_native_tokens() -> None:
    log, wrapped = a_log(POOL, filled(RELAY)), RELAY.output_token[12:]
    fill = fill_of(log, RELAY, POOL)
    assert fill is not None
    receiver, amount = fill.receiver, fill.amount

    def moved(to: bytes, count: int, token: bytes = wrapped) -> Log:
        return a_log(token, record(Transfer(POOL, to, count)))

    for others in (
        (),
        (moved(POOL, amount),),
        (moved(receiver, amount - 1),),
        (moved(receiver, amount, POOL),),
    ):
        assert is_unwrapped(fill, [*others, log], wrapped)
    assert not is_unwrapped(fill, [moved(receiver, amount), log], wrapped)


@pytest.mark.parametrize("member", [name for name in RELAY.__struct_fields__ if name != "message"])
def test_a_fill_of_another_deposit_is_none(member: str) -> None:
    other = getattr(RELAY, member)
    changed = replace(RELAY, **{member: other + 1 if isinstance(other, int) else b"\x33" * 32})
    assert fill_of(a_log(POOL, filled(changed)), RELAY, POOL) is None


def test_a_fill_elsewhere_with_a_message_or_malformed_is_none() -> None:
    assert fill_of(a_log(TRANSMITTER, filled(RELAY)), RELAY, POOL) is None
    assert fill_of(a_log(POOL, filled(replace(RELAY, message=b"x"))), RELAY, POOL) is None
    topics, data = filled(RELAY)
    assert fill_of(a_log(POOL, (topics, data[:-32])), RELAY, POOL) is None


def test_a_fill_of_less_or_to_another_counts_and_is_odd() -> None:
    less = fill_of(a_log(POOL, filled(RELAY, output=7)), RELAY, POOL)
    assert less is not None
    assert (less.amount, less.oddity) == (7, f"7 came of {RELAY.output_amount}")
    more = fill_of(a_log(POOL, filled(RELAY, output=RELAY.output_amount + 1)), RELAY, POOL)
    assert more is not None
    assert more.oddity == ""
    moved = fill_of(a_log(POOL, filled(RELAY, recipient=address_word(ALICE))), RELAY, POOL)
    assert moved is not None
    assert moved.oddity == f"it was paid to 0x{ALICE.hex()}"


# --- CCTP -----------------------------------------------------------------------------------------------


def a_delivery(message: CctpMessage, *before: tuple[bytes, Record]) -> tuple[Log, list[Log]]:
    """A MessageReceived with the logs of its transaction before it."""
    receipt = [a_log(*one, at=at) for at, one in enumerate(before)]
    log = a_log(TRANSMITTER, message_received(message), at=len(receipt))
    return log, [*receipt, log]


def arrival(log: Log, receipt: list[Log], nonce: bytes = NONCE) -> Arrival | None:
    return mint_of(log, receipt, BURNED, nonce, TRANSMITTER, OUTPUT)


MINT = MESSENGER, minted(BOB, OUTPUT, BURN.amount - FEE, FEE)


def test_a_message_with_its_mint_is_a_delivery() -> None:
    log, receipt = a_delivery(attested(), MINT)
    assert arrival(log, receipt) == Arrival(log, BURN.amount - FEE)


@pytest.mark.parametrize(
    "mint",
    [
        (POOL, MINT[1]),
        (MESSENGER, minted(ALICE, OUTPUT, BURN.amount - FEE)),
        (MESSENGER, minted(BOB, WETH, BURN.amount - FEE)),
        (MESSENGER, minted(BOB, OUTPUT, BURN.amount - FEE - 1)),
        (MESSENGER, minted(BOB, OUTPUT, BURN.amount)),
    ],
    ids=["contract", "recipient", "token", "less", "more"],
)
def test_a_message_with_another_mint_delivers_nothing(mint: tuple[bytes, Record]) -> None:
    assert arrival(*a_delivery(attested(), mint)) is None


@pytest.mark.parametrize(
    "message",
    [
        attested(source_domain=8),
        attested(sender=address_word(ALICE)),
        attested(fee=BURN.max_fee + 1),
        replace(attested(), body=pack_burn(replace(BURN, mint_recipient=address_word(ALICE)))),
        replace(attested(), body=b"short"),
    ],
    ids=["source", "sender", "fee", "recipient", "body"],
)
def test_another_message_delivers_nothing(message: CctpMessage) -> None:
    assert arrival(*a_delivery(message, MINT)) is None


def test_a_mint_is_of_one_message_alone() -> None:
    first = a_log(TRANSMITTER, message_received(attested(OTHER_NONCE)), at=1)
    second = a_log(TRANSMITTER, message_received(attested()), at=2)
    receipt = [a_log(*MINT, at=0), first, second]
    assert arrival(second, receipt) is None
    assert arrival(first, receipt, OTHER_NONCE) is not None
    assert arrival(second, [second]) is None
    assert arrival(second, receipt, OTHER_NONCE) is None


def test_only_a_message_of_the_transmitter_itself_takes_the_mints_before_it() -> None:
    """Others may log anything between the mint and the message."""
    forged = MESSENGER, message_received(attested(OTHER_NONCE))
    other = TRANSMITTER, message_sent(MESSAGE)
    for between in (forged, other):
        log, receipt = a_delivery(attested(), MINT, between)
        assert arrival(log, receipt) == Arrival(log, BURN.amount - FEE)


def test_the_largest_fee_that_was_agreed_to_is_paid_and_no_more() -> None:
    for fee, is_taken in ((BURN.max_fee, True), (BURN.max_fee + 1, False)):
        mint = MESSENGER, minted(BOB, OUTPUT, BURN.amount - fee, fee)
        assert (arrival(*a_delivery(attested(fee=fee), mint)) is not None) is is_taken
        found = attested_in(an_answer(attested(fee=fee)), BURNED)
        assert isinstance(found, AttestedMessage) is is_taken


# --- Attestations ---------------------------------------------------------------------------------------


def an_answer(*messages: CctpMessage, status: str = "complete") -> bytes:
    items = [
        {"message": f"0x{pack_message(one).hex()}", "attestation": "0xaa", "status": status, "cctpVersion": 2}
        for one in messages
    ]
    return msgspec.json.encode({"messages": items, "more": 1})


def test_the_attested_form_of_a_burn_is_found_among_others() -> None:
    other = replace(attested(), body=pack_burn(replace(BURN, amount=1)))
    found = attested_in(an_answer(other, attested()), BURNED)
    assert isinstance(found, AttestedMessage)
    assert (found.nonce, found.expiration_block, found.attestation) == (NONCE, 50, b"\xaa")
    assert found.raw == pack_message(attested())


@pytest.mark.parametrize(
    "message",
    ["0x12", "zz", "0x" + "00" * 248, f"0x{pack_message(attested()).hex()}" + "00" * CCTP_BODY_BYTES_MAX],
    ids=["short", "no hex", "CCTP V1", "long"],
)
def test_a_message_of_another_form_in_the_same_transaction_holds_up_no_burn(message: str) -> None:
    """Anybody whose contract is called in a settlement can send such messages there."""
    strange = {"message": message, "attestation": "0xaa", "status": "complete", "cctpVersion": 1}
    ours = msgspec.json.decode(an_answer(attested()))["messages"]
    found = attested_in(msgspec.json.encode({"messages": [strange, *ours]}), BURNED)
    assert isinstance(found, AttestedMessage)
    assert found.nonce == NONCE


def test_equal_burns_have_messages_of_their_own_in_whatever_sequence() -> None:
    pair = attested(OTHER_NONCE), attested(NONCE)
    for messages in (pair, pair[::-1]):
        found = [attested_in(an_answer(*messages), replace(BURNED, rank=rank)) for rank in (0, 1)]
        nonces = [one.nonce for one in found if isinstance(one, AttestedMessage)]
        assert nonces == [NONCE, OTHER_NONCE]
    assert attested_in(an_answer(attested()), replace(BURNED, rank=1)) == ""


@pytest.mark.parametrize(
    "message",
    [
        attested(nonce=bytes(32)),
        attested(recipient=address_word(ALICE)),
        attested(destination_domain=8),
        attested(min_finality=1_000),
        attested(destination_caller=address_word(ALICE)),
        attested(fee=BURN.max_fee + 1),
    ],
    ids=["nonce", "recipient", "destination", "finality", "caller", "fee"],
)
def test_a_message_that_is_not_the_burn_is_not_handed_in(message: CctpMessage) -> None:
    assert attested_in(an_answer(message), BURNED) == ""


def test_a_reason_of_the_attester_for_its_delay_is_told_once() -> None:
    """As Circle's API has it: absent members are null."""
    waiting = {
        "message": "0x", "attestation": "PENDING", "status": "pending_confirmations", "decodedMessage": None,
        "delayReason": "insufficient_fee",
    }  # fmt: skip
    plain = waiting | {"delayReason": None, "message": None, "attestation": None}
    assert (
        attested_in(msgspec.json.encode({"messages": [waiting, plain, waiting]}), BURNED)
        == "'insufficient_fee'"
    )
    assert attested_in(msgspec.json.encode({"messages": [plain]}), BURNED) == ""


def test_a_burn_that_waits_is_not_attested() -> None:
    assert attested_in(an_answer(attested(), status="pending_confirmations"), BURNED) == ""
    assert attested_in(b'{"messages":[{"attestation":"PENDING","status":"pending"}]}', BURNED) == ""
    assert attested_in(b'{"messages":[]}', BURNED) == ""


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"[]",
        b'{"messages":1}',
        an_answer(*[attested()] * (BRIDGE_MESSAGES_MAX + 1)),
    ],
    ids=["empty", "array", "number", "many"],
)
def test_a_malformed_answer_is_refused(answer: bytes) -> None:
    with pytest.raises(InvalidInput):
        attested_in(answer, BURNED)


def test_as_many_messages_as_a_transaction_may_have_are_read() -> None:
    found = attested_in(an_answer(*[attested()] * BRIDGE_MESSAGES_MAX), BURNED)
    assert found == AttestedMessage(pack_message(attested()), b"\xaa", NONCE, 50)


def test_the_service_is_asked_by_transaction_and_by_nonce() -> None:
    assert messages_target(7, b"\x01" * 32) == f"/v2/messages/7?transactionHash=0x{'01' * 32}"
    assert reattest_target(NONCE) == f"/v2/reattest/0x{NONCE.hex()}"
