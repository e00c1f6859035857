"""What a partner reads and asks about its webhooks.

Source: ARCHITECTURE.md, "Push".
"""

from typing import Annotated

from msgspec import Meta, Raw, Struct

from ...config.limits import JSON_BYTES_MAX, WEBHOOK_PAGE_MAX
from .query import query_decoder
from .vocabulary import ChainId, Count, DeliveryState, Name
from .wire import decoder


class WebhookEntry(Struct, frozen=True, rename="camel"):
    """One webhook.

    Attributes:
        url: what is posted to, without its query.
        partner: whose orders it is told of; empty for everybody's.
        chains, statuses: what it is told of; empty for all.
        place: token of the event up to which deliveries were made of what it wants; empty before the first.
        waiting, dead: deliveries that it has not taken.
        failures: tries in a row that failed; reason: of the last one, empty while it takes what it gets. Of
            several engines the one that delivers knows them.
        surfaces: kinds of orders that it is told of, `delta` and `otc`.
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
    """GET /v2/webhooks."""

    webhooks: tuple[WebhookEntry, ...]


class DeliveriesQuery(Struct, frozen=True, rename="camel", kw_only=True):
    """GET /v2/webhooks/{name}/deliveries.

    Attributes:
        after: token of the last delivery that is known already.
    """

    status: DeliveryState = DeliveryState.DEAD
    after: str | None = None
    limit: Annotated[int, Meta(ge=1, le=WEBHOOK_PAGE_MAX)] = WEBHOOK_PAGE_MAX


class DeliveryEntry(Struct, frozen=True, rename="camel"):
    """One delivery that was not taken yet.

    Attributes:
        token: its `webhook-id`.
        tries: so far; reason: why the last one failed.
        due_at: not before; of a dead one when it would have been. ISO 8601.
        body: as it is posted.
    """

    token: str
    status: DeliveryState
    tries: Count
    reason: str
    created_at: str
    due_at: str
    body: Raw


class DeliveryPage(Struct, frozen=True, rename="camel"):
    """Answer of GET /v2/webhooks/{name}/deliveries, by place."""

    deliveries: tuple[DeliveryEntry, ...]
    has_more: bool


class ReplayBody(Struct, frozen=True, forbid_unknown_fields=True):
    """POST /v2/webhooks/{name}/replay: which dead deliveries; none for the first of all.

    What it does not know is refused: a word that is mistyped would replay everything.
    """

    tokens: Annotated[tuple[Name, ...], Meta(max_length=WEBHOOK_PAGE_MAX)] = ()


class ReplayResponse(Struct, frozen=True):
    """What is delivered anew; ask again where `more` are dead."""

    replayed: tuple[str, ...]
    more: bool


decode_deliveries_query = query_decoder(DeliveriesQuery)
decode_replay_body = decoder(ReplayBody, bytes_max=JSON_BYTES_MAX, unique_keys=True)
decode_webhook_list = decoder(WebhookList, bytes_max=JSON_BYTES_MAX)
decode_delivery_page = decoder(DeliveryPage, bytes_max=JSON_BYTES_MAX)
decode_replay_response = decoder(ReplayResponse, bytes_max=JSON_BYTES_MAX)
