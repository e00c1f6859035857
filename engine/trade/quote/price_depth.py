"""GET /prices/depth: what a few sizes of a token cost on both sides of a pair, by the makers' live books.

    size 1, 5, 20, 50, 100 times the unit -> the best route that sells it, the best route that buys it

The unit is the power of ten of the base token that is nearest to DEPTH_UNIT_USD US dollars. A side ends at
the first size that has no route. Amounts are before gas and without a partner's fee; they bind no maker.

Choice: An answer is kept for DEPTH_LIFE_S for all callers: a page asks for it again and again, and ten routes
    for each caller would cost more than the prices are worth.
"""

from collections.abc import Callable, Generator
from decimal import Decimal

from ....codecs.messages.resource_messages import (
    DepthLevel,
    PriceDepthAnswer,
    PriceDepthQuery,
    decode_price_depth_query,
)
from ....codecs.messages.vocabulary import Side
from ....codecs.messages.wire import encode
from ....config.limits import DEPTH_UNIT_USD
from ....config.timeouts import DEPTH_LIFE_S
from ....feeds.slices import Slices
from ...host.server.routing import HttpCall, Reply
from ..api.routes import Endpoint
from ..api.shared_answers import SharedAnswers
from ..routing.search.plan import SwapRequest
from ..routing.tokens import ListedToken
from ..served.served_chain import ServedChain, ServedChains, served_chain_at

SIZES = (1, 5, 20, 50, 100)
_COST = 2 * len(SIZES)  # as that many quotes: a route for each size on each side


def unit_of(worth_usd: Decimal | None, decimals: int) -> int:
    """Return the least size, raw units: the power of ten of the token nearest to DEPTH_UNIT_USD US dollars.

    Args:
        worth_usd: worth of one whole token; None or 0 if unknown, which counts as DEPTH_UNIT_USD.
        decimals: decimals of the token; the least size is at least one raw unit.
    """
    power = round((DEPTH_UNIT_USD / worth_usd).log10()) if worth_usd else 0
    unit: int = 10 ** max(0, decimals + power)
    return unit


class PriceDepth:
    """The endpoint GET /prices/depth.

    Args:
        chains: served chains by chain id.
        wall_ms: returns the time, Unix milliseconds.
    """

    def __init__(self, chains: ServedChains, wall_ms: Callable[[], int]) -> None:
        self._chains = chains
        self._slices = Slices()
        self._answers = SharedAnswers(wall_ms)

    def endpoints(self) -> tuple[Endpoint, ...]:
        """Return the HTTP endpoint GET /prices/depth, as a row of the route table."""
        return (
            Endpoint(
                method="GET",
                path="/prices/depth",
                coroutine=self._show,
                cost=_COST,
                group="Resources",
                summary="What five sizes of a token cost on both sides of a pair",
                detail="`bids` sell the size, `asks` buy it: amounts of `quote` before gas, by the makers' "
                "live books. A side ends at the first size that the books do not hold.",
                query=PriceDepthQuery,
                answer=PriceDepthAnswer,
            ),
        )

    async def _show(self, call: HttpCall) -> Reply:
        query = decode_price_depth_query(call.request.query or b"")
        served = served_chain_at(self._chains, query.chain_id, "chainId")
        base, quote = served.tokens.listed_pair(query.base, query.quote)

        async def make() -> bytes:
            return encode(await self._slices.work(_depth(served, base, quote)))

        key = served.chain_id, base.address, quote.address
        return Reply(200, await self._answers.body(key, int(DEPTH_LIFE_S * 1_000), make))


def _depth(
    served: ServedChain, base: ListedToken, quote: ListedToken
) -> Generator[None, None, PriceDepthAnswer]:
    """Find the routes of both sides; yields after each route."""
    unit = unit_of(served.usd.value(base.routed, 10**base.decimals), base.decimals)
    sides: list[tuple[DepthLevel, ...]] = []
    for src, dest, side in ((base, quote, Side.SELL), (quote, base, Side.BUY)):
        levels: list[DepthLevel] = []
        for times in SIZES:
            plan = served.pathfinder.find(SwapRequest(src.routed, dest.routed, unit * times, side))
            yield
            if plan is None:
                break
            amount = plan.dest_amount if side is Side.SELL else plan.src_amount
            levels.append((str(unit * times), str(amount)))
        sides.append(tuple(levels))
    return PriceDepthAnswer(
        chain_id=served.chain_id,
        base=base.text,
        quote=quote.text,
        unit=str(unit),
        bids=sides[0],
        asks=sides[1],
    )
