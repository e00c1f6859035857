"""Write units in an open transaction: many units with one statement per table, or a single unit.

Events are written last, in the order of the batch's units, even if waves wrote the units in another order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ....config.errors import StoreError
from ..tables import ORDER_EVENT
from ..units import DONE, Cas, Change, Conflict, Drop, Duplicate, New, Put, Unit, UnitOutcome, values_of
from .postgres_batch import Form, RowPlace, Values, form

if TYPE_CHECKING:
    from .postgres_pipe import Pipe


class OutOfOrder(Exception):
    """Raised when writing several units of changes with shared statements would give a unit another outcome
    than writing the units one after the other.
    """


class Vanished(Exception):
    """Raised when a row that blocked an insertion cannot be found afterwards, because another transaction
    deleted the row or rolled back its insertion.
    """


class UnitWriter:
    """Writes the units of one batch in an open PostgreSQL transaction.

    Attributes:
        outcomes: outcome of each unit, in the order of the batch; None for a unit without an outcome yet.
    """

    def __init__(self, pipe: Pipe, units: Sequence[Unit]) -> None:
        self.outcomes: list[UnitOutcome | None] = [None] * len(units)
        self._pipe = pipe
        self._units = units
        self._events_are_in = False

    def together(self, numbers: Sequence[int], changed: dict[RowPlace, int]) -> None:
        """Write units that touch no row in common, with statements shared by all of them.

        First come the changes that can fail to apply, then the other changes of the units that succeeded.

        Args:
            numbers: numbers of the units in the batch.
            changed: row (by its key) -> number of the batch's first unit that rewrites or deletes the row.

        Raises:
            OutOfOrder: writing the units one after the other would give a unit another outcome.
        """
        news: defaultdict[str, dict[Values, tuple[int, Values]]] = defaultdict(dict)
        rewrites: defaultdict[str, dict[Values, tuple[int, Cas]]] = defaultdict(dict)
        for number in numbers:
            for change in self._units[number].changes:
                if type(change) is New:
                    row = values_of(change.row)
                    news[change.table][form(change.table).unique_of(0, row)] = (number, row)
                elif type(change) is Cas:
                    rewrites[change.table][tuple(change.key)] = (number, change)
        # Insertions first: `waves_of` puts a rewrite into the wave of an earlier New, which must not see it.
        for name, by_key in news.items():
            self._insert_new(form(name), by_key, changed)
        for name, decided in rewrites.items():
            self._rewrite(form(name), decided)
        self._belonging(numbers)

    def alone(self, number: int, *, with_events: bool = False) -> None:
        """Write one unit after setting a savepoint: all changes of the unit in order, or none.

        Args:
            number: number of the unit in the batch.
            with_events: write the unit's order events now instead of in `add_events`; the caller passes the
                same value for all units of the batch.
        """
        self._pipe.send(b"SAVEPOINT alone")
        outcome: UnitOutcome = DONE
        for change in self._units[number].changes:
            if change.table != ORDER_EVENT.name or with_events:
                outcome = self._change(number, change)
                if outcome is not DONE:
                    self._pipe.send(b"ROLLBACK TO alone")
                    break
        self._pipe.send(b"RELEASE alone")
        self._events_are_in = with_events
        self.outcomes[number] = outcome

    def add_events(self) -> bool:
        """Write the order events of all units with the outcome Done, unless `alone` has written them.

        Returns:
            Whether these units have events.
        """
        rows = [
            values_of(change.row)
            for unit, outcome in zip(self._units, self.outcomes, strict=True)
            if outcome is DONE
            for change in unit.changes
            if change.table == ORDER_EVENT.name and isinstance(change, New | Put)
        ]
        if rows and not self._events_are_in:
            events = form(ORDER_EVENT.name)
            self._pipe.send(events.insert, *events.rows(rows))
        return bool(rows)

    def settled(self) -> list[UnitOutcome]:
        """Return the outcome of every unit of the batch; StoreError if a unit has none."""
        outcomes = [outcome for outcome in self.outcomes if outcome is not None]
        if len(outcomes) < len(self.outcomes):
            raise StoreError("a unit ended without an outcome")
        return outcomes

    # --- Waves --------------------------------------------------------------------------------------

    def _insert_new(
        self, of: Form, by_key: dict[Values, tuple[int, Values]], changed: dict[RowPlace, int]
    ) -> None:
        rows = [row for _, row in by_key.values()]
        inserted = self._pipe.ask(of.insert_new, *of.rows(rows))
        if len(inserted) == len(rows):
            return
        left = {key: by_key[key] for key in by_key.keys() - set(inserted)}
        name = of.table.name
        for number, unique in enumerate(of.table.unique):
            wanted = {of.unique_of(number, row): key for key, (_, row) in left.items()}
            if not wanted:
                return
            for row in self._pipe.ask(of.found(unique), *of.some(unique.columns, list(wanted))):
                unit, _ = left.pop(wanted[of.unique_of(number, row)])
                if changed.get((name, 0, of.unique_of(0, row)), unit) < unit:
                    raise OutOfOrder
                self.outcomes[unit] = Duplicate(name, number, row)
        if left:
            raise Vanished

    def _rewrite(self, of: Form, decided: dict[Values, tuple[int, Cas]]) -> None:
        key, name = of.table.key, of.table.name
        given = [
            (*change.values, *place, change.version) for place, (_, change) in sorted(decided.items())
        ]  # always in the same order, so that two writers do not wait for each other
        made = self._pipe.ask(of.rewrite, *of.some((*of.table.mutable, *key, "version"), given))
        if len(made) == len(given):
            return
        lost = list(decided.keys() - set(made))
        rows = self._pipe.ask(of.found(of.table.unique[0]), *of.some(key, lost))
        there = {of.unique_of(0, row): row for row in rows}
        for place in lost:
            self.outcomes[decided[place][0]] = Conflict(name, there.get(place))

    def _belonging(self, numbers: Sequence[int]) -> None:
        drops: defaultdict[str, list[Values]] = defaultdict(list)
        puts: defaultdict[str, list[Values]] = defaultdict(list)
        for number in numbers:
            if self.outcomes[number] is not None:
                continue
            self.outcomes[number] = DONE
            for change in self._units[number].changes:
                if type(change) is Put:
                    if change.table != ORDER_EVENT.name:
                        puts[change.table].append(values_of(change.row))
                elif type(change) is Drop:
                    drops[change.table].append(tuple(change.key))
        for name, keys in drops.items():
            self._pipe.send(form(name).delete, *form(name).some(form(name).table.key, keys))
        for name, rows in puts.items():
            self._pipe.send(form(name).insert, *form(name).rows(rows))

    # --- One change ---------------------------------------------------------------------------------

    def _change(self, number: int, change: Change) -> UnitOutcome:
        of = form(change.table)
        match change:
            case Put():
                self._pipe.send(of.insert, *of.rows([values_of(change.row)]))
            case Drop():
                self._pipe.send(of.delete, *of.some(of.table.key, [tuple(change.key)]))
            case New():
                row = values_of(change.row)
                self._insert_new(of, {of.unique_of(0, row): (number, row)}, {})
            case Cas():
                self._rewrite(of, {tuple(change.key): (number, change)})
        outcome, self.outcomes[number] = self.outcomes[number], None
        return DONE if outcome is None else outcome
