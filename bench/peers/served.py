"""Parts that all server scripts of the load tests share: their options, listening socket and frozen heap.

The socket is made and listening before the script starts, so the port is the system's choice and a client
that connects early waits in the queue.
"""

import argparse
import gc
import socket


def options(description: str | None) -> argparse.ArgumentParser:
    """Make a parser of the command-line options that all server scripts have."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--fd", type=int, required=True, help="an inherited listening socket")
    return parser


def freeze() -> None:
    """Freeze the heap, so that garbage collection skips objects that exist at the server's start."""
    gc.collect()
    gc.freeze()


def inherited(descriptor: int) -> socket.socket:
    """Return the listening socket with an inherited file descriptor, set to non-blocking."""
    listener = socket.socket(fileno=descriptor)
    listener.setblocking(False)
    return listener
