"""GET /prices/history: prices of a pair over the last day, from samples of each token's price in US dollars.

    every PRICE_SAMPLE_S: books -> mid price of each listed token -> its ring      PriceHistory.run
    request: two rings -> ratios -> points of `step` seconds -> JSON               kept until the next sample

All chains are sampled in one pass at a common time. The samples are in memory alone: a restart of the venue
begins a new history. Prices are mid prices of live books (`feeds.books.mid_prices`), for charts: no maker is
bound by them.

A token has one price for all its pairs, so that a pair without a book of its own has a history, too. The
native token has the history of its wrapped form. The first PRICE_HISTORY_TOKENS_MAX tokens of the settings
have a history; for others the answer has no points.

Choice: A point's time is the start of its `step`, a multiple of `step`; the last point is not over yet. A
    step without a price of both tokens has no point.
"""

from collections.abc import Callable, Generator

from msgspec.structs import replace

from ....codecs.messages.resource_messages import (
    HISTORY_STEPS_S,
    PriceHistoryAnswer,
    PriceHistoryQuery,
    PricePoint,
    decode_price_history_query,
)
from ....codecs.messages.wire import encode
from ....config.errors import InvalidInput
from ....config.limits import (
    PRICE_HISTORY_POINTS_DEFAULT,
    PRICE_HISTORY_POINTS_MAX,
    PRICE_HISTORY_SAMPLES_MAX,
    PRICE_HISTORY_TOKENS_MAX,
)
from ....config.timeouts import PRICE_SAMPLE_S
from ....feeds.books.price_ring import PriceRing, pair_prices, price_points
from ....feeds.slices import Slices
from ....feeds.ticks import tick
from ...host.server.routing import HttpCall, Reply
from ..api.routes import Endpoint
from ..api.shared_answers import SharedAnswers
from ..served.served_chain import ServedChains, served_chain_at

_SLOT_S = int(PRICE_SAMPLE_S)
_SLOT_MS = _SLOT_S * 1_000


def step_of(span_s: int, step_s: int | None) -> int:
    """Return the seconds of a point: the query's, or the least that makes few enough points.

    Args:
        span_s: seconds that the answer covers.
        step_s: step of the query; None if it names none.

    Raises:
        InvalidInput: the step is not one of HISTORY_STEPS_S, or makes too many points.
    """
    if step_s is None:
        return next(
            step for step in HISTORY_STEPS_S if points_of(span_s, step) <= PRICE_HISTORY_POINTS_DEFAULT
        )
    if step_s not in HISTORY_STEPS_S:
        raise InvalidInput(
            field="step", expected=f"one of {', '.join(map(str, HISTORY_STEPS_S))}", got=step_s
        )
    if points_of(span_s, step_s) > PRICE_HISTORY_POINTS_MAX:
        raise InvalidInput(
            field="step", expected=f"at most {PRICE_HISTORY_POINTS_MAX} steps in the span", got=step_s
        )
    return step_s


def points_of(span_s: int, step_s: int) -> int:
    """Number of points of an answer: steps in the span, the last of them under way."""
    return -(-span_s // step_s)


class PriceHistory:
    """Samples of the listed tokens' prices, and the endpoint GET /prices/history that shows them.

    Args:
        chains: served chains by chain id.
        wall_ms: returns the time, Unix milliseconds.
    """

    def __init__(self, chains: ServedChains, wall_ms: Callable[[], int]) -> None:
        self._chains = chains
        self._wall_ms = wall_ms
        listed = {
            (chain_id, token.routed): token
            for chain_id, served in chains.items()
            for token in served.tokens.by_address.values()
        }
        self._sampled = list(listed.items())[:PRICE_HISTORY_TOKENS_MAX]
        self._rings: dict[tuple[int, bytes], PriceRing] = {}  # by chain id and routed address
        self._phase_ms: int | None = None
        self._slot = -1  # the last slot of which all tokens have been sampled
        self._slices = Slices()
        self._answers = SharedAnswers(wall_ms)

    def endpoints(self) -> tuple[Endpoint, ...]:
        """Return the HTTP endpoint GET /prices/history, as a row of the route table."""
        return (
            Endpoint(
                method="GET",
                path="/prices/history",
                coroutine=self._show,
                cost=5,
                group="Resources",
                summary="Prices of a pair over the last day: first, highest, lowest and last of each step",
                detail="A price is the number of `quote` tokens for one `base` token, by the mid prices of "
                "the makers' books. Steps without a price are left out; a restart of the venue begins a new "
                "history.",
                query=PriceHistoryQuery,
                answer=PriceHistoryAnswer,
            ),
        )

    async def run(self) -> None:
        """Sample the prices of all listed tokens each PRICE_SAMPLE_S, until cancelled."""
        while True:
            await tick(PRICE_SAMPLE_S)
            await self.sample()

    async def sample(self) -> None:
        """Put the present price of each listed token into its ring."""
        # The clock's ticks have some fixed distance to the starts of slots. By the nearest multiple, a sample
        # that comes a little late or early stays in its own slot, wherever in a slot the ticks are.
        now_ms = self._wall_ms()
        if self._phase_ms is None:
            self._phase_ms = now_ms % _SLOT_MS
        slot = (now_ms - self._phase_ms + _SLOT_MS // 2) // _SLOT_MS
        await self._slices.work(self._samples(slot))
        # Last: a request that comes between two tokens still gets the points up to the slot before, and the
        # rings have a slot more than an answer shows, so that no slot of it has been overwritten.
        self._slot = slot
        self._answers.clear()

    def _samples(self, slot: int) -> Generator[None, None, None]:
        for key, token in self._sampled:
            price = self._chains[key[0]].usd.price(token.routed)
            ring = self._rings.get(key)
            if ring is None and price is not None:
                ring = self._rings[key] = PriceRing(PRICE_HISTORY_SAMPLES_MAX + 1)
            if ring is not None:
                ring.put(slot, None if price is None else price * 10**token.decimals)
            yield

    async def _show(self, call: HttpCall) -> Reply:
        query = decode_price_history_query(call.request.query or b"")
        served = served_chain_at(self._chains, query.chain_id, "chainId")
        base, quote = served.tokens.listed_pair(query.base, query.quote)
        step_s = step_of(query.span, query.step)
        answer = PriceHistoryAnswer(
            chain_id=served.chain_id, base=base.text, quote=quote.text, step=step_s, points=()
        )
        count = points_of(query.span, step_s)

        async def make() -> bytes:
            return encode(await self._slices.work(self._filled(answer, base.routed, quote.routed, count)))

        key = served.chain_id, base.address, quote.address, step_s, count
        return Reply(200, await self._answers.body(key, _SLOT_MS, make))

    def _filled(
        self, answer: PriceHistoryAnswer, base: bytes, quote: bytes, count: int
    ) -> Generator[None, None, PriceHistoryAnswer]:
        """Add the points of a pair's last `count` steps to an answer; yields after each step.

        Args:
            base, quote: routed addresses of the tokens.
        """
        rings = [self._rings.get((answer.chain_id, token)) for token in (base, quote)]
        points: list[PricePoint] = []
        if (base_ring := rings[0]) is not None and (quote_ring := rings[1]) is not None:
            slots = answer.step // _SLOT_S
            first = (self._slot // slots - count + 1) * slots
            # One copy of both rings: a sample that is taken while this generator pauses changes no point.
            prices = pair_prices(base_ring, quote_ring, first, self._slot - first + 1)
            for point in price_points(prices, slots, _SLOT_S):
                if point is not None:
                    points.append(point)
                yield
        return replace(answer, points=tuple(points))
