"""Life cycles as tables of transitions: which state may follow which, and why.

    Lifecycle(name, initial, steps, undone)     every check, diagram and property test is made from it

A step that the table does not have is our bug and raises TransitionError; whether it may be taken at that
moment is for whoever takes it to decide. What the chain takes back, or tells late, is `undone`: a step
against the table's direction that is only allowed while the state is not final.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Generic, TypeVar

from msgspec import Struct

from ..codecs.messages.vocabulary import OrderStatus, OtcState
from ..config.errors import TransitionError
from .store.rows import IntentState, TxStatus

S = TypeVar("S", OrderStatus, OtcState, IntentState, TxStatus)


class Lifecycle(Struct, Generic[S], frozen=True):
    """One table.

    Attributes:
        initial: states that a new order may have.
        steps: (from, to) -> why, as the diagram says it.
        undone: (from, to) -> why, of what the chain took back or told late.
    """

    name: str
    initial: frozenset[S]
    steps: Mapping[tuple[S, S], str]
    undone: Mapping[tuple[S, S], str]

    def states(self) -> frozenset[S]:
        """Every state that can be reached."""
        return self.initial | {state for step in self.steps for state in step}

    def terminal(self) -> frozenset[S]:
        """The states that no step leaves."""
        return self.states() - {before for before, _ in self.steps}

    def check_new(self, state: S) -> None:
        """Pass, or raise TransitionError: no order begins so."""
        if state not in self.initial:
            raise TransitionError(f"{self.name}: no order begins as {state}")

    def check(self, before: S, after: S, *, is_final: bool) -> None:
        """Pass, or raise TransitionError; staying is always allowed.

        Args:
            is_final: the chain cannot take it back any more.
        """
        if before is after or (before, after) in self.steps:
            return
        if (before, after) in self.undone:
            if not is_final:
                return
            raise TransitionError(f"{self.name}: {before} is final, it cannot go back to {after}")
        raise TransitionError(f"{self.name}: no step leads from {before} to {after}")

    def diagram(self) -> str:
        """The table as a Mermaid state diagram."""
        lines = ["stateDiagram-v2"]
        lines += [f"    [*] --> {state}" for state in sorted(self.initial)]
        lines += [f"    {before} --> {after}: {why}" for (before, after), why in self.steps.items()]
        lines += [f"    {before} --> {after}: undone, {why}" for (before, after), why in self.undone.items()]
        lines += [f"    {state} --> [*]" for state in sorted(self.terminal())]
        return "\n".join(lines) + "\n"


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

PAGE = "docs/lifecycles.md"


def page() -> str:
    """docs/lifecycles.md: the tables as diagrams."""
    return f"""# Life cycles

Which state may follow which, and why. Every change that is stored is checked against these
tables (`engine/lifecycle.py`), from which `make catalogue` generates this page. *Undone* is what a
re-organisation of the chain takes back, or what the chain tells late; it is possible until the state is deep
enough in the chain to be final.

## Delta orders

```mermaid
{DELTA_LIFECYCLE.diagram()}```

## OTC orders

```mermaid
{OTC_LIFECYCLE.diagram()}```

## What a relayer is to get mined

```mermaid
{RELAY_INTENT_LIFECYCLE.diagram()}```

## The transactions that it signs

```mermaid
{RELAY_TRANSACTION_LIFECYCLE.diagram()}```
"""


def _write() -> None:
    (Path(__file__).resolve().parents[1] / PAGE).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    _write()
