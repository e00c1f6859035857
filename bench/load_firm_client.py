"""Load test of clients for firm quotes: cambist's, aiohttp and httpx ask the same server in turn.

Each client has 64 calls in flight, each signed and decoded, no body twice; the client has one core, the
server the other. The server answers from a template and is never the limit: the table shows its core use.
`python -m bench.load_firm_client [rounds]` prints it.
"""

import sys
from collections.abc import Sequence
from statistics import median

from msgspec import Struct
from rich.console import Console
from rich.table import Table

from bench.compare import Rounds
from bench.cpu_use import CpuUse
from bench.load_children import cores, pinned, python_of
from bench.peers.process import Peer

OURS, AIOHTTP, HTTPX = "ours", "aiohttp on uvloop", "httpx on trio"
ENVIRONMENT = ".venv-peers"
_SERVER = "bench.peers.firm_answers"
_MODULES = {
    OURS: "bench.firm_client",
    AIOHTTP: "bench.peers.aiohttp_firm_client",
    HTTPX: "bench.peers.httpx_firm_client",
}
METRICS = {"firm_client_aiohttp": AIOHTTP, "firm_client_httpx": HTTPX}
SECONDS = 3.0
NUMBERS_EACH = 10_000_000  # of questions, which no measurement uses up
TRIES = 3
FOREIGN_MAX = 0.03  # of a core; beyond it a measurement is noisy


class Row(Struct, frozen=True, kw_only=True):
    """A measurement of one HTTP client for firm quotes.

    Attributes:
        client: key of _MODULES.
        round: from 0.
        rate: answers per second.
        cpu_us: CPU of the client's process per answer, microseconds.
        server_core: cores used by the server; None if the platform does not report it.
        foreign_core: cores used by other processes meanwhile; None likewise.
    """

    client: str
    round: int
    rate: float
    cpu_us: float
    server_core: float | None
    foreign_core: float | None

    @property
    def is_noisy(self) -> bool:
        return (self.foreign_core or 0.0) > FOREIGN_MAX


class _Bench:
    """Server and client processes of a run, and the number of the next request for a firm quote."""

    def __init__(self, server: Peer, clients: dict[str, Peer]) -> None:
        self._port = int(server.ask(""))
        self._server = server
        self._clients = clients
        self._next = 0

    def measure(self, client: str, number: int) -> Row:
        """Measure one client, up to TRIES times until other processes use little CPU."""
        for _ in range(TRIES - 1):
            row = self._once(client, number)
            if not row.is_noisy:
                return row
        return self._once(client, number)

    def _once(self, client: str, number: int) -> Row:
        first, self._next = self._next, self._next + NUMBERS_EACH
        use = CpuUse([self._server.pid, *(peer.pid for peer in self._clients.values())])
        use.begin()
        answers, seconds, cpu = self._clients[client].ask(f"{self._port} {first} {SECONDS}").split()
        use.end()
        return Row(
            client=client,
            round=number,
            rate=int(answers) / float(seconds),
            cpu_us=float(cpu) / int(answers) * 1e6,
            server_core=use.of(self._server.pid),
            foreign_core=use.foreign,
        )


def run(rounds: int) -> list[Row]:
    """Measure all clients for firm quotes in turn, `rounds` times.

    Raises:
        RuntimeError: a client process ended: an answer was wrong, or the client failed.
    """
    server_core, client_core = cores()
    python = python_of(ENVIRONMENT)

    def process(module: str, core: int | None) -> Peer:
        return Peer(*pinned(core, [python, "-m", module]))

    with (
        process(_SERVER, server_core) as server,
        process(_MODULES[OURS], client_core) as ours,
        process(_MODULES[AIOHTTP], client_core) as aiohttp,
        process(_MODULES[HTTPX], client_core) as httpx,
    ):
        bench = _Bench(server, {OURS: ours, AIOHTTP: aiohttp, HTTPX: httpx})
        return [
            bench.measure(client, number)
            for number in range(rounds)
            for client in (_MODULES if number % 2 else reversed(_MODULES))
        ]


def ratios(rows: Sequence[Row], other: str) -> Rounds:
    """Return the rate of cambist's client divided by another client's, for each undisturbed round.

    A round is disturbed if other processes use the CPU cores; if all rounds are disturbed, all count.
    """
    rounds: dict[int, dict[str, Row]] = {}
    for row in rows:
        rounds.setdefault(row.round, {})[row.client] = row
    both = [(found[OURS], found[other]) for found in rounds.values()]
    undisturbed = [pair for pair in both if not (pair[0].is_noisy or pair[1].is_noisy)]
    return Rounds(tuple(ours.rate / other.rate for ours, other in undisturbed or both), not undisturbed)


def metrics(rows: Sequence[Row]) -> dict[str, Rounds]:
    """Return the test's results by name of the metric in budgets.toml, with a value for each round."""
    return {metric: ratios(rows, client) for metric, client in METRICS.items()}


def table(rows: Sequence[Row]) -> Table:
    """Make a table of the medians over all rounds: rate and CPU of each client."""
    shown = Table(
        "client", "answers a second", "CPU us each", "ours to it", "server's core", "foreign", box=None
    )
    for client in _MODULES:
        mine = [row for row in rows if row.client == client]
        shown.add_row(
            client,
            f"{median(row.rate for row in mine):,.0f}",
            f"{median(row.cpu_us for row in mine):.0f}",
            "" if client == OURS else f"{median(ratios(rows, client).values):.2f}",
            f"{median(row.server_core or 0 for row in mine):.2f}",
            f"{median(row.foreign_core or 0 for row in mine):.2f}",
        )
    return shown


def main() -> None:
    """Run the load test of clients for firm quotes, and print its results as a table."""
    Console().print(table(run(int(sys.argv[1]) if len(sys.argv) > 1 else 3)))


if __name__ == "__main__":
    main()
