"""Server with cambist's handler of POST /firm on uvicorn, uvloop and httptools, the fastest common choice.

The handler is an ASGI application. Runs in .venv-load, with cambist's own versions of packages.
"""

# pyright: reportMissingImports=false
import uvicorn

from bench.peers.asgi_firm import firm_application
from bench.peers.served import freeze, inherited, options

if __name__ == "__main__":
    chosen = options(__doc__).parse_args()
    config = uvicorn.Config(
        firm_application(),
        loop="uvloop",
        http="httptools",
        ws="none",
        lifespan="off",
        interface="asgi3",
        access_log=False,
        log_level="warning",
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=75,
    )
    freeze()
    uvicorn.Server(config).run(sockets=[inherited(chosen.fd)])
