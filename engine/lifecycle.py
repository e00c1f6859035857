"""Life cycles as tables of transitions: from which states a reason leads to which state.

    Lifecycle(name, initial, steps, undone)     every check, diagram and property test is made from it
    after, step (state, reason)                 the state that a step writes: steps name reasons, not states

A step that the table does not have is our bug and raises TransitionError. A reason names the guard of its
rows; the step function judges whether the guard holds. `undone` has the steps that the chain takes back or
tells late: they go against the table's direction and are only allowed while the state is not final.
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
    """One table.

    Args:
        initial: states that a new order may have.
        steps, undone: rows; a reason leads from a state to one state.

    Attributes:
        table: (before, reason) -> after, of all rows.
        steps: (before, after) -> why, as the diagram says it.
        undone: (before, after) -> why, of steps that the chain takes back or tells late.

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
        """Every state that can be reached."""
        return self.initial | {state for step in self.steps for state in step}

    def terminal(self) -> frozenset[S]:
        """The states that no step leaves."""
        return self.states() - {before for before, _ in self.steps}

    def before(self, reason: R) -> frozenset[S]:
        """The states that a reason leads away from."""
        return frozenset(state for state, why in self.table if why is reason)

    def after(self, before: S, reason: R) -> S | None:
        """The state that a reason leads to; None where the table has no row."""
        return self.table.get((before, reason))

    def step(self, before: S, reason: R) -> S:
        """The state after a reason; the same state where the reason leads to it already.

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
        lines += [
            f"    {before} --> {after}: undone or late, {why}" for (before, after), why in self.undone.items()
        ]
        lines += [f"    {state} --> [*]" for state in sorted(self.terminal())]
        return "\n".join(lines) + "\n"
