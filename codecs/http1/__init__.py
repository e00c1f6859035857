"""HTTP/1.1 framing without I/O, on llhttp: the server's side and the client's side of a connection.

In: bytes of a connection. Out: whole requests or answers, and the bytes to send.
Reading order: `limits`, `events`, `fields`, `framing`, `request_head`, `chunked`, `server`, `responses`,
    `client`.
"""

from .chunked import LAST_CHUNK, encode_chunk
from .client import ClientConnection, Response
from .events import Closed, Event, Headers, Phase, Request, RequestFault, Upgrade
from .limits import Bodies, Http1Limits
from .request_head import METHODS
from .responses import JSON, encode_response, encode_stream_head
from .server import CONTINUE, ServerConnection

__all__ = [
    "CONTINUE",
    "JSON",
    "LAST_CHUNK",
    "METHODS",
    "Bodies",
    "ClientConnection",
    "Closed",
    "Event",
    "Headers",
    "Http1Limits",
    "Phase",
    "Request",
    "RequestFault",
    "Response",
    "ServerConnection",
    "Upgrade",
    "encode_chunk",
    "encode_response",
    "encode_stream_head",
]
