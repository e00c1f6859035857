"""A running server that a test asks over HTTP.

async with listening(server.serve) as port, client_at(port) as client:
    ...
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode

import msgspec
import trio

from cambist.codecs.http1 import Http1Limits, Response
from cambist.feeds.transport.http_client import HttpClient
from cambist.feeds.transport.streams import listen
from support.patience import PATIENCE_S

_JSON = {"content-type": "application/json"}


@asynccontextmanager
async def listening(serve: Callable[..., Awaitable[Any]]) -> AsyncIterator[int]:
    """Port of 127.0.0.1 at which something serves; cancelled in the end, unless it has ended by then.

    Args:
        serve: takes the listener, and `task_status`.
    """
    listener = listen("127.0.0.1", 0)
    async with trio.open_nursery() as nursery:
        await nursery.start(serve, listener)
        yield listener.getsockname()[1]
        nursery.cancel_scope.cancel()


def client_at(port: int, connections_max: int = 64) -> HttpClient:
    """A client of a server of this machine."""
    return HttpClient("127.0.0.1", port, connections_max=connections_max, limits=Http1Limits())


class AskedFront:
    """The requests that every front sends with its `client`.

    Attributes:
        address: from which they come, as a proxy that the front trusts says; empty without a proxy.
    """

    client: HttpClient
    address: str = ""

    async def ask(
        self, method: str, target: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> Response:
        """Send a request as it stands."""
        sent = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
        if self.address:
            sent.append((b"x-forwarded-for", self.address.encode()))
        return await self.client.request(method.encode(), target.encode(), sent, body, deadline_s=PATIENCE_S)

    async def answer(self, path: str, /, **query: Any) -> tuple[int, Any]:
        """Status and JSON of a GET; a parameter that is None is left out."""
        told = {name: value for name, value in query.items() if value is not None}
        response = await self.ask("GET", f"{path}?{urlencode(told)}" if told else path)
        return response.status, msgspec.json.decode(response.body)

    async def get(self, path: str, /, **query: Any) -> Any:
        """The JSON of a GET that is answered 200."""
        status, told = await self.answer(path, **query)
        assert status == 200, told
        return told

    async def post(
        self, path: str, body: Any, headers: Mapping[str, str] | None = None, **query: Any
    ) -> tuple[int, Any]:
        """Status and JSON of a POST; a body of bytes is sent as it stands."""
        raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
        target = f"{path}?{urlencode(query)}" if query else path
        response = await self.ask("POST", target, raw, _JSON | dict(headers or {}))
        return response.status, msgspec.json.decode(response.body)
