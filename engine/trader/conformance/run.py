"""Runs all stages of the checks, from the first connection to the verdicts and the outcome.

    outcome         condition
    faults          a check failed
    inconclusive    no check failed, but the maker gave no firm quote to a run that asked for some, a topic
                    has more gaps than judged checks, all checks were skipped, or a stage raised an exception
    conforms        otherwise

A gap is a check that was skipped because the maker gave nothing to judge it on. An exception from a stage is
a bug of the harness: the stage's checks without a result become gaps, and the other stages run.
"""

from collections.abc import Awaitable, Callable
from enum import StrEnum
from functools import partial

import trio
from msgspec import Struct

from ....config.error_text import one_line
from ...host.process.interrupts import until_interrupted
from .check_table import TOPICS
from .checks.load import LoadReport, judge_speed, speed_said
from .node import ProbedNode
from .options import CheckOptions
from .probe import Probe
from .rules import CheckStatus, CheckVerdict, Said, judged, thin_topics
from .session import Session
from .stages.stage_chain import check_chain
from .stages.stage_endpoints import check_authentication, check_endpoints, check_errors, check_life
from .stages.stage_firm import check_deep_quotes, check_load, check_quotes, check_refusals
from .stages.stage_framing import check_framing
from .stages.stage_hostile import check_hostile
from .stages.stage_stream import check_stream

OnProgress = Callable[[str, int, int], None]  # (stage, checks judged, checks selected)

_STAGES: tuple[tuple[str, tuple[str, ...], Callable[[Session], Awaitable[None]]], ...] = (
    ("endpoints", (), check_endpoints),  # always runs: the other stages use the resources read here
    ("errors", ("errors",), check_errors),
    ("chain", ("chain",), check_chain),
    ("firm quotes", ("firm", "chain"), check_quotes),
    ("refusals", ("refuse", "errors"), check_refusals),
    ("load", ("load",), check_load),
    ("deep quotes", ("firm",), check_deep_quotes),  # after the load: deep quotes tie up a maker's funds
    ("authentication", ("auth",), check_authentication),
    ("WebSocket", ("stream",), check_stream),
    ("framing", ("framing",), check_framing),
    ("hostile bytes", ("hostile",), check_hostile),
    ("life of pairs", ("life",), check_life),
)


_QUOTED = frozenset({"firm", "refuse", "load"})
"""Topics whose checks need a firm quote; --allow-no-quotes skips them if the maker gives none."""


class RunOutcome(StrEnum):
    """Outcome of a run: FAULTS if a check failed, INCONCLUSIVE if too little was judged, else CONFORMS.

    A stage that raised an exception also makes a run without faults inconclusive.
    """

    CONFORMS = "conforms"
    FAULTS = "faults"
    INCONCLUSIVE = "inconclusive"


class RunReport(Struct, frozen=True):
    """The verdicts and figures of a finished conformance run.

    Attributes:
        requests: number of requests sent to the maker, including WebSocket handshakes and deliberately
            malformed requests.
        firm_requests: number of those requests that asked for a firm quote.
        load: figures of the load stage; None if the stage did not run.
        broken: names of stages that raised an exception, i.e. have a bug, each with the exception.
        lacks_quotes: whether the run had to have a firm quote, and the maker gave none.
    """

    url: str
    verdicts: tuple[CheckVerdict, ...]
    load: LoadReport | None
    elapsed_s: float
    requests: int
    firm_requests: int
    seed: int
    strict: bool
    broken: tuple[str, ...] = ()
    lacks_quotes: bool = False

    def count(self, status: CheckStatus) -> int:
        """Return the number of checks whose verdict has this status."""
        return sum(verdict.status is status for verdict in self.verdicts)

    @property
    def thin(self) -> dict[str, str]:
        """Map each topic with more gaps than judged checks to the most frequent reason of its gaps.

        A gap is a check that was skipped because the maker gave nothing to judge it on.
        """
        return thin_topics(self.verdicts)

    @property
    def outcome(self) -> RunOutcome:
        """Outcome of the run: FAULTS if a check failed, INCONCLUSIVE if too little was judged, else CONFORMS.

        A stage that raised an exception also makes a run without faults inconclusive.
        """
        if self.count(CheckStatus.FAILED):
            return RunOutcome.FAULTS
        if (
            self.broken
            or self.lacks_quotes
            or self.thin
            or self.count(CheckStatus.SKIPPED) == len(self.verdicts)
        ):
            return RunOutcome.INCONCLUSIVE
        return RunOutcome.CONFORMS

    @property
    def conforms(self) -> bool:
        """Whether the maker conforms, i.e. the outcome of the run is CONFORMS."""
        return self.outcome is RunOutcome.CONFORMS


async def run_checks(
    options: CheckOptions,
    *,
    now_ms: Callable[[], int],
    on_progress: OnProgress = lambda stage, judged_count, selected: None,  # noqa: ARG005
) -> RunReport:
    """Run the selected stages of checks against a maker and report the verdicts.

    Args:
        now_ms: returns the wall clock, Unix milliseconds.
        on_progress: called with (stage, number of checks judged, number of checks selected).

    Raises:
        Unreachable: no connection to the maker's address can be made.
        ConfigError: the file of certificates cannot be used.
    """
    started = trio.current_time()
    async with _probe(options, now_ms) as probe, _node_probe(options, now_ms) as node_probe:
        await probe.reach()
        node = None if options.node is None else ProbedNode(node_probe)
        session = Session(options, probe, node, on_progress)
        broken: list[str] = []
        with trio.move_on_after(options.run_timeout_s) as scope:
            for name, topics, stage in _STAGES:
                if not topics or session.wants(*topics):
                    session.stage = name
                    # `find_good` is within `try` too: it sends requests, and may break as a stage may.
                    try:
                        if options.allow_no_quotes and _QUOTED & {*topics} and not await session.find_good():
                            session.skip("the maker gives no firm quote: --allow-no-quotes", *topics)
                            continue
                        await stage(session)
                    except Exception as error:  # noqa: BLE001  a bug in a stage must not cost the report
                        broken.append(one_line(f"{name}: {_innermost(error)!r}"))
                        session.lack("the harness broke in this stage", *topics)
                # Each further request would only wait for its time-out, up to the limit of the run.
                if session.is_silent:
                    session.lack("no endpoint answers", *TOPICS)
                    break
        # After the stages, also of a run that was stopped: its results so far are judged all the same.
        late = scope.cancelled_caught
        speed = probe.latencies_ms, probe.late, options.timeout_s
        got = Said(f"stopped after {options.run_timeout_s:g} s, at {session.stage}: {speed_said(*speed)}")
        session.add(
            [judged("run.complete", not late, "the run", "every stage reached", got), judge_speed(*speed)]
        )
        unreached = "the run's time was over" if late else "nothing came that it could be judged on"
        found = session.tally.verdicts(unreached)
        return RunReport(
            url=options.base.url,
            verdicts=tuple(found),
            load=session.load,
            elapsed_s=trio.current_time() - started,
            requests=probe.requests,
            firm_requests=probe.firm_requests,
            seed=options.seed,
            strict=options.selection.strict,
            broken=tuple(broken),
            lacks_quotes=session.wants("firm") and not session.quotes and not options.allow_no_quotes,
        )


def _innermost(error: Exception) -> Exception:
    """Return the first exception inside nested exception groups."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


def check_maker(options: CheckOptions, *, now_ms: Callable[[], int], on_progress: OnProgress) -> RunReport:
    """Run all selected checks against a maker in a new trio event loop, and return the report.

    Raises:
        KeyboardInterrupt: the process receives SIGINT.
    """
    run = partial(run_checks, options, now_ms=now_ms, on_progress=on_progress)
    return trio.run(until_interrupted, run)


def _probe(options: CheckOptions, now_ms: Callable[[], int]) -> Probe:
    signer = options.credentials.signer() if options.credentials else None
    return Probe(
        options.base,
        timeout_s=options.timeout_s,
        now_ms=now_ms,
        signer=signer,
        authorities=options.authorities,
        pause_s=options.pause_s,
    )


def _node_probe(options: CheckOptions, now_ms: Callable[[], int]) -> Probe:
    return Probe(
        options.node or options.base,
        timeout_s=options.timeout_s,
        now_ms=now_ms,
        authorities=options.authorities,
    )
