"""Endpoints of webhooks: list webhooks and their waiting or dead deliveries, and repeat dead deliveries.

A webhook is managed with one API key, which the settings name; a request with any other key gets 404, as for
an unknown webhook.

Of several processes on a store, only one delivers a webhook's events. A listing shows only the failures that
the answering process has seen itself.

Source: ARCHITECTURE.md, "Push".
Choice: A listed webhook's URL lacks its query, which may hold a password.
Choice: Replays fill at most half of a webhook's waiting deliveries; beyond it a replay is 429. A replay of
    all takes as many as fit, a replay of named deliveries takes all of them or none.
"""

from collections.abc import Callable

import msgspec

from ....codecs.iso_time import iso_ms
from ....codecs.messages.vocabulary import DeliveryState
from ....codecs.messages.webhook_messages import (
    DeliveriesQuery,
    DeliveryEntry,
    DeliveryPage,
    ReplayBody,
    ReplayResponse,
    WebhookEntry,
    WebhookList,
    decode_deliveries_query,
    decode_replay_body,
)
from ....codecs.messages.wire import encode
from ....config.errors import RateLimited, StoreUnavailable, WebhookNotFound
from ....config.limits import WEBHOOK_PAGE_MAX
from ...host.server.routing import HttpCall, Reply
from ...store.follower import place_of
from ...store.queries import by, deliveries, delivery_counts
from ...store.rows import Delivery, Webhook
from ...store.store import Store
from ...store.tables import DELIVERY, WEBHOOK
from ...store.units import Conflict, Done, Unit, cas, row_of
from ..api.routes import Endpoint
from .deliveries import Hook, replayed
from .webhooks import Webhooks

_GROUP = "Webhooks"
_RETRY_S = 60  # the longest pause between two posts to a failing receiver
_COST = 5  # of an endpoint that reads or writes many rows


class WebhookDesk:
    """HTTP endpoints that list webhooks and their deliveries, and repeat dead (given up) deliveries.

    Args:
        key_of: returns the name of a request's API key; raises UnknownApiKey without a key.
        now_ms: returns the wall clock, Unix milliseconds.
    """

    def __init__(
        self,
        webhooks: Webhooks,
        store: Store,
        *,
        key_of: Callable[[HttpCall], str],
        now_ms: Callable[[], int],
    ) -> None:
        self._webhooks = webhooks
        self._store = store
        self._key_of = key_of
        self._now_ms = now_ms

    def endpoints(self) -> tuple[Endpoint, ...]:
        """Return the HTTP endpoints under /v2/webhooks, as rows of the route table."""
        return (
            Endpoint(
                method="GET",
                path="/v2/webhooks",
                coroutine=self._list,
                cost=_COST,
                needs_key=True,
                group=_GROUP,
                summary="The webhooks that the caller's key manages, with their state",
                answer=WebhookList,
            ),
            Endpoint(
                method="GET",
                path="/v2/webhooks/{name}/deliveries",
                coroutine=self._deliveries,
                needs_key=True,
                group=_GROUP,
                summary="Deliveries that a webhook has not accepted: dead or waiting",
                query=DeliveriesQuery,
                answer=DeliveryPage,
            ),
            Endpoint(
                method="POST",
                path="/v2/webhooks/{name}/replay",
                coroutine=self._replay,
                cost=_COST,
                needs_key=True,
                group=_GROUP,
                summary="Repeat dead deliveries",
                detail=f"The named deliveries, or the first {WEBHOOK_PAGE_MAX} of all.",
                body=ReplayBody,
                answer=ReplayResponse,
            ),
        )

    async def _list(self, call: HttpCall) -> Reply:
        key = self._key_of(call)
        hooks = [hook for hook in self._webhooks.hooks.values() if hook.manager == key]
        return Reply(200, encode(WebhookList(tuple([await self._entry(hook) for hook in hooks]))))

    async def _entry(self, hook: Hook) -> WebhookEntry:
        rows, counted = await self._store.read(by(WEBHOOK, hook.name), delivery_counts(hook.name))
        kept: Webhook | None = row_of(WEBHOOK, rows[0]) if rows else None
        counts = dict(counted)
        statistics = self._webhooks.statistics()[hook.name]
        return WebhookEntry(
            name=hook.name,
            url=hook.url.partition("?")[0],
            partner=hook.partner,
            chains=tuple(sorted(hook.chains)),
            statuses=tuple(sorted(hook.statuses)),
            place="" if kept is None else kept.token,
            waiting=counts.get(DeliveryState.WAITING.value, 0),
            dead=counts.get(DeliveryState.DEAD.value, 0),
            failures=statistics.failures,
            reason=statistics.reason,
            surfaces=tuple(sorted(hook.surfaces)),
        )

    async def _deliveries(self, call: HttpCall) -> Reply:
        hook = self._hook(call)
        query = decode_deliveries_query(call.request.query or b"")
        after = query.after or ""
        if after:
            place_of(after)
        found = await self._found(hook, query.status, after, query.limit + 1)
        page = DeliveryPage(
            tuple([_entry(delivery) for delivery in found[: query.limit]]), has_more=len(found) > query.limit
        )
        return Reply(200, encode(page))

    async def _replay(self, call: HttpCall) -> Reply:
        hook = self._hook(call)
        tokens = decode_replay_body(call.request.body).tokens
        # One at a time: replays of one webhook at once would each fill the same room.
        async with self._webhooks.replaying(hook.name):
            anew, more = await self._replayed(hook, tokens)
        self._webhooks.rouse(hook.name)
        return Reply(200, encode(ReplayResponse(tuple(anew), more)))

    async def _replayed(self, hook: Hook, tokens: tuple[str, ...]) -> tuple[list[str], bool]:
        """Have dead deliveries wait again: the named ones, or without names the first that have room.

        Returns:
            Tokens of the deliveries, and whether further dead ones were asked for and left.

        Raises:
            RateLimited: too many deliveries of the webhook wait already.
            StoreUnavailable: the store is away.
        """
        if tokens:
            dead = [delivery for token in dict.fromkeys(tokens) for delivery in await self._dead(hook, token)]
        else:
            dead = await self._found(hook, DeliveryState.DEAD, "", WEBHOOK_PAGE_MAX + 1)
        (counted,) = await self._store.read(delivery_counts(hook.name))
        room = hook.waiting_half - dict(counted).get(DeliveryState.WAITING.value, 0)
        if dead and room < (len(dead) if tokens else 1):
            error = RateLimited(f"replays fill at most {hook.waiting_half} waiting deliveries of a webhook")
            error.retry_after_s = _RETRY_S
            raise error
        now = dead[: min(WEBHOOK_PAGE_MAX, room)]
        anew: list[str] = []
        for delivery in now:
            outcome = await self._store.write(Unit((cas(DELIVERY, replayed(delivery, self._now_ms())),)))
            if isinstance(outcome, Done):
                anew.append(delivery.token)
            elif not isinstance(outcome, Conflict):
                raise StoreUnavailable(f"a delivery was not changed: {outcome}")
        return anew, len(dead) > len(now)

    async def _found(self, hook: Hook, state: DeliveryState, after: str, limit: int) -> list[Delivery]:
        (rows,) = await self._store.read(deliveries(hook.name, state.value, after, limit))
        return [row_of(DELIVERY, values) for values in rows]

    async def _dead(self, hook: Hook, token: str) -> list[Delivery]:
        """Read a webhook's delivery of one event; the list is empty unless the delivery is dead (given up).

        Args:
            token: resume token of the event.
        """
        (rows,) = await self._store.read(by(DELIVERY, hook.name, token))
        found: list[Delivery] = [row_of(DELIVERY, values) for values in rows]
        return [delivery for delivery in found if delivery.state is DeliveryState.DEAD]

    def _hook(self, call: HttpCall) -> Hook:
        """Return the webhook that the request's path names.

        Raises:
            WebhookNotFound: no webhook of this name is managed with the request's API key.
        """
        key, name = self._key_of(call), call.parameters[0]
        hook = self._webhooks.hooks.get(name)
        if hook is None or hook.manager != key:
            raise WebhookNotFound(field="name", expected="a webhook that the key manages", got=name)
        return hook


def _entry(delivery: Delivery) -> DeliveryEntry:
    return DeliveryEntry(
        token=delivery.token,
        status=delivery.state,
        tries=delivery.tries,
        reason=delivery.reason,
        created_at=iso_ms(delivery.created_ms),
        due_at=iso_ms(delivery.due_ms),
        body=msgspec.Raw(delivery.body),
    )
