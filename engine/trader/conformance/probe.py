"""HTTP client of the conformance harness: whole requests over one connection at a time, and raw bytes.

An unanswered request gives an HttpExchange with a `failure`, never an exception: the checks decide on its
meaning. The client retries a request only if a reused connection ended before the first byte of the answer,
since HTTP servers close idle connections that way.

The harness does not use the pooled client of `feeds`: it judges every connection and times each request
alone.
"""

import errno
import ssl
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Self

import trio

from ....codecs.http1 import ClientConnection, Http1Limits, Response
from ....config.errors import MakerError
from ....config.limits import MAKER_JSON_BYTES_MAX
from ....crypto.hmac_auth import RequestSigner
from ....feeds.transport.streams import client_tls, dial
from .checks.hostile import RawAnswer
from .exchange import HttpExchange
from .options import BaseUrl

_READ_BYTES = 65_536
_LATENCIES_MAX = 10_000
_RAW_BYTES_MAX = 4 << 20
_LIMITS = Http1Limits(body_bytes_max=MAKER_JSON_BYTES_MAX, chunk_count_max=1 << 20)
_JSON = (("accept", "application/json"),)
_BROKEN = (trio.BrokenResourceError, trio.ClosedResourceError)


class Unreachable(MakerError):
    """Error: the harness cannot connect to the maker, so that no check can run."""


class ProbeConnection:
    """An HTTP connection of the harness, opened at the first request and again after it has ended."""

    def __init__(self, probe: "Probe") -> None:
        self._probe = probe
        self._stream: trio.abc.Stream | None = None
        self._http = ClientConnection(_LIMITS)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._drop()

    async def send(
        self,
        method: str,
        target: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> HttpExchange:
        """Send a request and wait for its answer, then for the pause that the probe makes after every answer.

        Args:
            target: request target, which includes the base URL's path.
            headers: headers to send in place of the authentication headers.
        """
        probe = self._probe
        sent_ms, started = probe.now_ms(), trio.current_time()
        fields = dict(_JSON) | dict(probe.signed(method, target, body) if headers is None else headers)
        if body or method == "POST":
            fields["content-type"] = content_type
        response: Response | None = None
        failure = ""
        with trio.move_on_after(probe.timeout_s) as scope:
            try:
                response = await self._exchange(method, target, body, fields)
            except MakerError as error:
                failure = f"no answer: {error.detail}"
            except OSError as error:
                failure = f"no answer: no connection: {_reason(error)}"
        # `_once` has dropped the connection of a late request: its answer, if it still came, would be read as
        # the answer of the next request.
        if scope.cancelled_caught:
            failure = f"no answer within {probe.timeout_s:g} s: slow, or hanging"
        if response is not None and not response.keep_alive:
            await self._drop()
        latency_ms = (trio.current_time() - started) * 1000
        if response is not None:
            probe.latencies_ms.append(latency_ms)
        probe.late += scope.cancelled_caught
        await trio.sleep(probe.pause_s)  # after the answer, so that no signed request is held back
        return HttpExchange(
            method=method,
            target=target,
            request_body=body,
            status=response.status if response else 0,
            headers=_texts(response) if response else {},
            body=response.body if response else b"",
            failure=failure,
            sent_ms=sent_ms,
            latency_ms=latency_ms,
        )

    async def _exchange(self, method: str, target: str, body: bytes, fields: Mapping[str, str]) -> Response:
        reused = self._stream is not None
        try:
            return await self._once(method, target, body, fields)
        except MakerError:
            if not reused or self._http.response_started:
                raise
        return await self._once(method, target, body, fields)

    async def _once(self, method: str, target: str, body: bytes, fields: Mapping[str, str]) -> Response:
        """Send a request once; on any failure, close the connection, which is then unusable."""
        try:
            return await self._answered(method, target, body, fields)
        except BaseException:
            await self._drop()
            raise

    async def _answered(self, method: str, target: str, body: bytes, fields: Mapping[str, str]) -> Response:
        probe = self._probe
        if self._stream is None:
            self._stream = await probe.connect()
            self._http = ClientConnection(_LIMITS)
        stream, http = self._stream, self._http
        headers = [(name.encode(), value.encode("latin-1")) for name, value in fields.items()]
        data = http.send_request(
            method.encode(), target.encode(), probe.place.host_header.encode(), headers, body
        )
        # Counted before it is sent: a maker may act on a request that the harness sees fail.
        probe.requests += 1
        probe.firm_requests += method == "POST" and target == f"{probe.place.path}/firm"
        try:
            await stream.send_all(data)
        except _BROKEN:
            raise MakerError("the connection broke while the request was sent") from None
        while True:
            try:
                received = await stream.receive_some(_READ_BYTES)
            except _BROKEN:
                raise MakerError("the connection broke before the answer was complete") from None
            response = http.receive_data(bytes(received)) if received else http.receive_eof()
            if response is not None:
                return response

    async def _drop(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            await trio.aclose_forcefully(stream)


class Probe:
    """HTTP client of the conformance harness for one base URL; it counts requests and times answers.

    Args:
        place: base URL of all requests.
        timeout_s: longest wait for one answer, connecting included, seconds.
        now_ms: returns the wall clock, Unix milliseconds.
        signer: signs requests; None sends them unsigned.
        authorities: PEM file of certificates to trust.
        pause_s: wait after every answer, seconds.

    Attributes:
        requests: number of requests sent, deliberately malformed ones included.
        firm_requests: number of POST /firm requests, without those sent as raw bytes.
        latencies_ms: times of the last _LATENCIES_MAX answers, milliseconds.
        late: number of requests without an answer within `timeout_s`.
        send: `ProbeConnection.send` on the probe's own connection.
    """

    def __init__(
        self,
        place: BaseUrl,
        *,
        timeout_s: float,
        now_ms: Callable[[], int],
        signer: RequestSigner | None = None,
        authorities: str | None = None,
        pause_s: float = 0.0,
    ) -> None:
        self.place = place
        self.pause_s = pause_s
        self.timeout_s = timeout_s
        self.now_ms = now_ms
        self.requests = self.firm_requests = self.late = 0
        self.latencies_ms: deque[float] = deque(maxlen=_LATENCIES_MAX)
        self.tls: ssl.SSLContext | None = client_tls(authorities) if place.is_tls else None
        self._signer = signer
        self._line = ProbeConnection(self)
        self.send = self._line.send

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._line._drop()

    def signed(self, method: str, target: str, body: bytes) -> dict[str, str]:
        """Return the four authentication headers of a request; an empty dictionary without a signer.

        The signature covers the query of `target` as it is sent.
        """
        if self._signer is None:
            return {}
        return self._signer.headers(self.now_ms(), method, target, body)

    async def connect(self) -> trio.abc.Stream:
        """Open a TCP or TLS stream to the base URL's host and port.

        Raises:
            OSError: the connection fails.
        """
        return await dial(self.place.host, self.place.port, tls=self.tls, timeout_s=self.timeout_s)

    async def reach(self) -> None:
        """Open and close a connection, to check that the base URL accepts connections.

        Raises:
            Unreachable: the connection fails; the detail gives the reason.
        """
        try:
            stream = await self.connect()
        except OSError as error:
            raise Unreachable(f"{self.place.url}: {_reason(error)}") from None
        await trio.aclose_forcefully(stream)

    async def get(self, resource: str) -> HttpExchange:
        """Send a GET of `resource`, a path below the base URL, signed if the probe has a signer."""
        return await self._line.send("GET", f"{self.place.path}/{resource}")

    async def raw(
        self,
        payload: bytes,
        until: Callable[[bytes], bool],
        bound_s: float,
        *,
        piece_bytes: int | None = None,
        requests: int = 1,
    ) -> RawAnswer:
        """Send bytes unchanged on a new connection, and read the answer.

        Args:
            until: returns whether the bytes received so far are enough.
            bound_s: longest time to send and read, seconds.
            piece_bytes: bytes sent at a time; None sends all at once.
            requests: number of requests in `payload`, added to the probe's count.
        """
        data = bytearray()
        closed = False
        with trio.move_on_after(bound_s):
            try:
                async with self.holding(b"", requests) as stream, trio.open_nursery() as nursery:
                    # Beside the reading: a maker may refuse and stop reading before it has all the bytes, and
                    # a send that had to end first would wait for `bound_s`.
                    nursery.start_soon(_push, stream, payload, piece_bytes)
                    while not until(bytes(data)) and len(data) < _RAW_BYTES_MAX:
                        received = await stream.receive_some(_READ_BYTES)
                        if not received:
                            closed = True
                            break
                        data += received
                    nursery.cancel_scope.cancel()
            except* _BROKEN:
                closed = True
            # No connection looks like a close here; the request after each hostile one finds a dead maker.
            except* OSError:
                closed = True
        return RawAnswer(bytes(data), closed)

    @asynccontextmanager
    async def holding(self, payload: bytes, requests: int = 1) -> AsyncGenerator[trio.abc.Stream]:
        """Context manager that sends `payload` on a new connection and keeps it open until `with` ends.

        Args:
            requests: number added to the probe's count of requests.

        Raises:
            OSError: the connection fails.
        """
        stream = await self.connect()
        self.requests += requests
        try:
            await _push(stream, payload)
            yield stream
        finally:
            await trio.aclose_forcefully(stream)


async def _push(stream: trio.abc.Stream, payload: bytes, piece_bytes: int | None = None) -> None:
    """Send bytes, `piece_bytes` at a time; stop without an error if the peer closes the connection."""
    size = piece_bytes or max(len(payload), 1)
    try:
        for at in range(0, len(payload), size):
            await stream.send_all(payload[at : at + size])
    except _BROKEN:
        pass


def _texts(response: Response) -> dict[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in response.headers}


def _reason(error: OSError) -> str:
    if isinstance(error, ssl.SSLError):
        why = f": {error.verify_message}" if isinstance(error, ssl.SSLCertVerificationError) else ""
        return f"TLS failed: {error.reason or error}{why}"
    if error.errno == errno.ETIMEDOUT:
        return error.strerror or "no connection in time"
    causes = [str(cause) for cause in getattr(error.__cause__, "exceptions", ())]
    return f"{error.strerror or error}{': ' if causes else ''}{'; '.join(causes[:2])}"
