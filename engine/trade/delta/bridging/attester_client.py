"""HTTP client of the service that attests CCTP messages; each request has a time-out and a bounded answer.

Source: developers.circle.com, "CCTP API".
"""

from ssl import SSLContext

import httpx

from .....codecs.http1 import Http1Limits
from .....config import limits
from .....config.error_text import excerpt
from .....config.errors import BridgeError, InvalidInput
from .....feeds.transport.httpx_transport import DialTransport
from .attestations import AttestedMessage, attested_in, messages_target, reattest_target
from .origins import BurnedMessage

_NOT_FOUND = 404
_ANSWER_LIMITS = Http1Limits(body_bytes_max=limits.BRIDGE_MESSAGES_BYTES_MAX)


class AttesterClient:
    """Client of one attestation service.

    Args:
        url: base URL of the service.
        http: open client, from `attester_http`.
        request_s: time-out of a request, seconds.
    """

    def __init__(self, url: str, http: httpx.AsyncClient, request_s: float) -> None:
        self._url = url.rstrip("/")
        self._http = http
        self._request_s = request_s

    async def attested(self, tx_hash: bytes, burned: BurnedMessage) -> AttestedMessage | str:
        """Ask for the attested form of a burned message; the reason why it waits if it is not attested yet.

        Args:
            tx_hash: hash of the origin's transaction that burned the tokens.

        Raises:
            BridgeError: the service gives no usable answer in time.
        """
        answer = await self._ask("GET", messages_target(burned.message.source_domain, tx_hash))
        if answer.status_code == _NOT_FOUND:
            return ""
        if not answer.is_success:
            raise BridgeError(f"answered {answer.status_code}: {excerpt(answer.content)}")
        try:
            return attested_in(answer.content, burned)
        except InvalidInput as error:
            raise BridgeError(error.detail) from None

    async def attest_anew(self, nonce: bytes) -> None:
        """Ask to attest an expired message anew.

        Raises:
            BridgeError: the service does not answer in time, or refuses.
        """
        answer = await self._ask("POST", reattest_target(nonce))
        if not answer.is_success:
            raise BridgeError(f"answered {answer.status_code}: {excerpt(answer.content)}")

    async def _ask(self, method: str, target: str) -> httpx.Response:
        try:
            return await self._http.request(method, f"{self._url}{target}", timeout=self._request_s)
        except httpx.HTTPError as error:
            raise BridgeError(f"{type(error).__name__}: {error}") from None


def attester_http(tls: SSLContext) -> httpx.AsyncClient:
    """Make the HTTP client of attestation services; the caller opens and closes it.

    Args:
        tls: context for https.
    """
    connections = limits.BRIDGE_CONNECTIONS_MAX
    return httpx.AsyncClient(
        transport=DialTransport(tls=tls, connections_max=connections, limits=_ANSWER_LIMITS)
    )
