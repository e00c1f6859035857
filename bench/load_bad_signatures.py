"""Load test of valid orders beside wrong signatures: CPU for a wrong order, and rate of the valid orders.

    quiet    16 clients submit valid orders, each the next order after an answer
    beside   the same beside 64 clients of other addresses, who sign with a key that is not the owner's
    flood    the 64 wrong clients alone: CPU of one of their requests

Closed loops over loopback against the venue of `bench.intake_server` with the EVM in its process, in turn,
each in a fresh process, for SECONDS after WARM_S. The rate tiers admit everything, so only
wrong signatures limit a client. Wrong clients have addresses in 127.1.0.0/16, valid ones 127.0.0.1; no client
waits as Retry-After says.
`python -m bench.load_bad_signatures [rounds]` prints the medians.
"""

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle, islice
from pathlib import Path
from statistics import median

import msgspec
import trio
from rich.console import Console
from rich.table import Table

from bench.cpu_use import CpuUse
from bench.delta_work import Ground, Orders
from bench.intake_server import GROUND
from bench.load_answers import take_answer
from bench.load_children import HOST, ServerProcess, cores

QUIET, BESIDE, FLOOD = "quiet", "beside", "flood"
CLIENTS = {QUIET: (16, 0), BESIDE: (16, 64), FLOOD: (0, 64)}
SECONDS, WARM_S = 4.0, 4.0
GOOD_MAX = 16_000  # orders of a measurement
_BAD_MADE = 512  # each comes again: nothing of it is kept
_BAD_FROM = 1 << 20
_READY = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


class Found(msgspec.Struct, frozen=True):
    """Results of one measurement with valid and wrong signatures.

    Attributes:
        good, refused, limited: answers per second with status 200, 400 and 429.
        server_core: cores that the server used.
    """

    good: float
    refused: float
    limited: float
    server_core: float


class _Load:
    """Requests and counters that the clients of one measurement share."""

    def __init__(self, port: int, orders: Orders, first: int) -> None:
        self._port = port
        self._good = iter([orders.request(number) for number in range(first, first + GOOD_MAX)])
        self._bad = [_forged(orders, _BAD_FROM + number) for number in range(_BAD_MADE)]
        self.begins = self.ends = 0.0
        self.answers: Counter[tuple[bool, int]] = Counter()

    async def client(self, address: str, requests: Iterator[bytes], is_good: bool) -> None:
        """Send requests from one address, each after the answer to the previous, until the time is over.

        Args:
            is_good: whether the requests have valid signatures.
        """
        peer = trio.socket.socket()
        with peer:
            await peer.bind((address, 0))
            await peer.connect((HOST, self._port))
            buffer = b""
            while time.perf_counter() < self.ends:
                await peer.send(next(requests))
                while (taken := take_answer(buffer, 0)) is None:
                    buffer += await peer.recv(65_536)
                status, body, end = taken
                buffer = buffer[end:]
                if time.perf_counter() >= self.begins:
                    self.answers[is_good, status] += 1
                if is_good and status != 200:
                    raise RuntimeError(f"a good order was answered {status}: {body[:200]!r}")

    async def run(self, good_clients: int, bad_clients: int, use: CpuUse) -> None:
        """Run all clients until the time is over.

        Args:
            good_clients: number of clients with valid signatures.
            bad_clients: number of clients with wrong signatures.
            use: measures the CPU use after the warm-up.
        """
        self.begins = time.perf_counter() + WARM_S
        self.ends = self.begins + SECONDS
        async with trio.open_nursery() as nursery:
            for _ in range(good_clients):
                nursery.start_soon(self.client, HOST, self._good, True)
            for number in range(bad_clients):
                address = f"127.1.{number // 250}.{number % 250 + 1}"
                mine = islice(cycle(self._bad), number, None)
                nursery.start_soon(self.client, address, mine, False)
            await trio.sleep(WARM_S)
            use.begin()


def _forged(orders: Orders, number: int) -> bytes:
    """Make the request that submits an order with a signature of another owner."""
    whole, other = orders.request(number), orders.signed(number + 1)
    return whole.replace(orders.signed(number).signature64.hex().encode(), other.signature64.hex().encode())


def measure(what: str, first: int) -> Found:
    """Measure once, against a server in a fresh process.

    Args:
        what: kind of the measurement: quiet, beside or flood.
        first: number of the first order.
    """
    server_core, _ = cores()
    with tempfile.TemporaryDirectory(prefix="cambist-bench-") as folder:
        options = ["--what", "venue", "--chain", "embedded", "--bounded", "--folder", folder]
        with ServerProcess(
            "venue", ".venv", "bench.intake_server", options, server_core, request=_READY, shows=b"{"
        ) as server:
            ground = msgspec.json.decode((Path(folder) / GROUND).read_bytes(), type=Ground)
            load = _Load(server.port, Orders(ground), first)
            use = CpuUse([server.pid])
            trio.run(load.run, *CLIENTS[what], use)
            use.end()
    answers = load.answers
    return Found(
        good=answers[True, 200] / SECONDS,
        refused=answers[False, 400] / SECONDS,
        limited=answers[False, 429] / SECONDS,
        server_core=use.of(server.pid) or 0.0,
    )


def run(rounds: int) -> dict[str, list[Found]]:
    """Measure each kind in turn, `rounds` times: kind -> results."""
    found: dict[str, list[Found]] = {what: [] for what in CLIENTS}
    for number in range(rounds):
        for what, rows in found.items():
            rows.append(measure(what, number * GOOD_MAX))
    return found


def table(found: Mapping[str, Sequence[Found]]) -> Table:
    """Make a table of the medians of the load test of wrong signatures."""
    names = ("wrong signatures", "good/s", "400/s", "429/s", "server core", "CPU us of a bad one")
    shown = Table(*names, box=None)
    for what, rows in found.items():
        good, refused, limited, core = (
            median(getattr(row, name) for row in rows) for name in Found.__struct_fields__
        )
        each = f"{1e6 * core / (refused + limited):,.0f}" if what == FLOOD else ""
        shown.add_row(what, f"{good:,.0f}", f"{refused:,.0f}", f"{limited:,.0f}", f"{core:.2f}", each)
    return shown


def main() -> None:
    """Run the load test of wrong signatures, and print the medians of its results."""
    Console().print(table(run(int(sys.argv[1]) if len(sys.argv) > 1 else 3)))


if __name__ == "__main__":
    main()
