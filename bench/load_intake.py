"""Load test of POST /v2/delta/orders over loopback: CPU to accept and store an order.

    floor      the minimal work: recover an address, send an order's rows to the store process, answer `{}`
    venue      the whole intake; reads of its chain are answered from memory
    embedded   the whole intake; its chain is an EVM in the server's process, which adds the cost of reads

64 connections each submit the next order after an answer; no order comes twice. The server and its store have
one core, the load another; every measurement has a fresh process, the three kinds in turn.
`python -m bench.load_intake [rounds]` prints the table.
"""

import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from msgspec import Struct
from rich.console import Console
from rich.table import Table

from bench.compare import Rounds
from bench.cpu_use import await_quiet
from bench.intake_server import GROUND
from bench.load_children import ServerProcess, cores, run_generator
from bench.measured import Measured

SERVER, GENERATOR = "bench.intake_server", "bench.intake_generator"
ENVIRONMENT = ".venv"  # with the embedded chain
CLIENTS = 64
SECONDS, WARM_S = 6.0, 1.0
FLOOR, VENUE, EMBEDDED = "floor", "venue", "venue, embedded chain"
OPTIONS = {
    FLOOR: ("--what", "floor"),
    VENUE: ("--what", "venue", "--chain", "known"),
    EMBEDDED: ("--what", "venue", "--chain", "embedded"),
}
RATE_GUESS = {FLOOR: 8_000.0, VENUE: 4_000.0, EMBEDDED: 2_000.0}  # none is faster
FOREIGN_MAX = 0.03  # of a core; beyond it a measurement is noisy
TRIES = 3
QUIET_PATIENCE_S = 20.0
_READY = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


class Row(Struct, frozen=True, kw_only=True):
    """A measurement of one kind of server that takes orders in."""

    what: str
    round: int
    measured: Measured

    @property
    def cpu_us(self) -> float:
        """CPU time per order of the server's process, in microseconds, without its store process."""
        return 1e6 * (self.measured.server_core or 0.0) / self.measured.rate

    @property
    def is_noisy(self) -> bool:
        """Whether other processes used the CPU cores during the measurement, so that it does not count."""
        return (self.measured.foreign_core or 0.0) > FOREIGN_MAX


class _Load:
    """Runner of the measurements of order intake; a venue gets no order twice."""

    def __init__(self) -> None:
        self._next = 0
        self._server_core, self._load_core = cores()

    def measure(self, what: str, number: int) -> Row:
        """Measure one kind of server, up to TRIES times until other processes use little CPU."""
        for _ in range(TRIES - 1):
            await_quiet(FOREIGN_MAX, QUIET_PATIENCE_S)
            row = self._once(what, number)
            if not row.is_noisy:
                return row
        return self._once(what, number)

    def _once(self, what: str, number: int) -> Row:
        count = int(RATE_GUESS[what] * (SECONDS + WARM_S)) + CLIENTS
        first = self._next if what != FLOOR else 0
        self._next += 0 if what == FLOOR else count
        with tempfile.TemporaryDirectory(prefix="cambist-bench-") as folder:
            options = [*OPTIONS[what], "--folder", folder, "--count", str(count)]
            with ServerProcess(
                what, ENVIRONMENT, SERVER, options, self._server_core, request=_READY, shows=b"{"
            ) as server:
                measured = run_generator(
                    server, self._load_core, "closed", "--first", str(first), "--requests", str(count),
                    "--seconds", str(SECONDS), "--warm-s", str(WARM_S), "--clients", str(CLIENTS),
                    "--ground", str(Path(folder) / GROUND), *(("--floor",) if what == FLOOR else ()),
                    module=GENERATOR,
                )  # fmt: skip
        return Row(what=what, round=number, measured=measured)


def run(rounds: int) -> list[Row]:
    """Measure all three kinds of servers in turn, `rounds` times.

    Raises:
        LoadError: a measurement failed, or an answer was wrong.
    """
    load = _Load()
    return [load.measure(what, number) for number in range(rounds) for what in OPTIONS]


def metrics(rows: Sequence[Row]) -> dict[str, Rounds]:
    """Return the test's results by name of the metric in budgets.toml, with a value for each round.

    No metric covers the kind `embedded`, whose chain reads are otherwise a node's work.
    """
    return {"intake_floor": _ratios(rows, VENUE)}


def _ratios(rows: Sequence[Row], what: str) -> Rounds:
    """Return a server's CPU divided by the minimal server's of the same round, for each undisturbed round.

    A round is disturbed if other processes use the CPU cores; if all rounds are disturbed, all count.
    """
    by_round: dict[int, dict[str, Row]] = {}
    for row in rows:
        by_round.setdefault(row.round, {})[row.what] = row
    pairs = [(by_what[what], by_what[FLOOR]) for by_what in by_round.values()]
    quiet = [pair for pair in pairs if not any(row.is_noisy for row in pair)]
    return Rounds(tuple(ours.cpu_us / floor.cpu_us for ours, floor in quiet or pairs), not quiet)


def table(rows: Sequence[Row]) -> Table:
    """Make a table of the medians over all rounds: CPU per order of each kind of server."""
    shown = Table(
        "order intake", "orders a second", "CPU us each", "to the floor", "p50 ms", "p99 ms", "orders",
        "foreign", box=None,
    )  # fmt: skip
    floor_us = median(row.cpu_us for row in rows if row.what == FLOOR)
    for what in OPTIONS:
        mine = [row for row in rows if row.what == what]

        def of(value: Callable[[Row], float], mine: list[Row] = mine) -> float:
            return median(value(row) for row in mine)

        shown.add_row(
            what,
            f"{of(lambda row: row.measured.rate):,.0f}",
            f"{of(lambda row: row.cpu_us):.0f}",
            f"{of(lambda row: row.cpu_us) / floor_us:.2f}",
            f"{of(lambda row: row.measured.at(0.5)):.1f}",
            f"{of(lambda row: row.measured.at(0.99)):.1f}",
            f"{of(lambda row: row.measured.answers):,.0f}",
            f"{of(lambda row: row.measured.foreign_core or 0.0):.2f}",
        )
    return shown


def main() -> None:
    """Run the load test of order intake, and print its results as a table."""
    rows = run(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
    console = Console()
    console.print(table(rows))
    for name, found in metrics(rows).items():
        console.print(
            f"{name}: {median(found.values):.2f} ({' '.join(f'{value:.2f}' for value in found.values)})"
            f"{', beside something else' if found.noisy else ''}"
        )


if __name__ == "__main__":
    main()
