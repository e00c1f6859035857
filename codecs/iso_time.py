"""Format and check times of the API: ISO 8601 out, UTC with milliseconds and `Z`; Unix seconds in.

Source: spec 1.10.28 to 1.10.30, 1.16.4 and 2.3.3 (`deadline` and `expiry`).
Choice: The last year is 9999, since most clients parse no later year. A later deadline or expiry is refused;
    a later time in the store is written as the last millisecond of 9999.
"""

from datetime import datetime, timedelta

from ..config.errors import InvalidInput
from ..config.limits import UNIX_SECONDS_MAX

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  UTC; without a zone, so that `isoformat` writes none
_LAST_MS = UNIX_SECONDS_MAX * 1_000 + 999
_OTHER_UNITS = (
    ("milliseconds", range(10**12, 4 * 10**12)),
    ("microseconds", range(10**15, 4 * 10**15)),
)
"""(unit that clients send by mistake, numbers that mean a time from 2001 to 2096 in that unit) pairs."""


def iso_ms(time_ms: int) -> str:
    """Format Unix milliseconds as ISO 8601 text."""
    time = _EPOCH + timedelta(milliseconds=min(time_ms, _LAST_MS))
    return f"{time.isoformat(timespec='milliseconds')}Z"


def check_unix_seconds(field: str, value: int, instead: str = "") -> None:
    """Refuse a time after the year 9999: the client has probably sent milliseconds instead of seconds.

    Args:
        field: named in the error.
        value: the time, Unix seconds.
        instead: another valid value of the field, for the error: "0 for never, or ".

    Raises:
        InvalidInput: the time is after the year 9999; the error names the unit that the number fits, if any.
    """
    if value <= UNIX_SECONDS_MAX:
        return
    unit = next((name for name, numbers in _OTHER_UNITS if value in numbers), "")
    raise InvalidInput(
        f"this looks like {unit}" if unit else "",
        field=field,
        expected=f"{instead}Unix seconds, at most {UNIX_SECONDS_MAX}",
        got=value,
    )
