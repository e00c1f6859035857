"""Process that receives market data by picows on uvloop.

The process reads a line `port kind warm-up count`: the sender's port, the kind of the work, the numbers of
messages before and in the measurement. The answer is a line `seconds cpu digest`: time, CPU seconds, and a
digest of the books.
"""

# pyright: reportMissingImports=false
import asyncio
import gc
import sys
import time
from typing import Any

import uvloop
from picows import (
    WSFrame,
    WSListener,
    WSMsgType,
    WSTransport,
    ws_connect,
)

from bench.websocket_work import Work


class Listener(WSListener):  # type: ignore[misc]  # picows has no types where we check
    """WebSocket connection that handles messages as they arrive; sets `done` after the last of a batch."""

    def __init__(self, kind: str) -> None:
        self.work = Work(kind)
        self.left = 0
        self.done = asyncio.Event()

    def on_ws_frame(self, transport: WSTransport, frame: WSFrame) -> None:  # noqa: ARG002
        if frame.msg_type == WSMsgType.TEXT:
            self.work.take(frame.get_payload_as_utf8_text())
            self.left -= 1
            if not self.left:
                self.done.set()


async def measure(port: int, kind: str, warm_up: int, count: int) -> str:
    """Receive messages over one connection: `warm_up` messages, then `count` that are measured.

    Returns:
        Duration, CPU seconds, and digest of the books, as text.
    """
    transport: Any
    listener: Any
    transport, listener = await ws_connect(lambda: Listener(kind), f"ws://127.0.0.1:{port}/ws")
    seconds = cpu = 0.0
    for messages in (warm_up, count):
        gc.collect()
        gc.freeze()
        listener.left = messages
        listener.done.clear()
        transport.send(WSMsgType.TEXT, str(messages).encode())
        began, cpu_began = time.perf_counter(), time.process_time()
        await listener.done.wait()
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu_began
    transport.disconnect()
    await transport.wait_disconnected()
    assert listener.work.taken == warm_up + count
    return f"{seconds} {cpu} {listener.work.digest}"


if __name__ == "__main__":
    for line in sys.stdin:
        port, kind, warm_up, count = line.split()
        sys.stdout.write(uvloop.run(measure(int(port), kind, int(warm_up), int(count))) + "\n")
        sys.stdout.flush()
