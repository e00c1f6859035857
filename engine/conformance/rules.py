"""What a check is, what it finds, and how findings become verdicts.

A check is a row of `check_table.CHECKS`: one rule of the specification under one name. A judge is a pure
function over what was recorded; it yields results, any number for a check. One fault makes the check fail;
results without a fault make it pass; a check nobody judged is skipped, and says why. A skipped check is a gap
where the maker gave nothing to judge it on, and none where an option is missing or the specification leaves
it to the maker. A topic with more gaps than judged checks is thin: a run with a thin topic proves nothing.

    severity    a fault of it
    must        is a fault of the maker
    strict      is one only with --strict: what today's strictest consumers refuse
    advice      is told, and never fails the run
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum
from fnmatch import fnmatchcase

from msgspec import Struct

from ...config.error_text import one_line, shown

FINDINGS_SHOWN_MAX = 5
_WHY_SHOWN_MAX = 300


class Severity(StrEnum):
    """How much a fault weighs."""

    MUST = "must"
    STRICT = "strict"
    ADVICE = "advice"


class Transport(StrEnum):
    """What a check speaks."""

    HTTP = "HTTP"
    WEBSOCKET = "WS"
    BYTES = "bytes"
    NODE = "node"


class Check(Struct, frozen=True):
    """One named rule.

    Attributes:
        id: `topic.name`.
        title: what holds where the check passes.
        source: the rule it enforces.
        fix: what to do where it fails.
        negative: it sends what must be refused.
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
        """What stands before the first dot of the id."""
        return self.id.partition(".")[0]

    @property
    def kind(self) -> str:
        """`HTTP, positive` and the like."""
        return f"{self.transport}, {'negative' if self.negative else 'positive'}"


class CheckStatus(StrEnum):
    """What one result says, and what a verdict says in the end."""

    PASSED = "passed"
    FAILED = "failed"
    ADVISED = "advised"  # only of a verdict: a fault of a check that is advice
    SKIPPED = "skipped"


class Result(Struct, frozen=True):
    """What one look at one thing found.

    Attributes:
        check: id.
        where: what was looked at, e.g. `GET /prices WETH/USDC.bids[2]`.
        expected, got: of a fault; `got` holds the reason of a skip.
        is_gap: of a skip: the maker gave nothing to judge the check on.
    """

    check: str
    status: CheckStatus
    where: str = ""
    expected: str = ""
    got: str = ""
    is_gap: bool = False


class CheckVerdict(Struct, frozen=True):
    """The end of one check.

    Attributes:
        faults: the first FINDINGS_SHOWN_MAX of them.
        fault_count: of all.
        looks: results it was made of.
        reason: why it was skipped.
        is_gap: it was skipped because the maker gave nothing to judge it on.
    """

    check: Check
    status: CheckStatus
    faults: tuple[Result, ...] = ()
    fault_count: int = 0
    looks: int = 0
    reason: str = ""
    is_gap: bool = False


def passed(check: str, where: str = "") -> Result:
    """The rule held here."""
    return Result(check, CheckStatus.PASSED, one_line(where))


def fault(check: str, where: str, expected: str, got: object) -> Result:
    """The rule did not hold. `got` is shortened, unless it is a `Said` text of ours."""
    return Result(check, CheckStatus.FAILED, one_line(where), one_line(expected), cut(got))


def skipped(check: str, reason: str) -> Result:
    """The rule was not judged: an option is missing, or the specification lets a maker go without it."""
    return Result(check, CheckStatus.SKIPPED, got=one_line(reason))


def gap(check: str, reason: str) -> Result:
    """The rule could not be judged: the maker gave nothing to judge it on."""
    return Result(check, CheckStatus.SKIPPED, got=one_line(reason), is_gap=True)


def judged(check: str, held: object, where: str, expected: str, got: object) -> Result:
    """`passed` where `held`, else `fault`."""
    return passed(check, where) if held else fault(check, where, expected, got)


class Said(str):
    """Text made here, not by the maker: shown without quotes."""

    __slots__ = ()


def cut(value: object) -> str:
    """What came, on one short line."""
    text = one_line(value) if isinstance(value, Said) else shown(value)
    return text if len(text) <= _WHY_SHOWN_MAX else f"{text[:_WHY_SHOWN_MAX]}..."


class Selection(Struct, frozen=True):
    """Which checks are wanted: patterns of shell form over ids; no `only` means all."""

    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    strict: bool = False

    def __contains__(self, check: Check) -> bool:
        return not self.why_not(check)

    def why_not(self, check: Check) -> str:
        """Why a check is not run; empty where it is."""
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
    """Results as they come, kept within bounds: of each check the first faults and counts of the rest.

    Args:
        table: id -> check. A result of no check in it is a KeyError: our bug.
        selection: what was asked for; results of other checks are dropped.
    """

    def __init__(self, table: Mapping[str, Check], selection: Selection) -> None:
        self._checks = table
        self._why_not = {check_id: selection.why_not(check) for check_id, check in table.items()}
        self._faults: dict[str, list[Result]] = {check_id: [] for check_id in table}
        self._fault_counts: Counter[str] = Counter()
        self._looks: Counter[str] = Counter()
        self._skipped: dict[str, Result] = {}

    def __len__(self) -> int:
        """Checks that have a result."""
        return len(self._looks.keys() | self._skipped.keys())

    def add(self, result: Result) -> None:
        """Count one result."""
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
        """One per check, in the table's order; `unreached` is the reason where no judge came."""
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
    """Topics with more gaps than judged checks -> the most frequent reason of the gaps."""
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
