"""The life cycles of Delta and OTC orders. Pure."""

from ...codecs.messages.vocabulary import OrderStatus, OtcState
from ..lifecycle import Lifecycle

_D = OrderStatus
_O = OtcState

DELTA_LIFECYCLE: Lifecycle[OrderStatus] = Lifecycle(
    "delta order",
    frozenset({_D.PENDING, _D.AWAITING_SIGNATURE}),
    {
        (_D.AWAITING_SIGNATURE, _D.PENDING): "signed",
        (_D.AWAITING_SIGNATURE, _D.EXPIRED): "deadline",
        (_D.AWAITING_SIGNATURE, _D.CANCELLING): "cancel signed",
        (_D.AWAITING_SIGNATURE, _D.CANCELLED): "nonce invalidated on chain",
        (_D.AWAITING_SIGNATURE, _D.COMPLETED): "signed and settled",
        (_D.PENDING, _D.ACTIVE): "first bid, or it rests",
        (_D.PENDING, _D.SUSPENDED): "funds moved",
        (_D.PENDING, _D.EXPIRED): "deadline",
        (_D.PENDING, _D.FAILED): "can never settle",
        (_D.PENDING, _D.COMPLETED): "settled",
        (_D.PENDING, _D.BRIDGING): "origin settled",
        (_D.PENDING, _D.CANCELLING): "cancel signed",
        (_D.PENDING, _D.CANCELLED): "nonce invalidated on chain",
        (_D.ACTIVE, _D.SUSPENDED): "funds moved",
        (_D.ACTIVE, _D.EXPIRED): "deadline",
        (_D.ACTIVE, _D.FAILED): "can never settle",
        (_D.ACTIVE, _D.COMPLETED): "settled",
        (_D.ACTIVE, _D.BRIDGING): "origin settled",
        (_D.ACTIVE, _D.CANCELLING): "cancel signed",
        (_D.ACTIVE, _D.CANCELLED): "nonce invalidated on chain",
        (_D.SUSPENDED, _D.ACTIVE): "funds are back",
        (_D.SUSPENDED, _D.PENDING): "funds are back",
        (_D.SUSPENDED, _D.EXPIRED): "deadline",
        (_D.SUSPENDED, _D.FAILED): "can never settle",
        (_D.SUSPENDED, _D.CANCELLING): "cancel signed",
        (_D.SUSPENDED, _D.CANCELLED): "nonce invalidated on chain",
        (_D.SUSPENDED, _D.COMPLETED): "a fill in flight won",
        (_D.SUSPENDED, _D.BRIDGING): "a fill in flight won",
        (_D.CANCELLING, _D.CANCELLED): "cancel confirmed",
        (_D.CANCELLING, _D.COMPLETED): "a fill in flight won",
        (_D.CANCELLING, _D.BRIDGING): "a fill in flight won",
        (_D.BRIDGING, _D.COMPLETED): "destination settled",
        (_D.BRIDGING, _D.REFUNDING): "destination failed",
        (_D.REFUNDING, _D.REFUNDED): "refund verified",
    },
    {
        (_D.COMPLETED, _D.ACTIVE): "the settlement is not in the chain any more",
        (_D.COMPLETED, _D.CANCELLING): "the settlement is not in the chain any more",
        (_D.COMPLETED, _D.CANCELLED): "the nonce is invalidated in place of the settlement",
        (_D.COMPLETED, _D.FAILED): "the nonce is used elsewhere in place of the settlement",
        (_D.COMPLETED, _D.BRIDGING): "the destination's fill is not in the chain any more",
        (_D.BRIDGING, _D.ACTIVE): "the origin's settlement is not in the chain any more",
        (_D.EXPIRED, _D.COMPLETED): "a fill before the deadline was told late",
        (_D.EXPIRED, _D.BRIDGING): "a fill before the deadline was told late",
        (_D.FAILED, _D.ACTIVE): "what failed it is not in the chain any more",
        (_D.CANCELLED, _D.ACTIVE): "the invalidation is not in the chain any more",
        (_D.CANCELLED, _D.CANCELLING): "the cancellation is not in the chain any more",
        (_D.FAILED, _D.COMPLETED): "a fill before it was told late",
        (_D.CANCELLED, _D.COMPLETED): "a fill before it was told late",
        (_D.REFUNDED, _D.REFUNDING): "the refund is not in the chain any more",
    },
)
"""Life cycle of a Delta order: spec 1.11.

Choice: A nonce invalidated on chain cancels waiting orders as well as active ones.
Choice: A fill in flight wins over a suspension, and a fill indexed late over the deadline.
"""

OTC_LIFECYCLE: Lifecycle[OtcState] = Lifecycle(
    "otc order",
    frozenset({_O.DRAFT, _O.PENDING, _O.SUSPENDED}),
    {
        (_O.DRAFT, _O.PENDING): "the contract accepts the signature",
        (_O.DRAFT, _O.SUSPENDED): "the contract accepts the signature, funds lack",
        (_O.DRAFT, _O.EXPIRED): "expiry",
        (_O.DRAFT, _O.CANCELLED): "cancelOrder indexed",
        (_O.DRAFT, _O.FULFILLED): "filled whole",
        (_O.PENDING, _O.SUSPENDED): "balance or allowance below the order",
        (_O.PENDING, _O.FULFILLED): "filled whole",
        (_O.PENDING, _O.CANCELLED): "cancelOrder indexed",
        (_O.PENDING, _O.EXPIRED): "expiry",
        (_O.SUSPENDED, _O.PENDING): "funds are back",
        (_O.SUSPENDED, _O.FULFILLED): "filled whole",
        (_O.SUSPENDED, _O.CANCELLED): "cancelOrder indexed",
        (_O.SUSPENDED, _O.EXPIRED): "expiry",
    },
    {
        (_O.FULFILLED, _O.PENDING): "the fill is not in the chain any more",
        (_O.FULFILLED, _O.SUSPENDED): "the fill is not in the chain any more",
        (_O.FULFILLED, _O.DRAFT): "the fill is not in the chain any more",
        (_O.FULFILLED, _O.CANCELLED): "the cancellation is in the chain in place of the fill",
        (_O.EXPIRED, _O.FULFILLED): "a fill before the expiry was told late",
        (_O.EXPIRED, _O.CANCELLED): "a cancellation before the expiry was told late",
        (_O.CANCELLED, _O.PENDING): "the cancellation is not in the chain any more",
        (_O.CANCELLED, _O.SUSPENDED): "the cancellation is not in the chain any more",
        (_O.CANCELLED, _O.DRAFT): "the cancellation is not in the chain any more",
        (_O.CANCELLED, _O.FULFILLED): "the fill is in the chain in place of the cancellation",
    },
)
"""Life cycle of an OTC order: spec 2.5; choices.md#otc-orders."""
