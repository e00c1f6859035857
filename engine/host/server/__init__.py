"""The HTTP/1.1 server: routes, the two drivers of connections, the access log.

In: accepted sockets and a table of routes. Out: answers, streams, WebSockets; a line of the access log for
    each of them.
Reading order: `addresses`, `routing`, `pauses`, `exchange`, `gate`, `listener`, `spread`, `reactor`,
    `connection`, `turns`, `streaming`, `assets`, `access_log`.
"""

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
