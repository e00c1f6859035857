"""Server of order events, for the load test of many listeners: `python -m bench.listeners_server --fd 5`.

    venue   the venue's own streams and server
    bare    epoll, and a send of the same bytes to each connection that asked for /events: a floor

    GET /events    every order event, as server-sent events, from the venue's own streams
    GET /publish   publishes an event now; the body is the time before it, in seconds of the monotonic clock
    GET /answer    600 bytes at once: what a quote beside the events waits for
    GET /memory    resident memory of the process, bytes

SIGTERM ends the server.
"""

import itertools
import select
import socket
import time
from pathlib import Path
from resource import getpagesize
from typing import cast

import trio

from bench.bench_events import an_order
from bench.intake_server import terminated
from bench.peers.served import inherited, options
from cambist.codecs.messages.event_messages import OrderEventsQuery
from cambist.config.errors import CambistError
from cambist.config.sections.server import ServerSettings
from cambist.engine.host.admission.ledger import Causer, Ledger
from cambist.engine.host.process.clock import WallClock
from cambist.engine.host.process.running import keep_collector
from cambist.engine.host.server import HttpCall, Reply, RouteGroup, Router, Server
from cambist.engine.store.follower import token_of
from cambist.engine.store.store import Store
from cambist.engine.trade.events.event_streams import EventStreams
from cambist.engine.trade.events.filters import EventFilter
from cambist.engine.trade.events.hub import EventHub
from cambist.engine.trade.events.ring import RingEntry
from cambist.engine.trade.orders.order_units import DELTA

VENUE, BARE = "venue", "bare"
LISTENERS_MAX = 15_000
_ANSWER = b"x" * 600


class Events:
    """The routes of the server."""

    def __init__(self) -> None:
        self.hub = EventHub(cast("Store", None))  # nobody is behind: nothing is read
        self._numbers = itertools.count(1)
        callers = itertools.count()
        self._streams = EventStreams(
            self.hub,
            # A few streams of each, as of so many clients.
            causer=lambda _: Causer(f"key {next(callers)}", ""),
            sees=lambda *_: True,
            streams_max=LISTENERS_MAX,
            ledger=Ledger(),
        )

    def router(self) -> Router:
        """Return the routes."""
        surface, router = RouteGroup(_refused), Router(_refused)
        stream = self._streams.endpoint(
            "/events",
            lambda _: (EventFilter(surface=DELTA.name), None),
            query=OrderEventsQuery,
            group="",
            summary="",
            detail="",
        )
        assert stream.coroutine is not None
        surface.coroutine("GET", "/events", stream.coroutine)
        surface.coroutine("GET", "/publish", self._publish)
        surface.plain("GET", "/answer", lambda _: Reply(200, _ANSWER))
        surface.plain("GET", "/memory", lambda _: Reply(200, b"%d" % _memory_bytes()))
        router.mount(surface)
        return router

    async def _publish(self, _: HttpCall) -> Reply:
        number, began = next(self._numbers), time.monotonic()
        await self.hub.publish(token_of(0, number), DELTA.event(an_order(number)))
        return Reply(200, f"{began!r}".encode())


def _memory_bytes() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * getpagesize()


def _refused(error: CambistError, request_id: str) -> bytes:
    return f"{request_id}: {error}".encode()


def serve_bare(listener: socket.socket) -> None:
    """Serve by nothing but system calls, until SIGTERM."""
    poll, numbers = select.epoll(), itertools.count(1)
    clients: dict[int, socket.socket] = {}
    listening: list[socket.socket] = []
    poll.register(listener.fileno(), select.EPOLLIN)
    while True:
        for descriptor, _ in poll.poll():
            if descriptor == listener.fileno():
                client, _ = listener.accept()
                client.setblocking(False)
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                clients[client.fileno()] = client
                poll.register(client.fileno(), select.EPOLLIN)
                continue
            client = clients[descriptor]
            request = client.recv(4_096)
            if not request:
                poll.unregister(descriptor)
                del clients[descriptor]
                client.close()
            elif b" /events " in request:
                listening.append(client)
                client.send(b"HTTP/1.1 200 OK\r\n\r\nevent: open\n\n")
            elif b" /publish " in request:
                number, began = next(numbers), time.monotonic()
                entry = RingEntry((0, number), DELTA.event(an_order(number)))
                for each in listening:
                    each.send(entry.frame)
                client.send(_bare_answer(f"{began!r}".encode()))
            elif b" /memory " in request:
                client.send(_bare_answer(b"%d" % _memory_bytes()))
            else:
                client.send(_bare_answer(_ANSWER))


def _bare_answer(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


async def serve(listener: socket.socket) -> None:
    """Serve the venue's streams until SIGTERM."""
    settings = ServerSettings(connections_max=LISTENERS_MAX, connections_per_address_max=LISTENERS_MAX)
    server = Server(Events().router(), settings, wall_ms=WallClock().now_ms)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(keep_collector)
        nursery.start_soon(server.serve, listener)
        await terminated()
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    parser = options(__doc__)
    parser.add_argument("--what", choices=(VENUE, BARE), default=VENUE)
    chosen = parser.parse_args()
    if chosen.what == BARE:
        serve_bare(inherited(chosen.fd))
    else:
        trio.run(serve, inherited(chosen.fd))
