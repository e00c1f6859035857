"""Process that receives market data by cambist's WebSocket driver, or by that of websockets on trio.

`python -m bench.websocket_client websockets` takes the latter. The process reads a line
`port kind warm-up count`: the sender's port, the kind of the work, the numbers of messages before and in the
measurement. The answer is a line `seconds cpu digest`: time, CPU seconds, and a digest of the books.
"""

import gc
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import trio
from websockets.trio.client import connect

from bench.websocket_work import Work
from cambist.feeds.transport.websocket import connect_websocket

Socket = tuple[Callable[[str], Awaitable[None]], Callable[[], Awaitable[str | bytes]]]
"""Functions of an open connection: send a text, receive a message."""
BYTES_MAX = 1 << 20


@asynccontextmanager
async def ours(port: int) -> AsyncIterator[Socket]:
    async with connect_websocket(
        "127.0.0.1", port, "/ws", tls=None, headers={}, message_bytes_max=BYTES_MAX, send_bytes_max=BYTES_MAX
    ) as socket:
        yield socket.send, socket.receive


@asynccontextmanager
async def websockets(port: int) -> AsyncIterator[Socket]:
    """Connection of websockets' own driver for trio, without compression as cambist's."""
    url = f"ws://127.0.0.1:{port}/ws"
    async with connect(url, compression=None, proxy=None, max_size=BYTES_MAX) as socket:
        yield socket.send, socket.recv


DRIVERS = {"ours": ours, "websockets": websockets}


async def measure(driver: str, port: int, kind: str, warm_up: int, count: int) -> str:
    """Receive messages over one connection: `warm_up` messages, then `count` that are measured.

    Returns:
        Duration, CPU seconds, and digest of the books, as text.
    """
    work = Work(kind)
    async with DRIVERS[driver](port) as (send, receive):
        seconds = cpu = 0.0
        for messages in (warm_up, count):
            gc.collect()
            gc.freeze()
            await send(str(messages))
            began, cpu_began = time.perf_counter(), time.process_time()
            for _ in range(messages):
                message = await receive()
                assert isinstance(message, str)
                work.take(message)
            seconds, cpu = time.perf_counter() - began, time.process_time() - cpu_began
    assert work.taken == warm_up + count
    return f"{seconds} {cpu} {work.digest}"


if __name__ == "__main__":
    (driver,) = sys.argv[1:] or ["ours"]
    for line in sys.stdin:
        port, kind, warm_up, count = line.split()
        sys.stdout.write(trio.run(measure, driver, int(port), kind, int(warm_up), int(count)) + "\n")
        sys.stdout.flush()
