"""Load test of POST /firm over loopback: cambist's server and other servers, each on a core of its own.

    throughput   closed loop of 64 connections, cambist's server and each peer in turn; wrk measures once more
    tasks        the same with cambist's server, whose other driver has a task for each connection
    latency      open loop, all at the same fixed rate: 60 % of the slowest gated server's throughput
    snapshots    cambist with 500 pairs at that rate, quiet and with all prices replaced every half second
    flood        64 clients pipeline as fast as they can: how long another task of cambist has to wait

Every round measures each server once, in a fresh process; a ratio compares measurements of the same round,
and the median of the ratios is judged. A measurement disturbed by other processes is repeated; a round that
remains noisy does not count, unless all rounds are noisy, and then the report says so.
"""

import json
import tempfile
from array import array
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median

import msgspec
from msgspec import Struct

from bench.compare import Rounds
from bench.cpu_use import await_quiet
from bench.load_children import (
    LoadError,
    ServerProcess,
    cores,
    has_wrk,
    run_generator,
    run_wrk,
)
from bench.measured import Measured, Wrk

OURS, UVICORN, PROTOCOL = "ours", "uvicorn", "protocol"
GATED = (OURS, UVICORN, PROTOCOL)
TASKS = "a task for each connection"
CLIENTS = 64
LOAD_SHARE = 0.6
FOREIGN_MAX = 0.03  # of a core; beyond it a measurement is noisy
WAITED_MAX = 0.02  # of the time; the kernel's work for loopback alone keeps server and load off for 0.012
TRIES = 3
QUIET_PATIENCE_S = 20.0  # for others to finish, ahead of each measurement
WARM_S = 1.0
RATE_GUESS = 45_000.0  # no server of one core is faster than this
FLOOD_GUESS = 60_000.0
SNAPSHOT_PAIRS, SNAPSHOT_VERSIONS = 500, 8


class Shape(Struct, frozen=True):
    """A server of firm quotes that the load test can start and measure.

    Attributes:
        has_threads: whether the server has threads of its own, which wait for each other's turns.
    """

    title: str
    environment: str
    module: str
    has_threads: bool = False


SHAPES = {
    OURS: Shape("ours: trio, one reactor task", ".venv-load", "bench.firm_server"),
    UVICORN: Shape("uvicorn + uvloop, raw ASGI", ".venv-load", "bench.peers.uvicorn_firm"),
    PROTOCOL: Shape("bare uvloop Protocol, no limits", ".venv-load", "bench.peers.protocol_firm"),
    "granian": Shape("granian, RSGI", ".venv-load", "bench.peers.granian_firm", has_threads=True),
    "granian-asgi": Shape(
        "granian, raw ASGI", ".venv-load", "bench.peers.granian_asgi_firm", has_threads=True
    ),
    "hypercorn": Shape("hypercorn, trio worker, raw ASGI", ".venv-load", "bench.peers.hypercorn_firm"),
    "fastapi": Shape("FastAPI + uvicorn + eth-account", ".venv-peers", "bench.peers.fastapi_firm"),
}


class Row(Struct, kw_only=True):
    """Results of a measurement of one server of firm quotes.

    Attributes:
        phase: part of the load test, such as throughput or latency, or the name of the varied quantity.
        server: key of SHAPES.
        rate: requested requests per second of an open loop.
        tries: number of measurements until no other process disturbed one, or TRIES.
        late_ms, snapshot_ms: sorted figures of `firm_server.Watch`, if cambist's server ran with --watch.
    """

    phase: str
    round: int
    server: str
    measured: Measured
    rate: float = 0.0
    tries: int = 1
    wrk: Wrk | None = None
    late_ms: list[float] = []
    snapshot_ms: list[float] = []

    @property
    def noisy(self) -> bool:
        return (self.measured.foreign_core or 0.0) > FOREIGN_MAX or self.waited_core > WAITED_MAX

    @property
    def waited_core(self) -> float:
        """Fraction of the time for which other processes kept server or load off their cores.

        It is unknown, and 0, for a server with threads of its own, which wait for each other.
        """
        return 0.0 if SHAPES[self.server].has_threads else self.measured.waited_core or 0.0


class Plan(Struct, frozen=True):
    """Durations, number of rounds, and the servers of the load test of POST /firm.

    Attributes:
        seconds: duration of a closed loop, after its warm-up.
        open_seconds: duration of an open loop.
        peers: other servers to measure; only the gated ones have budgets, the others are reported.
    """

    rounds: int = 3
    seconds: float = 5.0
    open_seconds: float = 15.0
    peers: tuple[str, ...] = tuple(SHAPES)


class FirmLoad:
    """A run of the load test of POST /firm.

    Args:
        plan: durations, number of rounds, and servers.
        tell: receives a line about each measurement.

    Attributes:
        rows: the measurements so far.
    """

    def __init__(self, plan: Plan, tell: Callable[[str], None]) -> None:
        self.rows: list[Row] = []
        self._plan = plan
        self._tell = tell
        self._server_core, self._load_core = cores()
        self._next = 0  # number of the next request: no body comes twice in a run

    def run(self) -> list[Row]:
        """Measure all servers in all phases, and return the results.

        Raises:
            LoadError: a measurement failed, or an answer was wrong.
        """
        with tempfile.TemporaryDirectory() as folder:
            self._folder = Path(folder)
            rounds = range(self._plan.rounds)
            for at in rounds:
                for server in self._plan.peers:
                    self._closed(at, server)
            self._with_access_log(rounds)
            for at in rounds:
                self._ours(TASKS, at, "--no-reactor")
            self._latency(rounds)
            rate = self.rate(GATED)
            for at in rounds:
                self._snapshots(at, rate)
            for at in rounds:
                self._flood(at)
            self._compare_nonces()
        return self.rows

    def rate(self, servers: Iterable[str]) -> float:
        """Return the requests per second of an open loop: LOAD_SHARE of the slowest server's throughput."""
        capacities = [self.median_rate(server) for server in servers if server in self._plan.peers]
        return round(LOAD_SHARE * min(capacities), -2)

    def median_rate(self, server: str) -> float:
        """Return the median of a server's throughputs so far, answers per second."""
        return median(row.measured.rate for row in rows_of(self.rows, "throughput", server))

    # --- Phases -------------------------------------------------------------------------------------

    def _closed(self, at: int, server: str) -> None:
        self._measure(
            Row(phase="throughput", round=at, server=server, measured=NOTHING), [], ["closed"], RATE_GUESS,
            self._plan.seconds, witness=True,
        )  # fmt: skip

    def _with_access_log(self, rounds: range) -> None:
        for at in rounds:
            log = self._folder / f"access-{at}.log"
            self._ours("access log on", at, "--access-log", str(log))
            log.unlink()

    def _ours(self, phase: str, at: int, *serving: str) -> None:
        row = Row(phase=phase, round=at, server=OURS, measured=NOTHING)
        self._measure(row, [*serving], ["closed"], RATE_GUESS, self._plan.seconds)

    def _latency(self, rounds: range) -> None:
        rate = self.rate(GATED)
        for at in rounds:
            for server in self._plan.peers:
                if server in GATED:
                    self._open("latency", at, server, rate, [])
        for server in self._plan.peers:
            if server not in GATED:
                self._open("latency", 0, server, self.rate((server,)), [])

    def _snapshots(self, at: int, rate: float) -> None:
        pairs = ["--pairs", str(SNAPSHOT_PAIRS)]
        self._open("quiet", at, OURS, rate, pairs, pairs)
        watched = [*pairs, "--snapshots"]
        self._open("snapshots", at, OURS, rate, watched, [*pairs, "--versions", str(SNAPSHOT_VERSIONS)])

    def _open(
        self,
        phase: str,
        at: int,
        server: str,
        rate: float,
        serving: list[str],
        asking: list[str] | None = None,
    ) -> None:
        row = Row(phase=phase, round=at, server=server, measured=NOTHING, rate=rate)
        arguments = ["open", "--rate", str(rate), *(asking or [])]
        self._measure(
            row, serving, arguments, rate, self._plan.open_seconds, watch=phase in ("quiet", "snapshots")
        )

    def _flood(self, at: int) -> None:
        row = Row(phase="flood", round=at, server=OURS, measured=NOTHING)
        self._measure(row, [], ["flood"], FLOOD_GUESS, self._plan.seconds, watch=True)

    # --- One measurement ----------------------------------------------------------------------------

    def _measure(
        self,
        row: Row,
        serving: list[str],
        asking: list[str],
        rate_max: float,
        seconds: float,
        *,
        witness: bool = False,
        watch: bool = False,
    ) -> None:
        """Measure a server until no other process disturbs it, up to TRIES times; keep the best result.

        The best result is the least disturbed one.
        """
        tried: list[Row] = []
        while len(tried) < TRIES:
            await_quiet(FOREIGN_MAX, QUIET_PATIENCE_S)
            found = msgspec.structs.replace(row, tries=len(tried) + 1)
            self._once(found, serving, asking, rate_max, seconds, witness=witness, watch=watch)
            tried.append(found)
            self._tell(row_line(found))
            if not found.noisy:
                break
        best = min(tried, key=lambda attempt: attempt.waited_core or attempt.measured.foreign_core or 0.0)
        best.tries = len(tried)
        self.rows.append(best)

    def _once(
        self,
        row: Row,
        serving: list[str],
        asking: list[str],
        rate_max: float,
        seconds: float,
        *,
        witness: bool,
        watch: bool,
    ) -> None:
        shape, watched = SHAPES[row.server], self._folder / "watched.json"
        options = [*serving, "--watch", str(watched)] if watch else serving
        with ServerProcess(row.server, shape.environment, shape.module, options, self._server_core) as server:
            row.measured = run_generator(
                server, self._load_core, *asking, "--seconds", str(seconds), "--warm-s", str(WARM_S),
                "--clients", str(CLIENTS), *self._numbers(rate_max * (seconds + WARM_S) + 5_000),
                "--nonces", str(self._folder / "nonces"),
            )  # fmt: skip
            if witness and has_wrk():
                whole_s = max(1, int(seconds))
                count = int(1.3 * row.measured.rate * whole_s) + CLIENTS
                first, self._next = self._next, self._next + count
                row.wrk = run_wrk(
                    server, self._load_core, clients=CLIENTS, seconds=whole_s, first=first, count=count
                )
        if watch:
            found = json.loads(watched.read_text(encoding="utf-8"))
            row.late_ms = sorted(1_000 * late for late in found["late_s"])
            row.snapshot_ms = sorted(1_000 * taken for taken in found["snapshot_s"])

    def _numbers(self, count: float) -> list[str]:
        """Return the load's options that select request numbers which no other measurement has used."""
        first, self._next = self._next, self._next + int(count)
        return ["--first", str(first), "--requests", str(int(count))]

    def _compare_nonces(self) -> None:
        """Check that the random bits of the nonces differ in all answers of all servers."""
        raw = (self._folder / "nonces").read_bytes()
        nonces = array("Q", raw)
        if len(set(nonces)) != len(nonces):
            raise LoadError(f"{len(nonces) - len(set(nonces))} of {len(nonces)} nonces came twice")
        self._tell(f"{len(nonces)} answers, every nonce another")


NOTHING = Measured(
    rate=0, answers=0, used=0, latency_ms=[], server_core=None, load_core=None, foreign_core=None,
    waited_core=None, failures=[],
)  # fmt: skip


def rows_of(rows: Iterable[Row], phase: str, server: str = OURS) -> list[Row]:
    """Return the results of one phase and server of the load test, in the order of `rows`."""
    return [row for row in rows if (row.phase, row.server) == (phase, server)]


def row_line(row: Row) -> str:
    """Describe the results of a measurement as a line of text."""
    measured = row.measured
    noise = "" if measured.foreign_core is None else f", foreign use {measured.foreign_core:.2f} of a core"
    noise += "" if measured.waited_core is None else f", kept off {measured.waited_core:.4f}"
    noise += " (noisy)" if row.noisy else ""
    witness = f", wrk {row.wrk.rate:,.0f}/s" if row.wrk else ""
    return (
        f"{row.phase} {row.round + 1} {row.server}: {measured.rate:,.0f}/s{witness}, "
        f"p50 {measured.at(0.5):.2f} ms, p99 {measured.at(0.99):.2f} ms{noise}"
    )


# --- Ratios -------------------------------------------------------------------------------------------


def metrics(rows: Iterable[Row]) -> dict[str, Rounds]:
    """Return the test's results by name of the metric in budgets.toml, with a value for each round.

    Metrics that were not measured are absent.
    """
    rows = list(rows)

    def rate(row: Row) -> float:
        return row.measured.rate

    def p99(row: Row) -> float:
        return row.measured.at(0.99)

    def p999(row: Row) -> float:
        return row.measured.at(0.999)

    ours, latency, flood = (rows_of(rows, phase) for phase in ("throughput", "latency", "flood"))
    waits = Rounds(tuple(late_at(row, 0.999) for row in quiet(flood)), all(row.noisy for row in flood))
    found = {
        "throughput_uvicorn": _by_round(ours, rows_of(rows, "throughput", UVICORN), rate),
        "throughput_protocol": _by_round(ours, rows_of(rows, "throughput", PROTOCOL), rate),
        "p99_uvicorn": _by_round(latency, rows_of(rows, "latency", UVICORN), p99),
        "p999_uvicorn": _by_round(latency, rows_of(rows, "latency", UVICORN), p999),
        "p99_snapshots": _by_round(rows_of(rows, "snapshots"), rows_of(rows, "quiet"), p99),
        "wait_ms_flood": waits,
    }
    return {metric: rounds for metric, rounds in found.items() if rounds.values}


def _by_round(ours: list[Row], theirs: list[Row], of: Callable[[Row], float]) -> Rounds:
    by_round = {row.round: row for row in theirs}
    pairs = [(row, by_round[row.round]) for row in ours if row.round in by_round]
    undisturbed = [pair for pair in pairs if not (pair[0].noisy or pair[1].noisy)]
    return Rounds(tuple(of(one) / of(other) for one, other in undisturbed or pairs), not undisturbed)


def quiet(rows: list[Row]) -> list[Row]:
    """Return the results that other processes did not disturb; all results if each was disturbed."""
    return [row for row in rows if not row.noisy] or rows


def late_at(row: Row, share: float) -> float:
    """Return the lateness, in ms, of another task of cambist's server at the percentile `share`."""
    return row.late_ms[int((len(row.late_ms) - 1) * share)]
