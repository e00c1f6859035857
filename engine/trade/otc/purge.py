"""HTTP endpoint of the operator that ends OTC orders which the book should not hold.

    POST /operator/otc/purge   {"unlisted": true, "state": "DRAFT", "dryRun": true}

A request looks at a page of the open orders, ends those that match all its members, and returns the place
from which the next request goes on. Ended orders are EXPIRED, as orders that gave their places to others;
what their makers have signed can still be filled on the chain.

Choice: An operator ends OTC orders by what they have in common (maker, token, state), and not one by one.
"""

from collections.abc import Callable
from functools import partial

from ....codecs.messages.otc_messages import OtcPurgeBody, OtcPurged, decode_otc_purge
from ....codecs.messages.wire import encode
from ....config.errors import InvalidInput
from ....config.limits import OTC_LIVE_PURGE_ROWS_MAX, OTC_LIVE_PURGE_STEP_ROWS
from ....crypto.addresses import parse_address
from ....crypto.hexadecimal import parse_hex, to_hex
from ...host.server.routing import HttpCall, Reply
from ...store.queries import open_orders
from ...store.rows import OtcOrderRow
from ...store.store import Store
from ..api.routes import Endpoint
from ..orders.order_units import OTC
from ..orders.step import OrderStep
from .life import LIVE, gave_way
from .live_orders import OtcOrders

_HASH_BYTES, _SHARDS = 32, range(256)


class OtcPurge:
    """The endpoint that ends open OTC orders of a maker, of a token or in a state.

    Args:
        check_operator: refuses, by an error, a request without an operator's API key.
    """

    def __init__(self, orders: OtcOrders, store: Store, check_operator: Callable[[HttpCall], None]) -> None:
        self._orders = orders
        self._store = store
        self._check = check_operator

    def endpoints(self) -> tuple[Endpoint, ...]:
        """Return the endpoint as a row of the HTTP route table."""
        return (
            Endpoint(
                method="POST",
                path="/operator/otc/purge",
                coroutine=self._purge,
                needs_key=True,
                cost=5,
                group="Operation",
                summary="End OTC orders that the book should not hold; for operators",
                detail="A request looks at a page of the open orders; repeat it with its answer's `after`.",
                body=OtcPurgeBody,
                answer=OtcPurged,
            ),
        )

    async def _purge(self, call: HttpCall) -> Reply:
        self._check(call)
        body = decode_otc_purge(call.request.body)
        wanted = self._wanted(body)
        query = open_orders(OTC.orders, _SHARDS, _hash_of(body.after), OTC_LIVE_PURGE_ROWS_MAX)
        (rows,) = await self._store.read(query)
        found = [OTC.found(values) for values in rows]
        chosen = [row.order_hash for row in found if wanted(row)]
        ended = 0 if body.dry_run else await self._end(chosen, wanted, call.now_ms)
        after = to_hex(found[-1].order_hash) if len(found) == OTC_LIVE_PURGE_ROWS_MAX else ""
        return Reply(200, encode(OtcPurged(len(chosen) if body.dry_run else ended, after)))

    async def _end(self, hashes: list[bytes], wanted: Callable[[OtcOrderRow], bool], now_ms: int) -> int:
        """End orders that still match, some in one unit of the store, and return their number."""

        ended: set[bytes] = set()

        def decide(row: OtcOrderRow) -> OrderStep[OtcOrderRow] | None:
            found = gave_way(row, now_ms) if wanted(row) else None
            (ended.discard if found is None else ended.add)(row.order_hash)  # a conflict asks once more
            return found

        for at in range(0, len(hashes), OTC_LIVE_PURGE_STEP_ROWS):
            some = hashes[at : at + OTC_LIVE_PURGE_STEP_ROWS]
            # Any process takes the request, also for orders that another one runs: that one hears of the
            # change by the log, and the unit names each row's version.
            await self._orders.step_all(some, decide, is_fenced=False)
        return len(ended)

    def _wanted(self, body: OtcPurgeBody) -> Callable[[OtcOrderRow], bool]:
        """Return the test of an order that a request describes.

        Raises:
            InvalidInput: the request describes no orders, or names something malformed.
        """
        tests: list[Callable[[OtcOrderRow], bool]] = []
        if body.maker is not None:
            maker = parse_address(body.maker, "maker")
            tests.append(lambda row: row.maker == maker)
        if body.token is not None:
            token = parse_address(body.token, "token")
            tests.append(lambda row: token in (row.maker_asset, row.taker_asset))
        if body.state is not None:
            if body.state not in LIVE:
                raise InvalidInput(field="state", expected=", ".join(sorted(LIVE)), got=body.state)
            tests.append(lambda row: row.status is body.state)
        if body.unlisted:
            tests.append(self._orders.is_unlisted)
        if not tests:
            raise InvalidInput(
                field="maker", expected="a maker, a token, a state or unlisted", got="none of them"
            )
        if body.chain_id is not None:
            tests.append(lambda row: row.chain_id == body.chain_id)
        return partial(_matches, tests)


def _matches(tests: list[Callable[[OtcOrderRow], bool]], row: OtcOrderRow) -> bool:
    return row.status in LIVE and all(test(row) for test in tests)


def _hash_of(text: str) -> bytes:
    if not text:
        return b""
    expected = f"0x and {2 * _HASH_BYTES} hexadecimal digits"
    found = parse_hex(text, "after", expected)
    if len(found) != _HASH_BYTES:
        raise InvalidInput(field="after", expected=expected, got=text)
    return found
