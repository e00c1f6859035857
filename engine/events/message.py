"""An event of the log as the message that says it, the same wherever it is sent. Pure."""

from functools import lru_cache

from msgspec.structs import asdict

from ...codecs.event_messages import EventBody, OrderEventMessage, decode_event_body
from ...codecs.iso_time import iso_ms
from ...codecs.wire import encode
from ...crypto.addresses import to_checksum
from ...crypto.hexadecimal import to_hex
from ..store.orders import DELTA, order_id
from ..store.rows import OrderEvent

_NOTHING_MORE = EventBody()
_owner_text = lru_cache(maxsize=1_024)(to_checksum)  # an owner's orders change together


def event_message(token: str, event: OrderEvent) -> OrderEventMessage:
    """What an event says.

    Args:
        token: of its place in the log.
    """
    body = decode_event_body(event.body) if event.body else _NOTHING_MORE
    more = asdict(body)
    if event.surface == DELTA.name:
        more["id"] = str(order_id(event.order_hash))
    return OrderEventMessage(
        token=token,
        surface=event.surface,
        order_hash=to_hex(event.order_hash),
        chain_id=event.chain_id,
        owner=_owner_text(event.owner),
        partner=event.partner,
        status=event.status,
        version=event.version,
        at=iso_ms(event.at_ms),
        **more,
    )


def encode_event(token: str, event: OrderEvent) -> bytes:
    """An event as JSON: what streams send and what webhooks sign.

    Args:
        token: of its place in the log.
    """
    return encode(event_message(token, event))
