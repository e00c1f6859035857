"""Server with cambist's handler of POST /firm on granian, as an ASGI application.

Runs in .venv-load, with cambist's own versions of packages.
"""

# pyright: reportMissingImports=false
import uvloop
from granian.constants import Interfaces

from bench.peers.asgi_firm import firm_application
from bench.peers.granian_firm import serve
from bench.peers.served import options

if __name__ == "__main__":
    chosen = options(__doc__).parse_args()
    uvloop.run(serve(firm_application(), Interfaces.ASGI, chosen.fd))
