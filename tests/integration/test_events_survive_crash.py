"""kill -9 of a venue while orders flow and listeners come and go: each listener gets every event once, and a
webhook's receiver every event at least once.

CRASH_SEED repeats a run; without it each run has a seed of its own, which is printed.
"""

import base64
import hashlib
import hmac
import os
import secrets
import sqlite3
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from random import Random

import pytest
import trio

from cambist.codecs.http1 import encode_response
from cambist.codecs.messages.event_messages import (
    OpenMessage,
    OrderEventMessage,
    OrderStreamMessage,
    decode_order_event,
    decode_stream_message,
)
from cambist.config.errors import MakerError, WebSocketClosed
from cambist.crypto.addresses import to_checksum
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.store.follower import place_of
from cambist.feeds.transport.websocket import HandshakeRefused, connect_websocket
from support.chain.world import ONE, USDC, person
from support.delta.delta_process import CrashStory, Record, a_crash_story
from support.events.event_streams import PATH
from support.patience import PATIENCE_S, STORY_S, until
from support.server.scripted_server import Caller, scripted_server

pytestmark = pytest.mark.seldom

ROUNDS = int(os.environ.get("CRASH_ROUNDS", "1"))
OWNERS, ORDERS_EACH, KILLS = 3, 4, 4
KEY = secrets.token_bytes(32)
OPERATOR_KEY = "the-key-of-the-operator"
HOOK = """
[venue.api_keys.operator]
secret = "env:OPERATOR_KEY"
operator = true
[venue.webhooks.acme]
url = "http://127.0.0.1:{port}/orders"
private_addresses = true
secret = "env:HOOK_SECRET"
"""
Event = tuple[int, str, int, str]
"""(place, order's hash, version, status)."""
_CUT = (OSError, trio.BrokenResourceError, trio.ClosedResourceError, MakerError, WebSocketClosed)


class Listener:
    """A client that goes away when it likes, and comes back with its last token.

    Attributes:
        began: the first token that it was told.
        heard: the events, as they came.
        token: the last one that it was told; None before the first.
        times: how often it was connected.
    """

    def __init__(self, story: CrashStory, random: Random, owner: SigningKey | None = None) -> None:
        self.story = story
        self.random = random
        self.owner = owner
        self.began = ""
        self.heard: list[OrderEventMessage] = []
        self.token: str | None = None
        self.times = 0

    async def run(self) -> None:
        """Listen, until cancelled."""
        while True:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._tires, nursery.cancel_scope)
                try:
                    await self.listen()
                except (*_CUT, HandshakeRefused):
                    await trio.sleep(0.02)  # as a client does
                nursery.cancel_scope.cancel()

    async def _tires(self, scope: trio.CancelScope) -> None:
        await self.story.node.answers(self.random.randint(2, 80))
        scope.cancel()

    async def listen(self) -> None:
        """Listen on one connection until it ends."""
        raise NotImplementedError

    def target(self, *, with_token: bool = True) -> str:
        """Target of the request."""
        query = [] if self.owner is None else [f"userAddress={to_checksum(self.owner.address)}"]
        if with_token and self.token is not None:
            query.append(f"after={self.token}")
        return f"{PATH}?{'&'.join(query)}"

    def take(self, message: OrderStreamMessage) -> None:
        """Record an arrived message."""
        if isinstance(message, OrderEventMessage):
            self.heard.append(message)
        elif isinstance(message, OpenMessage):
            assert message.token == self.token or self.token is None, "it goes on where it was"
            self.began = self.began or message.token
        self.token = message.token


class Browser(Listener):
    """By server-sent events."""

    async def listen(self) -> None:
        """As `Listener`."""
        by_header = self.token is not None and self.random.random() < 0.5
        target = self.target(with_token=not by_header)
        head = f"GET {target} HTTP/1.0\r\nHost: a\r\nX-API-KEY: {OPERATOR_KEY}\r\n"
        if by_header:
            head += f"Last-Event-ID: {self.token}\r\n"
        async with await trio.open_tcp_stream("127.0.0.1", self.story.port) as stream:
            await stream.send_all(f"{head}\r\n".encode())
            text, has_begun = b"", False
            while data := await stream.receive_some(self.random.choice([7, 4_096])):
                text += data
                if not has_begun:
                    answer, mark, rest = text.partition(b"\r\n\r\n")
                    if not mark:
                        continue
                    if b" 200 " not in answer.split(b"\r\n")[0]:
                        return
                    text, has_begun = rest, True
                    self.times += 1
                *blocks, text = text.split(b"\n\n")
                for block in blocks:
                    self._block(block)

    def _block(self, block: bytes) -> None:
        fields = dict(line.split(b": ", 1) for line in block.split(b"\n") if not line.startswith(b":"))
        if b"data" in fields:
            message = decode_stream_message(fields[b"data"])
            assert fields[b"id"].decode() == message.token
            self.take(message)
        elif b"id" in fields:
            self.token = fields[b"id"].decode()


class Socket(Listener):
    """By WebSocket."""

    async def listen(self) -> None:
        """As `Listener`."""
        async with connect_websocket(
            "127.0.0.1",
            self.story.port,
            self.target(),
            tls=None,
            headers={"X-API-KEY": OPERATOR_KEY},
            message_bytes_max=65_536,
            send_bytes_max=65_536,
        ) as socket:
            self.times += 1
            while True:
                text = await socket.receive()
                assert isinstance(text, str)
                self.take(decode_stream_message(text.encode()))


class Hook:
    """A webhook's receiver; now and then it does not take what comes, or cuts the connection.

    Attributes:
        taken: token -> (event, how often it came).
        refused: how many it did not take.
    """

    def __init__(self, random: Random) -> None:
        self.random = random
        self.taken: dict[str, OrderEventMessage] = {}
        self.times: Counter[str] = Counter()
        self.refused = 0

    async def script(self, caller: Caller) -> None:
        """Serve one connection."""
        try:
            while True:
                request = await caller.request()
                fields = {name: value.decode() for name, value in request.fields.items()}
                token = fields[b"webhook-id"]
                signed = f"{token}.{fields[b'webhook-timestamp']}.".encode() + request.body
                proof = base64.b64encode(hmac.digest(KEY, signed, hashlib.sha256)).decode()
                assert fields[b"webhook-signature"] == f"v1,{proof}"
                if self.refused < 4 and self.random.random() < 0.1:
                    self.refused += 1
                    if self.random.random() < 0.5:
                        return
                    await caller.stream.send_all(encode_response(503, b""))
                    continue
                event = decode_order_event(request.body)
                assert event.token == token
                self.taken[token] = event
                self.times[token] += 1
                await caller.stream.send_all(encode_response(204, b""))
        except (EOFError, trio.BrokenResourceError):
            return
        finally:
            await caller.stream.aclose()


def written(folder: Path) -> list[Event]:
    """The log of events, from its start."""
    return [
        (n, f"0x{order_hash.hex()}", version, status)
        for n, order_hash, version, status in asked(
            folder, "SELECT n, order_hash, version, status FROM order_event ORDER BY n"
        )
    ]


def asked(folder: Path, sql: str) -> list[tuple[int, bytes, int, str]]:
    """Rows of the venue's store."""
    with closing(sqlite3.connect(f"file:{folder / 'cambist.sqlite3'}?mode=ro", uri=True)) as connection:
        return connection.execute(sql).fetchall()


def told(messages: list[OrderEventMessage]) -> list[Event]:
    """The same of what somebody was told."""
    return [(place_of(one.token)[1], one.order_hash, one.version, one.status) for one in messages]


class Market:
    """Owners whose orders are filled, rest, and are cancelled."""

    def __init__(self, story: CrashStory, random: Random) -> None:
        self.story = story
        self.random = random
        self.owners = [person(80 + number) for number in range(OWNERS)]
        self.records: list[Record] = []

    async def equip(self) -> None:
        """Give each owner WETH with an allowance to the Delta contract."""
        world = self.story.world
        for owner in self.owners:
            await world.chain.set_balance(owner.address, 100 * ONE)
            await world.give(owner, world.weth, 10 * ONE, world.at.delta)

    async def trade(self, owner: SigningKey) -> None:
        """Place one owner's orders in turn and cancel many after a while; all rest, since no maker has
        books.
        """
        story, random = self.story, self.random
        for number in range(ORDERS_EACH):
            await story.node.answers(random.randint(1, 25))
            order = await story.world.a_delta_order(
                owner=owner.address, beneficiary=owner.address, nonce=random.getrandbits(64)
            )
            rests = number % 2 == 1
            body = story.world.delta_body(order, owner) | {"type": "LIMIT" if rests else "MARKET"}
            status, record = await story.answered("POST", "/v2/delta/orders", body)
            assert status == 200, record
            self.records.append(record)
            if rests or random.random() < 0.4:
                await story.node.answers(random.randint(1, 15))
                body = story.world.cancel_body([record["id"]], owner)
                status, answer = await story.answered("POST", "/v2/delta/orders/cancel", body)
                assert status == 200 or answer["errorType"] == "OrderAlreadySettled", answer

    async def kill(self) -> None:
        """The venue, again and again."""
        for _ in range(KILLS):
            await self.story.node.answers(self.random.randint(20, 150))
            await self.story.killed_and_started()

    async def mine(self) -> None:
        """A block now and then, whether the venue lives or not, until cancelled."""
        await self.story.chain.set_automine(on=False)
        while True:
            with trio.move_on_after(0.2):
                await self.story.node.answers(self.random.randint(1, 30))
            await self.story.chain.mine()

    async def come_to_rest(self) -> None:
        """Every order has ended for good: the log is complete."""
        for record in self.records:
            await self.story.becomes(record, "COMPLETED", "CANCELLED")
        with trio.fail_after(PATIENCE_S):
            while asked(self.story.folder, "SELECT 1 FROM delta_order WHERE NOT is_final"):
                await self.story.chain.mine()
                await trio.sleep(0.05)  # as a chain makes its blocks


@asynccontextmanager
async def a_hooked_story(folder: Path, random: Random) -> AsyncGenerator[tuple[CrashStory, Hook]]:
    """A venue that tells a webhook, from before the first order."""
    hook = Hook(random)
    async with scripted_server(hook.script) as port:
        secret = "whsec_" + base64.b64encode(KEY).decode()
        environ = {"OPERATOR_KEY": OPERATOR_KEY, "HOOK_SECRET": secret}
        async with a_crash_story(folder, "ann", more=HOOK.format(port=port), environ=environ) as story:
            story.agents["ann"].gives = lambda order: 2_500 * USDC
            await until(lambda: asked(folder, "SELECT 1 FROM webhook"))
            yield story, hook


async def flows(story: CrashStory, market: Market, listeners: list[Listener], late: Listener) -> None:
    """Orders come and end while the venue is killed; `late` joins after the first kill."""
    async with trio.open_nursery() as clients:
        for listener in listeners:
            clients.start_soon(listener.run)
        await until(lambda: all(listener.began for listener in listeners))
        async with trio.open_nursery() as blocks:
            blocks.start_soon(market.mine)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(market.kill)
                for owner in market.owners:
                    nursery.start_soon(market.trade, owner)
                await until(lambda: story.starts > 1 and any(one.heard for one in listeners), STORY_S)
                clients.start_soon(late.run)
            await market.come_to_rest()
            blocks.cancel_scope.cancel()
        last = written(story.folder)[-1][0]
        for listener in (*listeners, late):
            if listener.owner is None:
                await until(lambda one=listener: place_of(one.token or "")[1] >= last, STORY_S)  # type: ignore[misc]
        for listener in listeners:
            if listener.owner is not None:
                wanted = len(
                    [event for event in written(story.folder) if event[1] in hashes_of(market, listener)]
                )
                await until(lambda one=listener, count=wanted: len(one.heard) >= count)  # type: ignore[misc]
        clients.cancel_scope.cancel()


def hashes_of(market: Market, listener: Listener) -> set[str]:
    """Of the orders of the owner whose events somebody listens to."""
    assert listener.owner is not None
    address = to_checksum(listener.owner.address)
    return {record["orderHash"] for record in market.records if record["owner"] == address}


async def test_no_event_is_lost_or_told_twice(tmp_path: Path) -> None:
    for number in range(ROUNDS):
        seed = int(os.environ.get("CRASH_SEED") or secrets.randbits(32))
        print(f"CRASH_SEED={seed}")  # noqa: T201  whoever sees it fail repeats it
        folder = tmp_path / str(number)
        folder.mkdir()
        await one_round(folder, Random(seed))


async def one_round(folder: Path, random: Random) -> None:
    async with a_hooked_story(folder, random) as (story, hook):
        market = Market(story, random)
        await market.equip()
        mine = market.owners[0]
        everybody = [Browser(story, random), Socket(story, random), Browser(story, random)]
        of_one = [Browser(story, random, mine), Socket(story, random, mine)]
        late = Browser(story, random)
        await flows(story, market, [*everybody, *of_one], late)
        log = written(folder)
        assert len({event[1] for event in log}) == OWNERS * ORDERS_EACH
        for listener in everybody:
            assert place_of(listener.began) == (0, 0)
            assert told(listener.heard) == log
            assert listener.times > KILLS
        for listener in of_one:
            hashes = hashes_of(market, listener)
            assert told(listener.heard) == [event for event in log if event[1] in hashes]
            assert listener.times > KILLS
        began = place_of(late.began)[1]
        assert told(late.heard) == [event for event in log if event[0] > began]
        assert began > 0
        await until(lambda: len(hook.taken) >= len(log), STORY_S)
        assert sorted(told(list(hook.taken.values()))) == log
        await until(lambda: not asked(folder, "SELECT 1 FROM delivery"), STORY_S)
