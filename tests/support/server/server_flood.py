"""A program for tests: many clients that pipeline as fast as they can, until killed.

Arguments: the port, the number of clients, and `tls` or `plain`.
"""

import contextlib
import selectors
import socket
import ssl
import sys

BURST = b"GET /spin HTTP/1.1\r\nHost: a\r\n\r\n" * 256
NOT_NOW = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


def connect(port: int, *, tls: bool) -> socket.socket:
    connected = socket.create_connection(("127.0.0.1", port))
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        connected = context.wrap_socket(connected)
    connected.setblocking(False)
    return connected


def main(port: int, clients: int, *, tls: bool) -> None:
    selector = selectors.DefaultSelector()
    for _ in range(clients):
        events = selectors.EVENT_READ | selectors.EVENT_WRITE
        selector.register(connect(port, tls=tls), events, bytearray())
    while True:
        for key, ready in selector.select():
            client = key.fileobj
            assert isinstance(client, socket.socket)
            if ready & selectors.EVENT_READ:
                with contextlib.suppress(*NOT_NOW):
                    client.recv(1 << 20)
            if ready & selectors.EVENT_WRITE:
                unsent = key.data
                if not unsent:
                    unsent += BURST
                with contextlib.suppress(*NOT_NOW):
                    del unsent[: client.send(unsent)]


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), tls=sys.argv[3] == "tls")
