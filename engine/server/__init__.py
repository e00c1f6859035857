"""The HTTP/1.1 server: routing, the drivers of connections, the access log, several processes."""

from .access_log import AccessLog, open_access_log
from .exchange import Counters
from .listener import Server
from .routing import HttpCall, Reply, RouteGroup, Router, StreamReply

__all__ = [
    "AccessLog",
    "Counters",
    "HttpCall",
    "Reply",
    "RouteGroup",
    "Router",
    "Server",
    "StreamReply",
    "open_access_log",
]
