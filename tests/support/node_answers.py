"""A transport for `Node` whose answers a test writes."""

from collections.abc import Callable
from typing import Any, NamedTuple, cast

from cambist.codecs.http1 import Response
from cambist.engine.chain.json_rpc import Node
from cambist.feeds.net.httpx_transport import Origin

NAME = "chains.1.node.urls[0]"


class Asked(NamedTuple):
    """What was asked of a host."""

    origin: Origin
    method: bytes
    target: bytes
    fields: list[tuple[bytes, bytes]]


class NodeAnswers:
    """One answer for all, or one that is made of each body.

    Attributes:
        asked: in order.
    """

    def __init__(self, status: int, body: bytes | Callable[[bytes], bytes]) -> None:
        self.asked: list[Asked] = []
        self._status = status
        self._body = body

    async def exchange(self, *asked: Any, deadline_s: float) -> Response:
        """As `DialTransport`."""
        assert deadline_s > 0
        *other, question = asked
        self.asked.append(Asked(*other))
        body = self._body if isinstance(self._body, bytes) else self._body(question)
        return Response(self._status, [], keep_alive=True, body=body)

    def node(self, url: str = "http://secret.example/key") -> Node:
        """A node that answers so."""
        return Node(cast("Any", self), url, NAME)
