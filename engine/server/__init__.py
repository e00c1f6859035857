"""The HTTP/1.1 server: routing, the drivers of connections, the access log, several processes."""

from .access_log import AccessLog, open_access_log
from .exchange import Counters
from .listener import Server
from .routing import HttpCall, Reply, Router, StreamReply, Surface

__all__ = [
    "AccessLog",
    "Counters",
    "HttpCall",
    "Reply",
    "Router",
    "Server",
    "StreamReply",
    "Surface",
    "open_access_log",
]
