"""Poll one of a market maker's four HTTP resources, for ever.

    asking --2xx and the documented body--> applied --every_s--> asking
       \\--anything else--> failed --every_s; FEED_REST_S from the fifth in a row on--> asking

A failure of /prices withholds the maker at once, the next success releases it: this is the maker's off
switch. A failure of another resource changes nothing: its last answer holds.

Source: spec 3.7, 3.10, 3.1.18; interop.md 4.
Choice: An answer to a poll that is not 2xx, redirects included, or not the documented body is a failure.
"""

from collections.abc import Callable, Generator
from random import Random
from typing import Literal

import structlog
import trio
from msgspec import Struct

from ..codecs.messages.maker_messages import decode_blacklist, decode_pairs, decode_prices, decode_tokens
from ..config.error_text import excerpt
from ..config.errors import InvalidInput, MakerError
from ..config.timeouts import FEED_REQUEST_S, FEED_REST_AFTER, FEED_REST_S
from .maker_cache import MakerCache
from .remarks import Remarks
from .slices import Slices
from .ticks import nearest_tick
from .transport.signed_client import SignedClient

Resource = Literal["tokens", "pairs", "prices", "blacklist"]

_TICKS = 4  # common times of polls in each period: an idle venue wakes for several polls at once


class PollStatistics(Struct, frozen=True):
    """Counters of the polls of one resource of a maker, at one moment.

    Attributes:
        answers: number of applied answers.
        failures: number of failed polls since the start.
        in_a_row: number of failed polls since the last applied answer.
        said: text of the last failure; empty before the first.
        answered_ms: Unix milliseconds of the last applied answer; 0 before the first.
    """

    answers: int
    failures: int
    in_a_row: int
    said: str
    answered_ms: int


class Poll:
    """Polls one resource of one maker on one chain.

    Args:
        resource: `tokens`, `pairs`, `prices` or `blacklist`.
        every_s: seconds between two polls.
        client: client for the maker's endpoints, open while the poll follows.
    """

    def __init__(
        self,
        resource: Resource,
        every_s: float,
        *,
        client: SignedClient,
        cache: MakerCache,
        slices: Slices,
        remarks: Remarks,
        log: structlog.typing.FilteringBoundLogger,
        wall_ms: Callable[[], int],
        random: Random,
    ) -> None:
        self.resource = resource
        self._every_s = every_s
        self._client = client
        self._cache = cache
        self._slices = slices
        self._remarks = remarks
        self._log = log
        self._wall_ms = wall_ms
        self._random = random
        self._answers = self._failures = self._in_a_row = self._answered_ms = 0
        self._said = ""

    def statistics(self) -> PollStatistics:
        """Counters of answers and failures of this poll since the start, and the last failure."""
        return PollStatistics(self._answers, self._failures, self._in_a_row, self._said, self._answered_ms)

    async def follow(self) -> None:
        """Poll the maker's resource and apply its answers, for ever.

        The first pause is of one to four quarters of the period, by chance: polls that begin together spread
        over the common times. Each further pause is the period, within an eighth of it.
        """
        part = self._random.randrange(1, _TICKS + 1) / _TICKS
        while True:
            try:
                await self._poll()
            except (MakerError, InvalidInput) as error:
                self._fail(error.detail)
            rests = self._in_a_row >= FEED_REST_AFTER
            pause_s = part * (max(self._every_s, FEED_REST_S) if rests else self._every_s)
            part = 1.0
            await trio.sleep_until(nearest_tick(trio.current_time() + pause_s, self._every_s / _TICKS))

    async def _poll(self) -> None:
        """Request the resource once and apply the answer; raise MakerError or InvalidInput on failure."""
        asked_ms = self._wall_ms()
        raw = await self._ask()
        # `_apply` is a generator, which starts only once `work` holds its lock. The cache then compares
        # `asked_ms` with the socket's first message, so that a message applied meanwhile prevails.
        await self._slices.work(self._apply(raw, asked_ms))
        if self._in_a_row:
            self._log.info("poll answered again", resource=self.resource, failures=self._in_a_row)
        self._answers += 1
        self._in_a_row = 0
        self._answered_ms = self._wall_ms()
        if self.resource == "prices":
            self._cache.release("prices")

    async def _ask(self) -> bytes:
        answer = await self._client.get(f"/{self.resource}", FEED_REQUEST_S)
        if not 200 <= answer.status < 300:
            raise MakerError(f"answered {answer.status}: {excerpt(answer.body)}")
        return answer.body

    def _apply(self, raw: bytes, asked_ms: int) -> Generator[None, None, None]:
        """Decode and apply an answer, yielding after each entry; raise InvalidInput for a malformed body."""
        cache, now_ms = self._cache, self._wall_ms()
        match self.resource:
            case "tokens":
                tokens = yield from decode_tokens.in_steps(raw)
                self._remarks.take(tokens.body.message)
                yield from cache.apply_tokens(tokens, asked_ms, now_ms)
            case "pairs":
                pairs = yield from decode_pairs.in_steps(raw)
                self._remarks.take(pairs.body.message)
                yield from cache.apply_pairs(pairs, asked_ms, now_ms)
            case "prices":
                prices = yield from decode_prices.in_steps(raw)
                self._remarks.take(prices.body.message)
                yield from cache.apply_prices(prices, asked_ms, now_ms)
            case "blacklist":
                blacklist = yield from decode_blacklist.in_steps(raw)
                self._remarks.take(blacklist.body.message)
                yield from cache.apply_blacklist(blacklist, asked_ms, now_ms)

    def _fail(self, reason: str) -> None:
        if self.resource == "prices":
            self._cache.withhold("prices")
        self._failures += 1
        self._in_a_row += 1
        self._said = reason
        if self._in_a_row == 1:
            self._log.warning("poll failed", resource=self.resource, reason=reason)
        elif self._in_a_row == FEED_REST_AFTER:
            self._log.warning("polls rest", resource=self.resource, reason=reason, every_s=FEED_REST_S)
