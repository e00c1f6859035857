"""The tasks that keep one market maker's books on one chain current, under one owner.

    task                     while it is down                       started again
    tokens, pairs, blacklist their last answers hold                always
    prices                   the maker is withheld ("prices")       always; the next answer releases it
    stream                   the maker is withheld ("socket")       always; the next first message releases it
    watchdog                 the maker is withheld ("watchdog")     always; its next check releases it

The tasks handle a maker's faults by themselves. Any other error is logged with its traceback, and the task is
started again after a doubling, jittered pause. A task's failure takes down no other task and no other maker:
a feed ends only when it is cancelled.

The watchdog checks the age of books: stale books leave routing even while the socket is up. It looks less
often while nothing of a polled maker is about to end. A maker need not
repeat unchanged books over its socket: with a socket, /prices is polled three times in `stale_s`, which
confirms unchanged books.

Source: ARCHITECTURE.md, "Feeds".
Choice: A disconnect of over 1 s takes the maker's books out of use until a complete first message arrives;
    /prices does not revive them. While connected, each book lives by its age.
Choice: Polls of /prices go on beside the socket, three times in `stale_s`: they confirm quiet books, and a
    failure is the off switch. Polls of /tokens, /pairs and /blacklist bring deletions.
"""

from collections.abc import Awaitable, Callable, Mapping
from itertools import islice
from random import Random
from ssl import SSLContext

import structlog
import trio
from msgspec import Struct

from ..config.sections.venue import VenueMakerChain
from ..config.timeouts import BOOK_LOOK_S, BOOK_REST_S, FEED_PAUSE_S_MAX, FEED_REFUSALS_EVERY_S
from ..crypto.hmac_auth import RequestSigner
from .backoff import pause_s
from .blacklist import MakerBlacklist
from .books.pair_index import PairIndex
from .maker_cache import MakerCache
from .poll import Poll, PollStatistics, Resource
from .remarks import Remarks
from .slices import Slices
from .standing import CacheStatistics
from .stream import Stream, StreamStatistics
from .ticks import tick
from .transport.signed_client import SignedClient
from .transport.streams import Dial, dial

_log = structlog.get_logger("cambist.feeds")

WATCHDOG = "watchdog"
_REFUSALS_TOLD = 5  # refused pairs with their reasons in one line of the log
_CONFIRMED = 3  # polls of /prices within `stale_s`, beside a socket
_WITHHOLDS = {"prices": "prices", "stream": "socket", WATCHDOG: WATCHDOG}


class FeedStatistics(Struct, frozen=True):
    """Counters of a maker's feed at one moment.

    Attributes:
        polls: resource, such as `prices` -> counters of the polls of this resource.
        stream: counters of the WebSocket; None if none is configured.
        restarts: task of the feed -> number of unexpected failures, each followed by a restart.
        remarks_dropped: number of the maker's `message` texts not logged, as they came faster than the log's
            limit.
    """

    cache: CacheStatistics
    polls: Mapping[str, PollStatistics]
    stream: StreamStatistics | None
    restarts: Mapping[str, int]
    remarks_dropped: int


class MakerFeed:
    """The polls, WebSocket and watchdog that keep one maker's books on one chain current.

    Args:
        maker: name of the maker.
        settings: URLs and polling intervals of the maker on the chain.
        signer: signs the WebSocket's handshake; None sends it unsigned.
        index: the chain's index of live books.
        decimals: address of each token that the operator lists -> its decimals.
        blacklist_ms: milliseconds from an address's last blacklisting to its expiry.
        tls: context for wss.
        wall_ms: clock in Unix milliseconds.
        random: source of the jitter, and of the polls' first pauses.
        client: client of the polls, for the maker's endpoints; `run` opens it.
        dial: function that opens the WebSocket's connection.

    Attributes:
        cache: the maker's books and blacklist.
    """

    def __init__(
        self,
        maker: str,
        chain_id: int,
        settings: VenueMakerChain,
        *,
        signer: RequestSigner | None,
        index: PairIndex,
        decimals: Mapping[bytes, int],
        blacklist_ms: int,
        client: SignedClient,
        tls: SSLContext,
        wall_ms: Callable[[], int],
        random: Random,
        dial: Dial = dial,
    ) -> None:
        self.maker = maker
        self.chain_id = chain_id
        self.cache = MakerCache(
            maker,
            index,
            decimals,
            stale_ms=round(settings.stale_s * 1_000),
            blacklist=MakerBlacklist(blacklist_ms),
        )
        self._client = client
        self._wall_ms = wall_ms
        self._random = random
        self._log = _log.bind(maker=maker, chain=chain_id)
        self._remarks = Remarks(lambda text: self._log.info("maker remarks", remark=text), wall_ms)
        # One for all: its lock lets answers and messages change the cache only one after the other.
        slices = Slices()
        self._stream: Stream | None = None
        every_s: dict[Resource, float] = {
            "prices": settings.stale_s / _CONFIRMED if settings.ws_url else settings.prices_every_s,
            "tokens": settings.tokens_every_s,
            "pairs": settings.pairs_every_s,
            "blacklist": settings.blacklist_every_s,
        }
        if settings.ws_url:
            self._stream = Stream(
                settings.ws_url,
                signer=signer,
                tls=tls,
                dial=dial,
                cache=self.cache,
                slices=slices,
                remarks=self._remarks,
                log=self._log,
                wall_ms=wall_ms,
                random=random,
            )
        self._polls = {
            resource: Poll(
                resource,
                seconds,
                client=client,
                cache=self.cache,
                slices=slices,
                remarks=self._remarks,
                log=self._log,
                wall_ms=wall_ms,
                random=random,
            )
            for resource, seconds in every_s.items()
        }
        self._restarts: dict[str, int] = {}
        self._refusals_ms = 0

    def statistics(self) -> FeedStatistics:
        """Counters of the feed's polls, WebSocket and restarts, and the state of the maker's pairs."""
        return FeedStatistics(
            cache=self.cache.statistics(),
            polls={resource: poll.statistics() for resource, poll in self._polls.items()},
            stream=self._stream.statistics() if self._stream else None,
            restarts=dict(self._restarts),
            remarks_dropped=self._remarks.dropped,
        )

    async def run(self) -> None:
        """Keep the maker's books current until cancelled; then take them out of the index."""
        tasks: dict[str, Callable[[], Awaitable[None]]] = {
            resource: poll.follow for resource, poll in self._polls.items()
        }
        tasks[WATCHDOG] = self._watch
        if self._stream is not None:
            tasks["stream"] = self._stream.follow
        try:
            async with self._client, trio.open_nursery() as nursery:
                for name, follow in tasks.items():
                    nursery.start_soon(self._keep, name, follow)
        finally:
            self.cache.withhold("ended")

    async def _keep(self, name: str, follow: Callable[[], Awaitable[None]]) -> None:
        """Run one task of the feed, and restart it after a pause whenever it fails unexpectedly."""
        in_a_row = 0
        while True:
            began = trio.current_time()
            try:
                await follow()
            except Exception:  # noqa: BLE001  whatever the error, the other tasks go on
                self._log.exception("feed task failed", task=name)
            if name in _WITHHOLDS:
                self.cache.withhold(_WITHHOLDS[name])
            self._restarts[name] = self._restarts.get(name, 0) + 1
            in_a_row = 1 if trio.current_time() - began >= FEED_PAUSE_S_MAX else in_a_row + 1
            await trio.sleep(pause_s(in_a_row, self._random))

    async def _watch(self) -> None:
        """Run the watchdog: take books out of routing that are stale or whose WebSocket is down too long."""
        while True:
            self.cache.expire(self._wall_ms())
            if self._stream is not None:
                self._stream.heed_grace()
            self.cache.release(WATCHDOG)
            self._tell_refusals(self._wall_ms())
            # A rest or bound that comes while the task sleeps longer may end later by as much.
            due_ms = None if self._stream is not None else self.cache.due_ms()
            is_quiet = due_ms is not None and due_ms - self._wall_ms() > 1_000 * (BOOK_REST_S + BOOK_LOOK_S)
            await tick(BOOK_REST_S if is_quiet else BOOK_LOOK_S)

    def _tell_refusals(self, now_ms: int) -> None:
        """Log why pairs were refused since the last such line, at most once in FEED_REFUSALS_EVERY_S."""
        if now_ms < self._refusals_ms or not (refused := self.cache.take_refusals()):
            return
        self._refusals_ms = now_ms + round(FEED_REFUSALS_EVERY_S * 1_000)
        told = dict(islice(refused.items(), _REFUSALS_TOLD))
        self._log.warning("maker's pairs are refused", refused=told, more=len(refused) - len(told))
