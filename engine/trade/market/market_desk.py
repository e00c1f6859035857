"""Market swaps of a venue on every served chain: prices, and transactions built from priced routes.

Each method takes the raw query or body of an HTTP request and returns the answer; the endpoints encode it.

Source: spec 1.12, 1.13, 1.14; interop.md 3, GET /swap.
Choice: A request without a partner has its API key's default partner; a transaction has its route's partner,
    since the fee was quoted.
Choice: GET /swap makes no checks, as with `ignoreChecks=true`: the user has not approved yet.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from ....codecs.messages.market_messages import (
    ContractParams,
    PriceRoute,
    PricesResponse,
    SwapQuery,
    SwapResponse,
    TransactionBody,
    TransactionEnvelope,
    TransactionQuery,
    decode_prices_query,
    decode_swap_query,
    decode_transaction_body,
    decode_transaction_query,
)
from ....codecs.messages.vocabulary import MarketVersion, Side
from ....codecs.messages.wire import encode
from ....config.errors import InvalidInput, InvalidPriceRoute, MissingSlippage
from ....config.sections.partners import RegisteredPartner, Tier
from ....crypto.route_seal import RouteSeal
from ...host.admission.ledger import Ledger
from ...host.admission.signatures import SignatureBudget
from ..quote.ask import FeeRules, ask_of_prices, with_partner
from ..quote.market_price import best_route
from ..quote.price_route import opened, sealed, unpriced
from ..served.asking import Permit2s
from ..served.served_chain import market_chain_at
from .funds import SwapFunds
from .transaction import Leave, order_transaction, transaction
from .unfilled import Asker, UnfilledSwaps

if TYPE_CHECKING:
    from ..served.served_chain import ServedChain


class MarketDesk:
    """Answers requests for Market swaps: quotes, and the Router's transactions for them.

    Args:
        chains: served chains by chain id.
        seal: signs issued routes and checks those that clients send back.
        partners, tiers: configured partners and fee tiers.
        ledger: ledger of the places of unfilled swaps.
        user_places: most unfilled swaps of one user on a chain. A swap counts towards this limit from the
            request to makers until the makers' signed quotes for the swap are filled or expired.

    Attributes:
        unfilled: chain id -> counter of the chain's unfilled swaps.
    """

    def __init__(
        self,
        chains: "Mapping[int, ServedChain]",
        seal: RouteSeal,
        partners: Mapping[str, RegisteredPartner],
        tiers: Mapping[str, Tier],
        *,
        ledger: Ledger,
        user_places: int,
    ) -> None:
        self._chains = chains
        permit2s = Permit2s()
        self.unfilled = {
            chain_id: UnfilledSwaps(ledger, chain_id, served.desk.stock, user_places)
            for chain_id, served in chains.items()
        }
        self._funds = {
            chain_id: SwapFunds(served.chain, served.router, permit2s) for chain_id, served in chains.items()
        }
        self._seal = seal
        self._fees = FeeRules(partners, tiers)

    def prices(self, raw_query: bytes, now_ms: int, partner: str = "") -> PricesResponse:
        """Answer GET /prices with the best route for a swap.

        Args:
            partner: name of the default partner, for a request that names none.

        Raises:
            RequestError: the request is wrong or no price can be given; the subclass has the error code.
        """
        query = with_partner(decode_prices_query(raw_query), partner)
        served = market_chain_at(self._chains, query.chain, "network")
        ask = ask_of_prices(served, query, self._fees, now_ms)
        return PricesResponse(sealed(self._seal, best_route(served, ask), now_ms))

    async def swap(
        self, raw_query: bytes, now_ms: int, asker: Asker, signatures: SignatureBudget, partner: str = ""
    ) -> SwapResponse:
        """Answer GET /swap with the best route and the Router's transaction for it.

        Args:
            asker: caller of the request, whose unfilled swaps are limited.
            signatures: number of wrong signatures that the caller may still send.
            partner: name of the default partner, for a request that names none.

        Raises:
            RequestError: the request is wrong, no price can be given, or see `transaction.transaction`.
        """
        query = with_partner(decode_swap_query(raw_query), partner)
        served = market_chain_at(self._chains, query.chain, "network")
        _check_version(query.version, "version")
        if query.slippage is None:
            raise MissingSlippage(field="slippage", expected="basis points")
        ask = ask_of_prices(served, query, self._fees, now_ms, tx_origin=query.tx_origin)
        priced = best_route(served, ask)
        route = sealed(self._seal, priced, now_ms)
        built = await transaction(
            served,
            unpriced(priced),
            _body_of(query, route),
            # The user has not approved yet; `transaction` counts what the user has, and lets the rest pass.
            TransactionQuery(ignore_checks=True),
            self._fees,
            now_ms,
            self._leave(served, asker, signatures),
        )
        assert isinstance(built, TransactionEnvelope)  # noqa: S101 - not onlyParams
        return SwapResponse(route, built)

    async def transaction(
        self,
        chain_id: int,
        raw_query: bytes,
        body: bytes,
        now_ms: int,
        asker: Asker,
        signatures: SignatureBudget,
        partner: str = "",
    ) -> TransactionEnvelope | ContractParams:
        """Answer POST /transactions/{chainId} with the Router's transaction for a route or signed orders.

        Args:
            asker: caller of the request, whose unfilled swaps are limited.
            signatures: number of wrong signatures that the caller may still send.
            partner: name of the default partner, for a request that has orders and names no partner.

        Raises:
            RequestError: the request or its route is wrong, or see `transaction.transaction` and
                `transaction.order_transaction`.
        """
        served = market_chain_at(self._chains, chain_id, "chainId")
        query = decode_transaction_query(raw_query)
        request = decode_transaction_body(body)
        if (route := request.route) is None:
            # Here alone: a route keeps the partner with whose fee it was quoted.
            request, funds = with_partner(request, partner), self._funds[chain_id]
            with signatures:
                return await order_transaction(served, request, query, self._fees, now_ms, funds, signatures)
        found = opened(self._seal, route, now_ms)
        if found.route.network != chain_id:
            raise InvalidPriceRoute(field="chainId", expected=f"{found.route.network}", got=chain_id)
        _check_version(found.route.version, "priceRoute.version")
        return await transaction(
            served, found, request, query, self._fees, now_ms, self._leave(served, asker, signatures)
        )

    def _leave(self, served: "ServedChain", asker: Asker, signatures: SignatureBudget) -> Leave:
        return Leave(asker, self.unfilled[served.chain_id], self._funds[served.chain_id], signatures)


def _check_version(version: str, field: str) -> None:
    """Refuse a `version` other than the deployed Router contract's (choices.md#quotes-and-routes)."""
    if version != MarketVersion.V6_2:
        raise InvalidInput(
            field=field, expected=f"{MarketVersion.V6_2}: no older router is deployed", got=str(version)
        )


def _body_of(query: SwapQuery, route: PriceRoute) -> TransactionBody:
    """Convert a GET /swap query and its route to the body of the equivalent POST /transactions request."""
    members: dict[str, Any] = {
        name: getattr(query, name)
        for name in TransactionBody.__struct_fields__
        if name in SwapQuery.__struct_fields__ and name not in _OF_THE_ROUTE
    }
    if query.partner_fee_bps is not None:
        members["partner_fee_bps"] = str(query.partner_fee_bps)
    members["src_amount" if query.side is Side.SELL else "dest_amount"] = query.amount
    return TransactionBody(price_route=Raw(encode(route)), **members)


_OF_THE_ROUTE = frozenset({"partner", "partner_fee_bps"})
"""Query members not copied from GET /swap to a transaction's body: the partner is in the route, and the body
has the fee as text.
"""
