"""How reliable a maker's firm quotes are, and when it is left alone for a while. Pure.

    clean or a fault of the maker's --> the pair's last quotes --> too many faults --> the pair rests
                                    \\-> the maker's last quotes --> too many faults --> the maker rests

Of the last MAKER_HEALTH_QUOTES_MAX quotes, none older than MAKER_HEALTH_MEMORY_S, some may go wrong without
consequence:

    faults tolerated = max(least, quotes * percent / 100)                         see PAIR and MAKER
    rest             = rest_s * 2^(faults above that - 1), at most rest_s_max

So the rest doubles with each further fault, and clean quotes and time take it back. A fault that comes while
it rests already, of a quote that was asked for before, is counted and lengthens nothing.

What lies with the user or with us never counts: a limit too strict, a user whom the maker has blacklisted, a
swap that was cancelled, a deadline that others had used up or our own event loop had overslept
(`firm_check.AGAINST_MAKER`).

Source: design, "Firm quotes"; interop.md sections 4 and 5.
Choice: every kind of fault weighs the same; the score is the part of clean quotes, percent, rounded down.
"""

from collections import Counter, OrderedDict, deque

from msgspec import Struct

from ..config import limits
from .firm_check import AGAINST_MAKER, FirmFault

_QUOTES_MAX = limits.MAKER_HEALTH_QUOTES_MAX
_MEMORY_MS = limits.MAKER_HEALTH_MEMORY_S * 1_000

Pair = tuple[bytes, bytes]


class Tolerance(Struct, frozen=True):
    """How many of the last quotes may go wrong: the larger of the two."""

    least: int
    percent: int


PAIR = Tolerance(0, 5)
MAKER = Tolerance(5, 20)


class Health(Struct, frozen=True):
    """What is known of the last quotes.

    Attributes:
        quotes: how many.
        score: part of them that was clean, percent; 100 where there are none.
        reasons: kind of fault -> how many.
        block_until_ms: Unix milliseconds; 0 where it does not rest.
    """

    quotes: int
    score: int
    reasons: dict[str, int]
    block_until_ms: int


class PairHealth(Struct, frozen=True):
    """The same of a pair, whose tokens stand in the order of their addresses."""

    one: bytes
    other: bytes
    health: Health


class HealthReport(Struct, frozen=True):
    """What a maker may read about itself on one chain. Pairs with a fault or at rest, the worst first."""

    maker: Health
    pairs: tuple[PairHealth, ...]


class Rests(Struct, frozen=True):
    """What a fault led to: Unix milliseconds until which the pair and the maker rest; 0 for no rest."""

    pair_until_ms: int = 0
    maker_until_ms: int = 0


NO_RESTS = Rests()


class _Record:
    """The last quotes of a pair or of a maker."""

    __slots__ = ("_tolerance", "quotes", "until_ms")

    def __init__(self, tolerance: Tolerance) -> None:
        self._tolerance = tolerance
        self.quotes: deque[tuple[int, FirmFault | None]] = deque(maxlen=_QUOTES_MAX)
        self.until_ms = 0

    def add(self, fault: FirmFault | None, now_ms: int, rest_ms: int, rest_ms_max: int) -> int:
        """Remember a quote. Returns until when it rests because of this one; 0 for not at all."""
        self.quotes.append((now_ms, fault))
        self.forget(now_ms)
        if fault is None or now_ms < self.until_ms:
            return 0
        faults = sum(kind is not None for _, kind in self.quotes)
        tolerated = max(self._tolerance.least, len(self.quotes) * self._tolerance.percent // 100)
        if faults <= tolerated:
            return 0
        self.until_ms = now_ms + min(rest_ms << (faults - tolerated - 1), rest_ms_max)
        return self.until_ms

    def forget(self, now_ms: int) -> None:
        """Drop what is too old."""
        while self.quotes and self.quotes[0][0] <= now_ms - _MEMORY_MS:
            self.quotes.popleft()

    def told(self, now_ms: int) -> Health:
        """What is known now."""
        self.forget(now_ms)
        reasons = Counter(fault.value for _, fault in self.quotes if fault is not None)
        quotes = len(self.quotes)
        score = 100 * (quotes - reasons.total()) // quotes if quotes else 100
        return Health(quotes, score, dict(reasons), self.until_ms if self.until_ms > now_ms else 0)


class MakerHealth:
    """One maker on one chain.

    Args:
        rest_ms: of the first fault above what is tolerated.
        rest_ms_max: the longest rest.

    Attributes:
        outcomes: `clean`, or the fault -> how many quotes, since the start.
    """

    def __init__(self, rest_ms: int, rest_ms_max: int) -> None:
        self._rest_ms = rest_ms
        self._rest_ms_max = rest_ms_max
        self.outcomes: Counter[str] = Counter()
        self._maker = _Record(MAKER)
        self._pairs: OrderedDict[Pair, _Record] = OrderedDict()

    def record(self, one: bytes, other: bytes, fault: FirmFault | None, now_ms: int) -> Rests:
        """Take note of a quote of two tokens, in either order.

        Args:
            fault: None for a clean one; what does not lie with the maker changes nothing.

        Returns:
            The rests that begin with it.
        """
        self.outcomes["clean" if fault is None else fault.value] += 1
        if fault is not None and fault not in AGAINST_MAKER:
            return NO_RESTS
        pair = (one, other) if one < other else (other, one)
        record = self._pairs.get(pair)
        if record is None:
            record = self._pairs[pair] = _Record(PAIR)
            if len(self._pairs) > limits.MAKER_ENTRIES_MAX:
                self._pairs.popitem(last=False)
        self._pairs.move_to_end(pair)
        return Rests(
            record.add(fault, now_ms, self._rest_ms, self._rest_ms_max),
            self._maker.add(fault, now_ms, self._rest_ms, self._rest_ms_max),
        )

    def report(self, now_ms: int) -> HealthReport:
        """What the maker may know of it."""
        pairs = [PairHealth(*pair, record.told(now_ms)) for pair, record in self._pairs.items()]
        shown = [pair for pair in pairs if pair.health.reasons or pair.health.block_until_ms]
        shown.sort(key=lambda pair: (pair.health.score, pair.one, pair.other))
        return HealthReport(self._maker.told(now_ms), tuple(shown))
