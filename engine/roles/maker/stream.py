"""The one-way price WebSocket: sends each consumer a complete first message, then all changes.

Source: spec 3.11.
Choice: Messages of a consumer are dropped; a flood of them closes the socket with 1008.
Choice: A stop of trading closes every socket with 1001.
Choice: All sockets together have a bound of unsent bytes; beyond it the socket whose unsent bytes have waited
    longest is closed. A consumer that has just connected, and has a large first message to read, is thus not
    taken for one that has stopped reading.
"""

from collections.abc import Callable

import trio

from ....config.errors import WebSocketClosed
from ....config.limits import MAKER_SOCKETS_UNSENT_BYTES_MAX
from ....feeds.transport.websocket import WebSocket

STOPPED = "trading is stopped"
_HEARD_MAX = 1_000
_GOING_AWAY, _POLICY_VIOLATION = 1001, 1008


class _Session:
    """One consumer.

    Attributes:
        behind_since: trio time of the last note; the oldest unsent byte has waited since then, or for longer.
    """

    __slots__ = ("_noted_bytes", "behind_since", "reason", "scope", "socket")

    def __init__(self, socket: WebSocket) -> None:
        self.socket = socket
        self.scope = trio.CancelScope()
        self.reason = ""
        self.behind_since = 0.0
        self._noted_bytes = 0

    def send(self, text: str, now: float) -> None:
        """Queue a message; note the time and all bytes so far, if all bytes of the note before are sent."""
        self.socket.send_nowait(text)
        sent = self.socket.sent_bytes
        if sent >= self._noted_bytes:
            self.behind_since = now
            self._noted_bytes = sent + self.socket.unsent_bytes


class Broadcast:
    """Connected WebSocket consumers of a maker's prices on one chain.

    Args:
        unsent_bytes_max: most bytes that all consumers together have not taken yet.

    Attributes:
        messages: number of published messages.
    """

    def __init__(self, *, unsent_bytes_max: int = MAKER_SOCKETS_UNSENT_BYTES_MAX) -> None:
        self._unsent_bytes_max = unsent_bytes_max
        self._sessions: set[_Session] = set()
        self.messages = 0

    def __len__(self) -> int:
        """Number of connected WebSocket consumers."""
        return len(self._sessions)

    @property
    def unsent_bytes(self) -> int:
        """Bytes that all consumers together have not taken yet."""
        return sum(session.socket.unsent_bytes for session in self._sessions)

    def publish(self, message: bytes) -> None:
        """Queue a message of price changes for every consumer; close the socket of a consumer that reads too
        slowly.
        """
        self.messages += 1
        if self._sessions:
            text, now = message.decode(), trio.current_time()
            for session in self._sessions:
                session.send(text, now)
            self._close_slowest()

    def _close_slowest(self) -> None:
        """Close the sockets whose unsent bytes have waited longest, until all together are in bounds."""
        while self.unsent_bytes > self._unsent_bytes_max:
            behind = [session for session in self._sessions if session.socket.unsent_bytes]
            slowest = min(behind, key=lambda session: (session.behind_since, -session.socket.unsent_bytes))
            slowest.socket.close_slow()

    def close_all(self, reason: str) -> None:
        """Start closing the WebSockets of all consumers, with the close reason `reason`."""
        for session in self._sessions:
            session.reason = reason
            session.scope.cancel()

    async def serve(self, socket: WebSocket, make_first: Callable[[], bytes | None]) -> None:
        """Send a consumer a first message with all prices, then each published message.

        The call returns once the WebSocket is closed.

        Args:
            make_first: function that returns the first message, or None to close the WebSocket. `serve`
                calls the function just before registering the consumer for published messages, so that the
                consumer misses no change.
        """
        await socket.until_sent()  # the handshake: the first message may have any size
        # No await up to the registration: no published message falls between the first message and the next,
        # and a stop of trading either makes `first` None or finds the session in `close_all`.
        first = make_first()
        if first is None:
            await socket.aclose(_GOING_AWAY, STOPPED)
            return
        session = _Session(socket)
        self._sessions.add(session)
        try:
            with session.scope:
                session.send(first.decode(), trio.current_time())
                self._close_slowest()
                for _ in range(_HEARD_MAX):
                    await socket.receive()
        except WebSocketClosed:
            return
        finally:
            self._sessions.discard(session)
        if session.scope.cancelled_caught:
            await socket.aclose(_GOING_AWAY, session.reason)
        else:
            await socket.aclose(_POLICY_VIOLATION, "this channel is one-way")
