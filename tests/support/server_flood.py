"""A program for tests: many clients that pipeline as fast as they can, until killed.

Arguments: the port and the number of clients.
"""

import selectors
import socket
import sys

BURST = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" * 256


def main(port: int, clients: int) -> None:
    selector = selectors.DefaultSelector()
    for _ in range(clients):
        connected = socket.create_connection(("127.0.0.1", port))
        connected.setblocking(False)
        selector.register(connected, selectors.EVENT_READ | selectors.EVENT_WRITE, bytearray())
    while True:
        for key, ready in selector.select():
            client = key.fileobj
            assert isinstance(client, socket.socket)
            if ready & selectors.EVENT_READ:
                client.recv(1 << 20)
            if ready & selectors.EVENT_WRITE:
                unsent = key.data
                if not unsent:
                    unsent += BURST
                del unsent[: client.send(unsent)]


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
