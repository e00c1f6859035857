"""A TCP port in front of another, which can be shut, or keep all callers waiting.

async with port_gate() as gate:
    gate.target = 8545
    gate.shut()        connections are ended, and new ones too
    gate.hang()        bytes are taken and go nowhere
    gate.open()
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import trio

from cambist.feeds.transport.streams import listen

ENDED = (EOFError, trio.BrokenResourceError, trio.ClosedResourceError, OSError)
"""Errors of a stream whose other side has ended."""


class PortGate:
    """See the module.

    Attributes:
        port: its own; target: behind it.
    """

    def __init__(self) -> None:
        self.listener = listen("127.0.0.1", 0)
        self.port: int = self.listener.getsockname()[1]
        self.target = 0
        self._mode = "open"
        self._tunnels: set[trio.CancelScope] = set()

    def open(self) -> None:
        """Pass on what comes in connections that are new."""
        self._become("open")

    def shut(self) -> None:
        """End all connections, and those that come."""
        self._become("shut")

    def hang(self) -> None:
        """Keep connections that come, and answer nothing."""
        self._become("hang")

    def _become(self, mode: str) -> None:
        self._mode = mode
        for tunnel in tuple(self._tunnels):
            tunnel.cancel()

    async def serve(self) -> None:
        """Accept until cancelled."""
        listener = trio.SocketListener(trio.socket.from_stdlib_socket(self.listener))
        await trio.serve_listeners(self._tunnel, [listener])

    async def _tunnel(self, stream: trio.SocketStream) -> None:
        if self._mode == "shut":
            await trio.aclose_forcefully(stream)
            return
        with trio.CancelScope() as scope:
            self._tunnels.add(scope)
            try:
                if self._mode == "hang":
                    await trio.sleep_forever()
                far = await trio.open_tcp_stream("127.0.0.1", self.target)
                async with far, trio.open_nursery() as nursery:
                    nursery.start_soon(pump, stream, far, scope)
                    nursery.start_soon(pump, far, stream, scope)
            except ENDED:
                pass
            finally:
                self._tunnels.discard(scope)
                await trio.aclose_forcefully(stream)


async def pump(source: trio.abc.Stream, target: trio.abc.Stream, scope: trio.CancelScope) -> None:
    """Pass bytes on until either side ends, then cancel."""
    try:
        while data := await source.receive_some():
            await target.send_all(data)
    except ENDED:
        pass
    scope.cancel()


@asynccontextmanager
async def port_gate() -> AsyncGenerator[PortGate]:
    """An open gate; its target is to be set."""
    gate = PortGate()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(gate.serve)
        yield gate
        nursery.cancel_scope.cancel()
