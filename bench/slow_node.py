"""A node far away: a TCP proxy in a process of its own, which delays what passes between a client and a node.

    client --half of the round trip--> node --half of the round trip--> client

The proxy holds bytes back and does not slow them down: bytes that a side sends together stay together. It
holds a share of the requests back longer, as a busy hosted node does. `python -m bench.slow_node PORT`
starts it, and prints the port on which it listens.
"""

import argparse
import random
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial

import trio

from bench.load_children import HOST, READY_S, ROOT, python_of
from cambist.feeds.transport.streams import listen

LATE_SHARE, LATE_S = 0.01, 2.0
_REQUEST = b"POST "
_CHUNK_BYTES = 1 << 20
_CHUNKS_MAX = 10_000


class SlowNode:
    """The proxy.

    Args:
        to_port: port of the node, on loopback.
        round_trip_s: delay of a request and its answer together.
        late_share: share of the requests that are held back for LATE_S more.
    """

    def __init__(self, to_port: int, round_trip_s: float, late_share: float, seed: int = 1) -> None:
        self._to_port = to_port
        self._half_s = round_trip_s / 2
        self._late_share = late_share
        self._random = random.Random(seed)

    async def serve(self, listener: trio.SocketListener) -> None:
        """Accept connections, until cancelled."""
        await trio.serve_listeners(self._connection, [listener])

    async def _connection(self, client: trio.SocketStream) -> None:
        try:
            node = await trio.open_tcp_stream(HOST, self._to_port)
            async with client, node, trio.open_nursery() as nursery:
                nursery.start_soon(self._pass_on, client, node)
                await self._pass_on(node, client)
                nursery.cancel_scope.cancel()
        except* (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # either end may go at any time

    async def _pass_on(self, source: trio.SocketStream, target: trio.SocketStream) -> None:
        send, receive = trio.open_memory_channel[tuple[float, bytes]](_CHUNKS_MAX)

        async def deliver() -> None:
            async for due, data in receive:
                await trio.sleep_until(due)
                await target.send_all(data)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(deliver)
            async with send:
                while data := await source.receive_some(_CHUNK_BYTES):
                    late_s = LATE_S if data.startswith(_REQUEST) and self._is_late() else 0.0
                    await send.send((trio.current_time() + self._half_s + late_s, data))

    def _is_late(self) -> bool:
        return self._random.random() < self._late_share


@asynccontextmanager
async def slow_node(to_port: int, round_trip_s: float, late_share: float = 0.0) -> AsyncGenerator[int]:
    """Context manager: run the proxy in a process of its own, and yield its port."""
    command = [python_of(".venv"), "-m", "bench.slow_node", str(to_port)]
    command += ["--round-trip", str(round_trip_s), "--late", str(late_share)]
    async with trio.open_nursery() as nursery:
        run = partial(trio.run_process, command, cwd=ROOT, stdout=subprocess.PIPE, check=False)
        process = await nursery.start(run)
        line = b""
        with trio.fail_after(READY_S):
            while not line.endswith(b"\n"):
                data = await process.stdout.receive_some()
                if not data:
                    raise OSError("the proxy has ended")
                line += data
        try:
            yield int(line)
        finally:
            nursery.cancel_scope.cancel()


async def _serve(arguments: argparse.Namespace) -> None:
    listener = listen(HOST, 0)
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    proxy = SlowNode(arguments.port, arguments.round_trip, arguments.late)
    await proxy.serve(trio.SocketListener(trio.socket.from_stdlib_socket(listener)))


def main() -> None:
    """Serve until the process is ended."""
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("--round-trip", type=float, default=0.05)
    parser.add_argument("--late", type=float, default=0.0)
    trio.run(_serve, parser.parse_args())


if __name__ == "__main__":
    main()
