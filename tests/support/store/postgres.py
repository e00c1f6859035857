"""A PostgreSQL server for tests.

A way to a PostgreSQL server that is cut in the middle of COMMIT.
"""

import select
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Self
from urllib.parse import urlsplit

from bench.peers import postgres
from bench.peers.postgres import PostgresServer

from support.programs import program

__all__ = ["PostgresServer", "running_postgres"]


@contextmanager
def running_postgres(
    settings: dict[str, str] | None = None, *, primary: PostgresServer | None = None
) -> Iterator[PostgresServer]:
    """A server that runs; its folder goes with it. Skips or fails the test where there is no PostgreSQL."""
    program("postgresql")
    with postgres.running_postgres(settings, primary=primary) as server:
        yield server


_SYNC = b"S\0\0\0\4"
"""Message after which the server executes and answers."""


class CutInCommit:
    """A relay on a loopback port. Once armed, the next connection that commits is cut then.

    Args:
        url: of the database behind it.
        reached: whether COMMIT reaches the server, and is done, before the connection is cut.
    """

    def __init__(self, url: str, *, reached: bool) -> None:
        parts = urlsplit(url)
        assert parts.hostname
        assert parts.port
        self._server = (parts.hostname, parts.port)
        self._reached = reached
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._ended = Event()
        self._armed = False
        self._threads = [Thread(target=self._accept)]
        self.cuts = 0
        port = self._listener.getsockname()[1]
        self.url = url.replace(f":{parts.port}/", f":{port}/")

    def arm(self) -> None:
        """Cut the next COMMIT."""
        self._armed = True

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def _accept(self) -> None:
        while not self._ended.is_set():
            if select.select([self._listener], [], [], 0.05)[0]:
                client, _ = self._listener.accept()
                thread = Thread(target=self._relay, args=(client,))
                self._threads.append(thread)
                thread.start()

    def _relay(self, client: socket.socket) -> None:
        with client, socket.create_connection(self._server) as server:
            while not self._ended.is_set():
                for readable in select.select([client, server], [], [], 0.05)[0]:
                    data = readable.recv(1 << 20)
                    if not data:
                        return
                    if readable is client and self._armed and b"COMMIT" in data:
                        self._armed = False
                        self.cuts += 1
                        if self._reached:
                            server.sendall(data)
                            while not data.endswith(_SYNC):
                                data = client.recv(1 << 20)
                                server.sendall(data)
                            assert server.recv(1 << 20), "the server has done it"
                        return
                    (server if readable is client else client).sendall(data)
