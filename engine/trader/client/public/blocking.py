"""The venue for plain code: the methods of `Venue`, each of which waits for its result.

    with BlockingVenue.open("http://127.0.0.1:8080", 31337, rpc="http://127.0.0.1:8545") as venue:
        swap = venue.swap("WETH", "USDC", "1.5", key="env:KEY")

A thread of its own runs trio; any number of threads may use one venue. Functions that are given to a method,
such as `agree`, run in that thread.
"""

from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from functools import partial, wraps
from typing import Concatenate, ParamSpec, Self, TypeVar

import trio

from .....codecs.messages.delta_messages import OrderRecord
from .delta_trading import Order
from .portal import TrioThread
from .venue import Venue

P = ParamSpec("P")
T = TypeVar("T")


def _waits(
    method: Callable[Concatenate[Venue, P], Awaitable[T]],
) -> Callable[Concatenate["BlockingVenue", P], T]:
    """Convert a method of `Venue` to a method of `BlockingVenue`.

    The new method runs the method of `Venue` in the trio thread, and waits for the result.
    """

    @wraps(method)
    def waiting(self: "BlockingVenue", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.thread.call(partial(method, self.venue, *args, **kwargs))

    return waiting


class BlockingVenue:
    """A venue, a chain and its node, for code without an event loop; `open` creates a BlockingVenue.

    Attributes:
        thread: thread that runs trio.
        venue: the venue in that thread.
    """

    def __init__(self, thread: TrioThread, venue: Venue) -> None:
        self.thread = thread
        self.venue = venue

    @classmethod
    @contextmanager
    def open(
        cls,
        url: str,
        chain_id: int,
        *,
        rpc: str | None = None,
        others: Mapping[int, str] | None = None,
        api_key: str | None = None,
        tell: Callable[[str], None] = lambda _: None,
    ) -> Generator[Self]:
        """Context manager that connects as `Venue.open` does."""
        manager = Venue.open(url, chain_id, rpc=rpc, others=others, api_key=api_key, tell=tell)
        with TrioThread() as thread:
            held = thread.hold(manager)
            venue = held.enter().result()
            try:
                yield cls(thread, venue)
            finally:
                held.leave().result()

    token = _waits(Venue.token)
    tokens = _waits(Venue.tokens)
    trades = _waits(Venue.trades)
    statistics = _waits(Venue.statistics)
    quote = _waits(Venue.quote)
    swap = _waits(Venue.swap)
    order = _waits(Venue.order)
    twap = _waits(Venue.twap)
    follow = _waits(Venue.follow)
    state = _waits(Venue.state)
    explain = _waits(Venue.explain)
    cancel = _waits(Venue.cancel)
    withdraw = _waits(Venue.withdraw)
    otc = _waits(Venue.otc)
    follow_otc = _waits(Venue.follow_otc)
    fill = _waits(Venue.fill)
    cancel_otc = _waits(Venue.cancel_otc)

    @contextmanager
    def watch(self, order: Order) -> Generator[Iterator[OrderRecord]]:
        """Context manager of an iterator over a Delta order's records, as `Venue.watch`."""
        held = self.thread.hold(self.venue.watch(order))
        records = held.enter().result()
        try:
            yield self._each(records)
        finally:
            held.leave().result()

    def _each(self, records: trio.MemoryReceiveChannel[OrderRecord]) -> Iterator[OrderRecord]:
        while True:
            try:
                record = self.thread.call(records.receive)
            except (trio.EndOfChannel, trio.ClosedResourceError):
                return
            yield record
