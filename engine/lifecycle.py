"""Life cycles as tables of transitions: (state, reason) -> next state.

    Lifecycle(name, initial, steps, undone)     the source of all checks, diagrams and property tests
    after, step (state, reason)                 the state that a step writes: steps name reasons, not states

A step missing in the table is a bug of the venue and raises TransitionError. A reason names the guard of its
rows; the step function judges whether the guard holds. `undone` has the steps that the chain takes back or
reports late: they go against the table's direction and are only allowed while the state is not final.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Generic, TypeVar

from ..config.errors import TransitionError

S = TypeVar("S", bound=StrEnum)
R = TypeVar("R", bound=StrEnum)

Transitions = Iterable[tuple[tuple[S, ...], R, S]]
"""(states before, reason, state after) of each row."""


class Lifecycle(Generic[S, R]):
    """Table of the transitions of one kind of order.

    Args:
        initial: states of new orders.
        steps, undone: rows; a reason leads from a state to one state.

    Attributes:
        table: (before, reason) -> after, of all rows.
        steps: (before, after) -> reasons, as the diagram shows them.
        undone: (before, after) -> reasons of steps that the chain takes back or reports late.

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
        """All states that can be reached."""
        return self.initial | {state for step in self.steps for state in step}

    def terminal(self) -> frozenset[S]:
        """States that no step leaves."""
        return self.states() - {before for before, _ in self.steps}

    def before(self, reason: R) -> frozenset[S]:
        """States that a reason leads away from."""
        return frozenset(state for state, why in self.table if why is reason)

    def after(self, before: S, reason: R) -> S | None:
        """The state that a reason leads to; None if the table has no row."""
        return self.table.get((before, reason))

    def step(self, before: S, reason: R) -> S:
        """The state after a reason; `before` itself if it already is the reason's result.

        Raises:
            TransitionError: the table has no such row.
        """
        after = self.after(before, reason)
        if after is not None:
            return after
        if (before, reason) not in self._ends:
            raise TransitionError(f"{self.name}: {reason!r} leads nowhere from {before}")
        return before

    def check_new(self, state: S) -> None:
        """Check that a new order may begin in a state.

        Raises:
            TransitionError: no order begins in this state.
        """
        if state not in self.initial:
            raise TransitionError(f"{self.name}: no order begins as {state}")

    def check(self, before: S, after: S, *, is_final: bool) -> None:
        """Check a change of state; an unchanged state always passes.

        Args:
            is_final: the chain can no longer take back `before`.

        Raises:
            TransitionError: the table has no such step, or the state is final.
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
        lines += [
            f"    {before} --> {after}: undone or late, {why}" for (before, after), why in self.undone.items()
        ]
        lines += [f"    {state} --> [*]" for state in sorted(self.terminal())]
        return "\n".join(lines) + "\n"
