"""Compute the pause before a retry: it doubles with each failure in a row, with jitter. Pure."""

from random import Random

from ..config.timeouts import FEED_PAUSE_S, FEED_PAUSE_S_MAX

_DOUBLINGS_MAX = 16


def pause_s(failures: int, random: Random) -> float:
    """Compute the seconds to wait before a retry, after `failures` failures in a row.

    The pause doubles with each failure up to a cap; a random factor of 0.5 to 1.5 keeps callers from retrying
    together.
    """
    bare_s: float = FEED_PAUSE_S * 2 ** min(failures - 1, _DOUBLINGS_MAX)
    return min(bare_s, FEED_PAUSE_S_MAX) * random.uniform(0.5, 1.5)
