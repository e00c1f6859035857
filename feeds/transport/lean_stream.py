"""A socket stream for request and answer, with fewer system calls and scheduler passes than trio's own.

trio's stream tries to read before it waits, and passes the scheduler after every call that did not block.
Both are wasted if each request waits for an answer that cannot have come yet. A send of a LeanStream that
does not block is no checkpoint, and a receive waits first. Only one task may use a LeanStream at a time; the
stream does not check this.
"""

import socket
from typing import Any, cast

import trio


def has_input(stream: trio.abc.Stream) -> bool:
    """Whether a read would return at once, with bytes or the end of input; TLS streams are supported."""
    if isinstance(stream, LeanStream):
        return stream.has_input()
    if isinstance(stream, trio.SSLStream):
        # Bytes that TLS has taken from the socket and that are unread: decrypted, or still encrypted. trio
        # has no public name for the latter.
        taken = stream.pending() or cast("Any", stream)._incoming.pending
        return bool(taken) or has_input(stream.transport_stream)
    return isinstance(stream, trio.SocketStream) and stream.socket.is_readable()


def is_readable(connected: socket.socket) -> bool:
    """Whether a read of a non-blocking socket would return at once, with bytes, end of input or an error."""
    try:
        connected.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


class LeanStream(trio.abc.Stream):
    """Stream over a connected socket, with fewer system calls and trio checkpoints than trio.SocketStream.

    Args:
        connected: the socket, which this stream then owns. A trio.SocketStream given here loses its socket
            and becomes unusable.
    """

    def __init__(self, connected: socket.socket | trio.SocketStream) -> None:
        if isinstance(connected, trio.SocketStream):
            connected = socket.socket(fileno=connected.socket.detach())
        self._socket = connected
        self._socket.settimeout(0)

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send all bytes, without a trio checkpoint if the socket takes all of them at once."""
        sent = self._send(data)
        if sent < len(data):
            with memoryview(data) as rest:
                while sent < len(data):
                    await trio.lowlevel.wait_writable(self._socket)
                    sent += self._send(rest[sent:])

    def send_now(self, data: bytes) -> int:
        """Send what the socket takes without waiting; return the number of bytes, 0 also if it is broken.

        Not to be called while another task sends.
        """
        try:
            return self._send(data)
        except trio.BrokenResourceError:
            return 0

    def _send(self, data: bytes | bytearray | memoryview) -> int:
        try:
            return self._socket.send(data)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise trio.BrokenResourceError(error.strerror) from error

    async def wait_send_all_might_not_block(self) -> None:
        """Wait until the socket's buffer has room."""
        await trio.lowlevel.wait_writable(self._socket)

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Wait for input, then read; every call executes a trio checkpoint."""
        while True:
            await trio.lowlevel.wait_readable(self._socket)
            try:
                return self._socket.recv(max_bytes or 65_536)
            except BlockingIOError:
                continue
            except OSError as error:
                raise trio.BrokenResourceError(error.strerror) from error

    def has_input(self) -> bool:
        """Whether a read would return at once, with bytes or the end of input."""
        return is_readable(self._socket)

    def close(self) -> None:
        """Close the socket at once; a waiting task gets trio.ClosedResourceError."""
        if self._socket.fileno() >= 0:
            trio.lowlevel.notify_closing(self._socket)
            self._socket.close()

    async def aclose(self) -> None:
        """Close the socket as `close` does, then execute a trio checkpoint."""
        self.close()
        await trio.lowlevel.checkpoint()
