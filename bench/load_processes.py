"""Load test of POST /firm in several processes: 64 connections to two processes, to the same with one.

The load has no core of its own: on a machine of two cores it shares them with both servers. The servers
alternate, and a ratio compares two measurements of the same round.

`python -m bench.load_processes` prints the table.
"""

from collections.abc import Sequence

from msgspec import Struct
from rich.console import Console
from rich.table import Table

from bench.compare import Rounds
from bench.load_children import ServerProcess, run_generator

SECONDS, WARM_S = 4.0, 1.0
RATE_GUESS = 45_000.0  # no two processes are faster than this
SEVERAL, CLIENTS = 2, 64


class Served(Struct, frozen=True, kw_only=True):
    """Firm quotes a second of a maker with so many processes."""

    round: int
    processes: int
    rate: float


def run(rounds: int) -> list[Served]:
    """Measure one process and several, `rounds` times in turn.

    Raises:
        LoadError: a measurement failed, or an answer was wrong.
    """
    found: list[Served] = []
    for at in range(rounds):
        for processes in (1, SEVERAL):
            first = len(found) * int(RATE_GUESS * (SECONDS + WARM_S))
            more = ("--processes", str(processes))
            with ServerProcess("ours", ".venv-load", "bench.firm_server", more, None) as server:
                measured = run_generator(
                    server, None, "closed", "--seconds", str(SECONDS), "--warm-s", str(WARM_S),
                    "--clients", str(CLIENTS),
                    "--first", str(first), "--requests", str(int(RATE_GUESS * (SECONDS + WARM_S))),
                )  # fmt: skip
            found.append(Served(round=at, processes=processes, rate=measured.rate))
    return found


def metrics(found: Sequence[Served]) -> dict[str, Rounds]:
    """Return the test's result by name of the metric in budgets.toml, with a value for each round."""
    rates = {
        processes: [row.rate for row in found if row.processes == processes] for processes in (1, SEVERAL)
    }
    ratios = (one / several for one, several in zip(rates[1], rates[SEVERAL], strict=True))
    return {"two_processes": Rounds(tuple(ratios))}


def table(found: Sequence[Served]) -> Table:
    """Make a table with a row for each measurement."""
    shown = Table("processes", "firm quotes a second", box=None)
    for row in found:
        shown.add_row(f"{row.processes}", f"{row.rate:,.0f}")
    return shown


def main() -> None:
    """Run the load test, and print its table."""
    Console().print(table(run(3)))


if __name__ == "__main__":
    main()
