"""Token buckets of rate limits, in exact integers: the tokens that each caller may still spend. Pure.

A bucket of `burst` tokens that refills by `per_s` tokens a second is one number: the time at which the bucket
is full again. Taking tokens moves this time later, at most to the time at which a bucket that is empty now is
full. Time is counted in ticks so fine that a token and a burst are whole numbers of ticks, so no value is
rounded.

    ticks now ------ full_at              tokens left = burst - (full_at - now) / ticks of a token

A bucket that is full again equals a bucket that was never used, and only full buckets are removed.

A request that costs more than a full bucket takes all of it. If the table of callers is full and all its
buckets are in use, a new caller has to retry in a second.
"""

from collections import deque
from collections.abc import Hashable
from fractions import Fraction

from msgspec import Struct

from ....config.limits import ADMISSION_CALLERS_MAX
from ....config.sections.venue import Rate

_LOOKS = 2  # callers checked for removal at each new one: so the table shrinks faster than it grows
_LOOKS_MAX = 64  # callers checked if the table has no room


class TokensTaken(Struct, gc=False):
    """Result of taking tokens from a caller's rate-limit bucket.

    Attributes:
        left: whole tokens that are left in the bucket.
        full_s: seconds until the bucket is full again, rounded up.
        wait_s: 0 if the tokens were taken; otherwise no token was taken, and `wait_s` is the number of
            seconds until the bucket holds enough tokens.
    """

    left: int
    full_s: int
    wait_s: int


class ExactRate(Struct, frozen=True):
    """A token bucket's size and refill as exact fractions: `burst` tokens, `per_s` tokens a second."""

    per_s: Fraction
    burst: Fraction


class Buckets:
    """Rate-limit token buckets of equal size, one for each caller.

    Args:
        rate: size and refill of every bucket.
        callers_max: greatest number of buckets kept; full buckets may be removed.

    Attributes:
        burst: whole tokens of a full bucket.
    """

    def __init__(self, rate: Rate | ExactRate, *, callers_max: int = ADMISSION_CALLERS_MAX) -> None:
        per_ms, burst = Fraction(str(rate.per_s)) / 1_000, Fraction(str(rate.burst))
        self._ticks_per_ms = per_ms.numerator * burst.denominator
        self._token = per_ms.denominator * burst.denominator  # ticks in which one token comes
        self._size = burst.numerator * per_ms.denominator  # ticks in which an empty bucket fills
        self.burst = int(burst)
        self._second = 1_000 * self._ticks_per_ms
        self._callers_max = callers_max
        self._full_at: dict[Hashable, int] = {}
        self._line: deque[Hashable] = deque()  # each caller of the table once; the next to check first

    def __len__(self) -> int:
        """Number of buckets in memory."""
        return len(self._full_at)

    def take(self, caller: Hashable, cost: int, now_ms: int) -> TokensTaken:
        """Take `cost` tokens from a caller's bucket, or none if the bucket holds too few.

        Args:
            cost: tokens, above 0.
            now_ms: wall clock, Unix milliseconds; buckets do not refill while the clock goes back.

        Guarantees: in any period, a caller takes at most burst + per_s * seconds tokens, plus the tokens
            that `give_back` has returned to the caller's bucket.
        """
        now = now_ms * self._ticks_per_ms
        known = self._full_at.get(caller)
        if known is None and not self._make_room(now):
            return TokensTaken(0, 1, 1)
        ahead = known - now if known is not None and known > now else 0  # of a full bucket
        size, second = self._size, self._second
        after = ahead + min(cost * self._token, size)
        if after > size:
            return TokensTaken(
                (size - ahead) // self._token, -(-ahead // second), -(-(after - size) // second)
            )
        if known is None:
            self._line.append(caller)
        self._full_at[caller] = now + after
        return TokensTaken((size - after) // self._token, -(-after // second), 0)

    def give_back(self, caller: Hashable, cost: int) -> None:
        """Put the tokens of an earlier `take` of the same cost back into a caller's bucket.

        A bucket that is full again by now stays full.
        """
        known = self._full_at.get(caller)
        if known is not None:
            self._full_at[caller] = known - min(cost * self._token, self._size)

    def _make_room(self, now: int) -> bool:
        """Remove some of the full buckets, and return whether the bucket of a new caller fits."""
        full_at, line = self._full_at, self._line
        for looked in range(min(_LOOKS_MAX, len(line))):
            if looked >= _LOOKS and len(line) < self._callers_max:
                break
            if full_at[line[0]] <= now:
                del full_at[line.popleft()]
            else:
                line.rotate(-1)
        return len(line) < self._callers_max
