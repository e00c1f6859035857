"""Server with cambist's handler of POST /firm on granian, whose HTTP is in Rust, by granian's own interface.

The handler is an RSGI application. Runs in .venv-load, with cambist's own versions of packages.
"""

# pyright: reportMissingImports=false
import asyncio
import signal
from typing import Any

import uvloop
from granian.constants import HTTPModes, Interfaces
from granian.server.embed import Server

from bench.maker_fixture import Answering, answering, build_maker
from bench.peers.served import freeze, inherited, options


def firm_application(answer: Answering) -> Any:
    """Return a handler of POST /firm as an RSGI application."""

    async def application(scope: Any, protocol: Any) -> None:
        body = await protocol()
        headers = [(name.encode(), value.encode()) for name, value in scope.headers.items()]
        reply = answer(scope.path.encode(), headers, body)
        protocol.response_bytes(reply.status, [("content-type", reply.content_type.decode())], reply.body)

    return application


async def serve(target: Any, interface: Interfaces, descriptor: int) -> None:
    """Serve an application until SIGTERM, on the port of an inherited socket: granian makes its own."""
    with inherited(descriptor) as listener:
        port = listener.getsockname()[1]
    server = Server(
        target,
        "127.0.0.1",
        port,
        interface=interface,
        http=HTTPModes.http1,
        websockets=False,
        backlog=1_024,
        log_enabled=False,
    )
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, server.stop)
    freeze()
    await server.serve()


if __name__ == "__main__":
    chosen = options(__doc__).parse_args()
    application = firm_application(answering(build_maker()))
    uvloop.run(serve(application, Interfaces.RSGI, chosen.fd))
