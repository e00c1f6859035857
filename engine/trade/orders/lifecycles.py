"""Life cycles of Delta and OTC orders, i.e. tables of rows (states before, reason, state after). Pure."""

from enum import StrEnum

from ....codecs.messages.vocabulary import OrderStatus, OtcState
from ...lifecycle import Lifecycle


class DeltaReason(StrEnum):
    """Reasons for which a Delta order changes its state; `delta/orders/life.py` makes the changes."""

    SIGNED = "signed"
    RESTS = "rests until its price or time"
    FIRST_BID = "first bid"
    FUNDS_MOVED = "funds moved"
    FUNDS_BACK = "funds are back, and it waits for its price or time or has begun"
    FUNDS_BACK_UNBID = "funds are back before its first bid"
    DEADLINE = "deadline"
    GAVE_WAY = "it waits, and gave its place to another order"
    CANCEL_SIGNED = "cancel signed"
    NOTHING_UNDER_WAY = "no settlement is under way"
    FAILURES = "too many settlements failed"
    SETTLED = "settled"
    NONCE_INVALIDATED = "nonce invalidated on chain"
    NONCE_USED = "nonce used by another order"
    FILL_GONE = "the settlement is not in the chain any more"
    FILL_GONE_CANCEL = "the settlement is not in the chain any more, and a cancel is signed"
    NONCE_FREE = "the nonce is free again"
    ORIGIN_SETTLED = "origin settled"
    DESTINATION_SETTLED = "destination settled"
    DESTINATION_FAILED = "destination failed"
    REFUND_VERIFIED = "refund verified"
    ORIGIN_GONE = "the origin's settlement is not in the chain any more"
    ORIGIN_GONE_CANCEL = "the origin's settlement is not in the chain any more, and a cancel is signed"
    DESTINATION_GONE = "the destination's fill or failure is not in the chain any more"
    REFUND_GONE = "the refund is not in the chain any more"


class OtcReason(StrEnum):
    """Reasons for which an OTC order changes its state; `otc/life.py` makes the changes."""

    ACCEPTED = "the contract accepts the signature"
    ACCEPTED_SHORT = "the contract accepts the signature, funds lack"
    FUNDS_LACK = "balance or allowance below the order"
    FUNDS_BACK = "funds are back"
    EXPIRY = "expiry"
    GAVE_WAY = "it gave its place to another order"
    FILLED = "filled whole"
    CANCELLED = "cancelOrder indexed"
    REOPENED = "its end is not in the chain any more"
    REOPENED_SHORT = "its end is not in the chain any more, funds lack"
    REOPENED_UNSIGNED = "its end is not in the chain any more, and no contract has accepted the signature"


_D, _WD = OrderStatus, DeltaReason
_O, _WO = OtcState, OtcReason

_OPEN = (_D.PENDING, _D.ACTIVE)
_BEFORE_END = (_D.AWAITING_SIGNATURE, *_OPEN, _D.SUSPENDED)
_BRIDGED = (_D.BRIDGING, _D.REFUNDING, _D.COMPLETED, _D.REFUNDED)

DELTA_LIFECYCLE: Lifecycle[OrderStatus, DeltaReason] = Lifecycle(
    "delta order",
    frozenset({_D.PENDING, _D.AWAITING_SIGNATURE}),
    (
        ((_D.AWAITING_SIGNATURE,), _WD.SIGNED, _D.PENDING),
        ((_D.PENDING,), _WD.RESTS, _D.ACTIVE),
        ((_D.PENDING,), _WD.FIRST_BID, _D.ACTIVE),
        (_OPEN, _WD.FUNDS_MOVED, _D.SUSPENDED),
        ((_D.SUSPENDED,), _WD.FUNDS_BACK, _D.ACTIVE),
        ((_D.SUSPENDED,), _WD.FUNDS_BACK_UNBID, _D.PENDING),
        (_BEFORE_END, _WD.DEADLINE, _D.EXPIRED),
        ((_D.AWAITING_SIGNATURE, _D.SUSPENDED), _WD.GAVE_WAY, _D.EXPIRED),
        (_BEFORE_END, _WD.CANCEL_SIGNED, _D.CANCELLING),
        ((_D.CANCELLING,), _WD.NOTHING_UNDER_WAY, _D.CANCELLED),
        (_OPEN, _WD.FAILURES, _D.FAILED),
        ((*_BEFORE_END, _D.CANCELLING), _WD.SETTLED, _D.COMPLETED),
        ((*_BEFORE_END, _D.CANCELLING), _WD.NONCE_INVALIDATED, _D.CANCELLED),
        ((*_OPEN, _D.SUSPENDED), _WD.NONCE_USED, _D.FAILED),
        ((_D.AWAITING_SIGNATURE, _D.CANCELLING), _WD.NONCE_USED, _D.CANCELLED),
        ((*_BEFORE_END, _D.CANCELLING), _WD.ORIGIN_SETTLED, _D.BRIDGING),
        ((_D.BRIDGING,), _WD.DESTINATION_SETTLED, _D.COMPLETED),
        ((_D.BRIDGING,), _WD.DESTINATION_FAILED, _D.REFUNDING),
        ((_D.REFUNDING,), _WD.REFUND_VERIFIED, _D.REFUNDED),
    ),
    (
        ((_D.EXPIRED, _D.FAILED, _D.CANCELLED), _WD.SETTLED, _D.COMPLETED),
        ((_D.COMPLETED,), _WD.FILL_GONE, _D.ACTIVE),
        ((_D.COMPLETED,), _WD.FILL_GONE_CANCEL, _D.CANCELLING),
        (_BRIDGED, _WD.NONCE_INVALIDATED, _D.CANCELLED),
        (_BRIDGED, _WD.NONCE_USED, _D.FAILED),
        ((_D.FAILED, _D.CANCELLED), _WD.NONCE_FREE, _D.ACTIVE),
        ((_D.EXPIRED, _D.FAILED, _D.CANCELLED), _WD.ORIGIN_SETTLED, _D.BRIDGING),
        ((_D.BRIDGING, _D.REFUNDING, _D.REFUNDED), _WD.ORIGIN_GONE, _D.ACTIVE),
        ((_D.BRIDGING, _D.REFUNDING, _D.REFUNDED), _WD.ORIGIN_GONE_CANCEL, _D.CANCELLING),
        ((_D.REFUNDING, _D.COMPLETED, _D.REFUNDED), _WD.DESTINATION_GONE, _D.BRIDGING),
        ((_D.REFUNDING, _D.REFUNDED), _WD.DESTINATION_SETTLED, _D.COMPLETED),
        ((_D.COMPLETED,), _WD.DESTINATION_FAILED, _D.REFUNDING),
        ((_D.BRIDGING, _D.COMPLETED), _WD.REFUND_VERIFIED, _D.REFUNDED),
        ((_D.REFUNDED,), _WD.REFUND_GONE, _D.REFUNDING),
    ),
)
"""Life cycle of a Delta order, i.e. its states and the allowed transitions: spec 1.11.

Choice: A nonce invalidated on chain cancels waiting orders as well as active ones.
Choice: A fill in flight wins over a suspension, and a fill indexed late over the deadline.
Choice: A bridged order follows the logs of both chains: any of its four states after the origin's settlement
    may follow any other, until both chains have confirmed the end.
"""

_LIVE = (_O.DRAFT, _O.PENDING, _O.SUSPENDED)
_ON_CHAIN = (_O.FULFILLED, _O.CANCELLED)

OTC_LIFECYCLE: Lifecycle[OtcState, OtcReason] = Lifecycle(
    "otc order",
    frozenset(_LIVE),
    (
        ((_O.DRAFT,), _WO.ACCEPTED, _O.PENDING),
        ((_O.DRAFT,), _WO.ACCEPTED_SHORT, _O.SUSPENDED),
        ((_O.PENDING,), _WO.FUNDS_LACK, _O.SUSPENDED),
        ((_O.SUSPENDED,), _WO.FUNDS_BACK, _O.PENDING),
        (_LIVE, _WO.FILLED, _O.FULFILLED),
        (_LIVE, _WO.CANCELLED, _O.CANCELLED),
        (_LIVE, _WO.EXPIRY, _O.EXPIRED),
        (_LIVE, _WO.GAVE_WAY, _O.EXPIRED),
    ),
    (
        ((_O.EXPIRED, _O.CANCELLED), _WO.FILLED, _O.FULFILLED),
        ((_O.EXPIRED, _O.FULFILLED), _WO.CANCELLED, _O.CANCELLED),
        (_ON_CHAIN, _WO.REOPENED, _O.PENDING),
        (_ON_CHAIN, _WO.REOPENED_SHORT, _O.SUSPENDED),
        (_ON_CHAIN, _WO.REOPENED_UNSIGNED, _O.DRAFT),
    ),
)
"""Life cycle of an OTC order, i.e. its states and allowed transitions: spec 2.5; choices.md#otc-orders."""
