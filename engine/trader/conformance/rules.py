"""Defines checks, the results of judging a maker by them, and the verdicts that follow from the results.

A check is a row of `check_table.CHECKS`: one rule of the specification under one name. A judge is a pure
function over recorded exchanges; it yields any number of results for a check. A single fault makes the check
fail; results without a fault make it pass; a check without results is skipped, with a reason. A skipped check
is a gap if the maker gave nothing to judge it on, but not if an option is missing or the specification leaves
the matter to the maker. A topic with more gaps than judged checks is thin: a run with a thin topic never
reports that the maker conforms.

    severity    effect of a fault
    must        fails the run
    strict      fails the run, but the check, a rule of today's strictest consumers, runs only with --strict
    advice      appears in the report, and never fails the run
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum
from fnmatch import fnmatchcase

from msgspec import Struct

from ....config.error_text import one_line, shown

FINDINGS_SHOWN_MAX = 5
_WHY_SHOWN_MAX = 300


class Severity(StrEnum):
    """Effect of a check's fault on the run: MUST and STRICT fail the run, ADVICE only appears in the report.

    A check of severity STRICT runs only with the option --strict.
    """

    MUST = "must"
    STRICT = "strict"
    ADVICE = "advice"


class Transport(StrEnum):
    """Protocol of a check's requests: HTTP, WebSocket, raw bytes, or JSON-RPC to a node."""

    HTTP = "HTTP"
    WEBSOCKET = "WS"
    BYTES = "bytes"
    NODE = "node"


class Check(Struct, frozen=True):
    """A conformance check: one rule of the specification for market makers, under one id.

    Attributes:
        id: `topic.name`.
        title: the statement that is true if the check passes.
        source: section of the specification, or other document, that states the rule.
        fix: advice to the maker if the check fails.
        negative: whether the check sends requests that the maker must refuse.
    """

    id: str
    title: str
    source: str
    fix: str
    transport: Transport
    negative: bool
    severity: Severity

    @property
    def topic(self) -> str:
        """Topic of the check, i.e. its id up to the first dot: `prices` of `prices.sorted`."""
        return self.id.partition(".")[0]

    @property
    def kind(self) -> str:
        """Transport of the check, and whether its requests must be refused, e.g. `HTTP, negative`."""
        return f"{self.transport}, {'negative' if self.negative else 'positive'}"


class CheckStatus(StrEnum):
    """Status of one result, or of the verdict on a check; ADVISED is a status of verdicts alone."""

    PASSED = "passed"
    FAILED = "failed"
    ADVISED = "advised"  # verdicts only: a check of severity advice has a fault
    SKIPPED = "skipped"


class Result(Struct, frozen=True):
    """The result of judging one item, such as a price level, by one check.

    Attributes:
        check: id of the check.
        where: the item judged, e.g. `GET /prices WETH/USDC.bids[2]`.
        expected, got: for a fault: expected and received values; for a skip `got` holds the reason.
        is_gap: whether the check was skipped because the maker gave nothing to judge it on.
    """

    check: str
    status: CheckStatus
    where: str = ""
    expected: str = ""
    got: str = ""
    is_gap: bool = False


class CheckVerdict(Struct, frozen=True):
    """The final verdict on one check of a run, from all its results.

    Attributes:
        faults: the first FINDINGS_SHOWN_MAX faults.
        fault_count: the number of all faults.
        looks: number of results that passed or failed; skips do not count.
        reason: reason why the check was skipped; empty for a check with results.
        is_gap: whether the check was skipped because the maker gave nothing to judge it on.
    """

    check: Check
    status: CheckStatus
    faults: tuple[Result, ...] = ()
    fault_count: int = 0
    looks: int = 0
    reason: str = ""
    is_gap: bool = False


def passed(check: str, where: str = "") -> Result:
    """Create a passed result of a check: the item `where` complies with the rule."""
    return Result(check, CheckStatus.PASSED, one_line(where))


def fault(check: str, where: str, expected: str, got: object) -> Result:
    """Create a failed result of a check: the item `where` breaks the rule.

    The result quotes text from the maker in `got`, and shortens all text.
    """
    return Result(check, CheckStatus.FAILED, one_line(where), one_line(expected), cut(got))


def skipped(check: str, reason: str) -> Result:
    """Create a skipped result: an option is missing, or the specification leaves the matter to the maker."""
    return Result(check, CheckStatus.SKIPPED, got=one_line(reason))


def gap(check: str, reason: str) -> Result:
    """Create a skipped result that counts as a gap, i.e. the maker gave nothing to judge the check on."""
    return Result(check, CheckStatus.SKIPPED, got=one_line(reason), is_gap=True)


def judged(check: str, held: object, where: str, expected: str, got: object) -> Result:
    """Create a passed result if `held` is true, else a fault with the expected and the received value."""
    return passed(check, where) if held else fault(check, where, expected, got)


class Said(str):
    """Text in a finding that the harness wrote, not the maker, and that is therefore shown without quotes."""

    __slots__ = ()


def cut(value: object) -> str:
    """Format a value on one line, cut to _WHY_SHOWN_MAX characters; text from the maker is quoted."""
    text = one_line(value) if isinstance(value, Said) else shown(value)
    return text if len(text) <= _WHY_SHOWN_MAX else f"{text[:_WHY_SHOWN_MAX]}..."


class Selection(Struct, frozen=True):
    """The checks that a run executes, selected by shell patterns over check ids.

    Attributes:
        only: patterns of the checks to run; an empty tuple selects all.
        skip: patterns of the checks not to run.
        strict: whether checks of severity STRICT run.
    """

    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    strict: bool = False

    def __contains__(self, check: Check) -> bool:
        return not self.why_not(check)

    def why_not(self, check: Check) -> str:
        """Return the reason why the options do not select a check; empty if they select it."""
        if self.only and not _any_match(check.id, self.only):
            return "not selected by --only"
        if _any_match(check.id, self.skip):
            return "left out by --skip"
        if check.severity is Severity.STRICT and not self.strict:
            return "only with --strict"
        return ""


def _any_match(check_id: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(check_id, pattern) for pattern in patterns)


class Tally:
    """Bounded collection of a run's results: keeps the first faults of each check, and counts all results.

    Args:
        table: check id -> check. A result with an id not in the table raises KeyError: a bug of the harness.
        selection: the selected checks; results of other checks are dropped.
    """

    def __init__(self, table: Mapping[str, Check], selection: Selection) -> None:
        self._checks = table
        self._why_not = {check_id: selection.why_not(check) for check_id, check in table.items()}
        self._faults: dict[str, list[Result]] = {check_id: [] for check_id in table}
        self._fault_counts: Counter[str] = Counter()
        self._looks: Counter[str] = Counter()
        self._skipped: dict[str, Result] = {}

    def __len__(self) -> int:
        """Number of checks that have at least one result, skips included."""
        return len(self._looks.keys() | self._skipped.keys())

    def add(self, result: Result) -> None:
        """Count a result; store the first skip and the first faults of each check."""
        check_id = result.check
        if self._why_not[check_id]:
            return
        if result.status is CheckStatus.SKIPPED:
            self._skipped.setdefault(check_id, result)
            return
        self._looks[check_id] += 1
        if result.status is CheckStatus.FAILED:
            self._fault_counts[check_id] += 1
            if len(self._faults[check_id]) < FINDINGS_SHOWN_MAX:
                self._faults[check_id].append(result)

    def verdicts(self, unreached: str) -> list[CheckVerdict]:
        """Return a verdict for every check, in the sequence of the table of checks.

        Args:
            unreached: reason to report for selected checks without results.
        """
        return [self._verdict(check, unreached) for check in self._checks.values()]

    def _verdict(self, check: Check, unreached: str) -> CheckVerdict:
        looks, faults = self._looks[check.id], tuple(self._faults[check.id])
        if faults:
            status = CheckStatus.ADVISED if check.severity is Severity.ADVICE else CheckStatus.FAILED
            return CheckVerdict(check, status, faults, self._fault_counts[check.id], looks)
        if looks:
            return CheckVerdict(check, CheckStatus.PASSED, looks=looks)
        if self._why_not[check.id]:
            return CheckVerdict(check, CheckStatus.SKIPPED, reason=self._why_not[check.id])
        result = self._skipped.get(check.id) or gap(check.id, unreached)
        return CheckVerdict(check, CheckStatus.SKIPPED, reason=result.got, is_gap=result.is_gap)


def thin_topics(verdicts: Iterable[CheckVerdict]) -> dict[str, str]:
    """Map each topic with more gaps than judged checks to the most frequent reason of its gaps.

    A gap is a check that was skipped because the maker gave nothing to judge it on.
    """
    judged_counts: Counter[str] = Counter()
    reasons: dict[str, Counter[str]] = {}
    for verdict in verdicts:
        if verdict.status is not CheckStatus.SKIPPED:
            judged_counts[verdict.check.topic] += 1
        elif verdict.is_gap:
            reasons.setdefault(verdict.check.topic, Counter())[verdict.reason] += 1
    return {
        topic: found.most_common(1)[0][0]
        for topic, found in reasons.items()
        if found.total() > judged_counts[topic]
    }
