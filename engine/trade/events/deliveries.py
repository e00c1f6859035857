"""Deliveries of order events to webhooks, and their states after each POST. Pure.

    event that a webhook wants -> Delivery WAITING, due at once
        POST answered with 2xx     row deleted
        POST failed                WAITING, due after a pause that doubles
        POST failed, event too old DEAD: listed, and replayed at the receiver's request

Source: ARCHITECTURE.md, "Push"; Standard Webhooks 1.0.0, "Payload structure", "Operational considerations".
Choice: `webhook-id` is the token of the event's place in the log, the same in every try and replay, so that
    receivers can drop duplicates.
Choice: Events of the same order are delivered in sequence, each once the event before is taken or dead.
    Events of different orders are delivered in parallel.
"""

from collections.abc import Callable
from random import Random

from msgspec import Struct
from msgspec.structs import replace

from ....codecs.messages.vocabulary import DeliveryState
from ....config.limits import WEBHOOK_DEAD_MAX, WEBHOOK_REASON_CHARS_MAX, WEBHOOK_WAITING_MAX
from ....config.timeouts import WEBHOOK_AGAIN_S, WEBHOOK_AGAIN_S_MAX
from ...store.rows import Delivery, OrderEvent

_DOUBLINGS_MAX = 16
_JITTER = 0.5
PAUSE_MS_MAX = round(WEBHOOK_AGAIN_S_MAX * (1 + _JITTER) * 1_000)
"""Longest pause, in ms, between a failed POST of an event to a webhook and the next POST of it."""


class Hook(Struct, frozen=True, kw_only=True):
    """Settings of a webhook: its URL, the order events that are posted to it, and limits of the POSTs.

    Attributes:
        sign: (message id, Unix seconds, body) -> signature of the POST.
        surfaces: kinds of the wanted orders: `delta`, `otc`.
        partner: partner of the wanted orders; empty for all orders.
        chains, statuses: chain ids and statuses of the wanted events; empty for all.
        manager: name of the API key that may list and replay the webhook's deliveries; empty if no key may.
        posts_max: most POSTs to the receiver at the same time.
        post_s: time limit of a POST, seconds.
        give_up_ms: age of an event, in ms, from which a failed delivery is given up.
        shard: number of a shard, 0 to 255; the process that holds the shard's lease posts to this webhook.
        waiting_max: most deliveries that wait, at least 2 * WEBHOOK_ROWS_MAX; further events stay in the log.
        dead_max: most dead deliveries that are kept when new events are stored; the oldest are deleted.
    """

    name: str
    url: str
    sign: Callable[[str, int, bytes], str]
    surfaces: frozenset[str]
    partner: str
    chains: frozenset[int]
    statuses: frozenset[str]
    manager: str
    posts_max: int
    post_s: float
    give_up_ms: int
    shard: int
    waiting_max: int = WEBHOOK_WAITING_MAX
    dead_max: int = WEBHOOK_DEAD_MAX

    @property
    def waiting_half(self) -> int:
        """Half of `waiting_max`: replays fill no more of it, and new events take at most as much at a time.

        The process that stores new events counts what waits once for many events. Replays, which another
        process may make meanwhile, thus never add up with them to more than `waiting_max`.
        """
        return self.waiting_max // 2

    def wants(self, event: OrderEvent) -> bool:
        """Whether an order event passes the webhook's filters: kind of orders, partner, chain and status."""
        return (
            event.surface in self.surfaces
            and (not self.partner or event.partner == self.partner)
            and (not self.chains or event.chain_id in self.chains)
            and (not self.statuses or event.status in self.statuses)
        )


def new_delivery(hook: Hook, token: str, event: OrderEvent, body: bytes, now_ms: int) -> Delivery:
    """Make the record of an event's delivery to a webhook, to be posted at once.

    Args:
        token: resume token of the event, which names its place in the event log.
        body: the event's message as JSON, body of the POST.
    """
    return Delivery(
        webhook=hook.name,
        token=token,
        order_hash=event.order_hash,
        body=body,
        created_ms=event.at_ms,
        version=1,
        state=DeliveryState.WAITING,
        tries=0,
        due_ms=now_ms,
        reason="",
        updated_ms=now_ms,
    )


def not_taken(delivery: Delivery, reason: str, give_up_ms: int, now_ms: int, random: Random) -> Delivery:
    """Update a delivery after a failed POST: WAITING with a longer pause, or DEAD if the event is too old.

    Args:
        reason: description of the failure.
        give_up_ms: age of the event, in ms, from which a failed delivery is dead.
        random: source of the pause's jitter.
    """
    tries = delivery.tries + 1
    pause_s = min(WEBHOOK_AGAIN_S * 2 ** min(delivery.tries, _DOUBLINGS_MAX), WEBHOOK_AGAIN_S_MAX)
    due_ms = now_ms + round(pause_s * random.uniform(1 - _JITTER, 1 + _JITTER) * 1_000)
    is_dead = now_ms - delivery.created_ms >= give_up_ms
    return replace(
        delivery,
        state=DeliveryState.DEAD if is_dead else DeliveryState.WAITING,
        tries=tries,
        due_ms=due_ms,
        reason=reason,
        updated_ms=now_ms,
    )


def given_up(delivery: Delivery, reason: str, now_ms: int) -> Delivery:
    """Mark a delivery to a webhook as DEAD (given up), because its event is too old to be posted again.

    Args:
        reason: the receiver's last failure, stored if this delivery has no failure of its own.
    """
    return replace(delivery, state=DeliveryState.DEAD, reason=delivery.reason or reason, updated_ms=now_ms)


def reason_of(error: Exception) -> str:
    """Describe a failed POST as short printable text.

    An unprintable character, which the receiver's response may contain, becomes `?`.
    """
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return "".join(char if char.isprintable() else "?" for char in text[:WEBHOOK_REASON_CHARS_MAX])


def replayed(delivery: Delivery, now_ms: int) -> Delivery:
    """Reset a DEAD (given up) delivery to WAITING: due at once, and with the full time for new tries."""
    return replace(
        delivery,
        state=DeliveryState.WAITING,
        tries=0,
        due_ms=now_ms,
        created_ms=now_ms,
        reason="",
        updated_ms=now_ms,
    )


def rest_s(failures: int) -> float:
    """Return the pause after `failures` failed POSTs in a row to a webhook: 0, 1, 2, 4 ... up to 60 s."""
    return 0.0 if not failures else min(2.0 ** min(failures - 1, _DOUBLINGS_MAX), 60.0)
