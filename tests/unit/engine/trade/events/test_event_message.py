"""An event as a message: members that it leaves out; a reader gets the written event."""

from dataclasses import dataclass

import msgspec
import pytest
from msgspec.structs import replace

from cambist.codecs.messages.event_messages import (
    BeatMessage,
    OpenMessage,
    OrderEventMessage,
    decode_order_event,
    decode_stream_message,
)
from cambist.codecs.messages.vocabulary import OnChainOrderType, OrderType, OtcState, OtcType, Side
from cambist.codecs.messages.wire import encode
from cambist.config.errors import InvalidInput
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import to_hex
from cambist.engine.store.follower import START
from cambist.engine.store.rows import OrderEvent, amount32
from cambist.engine.trade.events import ring
from cambist.engine.trade.events.filters import EVERYTHING, EventFilter, keys_of
from cambist.engine.trade.events.message import encode_event, event_message, id_text, takers_of
from cambist.engine.trade.events.ring import RingEntry
from cambist.engine.trade.orders.order_units import DELTA, OTC, order_id
from support.store.stores import ALICE, BOB, CAROL, NOBODY, a_delta_order, an_otc_order, hash_of


def test_it_says_what_the_row_says() -> None:
    order = a_delta_order(
        1,
        kind=OnChainOrderType.TWAP_ORDER,
        type=OrderType.LIMIT,
        side=Side.BUY,
        partner="acme",
        spent=amount32(2**255),
        received=amount32(7),
    )
    message = event_message(START, DELTA.event(order))
    assert (message.on_chain_order_type, message.type, message.side) == ("TWAPOrder", "LIMIT", "BUY")
    assert (message.spent_amount, message.received_amount) == (str(2**255), "7")
    assert (message.partner, message.id) == ("acme", str(order_id(order.order_hash)))
    assert decode_order_event(encode_event(START, DELTA.event(order))) == message


def test_ids_are_those_of_orders() -> None:
    for number in range(256):
        order_hash = hash_of(number, shard=number)
        assert id_text(order_hash) == str(order_id(order_hash))


def test_it_says_what_an_otc_row_says() -> None:
    order = an_otc_order(
        1,
        version=4,
        status=OtcState.CANCELLED,
        taker_from_meta=CAROL,
        remaining=amount32(2**256 - 1),
        swappable=amount32(0),
        transaction_hash=hash_of(9),
    )
    told = msgspec.json.decode(encode_event(START, OTC.event(order)))
    assert told == {
        "event": "order",
        "token": START,
        "surface": "otc",
        "orderHash": to_hex(order.order_hash),
        "chainId": 1,
        "owner": to_checksum(ALICE),
        "partner": "",
        "status": "CANCELLED",
        "version": 4,
        "at": "2023-11-14T22:13:20.001Z",
        "type": "P2P",
        "taker": to_checksum(BOB),
        "takerFromMeta": to_checksum(CAROL),
        "fillableBalance": str(2**256 - 1),
        "swappableBalance": "0",
        "transactionHash": to_hex(hash_of(9)),
    }


def test_an_otc_order_without_a_transaction_says_nothing_of_one() -> None:
    told = msgspec.json.decode(
        encode_event(START, OTC.event(an_otc_order(1, taker=NOBODY, type=OtcType.LIMIT)))
    )
    assert "transactionHash" not in told
    assert (told["type"], told["taker"], told["fillableBalance"]) == ("LIMIT", "0x" + "0" * 40, str(10**18))


def test_a_delta_order_says_nothing_of_takers() -> None:
    told = msgspec.json.decode(encode_event(START, DELTA.event(a_delta_order(1))))
    assert not told.keys() & {
        "taker", "takerFromMeta", "fillableBalance", "swappableBalance", "transactionHash",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("event", "takers"),
    [
        (OTC.event(an_otc_order(1)), (BOB, NOBODY)),
        (OTC.event(an_otc_order(1, taker_from_meta=BOB)), (BOB,)),
        (OTC.event(an_otc_order(1, taker=NOBODY)), (NOBODY,)),
        (replace(OTC.event(an_otc_order(1)), body=b""), ()),
        (replace(OTC.event(an_otc_order(1)), body=b'{"type":"P2P"}'), ()),
        (replace(OTC.event(an_otc_order(1)), body=b'{"taker":"0x%b"}' % (b"b0" * 20)), (BOB,)),
        (DELTA.event(a_delta_order(1)), ()),
        (replace(DELTA.event(a_delta_order(1)), body=b"no JSON"), ()),
    ],
)
def test_the_takers_of_an_event(event: OrderEvent, takers: tuple[bytes, ...]) -> None:
    assert takers_of(event) == takers


def test_an_event_of_before_it_had_a_body_leaves_that_out() -> None:
    old = OrderEvent("delta", hash_of(1), 0, 1, ALICE, 3, "ACTIVE", 0, b"")
    told = msgspec.json.decode(encode_event(START, old))
    assert told.keys() == {
        "event", "token", "surface", "id", "orderHash", "chainId", "owner", "partner", "status", "version",
        "at",
    }  # fmt: skip
    assert told["partner"] == ""


def test_an_otc_order_has_no_id() -> None:
    message = event_message(START, OTC.event(an_otc_order(1)))
    assert (message.surface, message.id) == ("otc", msgspec.UNSET)
    assert decode_order_event(encode(message)) == message


@pytest.mark.parametrize("message", [OpenMessage(START), BeatMessage(START)])
def test_messages_tell_themselves_apart(message: OpenMessage | BeatMessage) -> None:
    assert decode_stream_message(encode(message)) == message
    with pytest.raises(InvalidInput):
        decode_order_event(encode(message))
    assert isinstance(
        decode_stream_message(encode_event(START, DELTA.event(a_delta_order(1)))), OrderEventMessage
    )


@dataclass(frozen=True)
class Case:
    """A filter, and which of `EVENTS` it wants."""

    wanted: EventFilter
    numbers: tuple[int, ...]


EVENTS = [
    DELTA.event(a_delta_order(0, partner="acme")),
    DELTA.event(a_delta_order(1, owner=BOB)),
    DELTA.event(a_delta_order(2, chain_id=10)),
    OTC.event(an_otc_order(3)),
    OTC.event(an_otc_order(4, maker=BOB, taker=NOBODY, taker_from_meta=CAROL)),
    OTC.event(an_otc_order(5, maker=BOB, taker=CAROL, taker_from_meta=CAROL, chain_id=10)),
    OrderEvent("otc", hash_of(6), hash_of(6)[0], 1, CAROL, 1, "PENDING", 0, b""),
]
IDS = [order_id(event.order_hash) for event in EVENTS]
CASES = [
    Case(EventFilter(), (0, 1, 2, 3, 4, 5, 6)),
    Case(EventFilter(surface="otc"), (3, 4, 5, 6)),
    Case(EventFilter(owner=ALICE), (0, 2, 3)),
    Case(EventFilter(partner="acme"), (0,)),
    Case(EventFilter(partner=""), (3, 4, 5, 6)),
    Case(EventFilter(chain_ids=frozenset({10, 56})), (2, 5)),
    Case(EventFilter(taker=BOB), (3,)),
    Case(EventFilter(surface="otc", taker=CAROL), (4, 5)),
    Case(EventFilter(taker=NOBODY), (3, 4)),
    Case(EventFilter(taker=ALICE), ()),
    Case(EventFilter(surface="delta", taker=BOB), ()),
    Case(EventFilter(owner=BOB, taker=CAROL, chain_ids=frozenset({1})), (4,)),
    Case(EventFilter(taker=CAROL, orders=frozenset(IDS[3:5])), (4,)),
    Case(EventFilter(taker=CAROL, partner=""), (4, 5)),
    Case(EventFilter(orders=frozenset(IDS[1:3])), (1, 2)),
    Case(EventFilter(owner=ALICE, orders=frozenset(IDS[1:3])), (2,)),
]


@pytest.mark.parametrize("case", CASES)
def test_what_a_filter_wants_is_found_by_its_keys(case: Case) -> None:
    entries = [RingEntry((0, 0), event) for event in EVENTS]
    assert tuple(number for number, entry in enumerate(entries) if case.wanted.matches(entry)) == case.numbers
    for number in case.numbers:
        assert set(case.wanted.keys) & set(keys_of(entries[number]))


def test_no_event_has_a_key_twice() -> None:
    for event in EVENTS:
        keys = list(keys_of(RingEntry((0, 0), event)))
        assert len(keys) == len(set(keys))


def test_takers_are_read_once_and_of_delta_orders_never(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[OrderEvent] = []

    def noted(event: OrderEvent) -> tuple[bytes, ...]:
        read.append(event)
        return takers_of(event)

    monkeypatch.setattr(ring, "takers_of", noted)
    for event in EVENTS:
        entry = RingEntry((0, 0), event)
        list(keys_of(entry))
        for taker in (ALICE, BOB, CAROL):
            EventFilter(surface="otc", taker=taker).matches(entry)
            EventFilter(surface="otc", owner=taker).matches(entry)
    assert read == [event for event in EVENTS if event.surface == "otc"]


def test_whoever_wants_little_is_not_found_by_everything() -> None:
    for case in CASES[2:]:
        assert EVERYTHING not in case.wanted.keys
