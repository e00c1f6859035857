"""HTTP endpoints that accept signed Delta orders and cancellations.

Source: spec 1.17, 1.18; interop.md 3.
Choice: An order without a partner has its API key's default partner where the signed fee is that partner's.
"""

from collections.abc import Callable
from functools import partial

from .....codecs.messages.delta_messages import (
    CancelBody,
    CancellationBuildBody,
    CancellationBuildResponse,
    CancelResponse,
    OrderRecord,
    SubmitBody,
    decode_cancel_body,
    decode_cancellation_build_body,
    decode_submit_body,
)
from .....codecs.messages.wire import encode
from .....config.settings import Settings
from ....host.admission.ledger import Causer
from ....host.admission.signatures import SignatureBudget
from ....host.server.routing import HttpCall, Reply
from ....store.store import Store
from ...api.routes import Endpoint
from ...served.bridge_lanes import BridgeLanes
from ...served.served_chain import ServedChains
from ..intake.order_desk import OrderDesk, Submitter
from ..intake.stored_orders import StoredOrders
from ..orders.live_orders import LiveOrders

_row = partial(Endpoint, method="POST", group="Delta orders")


class OrderSubmission:
    """HTTP endpoints to submit and to cancel Delta orders.

    Args:
        chains: served chains by chain id.
        bridges: lanes between the chains.
        settings: settings of the partners.
        delta_gas: units of gas that a settlement uses besides its fills.
        orders: Delta orders in memory, to which submitted orders are added.
        partner_of: returns the default partner of a request's API key; empty if the key has none.
        key_of: returns the name of a request's API key; empty for none.
        causer_of: returns the caller that answers for what a request costs.
        signatures_of: returns, for a request, the object that limits how many wrong signatures the request's
            caller may send.
    """

    def __init__(
        self,
        chains: ServedChains,
        bridges: BridgeLanes,
        settings: Settings,
        orders: LiveOrders,
        store: Store,
        *,
        delta_gas: int,
        partner_of: Callable[[HttpCall], str],
        key_of: Callable[[HttpCall], str],
        causer_of: Callable[[HttpCall], Causer],
        signatures_of: Callable[[HttpCall], SignatureBudget],
    ) -> None:
        self._desk = OrderDesk(
            chains,
            bridges,
            orders,
            StoredOrders(store),
            settings.partners,
            strict_partner=settings.strict_partner,
            delta_gas=delta_gas,
        )
        self._key_of = key_of
        self._causer_of = causer_of
        self._partner_of = partner_of
        self._signatures_of = signatures_of

    def endpoints(self) -> tuple[Endpoint, ...]:
        """Return the HTTP endpoints that submit an order, build a cancellation, and cancel orders."""
        return (
            _row(
                path="/v2/delta/orders",
                coroutine=self._submit,
                cost=5,
                summary="Submit a signed Delta order",
                detail="`order` is `toSign.value` of the build. The answer comes once the order is stored "
                "durably; a repeated order gets the stored record.",
                body=SubmitBody,
                answer=OrderRecord,
            ),
            _row(
                path="/v2/delta/orders/build/cancellation",
                coroutine=self._build_cancellation,
                summary="The typed data that cancels orders, and its hash",
                body=CancellationBuildBody,
                answer=CancellationBuildResponse,
            ),
            _row(
                path="/v2/delta/orders/cancel",
                coroutine=self._cancel,
                cost=5,
                summary="Cancel orders of one owner and chain, all of them or none",
                detail="A settlement that is under way may still go through.",
                body=CancelBody,
                answer=CancelResponse,
            ),
        )

    async def _submit(self, call: HttpCall) -> Reply:
        with self._signatures_of(call) as signatures:
            body = decode_submit_body(call.request.body)
            causer, has_key = self._causer_of(call).name, bool(self._key_of(call))
            submitter = Submitter(causer, self._partner_of(call), has_key)
            record = await self._desk.submit(body, call.now_ms, signatures, submitter)
            return Reply(200, encode(record))

    async def _build_cancellation(self, call: HttpCall) -> Reply:
        body = decode_cancellation_build_body(call.request.body)
        return Reply(200, encode(await self._desk.cancellation(body)))

    async def _cancel(self, call: HttpCall) -> Reply:
        with self._signatures_of(call) as signatures:
            body = decode_cancel_body(call.request.body)
            return Reply(200, encode(await self._desk.cancel(body, call.now_ms, signatures)))
