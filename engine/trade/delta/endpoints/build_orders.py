"""The endpoint POST /v2/delta/orders/build, which builds Delta orders for their owners to sign.

Source: spec 1.16.
Choice: A build needs a route that this venue, or another process on its store, has issued, unchanged to the
    digit; the venue does not analyse the faults of other routes.
Choice: The side of a build is its quote's. A route quoted for both sides with equal amounts is a sale without
    `side`.
"""

from collections.abc import Callable

from .....codecs.amounts import parse_positive_amount
from .....codecs.canonical_json import canonical
from .....codecs.messages.delta_messages import (
    BuildBody,
    BuildResponse,
    Route,
    decode_build_body,
    decode_route,
)
from .....codecs.messages.vocabulary import BuildOrderType, Side
from .....codecs.messages.wire import encode
from .....config.errors import InvalidInput, RouteValidationFailed
from .....config.limits import NATIVE_PLACEHOLDER
from .....config.settings import Settings
from .....config.timeouts import RECENT_BLOCK_S
from .....crypto.addresses import parse_address, to_checksum
from ....chain.delegation import is_delegation
from ....host.server.routing import HttpCall, Reply
from ...api.routes import Endpoint
from ...quote.ask import FeeRules, with_partner
from ...quote.issued import IssuedRoutes, quoted_as
from ...served.asking import in_time
from ...served.served_chain import ServedChain, ServedChains, delta_chain_at
from ..building.build import BuildTerms, built, check_quoted_side, check_side, delta_domains, wanted_side
from ..building.order_kinds import handlers_of, shares_call, shares_to_sign, strategy_in
from ..orders.vault_checks import asset_call, check_asset, check_strategy, vaults_of


class DeltaOrders:
    """HTTP endpoint POST /v2/delta/orders/build, which builds a Delta order for its owner to sign.

    Args:
        random32: source of 32 random bytes.
        partner_of: returns the default partner of a request's API key; empty if the key has none.
    """

    def __init__(
        self,
        chains: ServedChains,
        settings: Settings,
        issued: IssuedRoutes,
        *,
        random32: Callable[[], bytes],
        partner_of: Callable[[HttpCall], str],
    ) -> None:
        self._chains = chains
        self._fees = FeeRules(settings.partners, settings.tiers)
        self._domains = delta_domains(chains)
        self._issued = issued
        self._random32 = random32
        self._partner_of = partner_of

    def endpoints(self) -> tuple[Endpoint, ...]:
        """Return the HTTP endpoint POST /v2/delta/orders/build, as a row of the route table."""
        return (
            Endpoint(
                method="POST",
                path="/v2/delta/orders/build",
                coroutine=self._build,
                group="Delta orders",
                summary="The typed data of an order on a quoted route, and its hash",
                detail="`route` is passed on verbatim. Sign `toSign`, submit `toSign.value`.",
                body=BuildBody,
                answer=BuildResponse,
            ),
        )

    async def build(self, body: BuildBody, now_ms: int) -> BuildResponse:
        """Build the EIP-712 typed data of a Delta order, which its owner signs, and the order's hash.

        Args:
            now_ms: the time, Unix milliseconds.

        Raises:
            RequestError: the request is refused; see spec 1.25.
            ServiceUnavailable: the vault of a ProductiveOrder cannot be read.
            StoreUnavailable: whether the route was issued is unknown, since the store does not answer.
        """
        route, side = await self._issued_route(body, now_ms)
        src, dest = route.origin.input.token, route.origin.output.token
        served = delta_chain_at(self._chains, src.chain_id, "route.origin.input.token.chainId")
        there = self._chains.get(route.destination.input.token.chain_id)
        # Read before `built`, which is pure. `_shares` makes the checks of the body that the read needs.
        gets_wrapped = there is not None and await in_time(_gets_wrapped(there, body, route))
        shares = 0
        if body.order_type is BuildOrderType.PRODUCTIVE_ORDER:
            shares = await in_time(_shares(served, body, route, side))
        terms = BuildTerms(
            domain=self._domains[served.chain_id],
            src=served.tokens.find(src.address, "srcToken", None),
            dest=served.tokens.find(dest.address, "destToken", None),
            quoted=side,
            fees=self._fees,
            now_s=now_ms // 1_000,
            nonce=int.from_bytes(self._random32(), "big"),
            shares=shares,
            handlers=handlers_of(served.settings),
            arrivals=b"" if there is None else there.arrivals,
            salt=self._random32(),
            gets_wrapped=gets_wrapped,
        )
        return built(body, route, terms)

    async def _build(self, call: HttpCall) -> Reply:
        body = with_partner(decode_build_body(call.request.body), self._partner_of(call))
        return Reply(200, encode(await self.build(body, call.now_ms)))

    async def _issued_route(self, body: BuildBody, now_ms: int) -> tuple[Route, Side]:
        """Return the issued route in a request to build an order, and the side for which it was quoted.

        Raises:
            RouteValidationFailed: the route differs from every issued route, or has expired.
        """
        try:
            given = canonical(bytes(body.route))
        except InvalidInput as error:
            raise RouteValidationFailed(error.detail, field="route") from None
        likely = wanted_side(body)
        sides = sorted(Side, key=lambda side: side is not likely)
        at = await self._issued.first_issued([quoted_as(side, given) for side in sides], now_ms)
        if at is None:
            raise RouteValidationFailed(field="route", expected="an unchanged route of GET /v2/quote")
        return decode_route(bytes(body.route)), sides[at]


async def _gets_wrapped(there: ServedChain, body: BuildBody, route: Route) -> bool:
    """Whether a route's bridge pays wrapped native tokens, as the beneficiary is a contract.

    A delegated account (EIP-7702) is neither account nor contract here: bridges of different chains treat it
    differently. Its route to the native token is refused, and for the wrapped one what arrives is wrapped.

    Raises:
        InvalidInput: the route says native tokens, and the beneficiary has code on the destination.
        ChainError: no node answers.
    """
    target = route.destination
    if route.bridge is None or target.input.token.address != NATIVE_PLACEHOLDER:
        return False
    named = body.owner if body.beneficiary is None else body.beneficiary
    beneficiary = parse_address(named, "owner" if body.beneficiary is None else "beneficiary")
    code = await there.chain.code(beneficiary)
    if code and target.output.token == target.input.token:
        wrapped = to_checksum(there.tokens.wrapped_native)
        asks = (
            "ask for a price of that token" if there.arrivals else "the venue quotes no price of that token"
        )
        raise InvalidInput(
            f"a contract gets the wrapped token, {wrapped}: {asks}",
            field="beneficiary",
            expected=f"an account without code on chain {there.chain_id}, for native tokens",
            got=to_checksum(beneficiary),
        )
    return bool(code) and not is_delegation(code)


async def _shares(served: ServedChain, body: BuildBody, route: Route, quoted: Side) -> int:
    """Read from the vault that a build names the shares that its order signs, at a recent block.

    Raises:
        InvalidInput: the body asks for a purchase, or the route is one.
        InvalidProductiveOrderParams: the body names no vault, or names a vault that the venue does not serve
            for the route's source token.
        ServiceUnavailable: the vault does not answer.
        ChainError: no node answers.
    """
    check_side(body)
    check_quoted_side(body, quoted)
    vault, source = strategy_in(body), route.origin.input
    check_strategy(vault, vaults_of(served.settings.strategies), "strategy")
    amount = parse_positive_amount(source.amount, "route.origin.input.amount")
    header = await served.chain.recent_block(RECENT_BLOCK_S)
    asset, shares = await served.chain.call_many([asset_call(vault), shares_call(vault, amount)], header.hash)
    check_asset(asset, vault, parse_address(source.token.address, "route.origin.input.token"), "strategy")
    return shares_to_sign(body, shares)
