"""GET /ft/events: which events of OTC orders a stream is asked for. Pure.

Events of OTC orders use the log, messages, tokens and bounds of Delta's events.

Source: ARCHITECTURE.md, "Push"; spec 2.13.3.
"""

from ...codecs.messages.event_messages import OtcEventsQuery, decode_otc_events_query
from ...crypto.addresses import parse_address
from ..api.event_streams import EventStreams, ids_of_hashes
from ..api.routes import OTC_PREFIX, Endpoint
from ..events.filters import EventFilter
from ..orders.order_units import OTC


def otc_event_endpoints(streams: EventStreams) -> tuple[Endpoint, ...]:
    """The rows of the table."""
    return (
        streams.endpoint(
            f"{OTC_PREFIX}/events",
            _asked,
            query=OtcEventsQuery,
            group="OTC orders",
            summary="What happens to OTC orders, as it happens",
            detail="Every change of an OTC order.",
        ),
    )


def _asked(query: bytes) -> tuple[EventFilter, str | None]:
    """What is wanted, and the token to begin behind.

    Raises:
        InvalidInput: a parameter is at fault.
    """
    asked = decode_otc_events_query(query)
    wanted = EventFilter(
        surface=OTC.name,
        owner=None if asked.maker is None else parse_address(asked.maker, "maker"),
        taker=None if asked.taker is None else parse_address(asked.taker, "taker"),
        orders=frozenset(ids_of_hashes(asked.order_hash or ())),
        chain_ids=frozenset(asked.chain_id or ()),
    )
    return wanted, asked.after
