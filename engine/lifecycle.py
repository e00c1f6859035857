"""Life cycles of orders as tables of transitions: (state, reason) -> next state.

    Lifecycle(name, initial, steps, undone)     the source of all checks, diagrams and property tests
    after, step (state, reason)                 the next state: callers name a reason, not the next state

A transition that the table lacks is a bug of the venue and raises TransitionError. A reason names the
condition of its transitions; the callers of `step`, not this module, check the condition. `undone` has the
transitions that follow from a re-organisation of the chain or from logs that were read late: these
transitions may lead away from end states, and are allowed only while the order's state is not final.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Generic, TypeVar

from ..config.errors import TransitionError

S = TypeVar("S", bound=StrEnum)
R = TypeVar("R", bound=StrEnum)

Transitions = Iterable[tuple[tuple[S, ...], R, S]]
"""Rows of a life cycle's table, each (states before, reason, state after)."""


class Lifecycle(Generic[S, R]):
    """Life cycle of one kind of orders, as a table of the allowed transitions between states.

    Args:
        name: kind of the orders, for error messages.
        initial: states of new orders.
        steps: rows of ordinary transitions, each (states before, reason, state after).
        undone: rows of transitions that follow from a re-organisation or a late log, allowed until finality.

    Attributes:
        table: (before, reason) -> after, of all rows.
        steps: (before, after) -> reasons of ordinary transitions, as the diagram shows them.
        undone: (before, after) -> reasons of transitions that follow from a re-organisation or a late log.

    Raises:
        ValueError: two rows have the same reason and state before.
    """

    def __init__(
        self, name: str, initial: frozenset[S], steps: Transitions[S, R], undone: Transitions[S, R]
    ) -> None:
        self.name, self.initial = name, initial
        self.table: dict[tuple[S, R], S] = {}
        self.steps = self._taken_in(steps)
        self.undone = self._taken_in(undone)
        self._ends = {(after, reason) for (_, reason), after in self.table.items()}

    def _taken_in(self, rows: Transitions[S, R]) -> Mapping[tuple[S, S], str]:
        whys: dict[tuple[S, S], str] = {}
        for states, reason, after in rows:
            for before in states:
                if (before, reason) in self.table:
                    raise ValueError(f"{self.name}: two rows lead from {before} by {reason}")
                self.table[before, reason] = after
                known = whys.get((before, after))
                whys[before, after] = str(reason) if known is None else f"{known}, or {reason}"
        return whys

    def states(self) -> frozenset[S]:
        """All states that an order of this kind can have."""
        return self.initial | {state for step in self.steps for state in step}

    def terminal(self) -> frozenset[S]:
        """End states, i.e. states from which no ordinary transition leads to another state."""
        return self.states() - {before for before, _ in self.steps}

    def before(self, reason: R) -> frozenset[S]:
        """States that an order can leave by a transition with this reason."""
        return frozenset(state for state, why in self.table if why is reason)

    def after(self, before: S, reason: R) -> S | None:
        """State that the transition from `before` with this reason leads to; None if none exists."""
        return self.table.get((before, reason))

    def step(self, before: S, reason: R) -> S:
        """State to which the transition from `before` with this reason leads.

        If the table has no such transition, but a transition with this reason leads to `before` from another
        state, the result is `before`, since the order has made that transition already.

        Raises:
            TransitionError: no transition with this reason leads from `before` or to `before`.
        """
        after = self.after(before, reason)
        if after is not None:
            return after
        if (before, reason) not in self._ends:
            raise TransitionError(f"{self.name}: {reason!r} leads nowhere from {before}")
        return before

    def check_new(self, state: S) -> None:
        """Check that a new order may begin in this state.

        Raises:
            TransitionError: the life cycle's initial states do not include the state.
        """
        if state not in self.initial:
            raise TransitionError(f"{self.name}: no order begins as {state}")

    def check(self, before: S, after: S, *, is_final: bool) -> None:
        """Check that an order may change from one state to another; an unchanged state is always allowed.

        Args:
            is_final: whether `before` is final, i.e. no re-organisation of the chain can undo it any more.

        Raises:
            TransitionError: the table has no such transition, or has it in `undone` and the state is final.
        """
        if before is after or (before, after) in self.steps:
            return
        if (before, after) in self.undone:
            if not is_final:
                return
            raise TransitionError(f"{self.name}: {before} is final, it cannot go back to {after}")
        raise TransitionError(f"{self.name}: no step leads from {before} to {after}")

    def diagram(self) -> str:
        """Life cycle's table as the text of a Mermaid state diagram."""
        lines = ["stateDiagram-v2"]
        lines += [f"    [*] --> {state}" for state in sorted(self.initial)]
        lines += [f"    {before} --> {after}: {why}" for (before, after), why in self.steps.items()]
        lines += [
            f"    {before} --> {after}: undone or late, {why}" for (before, after), why in self.undone.items()
        ]
        lines += [f"    {state} --> [*]" for state in sorted(self.terminal())]
        return "\n".join(lines) + "\n"
