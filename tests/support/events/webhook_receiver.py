"""A webhook's receiver behind memory streams, at a test's command, and the webhooks that post to it."""

import base64
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from hmac import digest
from random import Random
from typing import Any

import httpx
import msgspec
import trio
from trio.testing import memory_stream_pair

from cambist.codecs.http1 import Closed, Http1Limits, Request, ServerConnection, encode_response
from cambist.config.limits import WEBHOOK_DEAD_MAX, WEBHOOK_WAITING_MAX
from cambist.crypto.webhook_signature import WebhookSigner
from cambist.engine.store.leases import Leases
from cambist.engine.store.store import Store
from cambist.engine.trade.events.deliveries import Hook
from cambist.engine.trade.events.webhooks import Webhooks, shard_of
from cambist.feeds.transport.httpx_transport import DialTransport
from cambist.feeds.transport.streams import client_tls
from support.store.stores import NOW_MS

KEY = bytes(range(32))
SECRET = "whsec_" + base64.b64encode(KEY).decode()


class Receiver:
    """Takes deliveries, or does not.

    Attributes:
        status: of its answers; status_of: token -> that of this one.
        is_away: connections are refused.
        hangs: it never answers; hanging_hosts: nor do these.
        slow_hosts: host -> seconds until it answers.
        taken: (webhook-id, event) of what it answered 2xx, in order.
        seen: webhook-id -> how often it came.
        at_once: most requests at a time.
    """

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery
        self.status = 204
        self.status_of: dict[str, int] = {}
        self.is_away = False
        self.hangs = False
        self.hanging_hosts: set[str] = set()
        self.slow_hosts: dict[str, float] = {}
        self.taken: list[tuple[str, Any]] = []
        self.seen: Counter[str] = Counter()
        self.times: list[float] = []
        self.at_once = 0
        self._now = 0

    async def dial(self, host: str, port: int, **_: object) -> trio.abc.Stream:
        """As `cambist.feeds.transport.streams.dial`."""
        await trio.lowlevel.checkpoint()
        if self.is_away:
            raise ConnectionRefusedError
        near, far = memory_stream_pair()
        self._nursery.start_soon(self._serve, far)
        return near

    async def _serve(self, stream: trio.abc.Stream) -> None:
        framing = ServerConnection(Http1Limits())
        try:
            async with stream:
                while True:
                    event = framing.next_event()
                    if isinstance(event, Closed):
                        return
                    if isinstance(event, Request):
                        await stream.send_all(encode_response(await self._answer(event), b""))
                        continue
                    data = await stream.receive_some()
                    if not data:
                        return
                    framing.receive_data(bytes(data))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass

    async def _answer(self, request: Request) -> int:
        fields = {name: value.decode() for name, value in request.fields.items()}
        webhook_id, time_s = fields[b"webhook-id"], fields[b"webhook-timestamp"]
        signed = f"{webhook_id}.{time_s}.".encode() + request.body
        expected = "v1," + base64.b64encode(digest(KEY, signed, "sha256")).decode()
        assert fields[b"webhook-signature"] == expected
        assert request.method == b"POST"
        self.seen[webhook_id] += 1
        self.times.append(trio.current_time())
        self._now += 1
        self.at_once = max(self.at_once, self._now)
        try:
            if self.hangs or fields[b"host"] in self.hanging_hosts:
                await trio.sleep_forever()
            await trio.sleep(self.slow_hosts.get(fields[b"host"], 0.01))
        finally:
            self._now -= 1
        status = self.status_of.get(webhook_id, self.status)
        if 200 <= status < 300:
            self.taken.append((webhook_id, msgspec.json.decode(request.body)))
        return status

    def versions(self) -> list[int]:
        """Of the events that it took."""
        return [event["version"] for _, event in self.taken]


def a_hook(name: str = "acme", **changed: Any) -> Hook:
    said: dict[str, Any] = {
        "name": name,
        "url": f"http://{name}.example/orders",
        "sign": WebhookSigner(SECRET),
        "surfaces": frozenset({"delta"}),
        "partner": "",
        "chains": frozenset(),
        "statuses": frozenset(),
        "manager": name,
        "posts_max": 8,
        "post_s": 10.0,
        "give_up_ms": 3_600_000,
        "shard": shard_of(name),
        "waiting_max": WEBHOOK_WAITING_MAX,
        "dead_max": WEBHOOK_DEAD_MAX,
    }
    return Hook(**{**said, **changed})


def now_ms() -> int:
    """A wall clock on the test's."""
    return NOW_MS + round(trio.current_time() * 1_000)


@asynccontextmanager
async def posting(
    store: Store, receiver: Receiver, *hooks: Hook, holder: str = "one"
) -> AsyncGenerator[Webhooks]:
    """Webhooks that are delivered, by an engine that holds all shards it can get."""
    leases = Leases(store, holder, life_s=10, now_ms=now_ms)
    transport = DialTransport(
        tls=client_tls(), connections_max=8, limits=Http1Limits(), dial=receiver.dial, needs_body=False
    )
    async with httpx.AsyncClient(transport=transport) as http, trio.open_nursery() as nursery:
        await nursery.start(leases.run)
        webhooks = Webhooks(
            {hook.name: hook for hook in hooks}, store, leases, http, now_ms=now_ms, random=Random(1)
        )
        async with trio.open_nursery() as inner:
            await inner.start(webhooks.run)
            yield webhooks
            inner.cancel_scope.cancel()
        nursery.cancel_scope.cancel()
