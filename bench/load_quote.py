"""Load test of GET /v2/quote over loopback: makers of 20 levels, routes of three hops, books that change.

    closed   64 connections: maximum quotes per second, the venue's CPU per quote
    open     600 a second on every machine: latency from each request's due time

The venue has one core, the load another; every round has a fresh process. A line of three hops with 20 makers
is measured beside the wide graph, where four paths are compared and two may share an amount, and beside that
line with 100 makers.
`python -m bench.load_quote [rounds]` prints the table.
"""

import sys
from collections.abc import Callable, Sequence
from statistics import median

from msgspec import Struct
from rich.console import Console
from rich.table import Table

from bench.compare import Rounds
from bench.cpu_use import await_quiet
from bench.decimal_walk import walk_us
from bench.load_children import ServerProcess, cores, run_generator
from bench.measured import Measured
from bench.native_signature import signature_us
from bench.quote_work import LINE, WIDE, request

SERVER, GENERATOR = "bench.quote_server", "bench.quote_generator"
ENVIRONMENT = ".venv"  # with the embedded chain
MANY = "line, 100 makers"
OPTIONS = {
    LINE: ("--graph", LINE),
    WIDE: ("--graph", WIDE),
    MANY: ("--graph", LINE, "--makers", "100"),
}
CLIENTS = 64
OPEN_RATE = 600.0  # quotes a second, of which 30 share each change of a maker's books (`bench.quote_server`)
SECONDS, OPEN_SECONDS, WARM_S = 5.0, 10.0, 1.0
RATE_GUESS = 6_000.0  # no venue of one core is faster than this
FOREIGN_MAX = 0.03  # of a core; beyond it a measurement is noisy
WAITED_MAX = 0.25  # likewise: the store process takes its turns on the venue's core
TRIES = 3
QUIET_PATIENCE_S = 20.0
_READY_FROM = 1 << 40  # number of the first request, which no load uses


class Row(Struct, frozen=True, kw_only=True):
    """Results of a round of one kind.

    Attributes:
        kind: LINE, WIDE or MANY.
        closed, measured: results of the closed loop, and of the open one.
        signature_us, walk_us: CPU of a C signature and of a Decimal walk, measured just afterwards.
    """

    kind: str
    round: int
    closed: Measured
    measured: Measured
    signature_us: float
    walk_us: float

    @property
    def cpu_us(self) -> float:
        """CPU time per quote of the venue's process, in microseconds."""
        return 1e6 * (self.closed.server_core or 0.0) / self.closed.rate

    @property
    def is_noisy(self) -> bool:
        """Whether other processes ran meanwhile, or kept the venue or the load off its CPU core."""
        foreign = max(each.foreign_core or 0.0 for each in (self.closed, self.measured))
        return foreign > FOREIGN_MAX or (self.measured.waited_core or 0.0) > WAITED_MAX


class _Load:
    """Runner of the measurements of GET /v2/quote; gives each request a number that no other has."""

    def __init__(self) -> None:
        self._next = 0
        self._server_core, self._load_core = cores()

    def measure(self, kind: str, number: int) -> Row:
        """Measure one kind, up to TRIES times until other processes use little CPU."""
        for _ in range(TRIES - 1):
            await_quiet(FOREIGN_MAX, QUIET_PATIENCE_S)
            row = self._once(kind, number)
            if not row.is_noisy:
                return row
        return self._once(kind, number)

    def _once(self, kind: str, number: int) -> Row:
        with ServerProcess(
            f"the venue ({kind})", ENVIRONMENT, SERVER, [*OPTIONS[kind]], self._server_core,
            request=request(_READY_FROM), shows=b'"delta"',
        ) as server:  # fmt: skip
            closed = self._generate(server, "closed", SECONDS, RATE_GUESS)
            return Row(
                kind=kind,
                round=number,
                closed=closed,
                measured=self._generate(server, "open", OPEN_SECONDS, OPEN_RATE, "--rate", str(OPEN_RATE)),
                signature_us=signature_us(),
                walk_us=walk_us(),
            )

    def _generate(
        self, server: ServerProcess, mode: str, seconds: float, rate_max: float, *more: str
    ) -> Measured:
        count = int(rate_max * (seconds + WARM_S)) + CLIENTS
        first, self._next = self._next, self._next + count
        return run_generator(
            server, self._load_core, mode, "--first", str(first), "--requests", str(count), "--seconds",
            str(seconds), "--warm-s", str(WARM_S), "--clients", str(CLIENTS), *more, module=GENERATOR,
        )  # fmt: skip


def run(rounds: int) -> list[Row]:
    """Measure all kinds in turn, `rounds` times.

    Raises:
        LoadError: a measurement failed, or an answer was wrong.
    """
    load = _Load()
    return [load.measure(kind, number) for number in range(rounds) for kind in OPTIONS]


def metrics(rows: Sequence[Row]) -> dict[str, Rounds]:
    """Return the test's results by name of the metric in budgets.toml, with a value for each round."""
    return {
        "quote_walks": _rounds(rows, lambda row: row.cpu_us / row.walk_us),
        "quote_p99_at_600_ms": _rounds(rows, lambda row: row.measured.at(0.99)),
        "quote_wide_lines": _beside_line(rows, WIDE),
        "quote_100_makers": _beside_line(rows, MANY),
    }


def _rounds(rows: Sequence[Row], of: Callable[[Row], float]) -> Rounds:
    """Return a figure of each undisturbed round of LINE; of all its rounds if each is disturbed."""
    line = [row for row in rows if row.kind == LINE]
    undisturbed = [row for row in line if not row.is_noisy]
    return Rounds(tuple(of(row) for row in undisturbed or line), not undisturbed)


def _beside_line(rows: Sequence[Row], kind: str) -> Rounds:
    """Return the CPU of a quote of a kind divided by that of LINE in the same round, likewise."""
    of_line = {row.round: row for row in rows if row.kind == LINE}
    pairs = [(row, of_line[row.round]) for row in rows if row.kind == kind]
    undisturbed = [pair for pair in pairs if not any(row.is_noisy for row in pair)]
    found = undisturbed or pairs
    return Rounds(tuple(row.cpu_us / line.cpu_us for row, line in found), not undisturbed)


def table(rows: Sequence[Row]) -> Table:
    """Make a table of the medians over all rounds: quotes per second, latency and CPU of each kind."""
    shown = Table(
        "", "quotes a second at most", "CPU us each", "in walks", "in signatures", "open loop at",
        "p50 ms", "p99 ms", "p99.9 ms", "foreign", "waited", box=None,
    )  # fmt: skip
    for kind in OPTIONS:
        mine = [row for row in rows if row.kind == kind]

        def at(share: float, mine: list[Row] = mine) -> str:
            return f"{median(row.measured.at(share) for row in mine):.2f}"

        shown.add_row(
            kind,
            f"{median(row.closed.rate for row in mine):,.0f}",
            f"{median(row.cpu_us for row in mine):.0f}",
            f"{median(row.cpu_us / row.walk_us for row in mine):.0f}",
            f"{median(row.cpu_us / row.signature_us for row in mine):.1f}",
            f"{median(row.measured.rate for row in mine):,.0f}/s",
            at(0.5),
            at(0.99),
            at(0.999),
            f"{median(row.measured.foreign_core or 0 for row in mine):.2f}",
            f"{median(row.measured.waited_core or 0 for row in mine):.2f}",
        )
    return shown


def main() -> None:
    """Run the load test of GET /v2/quote, and print its results as a table."""
    Console().print(table(run(int(sys.argv[1]) if len(sys.argv) > 1 else 3)))


if __name__ == "__main__":
    main()
