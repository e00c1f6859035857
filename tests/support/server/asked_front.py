"""A running venue that a test asks over HTTP."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import msgspec

from cambist.codecs.http1 import Response
from cambist.feeds.net.http_client import HttpClient
from support.patience import PATIENCE_S


class AskedFront:
    """The requests that every front sends with its `_client`."""

    _client: HttpClient

    async def ask(
        self, method: str, target: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> Response:
        """Send a request as it stands."""
        sent = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
        return await self._client.request(method.encode(), target.encode(), sent, body, deadline_s=PATIENCE_S)

    async def answer(self, path: str, **query: Any) -> tuple[int, Any]:
        """Status and JSON of a GET."""
        response = await self.ask("GET", f"{path}?{urlencode(query)}" if query else path)
        return response.status, msgspec.json.decode(response.body)

    async def get(self, path: str, **query: Any) -> Any:
        """The JSON of a GET that is answered 200."""
        status, told = await self.answer(path, **query)
        assert status == 200, told
        return told

    async def post(self, path: str, body: Any, headers: Mapping[str, str] | None = None) -> tuple[int, Any]:
        """Status and JSON of a POST."""
        response = await self.ask("POST", path, msgspec.json.encode(body), headers)
        return response.status, msgspec.json.decode(response.body)
