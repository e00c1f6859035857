"""A venue's HTTP interface for traders: typed requests, typed answers, one kind of error.

A GET is repeated after a transport error and after 429, 502, 503 and 504. A POST is repeated only if the
venue cannot have received it, or refused it with 429 or 503 before it acted: an unused firm quote counts
against the user, and `following` looks up an unanswered order by its hash. `Retry-After` is honoured up to
TRADER_RETRY_AFTER_S_MAX; a longer wait is an error at once.

Source: spec 1.12 to 1.22, 1.25; interop.md 3; choices.md#requests-and-errors; RFC 9110 10.2.3 (Retry-After);
    ARCHITECTURE.md, "Push".
Choice: A Retry-After with a date counts as absent: the venue's clock may differ.
"""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Self, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import httpx
import trio
from msgspec import Raw, Struct

from ....codecs.http1 import Http1Limits
from ....codecs.messages.auction_messages import Auction, Explanation, ListedRound
from ....codecs.messages.delta_messages import (
    BuildBody,
    BuildResponse,
    CancelBody,
    CancellationBuildBody,
    CancellationBuildResponse,
    CancelResponse,
    DeltaBlock,
    OrderPage,
    OrderRecord,
    SubmitBody,
)
from ....codecs.messages.market_messages import (
    PriceRoute,
    QuoteResponse,
    TransactionBody,
    TransactionEnvelope,
    decode_price_route,
)
from ....codecs.messages.otc_messages import (
    OtcFillableBalance,
    OtcOrderBody,
    OtcPurgeBody,
    OtcPurged,
    StoredOrder,
)
from ....codecs.messages.resource_messages import (
    ChainList,
    ContractsDocument,
    PriceDepthAnswer,
    PriceHistoryAnswer,
    TokenList,
)
from ....codecs.messages.tape_messages import TradeKind, TradeMessage, TradeStatistics
from ....codecs.messages.vocabulary import DeliveryState, MarketVersion, Mode
from ....codecs.messages.webhook_messages import DeliveryPage, ReplayBody, ReplayResponse, WebhookList
from ....codecs.messages.wire import decoder, encode
from ....config import limits
from ....config.errors import ConfigError, InvalidInput, MakerError, VenueError
from ....config.secret import Secret
from ....config.timeouts import TRADER_PAUSE_S, TRADER_REQUEST_S, TRADER_RETRY_AFTER_S_MAX
from ....crypto.addresses import to_checksum
from ....crypto.hexadecimal import parse_hex
from ....feeds.transport.httpx_transport import DialTransport
from ....feeds.transport.streams import client_tls
from ....feeds.transport.websocket import HandshakeRefused, WebSocket, connect_websocket
from .order_terms import OrderWish, QuotedDelta
from .terms import TradeWish, Wish

T = TypeVar("T")

API_KEY_HEADER = "X-API-KEY"
_ORDERS = "/v2/delta/orders"
_WEBHOOKS = "/v2/webhooks"
_HASH_BYTES = 32
_SENT_BYTES_MAX = 4_096  # the client sends only pongs and a close frame over the WebSocket
_LISTING_BYTES_MAX = 16 << 20  # a thousand orders with signatures of contracts
_TRIES = 3
_CONNECTIONS_MAX = 4
_OVER_RATE = frozenset((429, 503))
_PASSING = _OVER_RATE | {502, 504}
_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


class _Priced(Struct, frozen=True, rename="camel"):
    """Answer of GET /prices with its Market route undecoded.

    The client must return the route byte for byte, since the venue's seal authenticates these bytes.
    """

    price_route: Raw


class _Quoted(Struct, frozen=True):
    """Answer of GET /v2/quote: `delta` is the undecoded price of a Delta order; empty if absent."""

    delta: Raw = Raw()


class _RouteOf(Struct, frozen=True):
    """Undecoded route of a Delta price, which the build request returns to the venue byte for byte."""

    route: Raw


class _ErrorBody(Struct, frozen=True, rename="camel"):
    """Members of a venue's error answer that the client reads; see choices.md#requests-and-errors."""

    error_type: str = ""
    details: str = ""
    error: str = ""
    request_id: str = ""


class OtcPage(Struct, frozen=True, rename="camel"):
    """A page of a listing of OTC orders.

    Attributes:
        has_more: whether the listing continues after this page.
        as_of: snapshot of the listing, to send with the request for the next page; empty if the venue sends
            none.
    """

    orders: tuple[StoredOrder, ...]
    has_more: bool
    as_of: str = ""


class ReceivedRoute(Struct, frozen=True):
    """A Market route of GET /prices: decoded, for the client's checks, and undecoded, to return it to the
    venue."""

    route: PriceRoute
    raw: Raw


def _json(
    kind: type[T], check: Callable[[T], None] | None = None, bytes_max: int = limits.JSON_BYTES_MAX
) -> Callable[[bytes], T]:
    """Return a function that decodes the body of a response.

    Args:
        kind: type of the decoded message.
        check: raises InvalidInput for a message that the client must not use.
        bytes_max: maximum size of the body.
    """
    decode = decoder(kind, bytes_max=bytes_max)

    def read(raw: bytes) -> T:
        message = decode(raw)
        if check is not None:
            check(message)
        return message

    return read


class VenueClient:
    """A client of one venue's HTTP interface for traders, created by `open`.

    Args:
        http: the HTTP client that sends the requests.
        url: base URL of the venue, with a path prefix if the venue has one.
        api_key: key that each request carries as X-API-KEY; None sends none.
    """

    def __init__(self, http: httpx.AsyncClient, url: str, api_key: Secret | None = None) -> None:
        self._http = http
        self._url = url.rstrip("/")
        self._headers = {"accept": "application/json"}
        if api_key is not None:
            self._headers[API_KEY_HEADER] = api_key.reveal()

    @classmethod
    @asynccontextmanager
    async def open(cls, url: str, api_key: Secret | None = None) -> AsyncGenerator[Self]:
        """Open a client of the venue, which closes with the context.

        Raises:
            ConfigError: `url` is no base URL of http or https.
        """
        checked_url(url)
        transport = DialTransport(tls=client_tls(), connections_max=_CONNECTIONS_MAX, limits=Http1Limits())
        async with httpx.AsyncClient(transport=transport, timeout=TRADER_REQUEST_S) as http:
            yield cls(http, url, api_key)

    async def tokens(self, chain_id: int) -> TokenList:
        """GET /tokens/{chainId}: the tokens that the venue lists for a chain."""
        return await self._get(f"/tokens/{chain_id}", {}, _json(TokenList))

    async def chains(self) -> ChainList:
        """GET /chains: the served chains, with the kinds of trade on each and the URL of its explorer."""
        return await self._get("/chains", {}, _json(ChainList))

    async def price_history(
        self, chain_id: int, base: str, quote: str, span_s: int, step_s: int | None = None
    ) -> PriceHistoryAnswer:
        """GET /prices/history: prices of a pair over the last `span_s` seconds, at most a day.

        Args:
            base, quote: addresses or symbols of listed tokens; a price is in quote tokens for one base token.
            step_s: seconds of a point, one of HISTORY_STEPS_S; None lets the venue choose.
        """
        query: dict[str, object] = {"chainId": chain_id, "base": base, "quote": quote, "span": span_s}
        if step_s is not None:
            query["step"] = step_s
        return await self._get("/prices/history", query, _json(PriceHistoryAnswer))

    async def price_depth(self, chain_id: int, base: str, quote: str) -> PriceDepthAnswer:
        """GET /prices/depth: what five sizes of `base` cost in `quote`; addresses or symbols of tokens."""
        query: dict[str, object] = {"chainId": chain_id, "base": base, "quote": quote}
        return await self._get("/prices/depth", query, _json(PriceDepthAnswer))

    async def contracts(self) -> ContractsDocument:
        """GET /resources/contracts.json: the addresses of the venue's contracts by chain."""
        return await self._get("/resources/contracts.json", {}, _json(ContractsDocument))

    async def prices(self, wish: Wish) -> ReceivedRoute:
        """GET /prices: the best Market route for a wished swap, in version 6.2 of the route format.

        Raises:
            VenueError: `error_type` is NoRoute if no route exists.
        """
        impact = "" if wish.max_impact is None else f"{wish.max_impact:f}"
        more = {
            "network": wish.chain_id,
            "version": MarketVersion.V6_2.value,
            "receiver": _other(wish.receiver, wish.user),
            "maxImpact": impact,
        }
        return await self._get("/prices", _price_query(wish, wish.amount, wish.user, more), _priced)

    async def transaction(self, chain_id: int, body: TransactionBody) -> TransactionEnvelope:
        """POST /transactions/{chainId}: the transaction of a swap, for which makers sign firm quotes.

        The venue estimates no gas: the trader checks balances and simulates the transaction.
        """
        path = f"/transactions/{chain_id}?ignoreGasEstimate=true"
        return await self._post(path, body, _json(TransactionEnvelope))

    async def quote(
        self, wish: TradeWish, mode: Mode, to_chain: int | None = None, bridges: Sequence[str] = ()
    ) -> QuoteResponse:
        """GET /v2/quote: the price of a trade; the request names no user.

        Args:
            to_chain: chain on which a bridge delivers the bought tokens; None for the wish's chain.
            bridges: names of the bridges that the venue may choose among; empty for any.

        Raises:
            VenueError: the venue has no price of this mode.
        """
        more: dict[str, object] = {"chainId": wish.chain_id, "mode": mode.value}
        if to_chain is not None:
            more |= {"destChainId": to_chain, "includeBridges": ",".join(bridges)}
        query = _price_query(wish, wish.amount, None, more)
        return await self._get("/v2/quote", query, _json(QuoteResponse))

    async def delta_quote(self, wish: OrderWish) -> QuotedDelta:
        """GET /v2/quote, mode DELTA: the price of the wished order, or of a TWAP's first slice.

        Raises:
            VenueError: the venue has no price, or no price for a Delta order.
        """
        more: dict[str, object] = {
            "chainId": wish.chain_id,
            "mode": Mode.DELTA.value,
            "beneficiary": _other(wish.beneficiary, wish.owner),
        }
        if wish.bridging is not None:
            more["destChainId"] = wish.bridging.chain_id
            more["includeBridges"] = ",".join(wish.bridging.bridges)
            more["allowBridgeAndSwap"] = "false"
        given = _price_query(wish, wish.priced_amount, wish.owner, more)
        quoted = await self._get("/v2/quote", given, _delta_quoted)
        if quoted is None:
            raise VenueError(
                "GET /v2/quote: no Delta price in the answer; `cambist swap` trades on the Market route"
            )
        return quoted

    async def build_order(self, body: BuildBody) -> BuildResponse:
        """POST /v2/delta/orders/build: the EIP-712 typed data of an order, to sign."""
        return await self._post(f"{_ORDERS}/build", body, _json(BuildResponse))

    async def submit_order(self, body: SubmitBody) -> OrderRecord:
        """POST /v2/delta/orders: submit a signed order; returns the venue's record of the order."""
        return await self._post(_ORDERS, body, _json(OrderRecord, _check_shown))

    async def order(self, name: str) -> OrderRecord:
        """GET /v2/delta/orders/{id} or /v2/delta/orders/hash/{hash}: the venue's record of a Delta order.

        Args:
            name: the order's id, or its hash, which begins with 0x.
        """
        path = f"hash/{name}" if name.startswith("0x") else quote(name, safe="")
        return await self._get(f"{_ORDERS}/{path}", {}, _json(OrderRecord, _check_shown))

    async def orders(self, query: Mapping[str, str], page: int) -> OrderPage:
        """GET /v2/delta/orders: one page of the venue's Delta orders, the newest first.

        Args:
            query: parameters that select orders, and `limit`, the page's size.
            page: number of the page, from 1.
        """
        return await self._get(_ORDERS, {**query, "page": page}, _json(OrderPage, _check_page))

    @asynccontextmanager
    async def events(self, path: str, query: Mapping[str, str]) -> AsyncGenerator[WebSocket]:
        """Open a WebSocket on which the venue pushes changes of orders.

        The messages are those of `codecs.messages.event_messages`.

        Args:
            path: path of the event stream, of Delta or of OTC orders.
            query: parameters that select orders, and `after`, the resume token of the last event already
                received.

        Raises:
            VenueError: the venue refuses the WebSocket or does not answer. Raised only until the WebSocket is
                open.
        """
        parts = urlsplit(self._url)
        is_secure = parts.scheme == "https"
        opening = connect_websocket(
            parts.hostname or "",
            parts.port or (443 if is_secure else 80),
            parts.path + _with_query(path, query),
            tls=client_tls() if is_secure else None,
            headers={name: value for name, value in self._headers.items() if name == API_KEY_HEADER},
            message_bytes_max=limits.JSON_BYTES_MAX,
            send_bytes_max=_SENT_BYTES_MAX,
        )
        # Only the opening is within `try`: errors of the caller's code, which runs at the `yield`, stay as
        # they are.
        async with AsyncExitStack() as open_while:
            try:
                socket = await open_while.enter_async_context(opening)
            except HandshakeRefused as refused:
                raise _refusal("GET", path, refused.status, refused.body) from None
            except MakerError as fault:
                raise VenueError(f"{_named('GET', path)}: no answer: {fault.detail}") from None
            yield socket

    async def explanation(self, order_id: str) -> Explanation:
        """GET /v2/delta/orders/{id}/explain: the venue's reasons why an order is not filled."""
        return await self._get(f"{_ORDERS}/{quote(order_id, safe='')}/explain", {}, _json(Explanation))

    async def auction(self, auction_id: int) -> Auction:
        """GET /v2/delta/auctions/{id}: the record of a closed auction."""
        return await self._get(f"/v2/delta/auctions/{auction_id}", {}, _json(Auction))

    async def auctions(
        self, chain_id: int, limit: int = limits.VENUE_AUCTIONS_MAX
    ) -> tuple[ListedRound, ...]:
        """GET /v2/delta/auctions: the latest closed rounds of a chain, the latest first.

        Ids and hashes are None unless the client has an operator's API key.

        Args:
            limit: most orders in the rounds.
        """
        query = {"chainId": chain_id, "limit": limit}
        read = _json(tuple[ListedRound, ...], bytes_max=_LISTING_BYTES_MAX)
        return await self._get("/v2/delta/auctions", query, read)

    async def trades(
        self, chain_id: int, *, limit: int = limits.TAPE_LISTED_DEFAULT, kind: TradeKind | None = None
    ) -> tuple[TradeMessage, ...]:
        """GET /v2/delta/trades: the venue's latest trades on a chain, the latest first.

        Args:
            limit: most trades.
            kind: only trades of this kind; None for both.
        """
        query = {"chainId": chain_id, "limit": limit, "kind": "" if kind is None else kind.value}
        read = _json(tuple[TradeMessage, ...], bytes_max=_LISTING_BYTES_MAX)
        return await self._get("/v2/delta/trades", query, read)

    async def trade_statistics(self, chain_id: int) -> TradeStatistics:
        """GET /stats: statistics of the venue's trades on a chain in the last 24 hours."""
        return await self._get("/stats", {"chainId": chain_id}, _json(TradeStatistics))

    async def build_cancellation(self, ids: Sequence[str]) -> CancellationBuildResponse:
        """POST /v2/delta/orders/build/cancellation: the EIP-712 typed data that cancels orders, to sign."""
        body = CancellationBuildBody(tuple(ids))
        return await self._post(f"{_ORDERS}/build/cancellation", body, _json(CancellationBuildResponse))

    async def cancel_orders(self, ids: Sequence[str], signature: str) -> CancelResponse:
        """POST /v2/delta/orders/cancel: submit a signed cancellation; the venue cancels all of the orders or
        none."""
        return await self._post(f"{_ORDERS}/cancel", CancelBody(tuple(ids), signature), _json(CancelResponse))

    async def post_otc(self, chain_id: int, body: OtcOrderBody) -> StoredOrder:
        """POST /ft/p2p/{chainId}: post a signed OTC order; returns the venue's record of the order."""
        return await self._post(f"/ft/p2p/{chain_id}", body, _json(StoredOrder, _check_hashes))

    async def otc_order(self, order_hash: str) -> StoredOrder:
        """GET /ft/order/{orderHash}: the venue's record of an OTC order."""
        return await self._get(f"/ft/order/{order_hash}", {}, _json(StoredOrder, _check_hashes))

    async def otc_orders(
        self, chain_id: int, role: str, account: str, query: Mapping[str, str | int]
    ) -> OtcPage:
        """GET /ft/p2p/{chainId}/maker/{account}, or .../taker/{account}: a page of an account's OTC orders.

        Args:
            role: `maker` or `taker`: the account's role in the orders.
            query: parameters that select orders; `limit`, the page's size; `offset`, the number of orders
                that are skipped.
        """
        read = _json(OtcPage, _check_listing, _LISTING_BYTES_MAX)
        return await self._get(f"/ft/p2p/{chain_id}/{role}/{account}", query, read)

    async def otc_fillable(self, chain_id: int, account: str, token: str) -> OtcFillableBalance:
        """GET /ft/fillablebalance/{chainId}/{account}/{token}: raw units that a further OTC order can sell.

        The answer maps the token's lower-case address to the amount, from which the venue has subtracted the
        account's open OTC orders.
        """
        path = f"/ft/fillablebalance/{chain_id}/{account}/{token}"
        return await self._get(path, {}, _json(OtcFillableBalance))

    async def webhooks(self) -> WebhookList:
        """GET /v2/webhooks: the webhooks that the API key manages."""
        return await self._get(_WEBHOOKS, {}, _json(WebhookList))

    async def deliveries(self, name: str, status: DeliveryState, after: str = "") -> DeliveryPage:
        """GET /v2/webhooks/{name}/deliveries: one page of a webhook's deliveries, the oldest event first.

        Args:
            status: state that selects deliveries.
            after: token of the last delivery already read; empty for the first page.
        """
        path = f"{_WEBHOOKS}/{quote(name, safe='')}/deliveries"
        query = {"status": status.value, "after": after}
        return await self._get(path, query, _json(DeliveryPage))

    async def replay_deliveries(self, name: str, tokens: Sequence[str]) -> ReplayResponse:
        """POST /v2/webhooks/{name}/replay: have the venue repeat deliveries that it has given up.

        Args:
            tokens: tokens of the deliveries; without tokens the venue repeats the oldest deliveries that it
                has given up.
        """
        path = f"{_WEBHOOKS}/{quote(name, safe='')}/replay"
        return await self._post(path, ReplayBody(tuple(tokens)), _json(ReplayResponse))

    async def operator_status(self) -> dict[str, Any]:
        """GET /operator/status: counters of all parts of the venue, and their last hour in `series`."""
        return await self._get("/operator/status", {}, _json(dict[str, Any], bytes_max=_LISTING_BYTES_MAX))

    async def purge_otc(self, body: OtcPurgeBody) -> OtcPurged:
        """POST /operator/otc/purge: end the OTC orders of a page that a body describes."""
        return await self._post("/operator/otc/purge", body, _json(OtcPurged))

    async def _get(self, path: str, query: Mapping[str, object], read: Callable[[bytes], T]) -> T:
        return await self._ask("GET", _with_query(path, query), b"", read)

    async def _post(self, path: str, body: Struct, read: Callable[[bytes], T]) -> T:
        return await self._ask("POST", path, encode(body), read)

    async def _ask(self, method: str, path: str, body: bytes, read: Callable[[bytes], T]) -> T:
        """Send a request and decode its answer.

        The client repeats a GET after a transport error, 429, 502, 503 and 504; a POST only if the venue
        cannot have received the request, or refused it with 429 or 503.

        Args:
            read: decodes the body of the answer.

        Raises:
            VenueError: the venue refuses or does not answer, or its answer cannot be decoded.
        """
        headers = self._headers | ({"content-type": "application/json"} if body else {})
        pause_s = TRADER_PAUSE_S
        for tries_left in reversed(range(_TRIES)):
            # An unanswered POST may have had its effect, such as a placed order. Only a failure to connect or
            # a status of _OVER_RATE proves that the venue has not acted.
            try:
                answer = await self._http.request(method, self._url + path, content=body, headers=headers)
            except (httpx.HTTPError, httpx.InvalidURL) as fault:
                if not tries_left or not (method == "GET" or isinstance(fault, _NEVER_SENT)):
                    raise VenueError(f"{_named(method, path)}: no answer: {fault}") from None
                wait_s = pause_s
            else:
                if answer.status_code == httpx.codes.OK:
                    return _read(method, path, answer, read)
                passing = _PASSING if method == "GET" else _OVER_RATE
                asked_s = _wait_s(answer, pause_s) if answer.status_code in passing else None
                if asked_s is None or not tries_left:
                    raise _refusal(method, path, answer.status_code, answer.content)
                wait_s = asked_s
            await trio.sleep(wait_s)
            pause_s *= 2
        raise AssertionError("the last try returns or raises")


def checked_url(url: str, field: str = "--venue") -> str:
    """Return a text that is a base URL of http or https.

    Args:
        field: option that holds the text, for errors.

    Raises:
        ConfigError: the text has another scheme, no host, a user, a query or a fragment.
    """
    expected = "expected http://host[:port][/path] or https://..."
    try:
        parts = urlsplit(url)
        has_host = bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise ConfigError(field, expected) from None
    if not has_host or parts.scheme not in ("http", "https"):
        raise ConfigError(field, expected)
    if parts.query or parts.fragment or "@" in parts.netloc:
        raise ConfigError(field, "expected a URL without user, query and fragment")
    return url


def _price_query(
    wish: TradeWish, amount: int, user: bytes | None, more: Mapping[str, object]
) -> dict[str, object]:
    """The query parameters of a request for a price.

    Args:
        amount: raw units of the source token for SELL, of the destination token for BUY.
        user: 20 bytes; None for any user.
        more: further parameters, which only the requested endpoint has.
    """
    return {
        "srcToken": wish.src.text,
        "destToken": wish.dest.text,
        "srcDecimals": wish.src.decimals,
        "destDecimals": wish.dest.decimals,
        "amount": amount,
        "side": wish.side.value,
        **more,
        "userAddress": "" if user is None else to_checksum(user),
        "partner": wish.partner,
    }


def _with_query(path: str, query: Mapping[str, object]) -> str:
    """A path with query parameters, of which empty ones are left out."""
    encoded = urlencode({name: value for name, value in query.items() if value != ""})
    return f"{path}?{encoded}" if encoded else path


def _other(account: bytes, user: bytes) -> str:
    """The value of a request parameter for an account that defaults to the user.

    The value is the account's address, or empty for the user's own account, so that the request omits the
    parameter.
    """
    return "" if account == user else to_checksum(account)


def _priced(raw: bytes) -> ReceivedRoute:
    route = _json(_Priced)(raw).price_route
    return ReceivedRoute(decode_price_route(bytes(route)), route)


def _check_page(page: OrderPage) -> None:
    for at, record in enumerate(page.data):
        _check_shown(record, f"data[{at}].")


def _check_listing(listing: OtcPage) -> None:
    for at, stored in enumerate(listing.orders):
        _check_hashes(stored, f"orders[{at}].")


def _check_hashes(stored: StoredOrder, where: str = "") -> None:
    """Check that an OTC order's hashes, of the order and of its transaction, have 32 bytes.

    Args:
        where: path to the order in the answer, for errors.

    Raises:
        InvalidInput: a hash is malformed; the error names its member.
    """
    for field, text in (("orderHash", stored.order_hash), ("transactionHash", stored.transaction_hash)):
        if text is not None and len(parse_hex(text, f"{where}{field}")) != _HASH_BYTES:
            raise InvalidInput(field=f"{where}{field}", expected="32 bytes", got=text)


def _check_shown(record: OrderRecord, where: str = "") -> None:
    """Check that an order's id, and the hashes and amounts of its transactions and refunds, are printable.

    Control characters could overwrite the terminal.

    Args:
        where: path to the order in the answer, for errors.

    Raises:
        InvalidInput: a text is not printable; the error names its member.
    """
    names = [("id", record.id)]
    for at, each in enumerate(record.transactions):
        names.append((f"transactions[{at}].originTx", each.origin_tx))
        names.append((f"transactions[{at}].destinationTx", each.destination_tx or ""))
        names.append((f"transactions[{at}].receivedAmount", each.received_amount or ""))
    for at, refund in enumerate(record.refunds):
        names.append((f"refunds[{at}].tx", refund.tx))
        names.append((f"refunds[{at}].amount", refund.amount))
    for field, name in names:
        if not name.isprintable():
            raise InvalidInput(field=f"{where}{field}", expected="printable text", got=name)


def _delta_quoted(raw: bytes) -> QuotedDelta | None:
    block = bytes(_json(_Quoted)(raw).delta)
    if block in (b"", b"null"):
        return None
    return QuotedDelta(_json(DeltaBlock)(block), _json(_RouteOf)(block).route)


def _read(method: str, path: str, answer: httpx.Response, read: Callable[[bytes], T]) -> T:
    try:
        return read(answer.content)
    except InvalidInput as fault:
        raise VenueError(
            f"{_named(method, path)}: a malformed answer: {fault.detail}",
            status=answer.status_code,
        ) from None


def _refusal(method: str, path: str, status: int, content: bytes) -> VenueError:
    try:
        body = _json(_ErrorBody)(content)
    except InvalidInput:
        body = _ErrorBody()
    details = body.details or body.error
    said = f"{status} {body.error_type}".rstrip()
    request = f" (request {body.request_id})" if body.request_id else ""
    return VenueError(
        f"{_named(method, path)}: {said}{': ' if details else ''}{details}{request}",
        status=status,
        error_type=body.error_type,
        details=details,
        request_id=body.request_id,
    )


def _wait_s(answer: httpx.Response, pause_s: float) -> float | None:
    """Seconds to wait before the client repeats a refused request: the larger of `Retry-After` and `pause_s`.

    None if the venue asks for more than TRADER_RETRY_AFTER_S_MAX.

    Args:
        pause_s: minimum wait, seconds.
    """
    requested = answer.headers.get("retry-after", "")
    if not (requested.isascii() and requested.isdigit()):
        return pause_s
    if len(requested) > len(str(TRADER_RETRY_AFTER_S_MAX)) or int(requested) > TRADER_RETRY_AFTER_S_MAX:
        return None
    return max(float(requested), pause_s)


def _named(method: str, path: str) -> str:
    return f"{method} {path.partition('?')[0]}"
