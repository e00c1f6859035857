"""Loopback port that is reserved for a server over its restarts.

Another process may take a port that was free a moment ago; a port with a bound socket stays reserved.
"""

import socket


def held_port() -> socket.socket:
    """Reserve a loopback port by a socket that is bound to it and does not listen.

    While the socket is open, the system gives the port to no other process that asks for a free port. A
    server that sets SO_REUSEADDR can listen on the port, again after each restart; without such a server,
    connections are refused.
    """
    held = socket.socket()
    try:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
    except BaseException:
        held.close()
        raise
    return held


def port_of(held: socket.socket) -> int:
    """Return the port number of a bound socket."""
    port: int = held.getsockname()[1]
    return port
