"""GET /v2/delta/orders/events: which events of Delta orders a stream is asked for. Pure.

Source: ARCHITECTURE.md, "Push".
"""

from collections.abc import Sequence
from uuid import UUID

from ....codecs.messages.event_messages import OrderEventsQuery, decode_order_events_query
from ....config.errors import InvalidInput
from ....config.limits import VENUE_ORDER_IDS_MAX
from ....crypto.addresses import parse_address
from ....crypto.hexadecimal import parse_hex
from ...api.event_streams import EventStreams
from ...api.routes import Endpoint
from ...events.filters import EventFilter
from ...orders.order_units import DELTA, order_id

_HASH_BYTES = 32


def order_event_endpoints(streams: EventStreams) -> tuple[Endpoint, ...]:
    """The rows of the table."""
    return (
        streams.endpoint(
            "/v2/delta/orders/events",
            _asked,
            query=OrderEventsQuery,
            group="Delta orders",
            summary="What happens to Delta orders, as it happens",
            detail="Every change of a Delta order.",
        ),
    )


def ids_of_hashes(texts: Sequence[str]) -> list[UUID]:
    """What orders that are named by the parameter `orderHash` are found by.

    Raises:
        InvalidInput: too many, or one that is no hash.
    """
    _check_count("orderHash", texts)
    return [order_id(_hash(text)) for text in texts]


def _asked(query: bytes) -> tuple[EventFilter, str | None]:
    """What is wanted, and the token to begin behind.

    Raises:
        InvalidInput: a parameter is at fault.
    """
    asked = decode_order_events_query(query)
    ids, hashes = asked.order_id or (), asked.order_hash or ()
    _check_count("orderId", ids)
    wanted = EventFilter(
        surface=DELTA.name,
        owner=None if asked.user_address is None else parse_address(asked.user_address, "userAddress"),
        orders=frozenset([*map(_id, ids), *ids_of_hashes(hashes)]),
        chain_ids=frozenset(asked.chain_id or ()),
        partner=asked.partner,
    )
    return wanted, asked.after


def _check_count(field: str, texts: Sequence[str]) -> None:
    if len(texts) > VENUE_ORDER_IDS_MAX:
        raise InvalidInput(field=field, expected=f"at most {VENUE_ORDER_IDS_MAX}", got=len(texts))


def _id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise InvalidInput(field="orderId", expected="ids of orders", got=text) from None


def _hash(text: str) -> bytes:
    expected = f"0x and {2 * _HASH_BYTES} hexadecimal digits"
    order_hash = parse_hex(text, "orderHash", expected)
    if len(order_hash) != _HASH_BYTES:
        raise InvalidInput(field="orderHash", expected=expected, got=text)
    return order_hash
