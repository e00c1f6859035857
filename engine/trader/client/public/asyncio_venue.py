"""The venue for programs on asyncio: the methods of `Venue` as coroutine functions of asyncio.

    async with AsyncioVenue.open("http://127.0.0.1:8080", 31337, rpc="http://127.0.0.1:8545") as venue:
        swap = await venue.swap("WETH", "USDC", "1.5", key="env:KEY")

A thread of its own runs trio. Cancelling a task of asyncio cancels the call in that thread. Functions that
are given to a method, such as `agree`, run in that thread.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import trio

from .....codecs.messages.delta_messages import OrderRecord
from .delta_trading import Order
from .portal import TrioThread
from .venue import Venue

P = ParamSpec("P")
T = TypeVar("T")


def _awaits(
    method: Callable[Concatenate[Venue, P], Awaitable[T]],
) -> Callable[Concatenate["AsyncioVenue", P], Coroutine[Any, Any, T]]:
    """Convert a method of `Venue` to a coroutine method of `AsyncioVenue`, for asyncio.

    The new method runs the method of `Venue` in the trio thread, and returns the result.
    """

    @wraps(method)
    async def awaiting(self: "AsyncioVenue", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.wrap_future(self.thread.start(partial(method, self.venue, *args, **kwargs)))

    return awaiting


class AsyncioVenue:
    """A venue, a chain and its node, for programs on asyncio; `open` creates an AsyncioVenue.

    Attributes:
        thread: thread that runs trio.
        venue: the venue in that thread.
    """

    def __init__(self, thread: TrioThread, venue: Venue) -> None:
        self.thread = thread
        self.venue = venue

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        url: str,
        chain_id: int,
        *,
        rpc: str | None = None,
        others: Mapping[int, str] | None = None,
        api_key: str | None = None,
        tell: Callable[[str], None] = lambda _: None,
    ) -> AsyncGenerator[Self]:
        """Context manager that connects as `Venue.open` does."""
        manager = Venue.open(url, chain_id, rpc=rpc, others=others, api_key=api_key, tell=tell)
        with TrioThread() as thread:
            held = thread.hold(manager)
            venue = await asyncio.wrap_future(held.enter())
            try:
                yield cls(thread, venue)
            finally:
                await asyncio.wrap_future(held.leave())

    token = _awaits(Venue.token)
    tokens = _awaits(Venue.tokens)
    trades = _awaits(Venue.trades)
    statistics = _awaits(Venue.statistics)
    quote = _awaits(Venue.quote)
    swap = _awaits(Venue.swap)
    order = _awaits(Venue.order)
    twap = _awaits(Venue.twap)
    follow = _awaits(Venue.follow)
    state = _awaits(Venue.state)
    explain = _awaits(Venue.explain)
    cancel = _awaits(Venue.cancel)
    withdraw = _awaits(Venue.withdraw)
    otc = _awaits(Venue.otc)
    follow_otc = _awaits(Venue.follow_otc)
    fill = _awaits(Venue.fill)
    cancel_otc = _awaits(Venue.cancel_otc)

    @asynccontextmanager
    async def watch(self, order: Order) -> AsyncGenerator[AsyncIterator[OrderRecord]]:
        """Context manager of an iterator over a Delta order's records, as `Venue.watch`."""
        held = self.thread.hold(self.venue.watch(order))
        records = await asyncio.wrap_future(held.enter())
        try:
            yield self._each(records)
        finally:
            await asyncio.wrap_future(held.leave())

    async def _each(self, records: trio.MemoryReceiveChannel[OrderRecord]) -> AsyncGenerator[OrderRecord]:
        while True:
            try:
                record = await asyncio.wrap_future(self.thread.start(records.receive))
            except (trio.EndOfChannel, trio.ClosedResourceError):
                return
            yield record
