"""Load test of order books: cambist and NautilusTrader build books from the same price texts, in turn.

A message has one pair's two sides of 20 levels, half of them changed; `bench.book_corpus` lists the kinds of
strings. Every book of every message is compared, level by level. NautilusTrader is measured
twice: its documented order book, against which cambist's is judged, and the book of its Rust core alone.
`python -m bench.load_book [rounds]` prints the table; `make setup-nautilus` comes first.
"""

import sys
from collections.abc import Sequence
from statistics import median

from msgspec import Struct
from rich.console import Console
from rich.table import Table

from bench.book_corpus import AGAIN, EVEN, TRIMMED
from bench.compare import Rounds
from bench.cpu_use import CpuUse
from bench.peers.process import ROOT, Peer

OURS, NAUTILUS, RUST = "ours", "NautilusTrader", "its Rust core"
KINDS = (EVEN, TRIMMED, AGAIN)
ENVIRONMENT = ROOT / ".venv-nautilus"
WARM_UP, COUNT = 500, 5_000
TRIES = 3
FOREIGN_MAX = 0.03  # of a core; beyond it a measurement is noisy
METRICS = {"book_even": EVEN, "book_trimmed": TRIMMED, "book_again": AGAIN}
_PEER = "bench.peers.nautilus_book"


class Row(Struct, frozen=True, kw_only=True):
    """A measurement of one implementation of order books.

    Attributes:
        kind: one of KINDS.
        book: OURS, NAUTILUS or RUST.
        round: from 0.
        us: microseconds of CPU per message.
        digest: digest of all books; must be equal for all implementations.
        foreign_core: cores that other processes used meanwhile; None if the platform does not report it.
    """

    kind: str
    book: str
    round: int
    us: float
    digest: str
    foreign_core: float | None

    @property
    def is_noisy(self) -> bool:
        return (self.foreign_core or 0.0) > FOREIGN_MAX


def has_nautilus() -> bool:
    """Whether NautilusTrader is installed, which has wheels for few platforms only."""
    return (ENVIRONMENT / ".ready").exists()


def run(rounds: int) -> list[Row]:
    """Measure all implementations of order books in turn, `rounds` times.

    Raises:
        RuntimeError: the implementations built different books.
    """
    python = ENVIRONMENT / "bin" / "python"
    with (
        Peer(sys.executable, "-m", "bench.book_client") as ours,
        Peer(python, "-m", _PEER, "book") as documented,
        Peer(python, "-m", _PEER, "pyo3") as rust,
    ):
        books = {OURS: ours, NAUTILUS: documented, RUST: rust}
        for peer in books.values():
            for kind in KINDS:
                peer.ask(f"{kind} 0 {WARM_UP}")
        rows = [
            _measure(kind, book, number, books)
            for number in range(rounds)
            for kind in KINDS
            for book in (books if number % 2 else reversed(books))
        ]
    for kind in KINDS:
        for number in range(rounds):
            if len({row.digest for row in rows if (row.kind, row.round) == (kind, number)}) != 1:
                raise RuntimeError(f"the books differ: {kind}, round {number + 1}")
    return rows


def _measure(kind: str, book: str, number: int, books: dict[str, Peer]) -> Row:
    """Measure one implementation of order books, up to TRIES times until other processes use little CPU."""
    for _ in range(TRIES - 1):
        row = _measure_once(kind, book, number, books)
        if not row.is_noisy:
            return row
    return _measure_once(kind, book, number, books)


def _measure_once(kind: str, book: str, number: int, books: dict[str, Peer]) -> Row:
    use = CpuUse([peer.pid for peer in books.values()])
    use.begin()
    cpu, digest = books[book].ask(f"{kind} {WARM_UP + number * COUNT} {COUNT}").split()
    use.end()
    us = float(cpu) / COUNT * 1e6
    return Row(kind=kind, book=book, round=number, us=us, digest=digest, foreign_core=use.foreign)


def ratios(rows: Sequence[Row], kind: str, book: str = NAUTILUS) -> Rounds:
    """Return CPU of another implementation of order books divided by cambist's, for each undisturbed round.

    A round is disturbed if other processes use the CPU cores; if all rounds are disturbed, all count.
    """
    rounds: dict[int, dict[str, Row]] = {}
    for row in rows:
        if row.kind == kind:
            rounds.setdefault(row.round, {})[row.book] = row
    both = [(found[OURS], found[book]) for found in rounds.values()]
    undisturbed = [pair for pair in both if not (pair[0].is_noisy or pair[1].is_noisy)]
    values = tuple(other.us / ours.us for ours, other in undisturbed or both)
    return Rounds(values, not undisturbed)


def metrics(rows: Sequence[Row]) -> dict[str, Rounds]:
    """Return the test's results by name of the metric in budgets.toml, with a value for each round."""
    return {metric: ratios(rows, kind) for metric, kind in METRICS.items()}


def table(rows: Sequence[Row]) -> Table:
    """Make a table of the medians over all rounds: CPU per message of each implementation."""
    shown = Table("strings", "book", "CPU us, 2 x 20 levels", "to ours", "foreign", box=None)
    for kind in KINDS:
        for book in (OURS, NAUTILUS, RUST):
            mine = [row for row in rows if (row.kind, row.book) == (kind, book)]
            shown.add_row(
                kind,
                book,
                f"{median(row.us for row in mine):.1f}",
                "" if book == OURS else f"{median(ratios(rows, kind, book).values):.2f}",
                f"{median(row.foreign_core or 0 for row in mine):.2f}",
            )
    return shown


def main() -> None:
    """Run the load test of order books, and print its results as a table."""
    if not has_nautilus():
        sys.exit("there is no NautilusTrader here: make setup-nautilus")
    Console().print(table(run(int(sys.argv[1]) if len(sys.argv) > 1 else 3)))


if __name__ == "__main__":
    main()
