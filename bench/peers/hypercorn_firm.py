"""Server with cambist's handler of POST /firm on hypercorn's trio worker, the usual choice with trio.

The handler is an ASGI application. Runs in .venv-load, with cambist's own versions of packages.
"""

# pyright: reportMissingImports=false
import signal
from functools import partial

import hypercorn.config
import hypercorn.trio
import trio

from bench.peers.asgi_firm import firm_application
from bench.peers.served import freeze, options


async def told_to_stop() -> None:
    with trio.open_signal_receiver(signal.SIGTERM) as signals:
        async for _ in signals:
            return


if __name__ == "__main__":
    chosen = options(__doc__).parse_args()
    config = hypercorn.config.Config()
    config.bind = [f"fd://{chosen.fd}"]
    config.accesslog = config.errorlog = None
    config.keep_alive_timeout = 75
    config.keep_alive_max_requests = 1_000_000
    config.graceful_timeout = 1
    application = firm_application()
    freeze()
    serve = partial(hypercorn.trio.serve, shutdown_trigger=told_to_stop, mode="asgi")
    trio.run(serve, application, config)
