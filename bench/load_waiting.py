"""Load test of 100,000 waiting orders: memory and CPU of the engine's timers, beside a trio task per order.

    task     a task each, asleep with a time-out
    timer    the engine's way: a timer each, in the single scheduler task
    whole    all that the engine keeps for a resting limit order besides its data, the timer included

The indexes of an order (by hash, nonce, price, owner's funds) exist either way, so that a timer is judged
against a task; a budget of its own bounds the growth of the whole. Every measurement runs in
a fresh process (`bench.waiting_orders`), the three in turn; memory is counted in the first round.
`python -m bench.load_waiting [rounds]` prints the table.
"""

import subprocess
import sys
from collections.abc import Callable, Sequence
from statistics import median

import msgspec
from rich.console import Console
from rich.table import Table

from bench.compare import Rounds
from bench.load_children import ROOT, LoadError, python_of
from bench.waiting_orders import COUNT, KINDS, TASK, TIMER, WHOLE, Waited

_PATIENCE_S = 600.0


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A measurement of one way in which 100,000 orders wait."""

    what: str
    round: int
    waited: Waited

    @property
    def both_us(self) -> float:
        """CPU to start and to end the waiting of an order, microseconds."""
        return self.waited.start_us + self.waited.end_us


def run(rounds: int, count: int = COUNT) -> list[Row]:
    """Measure the three ways in which orders wait in turn, `rounds` times.

    Raises:
        LoadError: a measurement failed.
    """
    return [
        Row(what=what, round=number, waited=_once(what, count, counts_memory=number == 0))
        for number in range(rounds)
        for what in KINDS
    ]


def _once(what: str, count: int, *, counts_memory: bool) -> Waited:
    command = [python_of(".venv"), "-m", "bench.waiting_orders", what, "--count", str(count)]
    if counts_memory:
        command.append("--memory")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False, timeout=_PATIENCE_S)
    if done.returncode:
        raise LoadError(done.stderr.decode(errors="replace")[-3_000:])
    return msgspec.json.decode(done.stdout, type=Waited)


def metrics(rows: Sequence[Row]) -> dict[str, Rounds]:
    """Return the test's results by name of the metric in budgets.toml, with a value for each round."""
    return {
        "waiting_timer_bytes": _ratios(rows, TIMER, _bytes),
        "waiting_timer_time": _ratios(rows, TIMER, lambda row: row.both_us),
        "waiting_whole_bytes": _ratios(rows, WHOLE, _bytes),
        "waiting_whole_time": _ratios(rows, WHOLE, lambda row: row.both_us),
    }


def _bytes(row: Row) -> float:
    return row.waited.bytes_each


def _ratios(rows: Sequence[Row], what: str, of: Callable[[Row], float]) -> Rounds:
    """Divide a figure of one way in which orders wait by that of the trio tasks, for each round."""
    found = {(row.what, row.round): of(row) for row in rows}
    values = [found[what, at] / task for (kind, at), task in found.items() if kind == TASK and task]
    return Rounds(tuple(values))


def table(rows: Sequence[Row]) -> Table:
    """Make a table of the medians over all rounds: memory and CPU of each way in which orders wait."""
    shown = Table("orders that wait", "bytes each", "with its data", "start us", "end us", box=None)
    for what in KINDS:
        mine = [row.waited for row in rows if row.what == what]
        counted = next(waited for waited in mine if waited.bytes_each)
        shown.add_row(
            what,
            f"{counted.bytes_each:,.0f}",
            f"{counted.bytes_each + counted.data_bytes:,.0f}",
            f"{median(waited.start_us for waited in mine):.1f}",
            f"{median(waited.end_us for waited in mine):.1f}",
        )
    return shown


def main() -> None:
    """Run the load test of waiting orders, and print its results as a table."""
    rows = run(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
    console = Console()
    console.print(table(rows))
    for name, found in metrics(rows).items():
        console.print(
            f"{name}: {median(found.values):.3f} ({' '.join(f'{value:.3f}' for value in found.values)})"
        )


if __name__ == "__main__":
    main()
