"""HTTP endpoints of OTC orders: posts, stored orders, listings, fillable balances and events.

The fillable balance is the amount of a token that an account can still give with new OTC orders:

    max(0, min(balance, allowance to the RFQ contract) - unfilled amounts of its PENDING orders of the token)

GET /ft/events is an event stream like that of Delta orders: it reads the same log of events, with the same
message form, `after` tokens and limits.

Source: spec 2.6 to 2.10; interop.md 1; choices.md#requests-and-errors, choices.md#fees-and-partners,
    choices.md#otc-orders; spec 2.10; interop.md 1; ARCHITECTURE.md, "Push"; spec 2.13.3.
Choice: The token of a fillable balance is a path member or `token`; both have to agree.
Choice: Fillable balances without a token cover the venue's listed ERC-20 tokens and at most 100 tokens of the
    account's live orders. An unlisted token may be named.
Choice: A fillable balance is the lesser of balance and allowance less the unfilled amounts of PENDING orders,
    at least 0; a DRAFT or SUSPENDED order reserves nothing.
Choice: A permit beyond the allowance is not in the fillable balance: it counts for its own order alone.
"""

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from functools import partial
from itertools import islice
from typing import Literal

from ....codecs.messages.event_messages import OtcEventsQuery, decode_otc_events_query
from ....codecs.messages.otc_messages import (
    OtcBalanceQuery,
    OtcFillableBalance,
    OtcListing,
    OtcListingQuery,
    OtcOrderBody,
    PostedOrder,
    StoredOrder,
    decode_otc_balance_query,
    decode_otc_listing_query,
    decode_otc_order,
)
from ....codecs.messages.vocabulary import OtcOrderBy, OtcState
from ....codecs.messages.wire import encode
from ....codecs.trading_token import NATIVE_TOKEN
from ....config.errors import InvalidInput, OrderNotFound
from ....config.limits import OTC_LIVE_TOKENS_SHOWN_MAX
from ....crypto.addresses import parse_address
from ....crypto.hexadecimal import parse_hex, to_hex
from ...chain.holdings import HoldingQuestion, holdings
from ...host.admission.ledger import Causer
from ...host.admission.signatures import SignatureBudget
from ...host.server.routing import HttpCall, Reply
from ...store.queries import OtcFilter
from ...store.rows import OtcOrderRow, amount32, amount_of
from ...store.store import Store
from ..api.chain_parameter import chain_in_path
from ..api.routes import OTC_PREFIX, Endpoint
from ..events.event_streams import EventStreams, ids_of_hashes
from ..events.filters import EventFilter
from ..orders.order_units import OTC
from ..served.asking import in_time
from ..served.served_chain import ServedChain, ServedChains, otc_chain_at
from .live_orders import OtcOrders
from .order_desk import OtcDesk
from .stored_orders import StoredOtcOrders


def otc_event_endpoints(streams: EventStreams) -> tuple[Endpoint, ...]:
    """Return the endpoint GET /ft/events, which streams the changes of OTC orders, for the route table."""
    return (
        streams.endpoint(
            f"{OTC_PREFIX}/events",
            _read_query,
            query=OtcEventsQuery,
            group="OTC orders",
            summary="Changes of OTC orders, pushed as they happen",
            detail="Every change of an OTC order.",
        ),
    )


def _read_query(query: bytes) -> tuple[EventFilter, str | None]:
    """Parse the query of a request for the stream of OTC order events.

    Returns:
        (filter of the events, resume token of the event after which the stream starts; None for new events
            only).

    Raises:
        InvalidInput: a parameter is malformed.
    """
    decoded = decode_otc_events_query(query)
    wanted = EventFilter(
        surface=OTC.name,
        owner=None if decoded.maker is None else parse_address(decoded.maker, "maker"),
        taker=None if decoded.taker is None else parse_address(decoded.taker, "taker"),
        orders=frozenset(ids_of_hashes(decoded.order_hash or ())),
        chain_ids=frozenset(decoded.chain_id or ()),
    )
    return wanted, decoded.after


def promised(orders: Iterable[OtcOrderRow]) -> dict[bytes, int]:
    """Sum the unfilled amounts of an account's PENDING orders by token that the orders sell, in raw units.

    A token whose orders are all DRAFT or SUSPENDED has the sum 0.
    """
    left: dict[bytes, int] = {}
    for order in orders:
        of_order = amount_of(order.remaining) if order.status is OtcState.PENDING else 0
        left[order.maker_asset] = left.get(order.maker_asset, 0) + of_order
    return left


def fillable(usable: Mapping[bytes, int], taken: Mapping[bytes, int], token: bytes) -> int:
    """Compute the raw units of a token that an account can still give with new OTC orders, at least 0.

    Args:
        usable: token -> lesser of the account's balance and allowance, raw units; a missing token, whose
            contract does not answer, counts as 0.
        taken: token -> unfilled amounts of the account's orders, from `promised`.
    """
    return max(0, usable.get(token, 0) - taken.get(token, 0))


_HASH_BYTES = 32
_P2P = f"{OTC_PREFIX}/p2p/{{chainId}}"
_FILLABLE = f"{OTC_PREFIX}/fillablebalance/{{chainId}}/{{account}}"
_KEYS: dict[OtcOrderBy, Literal["created_ms", "updated_ms", "expires_s"]] = {
    OtcOrderBy.CREATED_AT: "created_ms",
    OtcOrderBy.UPDATED_AT: "updated_ms",
    OtcOrderBy.EXPIRY: "expires_s",
}
_row = partial(Endpoint, group="OTC orders")


class OtcEndpoints:
    """Endpoints that post OTC orders, read stored orders and listings, and compute fillable balances.

    Args:
        chains: served chains by chain id.
        orders: the OTC orders in memory, to which posted orders are added.
        small_usd: threshold, US dollars: the query parameter `hideSmallBalances` hides orders whose swappable
            balance is worth less.
        causer_of: returns the caller that answers for what a request costs.
        signatures_of: returns, for a request, the object that limits how many wrong signatures its client may
            send.
    """

    def __init__(
        self,
        chains: ServedChains,
        orders: OtcOrders,
        store: Store,
        *,
        small_usd: Decimal,
        causer_of: Callable[[HttpCall], Causer],
        signatures_of: Callable[[HttpCall], SignatureBudget],
    ) -> None:
        self._chains = chains
        self._stored = StoredOtcOrders(store)
        self._desk = OtcDesk(chains, orders, self._stored)
        self._small_usd = small_usd
        self._causer_of = causer_of
        self._signatures_of = signatures_of

    def endpoints(self) -> tuple[Endpoint, ...]:
        """Return the endpoints of OTC orders as rows of the HTTP route table."""
        listing = partial(_row, method="GET", query=OtcListingQuery, answer=OtcListing)
        balance = partial(
            _row,
            method="GET",
            cost=5,
            coroutine=self._fillable,
            query=OtcBalanceQuery,
            answer=OtcFillableBalance,
        )
        return (
            _row(
                method="POST",
                path=_P2P,
                coroutine=self._post,
                cost=5,
                summary="Post a signed OTC order",
                detail="The answer comes once the order is stored durably; a repeated order gets the stored "
                "record. An order that the maker's funds do not cover is stored as SUSPENDED.",
                body=OtcOrderBody,
                answer=PostedOrder,
            ),
            _row(
                method="GET",
                path=f"{OTC_PREFIX}/order/{{orderHash}}",
                coroutine=self._by_hash,
                summary="An OTC order by its hash",
                answer=StoredOrder,
            ),
            listing(
                path=f"{_P2P}/maker/{{account}}",
                coroutine=self._of_maker,
                summary="OTC orders of a maker, latest first",
            ),
            listing(
                path=f"{_P2P}/taker/{{account}}",
                coroutine=self._of_taker,
                summary="OTC orders addressed to a taker, latest first",
                detail="Orders with the account as `taker` or `takerFromMeta`; for the zero address, "
                "orders that anyone may fill.",
            ),
            balance(
                path=_FILLABLE, summary="Amounts of each token that an account can still give with OTC orders"
            ),
            balance(
                path=f"{_FILLABLE}/{{token}}",
                summary="Amount of a token that an account can still give with OTC orders",
            ),
        )

    async def _post(self, call: HttpCall) -> Reply:
        with self._signatures_of(call) as signatures:
            served = self._served(call.parameters[0])
            body = decode_otc_order(call.request.body)
            posted = await self._desk.submit(
                served.chain_id, body, call.now_ms, signatures, self._causer_of(call).name
            )
            return Reply(200, encode(posted))

    async def _by_hash(self, call: HttpCall) -> Reply:
        expected = f"0x and {2 * _HASH_BYTES} hexadecimal digits"
        order_hash = parse_hex(call.parameters[0], "orderHash", expected)
        if len(order_hash) != _HASH_BYTES:
            raise InvalidInput(field="orderHash", expected=expected, got=call.parameters[0])
        order = await self._stored.order(order_hash)
        if order is None:
            raise OrderNotFound(field="orderHash", got=to_hex(order_hash))
        return Reply(200, encode(order))

    async def _of_maker(self, call: HttpCall) -> Reply:
        return await self._list(call, "maker")

    async def _of_taker(self, call: HttpCall) -> Reply:
        return await self._list(call, "taker")

    async def _list(self, call: HttpCall, role: Literal["maker", "taker"]) -> Reply:
        served = self._served(call.parameters[0])
        account = parse_address(call.parameters[1], "account")
        query = decode_otc_listing_query(call.request.query or b"")
        wanted = OtcFilter(
            served.chain_id,
            maker=account if role == "maker" else None,
            taker=account if role == "taker" else None,
            type=query.type,
            swappable_min=self._small(served) if query.hide_small_balances else None,
            order_by=_KEYS[query.order_by],
        )
        page = await self._stored.page(wanted, query.limit, query.offset, query.as_of)
        has_more = query.offset + query.limit < page.total
        listing = OtcListing(page.orders, query.limit, query.offset, page.total, has_more, page.as_of)
        return Reply(200, encode(listing))

    async def _fillable(self, call: HttpCall) -> Reply:
        chain_text, account_text, *tokens = call.parameters
        served = self._served(chain_text)
        account = parse_address(account_text, "account")
        query = decode_otc_balance_query(call.request.query or b"")
        requested = [parse_address(text, "token") for text in tokens]
        if query.token is not None:
            requested.append(parse_address(query.token, "token"))
        if len(set(requested)) > 1:
            raise InvalidInput(
                field="token", expected=f"that of the path, {to_hex(requested[0])}", got=query.token
            )
        only = requested[0] if requested else None
        taken = promised(await self._stored.live_of(served.chain_id, account, only))
        listed = [token for token in served.tokens.by_address if token != NATIVE_TOKEN]
        wanted = (
            [only]
            if only is not None
            else [*dict.fromkeys((*listed, *islice(taken, OTC_LIVE_TOKENS_SHOWN_MAX)))]
        )
        questions = [HoldingQuestion(token, account, served.rfq) for token in wanted]
        held = await in_time(
            holdings(served.chain, questions)
        )  # read last: a fill since the first read then counts twice, and not never
        usable = {
            token: found.usable for token, found in zip(wanted, held.found, strict=True) if found is not None
        }
        answer: OtcFillableBalance = {to_hex(token): str(fillable(usable, taken, token)) for token in wanted}
        return Reply(200, encode(answer))

    def _served(self, chain_text: str) -> ServedChain:
        return otc_chain_at(self._chains, chain_in_path(chain_text), "chainId")

    def _small(self, served: ServedChain) -> tuple[tuple[bytes, bytes], ...]:
        """Compute the least amount worth `small_usd` of each listed ERC-20 token with a US dollar price.

        Returns:
            For each token, (address, raw units as 32 bytes).
        """
        worth = {
            token: served.usd.least_worth(token, self._small_usd)
            for token in served.tokens.by_address
            if token != NATIVE_TOKEN
        }
        return tuple((token, amount32(least)) for token, least in worth.items() if least is not None)
