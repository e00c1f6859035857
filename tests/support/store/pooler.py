"""A connection pooler on a loopback port, as PgBouncer is one, in front of a PostgreSQL server.

    pool_mode = "session"        a client keeps its server connection until it leaves
    pool_mode = "transaction"    a server connection goes back to the pool once its transaction has ended

The pool gives the connection that came back last, or in turn the one that came back first, and opens another
one while none is idle. Clients log in without a password, and get the greeting of the first connection.
The state of a session, as prepared statements, settings and locks, stays with the server connection; it is
discarded when a client's session has ended.

Source: PgBouncer 1.18: its documentation of `pool_mode`, `server_round_robin`, `server_reset_query`; its
cached "welcome message"; PostgreSQL, "Message Formats".
"""

import select
import socket
import struct
from threading import Event, Thread
from typing import Literal, Self
from urllib.parse import urlsplit

_REFUSED = (80_877_103, 80_877_104)  # requests for TLS and for encryption by GSSAPI
_ENDS = b"QS"  # query, synchronise: the server answers each with ReadyForQuery
_RESET = b"Q\0\0\0\x10DISCARD ALL\0"
_READY, _LEAVES, _IDLE = b"Z", b"X", b"I"


class Pooler:
    """See the module.

    Args:
        url: of the database behind it.
        round_robin: whether connections are given in turn.
        is_late: whether another client is served between an answer and the return of its connection, as by a
            pooler of several threads (PgBouncer is a single loop).
    """

    def __init__(
        self,
        url: str,
        pool_mode: Literal["session", "transaction"],
        *,
        round_robin: bool = False,
        is_late: bool = False,
    ) -> None:
        parts = urlsplit(url)
        assert parts.hostname
        assert parts.port
        self._server = (parts.hostname, parts.port)
        self._is_by_transaction = pool_mode == "transaction"
        self._next = 0 if round_robin else -1
        self._is_late = is_late
        self._greeting = b""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._ended = Event()
        self._idle: list[socket.socket] = []
        self._late: list[socket.socket] = []
        self._threads = [Thread(target=self._accept)]
        self.url = url.replace(f":{parts.port}/", f":{self._listener.getsockname()[1]}/")

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()
        for server in self._idle + self._late:
            server.close()
        self._listener.close()

    def _accept(self) -> None:
        while not self._ended.is_set():
            if select.select([self._listener], [], [], 0.05)[0]:
                client, _ = self._listener.accept()
                thread = Thread(target=self._serve, args=(client,))
                self._threads.append(thread)
                thread.start()

    def _taken(self, startup: bytes) -> socket.socket:
        """A server connection of the pool, or a new one."""
        late, self._late = self._late, []
        try:
            return self._idle.pop(self._next) if self._idle else self._opened(startup)
        finally:
            self._idle += late

    def _opened(self, startup: bytes) -> socket.socket:
        server = socket.create_connection(self._server)
        server.sendall(startup)
        said = _read_until_ready(server)
        self._greeting = self._greeting or said
        return server

    def _serve(self, client: socket.socket) -> None:
        with client:
            startup = _packet(client)
            while struct.unpack("!i", startup[4:8])[0] in _REFUSED:
                client.sendall(b"N")
                startup = _packet(client)
            held = self._taken(startup) if not (self._greeting and self._is_by_transaction) else None
            if held is not None and self._is_by_transaction:
                self._idle.append(held)
                held = None
            client.sendall(self._greeting)
            held, is_idle = self._relayed(client, held, startup)
            if held is not None and is_idle:
                held.sendall(_RESET)
                _read_until_ready(held)
                self._idle.append(held)
            elif held is not None:
                held.close()

    def _relayed(
        self, client: socket.socket, held: socket.socket | None, startup: bytes
    ) -> tuple[socket.socket | None, bool]:
        """Relay until the client leaves; the server connection that it holds, and whether that is idle."""
        asked, told = _Messages(), _Messages()
        pending, is_idle = 0, True
        returned: socket.socket | None = None
        while not self._ended.is_set():
            for readable in select.select([each for each in (client, held) if each], [], [], 0.05)[0]:
                data = readable.recv(1 << 20)
                if readable is client:
                    kinds = [kind for kind, _ in asked.fed(data)]
                    if not data or _LEAVES in kinds:
                        return held, is_idle and not pending
                    pending += sum(kind in _ENDS for kind in kinds)
                    if returned in self._late:
                        self._late.remove(returned)
                        self._idle.append(returned)
                    if held is None:
                        held = self._taken(startup)
                    held.sendall(data)
                    continue
                for kind, body in told.fed(data):
                    if kind == _READY:
                        pending, is_idle = pending - 1, body == _IDLE
                is_over = self._is_by_transaction and is_idle and not pending
                if is_over and held is not None:
                    # Before the answer, for which another client may wait: PgBouncer, a single loop, reads
                    # nothing of a client between an answer and the return of its connection.
                    (self._late if self._is_late else self._idle).append(held)
                    returned, held = held, None
                client.sendall(data)
                if is_over:
                    break
        return held, False


def _read_until_ready(server: socket.socket) -> bytes:
    said = b""
    while not said.endswith(_READY + b"\0\0\0\5" + _IDLE):
        said += server.recv(1 << 16)
    return said


class _Messages:
    """Cuts a stream into messages: a letter, a length and a body."""

    def __init__(self) -> None:
        self._rest = b""

    def fed(self, data: bytes) -> list[tuple[bytes, bytes]]:
        self._rest += data
        found = []
        while len(self._rest) >= 5:
            end = 1 + int.from_bytes(self._rest[1:5], "big")
            if len(self._rest) < end:
                break
            found.append((self._rest[:1], self._rest[5:end]))
            self._rest = self._rest[end:]
        return found


def _packet(client: socket.socket) -> bytes:
    """A packet of the start, which has no letter."""
    head = client.recv(4, socket.MSG_WAITALL)
    return head + client.recv(int.from_bytes(head, "big") - 4, socket.MSG_WAITALL)
