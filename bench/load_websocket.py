"""Load test of WebSocket clients that take the same market data: cambist's, and peers' in turn.

    ours         cambist's driver, on trio
    picows       on uvloop; the budgets compare with it
    websockets   its own driver for trio, over the same Sans-I/O core as ours

    receive      receive messages of 1 KB as text, without decoding: CPU per message
    book         decode messages and build books: messages per second

A process sends, each client is a process that receives; every round measures each client once, in turn.
`python -m bench.load_websocket [rounds]` prints the table.
"""

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from statistics import median

from msgspec import Struct
from rich.console import Console
from rich.table import Table

from bench.compare import Rounds
from bench.cpu_use import CpuUse
from bench.peers.process import ROOT, Peer
from bench.websocket_corpus import MESSAGES

OURS, PICOWS, WEBSOCKETS = "ours", "picows", "websockets"
RECEIVE, BOOK = "receive", "book"
ENVIRONMENT = ".venv-peers"
_COMMANDS = {
    OURS: ["bench.websocket_client"],
    PICOWS: ["bench.peers.picows_client"],
    WEBSOCKETS: ["bench.websocket_client", "websockets"],
}
_WARM_UP = 5_000
TRIES = 3
FOREIGN_MAX = 0.03  # of a core; beyond it a measurement is noisy
_COUNTS = {RECEIVE: 200_000, BOOK: MESSAGES - _WARM_UP}  # no book comes twice


class Row(Struct, frozen=True, kw_only=True):
    """A measurement of one WebSocket client.

    Attributes:
        work: RECEIVE or BOOK.
        client: key of _COMMANDS.
        round: from 0.
        rate: messages per second.
        cpu_us: CPU of the client's process per message, microseconds.
        digest: digest of all books; must be equal for all clients.
        foreign_core: cores that other processes used meanwhile; None if the platform does not report it.
    """

    work: str
    client: str
    round: int
    rate: float
    cpu_us: float
    digest: str
    foreign_core: float | None


def run(rounds: int) -> list[Row]:
    """Measure all WebSocket clients in turn, `rounds` times.

    Raises:
        RuntimeError: the clients did not build the same books.
    """
    python = ROOT / ENVIRONMENT / "bin" / "python"
    with ExitStack() as stack:
        sender = stack.enter_context(Peer(python, "-m", "bench.websocket_corpus"))
        clients = {
            name: stack.enter_context(Peer(python, "-m", *command)) for name, command in _COMMANDS.items()
        }
        port = int(sender.ask(""))
        pids = [peer.pid for peer in (sender, *clients.values())]
        rows = [
            _measure(work, client, number, clients[client], port, pids)
            for number in range(rounds)
            for work in (RECEIVE, BOOK)
            for client in (clients if number % 2 else reversed(clients))
        ]
    for work in (RECEIVE, BOOK):
        if len({row.digest for row in rows if row.work == work}) != 1:
            raise RuntimeError(f"the clients differ in {work}")
    return rows


def _measure(work: str, client: str, number: int, peer: Peer, port: int, pids: Sequence[int]) -> Row:
    """Measure one WebSocket client, up to TRIES times until other processes use little CPU."""
    for _ in range(TRIES - 1):
        row = _measure_once(work, client, number, peer, port, pids)
        if row.foreign_core is None or row.foreign_core <= FOREIGN_MAX:
            return row
    return _measure_once(work, client, number, peer, port, pids)


def _measure_once(work: str, client: str, number: int, peer: Peer, port: int, pids: Sequence[int]) -> Row:
    count = _COUNTS[work]
    use = CpuUse(pids)
    use.begin()
    seconds, cpu, digest = peer.ask(f"{port} {work} {_WARM_UP} {count}").split()
    use.end()
    return Row(
        work=work,
        client=client,
        round=number,
        rate=count / float(seconds),
        cpu_us=float(cpu) / count * 1e6,
        digest=digest,
        foreign_core=use.foreign,
    )


def ratios(rows: Sequence[Row], work: str, peer: str = PICOWS) -> Rounds:
    """Return the rate of cambist's client divided by that of a peer, for each undisturbed round.

    A round is disturbed if other processes use the CPU cores; if all rounds are disturbed, all count.
    """
    pairs = list(zip(_of(rows, work, OURS), _of(rows, work, peer), strict=True))
    quiet = [pair for pair in pairs if all((row.foreign_core or 0) <= FOREIGN_MAX for row in pair)]
    return Rounds(tuple(ours.rate / theirs.rate for ours, theirs in quiet or pairs), not quiet)


def metrics(rows: Sequence[Row]) -> dict[str, Rounds]:
    """Return the test's results by name of the metric in budgets.toml, with a value for each round."""
    return {
        "websocket_book": ratios(rows, BOOK),
        "websocket_receive": ratios(rows, RECEIVE),
    }


def table(rows: Sequence[Row]) -> Table:
    """Make a table of the medians over all rounds: rate and CPU of each WebSocket client."""
    shown = Table(
        "work", "client", "messages a second", "CPU us a message", "ours to it", "by CPU", "foreign", box=None
    )
    for work in (RECEIVE, BOOK):
        cpu = {client: median(row.cpu_us for row in _of(rows, work, client)) for client in _COMMANDS}
        for client in _COMMANDS:
            found = _of(rows, work, client)
            shown.add_row(
                work,
                client,
                f"{median(row.rate for row in found):,.0f}",
                f"{cpu[client]:.2f}",
                "" if client == OURS else f"{median(ratios(rows, work, client).values):.3f}",
                "" if client == OURS else f"{cpu[client] / cpu[OURS]:.3f}",
                f"{median(row.foreign_core or 0 for row in found):.2f}",
            )
    return shown


def _of(rows: Sequence[Row], work: str, client: str) -> list[Row]:
    return [row for row in rows if (row.work, row.client) == (work, client)]


def main() -> None:
    """Run the load test of WebSocket clients, and print its results as a table."""
    Console().print(table(run(int(sys.argv[1]) if len(sys.argv) > 1 else 3)))


if __name__ == "__main__":
    main()
