"""Common beginning of the load benches' server scripts: its socket, a frozen heap.

The socket is made and listening before the script starts, so the port is the system's choice and a client
that connects early waits in the queue.
"""

import argparse
import gc
import socket


def options(description: str | None) -> argparse.ArgumentParser:
    """A parser of the options that all have in common."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--fd", type=int, required=True, help="an inherited listening socket")
    return parser


def freeze() -> None:
    """As our own server after its start: the collector no longer walks objects that live for ever."""
    gc.collect()
    gc.freeze()


def inherited(descriptor: int) -> socket.socket:
    """The listening socket, not blocking."""
    listener = socket.socket(fileno=descriptor)
    listener.setblocking(False)
    return listener
