"""An event as a message: what it leaves out, and that what reads it gets what was written."""

from dataclasses import dataclass

import msgspec
import pytest

from cambist.codecs.event_messages import (
    BeatMessage,
    OpenMessage,
    OrderEventMessage,
    decode_order_event,
    decode_stream_message,
)
from cambist.codecs.vocabulary import OnChainOrderType, OrderType, Side
from cambist.codecs.wire import encode
from cambist.config.errors import InvalidInput
from cambist.engine.events.filters import EVERYTHING, EventFilter, keys_of
from cambist.engine.events.follower import START
from cambist.engine.events.message import encode_event, event_message
from cambist.engine.store.orders import DELTA, OTC, order_id
from cambist.engine.store.rows import OrderEvent, amount32
from support.stores import ALICE, BOB, a_delta_order, an_otc_order, hash_of


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
]
IDS = [order_id(event.order_hash) for event in EVENTS]
CASES = [
    Case(EventFilter(), (0, 1, 2, 3)),
    Case(EventFilter(surface="otc"), (3,)),
    Case(EventFilter(owner=ALICE), (0, 2, 3)),
    Case(EventFilter(partner="acme"), (0,)),
    Case(EventFilter(partner=""), (3,)),
    Case(EventFilter(chain_ids=frozenset({10, 56})), (2,)),
    Case(EventFilter(orders=frozenset(IDS[1:3])), (1, 2)),
    Case(EventFilter(owner=ALICE, orders=frozenset(IDS[1:3])), (2,)),
]


@pytest.mark.parametrize("case", CASES)
def test_what_a_filter_wants_is_found_by_its_keys(case: Case) -> None:
    assert tuple(number for number, event in enumerate(EVENTS) if case.wanted.matches(event)) == case.numbers
    for number in case.numbers:
        assert set(case.wanted.keys) & set(keys_of(EVENTS[number]))


def test_whoever_wants_little_is_not_found_by_everything() -> None:
    for case in CASES[2:]:
        assert EVERYTHING not in case.wanted.keys
