"""Process that receives market data by cambist's WebSocket driver.

The process reads a line `port kind warm-up count`: the sender's port, the kind of the work, the numbers of
messages before and in the measurement. The answer is a line `seconds cpu digest`: time, CPU seconds, and a
digest of the books.
"""

import gc
import sys
import time

import trio

from bench.websocket_work import Work
from cambist.feeds.transport.websocket import connect_websocket


async def measure(port: int, kind: str, warm_up: int, count: int) -> str:
    """Receive messages over one connection: `warm_up` messages, then `count` that are measured.

    Returns:
        Duration, CPU seconds, and digest of the books, as text.
    """
    work = Work(kind)
    async with connect_websocket(
        "127.0.0.1", port, "/ws", tls=None, headers={}, message_bytes_max=1 << 20, send_bytes_max=1 << 20
    ) as socket:
        seconds = cpu = 0.0
        for messages in (warm_up, count):
            gc.collect()
            gc.freeze()
            await socket.send(str(messages))
            began, cpu_began = time.perf_counter(), time.process_time()
            for _ in range(messages):
                message = await socket.receive()
                assert isinstance(message, str)
                work.take(message)
            seconds, cpu = time.perf_counter() - began, time.process_time() - cpu_began
    assert work.taken == warm_up + count
    return f"{seconds} {cpu} {work.digest}"


if __name__ == "__main__":
    for line in sys.stdin:
        port, kind, warm_up, count = line.split()
        sys.stdout.write(trio.run(measure, int(port), kind, int(warm_up), int(count)) + "\n")
        sys.stdout.flush()
