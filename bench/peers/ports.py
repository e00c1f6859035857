"""A port that a server can have at each of its starts.

A port that was free a moment ago may be another socket's by the time it is wanted; a held port is not.
"""

import socket


def held_port() -> socket.socket:
    """A bound loopback socket on which nobody listens.

    While it is open, the system gives its port to none who asks for any, and a server that sets SO_REUSEADDR
    listens there by its number, again and again. A connection is refused until one does.
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
    """The number of a bound socket's port."""
    port: int = held.getsockname()[1]
    return port
