"""Record the faults of a maker's firm quotes, and start a cool-down after too many. Pure.

During its cool-down (a rest) a pair or a maker is not asked for firm quotes.

    clean or a fault of the maker's --> the pair's last quotes --> too many faults --> the pair rests
                                    \\-> the maker's last quotes --> too many faults, of several pairs
                                                                                      --> the maker rests
    most of the last askers (MAKER_ASKERS_MAX / 2 at least) are blacklisted --> the maker rests
    a refusal                       --> counted, and no fault: it bounds the requested size (size_bounds)

Of the last MAKER_HEALTH_QUOTES_MAX quotes, none older than MAKER_HEALTH_MEMORY_S, some may go wrong without
consequence:

    faults tolerated = max(least, quotes * percent / 100)                         see PAIR and MAKER
    rest             = rest_s * 2^(faults - faults tolerated - 1), at most rest_s_max

The rest doubles with each further fault; clean quotes and time shorten the next rest. At most
MAKER_FAULTS_A_PAIR faults of one pair count against the whole maker, so that one pair's faults do not rest
another pair. A fault of an earlier request that arrives during a rest is counted and does not lengthen the
rest. A probe that a maker answers well ends its rest; its faults stay counted, so that the next rest is
longer.

Nobody whitewashes a maker by requests that cost nothing: of the quotes that one caller has caused, the last
MAKER_QUOTES_A_CALLER count, clean and faulty ones alike, so that a caller of much weighs like one of little
and its share of faults stays what it is. Nobody blackens a maker by the users that a request names: a caller
counts once among the askers, and only if it has shown a stake.

Outcomes that the user or the venue causes never count: a limit too strict, a user whom the maker has
blacklisted, a swap that was cancelled, a deadline that other makers had used up or that our own event loop
overslept (`firm_check.AGAINST_MAKER`).

Source: ARCHITECTURE.md, "Firm quotes"; interop.md sections 4 and 5.
Choice: A maker that blacklists most of the callers for whose users quotes are requested rests, as if it did
    not quote. No quotes are requested for users blacklisted in advance, who do not count.
Choice: Every kind of fault weighs the same in a maker's score: the share of clean quotes in percent, rounded
    down.
"""

from collections import Counter, OrderedDict, deque
from collections.abc import Hashable

from msgspec import Struct

from ...config import limits
from ..books.pair_index import ends_of
from .firm_check import AGAINST_MAKER, FirmFault
from .size_bounds import Direction, SizeBound, SizeBounds

_QUOTES_MAX = limits.MAKER_HEALTH_QUOTES_MAX
_UNSERVING_MS = limits.MAKER_UNSERVING_S * 1_000
_MEMORY_MS = limits.MAKER_HEALTH_MEMORY_S * 1_000

TokenPair = tuple[bytes, bytes]


class Tolerance(Struct, frozen=True):
    """Number of faulty quotes that start no cool-down: the larger of `least` and `percent` of the quotes."""

    least: int
    percent: int


FAULTY, UNSERVING = "too many faults", "it blacklists most of its askers"
PAIR = Tolerance(2, 10)
MAKER = Tolerance(5, 20)


class QuoteHealth(Struct, frozen=True):
    """Quality of the last firm quotes of a pair or of a maker.

    Attributes:
        quotes: number of quotes, refusals left out.
        score: share of clean quotes, percent; 100 without quotes.
        reasons: kind of fault, or `refused` -> number of quotes.
        block_until_ms: end of the cool-down, Unix milliseconds; 0 without a cool-down.
        block_reason: reason for the cool-down; empty without a cool-down.
    """

    quotes: int
    score: int
    reasons: dict[str, int]
    block_until_ms: int
    block_reason: str = ""


class PairHealth(Struct, frozen=True):
    """Quality of a maker's last firm quotes of one pair; `one` is the token with the lower address."""

    one: bytes
    other: bytes
    health: QuoteHealth


class FaultTold(Struct, frozen=True):
    """A faulty or refused firm quote, as the report to its maker lists it.

    Attributes:
        src, dest: tokens that the user gives and gets; 20 bytes.
        detail: text with the expected and the received value.
    """

    at_ms: int
    fault: FirmFault
    src: bytes
    dest: bytes
    detail: str


class HealthReport(Struct, frozen=True):
    """Report to a maker about its firm quotes on one chain.

    Attributes:
        maker: quality of the maker's quotes of all pairs together.
        pairs: pairs with a fault, a refusal or a cool-down, the lowest score first.
        last_faults: last faults and refusals, the latest first.
        bounds: (token that the user gives, token that the user gets) -> largest amount for which the venue
            requests a quote of the maker.
    """

    maker: QuoteHealth
    pairs: tuple[PairHealth, ...]
    last_faults: tuple[FaultTold, ...] = ()
    bounds: dict[Direction, SizeBound] = {}


class Rests(Struct, frozen=True):
    """Cool-downs that one firm quote starts.

    Attributes:
        pair_until_ms, maker_until_ms: end of the pair's cool-down, and of the whole maker's, Unix
            milliseconds; 0 if the quote starts none.
    """

    pair_until_ms: int = 0
    maker_until_ms: int = 0


NO_RESTS = Rests()


class _Quote(Struct, frozen=True):
    at_ms: int
    pair: TokenPair
    fault: FirmFault | None
    causer: Hashable


class _Record:
    """Last firm quotes of one pair, or of one maker over all pairs, and the end of a resulting cool-down."""

    __slots__ = ("_tolerance", "quotes", "reason", "refusals", "until_ms")

    def __init__(self, tolerance: Tolerance) -> None:
        self._tolerance = tolerance
        self.quotes: deque[_Quote] = deque(maxlen=_QUOTES_MAX)
        self.refusals: deque[int] = deque(maxlen=_QUOTES_MAX)
        self.until_ms = 0
        self.reason = ""

    def add(self, quote: _Quote, counted: int, rest_ms: int, rest_ms_max: int) -> int:
        """Add a firm quote; return the end (Unix ms) of the cool-down that the quote starts, or 0 for none.

        Args:
            counted: most faults of one pair that count towards the cool-down; further ones are ignored.
            rest_ms, rest_ms_max: duration of the shortest and of the longest cool-down, milliseconds.
        """
        now_ms = quote.at_ms
        self._make_room(quote.causer)
        self.quotes.append(quote)
        self.forget(now_ms)
        if quote.fault is None or now_ms < self.until_ms:
            return 0
        of_pairs = Counter(past.pair for past in self.quotes if past.fault is not None)
        faults = sum(min(number, counted) for number in of_pairs.values())
        tolerated = max(self._tolerance.least, len(self.quotes) * self._tolerance.percent // 100)
        if faults <= tolerated:
            return 0
        self.until_ms = now_ms + min(rest_ms << (faults - tolerated - 1), rest_ms_max)
        self.reason = FAULTY
        return self.until_ms

    def _make_room(self, causer: Hashable) -> None:
        """Drop the oldest of a caller's quotes, clean or faulty, if as many are recorded as may count."""
        places = [place for place, past in enumerate(self.quotes) if past.causer == causer]
        if len(places) >= limits.MAKER_QUOTES_A_CALLER:
            del self.quotes[places[0]]

    def forget(self, now_ms: int) -> None:
        """Drop recorded quotes and refusals that are older than MAKER_HEALTH_MEMORY_S."""
        while self.quotes and self.quotes[0].at_ms <= now_ms - _MEMORY_MS:
            self.quotes.popleft()
        while self.refusals and self.refusals[0] <= now_ms - _MEMORY_MS:
            self.refusals.popleft()

    def health(self, now_ms: int) -> QuoteHealth:
        """Summarize the last quotes and the cool-down, as of `now_ms`."""
        self.forget(now_ms)
        reasons = Counter(quote.fault.value for quote in self.quotes if quote.fault is not None)
        quotes = len(self.quotes)
        score = 100 * (quotes - reasons.total()) // quotes if quotes else 100
        if self.refusals:
            reasons[FirmFault.REFUSED.value] = len(self.refusals)
        is_resting = self.until_ms > now_ms
        return QuoteHealth(
            quotes,
            score,
            dict(reasons),
            self.until_ms if is_resting else 0,
            self.reason if is_resting else "",
        )


class MakerHealth:
    """Record of a maker's firm quotes on one chain, and the resulting cool-downs.

    Args:
        rest_ms, rest_ms_max: duration of the shortest and of the longest cool-down, milliseconds; the same
            durations hold for bounds on the requested amounts.

    Attributes:
        outcomes: `clean` or the kind of fault -> number of quotes since the start.
        bounds: largest amounts to request, after the maker's refusals.
    """

    def __init__(self, rest_ms: int, rest_ms_max: int) -> None:
        self._rest_ms = rest_ms
        self._rest_ms_max = rest_ms_max
        self.outcomes: Counter[str] = Counter()
        self.bounds = SizeBounds(rest_ms, rest_ms_max)
        self._last: deque[FaultTold] = deque(maxlen=limits.MAKER_LAST_FAULTS_MAX)
        self._askers: OrderedDict[Hashable, bool] = OrderedDict()
        self._maker = _Record(MAKER)
        self._pairs: OrderedDict[TokenPair, _Record] = OrderedDict()

    def record(
        self, one: bytes, other: bytes, fault: FirmFault | None, now_ms: int, causer: Hashable
    ) -> Rests:
        """Record the outcome of a firm quote for a pair, whose two tokens may be given in either order.

        Args:
            causer: account of the caller that caused the request.
            fault: None for a clean quote; a fault that is not the maker's (outside AGAINST_MAKER) starts no
                cool-down.

        Returns:
            The ends of the cool-downs that this quote starts.
        """
        self.outcomes["clean" if fault is None else fault.value] += 1
        pair = ends_of(one, other)
        if fault is FirmFault.REFUSED:
            for record in (self._maker, self._record(pair)):
                record.refusals.append(now_ms)
            return NO_RESTS
        if fault is not None and fault not in AGAINST_MAKER:
            return NO_RESTS
        quote = _Quote(now_ms, pair, fault, causer)
        return Rests(
            self._record(pair).add(quote, _QUOTES_MAX, self._rest_ms, self._rest_ms_max),
            self._maker.add(quote, limits.MAKER_FAULTS_A_PAIR, self._rest_ms, self._rest_ms_max),
        )

    def served(self, asker: Hashable, now_ms: int, *, is_served: bool) -> int:
        """Record whether the maker served a caller's request or has blacklisted its user.

        Args:
            asker: account of the caller, which has shown a stake.

        Returns:
            End of the maker's new cool-down, in Unix ms, if the maker has blacklisted most of the last
            askers; else 0.
        """
        self._askers[asker] = is_served
        self._askers.move_to_end(asker)
        if len(self._askers) > limits.MAKER_ASKERS_MAX:
            self._askers.popitem(last=False)
        unserved = sum(not served for served in self._askers.values())
        if len(self._askers) < limits.MAKER_ASKERS_MAX // 2 or 2 * unserved <= len(self._askers):
            return 0
        self._askers.clear()
        self._maker.until_ms, self._maker.reason = now_ms + _UNSERVING_MS, UNSERVING
        return self._maker.until_ms

    def remember(self, fault: FaultTold) -> None:
        """Add a fault to the list in the maker's report; a full list drops its oldest entry."""
        self._last.appendleft(fault)

    def end_rest(self, one: bytes, other: bytes, now_ms: int) -> None:
        """End the cool-downs of a pair and of its maker.

        The venue calls this method after the maker answered a probe for the pair with a good quote.
        """
        for record in (self._maker, self._pairs.get(ends_of(one, other))):
            if record is not None:
                record.until_ms = min(record.until_ms, now_ms)

    def release(self) -> None:
        """Forget the maker's last quotes and askers, and end all its cool-downs and size bounds.

        `outcomes` and the list of last faults stay.
        """
        self._maker = _Record(MAKER)
        self._pairs.clear()
        self._askers.clear()
        self.bounds.release()

    def report(self, now_ms: int) -> HealthReport:
        """Make the report to a maker: scores, cool-downs, faults and size bounds of its firm quotes."""
        pairs = [PairHealth(*pair, record.health(now_ms)) for pair, record in self._pairs.items()]
        shown = [pair for pair in pairs if pair.health.reasons or pair.health.block_until_ms]
        shown.sort(key=lambda pair: (pair.health.score, pair.one, pair.other))
        return HealthReport(
            self._maker.health(now_ms), tuple(shown), tuple(self._last), self.bounds.told(now_ms)
        )

    def _record(self, pair: TokenPair) -> _Record:
        """Get or create the record of a pair; if the store is full, drop the least recently used record."""
        record = self._pairs.get(pair)
        if record is None:
            record = self._pairs[pair] = _Record(PAIR)
            if len(self._pairs) > limits.MAKER_ENTRIES_MAX:
                self._pairs.popitem(last=False)
        self._pairs.move_to_end(pair)
        return record
