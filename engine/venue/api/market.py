"""The Market endpoints: GET /prices, GET /swap and POST /transactions/{chainId}.

Source: document 1, GET /prices, POST /transactions/{chainId}; interop.md 3, GET /swap.
"""

from collections.abc import Callable

from ....codecs.market_messages import (
    ContractParams,
    PricesQuery,
    PricesResponse,
    SwapQuery,
    SwapResponse,
    TransactionBody,
    TransactionEnvelope,
    TransactionQuery,
)
from ....codecs.wire import encode
from ...server.routing import Call, Reply
from ..market.market_desk import MarketDesk
from .resources import chain_in_path
from .routes import Endpoint

_FIRM_COST = 5  # makers and a node are asked


class Market:
    """The endpoints of Market swaps.

    Args:
        partner_of: the default partner of a request; empty for none.
    """

    def __init__(self, desk: MarketDesk, partner_of: Callable[[Call], str]) -> None:
        self._desk = desk
        self._partner_of = partner_of

    def endpoints(self) -> tuple[Endpoint, ...]:
        """The rows of the table."""
        return (
            Endpoint(
                method="GET",
                path="/prices",
                plain=self._prices,
                group="Market",
                summary="The best Market route, sealed for half a minute",
                query=PricesQuery,
                answer=PricesResponse,
            ),
            Endpoint(
                method="GET",
                path="/swap",
                coroutine=self._swap,
                cost=_FIRM_COST,
                group="Market",
                summary="A route and its transaction in one request",
                detail="Makers sign for it. Nothing is checked on the chain, and there is no `gas`.",
                query=SwapQuery,
                answer=SwapResponse,
            ),
            Endpoint(
                method="POST",
                path="/transactions/{chainId}",
                coroutine=self._transaction,
                cost=_FIRM_COST,
                group="Market",
                summary="The transaction of a route of GET /prices or GET /v2/quote, or of signed orders",
                detail="Makers sign for it. `priceRoute` is passed on to the digit, within half a minute. "
                "`orders` in its place are signed already; the Router has them filled in turn.",
                query=TransactionQuery,
                body=TransactionBody,
                answer=TransactionEnvelope | ContractParams,
            ),
        )

    def _prices(self, call: Call) -> Reply:
        partner = self._partner_of(call)
        return Reply(200, encode(self._desk.prices(call.request.query or b"", call.now_ms, partner)))

    async def _swap(self, call: Call) -> Reply:
        partner = self._partner_of(call)
        return Reply(200, encode(await self._desk.swap(call.request.query or b"", call.now_ms, partner)))

    async def _transaction(self, call: Call) -> Reply:
        request = call.request
        chain_id = chain_in_path(call.parameters[0])
        built = await self._desk.transaction(
            chain_id, request.query or b"", request.body, call.now_ms, self._partner_of(call)
        )
        return Reply(200, encode(built))
