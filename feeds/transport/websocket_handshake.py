"""Opening handshake of a WebSocket, for both sides: all bytes before the first frame.

The core of the `websockets` library checks the handshake. The core's own error responses are not used, so
that a server can answer with an error body of its own.

A handshake of another WebSocket version is answered with a 400 that names the header, not with a 426.

Source: RFC 6455 4.
"""

import logging
from collections.abc import Mapping
from ssl import SSLContext

import trio
from websockets.client import ClientProtocol
from websockets.datastructures import Headers
from websockets.http11 import Request as HandshakeRequest
from websockets.http11 import Response as HandshakeResponse
from websockets.protocol import OPEN
from websockets.server import ServerProtocol
from websockets.uri import WebSocketURI

from ...codecs.http1 import Request
from ...codecs.http1.fields import render_fields
from ...codecs.http1.request_head import is_target
from ...config.error_text import shown
from ...config.errors import HttpFault, MakerError
from ...config.timeouts import WEBSOCKET_OPEN_S
from .dial_fault import dial_fault
from .streams import Dial

# The core would log headers and payloads, secrets among them; no setting can enable this logger.
SILENT = logging.Logger("websockets", logging.CRITICAL + 1)  # noqa: LOG001

_READ_BYTES = 16_384
_ANSWER_BYTES_MAX = 65_536
_BODY_SHOWN_BYTES_MAX = 1_000


class HandshakeRefused(MakerError):
    """Error: the server answered the opening handshake with a status other than 101, or an invalid 101.

    Attributes:
        status: HTTP status of the answer.
        body: first bytes of the answer's body, at most 1,000.
    """

    def __init__(self, status: int, body: bytes, reason: str) -> None:
        text = body.decode("utf-8", "backslashreplace")
        super().__init__(f"WebSocket handshake refused with {status}: {reason}{': ' if text else ''}{text}")
        self.status = status
        self.body = body


def accept_handshake(request: Request) -> bytes:
    """Make the 101 response that accepts an opening handshake.

    Raises:
        HttpFault: the request's WebSocket key or version is invalid.
    """
    headers = Headers()
    for name, value in request.headers:
        headers[name.decode()] = value.decode("latin-1")
    core = ServerProtocol(logger=SILENT)
    answer = core.accept(HandshakeRequest(request.target.decode(), headers))
    if core.handshake_exc is not None:
        raise HttpFault(f"no WebSocket handshake: {core.handshake_exc}")
    del answer.headers["Date"]  # optional, and this module has no clock
    return answer.serialize()


def offer_handshake(
    host: str, port: int, path: str, *, is_secure: bool, headers: Mapping[str, str], message_bytes_max: int
) -> ClientProtocol:
    """Create a client's protocol object (of `websockets`), which holds the handshake's request to send.

    The arguments are those of `connect_websocket`.

    Raises:
        ValueError: a path or header would break the HTTP framing.
    """
    if not is_target(path.encode()):
        raise ValueError(f"not a path: {path!r}")
    render_fields([(name.encode(), value.encode("latin-1")) for name, value in headers.items()])
    plain, _, query = path.partition("?")
    address = WebSocketURI(is_secure, host, port, plain, query)
    core = ClientProtocol(address, max_size=message_bytes_max, logger=SILENT)
    request = core.connect()
    request.headers.update(headers)
    core.send_request(request)
    return core


async def shake_hands(
    core: ClientProtocol, host: str, port: int, *, tls: SSLContext | None, dial: Dial
) -> tuple[trio.abc.Stream, bytes]:
    """Connect and complete the opening handshake as `connect_websocket` does: same time-out and errors.

    Args:
        core: protocol object that `offer_handshake` created.

    Returns:
        The stream, and the bytes received after the server's answer.
    """
    answer = bytearray()  # filled by `_read_answer`: the error texts below tell how far the answer came
    try:
        with trio.fail_after(WEBSOCKET_OPEN_S):
            stream = await dial(host, port, tls=tls)
            try:
                await stream.send_all(b"".join(core.data_to_send()))
                return stream, await _read_answer(stream, core, answer)
            except BaseException:
                # Cancellations and the time-out too: no WebSocket owns the stream yet.
                await trio.aclose_forcefully(stream)
                raise
    except trio.TooSlowError:
        raise MakerError(f"WebSocket: {_begun(answer)} within {WEBSOCKET_OPEN_S:g} s") from None
    except OSError as error:
        raise MakerError(f"WebSocket: no connection to {host}:{port}: {dial_fault(error)}") from None
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        raise MakerError(f"WebSocket: the connection broke; {_begun(answer)}") from None


async def _read_answer(stream: trio.abc.Stream, core: ClientProtocol, answer: bytearray) -> bytes:
    """Read and check the server's answer to the handshake; return the bytes after a valid 101."""
    fed = 0
    while core.handshake_exc is None and len(answer) <= _ANSWER_BYTES_MAX:
        data = await stream.receive_some(_READ_BYTES)
        answer += data
        if not fed:
            # The core gets the head alone: after a 101, frames follow, which the caller's reader parses.
            fed = answer.find(b"\r\n\r\n") + len(b"\r\n\r\n")
            if fed < len(b"\r\n\r\n"):
                fed = 0
            core.receive_data(answer[:fed])
            if core.state is OPEN:
                core.events_received()
                return bytes(answer[fed:])
        if fed or not data:
            core.receive_data(answer[fed:])
            fed = len(answer)
        if not data:
            core.receive_eof()
    refusal = next(iter(core.events_received()), None)
    if not isinstance(refusal, HandshakeResponse):
        raise MakerError(f"WebSocket: {_begun(answer)}")
    body = bytes(refusal.body[:_BODY_SHOWN_BYTES_MAX])
    raise HandshakeRefused(refusal.status_code, body, str(core.handshake_exc))


def _begun(answer: bytearray) -> str:
    """Describe the part of a handshake answer that was received, for an error text."""
    if not answer:
        return "no answer to the handshake"
    first_line = bytes(answer.partition(b"\r")[0])
    return f"no whole HTTP answer to the handshake, which began with {shown(first_line)}"
