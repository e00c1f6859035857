"""Format the text of an error: one line, values shortened, nothing unprintable."""

from enum import Enum

from msgspec import UNSET

_GOT_CHARS_MAX = 80
_JSON_WORDS = {None: "null", True: "true", False: "false"}
_DETAIL_CHARS_MAX = 1_000
_EXCERPT_CHARS_MAX = 300


class _Nothing:
    """Default of an error's `got`: no value was received, or the value must not be repeated in the text."""

    def __repr__(self) -> str:
        return "NOTHING"


NOTHING = _Nothing()


def shown(value: object) -> str:
    """Format `value` as one short printable line for an error text; a long text is cut, its length added.

    Guarantees: the line shows a value in its JSON form: bytes as their text, an enum as its value. Arrays and
    objects appear only with their number of entries.
    """
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, bytes | bytearray):
        cut = value[: _GOT_CHARS_MAX + 1].decode("latin-1")
        return _shown_text(cut, len(value))
    if isinstance(value, str):
        return _shown_text(value, len(value))
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 512:
        return f"an integer of {value.bit_length()} bits"
    if isinstance(value, list | tuple | set | frozenset):
        return f"an array of {len(value)}"
    if isinstance(value, dict):
        return f"an object of {len(value)}"
    if value is UNSET:
        return "nothing"
    if value is None or isinstance(value, bool):
        return _JSON_WORDS[value]
    text = ascii(str(value))[1:-1]
    return text if len(text) <= _GOT_CHARS_MAX else f"{text[:_GOT_CHARS_MAX]}..."


def _shown_text(text: str, length: int) -> str:
    """Quote `text`; of a long text, quote the first characters and state the full `length`."""
    if length > _GOT_CHARS_MAX:
        return f"{ascii(text[: _GOT_CHARS_MAX // 2])[:_GOT_CHARS_MAX]}... ({length} long)"
    kept = ascii(text)
    return kept if len(kept) <= _GOT_CHARS_MAX else f"{kept[:_GOT_CHARS_MAX]}..."


def excerpt(written: bytes | str) -> str:
    """Quote the first 300 characters of what a counterparty wrote, as one printable line."""
    most = _EXCERPT_CHARS_MAX
    text = written if isinstance(written, str) else written[: 4 * most].decode(errors="replace")
    line = one_line(text[:most])[: 2 * most]
    return f"'{line}'" if len(written) <= most else f"'{line}...' ({len(written)} long)"


def one_line(text: str) -> str:
    """Format `text` as one printable line of a bounded length."""
    line = text[: _DETAIL_CHARS_MAX + 1]
    if not line.isprintable():
        line = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in line)
    return line if len(line) <= _DETAIL_CHARS_MAX else f"{line[:_DETAIL_CHARS_MAX]}..."


def sentence(message: str, field: str | None, expected: str | None, got: object, detail: str) -> str:
    """Join the parts of an error text, except empty ones: `message: field: expected X, got Y: detail`."""
    parts = [f"expected {expected}"] if expected else []
    if got is not NOTHING:
        parts.append(f"got {shown(got)}")
    said = ", ".join(parts)
    if field:
        said = f"{field}: {said}" if said else field
    return ": ".join(part for part in (message, said, detail) if part)
