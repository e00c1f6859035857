"""The life cycles of a relay intent and of its signed transactions. Pure."""

from ...lifecycle import Lifecycle
from ...store.rows import IntentState, TxStatus

_I = IntentState
_T = TxStatus

RELAY_INTENT_LIFECYCLE: Lifecycle[IntentState] = Lifecycle(
    "relay intent",
    frozenset({_I.WAITING}),
    {
        (_I.WAITING, _I.PENDING): "signed",
        (_I.WAITING, _I.CANCELLED): "deadline",
        (_I.WAITING, _I.FAILED): "the key's policy forbids it",
        (_I.PENDING, _I.MINED): "mined",
        (_I.PENDING, _I.REVERTED): "mined and reverted",
        (_I.PENDING, _I.WAITING): "somebody else used its nonce, for good",
        (_I.PENDING, _I.CANCELLED): "deadline, and something else has its nonce for good",
        (_I.PENDING, _I.FAILED): "refused by nodes, and something else has its nonce for good",
        (_I.MINED, _I.FINAL): "confirmations",
        (_I.REVERTED, _I.FAILED): "confirmations",
    },
    {
        (_I.MINED, _I.PENDING): "its block is not in the chain any more",
        (_I.REVERTED, _I.PENDING): "its block is not in the chain any more",
        (_I.MINED, _I.REVERTED): "it stands in another block",
        (_I.REVERTED, _I.MINED): "it stands in another block",
    },
)
"""What a relayer is to get mined once (engine/chain/relay/relay_plan.py)."""

RELAY_TRANSACTION_LIFECYCLE: Lifecycle[TxStatus] = Lifecycle(
    "relay transaction",
    frozenset({_T.SIGNED}),
    {
        (_T.SIGNED, _T.MINED): "mined",
        (_T.SIGNED, _T.REPLACED): "another of its nonce was mined, for good",
        (_T.MINED, _T.FINAL): "confirmations",
        (_T.MINED, _T.FAILED): "reverted, confirmations",
    },
    {
        (_T.MINED, _T.SIGNED): "its block is not in the chain any more",
        (_T.REPLACED, _T.SIGNED): "what had its nonce is not in the chain any more, and it is signed again",
    },
)
"""The signed transactions that stand for one another in that."""
