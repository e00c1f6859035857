"""httpx on top of our HTTP client, for rare requests (webhooks, bridges' fees).

JSON-RPC uses `exchange` without httpx; polls of makers use `SignedClient`.

httpx contributes its interface, redirects and JSON; our client handles the wire: one dial, one framing, one
set of bounds. Making httpx's objects takes as long as the request itself; `exchange` makes none. httpx's own
transport takes twice the CPU of this transport (1,075 us a GET against 510; `HttpClient` alone takes 70), and
supports neither our `Dial` nor our bounds. Its httpcore leaves async generators behind whenever a request
fails or is cancelled, which trio reports as leaks.

A host without connections costs nothing: its client is closed when the next client is opened. A POST is never
sent twice.

The four time-outs of httpx become one deadline for the whole request, the largest of them. Cookies are
dropped, since httpx would keep every cookie and send it back. An answer that ends only with its connection is
refused, since a broken answer looks the same. A webhook's answer counts by its status alone, without headers
or body.

Choice: A compressed answer is refused: a few bytes of gzip unfold to any size.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from ssl import SSLContext
from types import TracebackType
from typing import Self, TypeAlias

import httpx
import trio

from ...codecs.http1 import Http1Limits, Response
from ...config.timeouts import HTTP_REQUEST_S
from .http_client import PLAIN, HttpClient, HttpFailure, RequestStage, unsolicited_coding
from .streams import Dial, dial

Origin: TypeAlias = tuple[str, str, int]  # scheme, host, port

_OURS = frozenset((b"accept-encoding", b"connection", b"content-length", b"host", b"transfer-encoding"))
_PORTS = {"http": 80, "https": 443}
_LATE: dict[RequestStage, type[httpx.TransportError]] = {
    RequestStage.TURN: httpx.PoolTimeout,
    RequestStage.CONNECT: httpx.ConnectTimeout,
    RequestStage.SEND: httpx.WriteTimeout,
}
_FAILED: dict[RequestStage, type[httpx.TransportError]] = {
    RequestStage.CONNECT: httpx.ConnectError,
    RequestStage.SEND: httpx.WriteError,
}


class DialTransport(httpx.AsyncBaseTransport):
    """httpx transport over `HttpClient`, usable inside `async with httpx.AsyncClient(transport=...)` only.

    Args:
        tls: context for https.
        connections_max: most connections to each host; further requests wait.
        limits: size limits of the answers.
        dial: function that opens a connection.
        needs_body: whether an answer whose body is not received whole is a failure; if False, httpx gets only
            the status of an answer, without headers and body.
    """

    def __init__(
        self,
        *,
        tls: SSLContext,
        connections_max: int,
        limits: Http1Limits,
        dial: Dial = dial,
        needs_body: bool = True,
    ) -> None:
        self._tls = tls
        self._connections_max = connections_max
        self._limits = limits
        self._dial = dial
        self._needs_body = needs_body
        self._clients: dict[Origin, tuple[HttpClient, trio.CancelScope]] = {}
        self._opening = trio.Lock()

    async def __aenter__(self) -> Self:
        self._life = self._living()
        self._nursery = await self._life.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        """Close all connections."""
        await self._life.__aexit__(exc_type, exc_value, traceback)

    @asynccontextmanager
    async def _living(self) -> AsyncGenerator[trio.Nursery]:
        """Context manager: run the tasks of the HTTP clients during the `async with` block.

        An exception from the block is raised as it is, not inside an exception group.
        """
        failure: Exception | None = None
        async with trio.open_nursery() as nursery:
            try:
                yield nursery
            except Exception as error:  # noqa: BLE001 - raised below, not within an exception group
                failure = error
            finally:
                nursery.cancel_scope.cancel()
        if failure is not None:
            raise failure

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request for httpx and read the whole answer.

        Raises:
            httpx.TransportError: its class gives the stage of the failure.
        """
        times = [seconds for seconds in request.extensions.get("timeout", {}).values() if seconds is not None]
        answer = await self.exchange(
            origin_of(request.url),
            request.method.encode(),
            request.url.raw_path,
            [field for field in request.headers.raw if field[0].lower() not in _OURS],
            await request.aread(),
            deadline_s=max(times, default=HTTP_REQUEST_S),
        )
        if not self._needs_body:
            return httpx.Response(answer.status)
        headers = [field for field in answer.headers if field[0] != b"set-cookie"]
        return httpx.Response(answer.status, headers=headers, stream=httpx.ByteStream(answer.body))

    async def exchange(
        self,
        origin: Origin,
        method: bytes,
        target: bytes,
        headers: Sequence[tuple[bytes, bytes]],
        body: bytes,
        *,
        deadline_s: float,
    ) -> Response:
        """Send a request as `HttpClient.request` does, through the client for the host of `origin`.

        Args:
            origin: scheme, host and port, as `origin_of` returns them.
            headers: without the framing headers and without Accept-Encoding.

        Raises:
            httpx.TransportError: as `handle_async_request`.
        """
        if origin not in self._clients:
            async with self._opening:
                await self._open(origin)
        client = self._clients[origin][0]  # no checkpoint between here and its use: it may be evicted
        try:
            answer = await client.request(method, target, (*headers, PLAIN), body, deadline_s=deadline_s)
        except HttpFailure as failure:
            kind = (_LATE if failure.is_late else _FAILED).get(failure.stage)
            other = httpx.ReadTimeout if failure.is_late else httpx.RemoteProtocolError
            raise (kind or other)(failure.detail) from failure
        except ValueError as error:
            # Callers expect httpx's errors alone, and a URL may come from another party (webhooks).
            raise httpx.LocalProtocolError(str(error)) from error
        if self._needs_body and (coding := unsolicited_coding(answer)):
            raise httpx.RemoteProtocolError(f"an unsolicited content-encoding: {coding!r}")
        return answer

    async def _open(self, origin: Origin) -> None:
        if origin in self._clients:  # another request opened it while this one waited for the lock
            return
        scheme, host, port = origin
        if scheme not in _PORTS:
            raise httpx.UnsupportedProtocol(f"neither http nor https: {scheme!r}")
        for old, (unused, scope) in tuple(self._clients.items()):
            if unused.is_unused:
                del self._clients[old]
                scope.cancel()
        client = HttpClient(
            host,
            port,
            tls=self._tls if scheme == "https" else None,
            connections_max=self._connections_max,
            limits=self._limits,
            dial=self._dial,
            needs_body=self._needs_body,
        )
        self._clients[origin] = client, await self._nursery.start(_keep_open, client)


def origin_of(url: httpx.URL) -> Origin:
    """Scheme, host and port of a URL; the host in the ASCII form (IDNA) that name resolution takes."""
    return url.scheme, url.raw_host.decode("ascii"), url.port or _PORTS.get(url.scheme, 0)


async def _keep_open(client: HttpClient, task_status: trio.TaskStatus[trio.CancelScope]) -> None:
    with trio.CancelScope() as scope:
        async with client:
            task_status.started(scope)
            await trio.sleep_forever()
