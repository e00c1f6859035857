"""A change of one place of a source, as the operators find it, and the mutant that it makes. Pure."""

from typing import NamedTuple

from mutations.mutants import Mutant

_SHOWN_MAX = 60


class Edit(NamedTuple):
    """Bytes from `start` to `end` of a source that `new` replaces.

    Attributes:
        old: the replaced text.
        line: line of the first replaced byte, from 1.
    """

    start: int
    end: int
    line: int
    old: str
    new: str

    def applied(self, raw: bytes) -> bytes:
        """The source with the change."""
        return raw[: self.start] + self.new.encode() + raw[self.end :]


def as_edit(raw: bytes, start: int, end: int, new: str) -> Edit:
    """Edit of a source by its offsets in bytes."""
    return Edit(start, end, raw.count(b"\n", 0, start) + 1, raw[start:end].decode(), new)


def as_mutant(file: str, source: str, edit: Edit) -> Mutant:
    """Mutant of an edit; its old text is the edit's lines, and as many above as make it occur once."""
    raw = source.encode()
    first = raw.rfind(b"\n", 0, edit.start) + 1
    last = raw.find(b"\n", edit.end)
    last = len(raw) if last < 0 else last + 1
    while first > 0 and raw.count(raw[first:last]) > 1:
        first = raw.rfind(b"\n", 0, first - 1) + 1
    new = raw[first : edit.start] + edit.new.encode() + raw[edit.end : last]
    fault = f"Line {edit.line}: {_shown(edit.old)} becomes {_shown(edit.new)}."
    return Mutant(file, fault, raw[first:last].decode(), new.decode(), "")


def _shown(text: str) -> str:
    """A text on one line, in backticks."""
    line = " ".join(text.split())
    return f"`{line if len(line) <= _SHOWN_MAX else f'{line[:_SHOWN_MAX]}…'}`"
