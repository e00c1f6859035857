"""HTTP endpoints that read Delta orders, and the balances that orders commit or leave for new orders.

The usable amount of an account's token is the smaller of its balance and its allowance to the Delta contract.

Source: spec 1.19 to 1.21; interop.md 3; interop.md 3, fillablebalance; engine/chain/holdings.
Choice: A malformed hash is 400; a malformed id is an unknown one: 404.
Choice: A listing needs an owner, named orders or the operator's key; the record of one order needs its id or
    hash alone.
"""

from collections.abc import Callable, Sequence
from functools import partial

from .....codecs.messages.delta_messages import (
    FillableBalance,
    OrderPage,
    OrderRecord,
    OrdersQuery,
    decode_orders_query,
)
from .....codecs.messages.vocabulary import OrderType
from .....codecs.messages.wire import encode
from .....codecs.trading_token import NATIVE_TOKEN
from .....config.errors import InvalidInput, OrderNotFound
from .....config.limits import VENUE_ORDER_IDS_MAX
from .....crypto.addresses import parse_address
from .....crypto.hexadecimal import parse_hex, to_hex
from ....chain.holdings import HoldingQuestion, holdings
from ....host.server.routing import HttpCall, Reply
from ....store.queries import DeltaFilter
from ....store.store import Store
from ...api.chain_parameter import chain_in_path
from ...api.routes import Endpoint
from ...served.asking import in_time
from ...served.served_chain import ServedChain, ServedChains, delta_chain_at
from ..intake.stored_orders import Page, StoredOrders
from ..orders.fillable import MAY_BE_SETTLED, fillable, promised
from ..orders.life import OPEN
from ..orders.vault_checks import vaults_of


async def usable_of(served: ServedChain, user: bytes, tokens: Sequence[bytes]) -> dict[bytes, int]:
    """Read how much of each token the Delta contract can take from an account, all at one block.

    The amount is the smaller of balance and allowance, or 0 if the token's contract does not answer; for the
    native token, the account's balance, without its deposit at the Delta contract.

    Args:
        user: the account, 20 bytes.
        tokens: addresses, 20 bytes each.

    Returns:
        Raw units by token.

    Raises:
        ChainError: no node answers.
    """
    others = [token for token in tokens if token != NATIVE_TOKEN]
    held = await holdings(served.chain, [HoldingQuestion(token, user, served.delta) for token in others])
    usable = {
        token: 0 if found is None else found.usable for token, found in zip(others, held.found, strict=True)
    }
    if NATIVE_TOKEN in tokens:
        usable[NATIVE_TOKEN] = await served.chain.balance(user, held.block_hash)
    return usable


_HASH_BYTES = 32
_COMMITTED = "/v2/delta/orders/fillablebalance/{chainId}/{user}"
_AVAILABLE = "/v2/delta/orders/availablebalance/{chainId}/{user}"
_row = partial(Endpoint, method="GET", group="Delta orders")


class OrderReads:
    """HTTP endpoints that return Delta orders, and token amounts that an account's orders commit or leave.

    Args:
        chains: served chains by chain id.
        sees_all: returns whether a request may list the orders of all owners.
    """

    def __init__(self, chains: ServedChains, store: Store, *, sees_all: Callable[[HttpCall], bool]) -> None:
        self._chains = chains
        self._sees_all = sees_all
        self._stored = StoredOrders(store)

    def endpoints(self) -> tuple[Endpoint, ...]:
        """Return the HTTP endpoints for orders, amounts committed by limit orders, and amounts still free."""
        return (
            _row(
                path="/v2/delta/orders",
                coroutine=self._list,
                summary="Delta orders of an owner, newest first, page by page",
                detail="Orders of `userAddress` or of `ids`; of all owners with an operator's API key.",
                query=OrdersQuery,
                answer=OrderPage,
            ),
            _row(
                path="/v2/delta/orders/{orderId}",
                coroutine=self._by_id,
                summary="A Delta order by its id",
                answer=OrderRecord,
            ),
            _row(
                path="/v2/delta/orders/hash/{hash}",
                coroutine=self._by_hash,
                summary="A Delta order by the hash of its build",
                answer=OrderRecord,
            ),
            _row(
                path=_COMMITTED,
                coroutine=self._committed,
                cost=5,
                summary="Amounts of each listed token that an account's open limit orders have committed",
                answer=FillableBalance,
            ),
            _row(
                path=f"{_COMMITTED}/{{token}}",
                coroutine=self._committed,
                cost=5,
                summary="Amount of a token that an account's open limit orders have committed",
                answer=FillableBalance,
            ),
            _row(
                path=_AVAILABLE,
                coroutine=self._available,
                cost=5,
                summary="Amounts of each listed token that an account can still give with new Delta orders",
                answer=FillableBalance,
            ),
            _row(
                path=f"{_AVAILABLE}/{{token}}",
                coroutine=self._available,
                cost=5,
                summary="Amount of a token that an account can still give with new Delta orders",
                answer=FillableBalance,
            ),
        )

    async def _by_id(self, call: HttpCall) -> Reply:
        text = call.parameters[0]
        (row,) = await self._stored.rows_of_ids([text])
        if row is None:
            raise OrderNotFound(field="orderId", got=text)
        return await self._record(row.order_hash)

    async def _by_hash(self, call: HttpCall) -> Reply:
        expected = f"0x and {2 * _HASH_BYTES} hexadecimal digits"
        order_hash = parse_hex(call.parameters[0], "hash", expected)
        if len(order_hash) != _HASH_BYTES:
            raise InvalidInput(field="hash", expected=expected, got=call.parameters[0])
        return await self._record(order_hash)

    async def _record(self, order_hash: bytes) -> Reply:
        record = await self._stored.record(order_hash)
        if record is None:
            raise OrderNotFound(field="hash", got=to_hex(order_hash))
        return Reply(200, encode(record))

    async def _list(self, call: HttpCall) -> Reply:
        query = decode_orders_query(call.request.query or b"")
        if query.user_address is None and query.ids is None and not self._sees_all(call):
            raise InvalidInput(
                field="userAddress", expected="an owner; or ids of orders, or an operator's X-API-KEY"
            )
        found = await self._page(query, _filter(query))
        page = OrderPage(
            found.records,
            found.total,
            query.page,
            query.limit,
            has_more=query.page * query.limit < found.total,
        )
        return Reply(200, encode(page))

    async def _page(self, query: OrdersQuery, wanted: DeltaFilter) -> Page:
        if query.ids is None:
            return await self._stored.page(wanted, query.page, query.limit)
        if len(query.ids) > VENUE_ORDER_IDS_MAX:
            raise InvalidInput(field="ids", expected=f"at most {VENUE_ORDER_IDS_MAX} ids", got=len(query.ids))
        return await self._stored.page_of_ids(query.ids, wanted, query.page, query.limit)

    async def _committed(self, call: HttpCall) -> Reply:
        served, user, tokens = self._account(call)
        taken = promised(await self._stored.settled_of(user, served.chain_id, OPEN, OrderType.LIMIT))
        answer: FillableBalance = {to_hex(token): str(taken.get(token, 0)) for token in tokens}
        return Reply(200, encode(answer))

    async def _available(self, call: HttpCall) -> Reply:
        served, user, tokens = self._account(call)
        held = {*served.tokens.by_address, *vaults_of(served.settings.strategies)}
        listed = [token for token in tokens if token in held]
        taken = promised(await self._stored.settled_of(user, served.chain_id, MAY_BE_SETTLED))
        # Read last: a fill since the first read then counts twice, and not never.
        usable = await in_time(usable_of(served, user, listed))
        answer: FillableBalance = {
            to_hex(token): str(fillable(usable.get(token, 0), taken.get(token, 0))) for token in tokens
        }
        return Reply(200, encode(answer))

    def _account(self, call: HttpCall) -> tuple[ServedChain, bytes, list[bytes]]:
        """Parse the path of a request for balances.

        Returns:
            (chain, account, tokens); the tokens are the path's token, or without a token in the path all
            listed tokens and the shares of the chain's strategies.
        """
        chain_text, user_text, *tokens = call.parameters
        served = delta_chain_at(self._chains, chain_in_path(chain_text), "chainId")
        user = parse_address(user_text, "user")
        held = (*served.tokens.by_address, *vaults_of(served.settings.strategies))
        return served, user, [parse_address(text, "token") for text in tokens] or list(dict.fromkeys(held))


def _filter(query: OrdersQuery) -> DeltaFilter:
    owner = None if query.user_address is None else parse_address(query.user_address, "userAddress")
    return DeltaFilter(owner, query.chain_id or (), query.type, query.on_chain_order_type, query.status or ())
