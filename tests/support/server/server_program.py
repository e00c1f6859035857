"""A program for tests of several processes: `parent` listens and keeps children; without it, a child."""

import os
import signal
import sys

import trio

from cambist.config.sections.server import ServerSettings
from cambist.engine.host.process.processes import (
    inherited_listener,
    inherited_spread,
    parent_ended,
    process_place,
    run_processes,
)
from cambist.engine.host.server import HttpCall, Reply, RouteGroup, Router, Server
from cambist.feeds.transport.streams import listen

SETTINGS = ServerSettings(processes=2, drain_s=5)


def who(call: HttpCall) -> Reply:
    place = process_place()
    return Reply(200, b"%d %d %d" % (os.getpid(), place.index, place.count))


async def serve() -> None:
    surface = RouteGroup(lambda error, request_id: b"{}")
    surface.plain("GET", "/", who)
    router = Router(surface.encode_error)
    router.mount(surface)
    server = Server(router, SETTINGS, wall_ms=lambda: 0, spread=inherited_spread())
    listener = inherited_listener()
    assert listener is not None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(drain_when_told, server)
        nursery.start_soon(drain_when_alone, server)
        await server.serve(listener)
        nursery.cancel_scope.cancel()


async def drain_when_told(server: Server) -> None:
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            server.drain()


async def drain_when_alone(server: Server) -> None:
    await parent_ended()
    server.drain()


def main() -> None:
    if sys.argv[1:] != ["parent"]:
        trio.run(serve)
        return
    with listen("127.0.0.1", 0) as listener:
        sys.stdout.write(f"{listener.getsockname()[1]}\n")
        sys.stdout.flush()
        command = [sys.executable, *(("-X", "dev") if sys.flags.dev_mode else ()), __file__]
        sys.exit(trio.run(run_processes, SETTINGS, command, listener))


if __name__ == "__main__":
    main()
