"""HTTP service of the dev bridges: Across's fee endpoint, Circle's attestation service, and controls.

    GET  /suggested-fees            fees of a transfer by Across
    GET  /v2/messages/{domain}      messages of a transaction or nonce, with their attestations
    POST /v2/reattest/{nonce}       sign a message anew, without its expiry
    GET  /v2/burn/USDC/fees/{source}/{destination}
    POST /                          JSON-RPC: bridge_orderRelayer, bridge_orderAttester, bridge_state

The controls change members of `RelayerOrders` and `AttesterOrders`, and answer with all of them.
"""

from typing import Any

import msgspec
from msgspec import Struct

from ....codecs.amounts import parse_positive_amount
from ....codecs.messages.query import query_decoder
from ....codecs.messages.resource_messages import error_status
from ....codecs.messages.wire import encode
from ....config import limits
from ....config.errors import CambistError, ChainError, InvalidInput, PathNotFound
from ....config.sections.server import ServerSettings
from ....crypto.addresses import parse_address
from ....crypto.hexadecimal import parse_hex, to_hex
from ...host.process.clock import WallClock
from ...host.server import HttpCall, Reply, RouteGroup, Router, Server
from ..devnet.dispatch import answer
from ..devnet.facade import Method, Methods
from ..devnet.faults import INVALID_PARAMS, RpcFault
from ..devnet.parameters import Nothing
from .attester import DevAttester
from .bridge_answers import across_refusal, burn_fees, fees_refusal, message_entry, suggested_fees
from .relayer import DevRelayer

_SETTINGS = ServerSettings(body_bytes_max=limits.DEVNET_REQUEST_BYTES_MAX)
_DOMAIN_DIGITS_MAX = 10


class _FeesQuery(Struct, rename="camel"):
    input_token: str
    output_token: str
    origin_chain_id: int
    destination_chain_id: int
    amount: str
    skip_amount_limit: str = "false"


class _MessagesQuery(Struct, rename="camel"):
    transaction_hash: str | None = None
    nonce: str | None = None


class _OfOrders(Struct, array_like=True, forbid_unknown_fields=True):
    """Parameter of the controls: an object with the members of the instructions to change."""

    changes: dict[str, Any]


_fees_query, _messages_query = query_decoder(_FeesQuery), query_decoder(_MessagesQuery)


class BridgeService:
    """HTTP service of a dev relayer and a dev attester.

    Attributes:
        server: the HTTP server, which the caller has to run.
    """

    def __init__(self, relayer: DevRelayer, attester: DevAttester) -> None:
        self._relayer = relayer
        self._attester = attester
        self._methods = self.methods()
        surface = RouteGroup(_encode_error, cors_origins=("*",), body_bytes_max=_SETTINGS.body_bytes_max)
        across = RouteGroup(_encode_across_error, cors_origins=("*",))
        across.coroutine("GET", "/suggested-fees", self._suggested_fees)
        surface.plain("GET", "/v2/messages/{domain}", self._messages)
        surface.plain("POST", "/v2/reattest/{nonce}", self._reattest)
        surface.plain("GET", "/v2/burn/USDC/fees/{source}/{destination}", self._burn_fees)
        surface.coroutine("POST", "/", self._control)
        router = Router(_encode_error)
        router.mount(surface)
        router.mount(across)
        self.server = Server(router, _SETTINGS, wall_ms=WallClock().now_ms)

    def methods(self) -> Methods:
        """Return the JSON-RPC methods that control relayer and attester, by name."""
        return {
            "bridge_orderRelayer": Method(_OfOrders, self.order_relayer),
            "bridge_orderAttester": Method(_OfOrders, self.order_attester),
            "bridge_state": Method(Nothing, self.state),
        }

    async def order_relayer(self, params: _OfOrders) -> object:
        """Answer `bridge_orderRelayer`: change the relayer's instructions; return all of them."""
        return _ordered(self._relayer, params.changes)

    async def order_attester(self, params: _OfOrders) -> object:
        """Answer `bridge_orderAttester`: change the attester's instructions; return all of them."""
        return _ordered(self._attester, params.changes)

    async def state(self, _: Nothing) -> object:
        """Answer `bridge_state`: return all instructions, and the deposits that are not paid out."""
        deposits = [
            {"depositId": deposit.deposit_id, "destinationChainId": deposit.destination_chain_id}
            for deposit in self._relayer.open_deposits()
        ]
        orders = {"relayer": self._relayer.orders, "attester": self._attester.orders}
        return {name: msgspec.to_builtins(role_orders) for name, role_orders in orders.items()} | {
            "openDeposits": deposits
        }

    async def _control(self, call: HttpCall) -> Reply:
        body = await answer(call.request.body, self._methods)
        return Reply(200, body) if body else Reply(204, b"")

    async def _suggested_fees(self, call: HttpCall) -> Reply:
        query = _fees_query(call.request.query or b"")
        amount = parse_positive_amount(query.amount)
        origin = query.origin_chain_id, parse_address(query.input_token, "inputToken")
        destination = query.destination_chain_id, parse_address(query.output_token, "outputToken")
        lane = self._relayer.lane(origin, destination)
        if lane is None:
            return Reply(400, encode(across_refusal("ROUTE_NOT_ENABLED", "Route is not enabled.")))
        funds = await self._relayer.funds(*destination)
        skips_limit = query.skip_amount_limit == "true"
        if (refusal := fees_refusal(lane, amount, funds, skips_limit=skips_limit)) is not None:
            return Reply(400, encode(refusal))
        ends = self._relayer.ends
        head = await ends[origin[0]].chain.block()
        if head is None:
            raise ChainError("the chain has no latest block")
        body = suggested_fees(
            lane,
            amount,
            self._relayer.terms,
            funds=funds,
            pools=(ends[origin[0]].pool, ends[destination[0]].pool),
            time_s=head.time_s,
            fill_s=self._relayer.orders.fill_after_s,
        )
        return Reply(200, encode(body))

    def _messages(self, call: HttpCall) -> Reply:
        domain = _domain(call.parameters[0])
        query = _messages_query(call.request.query or b"")
        if query.transaction_hash is not None:
            tx_hash = parse_hex(query.transaction_hash, "transactionHash")
            found = self._attester.messages(domain, tx_hash)
        elif query.nonce is not None:
            message = self._attester.message(domain, parse_hex(query.nonce, "nonce"))
            found = [message] if message else []
        else:
            raise InvalidInput("missing", field="transactionHash")
        if not found:
            raise PathNotFound
        return Reply(200, encode({"messages": [message_entry(message) for message in found]}))

    def _reattest(self, call: HttpCall) -> Reply:
        nonce = parse_hex(call.parameters[0], "nonce")
        found = self._attester.message(None, nonce)
        if found is None:
            raise PathNotFound
        if not found.raw:
            raise InvalidInput(field="nonce", expected="an attested message's", got=to_hex(nonce))
        self._attester.attest_again(found)
        body = {"message": "Re-attestation successfully requested for nonce.", "nonce": to_hex(nonce)}
        return Reply(200, encode(body))

    def _burn_fees(self, call: HttpCall) -> Reply:
        source, destination = map(_domain, call.parameters)
        if source == destination or not {source, destination} <= set(self._attester.ends):
            raise PathNotFound
        return Reply(200, encode(burn_fees(self._attester.orders)))


def _ordered(to: DevRelayer | DevAttester, changes: dict[str, Any]) -> object:
    """Change how a dev relayer or attester behaves: members of its `RelayerOrders` or `AttesterOrders`.

    Args:
        changes: name of a member -> its new value, decoded JSON.

    Returns:
        All members after the change, by name.

    Raises:
        RpcFault: a member is unknown, or its value is invalid.
    """
    kind = type(to.orders)
    try:
        wanted = msgspec.convert(msgspec.to_builtins(to.orders) | changes, kind)
    except msgspec.ValidationError as error:
        raise RpcFault(INVALID_PARAMS, f"invalid argument 0: {error}") from None
    return msgspec.to_builtins(to.order(**{name: getattr(wanted, name) for name in changes}))


def _domain(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _DOMAIN_DIGITS_MAX):
        raise InvalidInput(field="domain", expected="a number", got=text)
    return int(text)


def _encode_across_error(error: CambistError, request_id: str) -> bytes:  # noqa: ARG001  as above
    return encode(across_refusal("INVALID_PARAM", error.detail))


def _encode_error(error: CambistError, request_id: str) -> bytes:  # noqa: ARG001  it is in the headers
    return encode({"code": error_status(error), "error": error.detail, "message": error.detail})
