"""The endpoint GET /v2/delta/orders/events: parses its query into the filter of an event stream. Pure.

Source: ARCHITECTURE.md, "Push".
"""

from uuid import UUID

from .....codecs.messages.event_messages import OrderEventsQuery, decode_order_events_query
from .....config.errors import InvalidInput
from .....crypto.addresses import parse_address
from ...api.routes import Endpoint
from ...events.event_streams import EventStreams, check_count, ids_of_hashes
from ...events.filters import EventFilter
from ...orders.order_units import DELTA


def order_event_endpoints(streams: EventStreams) -> tuple[Endpoint, ...]:
    """Return the HTTP endpoint GET /v2/delta/orders/events, a stream of changes of Delta orders."""
    return (
        streams.endpoint(
            "/v2/delta/orders/events",
            _read_query,
            query=OrderEventsQuery,
            group="Delta orders",
            summary="Changes of Delta orders, pushed as they happen",
            detail="Every change of a Delta order.",
        ),
    )


def _read_query(query: bytes) -> tuple[EventFilter, str | None]:
    """Parse the query of GET /v2/delta/orders/events.

    Returns:
        (filter of events, resume token of the event after which the stream starts; None for new events
        only).

    Raises:
        InvalidInput: a parameter is invalid.
    """
    decoded = decode_order_events_query(query)
    ids, hashes = decoded.order_id or (), decoded.order_hash or ()
    check_count("orderId", ids)
    wanted = EventFilter(
        surface=DELTA.name,
        owner=None if decoded.user_address is None else parse_address(decoded.user_address, "userAddress"),
        orders=frozenset([*map(_id, ids), *ids_of_hashes(hashes)]),
        chain_ids=frozenset(decoded.chain_id or ()),
        partner=decoded.partner,
    )
    return wanted, decoded.after


def _id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise InvalidInput(field="orderId", expected="ids of orders", got=text) from None
