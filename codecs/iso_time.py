"""Times as the API writes them: ISO 8601, UTC with milliseconds and `Z`.

Source: document 1, "Delta order record".
Choice: years above 9999 have a sign and six digits, as ECMAScript writes them; a later time than it knows is
    written as its last.
"""

from datetime import datetime, timedelta

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  UTC throughout, and its text has no zone
_LAST_MS = 8_640_000_000_000_000  # ECMAScript's time range
_YEARS = 400  # the calendar repeats after so many
_YEARS_MS = 146_097 * 86_400_000
_YEAR_MAX_MS = 253_402_300_800_000  # the first millisecond of the year 10000


def iso_ms(time_ms: int) -> str:
    """A time since 1970, in Unix milliseconds, as ISO 8601."""
    time_ms = min(time_ms, _LAST_MS)
    cycles = max(0, (time_ms - _YEAR_MAX_MS) // _YEARS_MS + 1)
    rest_ms = time_ms - cycles * _YEARS_MS
    text = (_EPOCH + timedelta(milliseconds=rest_ms)).isoformat(timespec="milliseconds")
    if cycles:
        text = f"+{int(text[:4]) + cycles * _YEARS:06d}{text[4:]}"
    return f"{text}Z"
