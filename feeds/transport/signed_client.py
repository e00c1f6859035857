"""Signed requests (spec 3.10) to a maker or an agent, JSON, on pooled connections.

A request is sent once more if its connection was a reused one and broke before a byte of the answer; no
request is repeated after an answer.
"""

from collections.abc import Callable
from ssl import SSLContext
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from ...codecs.http1 import Http1Limits, Response
from ...crypto.hmac_auth import RequestSigner
from .http_client import (
    PLAIN,
    HttpClient,
    HttpClientStatistics,
    HttpFailure,
    RequestStage,
    unsolicited_coding,
)
from .streams import Dial, client_tls, dial

_PORTS = {"http": 80, "https": 443}
_JSON = (b"content-type", b"application/json")


class SignedClient:
    """HTTP client that signs its requests to the endpoints below one base URL.

    Use it as an async context manager: leaving it closes the connections.

    Args:
        url: base URL of the endpoints, http or https, with any path prefix.
        signer: signs the requests; None sends them unsigned.
        wall_ms: returns the current time, Unix milliseconds, which the signature covers.
        connections_max: most open connections; further requests wait for a free one until their deadline.
        limits: size limits of an answer.
        tls: context for https; None trusts the system's certificate authorities.
        dial: function that opens a connection.
    """

    def __init__(
        self,
        url: str,
        *,
        signer: RequestSigner | None,
        wall_ms: Callable[[], int],
        connections_max: int,
        limits: Http1Limits,
        tls: SSLContext | None = None,
        dial: Dial = dial,
    ) -> None:
        parts = urlsplit(url)
        self._signer = signer
        self._wall_ms = wall_ms
        self._path = parts.path.rstrip("/")
        self._http = HttpClient(
            parts.hostname or "",
            parts.port or _PORTS[parts.scheme],
            tls=(tls or client_tls()) if parts.scheme == "https" else None,
            connections_max=connections_max,
            limits=limits,
            dial=dial,
        )

    async def __aenter__(self) -> Self:
        await self._http.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._http.__aexit__(kind, error, trace)

    def statistics(self) -> HttpClientStatistics:
        """Counters of the client's connections and requests."""
        return self._http.statistics()

    async def post(self, endpoint: str, body: bytes, deadline_s: float) -> Response:
        """Post a body and wait for the answer.

        Args:
            endpoint: path below the base URL, such as `/firm`; empty for the base itself.
            deadline_s: seconds from now, for the whole request.

        Raises:
            HttpFailure: no complete HTTP answer arrived in time.
        """
        return await self._send("POST", endpoint, body, [_JSON], deadline_s)

    async def get(self, endpoint: str, deadline_s: float) -> Response:
        """Request a resource with GET; a compressed answer is refused. Arguments and errors as for `post`."""
        answer = await self._send("GET", endpoint, b"", [PLAIN], deadline_s)
        if coding := unsolicited_coding(answer):
            text = f"an unsolicited content-encoding: {coding!r}"
            raise HttpFailure(text, RequestStage.READ, is_late=False, refused=text)
        return answer

    async def _send(
        self, method: str, endpoint: str, body: bytes, headers: list[tuple[bytes, bytes]], deadline_s: float
    ) -> Response:
        target = f"{self._path}{endpoint}" or "/"
        if self._signer is not None:
            signed = self._signer.headers(self._wall_ms(), method, target, body)
            headers += [(name.encode(), value.encode()) for name, value in signed.items()]
        return await self._http.request(
            method.encode(), target.encode(), headers, body, deadline_s=deadline_s, may_repeat=True
        )
