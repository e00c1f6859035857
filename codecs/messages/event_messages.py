"""Messages about changed orders: one form for server-sent events, WebSockets and webhooks.

    order   an order has changed       {"event": "order", "token": ..., "orderHash": ..., "status": ...}
    open    a stream has begun         {"event": "open", "token": ...}
    beat    no recent event            {"event": "beat", "token": ...}

A token is a cursor in the log of events: a client that sends it back receives the later events.

An event leaves out members that its kind of order lacks or that an older version did not keep.

Source: ARCHITECTURE.md, "Push".
Choice: An event holds the order's new state, not the old one; `version` counts an order's changes from 1.
"""

from collections.abc import Callable

from msgspec import UNSET, Struct, UnsetType

from ...config.limits import JSON_BYTES_MAX
from .query import query_decoder
from .vocabulary import ChainId, Count, Name
from .wire import decoder


class EventBody(Struct, frozen=True, rename="camel", kw_only=True, omit_defaults=True):
    """Members of a Delta order's event that the store keeps as JSON, not as columns.

    Attributes:
        type: an OrderType.
        spent_amount, received_amount: raw units of the source token spent, and of the destination token
            received, by all fills so far.
    """

    type: str | UnsetType = UNSET
    on_chain_order_type: str | UnsetType = UNSET
    side: str | UnsetType = UNSET
    spent_amount: str | UnsetType = UNSET
    received_amount: str | UnsetType = UNSET


class OtcEventBody(Struct, frozen=True, rename="camel", kw_only=True, omit_defaults=True):
    """Members of an OTC order's event that the store keeps as JSON, not as columns.

    Attributes:
        type: an OtcType.
        taker: address of the taker that the order names; zero for any taker.
        taker_from_meta: address of the taker by the order's nonceAndMeta (`taker_from_meta`).
        fillable_balance: raw units of the maker's asset that are not filled.
        swappable_balance: raw units of the maker's asset that can be filled now.
        transaction_hash: hash of the last fill or of the cancellation; absent before the first.
    """

    type: str | UnsetType = UNSET
    taker: str | UnsetType = UNSET
    taker_from_meta: str | UnsetType = UNSET
    fillable_balance: str | UnsetType = UNSET
    swappable_balance: str | UnsetType = UNSET
    transaction_hash: str | UnsetType = UNSET


class OrderEventMessage(
    Struct,
    frozen=True,
    rename="camel",
    kw_only=True,
    omit_defaults=True,
    tag_field="event",
    tag="order",
):
    """Event: an order has changed; the message holds its new state.

    Attributes:
        token: resume token of the event, from which a stream can continue.
        surface: kind of order, `delta` or `otc`.
        id: order id of a Delta order; absent for an OTC order.
        owner: owner of a Delta order, maker of an OTC order.
        partner: name of the order's partner; empty for none, as for every OTC order.
        version: version of the order after the change.
        at: time of the order's change, ISO 8601.
        type: OrderType of a Delta order, OtcType of an OTC order.
        on_chain_order_type, side, spent_amount, received_amount: of a Delta order (EventBody).
        taker, taker_from_meta, fillable_balance, swappable_balance, transaction_hash: of an OTC order
            (OtcEventBody).
    """

    token: str
    surface: str
    id: str | UnsetType = UNSET
    order_hash: str
    chain_id: ChainId
    owner: str
    partner: str
    status: str
    version: Count
    at: str
    type: str | UnsetType = UNSET
    on_chain_order_type: str | UnsetType = UNSET
    side: str | UnsetType = UNSET
    spent_amount: str | UnsetType = UNSET
    received_amount: str | UnsetType = UNSET
    taker: str | UnsetType = UNSET
    taker_from_meta: str | UnsetType = UNSET
    fillable_balance: str | UnsetType = UNSET
    swappable_balance: str | UnsetType = UNSET
    transaction_hash: str | UnsetType = UNSET


class OpenMessage(Struct, frozen=True, tag_field="event", tag="open"):
    """First message of an event stream.

    Attributes:
        token: resume token of an event; the stream sends all later events.
    """

    token: str


class BeatMessage(Struct, frozen=True, tag_field="event", tag="beat"):
    """Heartbeat of an event stream that has had no recent events.

    Attributes:
        token: resume token of an event; the stream has sent all events up to that event.
    """

    token: str


class OrderEventsQuery(Struct, frozen=True, rename="camel", kw_only=True):
    """Query of GET /v2/delta/orders/events: filters of the stream, and its start.

    Attributes:
        order_id, order_hash: ids and hashes of orders; an order is included if either list names it.
        partner: partner name, spelled exactly as in the orders.
        after: resume token of the event after which the stream starts; if absent, the stream starts after the
            newest event.
    """

    user_address: str | None = None
    order_id: tuple[Name, ...] | None = None
    order_hash: tuple[Name, ...] | None = None
    chain_id: tuple[ChainId, ...] | None = None
    partner: Name | None = None
    after: Name | None = None


class OtcEventsQuery(Struct, frozen=True, rename="camel", kw_only=True):
    """Query of GET /ft/events: filters of the stream, and its start.

    Attributes:
        taker: address; the stream has orders that name the address as taker, or contain it in nonceAndMeta.
        after: resume token of the event after which the stream starts; if absent, the stream starts after the
            newest event.
    """

    maker: str | None = None
    taker: str | None = None
    order_hash: tuple[Name, ...] | None = None
    chain_id: tuple[ChainId, ...] | None = None
    after: Name | None = None


OrderStreamMessage = OrderEventMessage | OpenMessage | BeatMessage

decode_order_events_query = query_decoder(OrderEventsQuery)
decode_otc_events_query = query_decoder(OtcEventsQuery)
decode_event_body = decoder(EventBody, bytes_max=JSON_BYTES_MAX)
decode_otc_event_body = decoder(OtcEventBody, bytes_max=JSON_BYTES_MAX)
decode_order_event = decoder(OrderEventMessage, bytes_max=JSON_BYTES_MAX)
decode_stream_message: Callable[[bytes], OrderStreamMessage] = decoder(
    OrderStreamMessage,  # type: ignore[arg-type]
    bytes_max=JSON_BYTES_MAX,
)
