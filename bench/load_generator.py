"""Load generator for POST /firm: a process of its own on uvloop, on another core than the measured server.

    closed   every connection sends the next request after an answer: throughput
    open     request k is due at start + k / rate, even if earlier requests are unanswered, and its latency
             counts from then: a server that stalls is charged for all requests due meanwhile (no coordinated
             omission)
    flood    every connection keeps `FLOOD_DEPTH` pipelined requests unanswered

Requests are signed just before use, since their timestamps are valid for 30 s, and no body is used twice.
Every answer's status is checked as it arrives; after the measurement every nonce is read and one answer in
`CHECK_ONE_IN` is verified in full. Prints one JSON object, a `Measured`; runs in .venv-load.
"""

# pyright: reportMissingImports=false
import argparse
import asyncio
import gc
import sys
import time
from array import array
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, cast

import msgspec

from bench.cpu_use import CpuUse
from bench.firm_check import fault, nonce
from bench.load_answers import AnswerFault, take_answer
from bench.maker_work import PAIRS, signed_request, wall_ms, work
from bench.measured import PERCENTILES, Measured

FLOOD_DEPTH = 32
CHECK_ONE_IN = 200
FAULTS_SHOWN = 5
PATIENCE_S = 20.0
SIGNED_LIVE_S = 25.0  # of the 30 that a timestamp lives


class CorpusSpent(Exception):
    """Error: all prepared requests of the load are used."""


class Requests(Protocol):
    """Protocol: source of a load's requests, each used once.

    Attributes:
        used: number of requests taken.
    """

    used: int

    def take(self) -> tuple[int, bytes]:
        """Take the next request: (its number, its bytes).

        Raises:
            CorpusSpent: all requests are used.
        """
        ...


class Corpus:
    """Source of signed requests for firm quotes, each used once, in sequence.

    Attributes:
        first: number of the first request.
        used: number of requests taken.
    """

    def __init__(self, first: int, count: int, pairs: int) -> None:
        now_ms = wall_ms()
        self.first = first
        self.used = 0
        self._signed_s = time.perf_counter()
        self._requests = [signed_request(first + number, now_ms, pairs) for number in range(count)]

    def take(self) -> tuple[int, bytes]:
        """Take the next request: (its number, its bytes)."""
        at = self.used
        if at == len(self._requests):
            raise CorpusSpent(f"all {at} requests are used: sign more")
        self.used = at + 1
        return self.first + at, self._requests[at]

    def check_fresh(self) -> None:
        """Refuse a measurement whose requests have become too old for the server's check of timestamps."""
        age_s = time.perf_counter() - self._signed_s
        if age_s > SIGNED_LIVE_S:
            raise RuntimeError(f"the requests were signed {age_s:.0f} s ago: measure for a shorter time")


class Load:
    """State that the connections of one measurement share.

    Attributes:
        window: (start, end) in seconds of the performance counter: requests due in between count, even if the
            answer comes later.
        answers: (number, body) of all answers.
        latencies: seconds, of the requests due within the window.
        outstanding: number of unanswered requests.
        stopping: whether no more requests are sent.
    """

    def __init__(self, corpus: Requests) -> None:
        self.take = corpus.take
        self.window = (0.0, 0.0)
        self.answers: list[tuple[int, bytes]] = []
        self.latencies: list[float] = []
        self.outstanding = 0
        self.stopping = False
        self.failures: list[str] = []
        self.idle: deque[Client] = deque()
        self.all_answered = asyncio.Event()

    def fail(self, text: str) -> None:
        """Record a failure as text; the measurement ends."""
        self.failures.append(text)
        self.stopping = True
        self.all_answered.set()


class Client(asyncio.Protocol):
    """A connection of the load generator to the measured server.

    Args:
        answered: called with this client after each answer, to go on.
    """

    def __init__(self, load: Load, answered: Callable[["Client"], None]) -> None:
        self.load = load
        self._answered = answered
        self._buffer = b""
        self._sent: deque[tuple[int, float]] = deque()
        self._closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self.write = self._transport.write

    def ask(self, due: float) -> None:
        """Send the next request; its latency counts from `due`, seconds of the performance counter."""
        self.write(self.prepare(due))

    def prepare(self, due: float) -> bytes:
        """Take the next request, record it as sent, and return its bytes."""
        number, request = self.load.take()
        self._sent.append((number, due))
        self.load.outstanding += 1
        return request

    def data_received(self, data: bytes) -> None:
        if self._buffer:
            data = self._buffer + data
        load, position = self.load, 0
        try:
            while position < len(data):
                taken = take_answer(data, position)
                if taken is None:
                    break
                status, body, position = taken
                number, due = self._sent.popleft()
                now = time.perf_counter()
                load.outstanding -= 1
                load.answers.append((number, body))
                if load.window[0] <= due < load.window[1]:
                    load.latencies.append(now - due)
                if status != 200:
                    load.fail(f"request {number} was answered {status}: {body[:200]!r}")
                elif not load.stopping:
                    self._answered(self)
                elif not load.outstanding:
                    load.all_answered.set()
        except (AnswerFault, CorpusSpent, IndexError, ValueError) as error:
            load.fail(f"{type(error).__name__}: {error}")
        self._buffer = data[position:]

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._closed:
            self.load.fail(f"a connection was closed by the server: {exc}")

    def close(self) -> None:
        """Close the connection to the measured server."""
        self._closed = True
        self._transport.close()


async def open_clients(
    load: Load, host: str, port: int, count: int, answered: Callable[[Client], None]
) -> list[Client]:
    loop = asyncio.get_running_loop()
    clients = []
    for _ in range(count):
        _, client = await loop.create_connection(lambda: Client(load, answered), host, port)
        clients.append(client)
    return clients


async def closed_loop(load: Load, clients: list[Client], depth: int, until: float) -> None:
    """Keep `depth` unanswered requests on every connection until the time `until`."""
    for client in clients:
        client.write(b"".join([client.prepare(time.perf_counter()) for _ in range(depth)]))
    await _until(load, until)


def again(client: Client) -> None:
    """Send the next request on a connection at once, after an answer in a closed loop."""
    client.ask(time.perf_counter())


def rest(client: Client) -> None:
    """Put a connection of an open loop among the idle ones, which send the next due request."""
    client.load.idle.append(client)


async def open_loop(load: Load, clients: list[Client], rate: float, until: float) -> None:
    """Send requests at a fixed rate, each when it is due, by a loop that never sleeps.

    The loop has a CPU core of its own. A request without an idle connection is sent as soon as a connection
    is idle; its latency counts from its due time. All requests due before `until` are sent, even if a stall
    delays them by up to PATIENCE_S.
    """
    loop = asyncio.get_running_loop()
    load.idle.extend(clients)
    begin = time.perf_counter()
    sent = 0
    done = asyncio.Event()

    def turn() -> None:
        nonlocal sent
        now = time.perf_counter()
        due = begin + sent / rate
        if due >= until or now >= until + PATIENCE_S or load.stopping:
            done.set()
            return
        while due <= min(now, until) and load.idle:
            try:
                load.idle.popleft().ask(due)
            except CorpusSpent as error:
                load.fail(str(error))
                break
            sent += 1
            due = begin + sent / rate
        loop.call_soon(turn)

    turn()
    await done.wait()


async def _until(load: Load, until: float) -> None:
    left = until - time.perf_counter()
    while left > 0 and not load.stopping:
        await asyncio.sleep(min(left, 0.1))
        left = until - time.perf_counter()


async def drive(load: Load, chosen: argparse.Namespace) -> CpuUse:
    """Run a load: warm up, measure, and wait for the outstanding answers.

    Returns:
        The CPU use during the measured time.
    """
    is_open = chosen.mode == "open"
    clients = await open_clients(load, chosen.host, chosen.port, chosen.clients, rest if is_open else again)
    gc.collect()
    gc.freeze()
    gc.disable()
    begin = time.perf_counter() + chosen.warm_s
    until = begin + chosen.seconds
    load.window = (begin, until)
    use = CpuUse([chosen.server_pid])
    asyncio.get_running_loop().call_later(chosen.warm_s, use.begin)
    if is_open:
        await open_loop(load, clients, chosen.rate, until)
    else:
        await closed_loop(load, clients, FLOOD_DEPTH if chosen.mode == "flood" else 1, until)
    use.end()
    load.stopping = True
    if load.outstanding and not load.failures:
        try:
            await asyncio.wait_for(load.all_answered.wait(), PATIENCE_S)
        except TimeoutError:
            load.fail(f"{load.outstanding} requests have no answer after {PATIENCE_S} s")
    for client in clients:
        client.close()
    if not load.latencies and not load.failures:
        load.failures.append(f"no answer within {chosen.warm_s + chosen.seconds} s")
    return use


async def measure(chosen: argparse.Namespace) -> Measured:
    corpus = Corpus(chosen.first, int(chosen.requests), chosen.pairs)
    load = Load(corpus)
    started_s = int(time.time())
    use = await drive(load, chosen)
    corpus.check_fresh()
    load.failures += verify(load.answers, started_s, chosen)
    return measured(load, corpus, use, chosen)


def measured(load: Load, corpus: Requests, use: CpuUse, chosen: argparse.Namespace) -> Measured:
    latencies = sorted(load.latencies)
    last = len(latencies) - 1
    return Measured(
        rate=len(latencies) / chosen.seconds,
        answers=len(load.answers),
        used=corpus.used,
        latency_ms=[round(1_000 * latencies[int(last * share)], 4) for share in PERCENTILES]
        if latencies
        else [],
        server_core=use.of(chosen.server_pid),
        load_core=use.own,
        foreign_core=use.foreign,
        waited_core=use.waited,
        failures=load.failures[:FAULTS_SHOWN],
    )


def verify(answers: list[tuple[int, bytes]], started_s: int, chosen: argparse.Namespace) -> list[str]:
    """Check the answers of a measurement; return their faults as texts.

    The nonces are appended to a file, which the run compares at its end.
    """
    nonces = array("Q")
    for number, body in answers:
        random_bits = nonce(body)
        if random_bits < 0:
            return [f"request {number}: no nonceAndMeta in {body[:200]!r}"]
        nonces.append(random_bits)
    if chosen.nonces:
        with Path(chosen.nonces).open("ab") as file:
            nonces.tofile(file)
    faults = []
    for number, body in answers[::CHECK_ONE_IN]:
        found = fault(work(number, chosen.pairs), body, started_s, chosen.versions)
        if found:
            faults.append(f"request {number}: {found}")
    return faults


def options(description: str | None, *modes: str) -> argparse.ArgumentParser:
    """Make a parser of the command-line options that all load generators have."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("mode", choices=modes)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--server-pid", type=int, required=True)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--warm-s", type=float, default=1.0)
    parser.add_argument("--seconds", type=float, default=5.0, help="after the warm-up")
    parser.add_argument("--rate", type=float, default=0.0, help="requests a second of an open loop")
    parser.add_argument("--requests", type=float, required=True, help="how many to make beforehand")
    parser.add_argument("--first", type=int, default=0, help="number of the first request")
    return parser


if __name__ == "__main__":
    import uvloop

    parser = options(__doc__, "closed", "open", "flood")
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--versions", type=int, default=1, help="of the prices that may be in force")
    parser.add_argument("--nonces", default="", help="a file that the nonces of all answers are added to")
    chosen = parser.parse_args()
    sys.stdout.buffer.write(msgspec.json.encode(uvloop.run(measure(chosen))))
