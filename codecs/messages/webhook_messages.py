"""Requests and answers of the webhook endpoints.

Source: ARCHITECTURE.md, "Push".
"""

from typing import Annotated

from msgspec import Meta, Raw, Struct

from ...config.limits import JSON_BYTES_MAX, WEBHOOK_PAGE_MAX
from .query import query_decoder
from .vocabulary import ChainId, Count, DeliveryState, Name
from .wire import decoder


class WebhookEntry(Struct, frozen=True, rename="camel"):
    """A partner's webhook and the state of its deliveries.

    Attributes:
        url: URL to which events are posted, without the query.
        partner: partner to whose orders the webhook is limited; empty for all orders.
        chains, statuses: chain ids and order statuses to which the webhook is limited; empty for all.
        place: event token of the last event for which a delivery was created; empty before the first.
        waiting: number of deliveries still to be tried.
        dead: number of deliveries that have been given up.
        failures: number of failed tries since the last success. If the venue has several engine processes,
            only the process that makes the deliveries knows `failures` and `reason`.
        reason: cause of the last failure; empty while deliveries succeed.
        surfaces: kinds of orders whose events are posted, `delta` and `otc`.
    """

    name: str
    url: str
    partner: str
    chains: tuple[ChainId, ...]
    statuses: tuple[str, ...]
    place: str
    waiting: Count
    dead: Count
    failures: Count
    reason: str
    surfaces: tuple[str, ...] = ("delta",)


class WebhookList(Struct, frozen=True):
    """Answer of GET /v2/webhooks."""

    webhooks: tuple[WebhookEntry, ...]


class DeliveriesQuery(Struct, frozen=True, rename="camel", kw_only=True):
    """Query of GET /v2/webhooks/{name}/deliveries.

    Attributes:
        after: event token of a delivery; the answer lists only deliveries of later events.
    """

    status: DeliveryState = DeliveryState.DEAD
    after: str | None = None
    limit: Annotated[int, Meta(ge=1, le=WEBHOOK_PAGE_MAX)] = WEBHOOK_PAGE_MAX


class DeliveryEntry(Struct, frozen=True, rename="camel"):
    """A webhook delivery that the receiver has not accepted yet.

    Attributes:
        token: event token of the delivered event, sent in the header `webhook-id`.
        tries: number of tries so far.
        reason: cause of the last failure.
        due_at: ISO 8601 time of the next try; for a dead (given up) delivery, the last such time.
        body: JSON body of the post.
    """

    token: str
    status: DeliveryState
    tries: Count
    reason: str
    created_at: str
    due_at: str
    body: Raw


class DeliveryPage(Struct, frozen=True, rename="camel"):
    """Answer of GET /v2/webhooks/{name}/deliveries, in the order of the events."""

    deliveries: tuple[DeliveryEntry, ...]
    has_more: bool


class ReplayBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Body of POST /v2/webhooks/{name}/replay: the dead (given up) deliveries to make again.

    The decoder refuses unknown members, since a body with a mistyped `tokens` would otherwise count as empty.

    Attributes:
        tokens: event tokens of the deliveries; an empty list selects the WEBHOOK_PAGE_MAX oldest ones.
    """

    tokens: Annotated[tuple[Name, ...], Meta(max_length=WEBHOOK_PAGE_MAX)] = ()


class ReplayResponse(Struct, frozen=True):
    """Answer of a replay: the deliveries that will be made again.

    Attributes:
        replayed: event tokens of the deliveries.
        more: whether further dead deliveries remain; the caller then repeats the request.
    """

    replayed: tuple[str, ...]
    more: bool


decode_deliveries_query = query_decoder(DeliveriesQuery)
decode_replay_body = decoder(ReplayBody, bytes_max=JSON_BYTES_MAX, unique_keys=True)
