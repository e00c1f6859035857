"""Load test of many listeners to the order events of one engine: time until the last has one, memory of each.

    server     `bench.listeners_server`: the venue's streams, or a bare loop of sends as a floor
    listeners  one process that reads all connections
    answers    600 bytes, asked for at a steady rate: what a quote beside the events waits

`python -m bench.load_listeners [listeners ...]` prints the table.
"""

import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import median

import msgspec
from rich.console import Console
from rich.table import Table

from bench.compare import Rounds
from bench.listeners_server import BARE, VENUE
from bench.load_children import HOST, READY_S, ROOT, LoadError, ServerProcess, cores, pinned, python_of

LISTENERS = 10_000
EVENTS = 12
_EVERY_S = 0.5  # between two events
_ASKED_EVERY_S = 0.004
_TOGETHER = 64  # connections that are opened at once


class Listening(msgspec.Struct, frozen=True, kw_only=True):
    """Results of one server.

    Attributes:
        what: VENUE or BARE.
        last_s: median time from the publication of an event until the last listener has it.
        memory_bytes: resident memory of the server for each listener.
        quiet_ms, beside_ms: 99th percentile of the answers without and beside events.
    """

    what: str
    listeners: int
    last_s: float
    memory_bytes: float
    quiet_ms: float
    beside_ms: float


def measure(what: str, listeners: int) -> Listening:
    """Measure one server with a number of listeners.

    Raises:
        LoadError: the server or the listeners end early.
    """
    server_core, load_core = cores()
    first = _request("answer")
    with ServerProcess(
        what, ".venv", "bench.listeners_server", ("--what", what), server_core, request=first, shows=b"xxx"
    ) as server:
        asker = _Asker(server.port)
        before = int(asker.ask("memory"))
        with _listening(server.port, listeners, load_core) as arrived:
            memory = (int(asker.ask("memory")) - before) / listeners
            quiet = asker.ask_for(EVENTS * _EVERY_S)
            took_s, beside = list[float](), list[float]()
            for _ in range(EVENTS):
                began = float(asker.ask("publish"))
                beside += asker.ask_for(_EVERY_S)
                took_s.append(next(arrived) - began)
    return Listening(
        what=what,
        listeners=listeners,
        last_s=median(took_s),
        memory_bytes=memory,
        quiet_ms=1e3 * _p99(quiet),
        beside_ms=1e3 * _p99(beside),
    )


class _Asker:
    """A client with one connection, which asks for one answer after another."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection((HOST, port), READY_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, what: str) -> bytes:
        """Return the body of an answer."""
        self._socket.sendall(_request(what))
        data = b""
        while b"\r\n\r\n" not in data:
            data += self._received()
        head, _, body = data.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        while len(body) < length:
            body += self._received()
        return body

    def ask_for(self, seconds: float) -> list[float]:
        """Ask for answers at a steady rate; return the time of each, from when it was due."""
        began, took_s = time.monotonic(), list[float]()
        due = began
        while due < began + seconds:
            time.sleep(max(0.0, due - time.monotonic()))
            self.ask("answer")
            took_s.append(time.monotonic() - due)
            due += _ASKED_EVERY_S
        return took_s

    def _received(self) -> bytes:
        data = self._socket.recv(65_536)
        if not data:
            raise LoadError("the server of events has closed a connection")
        return data


@contextmanager
def _listening(port: int, listeners: int, core: int | None) -> Iterator[Iterator[float]]:
    """Run the listeners in a process of their own: the times, monotonic, at which the last has each event."""
    command = [python_of(".venv"), "-m", "bench.load_listeners", "--read", str(port), str(listeners)]
    # Of lower priority: it may be late beside the asker, which shares its core.
    process = subprocess.Popen(["nice", *pinned(core, command)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    lines = map(float, process.stdout)
    try:
        if next(lines, None) is None:  # all have their first message
            raise LoadError("the listeners have ended")
        yield lines
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def read(port: int, listeners: int) -> None:
    """Open the listeners' connections, and print the time at which the last of them has each message."""
    poll, sockets = select.epoll(), dict[int, socket.socket]()

    def until_all_have(mark: bytes, left: int) -> None:
        while left > 0:
            for descriptor, _ in poll.poll():
                data = sockets[descriptor].recv(65_536)
                if not data:
                    raise LoadError("the server of events has closed a connection")
                left -= data.count(mark)

    for number in range(1, listeners + 1):
        # Of many networks: one alone may have half of the places.
        source = f"127.0.{number // _TOGETHER % 256}.1"
        one = socket.create_connection((HOST, port), READY_S, (source, 0))
        one.sendall(_request("events"))
        sockets[one.fileno()] = one
        poll.register(one.fileno(), select.EPOLLIN)
        if not number % _TOGETHER or number == listeners:  # more would overflow the queue of connections
            until_all_have(b"event: open", (number - 1) % _TOGETHER + 1)
    while True:
        sys.stdout.write(f"{time.monotonic()!r}\n")
        sys.stdout.flush()
        until_all_have(b"event: order", listeners)


def _request(what: str) -> bytes:
    return f"GET /{what} HTTP/1.1\r\nhost: {HOST}\r\n\r\n".encode()


def _p99(values: Sequence[float]) -> float:
    return sorted(values)[len(values) * 99 // 100]


def run(rounds: int) -> list[Listening]:
    """Measure both servers `rounds` times, in turn."""
    return [measure(what, LISTENERS) for _ in range(rounds) for what in (VENUE, BARE)]


def metrics(found: Sequence[Listening]) -> dict[str, Rounds]:
    """Return the test's results by name of the metric in budgets.toml, with a value for each round."""
    venue, bare = [[one for one in found if one.what == what] for what in (VENUE, BARE)]
    return {
        "listeners": Rounds(
            tuple(ours.last_s / floor.last_s for ours, floor in zip(venue, bare, strict=True))
        ),
        "listener_kb": Rounds(tuple(one.memory_bytes / 1_000 for one in venue)),
    }


def table(found: Sequence[Listening]) -> Table:
    """Make a table of the medians over all rounds, by server."""
    shown = Table(
        "server", "listeners", "last has it ms", "kB each", "answer p99 ms", "beside events ms", box=None
    )
    for what, listeners in dict.fromkeys((one.what, one.listeners) for one in found):
        mine = [one for one in found if (one.what, one.listeners) == (what, listeners)]
        shown.add_row(
            what,
            f"{listeners:,}",
            f"{1e3 * median(one.last_s for one in mine):.0f}",
            f"{median(one.memory_bytes for one in mine) / 1_000:.1f}",
            f"{median(one.quiet_ms for one in mine):.2f}",
            f"{median(one.beside_ms for one in mine):.2f}",
        )
    return shown


def main() -> None:
    """Run the load test, and print its table."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["--read"]:
        read(*map(int, arguments[1:]))
        return
    wanted = [int(text) for text in arguments] or [LISTENERS]
    Console().print(table([measure(what, listeners) for listeners in wanted for what in (VENUE, BARE)]))


if __name__ == "__main__":
    main()
