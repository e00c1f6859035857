"""The Market endpoints: GET /prices, GET /swap and POST /transactions/{chainId}.

Source: spec 1.13, 1.14; interop.md 3, GET /swap.
"""

from collections.abc import Callable

from ....codecs.messages.market_messages import (
    ContractParams,
    PricesQuery,
    PricesResponse,
    SwapQuery,
    SwapResponse,
    TransactionBody,
    TransactionEnvelope,
    TransactionQuery,
)
from ....codecs.messages.wire import encode
from ...host.admission.admission import Admission
from ...host.server.routing import HttpCall, Reply
from ..api.chain_parameter import chain_in_path
from ..api.routes import Endpoint
from .market_desk import MarketDesk
from .unfilled import Asker

_FIRM_COST = 5  # the request is passed on to makers and a node


class MarketEndpoints:
    """The HTTP endpoints of Market swaps: GET /prices, GET /swap and POST /transactions/{chainId}.

    Args:
        asker_of: function that returns the caller of a request.
        admission: the default partner and the budget of wrong signatures of a request's caller.
    """

    def __init__(
        self,
        desk: MarketDesk,
        asker_of: Callable[[HttpCall], Asker],
        admission: Admission,
    ) -> None:
        self._desk = desk
        self._asker_of = asker_of
        self._partner_of = admission.partner
        self._signatures_of = admission.signatures

    def endpoints(self) -> tuple[Endpoint, ...]:
        """Return the HTTP route table's rows for /prices, /swap and /transactions/{chainId}."""
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
                detail="Makers sign firm quotes. Without an API key the venue checks the user's funds on the "
                "chain; with a key it checks nothing there. The answer has no `gas`.",
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
                detail="Makers sign firm quotes. Send `priceRoute` unchanged, to the digit, within half a "
                "minute. `orders` in its place are signed orders; the Router fills them in turn.",
                query=TransactionQuery,
                body=TransactionBody,
                answer=TransactionEnvelope | ContractParams,
            ),
        )

    def _prices(self, call: HttpCall) -> Reply:
        partner = self._partner_of(call)
        return Reply(200, encode(self._desk.prices(call.request.query or b"", call.now_ms, partner)))

    async def _swap(self, call: HttpCall) -> Reply:
        partner = self._partner_of(call)
        query, asker, signatures = call.request.query or b"", self._asker_of(call), self._signatures_of(call)
        return Reply(200, encode(await self._desk.swap(query, call.now_ms, asker, signatures, partner)))

    async def _transaction(self, call: HttpCall) -> Reply:
        request = call.request
        chain_id = chain_in_path(call.parameters[0])
        built = await self._desk.transaction(
            chain_id,
            request.query or b"",
            request.body,
            call.now_ms,
            self._asker_of(call),
            self._signatures_of(call),
            self._partner_of(call),
        )
        return Reply(200, encode(built))
