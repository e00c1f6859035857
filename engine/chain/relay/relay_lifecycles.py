"""Life cycles (states and allowed changes) of relay intents and of their signed transactions. Pure.

A relay intent is a call that a relayer gets mined once.
"""

from enum import StrEnum

from ...lifecycle import Lifecycle
from ...store.rows import IntentState, TxStatus


class IntentReason(StrEnum):
    """Reason for which a relay intent (a call to get mined) changes its state."""

    SIGNED = "signed"
    DEADLINE = "deadline"
    FORBIDDEN = "the key's policy forbids it"
    MINED = "mined"
    REVERTED = "mined and reverted"
    NONCE_TAKEN = "another sender used its nonce, for good"
    LATE = "deadline, and something else has its nonce for good"
    GIVEN_UP = "refused by nodes, and something else has its nonce for good"
    CONFIRMED = "confirmations"
    BLOCK_GONE = "its block is not in the chain any more"


class TxReason(StrEnum):
    """Reason for which a relayer's signed transaction changes its status."""

    MINED = "mined"
    REPLACED = "another of its nonce was mined, for good"
    CONFIRMED = "confirmations"
    CONFIRMED_REVERT = "reverted, confirmations"
    BLOCK_GONE = "its block is not in the chain any more"
    REVIVED = "the transaction that had its nonce is not in the chain any more, and it is signed again"


_I, _WI = IntentState, IntentReason
_T, _WT = TxStatus, TxReason

RELAY_INTENT_LIFECYCLE: Lifecycle[IntentState, IntentReason] = Lifecycle(
    "relay intent",
    frozenset({_I.WAITING}),
    (
        ((_I.WAITING,), _WI.SIGNED, _I.PENDING),
        ((_I.WAITING,), _WI.DEADLINE, _I.CANCELLED),
        ((_I.WAITING,), _WI.FORBIDDEN, _I.FAILED),
        ((_I.PENDING,), _WI.MINED, _I.MINED),
        ((_I.PENDING,), _WI.REVERTED, _I.REVERTED),
        ((_I.PENDING,), _WI.NONCE_TAKEN, _I.WAITING),
        ((_I.PENDING,), _WI.LATE, _I.CANCELLED),
        ((_I.PENDING,), _WI.GIVEN_UP, _I.FAILED),
        ((_I.MINED,), _WI.CONFIRMED, _I.FINAL),
        ((_I.REVERTED,), _WI.CONFIRMED, _I.FAILED),
    ),
    (
        ((_I.MINED, _I.REVERTED), _WI.BLOCK_GONE, _I.PENDING),
        ((_I.MINED,), _WI.REVERTED, _I.REVERTED),
        ((_I.REVERTED,), _WI.MINED, _I.MINED),
    ),
)
"""Life cycle of a relay intent, a call that a relayer gets mined once (engine/chain/relay/relay_plan.py)."""

RELAY_TRANSACTION_LIFECYCLE: Lifecycle[TxStatus, TxReason] = Lifecycle(
    "relay transaction",
    frozenset({_T.SIGNED}),
    (
        ((_T.SIGNED,), _WT.MINED, _T.MINED),
        ((_T.SIGNED,), _WT.REPLACED, _T.REPLACED),
        ((_T.MINED,), _WT.CONFIRMED, _T.FINAL),
        ((_T.MINED,), _WT.CONFIRMED_REVERT, _T.FAILED),
    ),
    (
        ((_T.MINED,), _WT.BLOCK_GONE, _T.SIGNED),
        ((_T.REPLACED,), _WT.REVIVED, _T.SIGNED),
    ),
)
"""Life cycle of a relayer's signed transaction; at most one transaction per nonce is mined."""

INTENT_IN_VAIN = frozenset({IntentState.FAILED, IntentState.CANCELLED, IntentState.REVERTED})
"""States of an intent whose call has had no effect, so that another intent may try again."""
