"""Changes of orders as a venue pushes them, for as long as they are wanted.

    connecting --open--> live --a change or a beat: the token moves on--> live
        \\--no answer----------\\--ended--> a pause with jitter, doubling --> connecting, after the token
        \\--refused: over

Whoever hears of everything after a token has missed nothing and heard nothing twice, however often the
connection ended meanwhile. Without a token it begins with what happens from now on.

`order watch` reads events over a WebSocket, whose pings reveal a dead connection. A refusal of 400 to 499 is
final except 408 and 429, and so is a close with 1008: the token belongs to another database.

Source: ARCHITECTURE.md, "Push"; codecs/messages/event_messages.py.
"""

import math
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from random import Random, SystemRandom
from typing import Protocol

import trio
from msgspec import Struct

from ...codecs.messages.event_messages import BeatMessage, OrderStreamMessage, decode_stream_message
from ...config.errors import CambistError, InvalidInput, VenueError, WebSocketClosed
from ...config.timeouts import TRADER_ORDER_LOOK_PUSHED_S
from ...feeds.backoff import pause_s
from ...feeds.net.websocket import WebSocket
from .client import VenueClient

_REFUSED, _SERVER_FAULT = 400, 500
_POLICY_VIOLATION = 1008
_LATER = frozenset((408, 429))


class EventSelection(Protocol):
    """Which orders of a surface are listened to."""

    @property
    def path(self) -> str:
        """Of their events."""
        ...

    def query(self, after: str) -> dict[str, str]:
        """The parameters.

        Args:
            after: a token; empty for now.
        """
        ...


class EventsWanted(Struct, frozen=True, kw_only=True):
    """Which Delta orders are listened to; empty for any.

    Attributes:
        order: an id, or a hash.
        owner: an address.
    """

    order: str = ""
    owner: str = ""
    chain_ids: tuple[int, ...] = ()
    partner: str = ""

    @property
    def path(self) -> str:
        """GET /v2/delta/orders/events."""
        return "/v2/delta/orders/events"

    def query(self, after: str) -> dict[str, str]:
        """The parameters of GET /v2/delta/orders/events.

        Args:
            after: a token; empty for now.
        """
        told = {
            "orderHash" if self.order.startswith("0x") else "orderId": self.order,
            "userAddress": self.owner,
            "chainId": ",".join(map(str, self.chain_ids)),
            "partner": self.partner,
            "after": after,
        }
        return {name: value for name, value in told.items() if value}


class OtcEventsWanted(Struct, frozen=True, kw_only=True):
    """Which OTC orders are listened to; empty for any.

    Attributes:
        order: a hash.
        maker, taker: addresses; a taker is that of an order or the one in its nonceAndMeta.
    """

    order: str = ""
    maker: str = ""
    taker: str = ""
    chain_ids: tuple[int, ...] = ()

    @property
    def path(self) -> str:
        """GET /ft/events."""
        return "/ft/events"

    def query(self, after: str) -> dict[str, str]:
        """The parameters of GET /ft/events.

        Args:
            after: a token; empty for now.
        """
        told = {
            "orderHash": self.order,
            "maker": self.maker,
            "taker": self.taker,
            "chainId": ",".join(map(str, self.chain_ids)),
            "after": after,
        }
        return {name: value for name, value in told.items() if value}


class OrderEvents:
    """Listens at one venue; `run` is its task.

    Args:
        hear: gets each message, beats included.
        tell: one line when the connection is lost.
        random: for the pauses.

    Attributes:
        token: of the last message; whoever begins anew after it misses nothing.
        is_live: connected, and told where it begins.
    """

    def __init__(
        self,
        venue: VenueClient,
        wanted: EventSelection,
        hear: Callable[[OrderStreamMessage], None],
        *,
        tell: Callable[[str], None],
        random: Random,
        after: str = "",
    ) -> None:
        self._venue = venue
        self._wanted = wanted
        self._hear = hear
        self._tell = tell
        self._random = random
        self._failures = 0
        self.token = after
        self.is_live = False

    async def run(self, timeout_s: float = math.inf) -> None:
        """Listen for so long.

        Raises:
            VenueError: the venue refuses, and will not think better of it.
        """
        with trio.move_on_after(timeout_s):
            await self._run()

    async def _run(self) -> None:
        while True:
            try:
                async with self._venue.events(self._wanted.path, self._wanted.query(self.token)) as socket:
                    await self._listen(socket)
            except VenueError as fault:
                if _REFUSED <= fault.status < _SERVER_FAULT and fault.status not in _LATER:
                    raise
                self._failed(fault)
            except (WebSocketClosed, InvalidInput) as fault:
                if isinstance(fault, WebSocketClosed) and fault.code == _POLICY_VIOLATION:
                    raise VenueError(f"events: {fault.detail}") from None
                self._failed(fault)
            await trio.sleep(pause_s(self._failures, self._random))

    async def _listen(self, socket: WebSocket) -> None:
        """Take what comes until the connection ends.

        Raises:
            WebSocketClosed: it has ended.
            InvalidInput: what came is no message.
        """
        while True:
            text = await socket.receive()
            message = decode_stream_message(text.encode() if isinstance(text, str) else text)
            self.token = message.token
            self.is_live = True
            self._failures = 0
            self._hear(message)

    def _failed(self, fault: CambistError) -> None:
        if not self._failures:
            self._tell(f"events: {fault.detail}: connecting again")
        self.is_live = False
        self._failures += 1


class OrderPush:
    """Wakes whoever waits for an order; made by `pushed`.

    Attributes:
        is_live: the venue pushes now; where it is not, orders have to be asked for.
    """

    def __init__(self, venue: VenueClient, wanted: EventSelection, tell: Callable[[str], None]) -> None:
        self._events = OrderEvents(venue, wanted, self._hear, tell=self._lost, random=SystemRandom())
        self._tell = tell
        self._heard = trio.Event()
        self._is_over = False

    @property
    def is_live(self) -> bool:
        """See the class."""
        return self._events.is_live and not self._is_over

    async def run(self) -> None:
        """Listen, until cancelled or refused: a venue may have no events."""
        try:
            await self._events.run()
        except VenueError:
            self._is_over = True

    async def wait(self, unpushed_s: float) -> None:
        """Until the order may have changed.

        Args:
            unpushed_s: for how long at most where the venue does not push.
        """
        with trio.move_on_after(TRADER_ORDER_LOOK_PUSHED_S if self.is_live else unpushed_s):
            await self._heard.wait()
        self._heard = trio.Event()

    def _hear(self, message: OrderStreamMessage) -> None:
        """A change; or the beginning, before which there may have been one."""
        if not isinstance(message, BeatMessage):
            self._heard.set()

    def _lost(self, line: str) -> None:
        self._tell(line)
        self._heard.set()


@asynccontextmanager
async def pushed(
    venue: VenueClient, wanted: EventSelection, tell: Callable[[str], None]
) -> AsyncGenerator[OrderPush]:
    """Listen to one order until the context is left."""
    failure: Exception | None = None
    async with trio.open_nursery() as nursery:
        push = OrderPush(venue, wanted, tell)
        nursery.start_soon(push.run)
        try:
            yield push
        except Exception as error:  # noqa: BLE001 - raised below, not within an exception group
            failure = error
        finally:
            nursery.cancel_scope.cancel()
    if failure is not None:
        raise failure
