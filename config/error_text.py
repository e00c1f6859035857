"""The words of an error: one line, values shortened, nothing unprintable."""

from decimal import Decimal

_GOT_CHARS_MAX = 80
_JSON_WORDS = {None: "null", True: "true", False: "false"}
_DETAIL_CHARS_MAX = 1_000


class _Nothing:
    """The default of `got`: nothing came, or what came must not be repeated."""

    def __repr__(self) -> str:
        return "NOTHING"


NOTHING = _Nothing()


def shown(value: object) -> str:
    """`value` as one short printable line for an error text; long values are cut, with their length."""
    if isinstance(value, str | bytes | bytearray) and len(value) > _GOT_CHARS_MAX:
        kept = ascii(value[: _GOT_CHARS_MAX // 2])
        return f"{kept[:_GOT_CHARS_MAX]}... ({len(value)} long)"
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 512:
        return f"an integer of {value.bit_length()} bits"
    if isinstance(value, list | dict | tuple | set):
        return f"{type(value).__name__} of {len(value)}"
    if value is None or isinstance(value, bool):
        return _JSON_WORDS[value]
    text = str(value) if isinstance(value, Decimal) else ascii(value)
    return text if len(text) <= _GOT_CHARS_MAX else f"{text[:_GOT_CHARS_MAX]}..."


def one_line(text: str) -> str:
    """`text` as one printable line of a bounded length."""
    line = text[: _DETAIL_CHARS_MAX + 1]
    if not line.isprintable():
        line = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in line)
    return line if len(line) <= _DETAIL_CHARS_MAX else f"{line[:_DETAIL_CHARS_MAX]}..."


def sentence(message: str, field: str | None, expected: str | None, got: object, detail: str) -> str:
    """`message: field: expected this, got that: detail`, without what is empty."""
    parts = [f"expected {expected}"] if expected else []
    if got is not NOTHING:
        parts.append(f"got {shown(got)}")
    said = ", ".join(parts)
    if field:
        said = f"{field}: {said}" if said else field
    return ": ".join(part for part in (message, said, detail) if part)
