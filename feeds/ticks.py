"""Common times of periodic looks: looks whose periods divide one another run in one pass of the event loop.

An idle process with many looks then wakes as often as its most frequent look, and not once for each.
"""

from math import floor

import trio


def next_tick(every_s: float) -> float:
    """Return the next multiple of `every_s` on trio's clock, in trio seconds."""
    now = trio.current_time()
    at = (floor(now / every_s) + 1) * every_s
    return at if at > now else at + every_s  # the product of a rounded quotient may be `now` itself


def nearest_tick(at: float, every_s: float) -> float:
    """Return the multiple of `every_s` on trio's clock that is nearest to the time `at`, in trio seconds."""
    return round(at / every_s) * every_s


async def tick(every_s: float) -> None:
    """Sleep until `next_tick`: at most `every_s` seconds."""
    await trio.sleep_until(next_tick(every_s))
