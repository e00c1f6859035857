"""Life cycles as tables of transitions: which state may follow which, and why.

    Lifecycle(name, initial, steps, undone)     every check, diagram and property test is made from it

A step that the table does not have is our bug and raises TransitionError; whether it may be taken at that
moment is for whoever takes it to decide. What the chain takes back, or tells late, is `undone`: a step
against the table's direction that is only allowed while the state is not final.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Generic, TypeVar

from msgspec import Struct

from ..config.errors import TransitionError

S = TypeVar("S", bound=StrEnum)


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
